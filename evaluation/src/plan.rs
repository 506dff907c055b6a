//! The cases of the quick and of the full form.

use nearpm::Mechanism;
use nearpm_sim::profile::EMBEDDED;
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program};

use crate::case::{Case, Charge, Configuration};
use crate::device::Device;

/// The profile that the paper's figures are predicted with.
pub const PAPER: &str = "paper-vcu118";
/// The profile of this project's card.
pub const OURS: &str = "vcu118-300";
/// Profiles on which everything that somebody may choose from is run: this project's card with its
/// memory cached as no PCIe card's is, with what a PCIe card gets, and in a CXL device.
pub const COMPARED: [&str; 4] = [OURS, "vcu118-300-wc", "vcu118-300-uc", "cxl-type3"];
/// Those of them whose cards differ from others in nothing but how the processor maps their memory.
pub const WINDOWS: [&str; 2] = ["vcu118-300-wc", "vcu118-300-uc"];
/// Units of a card.
pub const UNITS: usize = 4;
/// Units that are tried (Fig. 19). The RTL has four; eight are the model's alone.
pub const UNIT_STEPS: [usize; 4] = [1, 2, 4, 8];
/// Threads that are tried (Fig. 20).
pub const THREAD_STEPS: [usize; 5] = [1, 2, 4, 8, 16];
/// Threads with which units are tried besides one.
pub const MANY_THREADS: usize = 8;
/// Devices that are tried.
pub const DEVICE_STEPS: [usize; 4] = [1, 2, 4, 8];
/// Programs whose scaling with devices is shown: many ranges and few.
pub const SCALED: [Program; 2] = [Program::Tpcc, Program::Btree];
/// Programs on the other profiles in the quick form.
const FEW: [Program; 4] = [Program::Tpcc, Program::Btree, Program::Memcached, Program::Redis];
/// Programs with threads.
pub const THREADED: [Program; 2] = [Program::Memcached, Program::Redis];

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The paper's transactions are divided by this.
    pub share: usize,
    /// Tables may be smaller than the paper's: by [`Scope::table_share`].
    pub smaller_tables: bool,
    /// Seeds, from 1 on.
    pub seeds: u64,
    /// All programs on the other profiles, too.
    pub every_profile: bool,
}

impl Scope {
    /// Minutes.
    pub const QUICK: Scope = Scope { share: 20, smaller_tables: true, seeds: 1, every_profile: false };
    /// The paper's set-up, ten times, for error bars.
    pub const FULL: Scope = Scope { share: 1, smaller_tables: false, seeds: 10, every_profile: true };

    /// Each once, as small as it can be: for tests.
    pub const TINY: Scope = Scope { share: 500, smaller_tables: true, seeds: 1, every_profile: false };

    /// What a program's tables are divided by. They stay larger than the cache where the paper's
    /// are: in a cache, nothing is left for a card to save. (Maps have no tables: with fewer
    /// insertions they are smaller, and fit. Of memcached's slab only what is set is touched.)
    pub fn table_share(&self, program: Program) -> usize {
        match (self.smaller_tables, program) {
            (false, _) => 1,
            (true, _) if self.share > 100 => self.share,
            (true, Program::Tpcc | Program::Redis) => 1,
            (true, Program::Tatp | Program::Memcached) => 4,
            (true, _) => self.share,
        }
    }

    /// Transactions of a program.
    fn count(&self, program: Program) -> usize {
        (program.paper_count() / self.share).max(16)
    }

    /// Whether a case is of this scope.
    pub fn holds(&self, case: &Case) -> bool {
        case.count == self.count(case.program) && case.share == self.table_share(case.program)
    }

    /// A case of this scope with one card of four units and one thread.
    pub fn case(&self, profile: &str, program: Program, mechanism: Mechanism, configuration: Configuration) -> Case {
        let several = matches!(configuration, Configuration::Software | Configuration::Delayed);
        Case {
            profile: profile.into(),
            program,
            inputs: Inputs::Corrected,
            mix: Mix::W1,
            // The floor has none; one name stands for all.
            mechanism: if configuration == Configuration::Bare { Mechanism::Undo } else { mechanism },
            configuration,
            devices: if several { 2 } else { 1 },
            units: UNITS,
            threads: 1,
            count: self.count(program),
            share: self.table_share(program),
            seed: 1,
            device: Device::Model,
            charge: Charge::Alike,
        }
    }

    /// A case whose instructions are those of its path. Without crash consistency there are none to
    /// charge.
    pub fn by_path(&self, profile: &str, program: Program, mechanism: Mechanism, configuration: Configuration) -> Case {
        let charge = if configuration == Configuration::Bare { Charge::Alike } else { Charge::Path };
        Case { charge, ..self.case(profile, program, mechanism, configuration) }
    }

    /// Each case of [`Scope::choices_of_a_seed`], with every seed. They are no figures of the
    /// paper's, and no part of [`Scope::cases`].
    pub fn choices(&self) -> Vec<Case> {
        self.seeded(self.choices_of_a_seed())
    }

    /// What somebody may choose from on a machine: [`Configuration::choices`] on each profile that
    /// is compared.
    fn choices_of_a_seed(&self) -> Vec<Case> {
        let all = Configuration::choices();
        let mut cases = Vec::new();
        for profile in COMPARED {
            for program in Program::ALL {
                cases.extend(all.iter().map(|&(mechanism, of)| self.by_path(profile, program, mechanism, of)));
            }
        }
        cases
    }

    /// Every program, mechanism and configuration on a profile.
    fn main(&self, profile: &str, inputs: Inputs) -> Vec<Case> {
        let mut cases = Vec::new();
        for program in Program::ALL {
            cases.push(self.case(profile, program, Mechanism::Undo, Configuration::Bare));
            for mechanism in Mechanism::ALL {
                let with = Configuration::ALL.into_iter().filter(|c| *c != Configuration::Bare);
                cases.extend(with.map(|configuration| self.case(profile, program, mechanism, configuration)));
            }
        }
        cases.iter_mut().for_each(|case| case.inputs = inputs);
        cases
    }

    /// One card against the processor on the other profiles.
    fn others(&self) -> Vec<Case> {
        let programs = if self.every_profile { &Program::ALL[..] } else { &FEW[..] };
        let mut cases = Vec::new();
        let is_other = |name: &str| name != PAPER && name != OURS && !WINDOWS.contains(&name);
        for (profile, _) in EMBEDDED.into_iter().filter(|(name, _)| is_other(name)) {
            for &program in programs {
                cases.push(self.case(profile, program, Mechanism::Undo, Configuration::Bare));
                for mechanism in Mechanism::ALL {
                    for configuration in [Configuration::Cpu, Configuration::Card] {
                        cases.push(self.case(profile, program, mechanism, configuration));
                    }
                }
            }
        }
        cases
    }

    /// Units, threads and devices.
    fn sweeps(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for profile in [PAPER, OURS] {
            for program in Program::ALL {
                for mechanism in [Mechanism::Undo, Mechanism::Checkpoint, Mechanism::Shadow] {
                    for units in UNIT_STEPS {
                        cases.push(Case { units, ..self.case(profile, program, mechanism, Configuration::Card) });
                    }
                }
            }
        }
        for profile in [PAPER, OURS] {
            for program in THREADED {
                for threads in THREAD_STEPS {
                    for configuration in [Configuration::PaperCpu, Configuration::Cpu, Configuration::Card] {
                        let case = self.case(profile, program, Mechanism::Undo, configuration);
                        cases.push(Case { threads, ..case });
                    }
                }
            }
        }
        for profile in [PAPER, OURS] {
            for program in THREADED {
                for units in UNIT_STEPS {
                    let case = self.case(profile, program, Mechanism::Undo, Configuration::Card);
                    cases.push(Case { units, threads: MANY_THREADS, ..case });
                }
            }
        }
        for program in SCALED {
            for devices in DEVICE_STEPS.into_iter().filter(|devices| *devices > 1) {
                for configuration in [Configuration::Software, Configuration::Delayed] {
                    let case = self.case(OURS, program, Mechanism::Undo, configuration);
                    cases.push(Case { devices, ..case });
                }
            }
        }
        cases
    }

    /// Every program, mechanism and configuration on profiles of one's own.
    pub fn cases_of(&self, profiles: &[String]) -> Vec<Case> {
        self.seeded(profiles.iter().flat_map(|profile| self.main(profile, Inputs::Corrected)).collect())
    }

    /// Each case once, with every seed.
    fn seeded(&self, cases: Vec<Case>) -> Vec<Case> {
        let mut seen = std::collections::HashSet::new();
        let first: Vec<Case> = cases.into_iter().filter(|case| seen.insert(case.clone())).collect();
        (1..=self.seeds).flat_map(|seed| first.iter().map(move |case| Case { seed, ..case.clone() })).collect()
    }

    /// All cases, each once, in the order of their weight in the report.
    pub fn cases(&self) -> Vec<Case> {
        let mut all = Vec::new();
        for profile in [PAPER, OURS] {
            for inputs in Inputs::ALL {
                all.extend(self.main(profile, inputs));
            }
        }
        all.extend(self.sweeps());
        all.extend(self.others());
        self.seeded(all)
    }
}

/// What the paper's tables are divided by where cases are run on the RTL, which has to carry the
/// medium and simulates each cycle.
const RTL_SHARE: usize = 500;
/// Transactions of a case there, where nobody says how many: enough that an epoch ends.
pub const RTL_COUNT: usize = 70;

/// Cases that are run on the RTL, and on the model beside it: every program and mechanism by the
/// processor's best path and by one card, and the floor.
pub fn on_both_devices(profiles: &[String], count: usize, seeds: u64) -> Vec<Case> {
    let scope = Scope { seeds, ..Scope::TINY };
    let is_run = |c: Configuration| matches!(c, Configuration::Bare | Configuration::Cpu | Configuration::Card);
    let cases = scope.cases_of(profiles).into_iter().filter(|case| is_run(case.configuration));
    let small = cases.map(|case| Case { count, share: RTL_SHARE, ..case });
    small.flat_map(|case| Device::ALL.map(|device| Case { device, ..case.clone() })).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_case_has_a_file_of_its_own() {
        let both = on_both_devices(&[OURS.to_owned()], RTL_COUNT, 1);
        for cases in [Scope::QUICK.cases(), Scope::FULL.cases(), both] {
            let keys: HashSet<String> = cases.iter().map(Case::key).collect();
            assert_eq!(keys.len(), cases.len());
        }
    }
}
