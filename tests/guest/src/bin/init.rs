//! The guest's only program, process 1: loads VFIO, binds the card, works, says how it went, and
//! switches the machine off.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nearpm_guest::message::GuestMessage;
use nearpm_guest::task::{Memory, Task};
use nearpm_guest::work::{self, GuestPool};
use nearpm_guest::{cxl, image};
use nearpm_interface::registers as reg;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

/// How long the broker may take to open the card.
const PATIENCE: Duration = Duration::from_secs(60);
/// The file is compressed (`MODULE_INIT_COMPRESSED_FILE`, init_module(2)).
const COMPRESSED_FILE: i32 = 4;

fn say(line: GuestMessage) {
    println!("{line}");
}

fn step(what: impl Into<String>) {
    say(GuestMessage::Step(what.into()));
}

fn mount_all() -> Result<()> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")] {
        fs::create_dir_all(place)?;
        mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>)
            .with_context(|| format!("cannot mount {place}"))?;
    }
    Ok(())
}

/// Loads the modules of a group in the order of their names.
fn load_modules(group: &str) -> Result<()> {
    step(format!("load the kernel's modules for {group}"));
    let folder = Path::new("/").join(image::MODULES).join(group);
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>();
    let mut files = entries?;
    files.sort();
    for file in files {
        let flags = ModuleInitFlags::from_bits_retain(COMPRESSED_FILE as _);
        finit_module(&File::open(&file)?, c"", flags).with_context(|| format!("cannot load {}", file.display()))?;
    }
    Ok(())
}

/// Runs `nearpm` and shows what it says.
fn nearpm(arguments: &[&str]) -> Result<Output> {
    step(format!("nearpm {}", arguments.join(" ")));
    let program = Path::new("/").join(image::NEARPM);
    let output = Command::new(program).args(arguments).output().context("cannot run nearpm")?;
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(output)
}

fn succeeds(arguments: &[&str]) -> Result<()> {
    let output = nearpm(arguments)?;
    ensure!(output.status.success(), "nearpm {} failed: {}", arguments.join(" "), output.status);
    Ok(())
}

/// Runs `nearpm` where it must refuse, and say this.
fn is_refused(arguments: &[&str], part: &str) -> Result<()> {
    let output = nearpm(arguments)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && said.contains(part), "nearpm {} did not refuse", arguments.join(" "));
    Ok(())
}

/// Runs `nearpm` where it must succeed, and say this.
fn says(arguments: &[&str], part: &str) -> Result<()> {
    let output = nearpm(arguments)?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && said.contains(part), "nearpm {} does not say {part}", arguments.join(" "));
    Ok(())
}

/// Where the card is shared.
const SHARED: &str = "/tmp/shared";

/// Two processes at once have the card that a third one shares.
fn share(card: &str) -> Result<()> {
    step(format!("nearpm card share --card {card} --socket {SHARED}"));
    let program = Path::new("/").join(image::NEARPM);
    let mut broker = Command::new(&program).args(["card", "share", "--card", card, "--socket", SHARED]).spawn()?;
    let end = Instant::now() + PATIENCE;
    while !Path::new(SHARED).exists() {
        ensure!(broker.try_wait()?.is_none(), "the broker has ended");
        ensure!(Instant::now() < end, "nothing is shared");
        std::thread::sleep(Duration::from_millis(100));
    }
    let shared = format!("vfio-user:{SHARED}");
    let selftest = ["card", "selftest", "--card", &shared];
    let mut other = Command::new(&program).args(selftest).stdout(Stdio::null()).spawn()?;
    let own = succeeds(&selftest);
    let others = other.wait()?;
    own?;
    ensure!(others.success(), "the second process on the shared card: {others}");
    step("both processes on the shared card have passed");
    broker.kill()?;
    broker.wait()?;
    Ok(())
}

/// A life; gives its last word.
fn live() -> Result<GuestMessage> {
    mount_all()?;
    let task: Task = fs::read_to_string("/proc/cmdline")?.parse()?;
    match &task.memory {
        Memory::Card(address) => live_with_card(address, &task),
        Memory::Cxl => live_with_cxl(&task),
    }
}

fn live_with_card(address: &str, task: &Task) -> Result<GuestMessage> {
    let card = format!("vfio:{address}");
    is_refused(&["card", "bind", address], "modprobe vfio-pci")?;
    load_modules("vfio")?;
    is_refused(&["card", "info", "--card", &card], "nearpm card bind")?;
    succeeds(&["card", "bind", address])?;
    succeeds(&["card", "list"])?;
    match task.known {
        None => {
            says(&["card", "info", "--card", &card], "a page of 2 MiB")?;
            succeeds(&["card", "registers", "--card", &card])?;
            succeeds(&["card", "selftest", "--card", &card])?;
            succeeds(&["card", "selftest", "--card", &format!("{card},wait=interrupts")])?;
            succeeds(&["card", "selftest", "--card", &format!("{card},window=wc")])?;
            share(&card)?;
            succeeds(&["card", "bench", "--count", "200", "--card", &card])?;
            let programs = ["--programs", "btree", "--transactions", "70"];
            succeeds(&[&["bench", "--card", &card][..], &programs].concat())?;
            step("transactions, until the power fails");
            let opened = work::open_card(address)?;
            let gone = work::until_the_power_fails(&GuestPool::card(&opened), task)?;
            // The kernel would wait long for a card that has gone; who comes here waits for the
            // machine's end.
            std::mem::forget(opened);
            Ok(gone)
        }
        Some(known) => {
            let opened = work::open_card(address)?;
            let replayed = opened.card().registers().read(reg::REPLAYED);
            say(GuestMessage::Replayed(replayed.into()));
            step("recovery, and the missing transactions");
            work::after_the_cut(&GuestPool::card(&opened), task, known)?;
            is_refused(&["card", "unbind", address], "open already")?;
            drop(opened);
            succeeds(&["card", "firmware", "--card", &card])?;
            succeeds(&["card", "unbind", address])?;
            Ok(GuestMessage::Passed)
        }
    }
}

fn live_with_cxl(task: &Task) -> Result<GuestMessage> {
    load_modules("cxl")?;
    step("make region and namespace, and mount the file system with DAX");
    cxl::mount_dax()?;
    let pool = GuestPool::folder(cxl::FOLDER);
    match task.known {
        None => {
            step("transactions, until the power fails");
            work::until_the_power_fails(&pool, task)
        }
        Some(known) => {
            pool.check_dax()?;
            step("recovery, and the missing transactions; the pool is mapped by DAX");
            work::after_the_cut(&pool, task, known)?;
            cxl::unmount()?;
            Ok(GuestMessage::Passed)
        }
    }
}

fn main() {
    match live() {
        Ok(gone @ GuestMessage::Gone { .. }) => {
            say(gone);
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        Ok(line) => say(line),
        Err(error) => say(GuestMessage::Failed(format!("{error:#}"))),
    }
    // Returns only where it fails; the kernel panics when process 1 ends, and the machine ends with
    // it.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}
