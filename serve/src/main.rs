//! The servers alone, without the hardware that the `nearpm` program has in it: `nearpm-serve redis` is `nearpm serve redis`.

use std::process::ExitCode;

use clap::Parser;
use nearpm_serve::ServeCommand;

/// Serve a pool to clients of Redis or memcached, durable before they are answered.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: ServeCommand,
}

fn main() -> ExitCode {
    match nearpm_serve::serve(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nearpm-serve: {error}");
            ExitCode::FAILURE
        }
    }
}
