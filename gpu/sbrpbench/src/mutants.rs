//! Mutants: the buffer with one rule less, and the programs with one persist operation less or of narrower scope. Each is to be seen
//! by the model, or by a recovery that fails.

use std::sync::Arc;

use anyhow::Result;
use nearpm_gpusim::{Config, Policy, Rule};

use crate::crash::{Recorded, narrow, recover};
use crate::kernels::Change;
use crate::programs::{Program, Size, all};

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// By whom: the program, the hardware, and what was found.
    By(String),
    /// By nothing.
    Nobody,
}

/// Hardware on which mutants are looked for: small, so that buffers fill, with slow and with fast persists.
pub fn hardware() -> Vec<(&'static str, Config)> {
    let named = |name| Config::named(name).map(narrow);
    let mut list = Vec::new();
    for name in ["artifact-sbrp-far", "artifact-sbrp-near", "artifact-improved-near"] {
        if let Some(config) = named(name) {
            list.push((name, Config { window: 32, policy: Policy::Eager, ..config.clone() }));
            list.push((name, Config { policy: Policy::Lazy, ..config.clone() }));
            // Loads go on, and evict, while persists are under way.
            list.push((name, Config { pm_write_bytes: 0.2, pm_queue_bytes: 0, window: 32, ..config.clone() }));
            list.push((name, config));
        }
    }
    list
}

/// Takes a rule away and looks who sees it.
///
/// # Errors
/// The programs cannot be made.
pub fn look(rule: Rule) -> Result<Seen> {
    let programs = all(Size::Tiny)?;
    for (name, config) in hardware() {
        for program in &programs {
            let config = Config { without: vec![rule], ..config.clone() };
            if let Some(found) = found(&config, program.as_ref()) {
                return Ok(Seen::By(format!("{} on {name}: {found}", program.name())));
            }
        }
    }
    Ok(Seen::Nobody)
}

/// What a program finds wrong with the hardware.
pub fn found(config: &Config, program: &dyn Program) -> Option<String> {
    let recorded = match Recorded::of(config, program) {
        Ok(recorded) => recorded,
        Err(error) => return Some(format!("{error:#}")),
    };
    let mut late = recorded.image(recorded.events());
    program.crash_late(&mut late);
    if let Err(error) = Recorded::of_recovery(config, program, late) {
        return Some(format!("in the recovery: {error:#}"));
    }
    // Some crashes of a run that the model allows throughout: a recovery may need more than the model says.
    let step = (recorded.events() / 8).max(1);
    (0..=recorded.events()).step_by(step).find_map(|events| {
        recover(program, &recorded.image(events)).err().map(|error| format!("crash after {events} changes: {error:#}"))
    })
}

/// Why nobody can see that a rule is gone, where the model says so.
pub fn harmless(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Release => Some("a release orders its own thread's later persists in no rule of the model"),
        _ => None,
    }
}

/// Crashes that are looked at of a run at most, spread over it.
const CRASHES: usize = 160;

/// Changes a persist operation of a program's kernels, and looks whether a crash of a run, or of a recovery, is not recovered from.
///
/// # Errors
/// The changed kernels are no PTX, or the programs cannot be made.
pub fn look_at_change(change: &Change) -> Result<Seen> {
    let kernels = Arc::new(change.kernels()?);
    let programs = all(Size::Tiny)?;
    for (name, config) in hardware() {
        for program in programs.iter().filter(|program| is_of(&change.kernel, program.name())) {
            if let Some(found) = found_with(&config, program.as_ref(), &kernels) {
                return Ok(Seen::By(format!("{} on {name}: {found}", program.name())));
            }
        }
    }
    Ok(Seen::Nobody)
}

/// Whether a kernel is one of a program's.
fn is_of(kernel: &str, program: &str) -> bool {
    kernel.starts_with(&format!("sbrp_{}", program.trim_start_matches("gp").to_lowercase()))
}

fn found_with(config: &Config, program: &dyn Program, kernels: &Arc<nearpm_ptx::Module>) -> Option<String> {
    let run = match Recorded::of_changed(config, program, kernels) {
        Ok(run) => run,
        Err(error) => return Some(format!("{error:#}")),
    };
    let crash = |recorded: &Recorded, events: usize| {
        let error = recover(program, &recorded.image(events)).err()?;
        Some(format!("crash after {events} changes: {error:#}"))
    };
    let spread = |recorded: &Recorded| (0..=recorded.events()).step_by(recorded.events() / CRASHES + 1);
    if let Some(found) = spread(&run).find_map(|events| crash(&run, events)) {
        return Some(found);
    }
    // Crashes of recoveries: one from the middle, and the longest.
    let mut late = run.image(run.events());
    program.crash_late(&mut late);
    [run.image(run.events() / 2), late].into_iter().find_map(|image| {
        let recovery = match Recorded::of_changed_recovery(config, program, kernels, image) {
            Ok(recovery) => recovery,
            Err(error) => return Some(format!("in the recovery: {error:#}")),
        };
        spread(&recovery).find_map(|events| crash(&recovery, events).map(|what| format!("in the recovery, {what}")))
    })
}
