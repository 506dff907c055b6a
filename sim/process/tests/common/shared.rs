//! A broker in a process of its own on a simulated card, and clients in processes of their own.
//! Each is this test program, started again for one role.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use nearpm::Mechanism;
use nearpm_cli::card::{CardArgument, CardCommand, Transport, report};
use nearpm_driver::vfio_user;

use super::workload::{Known, create_named, options, work};
use super::{Registered, Simulator, TIMEOUT};

/// Says which role a process has, and its arguments.
const ROLE: &str = "NEARPM_TEST_ROLE";
const SOCKET: &str = "NEARPM_TEST_SOCKET";
const ARGUMENT: &str = "NEARPM_TEST_ARGUMENT";

/// Plays the role of this process, if it has one. The test that calls this is named `role`.
pub fn play() {
    let of = |name| std::env::var(name).ok();
    let (Some(role), Some(socket), Some(argument)) = (of(ROLE), of(SOCKET), of(ARGUMENT)) else { return };
    match role.as_str() {
        "broker" => broker(Path::new(&argument), socket.into()),
        "client" => client(Path::new(&socket), &argument),
        other => panic!("no role {other:?}"),
    }
}

fn broker(card: &Path, socket: PathBuf) {
    let card = CardArgument { card: Transport::vfio_user(card.into()) };
    let error = report(&CardCommand::Share { card, socket }).unwrap_err();
    eprintln!("{error:#}");
}

/// Works in a pool of its own for ever; says after each transaction what was acknowledged.
fn client(socket: &Path, pool: &str) {
    let registered = connect(socket);
    let pool = create_named(&registered, Mechanism::Undo, pool);
    let mut known = Known::default();
    loop {
        let until = known.transactions + 1;
        if let Err(error) = work(&pool, &mut known, until) {
            println!("failed {error}");
            return;
        }
        println!("acknowledged {}", known.acknowledged);
        std::io::stdout().flush().unwrap();
    }
}

fn start(role: &str, socket: &Path, argument: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "role", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(SOCKET, socket).env(ARGUMENT, argument);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Opens the card behind a broker.
pub fn connect(socket: &Path) -> Registered {
    Registered::open(Arc::new(vfio_user::open(socket, TIMEOUT).unwrap()), TIMEOUT).unwrap()
}

/// A client in a process of its own.
pub struct Client {
    process: Child,
    output: BufReader<ChildStdout>,
    /// What it has said so far.
    known: Known,
}

impl Client {
    /// The next thing that it says about its work; `None` when it has ended.
    fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if line.starts_with("acknowledged") || line.starts_with("failed") {
                return Some(line);
            }
        }
    }

    /// Takes note of what it says; gives how it failed, if it says that.
    fn note(&mut self, line: &str) -> Option<String> {
        match line.trim_end().split_once(' ').unwrap() {
            ("acknowledged", number) => {
                // What a process that is killed was saying may end early.
                let number = number.parse().unwrap_or(0);
                self.known.acknowledged = self.known.acknowledged.max(number);
                None
            }
            (_, why) => Some(why.to_owned()),
        }
    }

    /// Waits until it has done so many transactions.
    pub fn wait_for(&mut self, transactions: u64) {
        for _ in 0..transactions {
            let line = self.line().expect("it works");
            assert_eq!(self.note(&line), None);
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    /// Waits for its end; gives what it knew, and how it failed.
    pub fn end(mut self) -> (Known, Option<String>) {
        let mut failure = None;
        while let Some(line) = self.line() {
            failure = self.note(&line).or(failure);
        }
        self.process.wait().unwrap();
        (self.known, failure)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The simulated card and its broker.
pub struct Shared {
    pub simulator: Simulator,
    broker: Option<Child>,
}

impl Shared {
    pub fn new(window: &'static str) -> Shared {
        let mut shared = Shared { simulator: Simulator::new(window), broker: None };
        shared.start_broker();
        shared
    }

    pub fn socket(&self) -> PathBuf {
        self.simulator.socket().with_extension("shared")
    }

    pub fn start_broker(&mut self) {
        let card = self.simulator.socket();
        // So that the start is not taken for done by what another one has left.
        let _ = std::fs::remove_file(self.socket());
        let mut broker = start("broker", &self.socket(), card.to_str().unwrap());
        let end = Instant::now() + TIMEOUT;
        while !self.socket().exists() {
            if let Some(status) = broker.try_wait().unwrap() {
                panic!("the broker ended: {status}");
            }
            assert!(Instant::now() < end, "the broker does not start");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self.broker = Some(broker);
    }

    /// SIGKILL.
    pub fn kill_broker(&mut self) {
        if let Some(mut broker) = self.broker.take() {
            broker.kill().unwrap();
            broker.wait().unwrap();
        }
    }

    /// Waits for the end of a broker whose card has gone.
    pub fn await_broker(&mut self) {
        self.broker.take().unwrap().wait().unwrap();
    }

    /// Another user in this process.
    pub fn connect(&self) -> Registered {
        connect(&self.socket())
    }

    /// A user in a process of its own, with a new pool.
    pub fn client(&self, pool: &str) -> Client {
        let mut process = start("client", &self.socket(), pool);
        let output = BufReader::new(process.stdout.take().unwrap());
        Client { process, output, known: Known::default() }
    }

    /// What a pool holds is what its user knows.
    pub fn verify(&self, pool: &str, known: &mut Known) {
        let registered = self.connect();
        let pool = options(Mechanism::Undo).open(&registered.location(pool)).unwrap();
        super::workload::verify(&pool, known);
        pool.close().unwrap();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.kill_broker();
    }
}
