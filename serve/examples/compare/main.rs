//! Our servers beside the stock ones of Debian, on this machine: same clients, same folder, pairs
//! in one run.
//!
//! `cargo run --release -p nearpm-serve --example compare -- --folder
//! FOLDER` needs the packages redis-server, redis-tools, memcached and libmemcached-tools. Figures
//! are medians over the pairs; each ratio is the median of the pairs' own ratios. Each rate stands
//! for work that was looked for in the server afterwards (`proof.rs`); a run without it is an
//! error. With `--ycsb` the client is `nearpm ycsb`, in this process.

#[path = "../../tests/servers/client.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod client;
mod proof;
mod servers;
mod ycsb;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use nearpm_serve::{start_memcached, start_redis};
use nearpm_statistics::median;
use proof::{KEYS, Test};
use servers::{Running, options, stock};

/// Measure our servers beside the stock ones.
#[derive(Parser)]
struct Arguments {
    /// Where pools and append-only files lie: a folder of the file system that is to be measured
    #[arg(long)]
    folder: PathBuf,
    /// A folder in memory for a second table; there, nothing survives a power cut
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    /// Requests of each test
    #[arg(long, default_value_t = 5000)]
    requests: u64,
    /// Clients at a time
    #[arg(long, default_value_t = 32)]
    clients: u64,
    /// Pairs of runs
    #[arg(long, default_value_t = 3)]
    pairs: usize,
    /// One protocol alone
    #[arg(long, value_parser = ["redis", "memcached"])]
    only: Option<String>,
    /// The workloads of the Yahoo! Cloud Serving Benchmark on the file system, in place of the
    /// tests of redis-benchmark and memcaslap
    #[arg(long)]
    ycsb: bool,
}

impl Arguments {
    /// Whether a server of this protocol is to be measured.
    fn wants(&self, protocol: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == protocol)
    }
}

/// What is compared: a name, and how a server is started in a folder.
type Contender<'a> = (&'a str, &'a dyn Fn(&Path) -> Result<Running>);

/// What one run measures by a client: a name and what was found for each test.
type Load<T> = fn(SocketAddr, &Arguments) -> Result<Vec<(String, T)>>;

fn output(program: &str, arguments: &[String]) -> Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("{program} is not installed"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("{program} ended with {}: {text}", output.status);
    }
    Ok(text)
}

fn redis_benchmark(address: SocketAddr, arguments: &Arguments) -> Result<Vec<(String, f64)>> {
    let mut rates = Vec::new();
    for (bytes, tests) in [(100, &["set", "get", "incr", "lpush", "sadd", "hset", "zadd"][..]), (1000, &["set", "get"])]
    {
        for name in tests {
            let test = Test { name, requests: arguments.requests, bytes };
            let before = proof::prepare(address, test)?;
            let line = format!(
                "-p {} -n {} -c {} -r {KEYS} -d {bytes} --csv -t {name}",
                address.port(),
                arguments.requests,
                arguments.clients
            );
            let text = output("redis-benchmark", &line.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
            proof::redis(address, test, before)?;
            let row = text.lines().filter(|row| row.starts_with('"')).nth(1);
            let rate = row.and_then(|row| row.split(',').nth(1)?.trim_matches('"').parse().ok());
            let rate = rate.with_context(|| format!("no rate in {text}"))?;
            rates.push((format!("{}, {bytes} B", name.to_uppercase()), rate));
        }
    }
    Ok(rates)
}

/// Bytes of memcaslap's values.
const VALUE: u64 = 1000;

fn memcaslap(address: SocketAddr, arguments: &Arguments) -> Result<Vec<(String, f64)>> {
    // Its own mix: one set to nine gets, after a set for each key.
    let requests = 4 * arguments.requests;
    let line = format!("-s {address} -x {requests} -c {} -T 1 -X {VALUE} -w 1k -v 1", arguments.clients);
    let text = output("memcaslap", &line.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
    proof::memcached(address, &text, VALUE)?;
    let rate = text.split("TPS:").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    Ok(vec![(format!("memcaslap's mix, {VALUE} B"), rate.with_context(|| format!("no TPS in {text}"))?)])
}

/// What all contenders came to.
struct Runs<T> {
    /// Names of the tests.
    tests: Vec<String>,
    /// By contender, run and test.
    found: Vec<Vec<Vec<T>>>,
}

/// Runs all contenders in turn, so many times.
fn rounds<T>(
    title: &str,
    folder: &Path,
    arguments: &Arguments,
    contenders: &[Contender<'_>],
    load: Load<T>,
) -> Result<Runs<T>> {
    let mut runs = Runs { tests: Vec::new(), found: contenders.iter().map(|_| Vec::new()).collect() };
    for pair in 0..arguments.pairs {
        // Each goes first as often as the others.
        for turn in 0..contenders.len() {
            let at = (pair + turn) % contenders.len();
            let place = tempfile::tempdir_in(folder)?;
            let running = contenders[at].1(place.path())?;
            eprintln!("{title}: {}, run {} of {}", contenders[at].0, pair + 1, arguments.pairs);
            let found = load(running.address, arguments)?;
            runs.tests = found.iter().map(|(test, _)| test.clone()).collect();
            runs.found[at].push(found.into_iter().map(|(_, found)| found).collect());
        }
    }
    Ok(runs)
}

/// Prints the head of a table with a column for each contender.
fn head(title: &str, contenders: &[Contender<'_>]) {
    println!("\n{title}\n");
    println!("| test | {} |", contenders.iter().map(|c| c.0).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---:|".repeat(contenders.len()));
}

/// Prints rates; the first contender is what the others are compared with.
fn print_rates<T>(title: &str, contenders: &[Contender<'_>], runs: &Runs<T>, rate: impl Fn(&T) -> f64) {
    head(&format!("{title} (requests in a second; in brackets: times the first column)"), contenders);
    for (test, name) in runs.tests.iter().enumerate() {
        let cells = runs.found.iter().enumerate().map(|(at, found)| {
            let ratio = |(run, first): (&Vec<T>, &Vec<T>)| rate(&run[test]) / rate(&first[test]);
            let middle = median(found.iter().map(|run| rate(&run[test])));
            let ratio = median(found.iter().zip(&runs.found[0]).map(ratio));
            if at == 0 { format!("{middle:.0}") } else { format!("{middle:.0} ({ratio:.2}x)") }
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

/// Runs all contenders and prints their rates.
fn table(
    title: &str,
    folder: &Path,
    arguments: &Arguments,
    contenders: &[Contender<'_>],
    load: Load<f64>,
) -> Result<()> {
    let runs = rounds(title, folder, arguments, contenders, load)?;
    print_rates(title, contenders, &runs, |rate| *rate);
    Ok(())
}

fn redis_contenders(folder: &Path, more: &[&str]) -> Result<Running> {
    let server = start_redis(options(folder, more)?)?;
    Ok(Running { address: server.address(), _server: Box::new(server) })
}

fn memcached_contenders(folder: &Path, more: &[&str]) -> Result<Running> {
    let server = start_memcached(options(folder, more)?)?;
    Ok(Running { address: server.address(), _server: Box::new(server) })
}

fn stock_redis(folder: &Path) -> Result<Running> {
    let folder = folder.to_str().context("the folder's name is no text")?;
    let line = ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--bind", "127.0.0.1", "--dir", folder];
    stock("redis-server", &[&line[..], &["--port"]].concat())
}

fn stock_memcached(_: &Path) -> Result<Running> {
    stock("memcached", &["-u", "root", "-U", "0", "-m", "256", "-l", "127.0.0.1", "-p"])
}

fn load_average() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let cores = std::thread::available_parallelism()?;
    println!(
        "{cores} processors, load {}, {} requests, {} clients, {} pairs",
        load_average(),
        arguments.requests,
        arguments.clients,
        arguments.pairs
    );
    let redis: [Contender<'_>; 3] = [
        ("stock Redis, appendfsync always", &stock_redis),
        ("ours, group", &|folder| redis_contenders(folder, &["--durability", "group"])),
        ("ours, durable", &|folder| redis_contenders(folder, &["--durability", "durable"])),
    ];
    let memcached: [Contender<'_>; 3] = [
        ("stock memcached, volatile", &stock_memcached),
        ("ours, group", &|folder| memcached_contenders(folder, &["--durability", "group"])),
        ("ours, async", &|folder| memcached_contenders(folder, &["--durability", "async"])),
    ];
    let of_redis = "Redis on a file system, durable before the reply";
    let of_memcached = "memcached, ours on a file system";
    if arguments.ycsb {
        ycsb::tables(of_redis, &arguments, &redis, ycsb::redis)?;
        ycsb::tables(of_memcached, &arguments, &memcached, ycsb::memcached)?;
    } else {
        if arguments.wants("redis") {
            table(of_redis, &arguments.folder, &arguments, &redis, redis_benchmark)?;
        }
        if arguments.wants("memcached") {
            table(of_memcached, &arguments.folder, &arguments, &memcached, memcaslap)?;
        }
        in_memory(&arguments)?;
    }
    println!("\nload at the end {}", load_average());
    Ok(())
}

/// The same on tmpfs, taken for persistent memory.
fn in_memory(arguments: &Arguments) -> Result<()> {
    let as_memory = ["--survives", "as-persistent-memory"];
    let redis: [Contender<'_>; 2] = [
        ("stock Redis, appendfsync always", &stock_redis),
        ("ours, as persistent memory", &|folder| redis_contenders(folder, &as_memory)),
    ];
    let title = "Redis on tmpfs, where a power cut takes everything";
    if arguments.wants("redis") {
        table(title, &arguments.memory, arguments, &redis, redis_benchmark)?;
    }
    let ours = |folder: &Path| memcached_contenders(folder, &as_memory);
    let memcached: [Contender<'_>; 2] =
        [("stock memcached, volatile", &stock_memcached), ("ours, as persistent memory", &ours)];
    match arguments.wants("memcached") {
        true => table("memcached, ours on tmpfs", &arguments.memory, arguments, &memcached, memcaslap),
        false => Ok(()),
    }
}
