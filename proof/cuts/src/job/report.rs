//! What a run found.

use std::fmt;

use nearpm::Statistics;
use nearpm_sim::host::CutRecord;

use crate::cut::{Moment, PowerCut};
use nearpm_cards::CardCounters;
use nearpm_sim::saved::{Image, Saved};
use nearpm_text::{grouped, size, time};

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was run.
    pub title: String,
    /// The power cuts, in their order.
    pub crashes: Vec<Crash>,
    /// Operations, time, and counters of a run without a power cut.
    pub measured: Option<Measured>,
    /// Entries that were compared with the model at the end; `None` where the card reported a torn
    /// save, so that there is no such end.
    pub entries: Option<usize>,
}

/// A power cut and what came of it.
#[derive(Clone, Debug)]
pub struct Crash {
    /// The cut.
    pub fall: Fall,
    /// What the next power-up found.
    pub after: After,
}

/// What a power-up found of what a cut had left.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// Nothing: the next cut came before the end of its recovery.
    NextCut,
    /// The card reported that the save is torn.
    TornSave,
    /// The pool had not been made, and was made then.
    NoPool,
    /// The pool, as in the model.
    Recovered(Recovered),
}

impl Crash {
    /// The recovery that came to its end.
    pub fn recovered(&self) -> Option<Recovered> {
        match self.after {
            After::Recovered(recovered) => Some(recovered),
            After::NextCut | After::TornSave | After::NoPool => None,
        }
    }
}

/// What the power cut interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum During {
    /// The making of pool and structure.
    Making,
    /// The card's boot, with nothing to replay.
    Boot,
    /// The card's boot, with a save to replay, up to the end of the replay.
    Replay,
    /// From the end of the replay to an open pool.
    Recovery,
    /// The comparison of a recovered pool with the model.
    Check,
    /// Operations.
    Operations,
}

/// A power cut.
#[derive(Clone, Debug)]
pub struct Fall {
    /// What repeats it.
    pub cut: PowerCut,
    /// The card's side, where there is a card: the moment, and what was left in the save area.
    pub card: Option<(CutRecord, Saved)>,
    /// Lines in the host's caches that were stored to and not written back.
    pub lost_lines: usize,
    /// Simulated time at which the program noticed it, since the machine was made, in nanoseconds;
    /// 0 without a card.
    pub noticed_ns: u64,
    /// What it interrupted.
    pub during: During,
    /// Operations begun before it.
    pub started: usize,
    /// Operations acknowledged before it.
    pub acknowledged: usize,
}

/// A recovery that came to its end.
#[derive(Clone, Copy, Debug)]
pub struct Recovered {
    /// Operations whose effects were there, and nothing else.
    pub kept: usize,
    /// What the library did.
    pub recovery: nearpm::Recovery,
    /// Simulated time from power-up to an open pool; `None` without a card.
    pub ns: Option<u64>,
}

/// A run to its end.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Operations.
    pub operations: usize,
    /// Simulated time of them.
    pub ns: u64,
    /// The library's counters.
    pub pool: Statistics,
    /// The card's counters.
    pub card: CardCounters,
}

impl During {
    /// Words for it.
    fn words(self) -> &'static str {
        match self {
            During::Making => "in the making of the pool",
            During::Boot => "in the card's boot",
            During::Replay => "in the replay of a save",
            During::Recovery => "in the recovery of the pool",
            During::Check => "in the comparison with the model",
            During::Operations => "in operations",
        }
    }
}

impl Fall {
    /// A line on what the cut left in the save area.
    fn write_save(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((_, saved)) = self.card else { return Ok(()) };
        match (self.during, saved.image) {
            (During::Boot | During::Replay, Some(image)) => {
                writeln!(f, "  in flight      {} saved before, of them {} replayed", image.items(), image.replayed)
            }
            (_, Some(Image { commands, stores, .. })) => {
                writeln!(f, "  in flight      {commands} commands and {stores} stores, all saved")
            }
            (_, None) if saved.is_loss() => writeln!(f, "  in flight      unknown: the save is torn"),
            (_, None) => Ok(()),
        }
    }
}

impl fmt::Display for Fall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PowerCut { moment, energy } = self.cut;
        let after = time(self.noticed_ns);
        match (&self.card, moment) {
            (None, Moment::Access(event)) => write!(f, "at event {event} of memory")?,
            (None, moment) => write!(f, "at {}", PowerCut { moment, energy: None })?,
            (Some((record, _)), _) => {
                write!(f, "at cycle {} of the card, {}; ", grouped(record.cycle), self.during.words())?;
                write!(f, "noticed by the program {after} after the machine was switched on (simulated)")?;
            }
        }
        energy.map_or(Ok(()), |cycles| write!(f, "; energy for {} cycles of the save", grouped(cycles)))
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fall { started, acknowledged, .. } = self.fall;
        writeln!(f, "  power cut      {}", self.fall)?;
        writeln!(
            f,
            "  at that time   {} operations begun, {} acknowledged",
            grouped(started as u64),
            grouped(acknowledged as u64)
        )?;
        self.fall.write_save(f)?;
        let Recovered { kept, recovery: r, ns } = match &self.after {
            After::NextCut => return writeln!(f, "  recovery       interrupted by the next power cut"),
            After::TornSave => return writeln!(f, "  recovery       none: the card reports that its save is torn"),
            After::NoPool => return writeln!(f, "  recovery       none: the pool was not made yet, and is made now"),
            After::Recovered(recovered) => recovered,
        };
        write!(f, "  recovery       {} undone, {} redone, {} written", r.undone, r.redone, size(r.bytes))?;
        match ns {
            Some(ns) => writeln!(f, ", {} from power-up to an open pool (simulated)", time(*ns))?,
            None => writeln!(f)?,
        }
        writeln!(
            f,
            "  found          exactly the first {} operations: nothing acknowledged lost, nothing half done",
            grouped(*kept as u64)
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        self.crashes.iter().try_for_each(|crash| write!(f, "{crash}"))?;
        if let Some(m) = &self.measured {
            writeln!(
                f,
                "  time           {} simulated, {} an operation; {} commands, {} conflicts held",
                time(m.ns),
                time(m.ns / m.operations.max(1) as u64),
                grouped(m.card.commands),
                grouped(m.card.held)
            )?;
            writeln!(
                f,
                "  copied         {} by the processor, {} by the card",
                size(m.pool.bytes_by_cpu),
                size(m.pool.bytes_by_card)
            )?;
        }
        match self.entries {
            Some(entries) => {
                writeln!(f, "  at the end     {} entries, all as in the model", grouped(entries as u64))
            }
            None => Ok(()),
        }
    }
}
