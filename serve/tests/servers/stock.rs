//! The servers that everybody knows, from Debian's packages.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::client::Client;

/// Says that a test is not tried because something is not installed.
///
/// # Panics
/// Where everything is, by the word of whoever runs the tests (`NEARPM_TOOLS_INSTALLED`, set by
/// `./x test`).
pub fn skip(what: &str) {
    assert!(std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "{what}, and was to be installed");
    eprintln!("SKIPPED: {what}");
}

/// Whether a program of a package is there; says so if not.
pub fn present(program: &str, package: &str) -> bool {
    let ran = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if ran.is_err() {
        skip(&format!("{program} is not installed (Debian: {package})"));
    }
    ran.is_ok()
}

/// A stock server, which dies with this value.
pub struct Stock {
    child: Child,
    pub address: SocketAddr,
}

impl Stock {
    /// redis-server without persistence; `None`, and says so, where it is not installed.
    pub fn redis() -> Option<Stock> {
        let arguments = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1", "--port"];
        present("redis-server", "redis-server").then(|| Stock::start("redis-server", &arguments))
    }

    /// memcached; `None`, and says so, where it is not installed.
    pub fn memcached() -> Option<Stock> {
        // Its threads that walk the items hold one now and then, and a number is then not stored in
        // its place.
        let quiet = "no_lru_maintainer,no_lru_crawler";
        let arguments = ["-u", "root", "-U", "0", "-o", quiet, "-l", "127.0.0.1", "-p"];
        present("memcached", "memcached").then(|| Stock::start("memcached", &arguments))
    }

    fn start(program: &str, arguments: &[&str]) -> Stock {
        // A port that was free a moment ago.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it has one");
        drop(listener);
        let mut command = Command::new(program);
        command.args(arguments).arg(address.port().to_string()).stdout(Stdio::null());
        let child = command.spawn().expect("the server starts");
        let stock = Stock { child, address };
        for _ in 0..200 {
            if Client::try_connect(address).is_ok() {
                return stock;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{program} does not listen");
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
