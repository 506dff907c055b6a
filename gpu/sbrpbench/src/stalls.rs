//! What the programs wait for on a configuration: of warps' time, of persist buffers' time, and of
//! what the writes of persistent memory take at least.

use std::fmt;

use anyhow::{Context, Result};
use nearpm_gpusim::{Config, Stalls, Statistics};

use crate::device::Simulated;
use crate::kernels::Lowering;
use crate::programs::{Program, Size, all};

/// What a program waited for.
pub struct Waits {
    /// The program.
    pub program: &'static str,
    /// What was counted of it.
    pub statistics: Statistics,
    /// What warps and persist buffers waited for.
    pub stalls: Stalls,
    /// Cycles that its launches take before their first instruction, and its persists at the
    /// bandwidth of persistent memory: no buffer makes it faster, its last flush counted.
    pub least: u64,
}

/// All programs on a configuration.
pub struct Breakdown(pub Vec<Waits>);

/// Runs all programs on a configuration.
///
/// # Errors
/// A run that went wrong.
pub fn breakdown(config: &Config, size: Size) -> Result<Breakdown> {
    all(size)?.iter().map(|program| waits(config, program.as_ref())).collect::<Result<_>>().map(Breakdown)
}

fn waits(config: &Config, program: &dyn Program) -> Result<Waits> {
    let mut device = Simulated::new(config, Lowering::Hardware, program.image())?;
    device.simulator().count_stalls();
    program.run(&mut device).with_context(|| program.name().to_string())?;
    program.check_done(&device.image())?;
    let statistics = device.statistics;
    let writes = (statistics.pm_written_bytes as f64 / config.pm_write_bytes) as u64;
    let least = device.launches * config.launch_cycles + writes;
    let stalls = device.simulator().stalls().unwrap_or_default();
    Ok(Waits { program: program.name(), statistics, stalls, least })
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| simulated | cycles | last flush | at least | issues | memory | acquire | barrier | line | room |"
        )?;
        writeln!(f, " eviction | durability | no entry | marked | window |")?;
        writeln!(f, "|---|{}", "---:|".repeat(14))?;
        for Waits { program, statistics, stalls, least } in &self.0 {
            write!(f, "| {program} | {} | {} | {least} |", statistics.cycles, statistics.drain_cycles)?;
            let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
            let Stalls { issues, memory, acquire, barrier, line, room, eviction, durability, .. } = *stalls;
            for part in [issues, memory, acquire, barrier, line, room, eviction, durability] {
                write!(f, " {:.1} % |", percent(part, stalls.warps()))?;
            }
            for part in [stalls.head_empty, stalls.head_marked, stalls.head_window] {
                write!(f, " {:.1} % |", percent(part, stalls.heads()))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
