//! Mutants: the buffer with one rule less. Each is to be seen by the model, or by a recovery that fails.

use anyhow::Result;
use nearpm_gpusim::{Config, Policy, Rule};

use crate::crash::{Recorded, narrow, recover};
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
