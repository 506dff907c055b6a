//! Servers as processes, and in this one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use clap::Parser;
use nearpm_serve::Options;

/// A server in a process of its own, which dies with this value.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

impl Process {
    /// Starts a server for a protocol on a pool.
    pub fn start(protocol: &str, pool: &Path, arguments: &[&str]) -> Process {
        Process::start_with(protocol, pool, arguments, &[])
    }

    /// As [`Process::start`], with this in its environment.
    pub fn start_with(protocol: &str, pool: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm-serve"));
        command.args([protocol, "--listen", "127.0.0.1:0", "--pool"]).arg(pool).args(arguments);
        Process::of(command.envs(environment.iter().copied()))
    }

    /// The server that a command starts.
    pub fn of(command: &mut Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("the server says where it is");
        let address = line.trim().strip_prefix("ready at ").and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("{line:?}, and the server ended: {:?}", child.wait()));
        Process { child, address }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        let number = self.child.id() as i32;
        // SAFETY: the process is a child that was not waited for, so that the number is its own.
        assert_eq!(unsafe { libc::kill(number, signal) }, 0);
    }

    /// Kills it, if it has not ended.
    pub fn kill(&mut self) {
        if self.ended().is_none() {
            self.signal(libc::SIGKILL);
        }
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("a child can be waited for")
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Asks it to end, and checks that it does so in order.
    pub fn stop(mut self) {
        self.signal(libc::SIGTERM);
        let status = self.wait();
        assert!(status.success(), "the server ended with {status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with a path for a pool.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder for a pool"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

/// Options of a server in this process.
pub fn options(pool: &Path, more: &[&str]) -> Options {
    let pool = pool.to_str().expect("a path of this test");
    let line = ["test", "--pool", pool];
    let bytes: &[&str] = if more.contains(&"--bytes") { &[] } else { &["--bytes", "16M"] };
    let listen: &[&str] = if more.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
    Line::parse_from(line.iter().chain(bytes).chain(listen).chain(more)).options
}

pub use nearpm_tier::thorough;

/// A random number of a seed.
pub fn draw(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(6_364_136_223_846_793_005) >> 33
}
