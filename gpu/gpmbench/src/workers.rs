//! Work of a campaign in processes of its own program. Interpreters take and give back memory all
//! the time, for which threads of one process queue at the lock of its address space.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// This program again, in its command `other` in place of `this`: behind the same words, a few in
/// `nearpm`, or none.
///
/// # Errors
/// The system does not say where the program is.
pub fn itself(this: &str, other: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("a program knows where it is")?);
    command.args(std::env::args().skip(1).take_while(|word| word != this)).arg(other);
    Ok(command)
}

/// What a worker says of a piece of the work, by its number.
///
/// # Errors
/// Nobody listens any more: the worker has to end.
pub fn say<T: Serialize>(number: u64, found: &T) -> Result<()> {
    let line = serde_json::to_string(&(number, found))? + "\n";
    std::io::stdout().write_all(line.as_bytes()).context("nobody waits for what a worker finds")
}

/// Runs these processes at the same time, and takes the pieces that they [`say`] in the order of
/// their numbers, from `first` on, as soon as all before a piece are there, until `take` has
/// enough. All of them have ended when this returns; those that go on when it is over are killed.
///
/// # Errors
/// One that cannot be started, that failed (it has said why), or that prints something else; what
/// `take` refuses.
pub fn in_order<T: DeserializeOwned>(
    commands: impl IntoIterator<Item = Command>,
    until: Option<Instant>,
    first: u64,
    mut take: impl FnMut(T) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let (mut workers, lines) = started(commands)?;
    let (mut next, mut ahead) = (first, BTreeMap::new());
    let is_over = 'over: loop {
        let line = match received(&lines, until) {
            Ok(line) => line.context("cannot read what a worker found")?,
            Err(error) => break error == RecvTimeoutError::Timeout,
        };
        let (number, found): (u64, T) = serde_json::from_str(&line).context("a worker did not say what it found")?;
        ahead.insert(number, found);
        while let Some(found) = ahead.remove(&next) {
            next += 1;
            if take(found)?.is_break() {
                break 'over true;
            }
        }
    };
    for worker in &mut workers.0 {
        // Also when the time is over: one that has found something wrong has ended before.
        let ended = if is_over { worker.try_wait() } else { worker.wait().map(Some) };
        if let Some(ended) = ended.context("cannot wait for a worker")? {
            ensure!(ended.success(), "a worker failed: {ended}");
        }
    }
    // Before nobody listens to them any more, which they would complain of.
    drop(workers);
    ensure!(is_over || ahead.is_empty(), "no worker said anything of piece {next}");
    Ok(())
}

/// The processes, and their lines as they come; no line comes any more when all have closed their
/// outputs.
fn started(commands: impl IntoIterator<Item = Command>) -> Result<(Killed, Receiver<std::io::Result<String>>)> {
    let (line, lines) = channel();
    let mut workers = Killed(Vec::new());
    for mut command in commands {
        let worker = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot run a worker")?;
        workers.0.push(worker);
        let output = workers.0.last_mut().and_then(|worker| worker.stdout.take()).expect("its output is a pipe");
        let line = line.clone();
        std::thread::spawn(move || BufReader::new(output).lines().try_for_each(|read| line.send(read)));
    }
    Ok((workers, lines))
}

fn received<T>(lines: &Receiver<T>, until: Option<Instant>) -> Result<T, RecvTimeoutError> {
    match until {
        Some(until) => lines.recv_timeout(until.saturating_duration_since(Instant::now())),
        None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

/// Processes that do not outlive it.
struct Killed(Vec<Child>);

impl Drop for Killed {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // One that has ended is no longer there to be killed.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ENOUGH: u32 = 9;

    fn taken(scripts: &[&str], until: Option<Instant>) -> (Vec<u32>, Result<()>) {
        let shell = |script: &&str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let mut all = Vec::new();
        let outcome = in_order(scripts.iter().map(shell), until, 5, |found: u32| {
            all.push(found);
            Ok(if found == ENOUGH { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        (all, outcome)
    }

    #[test]
    fn pieces_come_in_the_order_of_their_numbers() {
        let (all, outcome) = taken(&["sleep 0.05; echo [5,1]; echo [7,3]", "echo [6,2]; echo [8,4]"], None);
        outcome.unwrap();
        assert_eq!(all, [1, 2, 3, 4]);
    }

    #[test]
    fn a_worker_that_fails_or_says_something_else_is_an_error_and_what_was_said_before_counts() {
        for (script, said) in
            [("echo [6,2]; exit 3", "failed"), ("echo [6,2]; kill -9 $$", "failed"), ("echo no", "did not say")]
        {
            let (all, outcome) = taken(&["echo [5,1]; echo [7,3]; sleep 0.2", script], None);
            let error = format!("{:#}", outcome.unwrap_err());
            assert!(error.contains(said), "{script}: {error}");
            let expected: &[u32] = if said == "failed" { &[1, 2, 3] } else { &[] };
            assert!(all.starts_with(expected), "{script}: {all:?}");
        }
        let nowhere = in_order([Command::new("/nowhere/at/all")], None, 0, |_: u32| Ok(ControlFlow::Continue(())));
        assert!(nowhere.is_err());
    }

    /// Workers that need longer than there is time, as all of a turn did: what they had done is
    /// there, and they are not.
    #[test]
    fn what_was_done_when_the_time_is_over_counts() {
        let time = Duration::from_secs(1);
        let script = "echo [5,1]; echo [6,2]; echo [8,4]; exec sleep 600";
        let (all, outcome) = taken(&[script, "exec sleep 600"], Some(Instant::now() + time));
        outcome.unwrap();
        assert_eq!(all, [1, 2], "the piece 7 is missing");
        let (_, outcome) = taken(&["exit 1", "exec sleep 600"], Some(Instant::now() + time));
        assert!(outcome.unwrap_err().to_string().contains("failed"), "what it found may not be lost");
    }

    #[test]
    fn workers_end_when_there_is_enough() {
        let (all, outcome) = taken(&["echo [5,1]; echo [6,9]; echo [7,2]; exec sleep 600"], None);
        outcome.unwrap();
        assert_eq!(all, [1, 9]);
    }

    #[test]
    fn workers_end_when_a_piece_is_refused() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo [0,1]; exec sleep 600"]);
        let refused = in_order([command], None, 0, |_: u32| anyhow::bail!("the disk is full"));
        assert_eq!(refused.unwrap_err().to_string(), "the disk is full");
    }
}
