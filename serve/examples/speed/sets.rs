//! SETs by redis-benchmark, and whether they were done.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::client::{Client, Value};
use crate::record::Cell;
use crate::servers::Running;

/// Keys that are read back at once.
const AT_ONCE: u64 = 50;

/// Keys that redis-benchmark draws from, so that all values fit into a pool of 1 GiB.
fn keys(cell: &Cell) -> u64 {
    if cell.bytes > 16 << 10 { 1000 } else { 10_000 }
}

/// What redis-benchmark stores: bytes of a generator of its own, the same in each run.
fn value(bytes: u64) -> Vec<u8> {
    let mut state = 1234u32;
    let draw = |_| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
        b'0' + (state >> 16 & 63) as u8
    };
    (0..bytes).map(draw).collect()
}

fn ask(client: &mut Client, words: &[impl AsRef<[u8]>]) -> Result<Value> {
    let reply = client.ask(words)?;
    ensure!(!matches!(reply, Value::Error(_)), "refused: {reply:?}");
    Ok(reply)
}

/// Takes all keys away.
///
/// # Errors
/// The server refuses it.
pub fn empty(server: &Running) -> Result<()> {
    ask(&mut Client::try_connect(server.address)?, &["flushall"]).map(drop)
}

/// Runs it on an empty server; SETs in a second, which were done.
///
/// # Errors
/// redis-benchmark fails, or has counted what was not done.
pub fn rate(server: &Running, cell: &Cell, requests: u64) -> Result<f64> {
    empty(server)?;
    let rate = run(server, cell, requests)?;
    check(server, cell, requests)?;
    Ok(rate)
}

/// Runs it; SETs in a second, as it says.
///
/// # Errors
/// It fails.
pub fn run(server: &Running, cell: &Cell, requests: u64) -> Result<f64> {
    let line = format!(
        "-p {} -t set -n {requests} -c {} -P {} -d {} -r {} --csv",
        server.address.port(),
        cell.clients,
        cell.pipeline,
        cell.bytes,
        keys(cell)
    );
    let output = Command::new("redis-benchmark").args(line.split(' ')).output();
    let output = output.context("redis-benchmark is not installed")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("redis-benchmark ended with {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let row = text.lines().find(|row| row.starts_with("\"SET\""));
    let rate = row.and_then(|row| row.split(',').nth(1)?.trim_matches('"').parse().ok());
    rate.with_context(|| format!("no rate in {text}"))
}

/// Reads back what so many SETs must have left.
///
/// # Errors
/// Something else is there.
pub fn check(server: &Running, cell: &Cell, requests: u64) -> Result<()> {
    let (all, expected) = (keys(cell), value(cell.bytes));
    let (mut client, mut found) = (Client::try_connect(server.address)?, 0);
    for first in (0..all).step_by(AT_ONCE as usize) {
        let names = (first..all.min(first + AT_ONCE)).map(|at| format!("key:{at:012}"));
        let words: Vec<_> = std::iter::once("mget".to_owned()).chain(names).collect();
        let Value::Array(values) = ask(&mut client, &words)? else { bail!("MGET gives no row") };
        for value in values {
            match value {
                Value::Null => {}
                Value::Bulk(bytes) if bytes == expected => found += 1,
                other => bail!("a value is not what was stored: {other:?}"),
            }
        }
    }
    ensure!(ask(&mut client, &["dbsize"])? == Value::Integer(found), "there are other keys than those that were set");
    // Of so many draws from the keys at least half as many differ as on average.
    let distinct = all as f64 * (1.0 - (1.0 - 1.0 / all as f64).powf(requests as f64));
    ensure!(found as f64 >= distinct / 2.0, "{requests} SETs left {found} keys, where {distinct:.0} are expected");
    Ok(())
}
