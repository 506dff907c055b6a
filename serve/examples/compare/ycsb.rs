//! The workloads of the Yahoo! Cloud Serving Benchmark, by `nearpm ycsb`.

use std::net::SocketAddr;

use anyhow::Result;
use clap::Parser;
use nearpm_statistics::median;
use nearpm_ycsb::{Kind, Options, phase::Phase};

use crate::{Arguments, Contender, Load, head, print_rates, rounds};

/// Core workloads in the order that the benchmark asks for: D changes which records there are. Then
/// the paper's, whose records are one value also in Redis.
const RUNS: [&str; 10] = ["load", "a", "b", "c", "f", "d", "w3 --load", "w4", "wtail", "w1"];

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn run(server: &str, address: SocketAddr, arguments: &Arguments) -> Result<Vec<(String, Phase)>> {
    let mut found = Vec::new();
    for workload in RUNS {
        let operations =
            if workload == "load" { String::new() } else { format!(" --operations {}", arguments.requests) };
        let line = format!(
            "ycsb --server {server} --connect {address} --threads {} --workload {workload}{operations}",
            arguments.clients
        );
        let report = nearpm_ycsb::run(&Line::parse_from(line.split(' ')).options)?;
        report.verdict()?;
        for phase in report.phases {
            let name = phase.workload.name();
            let name = if workload == "w3 --load" && name == "load" { "load for w1 to wtail" } else { name };
            found.push((name.to_owned(), phase));
        }
    }
    Ok(found)
}

/// By Redis's protocol.
pub fn redis(address: SocketAddr, arguments: &Arguments) -> Result<Vec<(String, Phase)>> {
    run("redis", address, arguments)
}

/// By memcached's.
pub fn memcached(address: SocketAddr, arguments: &Arguments) -> Result<Vec<(String, Phase)>> {
    run("memcached", address, arguments)
}

/// Microseconds that so many of a hundred operations of a kind do not exceed.
fn percentile(phase: &Phase, kind: Kind, percent: f64) -> f64 {
    phase.tally.kinds[&kind].latencies.value_at_percentile(percent) as f64 / 1000.0
}

/// Runs all contenders, and prints rates and latencies.
pub fn tables(title: &str, arguments: &Arguments, contenders: &[Contender<'_>], load: Load<Phase>) -> Result<()> {
    let title = format!("YCSB, {title}");
    let runs = rounds(&title, &arguments.folder, arguments, contenders, load)?;
    print_rates(&title, contenders, &runs, Phase::throughput);
    head(&format!("{title}: latencies in microseconds, p50 / p99"), contenders);
    for (test, name) in runs.tests.iter().enumerate() {
        for &kind in runs.found[0][0][test].tally.kinds.keys() {
            let cells = runs.found.iter().map(|found| {
                let of = |percent| median(found.iter().map(|run| percentile(&run[test], kind, percent)));
                format!("{:.0} / {:.0}", of(50.0), of(99.0))
            });
            println!("| {name}, {} | {} |", kind.name(), cells.collect::<Vec<_>>().join(" | "));
        }
    }
    Ok(())
}
