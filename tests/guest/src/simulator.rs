//! `nearpm-sim`, the process that is the card.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Bytes of persistent memory.
const BYTES: u64 = 16 << 20;
/// How long it may take to start; the RTL may have to be built first.
const START: Duration = Duration::from_secs(600);
/// How often it is looked whether it has started.
const LOOK: Duration = Duration::from_millis(20);

/// A simulator that runs. It ends when this is dropped, or when this process ends.
pub struct Simulator {
    program: PathBuf,
    folder: PathBuf,
    process: Child,
}

impl Simulator {
    /// Starts one on a blank card, with its file and its sockets in a folder.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(program: &Path, folder: &Path, window: &str, card: &str) -> Result<Simulator> {
        let at = |name: &str| folder.join(name);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command.arg("--socket").arg(at("card.socket")).arg("--pm").arg(at("card.pm"));
        command.arg("--control").arg(at("control.socket"));
        command.args(["--bytes", &BYTES.to_string(), "--window", window, "--card", card]);
        let process = command.stdin(Stdio::null()).spawn().context("cannot start the simulated card")?;
        let mut simulator = Simulator { program: program.to_owned(), folder: folder.to_owned(), process };
        let end = Instant::now() + START;
        while !(simulator.socket().exists() && simulator.tell("statistics").is_ok()) {
            if let Some(status) = simulator.process.try_wait()? {
                bail!("the simulated card ended: {status}");
            }
            ensure!(Instant::now() < end, "the simulated card does not start");
            std::thread::sleep(LOOK);
        }
        Ok(simulator)
    }

    /// The socket by which it is a PCI device.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("card.socket")
    }

    /// Sends a command to its control socket; what it answered.
    ///
    /// # Errors
    /// If it refuses the command, or is not there.
    pub fn tell(&self, command: &str) -> Result<String> {
        let control = self.folder.join("control.socket");
        let mut program = Command::new("timeout");
        let output =
            program.arg("120").arg(&self.program).arg("--control").arg(control).args(["--send", command]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        // Where `timeout` ended it, it has said nothing.
        let status = output.status;
        ensure!(status.success(), "the simulated card does not obey {command:?} ({status}): {}", said.trim_end());
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// A value of its statistics.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn statistic(&self, name: &str) -> Result<u64> {
        let text = self.tell("statistics")?;
        let value = text.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok()).with_context(|| format!("no {name} among {text}"))
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
