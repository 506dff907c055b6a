//! Work of a campaign in processes of its own program. Interpreters take and give back memory all the time, for which threads of one process queue at the
//! lock of its address space.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

/// This program again, in its command `other` in place of `this`: behind the same words, a few in `nearpm`, or none.
///
/// # Errors
/// The system does not say where the program is.
pub fn itself(this: &str, other: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("a program knows where it is")?);
    command.args(std::env::args().skip(1).take_while(|word| word != this)).arg(other);
    Ok(command)
}

/// What each of these processes prints as JSON, in their order. They run at the same time; all of them have ended when this returns.
///
/// # Errors
/// One that cannot be started, that failed (it has said why), or that prints something else.
pub fn at_once<T: DeserializeOwned>(commands: impl IntoIterator<Item = Command>) -> Result<Vec<T>> {
    let start = |mut command: Command| command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    // All are started before the first is waited for.
    let started: Vec<_> = commands.into_iter().map(start).collect();
    let ended: Vec<_> = started.into_iter().map(|process| process?.wait_with_output()).collect();
    ended.into_iter().map(|output| answer(&output.context("cannot run a worker")?)).collect()
}

fn answer<T: DeserializeOwned>(output: &std::process::Output) -> Result<T> {
    ensure!(output.status.success(), "a worker failed: {}", output.status);
    serde_json::from_slice(&output.stdout).context("a worker did not say what it found")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn answers_come_in_the_order_of_the_processes() {
        let answers: Vec<u32> = at_once([shell("sleep 0.05; echo 1"), shell("echo 2")]).unwrap();
        assert_eq!(answers, [1, 2]);
    }

    #[test]
    fn a_worker_that_fails_or_says_something_else_is_an_error() {
        for (script, said) in [("echo 1; exit 3", "failed"), ("echo no", "did not say"), ("kill -9 $$", "failed")] {
            let error = at_once::<u32>([shell("echo 2"), shell(script)]).unwrap_err();
            assert!(format!("{error:#}").contains(said), "{script}: {error:#}");
        }
        assert!(at_once::<u32>([Command::new("/nowhere/at/all")]).is_err());
    }
}
