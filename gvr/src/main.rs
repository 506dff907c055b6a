//! The commands of `nearpm gvr` as a program of their own.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use nearpm_gvr::commands::{GvrCommand, command};

/// Versioned global arrays on one-sided memory, log-structured and durable
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: GvrCommand,
}

/// A reader that goes away, as `head` does, ends the program without a word. Rust ignores the
/// signal, and printing would panic.
#[cfg(unix)]
fn end_with_the_pipe() {
    // SAFETY: no thread runs yet, and the default action calls nothing of this program.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

fn main() -> ExitCode {
    #[cfg(unix)]
    end_with_the_pipe();
    match command(&Arguments::parse().command) {
        Ok(status) => status,
        Err(error) => {
            // At once: several ranks write to one terminal. Where nobody reads it, nobody misses
            // it.
            let _ = std::io::stderr().write_all(format!("nearpm-gvr: {error}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}
