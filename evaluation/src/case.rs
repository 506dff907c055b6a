//! What is run.

use std::fmt;

use nearpm::{Engine, Mechanism, Synchronisation};
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Setup};
use serde::{Deserialize, Serialize};

use crate::device::Device;

/// Who makes the copies, and on how many cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Configuration {
    /// No crash consistency: the same loads and stores, no log, no write-back, no fence. The floor.
    Bare,
    /// The processor, in the paper's way: each range's log entry is waited for by itself, and every
    /// fence waits for the card.
    PaperCpu,
    /// The processor, on the library's best path: log entries under one fence, ordered by the link.
    Cpu,
    /// One card.
    Card,
    /// Several cards; the processor waits for all before it sends commits.
    Software,
    /// Several cards; each waits for the others before it deletes recovery data.
    Delayed,
    /// The processor, with undo logging in place that is as lean as it can be
    /// ([`nearpm_workloads::store::Lean`]): no write set, a fence a range.
    Lean,
    /// The processor, on a working copy in ordinary memory, with packed redo records
    /// ([`nearpm::direct::DirectPool`]): what users have.
    WorkingCopy,
    /// The processor, on such a copy, whose commits the mechanism brings home.
    CopyCpu,
    /// One card, by the mechanism's commands, on such a copy.
    CopyCard,
}

/// What the library's instructions are charged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// The same for processor and card: what the mechanism takes on the processor.
    #[default]
    Alike,
    /// Those that the path executes ([`crate::compute::Paths`]).
    Path,
}

impl Charge {
    /// Whether a name or a file need not tell.
    pub fn is_alike(&self) -> bool {
        *self == Charge::Alike
    }

    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Charge::Alike => "alike",
            Charge::Path => "path",
        }
    }
}

impl Configuration {
    /// Those that the paper's figures are made of.
    pub const ALL: [Configuration; 6] = [
        Configuration::Bare,
        Configuration::PaperCpu,
        Configuration::Cpu,
        Configuration::Card,
        Configuration::Software,
        Configuration::Delayed,
    ];
    /// Ways without a card that are no mechanism of the paper's, each with the mechanism that it
    /// stands for: what it promises. The working copy is there with both promises: durable when the
    /// commit returns, and waited for as seldom as epochs end.
    pub const BESIDE: [(Mechanism, Configuration); 3] = [
        (Mechanism::Undo, Configuration::Lean),
        (Mechanism::Redo, Configuration::WorkingCopy),
        (Mechanism::Checkpoint, Configuration::WorkingCopy),
    ];
    /// What each mechanism is compared in where somebody may choose: pools by offsets, and working
    /// copies.
    pub const CHOSEN: [Configuration; 4] =
        [Configuration::Cpu, Configuration::Card, Configuration::CopyCpu, Configuration::CopyCard];

    /// Everything that somebody may choose from on a machine with one card, and the floor before
    /// it.
    pub fn choices() -> Vec<(Mechanism, Configuration)> {
        let of_mechanisms = Mechanism::ALL.into_iter().flat_map(|mechanism| Self::CHOSEN.map(|of| (mechanism, of)));
        [(Mechanism::Undo, Configuration::Bare)].into_iter().chain(Self::BESIDE).chain(of_mechanisms).collect()
    }

    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Configuration::Bare => "bare",
            Configuration::PaperCpu => "paper-cpu",
            Configuration::Cpu => "cpu",
            Configuration::Card => "card",
            Configuration::Software => "software",
            Configuration::Delayed => "delayed",
            Configuration::Lean => "lean",
            Configuration::WorkingCopy => "working-copy",
            Configuration::CopyCpu => "copy-cpu",
            Configuration::CopyCard => "copy-card",
        }
    }

    /// Name, for people.
    pub fn title(self) -> &'static str {
        match self {
            Configuration::Bare => "no crash consistency",
            Configuration::PaperCpu => "CPU, the paper's way",
            Configuration::Cpu => "CPU, best path",
            Configuration::Card => "one device",
            Configuration::Software => "two devices, software sync",
            Configuration::Delayed => "two devices, delayed sync",
            Configuration::Lean => "CPU, lean undo in place",
            Configuration::WorkingCopy => "CPU, working copy",
            Configuration::CopyCpu => "working copy, CPU",
            Configuration::CopyCard => "working copy, one device",
        }
    }

    /// The card makes the copies.
    pub fn uses_card(self) -> bool {
        use Configuration::{Card, CopyCard, Delayed, Software};
        matches!(self, Card | Software | Delayed | CopyCard)
    }

    /// Who makes the copies.
    pub fn engine(self) -> Engine {
        if self.uses_card() { Engine::Card } else { Engine::Cpu }
    }

    /// The program works on a copy in ordinary memory.
    pub fn is_copy(self) -> bool {
        matches!(self, Configuration::WorkingCopy | Configuration::CopyCpu | Configuration::CopyCard)
    }

    /// A mechanism of the library makes it durable.
    pub fn has_mechanism(self) -> bool {
        !matches!(self, Configuration::Bare | Configuration::Lean | Configuration::WorkingCopy)
    }

    /// How commits over several cards wait.
    pub fn synchronisation(self) -> Synchronisation {
        match self {
            Configuration::Delayed => Synchronisation::Delayed,
            _ => Synchronisation::Software,
        }
    }
}

/// Names in results are those that people use.
macro_rules! by_name {
    ($($module:ident: $type:ty, $all:expr;)+) => {
        $(pub(crate) mod $module {
            use super::*;
            use serde::{Deserializer, Serializer, de::Error};

            pub fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(value.name())
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let text = String::deserialize(deserializer)?;
                let found = $all.into_iter().find(|value| value.name() == text);
                found.ok_or_else(|| D::Error::custom(format!("{text:?} is no {}", stringify!($module))))
            }
        })+
    };
}

by_name! {
    program: Program, Program::ALL;
    inputs: Inputs, Inputs::ALL;
    mix: Mix, Mix::ALL;
    mechanism: Mechanism, Mechanism::ALL;
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name or path of the profile.
    pub profile: String,
    /// The program.
    #[serde(with = "program")]
    pub program: Program,
    /// Its inputs.
    #[serde(with = "inputs")]
    pub inputs: Inputs,
    /// Its requests, where it serves requests.
    #[serde(with = "mix")]
    pub mix: Mix,
    /// The mechanism; of no meaning without crash consistency.
    #[serde(with = "mechanism")]
    pub mechanism: Mechanism,
    /// Who makes the copies.
    pub configuration: Configuration,
    /// Cards.
    pub devices: usize,
    /// Units of each card that take commands.
    pub units: usize,
    /// Threads of the program.
    pub threads: usize,
    /// Transactions, of all threads together.
    pub count: usize,
    /// The paper's tables are divided by this.
    pub share: usize,
    /// Seed.
    pub seed: u64,
    /// What plays the card. Results from before there was a choice are of the model.
    #[serde(default, skip_serializing_if = "Device::is_model")]
    pub device: Device,
    /// What the library's instructions are charged by. Results from before there was a choice are
    /// charged alike.
    #[serde(default, skip_serializing_if = "Charge::is_alike")]
    pub charge: Charge,
}

/// Pools of a program with so many threads: memcached has one a thread, all others one.
pub fn pools(program: Program, threads: usize) -> usize {
    if program == Program::Memcached { threads } else { 1 }
}

impl Case {
    /// What one of its programs is made of, which has so many transactions and is the thread's.
    pub fn setup(&self, count: usize, thread: usize) -> Setup {
        let seed = self.seed.wrapping_mul(1_000) + thread as u64;
        Setup { inputs: self.inputs, seed, count, share: self.share, mix: self.mix }
    }

    /// What of a total each transaction has.
    pub fn each(&self, total: u64) -> f64 {
        total as f64 / self.count.max(1) as f64
    }

    /// A name that no other case has, fit for a file.
    pub fn key(&self) -> String {
        let profile: String = self.profile.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let device = if self.device.is_model() { "" } else { ".rtl" };
        let charge = if self.charge.is_alike() { "" } else { ".path" };
        format!(
            "{profile}.{}.{}.{}.{}.{}.d{}u{}t{}.n{}s{}.{}{device}{charge}",
            self.program.name(),
            self.inputs.name(),
            self.mix.name(),
            self.mechanism.name(),
            self.configuration.name(),
            self.devices,
            self.units,
            self.threads,
            self.count,
            self.share,
            self.seed
        )
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key())
    }
}
