//! Our servers beside the stock ones of Debian, on this machine: same clients, same folder, pairs in one run.
//!
//! `cargo run --release -p nearpm-serve --example compare -- --folder FOLDER` needs the packages redis-server, redis-tools,
//! memcached and libmemcached-tools. Figures are medians over the pairs; each ratio is the median of the pairs' own ratios.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use nearpm_serve::{Options, start_memcached, start_redis};

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
}

/// A server that was started; dropping it stops it.
struct Running {
    address: SocketAddr,
    _server: Box<dyn std::any::Any>,
}

struct Stock(Child);

impl Drop for Stock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a stock server at a free port.
fn stock(program: &str, arguments: &[&str]) -> Result<Running> {
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let mut command = Command::new(program);
    command.args(arguments).arg(address.port().to_string()).stdout(Stdio::null());
    let child = command.spawn().with_context(|| format!("{program} is not installed"))?;
    let server = Stock(child);
    for _ in 0..200 {
        if TcpStream::connect(address).is_ok() {
            return Ok(Running { address, _server: Box::new(server) });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("{program} does not listen");
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn options(folder: &Path, more: &[&str]) -> Result<Options> {
    let pool = folder.join("pool");
    let pool = pool.to_str().context("the folder's name is no text")?;
    let line = ["compare", "--listen", "127.0.0.1:0", "--bytes", "256M", "--pool", pool];
    Ok(Line::parse_from(line.iter().chain(more)).options)
}

/// What is compared: a name, and how a server is started in a folder.
type Contender<'a> = (&'a str, &'a dyn Fn(&Path) -> Result<Running>);

/// Requests in a second of each test, by redis-benchmark or memcaslap.
type Load = fn(SocketAddr, &Arguments) -> Result<Vec<(String, f64)>>;

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
    for (size, tests) in [(100, "set,get,incr,lpush,sadd,hset,zadd"), (1000, "set,get")] {
        let line = format!(
            "-p {} -n {} -c {} -r 10000 -d {size} --csv -t {tests}",
            address.port(),
            arguments.requests,
            arguments.clients
        );
        let text = output("redis-benchmark", &line.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
        for row in text.lines().filter(|row| row.starts_with('"')) {
            let mut cells = row.split(',').map(|cell| cell.trim_matches('"'));
            if let (Some(test), Some(Ok(rate))) = (cells.next(), cells.next().map(str::parse)) {
                rates.push((format!("{test}, {size} B"), rate));
            }
        }
    }
    Ok(rates)
}

fn memcaslap(address: SocketAddr, arguments: &Arguments) -> Result<Vec<(String, f64)>> {
    // Its own mix: one set to nine gets, after a set for each key.
    let line = format!("-s {address} -x {} -c {} -T 1 -X 1000 -w 1k", 4 * arguments.requests, arguments.clients);
    let text = output("memcaslap", &line.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
    let rate = text.split("TPS:").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    Ok(vec![("memcaslap's mix, 1000 B".to_owned(), rate.with_context(|| format!("no TPS in {text}"))?)])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs all contenders in turn, so many times, and prints a table; the first one is what the others are compared with.
fn table(title: &str, folder: &Path, arguments: &Arguments, contenders: &[Contender<'_>], load: Load) -> Result<()> {
    let mut rates: Vec<Vec<Vec<f64>>> = vec![Vec::new(); contenders.len()];
    let mut tests = Vec::new();
    for pair in 0..arguments.pairs {
        // Each goes first as often as the others.
        for turn in 0..contenders.len() {
            let at = (pair + turn) % contenders.len();
            let place = tempfile::tempdir_in(folder)?;
            let running = contenders[at].1(place.path())?;
            eprintln!("{title}: {}, run {} of {}", contenders[at].0, pair + 1, arguments.pairs);
            let found = load(running.address, arguments)?;
            tests = found.iter().map(|(test, _)| test.clone()).collect();
            rates[at].push(found.into_iter().map(|(_, rate)| rate).collect());
        }
    }
    println!("\n{title} (requests in a second; in brackets: times the first column)\n");
    println!("| test | {} |", contenders.iter().map(|c| c.0).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---:|".repeat(contenders.len()));
    for (test, name) in tests.iter().enumerate() {
        let cells = rates.iter().enumerate().map(|(at, runs)| {
            let rate = median(runs.iter().map(|run| run[test]).collect());
            let ratio = median(runs.iter().zip(&rates[0]).map(|(run, first)| run[test] / first[test]).collect());
            if at == 0 { format!("{rate:.0}") } else { format!("{rate:.0} ({ratio:.2}x)") }
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
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
    table("Redis on a file system, durable before the reply", &arguments.folder, &arguments, &redis, redis_benchmark)?;
    let memcached: [Contender<'_>; 3] = [
        ("stock memcached, volatile", &stock_memcached),
        ("ours, group", &|folder| memcached_contenders(folder, &["--durability", "group"])),
        ("ours, async", &|folder| memcached_contenders(folder, &["--durability", "async"])),
    ];
    table("memcached, ours on a file system", &arguments.folder, &arguments, &memcached, memcaslap)?;
    let as_memory = ["--survives", "as-persistent-memory"];
    let redis: [Contender<'_>; 2] = [
        ("stock Redis, appendfsync always", &stock_redis),
        ("ours, as persistent memory", &|folder| redis_contenders(folder, &as_memory)),
    ];
    table(
        "Redis on tmpfs, where a power cut takes everything",
        &arguments.memory,
        &arguments,
        &redis,
        redis_benchmark,
    )?;
    let memcached: [Contender<'_>; 2] = [
        ("stock memcached, volatile", &stock_memcached),
        ("ours, as persistent memory", &|folder| memcached_contenders(folder, &as_memory)),
    ];
    table("memcached, ours on tmpfs", &arguments.memory, &arguments, &memcached, memcaslap)?;
    println!("\nload at the end {}", load_average());
    Ok(())
}
