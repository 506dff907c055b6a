//! When the power fails, and what is known of the moment.

use crate::core::Activity;

/// Something that can be seen at the card's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The card answered a write to a command page. The one that fills a slot is answered when its
    /// command is numbered.
    CommandAccepted,
    /// The card answered a write to persistent memory.
    WriteAccepted,
    /// The card answered a read of persistent memory.
    ReadAnswered,
    /// A completion record left the card.
    Completion,
    /// What the card shows of its inside, where [`crate::machine::Machine::watch_card`] asks for
    /// it.
    Inside(Activity),
}

impl Event {
    /// Every kind.
    pub const ALL: [Event; 7] = [
        Event::CommandAccepted,
        Event::WriteAccepted,
        Event::ReadAnswered,
        Event::Completion,
        Event::Inside(Activity::Issued),
        Event::Inside(Activity::Durable),
        Event::Inside(Activity::Retired),
    ];

    fn index(self) -> usize {
        Event::ALL.iter().position(|event| *event == self).expect("every kind is listed")
    }
}

/// An event that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// What happened.
    pub event: Event,
    /// At which card.
    pub card: usize,
    /// Cycle of the cards, since their power-up.
    pub cycle: u64,
}

/// The moment of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// When the card reaches this cycle, counted from its power-up.
    AtCycle(u64),
    /// Instead of the host's access of this number, from 1, counted from when the cut is armed.
    /// Every call that can notice a cut counts: loads, stores, write-backs, fences, configuration,
    /// polls, charged time.
    AtAccess(u64),
    /// Some cycles after an event at any card, counted from when the cut is armed.
    AfterEvent {
        /// The event.
        event: Event,
        /// Which one of its kind, from 1.
        count: u64,
        /// Cycles from there, at least one.
        delay_cycles: u64,
    },
}

/// A power cut that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRecord {
    /// Cycle of the card, since its power-up.
    pub cycle: u64,
    /// Where it came instead of an access of the host: which one since the power-up, as
    /// [`Cut::AtAccess`] counts them.
    pub access: Option<u64>,
    last: [Option<u64>; Event::ALL.len()],
}

impl CutRecord {
    /// Cycles from the last event of a kind to the cut; `None` where there was none since the
    /// power-up.
    pub fn since(&self, event: Event) -> Option<u64> {
        self.last[event.index()].map(|cycle| self.cycle.saturating_sub(cycle))
    }
}

/// What is armed, and which events there were.
#[derive(Default)]
pub struct Trigger {
    /// Cycle of the next cut, if it is known.
    pub cycle: Option<u64>,
    /// A cut that waits for an event: the event, how many more, the delay.
    event: Option<(Event, u64, u64)>,
    /// What the memory drops and tears at the cut.
    pub seed: u64,
    record: Option<Vec<EventRecord>>,
    last: [Option<u64>; Event::ALL.len()],
}

impl Trigger {
    /// Arms a power cut, in the place of one that is armed.
    pub fn arm(&mut self, cut: Option<Cut>, seed: u64) {
        self.seed = seed;
        self.cycle = None;
        self.event = None;
        match cut {
            Some(Cut::AtCycle(cycle)) => self.cycle = Some(cycle),
            Some(Cut::AfterEvent { event, count, delay_cycles }) => self.event = Some((event, count, delay_cycles)),
            Some(Cut::AtAccess(_)) | None => {}
        }
    }

    /// Forgets the events of the last power-up.
    pub fn power_up(&mut self) {
        self.last = Default::default();
    }

    /// Starts or ends the recording of events; gives what was recorded.
    pub fn record_events(&mut self, on: bool) -> Vec<EventRecord> {
        std::mem::replace(&mut self.record, on.then(Vec::new)).unwrap_or_default()
    }

    /// Whether a cut waits for an event.
    pub fn awaits_event(&self) -> bool {
        self.event.is_some()
    }

    /// Notes an event, and starts the delay of the cut that waits for it.
    pub fn note(&mut self, event: Event, card: usize, cycle: u64) {
        let last = &mut self.last[event.index()];
        *last = (*last).max(Some(cycle));
        if let Some(record) = &mut self.record {
            record.push(EventRecord { event, card, cycle });
        }
        if let Some((awaited, count, delay)) = &mut self.event
            && *awaited == event
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.cycle = Some(cycle + (*delay).max(1));
                self.event = None;
            }
        }
    }

    /// The record of a cut at a cycle, since which nothing was noted.
    pub fn record(&self, cycle: u64) -> CutRecord {
        CutRecord { cycle, access: None, last: self.last }
    }
}
