//! When the power fails.

/// Something that can be seen at the card's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// The card answered a write to a command page. The one that fills a slot is answered when its command is numbered.
    CommandAccepted,
    /// The card answered a write to persistent memory.
    WriteAccepted,
    /// The card answered a read of persistent memory.
    ReadAnswered,
    /// A completion record left the card.
    Completion,
}

/// An event that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// What happened.
    pub event: Event,
    /// Cycle of the card, since its power-up.
    pub cycle: u64,
}

/// The moment of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// When the card reaches this cycle, counted from its power-up.
    AtCycle(u64),
    /// Instead of the host's access of this number, from 1, counted from when the cut is armed. Every call that can notice a cut
    /// counts: loads, stores, write-backs, fences, configuration, polls, charged time.
    AtAccess(u64),
    /// Some cycles after an event, counted from when the cut is armed.
    AfterEvent {
        /// The event.
        event: Event,
        /// Which one of its kind, from 1.
        count: u64,
        /// Cycles from there, at least one.
        delay_cycles: u64,
    },
}
