//! What a SET costs a server, by counts of the system: they depend little on what else the machine
//! does.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cache;
use crate::record::Cell;
use crate::servers::Running;
use crate::sets;

/// Time after which what was put off has been done: both servers look every second.
const PUT_OFF: Duration = Duration::from_millis(2500);
/// Calls that synchronise.
const SYNCHRONISING: &str = "fsync,fdatasync,msync,sync_file_range";

/// What a process has spent: bytes written by calls, replies included, and microseconds of
/// processor time.
fn spent(process: u32) -> Result<[u64; 2]> {
    let io = fs::read_to_string(format!("/proc/{process}/io"))?;
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok());
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // Behind the name, which may have spaces, two of the words are ticks of 10 ms.
    let words: Vec<&str> = stat.rsplit_once(") ").context("the process has no name")?.1.split(' ').collect();
    let ticks: u64 = words[11].parse::<u64>()? + words[12].parse::<u64>()?;
    Ok([written.context("the system counts no bytes")?, ticks * 10_000])
}

/// Runs SETs while a process is looked at; how often it synchronises.
fn synchronisations(server: &Running, cell: &Cell, requests: u64) -> Result<u64> {
    let file = tempfile::NamedTempFile::new()?;
    let process = server.process().to_string();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-qq", "-e", &format!("trace={SYNCHRONISING}"), "-p", &process, "-o"]);
    let mut strace = strace.arg(file.path()).stderr(Stdio::null()).spawn().context("strace is not installed")?;
    std::thread::sleep(Duration::from_millis(500));
    ensure!(strace.try_wait()?.is_none(), "strace cannot look at the server: may it ptrace?");
    let done = sets::run(server, cell, requests);
    std::thread::sleep(PUT_OFF);
    // It tells what it has seen when it is interrupted.
    Command::new("kill").args(["-INT", &strace.id().to_string()]).status()?;
    strace.wait()?;
    done?;
    let calls = |row: &str| {
        let words: Vec<&str> = row.split_whitespace().collect();
        let known = SYNCHRONISING.split(',').any(|name| words.last() == Some(&name));
        if known { words.get(3)?.parse::<u64>().ok() } else { None }
    };
    Ok(fs::read_to_string(file.path())?.lines().filter_map(calls).sum())
}

/// Prints a row: what one of so many operations of memcached's protocol costs, the first time and
/// the second. The records of a `load` are flushed before; the first time their places are new as
/// well.
///
/// # Errors
/// What was to be done is not.
pub fn print_cache(name: &str, server: &Running, cell: &Cell, requests: u64) -> Result<()> {
    let length = match cell.work.as_str() {
        "load" => format!("--records {requests}"),
        _ => {
            cache::run(server, cell.clients, "load", "--records 5000")?;
            format!("--records 5000 --operations {requests}")
        }
    };
    let mut spent_by = [[0; 2]; 2];
    for run in &mut spent_by {
        if cell.work == "load" {
            cache::empty(server)?;
        }
        std::thread::sleep(PUT_OFF);
        let before = spent(server.process())?;
        cache::run(server, cell.clients, &cell.work, &length)?;
        let after = spent(server.process())?;
        *run = [after[0] - before[0], after[1] - before[1]];
    }
    let [first, second] = spent_by.map(|[_, micros]| micros as f64 / requests as f64);
    println!("| {name} | {} | {} | {} | {first:.1} | {second:.1} |", cell.work, cell.bytes, cell.clients);
    Ok(())
}

/// Prints a row: what one of so many SETs costs, of keys that are there already.
///
/// # Errors
/// What was to be done is not; strace is not installed.
pub fn print(name: &str, server: &Running, cell: &Cell, requests: u64) -> Result<()> {
    sets::empty(server)?;
    sets::run(server, cell, requests)?;
    std::thread::sleep(PUT_OFF);
    let before = spent(server.process())?;
    sets::run(server, cell, requests)?;
    std::thread::sleep(PUT_OFF);
    let after = spent(server.process())?;
    let each = |at: usize| (after[at] - before[at]) as f64 / requests as f64;
    let synchronisations = synchronisations(server, cell, requests)? as f64 / requests as f64;
    sets::check(server, cell, requests)?;
    println!(
        "| {name} | {} | {} | {} | {:.0} | {:.1} | {synchronisations:.4} |",
        cell.bytes,
        cell.clients,
        cell.pipeline,
        each(0),
        each(1)
    );
    Ok(())
}
