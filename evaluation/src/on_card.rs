//! The programs on a card that is there, whatever it is reached by: undo logging, checkpointing and
//! shadow paging, in the time of its transport.
//!
//! On a board that is wall-clock time, and all of it: the program's instructions, the library's,
//! the link and the card. What another transport's clock says is for its label.

use anyhow::{Context, Result, ensure};
use nearpm::Mechanism;
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program};

use crate::case::{Case, Charge, Configuration};
use crate::device::Device;
use crate::place::Place;

/// Mechanisms that are run.
pub const MECHANISMS: [Mechanism; 3] = [Mechanism::Undo, Mechanism::Checkpoint, Mechanism::Shadow];
/// Who makes the copies.
pub const CONFIGURATIONS: [Configuration; 2] = [Configuration::Cpu, Configuration::Card];
/// What the paper's tables are divided by, the least that fits the card.
const SHARES: [usize; 6] = [1, 4, 20, 100, 500, 2_000];

/// The cases of some programs.
///
/// # Errors
/// If a program does not fit the card, however small.
pub fn cases(
    place: &Place<'_>,
    programs: &[Program],
    mechanisms: &[Mechanism],
    count: usize,
    seeds: u64,
) -> Result<Vec<Case>> {
    ensure!(count > 0, "no transactions to run");
    let mut cases = Vec::new();
    for &program in programs {
        let with = |share: usize| Case {
            profile: place.name.into(),
            program,
            inputs: Inputs::Corrected,
            mix: Mix::W1,
            mechanism: Mechanism::Undo,
            configuration: Configuration::Cpu,
            devices: 1,
            units: place.units,
            threads: 1,
            count,
            share,
            seed: 1,
            device: Device::Model,
            charge: Charge::Alike,
        };
        let first = SHARES.into_iter().map(with).find(|case| place.bytes(case) <= place.room);
        let first =
            first.with_context(|| format!("{} does not fit into {} bytes of the card", program.name(), place.room))?;
        for seed in 1..=seeds {
            for &mechanism in mechanisms {
                let case = Case { mechanism, seed, ..first.clone() };
                cases.extend(CONFIGURATIONS.map(|configuration| Case { configuration, ..case.clone() }));
            }
        }
    }
    Ok(cases)
}
