//! Servers, each a process of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// What a reply waits for, at both servers of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Redis: it is durable
    Always,
    /// Redis: nothing; the last second may be lost
    Everysec,
    /// memcached: nothing; what the system's page cache holds survives ours, and nothing the stock
    /// one
    Volatile,
}

impl Level {
    /// All of them.
    pub const ALL: [Level; 3] = [Level::Always, Level::Everysec, Level::Volatile];

    /// In records.
    pub fn key(self) -> &'static str {
        ["always", "everysec", "volatile"][self as usize]
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Level::Always => "Redis with appendfsync always, ours with --durability group",
            Level::Everysec => "Redis with appendfsync everysec, ours with --durability async",
            Level::Volatile => "memcached, ours with --durability async --survives process-crash",
        }
    }

    /// Whether it is memcached's protocol.
    pub fn is_cache(self) -> bool {
        self == Level::Volatile
    }

    fn stock(self, folder: &str) -> Vec<&str> {
        let redis = |fsync| {
            let log = ["--appendonly", "yes", "--appendfsync", fsync, "--save", "", "--dir", folder];
            [&["redis-server", "--bind", "127.0.0.1", "--loglevel", "warning"][..], &log, &["--port"]].concat()
        };
        match self {
            Level::Always => redis("always"),
            Level::Everysec => redis("everysec"),
            Level::Volatile => {
                vec!["memcached", "-u", "root", "-U", "0", "-m", "1024", "-l", "127.0.0.1", "-p"]
            }
        }
    }

    fn ours(self) -> &'static [&'static str] {
        match self {
            Level::Always => &["redis", "--durability", "group"],
            Level::Everysec => &["redis", "--durability", "async", "--sync-ms", "1000"],
            Level::Volatile => &["memcached", "--durability", "async", "--survives", "process-crash"],
        }
    }
}

/// A server that was started; dropping it stops it.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
}

impl Running {
    /// The process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(program: &Path, arguments: &[&str], address: SocketAddr) -> Result<Running> {
    let mut command = Command::new(program);
    let child = command.args(arguments).stdout(Stdio::null()).spawn();
    let child = child.with_context(|| format!("{} cannot be started", program.display()))?;
    let mut running = Running { address, child };
    for _ in 0..500 {
        if TcpStream::connect(address).is_ok() {
            return Ok(running);
        }
        if let Some(status) = running.child.try_wait()? {
            bail!("{} ended with {status}", program.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("{} does not listen", program.display());
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// The stock server of a level, with its files in a folder.
///
/// # Errors
/// It is not installed, or does not start.
pub fn stock(level: Level, folder: &Path) -> Result<Running> {
    let (address, folder) = (free_address()?, folder.to_str().context("the folder's name is no text")?);
    let port = address.port().to_string();
    let line = level.stock(folder);
    start(Path::new(line[0]), &[&line[1..], &[port.as_str()]].concat(), address)
}

/// Ours: `nearpm-serve` beside this program's folder, or another one.
///
/// # Errors
/// It was not built, or does not start.
pub fn ours(level: Level, folder: &Path, program: Option<&Path>) -> Result<Running> {
    let this = std::env::current_exe()?;
    let beside = this.parent().and_then(Path::parent).context("this program lies in no folder")?.join("nearpm-serve");
    let program = program.unwrap_or(&beside);
    let (address, pool) = (free_address()?, folder.join("pool"));
    let (listen, pool) = (address.to_string(), pool.to_str().context("the folder's name is no text")?);
    start(program, &[level.ours(), &["--listen", &listen, "--pool", pool, "--bytes", "1G"]].concat(), address)
}
