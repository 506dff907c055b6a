//! Counting from one instruction that matters to the next.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use nix::sys::ptrace;
use nix::unistd::Pid;

use super::single_step::IP;
use super::stopped_at_mark;
use super::tally::{Counts, Tally};
use crate::instruction::{InstructionClass, Site, sweep};

/// INT3.
const BREAKPOINT: [u8; 1] = [0xcc];

/// Runs a stopped process until it stops itself.
pub fn to_mark(pid: Pid) -> Result<Counts> {
    let trap = Trap::set(pid)?;
    let mut tally = Tally::default();
    loop {
        ptrace::cont(pid, None)?;
        if stopped_at_mark(pid)? {
            trap.clear()?;
            return Ok(tally.finish());
        }
        let behind = ptrace::read_user(pid, IP)?.cast_unsigned();
        let breakpoint =
            trap.sites.get(&(behind - 1)).with_context(|| format!("it met a stranger's trap at {behind:#x}"))?;
        tally.take(breakpoint.site.kind, || Ok(ptrace::getregs(pid)?))?;
        match breakpoint.site.kind {
            // Nobody looks at the memory behind the cache, and one thread sees its own stores in
            // order without them.
            InstructionClass::Fence | InstructionClass::WriteBack => {
                go_on_at(pid, breakpoint.site.ip + breakpoint.site.length)?
            }
            _ => trap.execute(breakpoint)?,
        }
    }
}

fn go_on_at(pid: Pid, ip: u64) -> Result<()> {
    Ok(ptrace::write_user(pid, IP, ip.cast_signed())?)
}

/// Breakpoints in all the code of a process.
struct Trap {
    pid: Pid,
    memory: File,
    sites: HashMap<u64, Breakpoint>,
}

/// Where a breakpoint stands, and the byte that it stands for.
struct Breakpoint {
    site: Site,
    original: u8,
}

impl Trap {
    fn set(pid: Pid) -> Result<Self> {
        let threads =
            fs::read_dir(format!("/proc/{pid}/task")).context("the process's threads cannot be read")?.count();
        ensure!(threads == 1, "the process has {threads} threads, and a breakpoint kills those that are not traced");
        let memory = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
            .context("the process's memory cannot be changed")?;
        let mut sites = HashMap::new();
        for (start, end) in code_of(pid)? {
            let mut code = vec![0; (end - start) as usize];
            memory.read_exact_at(&mut code, start).context("the process's code cannot be read")?;
            for site in sweep(&code, start) {
                sites.insert(site.ip, Breakpoint { site, original: code[(site.ip - start) as usize] });
            }
        }
        let trap = Trap { pid, memory, sites };
        for &ip in trap.sites.keys() {
            trap.write(ip, BREAKPOINT)?;
        }
        Ok(trap)
    }

    fn clear(&self) -> Result<()> {
        self.sites.iter().try_for_each(|(&ip, breakpoint)| self.write(ip, [breakpoint.original]))
    }

    /// Lets the process execute the instruction under a breakpoint.
    fn execute(&self, breakpoint: &Breakpoint) -> Result<()> {
        self.write(breakpoint.site.ip, [breakpoint.original])?;
        go_on_at(self.pid, breakpoint.site.ip)?;
        ptrace::step(self.pid, None)?;
        ensure!(!stopped_at_mark(self.pid)?, "the process stopped itself in an instruction that does not");
        self.write(breakpoint.site.ip, BREAKPOINT)
    }

    fn write(&self, ip: u64, byte: [u8; 1]) -> Result<()> {
        self.memory.write_all_at(&byte, ip).with_context(|| format!("no breakpoint can be set at {ip:#x}"))
    }
}

/// The executable mappings of files, as start and end addresses.
fn code_of(pid: Pid) -> Result<Vec<(u64, u64)>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).context("the process's mappings cannot be read")?;
    maps.lines().filter(|line| line.contains(" r-xp ") && line.contains('/')).map(range_of).collect()
}

fn range_of(line: &str) -> Result<(u64, u64)> {
    let range = line.split(' ').next().and_then(|range| range.split_once('-'));
    let (start, end) = range.with_context(|| format!("this is no mapping: {line}"))?;
    Ok((u64::from_str_radix(start, 16)?, u64::from_str_radix(end, 16)?))
}
