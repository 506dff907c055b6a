//! A simulator that runs, and cards that are opened on it.

#![allow(dead_code, reason = "each test uses a part")]

pub mod proxy;
pub mod shared;
pub mod workload;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearpm::cards;
use nearpm_driver::vfio_user::{self, VfioUserFunction};
use nearpm_driver::{Card, CardError, CardOptions, Waiting};
use nearpm_simcard::control;

/// Persistent memory of the cards.
pub const BYTES: u64 = 4 << 20;
/// How long an answer of the simulator may take on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// How long the RTL may take to be generated and built.
const RTL_BUILD: Duration = Duration::from_secs(600);

/// The process, its file and its sockets.
pub struct Simulator {
    folder: tempfile::TempDir,
    window: &'static str,
    card: &'static str,
    process: Option<Child>,
}

impl Simulator {
    /// Starts one on a blank card.
    pub fn new(window: &'static str) -> Simulator {
        let mut simulator = Simulator::prepared(window);
        simulator.start();
        simulator
    }

    /// Starts one of the Verilated RTL on a blank card.
    pub fn of_rtl(window: &'static str) -> Simulator {
        let mut simulator = Simulator::prepared(window);
        simulator.card = "rtl";
        simulator.start();
        simulator
    }

    /// One that was not started.
    pub fn prepared(window: &'static str) -> Simulator {
        Simulator { folder: tempfile::tempdir().unwrap(), window, card: "model", process: None }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("card.socket")
    }

    pub fn control(&self) -> PathBuf {
        self.folder.path().join("control.socket")
    }

    pub fn pm(&self) -> PathBuf {
        self.folder.path().join("card.pm")
    }

    /// What starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm-sim"));
        command.arg("--socket").arg(self.socket()).arg("--pm").arg(self.pm()).arg("--control").arg(self.control());
        command.args(["--bytes", &BYTES.to_string(), "--window", self.window, "--card", self.card]);
        command.stdin(Stdio::null());
        command
    }

    /// Starts it on the file that is there, and waits until it answers.
    pub fn start(&mut self) {
        self.start_as(self.command());
    }

    pub fn start_as(&mut self, mut command: Command) {
        let mut process = command.spawn().unwrap();
        let end = Instant::now() + if self.card == "rtl" { RTL_BUILD } else { TIMEOUT };
        while !(self.socket().exists() && control::request(&self.control(), "statistics").is_ok()) {
            if let Some(status) = process.try_wait().unwrap() {
                panic!("the simulator ended: {status}");
            }
            assert!(Instant::now() < end, "the simulator does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.process = Some(process);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
            // So that the next start is not taken for done by what this one has left.
            let _ = std::fs::remove_file(self.socket());
        }
    }

    /// What a thread needs that kills it.
    pub fn id(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// A command on the control socket.
    pub fn tell(&self, command: &str) -> String {
        control::request(&self.control(), command).unwrap()
    }

    /// A value of its statistics.
    pub fn statistic(&self, name: &str) -> u64 {
        let text = self.tell("statistics");
        let value = text.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap();
        value.parse().unwrap()
    }

    pub fn connect(&self) -> Arc<VfioUserFunction> {
        Arc::new(vfio_user::open(&self.socket(), TIMEOUT).unwrap())
    }

    /// Opens the card and makes it known.
    pub fn open(&self) -> Registered {
        Registered::open(self.connect(), TIMEOUT).unwrap()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A card of a simulator, with the name that the library knows it by.
pub struct Registered {
    name: cards::Registered,
    pub card: Arc<Card>,
    pub function: Arc<VfioUserFunction>,
}

impl Registered {
    pub fn open(function: Arc<VfioUserFunction>, timeout: Duration) -> Result<Registered, CardError> {
        Registered::waiting(function, timeout, Waiting::Polling)
    }

    /// A card whose completions are waited for in a certain way.
    pub fn waiting(
        function: Arc<VfioUserFunction>,
        timeout: Duration,
        waiting: Waiting,
    ) -> Result<Registered, CardError> {
        let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
        let timeout_ns = timeout.as_nanos() as u64;
        let options = CardOptions { firmware, waiting, timeout_ns, ..CardOptions::default() };
        let card = Arc::new(Card::open(function.clone(), options)?);
        Ok(Registered { name: cards::Registered::new(card.clone()), card, function })
    }

    pub fn location(&self, pool: &str) -> String {
        self.name.pool(pool)
    }

    pub fn name(&self) -> &str {
        self.name.name()
    }
}
