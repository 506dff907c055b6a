//! A virtual machine, with the card behind an IOMMU or with memory on CXL: QEMU, and its serial
//! line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::cxl;
use crate::packages::Packages;
use crate::task::Task;

/// Address of the card: the only device behind the only port.
pub const CARD: &str = "0000:01:00.0";
/// Memory of the machine. The simulated card writes to it, so that it must have a descriptor.
const MEMORY: &str = "512M";
/// What the kernel is told besides the task. A panic, which the end of process 1 is, restarts the
/// machine, and a restart ends it. The kernel's test of its timer counts ticks in a loop of
/// instructions, and fails where the emulation is held up by a busy machine. Two pages of 2 MiB are
/// kept for what the card writes.
const KERNEL_LINE: &str = "console=ttyS0 loglevel=4 panic=-1 intel_iommu=on no_timer_check hugepages=2";

/// What a machine has besides processor and memory.
pub enum Device<'a> {
    /// The card that is served on a socket, behind an IOMMU.
    Card(&'a Path),
    /// Persistent memory on CXL: its bytes and its labels.
    Cxl(&'a Path, &'a Path),
}

/// A machine that runs. It is switched off when this is dropped, or when this process ends.
pub struct Machine {
    process: Child,
    lines: Receiver<String>,
}

impl Machine {
    /// Switches one on.
    ///
    /// # Errors
    /// If QEMU cannot be started.
    pub fn boot(packages: &Packages, image: &Path, device: &Device<'_>, task: &Task) -> Result<Machine> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(packages.qemu()).args(arguments(device));
        command.arg("-kernel").arg(packages.kernel()?).arg("-initrd").arg(image);
        command.args(["-append", &format!("{KERNEL_LINE} {task}")]);
        command.env("QEMU_MODULE_DIR", packages.qemu_modules());
        Machine::follow(&mut command)
    }

    /// Starts a program that is a machine, and follows what it says.
    pub(crate) fn follow(command: &mut Command) -> Result<Machine> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().context("cannot start QEMU")?;
        let (sender, lines) = mpsc::channel();
        follow(process.stdout.take(), "", sender.clone());
        follow(process.stderr.take(), "qemu: ", sender);
        Ok(Machine { process, lines })
    }

    /// The next line, or nothing when the machine has ended.
    ///
    /// # Errors
    /// If none comes until then.
    pub fn line(&self, until: Instant) -> Result<Option<String>> {
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("the guest hangs: nothing more came in time"),
        }
    }

    /// Ends it at once, like a loss of power. What it said before can still be read.
    pub fn cut(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.cut();
    }
}

/// What QEMU is told, but for kernel and image.
fn arguments(device: &Device<'_>) -> Vec<String> {
    let (machine, more) = match device {
        Device::Card(socket) => ("kernel-irqchip=off", card(socket)),
        Device::Cxl(memory, labels) => {
            ("kernel-irqchip=off,cxl=on,cxl-fmw.0.targets.0=cxl,cxl-fmw.0.size=1G", cxl(memory, labels))
        }
    };
    let words = [
        // Nothing that the guest does not need: no screen, no network, no disk.
        "-nodefaults",
        "-no-reboot",
        "-display none -monitor none",
        "-serial stdio",
        "-accel tcg,thread=multi",
        // Linux makes no CXL regions where it knows that the machine is a virtual one.
        if matches!(device, Device::Cxl(..)) { "-cpu max,-hypervisor -smp 2" } else { "-cpu max -smp 2" },
        &format!("-m {MEMORY}"),
        &format!("-machine q35,memory-backend=memory,{machine}"),
    ];
    let mut list: Vec<String> = words.iter().flat_map(|words| words.split(' ')).map(str::to_owned).collect();
    list.extend(["-object".into(), format!("memory-backend-memfd,id=memory,size={MEMORY},share=on")]);
    list.extend(more.into_iter().flat_map(|(kind, what)| [kind.to_owned(), what]));
    list
}

/// The card behind a port and an IOMMU.
fn card(socket: &Path) -> Vec<(&'static str, String)> {
    let path = socket.display();
    vec![
        ("-device", "intel-iommu,caching-mode=on,intremap=on".into()),
        ("-device", "pcie-root-port,id=root-port,bus=pcie.0,chassis=1".into()),
        (
            "-device",
            format!(r#"{{"driver":"vfio-user-pci","bus":"root-port","socket":{{"type":"unix","path":"{path}"}}}}"#),
        ),
    ]
}

/// A memory device behind a CXL host bridge. Its files keep what a machine that is killed has
/// stored.
fn cxl(memory: &Path, labels: &Path) -> Vec<(&'static str, String)> {
    let file = |id: &str, path: &Path, bytes: u64| {
        ("-object", format!("memory-backend-file,id={id},share=on,size={bytes},mem-path={}", path.display()))
    };
    vec![
        file("pmem", memory, cxl::BYTES),
        file("labels", labels, cxl::LABEL_BYTES),
        ("-device", "pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl".into()),
        ("-device", "cxl-rp,port=0,bus=cxl,id=cxl-port,chassis=0,slot=2".into()),
        ("-device", "cxl-type3,bus=cxl-port,persistent-memdev=pmem,lsa=labels,id=cxl-pmem,sn=1".into()),
    ]
}

/// Passes on what comes from a pipe, line by line.
fn follow(pipe: Option<impl Read + Send + 'static>, mark: &'static str, to: Sender<String>) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if to.send(format!("{mark}{}", line.trim_end())).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn machine(script: &str) -> Machine {
        Machine::follow(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_guest_that_is_silent_is_given_up_and_one_that_ends_has_no_more_lines() {
        let soon = || Instant::now() + Duration::from_millis(200);
        let silent = machine("echo one; exec sleep 60");
        let late = Instant::now() + Duration::from_secs(20);
        assert_eq!(silent.line(late).unwrap().as_deref(), Some("one"));
        assert!(silent.line(soon()).unwrap_err().to_string().contains("hangs"));
        let ended = machine("printf 'two\\r\\n'");
        assert_eq!(ended.line(late).unwrap().as_deref(), Some("two"));
        assert_eq!(ended.line(late).unwrap(), None);
    }
}
