//! Servers: the stock ones as processes of their own, ours in this process.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use nearpm_serve::Options;

/// A server that was started; dropping it stops it.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// The process, or the server itself.
    pub _server: Box<dyn std::any::Any>,
}

struct Stock(Child);

impl Drop for Stock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a stock server at a free port.
pub fn stock(program: &str, arguments: &[&str]) -> Result<Running> {
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

/// Options of ours, with its pool in a folder.
pub fn options(folder: &Path, more: &[&str]) -> Result<Options> {
    let pool = folder.join("pool");
    let pool = pool.to_str().context("the folder's name is no text")?;
    let line = ["compare", "--listen", "127.0.0.1:0", "--bytes", "256M", "--pool", pool];
    Ok(Line::parse_from(line.iter().chain(more)).options)
}
