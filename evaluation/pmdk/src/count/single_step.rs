//! Counting instruction by instruction.

use std::collections::HashMap;
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};
use nix::libc::user_regs_struct;
use nix::sys::ptrace;
use nix::unistd::Pid;

use super::stopped_at_mark;
use super::tally::{Counts, Tally};
use crate::instruction::{InstructionClass, LONGEST, decode};

/// Where the instruction pointer lies in what the kernel keeps of a process.
pub const IP: ptrace::AddressType = offset_of!(user_regs_struct, rip) as ptrace::AddressType;

/// Steps a stopped process until it stops itself.
pub fn to_mark(pid: Pid) -> Result<Counts> {
    let memory = File::open(format!("/proc/{pid}/mem")).context("the process's memory cannot be read")?;
    let mut known: HashMap<u64, InstructionClass> = HashMap::new();
    let mut tally = Tally::default();
    loop {
        let ip = ptrace::read_user(pid, IP)?.cast_unsigned();
        let kind = match known.get(&ip) {
            Some(&kind) => kind,
            None => *known.entry(ip).or_insert(decode_at(&memory, ip)?),
        };
        tally.take(kind, || Ok(ptrace::getregs(pid)?))?;
        ptrace::step(pid, None)?;
        if stopped_at_mark(pid)? {
            return Ok(tally.finish());
        }
    }
}

fn decode_at(memory: &File, ip: u64) -> Result<InstructionClass> {
    let mut code = [0; LONGEST];
    // Less can be read where the mapping ends behind the instruction.
    let length = memory.read_at(&mut code, ip).with_context(|| format!("no code can be read at {ip:#x}"))?;
    Ok(decode(&code[..length], ip))
}
