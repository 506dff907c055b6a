//! Mutants: the buffer with one rule less, and the programs with one persist operation less or of
//! narrower scope. Each is to be seen by the model, or by a recovery that fails.

use std::sync::Arc;

use anyhow::Result;
use nearpm_gpusim::{Config, Policy, Rule};
use nearpm_ptx::Module;

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

/// Hardware on which mutants are looked for: small, so that buffers fill, with slow and with fast
/// persists.
pub fn hardware() -> Vec<(&'static str, Config)> {
    // With versions, which the named configuration leaves out, so that they are looked at, too.
    let named = |name: &str| {
        let versions = name == "artifact-improved-near";
        Config::named(name).map(|config| Config { versions, ..narrow(config) })
    };
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
    // Some crashes of a run that the model allows throughout: a recovery may need more than the
    // model says.
    let step = (recorded.events() / 8).max(1);
    (0..=recorded.events()).step_by(step).find_map(|events| {
        recover(program, &recorded.image(events)).err().map(|error| format!("crash after {events} changes: {error:#}"))
    })
}

/// Why nobody can see that a rule is gone, where the model says so.
pub fn harmless(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Release => Some(
            "a release orders its own thread's later persists in no rule of the model: litmus ra-release-is-no-fence",
        ),
        _ => None,
    }
}

/// Why no crash shows that an operation of a program is changed: no value that recovery finds
/// depends on it.
pub fn no_crash_shows(change: &Change) -> Option<&'static str> {
    match (change.kernel.as_str(), change.right, change.number) {
        ("sbrp_red" | "sbrp_scan", ..) => Some(
            "every sum is computed again from the input and is the same; the checker of scopes sees it (gpu/sbrp/tests/scopes.rs)",
        ),
        ("sbrp_mq", "fence.acq_rel.gpu;", 2) => Some(
            "the log is then the next command's, which is what this command has left: litmus ap-mq-next-log-unordered",
        ),
        ("sbrp_mq_recover", ..) => {
            Some("the tail is then the command's, whole, as its entries are: litmus ap-mq-recovery-without-its-fence")
        }
        _ => None,
    }
}

/// Crashes of a run that are looked at, at most, spread over it.
const CRASHES: usize = 160;

/// Changes a persist operation of a program's kernels, and looks whether a crash of a run, or of a
/// recovery, is not recovered from: first with images that the model allows, then with those that
/// the hardware leaves.
///
/// # Errors
/// The changed kernels are no PTX, or the programs cannot be made.
pub fn look_at_change(change: &Change) -> Result<Seen> {
    let kernels = Arc::new(change.kernels()?);
    let programs = all(Size::Tiny)?;
    let Some(program) = programs.iter().find(|program| is_of(&change.kernel, program.name())) else {
        return Ok(Seen::Nobody);
    };
    for (number, (name, config)) in hardware().into_iter().enumerate() {
        if let Some(found) = found_with(&config, program.as_ref(), &kernels, number == 0) {
            return Ok(Seen::By(format!("{} on {name}: {found}", program.name())));
        }
    }
    Ok(Seen::Nobody)
}

/// Whether a kernel is one of a program's.
fn is_of(kernel: &str, program: &str) -> bool {
    kernel.starts_with(&format!("sbrp_{}", program.trim_start_matches("gp").to_lowercase()))
}

fn found_with(config: &Config, program: &dyn Program, kernels: &Arc<Module>, by_model: bool) -> Option<String> {
    let run = match Recorded::of_changed(config, program, kernels) {
        Ok(run) => run,
        Err(error) => return Some(format!("{error:#}")),
    };
    if let Some(found) = found_in(program, &run, by_model) {
        return Some(found);
    }
    // Crashes of recoveries: one from the middle, and the longest.
    let mut late = run.image(run.events());
    program.crash_late(&mut late);
    [run.image(run.events() / 2), late].into_iter().find_map(|image| {
        let found = match Recorded::of_changed_recovery(config, program, kernels, image) {
            Ok(recovery) => found_in(program, &recovery, by_model),
            Err(error) => Some(format!("{error:#}")),
        };
        found.map(|what| format!("in the recovery, {what}"))
    })
}

/// A crash of a run, or of a recovery, that is not recovered from: of those that the model allows,
/// or that the hardware leaves.
pub fn found_in(program: &dyn Program, recorded: &Recorded, by_model: bool) -> Option<String> {
    let crash = |what: String, image: &[u32]| recover(program, image).err().map(|error| format!("{what}: {error:#}"));
    if by_model && let Some(found) = recorded.allowed_images(CRASHES).find_map(|(what, image)| crash(what, &image)) {
        return Some(found);
    }
    let mut spread = (0..=recorded.events()).step_by(recorded.events() / CRASHES + 1);
    spread.find_map(|events| crash(format!("crash after {events} changes"), &recorded.image(events)))
}
