//! Counts what a program does to durability from outside, whatever its library says of itself.
//!
//! The program asks to be traced and stops at two marks. Between them either every instruction is
//! looked at before it is executed ([`Method::Steps`]: nothing escapes, 20 us an instruction on a
//! virtual machine), or the process stops only at the instructions that matter, which were looked
//! for in all its code before ([`Method::Breakpoints`]: hundreds of times faster). Only the thread
//! that stopped is followed, and code is taken not to change and not to be loaded in between.

mod breakpoints;
mod single_step;
mod tally;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

pub use tally::Counts;

/// With this code a program says that it may not be traced; `evaluation/pmdk/programs/common.h` has
/// it too.
const EXIT_NOT_TRACEABLE: i32 = 77;

/// How to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Instruction by instruction.
    Steps,
    /// From one instruction that matters to the next.
    Breakpoints,
}

/// What came of an attempt to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The counts, and what the program printed.
    Counts(Counts, String),
    /// The system does not let a process trace its children.
    NotPermitted,
}

/// Runs a program that stops at marks, and counts between them.
pub fn count(command: &mut Command, method: Method) -> Result<Counted> {
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("{command:?} does not start"))?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let counted = between_marks(pid, method);
    if counted.is_err() {
        // It may be gone already; then there is nothing to end.
        let _ = child.kill();
        let _ = waitpid(pid, None);
    }
    let Some(counts) = counted.with_context(|| format!("counting in {command:?}"))? else {
        return Ok(Counted::NotPermitted);
    };
    let output = child.stdout.take().context("the program's output is a pipe")?;
    Ok(Counted::Counts(counts, std::io::read_to_string(output)?))
}

fn between_marks(pid: Pid, method: Method) -> Result<Option<Counts>> {
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
        WaitStatus::Exited(_, EXIT_NOT_TRACEABLE) => return Ok(None),
        status => bail!("it did not come to the first mark: {status:?}"),
    }
    let counts = match method {
        Method::Steps => single_step::to_mark(pid)?,
        Method::Breakpoints => breakpoints::to_mark(pid)?,
    };
    ptrace::cont(pid, None)?;
    match waitpid(pid, None)? {
        WaitStatus::Exited(_, 0) => Ok(Some(counts)),
        status => bail!("it did not end well behind the last mark: {status:?}"),
    }
}

/// Waits for the process: true where it stopped itself at a mark, false where the tracer made it
/// stop.
fn stopped_at_mark(pid: Pid) -> Result<bool> {
    match waitpid(pid, None)? {
        WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(false),
        WaitStatus::Stopped(_, Signal::SIGSTOP) => Ok(true),
        status => bail!("it did not come to the last mark: {status:?}"),
    }
}
