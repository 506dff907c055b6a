//! The servers and their client alone, without the hardware that the `nearpm` program has in it:
//! `nearpm-serve redis` is `nearpm serve redis`, `nearpm-serve ycsb` is `nearpm ycsb`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nearpm_serve::ServeCommand;

/// Serve a pool to clients of Redis or memcached, durable before they are answered; measure
/// servers.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, for as long as the program runs")]
enum Command {
    #[command(flatten)]
    Serve(ServeCommand),
    /// Measure a server, ours or another, as `nearpm ycsb` does
    Ycsb(nearpm_ycsb::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Serve(command) => nearpm_serve::serve(command).map_err(|error| error.to_string()),
        Command::Ycsb(options) => nearpm_ycsb::command(&options).map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nearpm-serve: {error}");
            ExitCode::FAILURE
        }
    }
}
