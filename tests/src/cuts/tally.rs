//! What an exploration has met, and what it found.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::scenario::State;

/// When the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// While the card worked; it had the energy for its save.
    Work,
    /// In the save, whose energy ended there.
    Save,
    /// In boot or replay, without any energy.
    Boot,
    /// In boot or replay, with the energy for a save.
    BootWithEnergy,
}

/// A power cut, as a message names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// When.
    pub moment: Moment,
    /// Cycles since the first access, since the power went, or since power-up.
    pub cycle: u64,
    /// Which draw of what the memory drops and tears.
    pub draw: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.moment {
            Moment::Work => "in cycle",
            Moment::Save => "the save ended in its cycle",
            Moment::Boot => "without energy in cycle of the boot",
            Moment::BootWithEnergy => "in cycle of the boot",
        };
        write!(f, "{when} {}", self.cycle)?;
        if self.draw > 0 { write!(f, " (draw {})", self.draw) } else { Ok(()) }
    }
}

/// What stands behind a power-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// The card opened.
    Open {
        /// Memory and mapping table.
        state: State,
        /// Checksum of the firmware in force.
        firmware: u32,
        /// Items that were replayed.
        replayed: u32,
    },
    /// The card reports a loss.
    Loss,
}

/// What is to be known of the memory that a cut leaves, by that memory alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    /// What stands behind a power-up.
    pub found: Found,
    /// The word that says which generation is armed.
    pub armed: u64,
    /// A generation was running and there is no whole image of it.
    pub is_loss: bool,
    /// Commands are left to replay.
    pub commands: bool,
    /// Stores are left to replay.
    pub stores: bool,
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The cuts, one in what followed the other.
    pub cuts: Vec<Cut>,
    /// What was found.
    pub words: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cuts: Vec<String> = self.cuts.iter().map(Cut::to_string).collect();
        let cuts =
            if cuts.is_empty() { "without a power cut".into() } else { format!("power cut {}", cuts.join(", then ")) };
        write!(f, "{cuts}: {}", self.words)
    }
}

/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Scenarios whose work was cut at every cycle.
    pub scenarios: u64,
    /// Saves that were cut at every cycle.
    pub saves: u64,
    /// Boots and replays that were cut at every cycle.
    pub replays: u64,
    /// Boots and replays behind a cut of such a one that were cut at every cycle, too.
    pub second_replays: u64,
    /// Recoveries of striped pools that were cut, each in some of its cycles.
    pub recoveries: u64,
    /// Cuts in a recovery behind one that was cut.
    pub second_recoveries: u64,
    /// Cuts by [`Moment`].
    pub cuts: [u64; 4],
    /// Cuts that left memory with which no card had been powered up before.
    pub distinct: u64,
    /// Cuts that left commands to replay.
    pub with_commands: u64,
    /// Cuts that left stores to replay.
    pub with_stores: u64,
    /// Cuts behind which the library's recovery found commands that waited for other cards, and
    /// decided about them.
    pub decided: u64,
    /// Cuts at which the memory owed writes their answer, and kept, dropped or tore each.
    pub torn: u64,
    /// Losses, all of them without the energy for a save and reported.
    pub losses: u64,
    /// Card cycles that were simulated.
    pub cycles: u64,
}

impl Tally {
    /// Cuts of all kinds.
    pub fn all_cuts(&self) -> u64 {
        self.cuts.iter().sum()
    }

    /// Counts a cut.
    pub fn count(&mut self, moment: Moment, remains: &Remains) {
        self.cuts[moment as usize] += 1;
        self.with_commands += u64::from(remains.commands);
        self.with_stores += u64::from(remains.stores);
    }

    /// Adds the counters of another one.
    pub fn add(&mut self, other: &Tally) {
        self.scenarios += other.scenarios;
        self.saves += other.saves;
        self.replays += other.replays;
        self.second_replays += other.second_replays;
        self.recoveries += other.recoveries;
        self.second_recoveries += other.second_recoveries;
        self.cuts.iter_mut().zip(other.cuts).for_each(|(mine, theirs)| *mine += theirs);
        self.distinct += other.distinct;
        self.with_commands += other.with_commands;
        self.with_stores += other.with_stores;
        self.decided += other.decided;
        self.torn += other.torn;
        self.losses += other.losses;
        self.cycles += other.cycles;
    }

    /// The counters and the rate, for people.
    pub fn report(&self, time: Duration) -> String {
        let [work, save, boot, boot_with_energy] = self.cuts;
        let (seconds, cycles) = (time.as_secs_f64(), self.cycles as f64);
        format!(
            "{} scenarios cut at every cycle, and {} saves, {} boots or replays and {} recoveries behind such cuts; {} second boots or replays at every cycle, and {} cuts in second recoveries\n\
             {} cuts: {work} in the work, {save} in a save, {} in a boot or replay ({boot} without energy)\n\
             {} distinct memories powered up; commands were left to replay {} times, stores {} times; {} recoveries met commands that waited for other cards\n\
             {} cuts met writes that the memory had not answered; {} losses, each for want of energy and each reported\n\
             {:.1} million cycles simulated in {seconds:.0} s: {:.2} million a second",
            self.scenarios,
            self.saves,
            self.replays,
            self.recoveries,
            self.second_replays,
            self.second_recoveries,
            self.all_cuts(),
            boot + boot_with_energy,
            self.distinct,
            self.with_commands,
            self.with_stores,
            self.decided,
            self.torn,
            self.losses,
            cycles / 1e6,
            cycles / 1e6 / seconds.max(1e-9),
        )
    }
}

/// What a copy of the process hands back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    /// Counters.
    pub tally: Tally,
    /// Memories by their [`super::fingerprint::Fingerprint`], and what a card makes of them.
    pub known: Vec<(u64, Remains)>,
    /// The time was over before all cuts were made.
    pub cut_short: bool,
    /// The first violation.
    pub failure: Option<Failure>,
}

impl Findings {
    /// Adds what was found elsewhere.
    pub fn add(&mut self, other: Findings) {
        self.tally.add(&other.tally);
        self.known.extend(other.known);
        self.cut_short |= other.cut_short;
        if self.failure.is_none() {
            self.failure = other.failure;
        }
    }
}
