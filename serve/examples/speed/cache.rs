//! memcached's protocol, by the YCSB client.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nearpm_ycsb::Options;

use crate::client::Client;
use crate::record::Cell;
use crate::servers::Running;

/// Bytes of a value.
pub const BYTES: u64 = 1024;
/// `load` sets new records, `a` reads and replaces, `c` reads.
pub const WORKLOADS: [&str; 3] = ["load", "a", "c"];

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

/// Flushes a server, whose clock for that may have seconds.
///
/// # Errors
/// The server refuses it.
pub fn empty(server: &Running) -> Result<()> {
    let mut client = Client::try_connect(server.address)?;
    client.send(b"flush_all\r\n")?;
    ensure!(client.line()? == "OK", "flush_all is refused");
    std::thread::sleep(Duration::from_millis(1100));
    Ok(())
}

/// Runs a workload of YCSB with some clients; its operations in a second, each of which was
/// answered with what was to be there.
///
/// # Errors
/// Those of the client: a value is wrong, something was refused.
pub fn run(server: &Running, clients: u64, workload: &str, length: &str) -> Result<f64> {
    let line = format!(
        "ycsb --server memcached --connect {} --threads {clients} --fields 1 --field-bytes {BYTES} --workload {workload} {length}",
        server.address
    );
    let report = nearpm_ycsb::run(&Line::try_parse_from(line.split(' '))?.options)?;
    report.verdict()?;
    report.phases.last().map(|phase| phase.throughput()).context("no workload was run")
}

/// Runs the workload of a cell; its operations in a second. New records are read back.
///
/// # Errors
/// Those of [`run`].
pub fn rate(server: &Running, cell: &Cell, requests: u64) -> Result<f64> {
    let length = match cell.work.as_str() {
        "load" => format!("--records {requests}"),
        _ => format!("--load --records 5000 --operations {requests}"),
    };
    let run = |workload: &str, length: &str| run(server, cell.clients, workload, length);
    if cell.work == "load" {
        empty(server)?;
    }
    let rate = run(&cell.work, &length)?;
    if cell.work == "load" {
        // What was set is there, byte by byte: each read that finds something else is an error.
        run("c", &format!("{length} --operations {}", requests.min(20_000)))?;
    }
    Ok(rate)
}
