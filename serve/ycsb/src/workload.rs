//! Workloads: which requests there are, and how many of each.

use std::str::FromStr;

use nearpm_workloads::programs::ycsb::Mix;
use serde::Serialize;

/// Records that a scan asks for at most (YCSB's `maxscanlength`).
pub const MOST_SCANNED: u64 = 100;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A record is read whole.
    Read,
    /// A field of a record is written, or the record, where it is one value.
    Update,
    /// A new record is written.
    Insert,
    /// A record is read and then updated. It counts as one operation.
    ReadModifyWrite,
    /// Records are read in the order of their keys, from one on.
    Scan,
}

impl Kind {
    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Update => "update",
            Kind::Insert => "insert",
            Kind::ReadModifyWrite => "read-modify-write",
            Kind::Scan => "scan",
        }
    }
}

/// Which records are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// By popularity, and the popular ones lie scattered.
    Scrambled,
    /// By popularity, which falls with the number.
    Ranked,
    /// By popularity, the newest first.
    Latest,
}

/// The core workloads (Cooper et al., SoCC 2010, section 4, and F of the benchmark's distribution),
/// and the paper's variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Insert every record
    Load,
    /// Half reads, half updates
    A,
    /// 95 % reads, the rest updates
    B,
    /// Reads only
    C,
    /// 95 % reads of the latest records, the rest inserts
    D,
    /// 95 % scans, the rest inserts
    E,
    /// Half reads, half reads with an update behind them
    F,
    /// w1, w3, w4, wtail
    Paper(Mix),
}

impl Workload {
    /// Every one.
    pub fn all() -> impl Iterator<Item = Workload> {
        use Workload::*;
        [Load, A, B, C, D, E, F].into_iter().chain(Mix::ALL.map(Paper))
    }

    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Load => "load",
            Workload::A => "a",
            Workload::B => "b",
            Workload::C => "c",
            Workload::D => "d",
            Workload::E => "e",
            Workload::F => "f",
            Workload::Paper(mix) => mix.name(),
        }
    }

    /// Reads among a hundred operations, and what the others are.
    fn mix(self) -> (u32, Kind) {
        match self {
            Workload::Load => (0, Kind::Insert),
            Workload::A => (50, Kind::Update),
            Workload::B => (95, Kind::Update),
            Workload::C => (100, Kind::Update),
            Workload::D | Workload::E => (95, Kind::Insert),
            Workload::F => (50, Kind::ReadModifyWrite),
            Workload::Paper(Mix::W1) => (0, Kind::Insert),
            Workload::Paper(mix) => (mix.reads(), Kind::Update),
        }
    }

    /// The kind of operation of a number drawn below a hundred.
    pub fn kind(self, drawn: u32) -> Kind {
        let (reads, other) = self.mix();
        let read = if self == Workload::E { Kind::Scan } else { Kind::Read };
        if drawn < reads { read } else { other }
    }

    /// Which records are asked for. The paper's variants ask as the programs of the evaluation do.
    pub fn distribution(self) -> Distribution {
        match self {
            Workload::D => Distribution::Latest,
            Workload::Paper(_) => Distribution::Ranked,
            _ => Distribution::Scrambled,
        }
    }

    /// Whether it asks for records that must be there.
    pub fn needs_records(self) -> bool {
        self.mix() != (0, Kind::Insert)
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        let name = text.to_ascii_lowercase();
        let names = || Workload::all().map(Workload::name).collect::<Vec<_>>().join(", ");
        Workload::all().find(|w| w.name() == name).ok_or_else(|| format!("there are {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        for workload in Workload::all() {
            assert_eq!(workload.name().parse(), Ok(workload));
            assert_eq!(workload.name().to_uppercase().parse(), Ok(workload));
        }
        assert!("w2".parse::<Workload>().expect_err("there is none").contains("w1, w3, w4, wtail"));
    }

    #[test]
    fn shares_are_those_of_the_definitions() {
        let share = |workload: Workload, kind| (0..100).filter(|&drawn| workload.kind(drawn) == kind).count();
        for (workload, kind, expected) in [
            (Workload::Load, Kind::Insert, 100),
            (Workload::A, Kind::Read, 50),
            (Workload::A, Kind::Update, 50),
            (Workload::B, Kind::Read, 95),
            (Workload::B, Kind::Update, 5),
            (Workload::C, Kind::Read, 100),
            (Workload::D, Kind::Read, 95),
            (Workload::D, Kind::Insert, 5),
            (Workload::E, Kind::Scan, 95),
            (Workload::E, Kind::Insert, 5),
            (Workload::F, Kind::Read, 50),
            (Workload::F, Kind::ReadModifyWrite, 50),
            (Workload::Paper(Mix::W1), Kind::Insert, 100),
            (Workload::Paper(Mix::W3), Kind::Read, 50),
            (Workload::Paper(Mix::W3), Kind::Update, 50),
            (Workload::Paper(Mix::W4), Kind::Read, 75),
            (Workload::Paper(Mix::W4), Kind::Update, 25),
            (Workload::Paper(Mix::Wtail), Kind::Update, 100),
        ] {
            assert_eq!(share(workload, kind), expected, "{workload:?} {kind:?}");
        }
    }
}
