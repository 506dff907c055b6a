//! Crashes at random cycles, as many as asked for, resumable: what was done is kept in a file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use nearpm_gpusim::{Config, TIMING};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::crash::{Recorded, narrow, recover, recover_twice};
use crate::programs::{NAMES, Size, program};
use crate::record;

/// What was done of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Of which timing the runs are ([`TIMING`]).
    #[serde(default)]
    pub timing: u32,
    /// The hardware's names.
    pub configurations: Vec<String>,
    /// Crashes so far.
    pub crashes: u64,
    /// Of these, those whose recovery was crashed again.
    pub second_crashes: u64,
    /// Crashes by program.
    pub by_program: BTreeMap<String, u64>,
    /// What went wrong, with the crash's number.
    pub failures: Vec<String>,
}

const CONFIGURATIONS: [&str; 4] =
    ["artifact-sbrp-far", "artifact-sbrp-near", "artifact-improved-near", "artifact-epoch-far"];

/// How often the record is written.
const STRIDE: u64 = 200;

/// Goes on with a campaign up to so many crashes. Crash `i` is the same in each campaign.
///
/// # Errors
/// A record that cannot be read or written, one of another timing, or a run that the model does not
/// allow.
pub fn run(path: &Path, crashes: u64, mut progress: impl FnMut(u64)) -> Result<Record> {
    let mut record = read(path)?;
    let mut runs: BTreeMap<(usize, usize), Recorded> = BTreeMap::new();
    while record.crashes < crashes {
        let number = record.crashes;
        let mut random = ChaCha8Rng::seed_from_u64(number);
        let which = (random.random_range(0..NAMES.len()), random.random_range(0..CONFIGURATIONS.len()));
        let program = program(NAMES[which.0], Size::Tiny)?;
        let config = Config::named(CONFIGURATIONS[which.1]).map(narrow).context("a configuration is missing")?;
        let recorded = match runs.entry(which) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(
                Recorded::of(&config, program.as_ref())
                    .with_context(|| format!("{} on {}", program.name(), CONFIGURATIONS[which.1]))?,
            ),
        };
        let cycle = random.random_range(0..=recorded.cycles);
        let image = recorded.image_at(cycle);
        let twice = number.is_multiple_of(4);
        let found = if twice {
            recover_twice(&config, program.as_ref(), image, number)
        } else {
            recover(program.as_ref(), &image)
        };
        if let Err(error) = found {
            let (name, hardware) = (program.name(), CONFIGURATIONS[which.1]);
            record.failures.push(format!("crash {number}: {name} on {hardware} at cycle {cycle}: {error:#}"));
        }
        record.crashes += 1;
        record.second_crashes += u64::from(twice);
        *record.by_program.entry(program.name().to_string()).or_default() += 1;
        if record.crashes.is_multiple_of(STRIDE) || record.crashes == crashes {
            record::write(path, &(serde_json::to_string_pretty(&record)? + "\n"))?;
            progress(record.crashes);
        }
    }
    Ok(record)
}

fn read(path: &Path) -> Result<Record> {
    let Some(text) = record::read(path)? else {
        let configurations = CONFIGURATIONS.map(str::to_string).to_vec();
        return Ok(Record { timing: TIMING, configurations, ..Record::default() });
    };
    let at = path.display();
    let record: Record = serde_json::from_str(&text).with_context(|| format!("{at} is no record"))?;
    ensure!(record.timing == TIMING, "{at}: timing {}, but this is {TIMING}: begin a new record", record.timing);
    ensure!(record.configurations == CONFIGURATIONS, "{at} is of other configurations: begin a new record");
    Ok(record)
}
