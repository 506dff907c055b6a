//! A program that stops where its timed part begins and ends.

use std::process::{Command, Output, Stdio};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

/// A run, and what a clock said at each of its stops.
pub struct Followed {
    /// How it ended, and what it printed.
    pub output: Output,
    /// The clock's times, in its own unit.
    pub marks_ps: Vec<u64>,
    /// That of its end.
    pub end_ps: u64,
}

/// Runs a program that asks to be traced, and reads a clock whenever it stops itself.
///
/// # Panics
/// If it does not start, or stops for something else.
pub fn follow(mut command: Command, clock: impl Fn() -> u64) -> Followed {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let pid = Pid::from_raw(child.id().try_into().expect("a process has a number"));
    let mut marks_ps = Vec::new();
    // What it prints before its end is less than a pipe holds. Its end is left to be waited for
    // with what it printed.
    while marks_ps.len() < 2 {
        match waitpid(pid, None).expect("it is this process's") {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => marks_ps.push(clock()),
            WaitStatus::Stopped(_, signal) => panic!("the program was stopped by {signal}"),
            other => panic!("the program ended before its timed part did: {other:?}"),
        }
        ptrace::cont(pid, None).expect("it is stopped");
    }
    let output = child.wait_with_output().expect("it prints and ends");
    Followed { output, marks_ps, end_ps: clock() }
}
