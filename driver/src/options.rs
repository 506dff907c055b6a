//! How a card is opened: what its users choose.

use crate::pci::Caching;

/// How to open a card.
#[derive(Clone, Debug)]
pub struct CardOptions {
    /// How commands are posted.
    pub posting: Posting,
    /// How their completions are waited for.
    pub waiting: Waiting,
    /// Image to load when the card has no firmware in force.
    pub firmware: Option<Vec<u8>>,
    /// Longest wait for the card, in nanoseconds of its transport's clock.
    pub timeout_ns: u64,
}

impl Default for CardOptions {
    fn default() -> Self {
        CardOptions { posting: Posting::default(), waiting: Waiting::default(), firmware: None, timeout_ns: 50_000_000 }
    }
}

/// How a command's 64 bytes reach the card. Each mode works on each card; they differ in cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Posting {
    /// One 64-byte store that is never split (MOVDIR64B), then a fence.
    #[default]
    Line,
    /// Write-combining stores, then a fence that drains the buffer.
    WriteCombining,
    /// Eight uncached 8-byte stores in program order, then a fence.
    Uncached,
}

impl Posting {
    /// How the command BAR has to be mapped for this mode.
    pub fn caching(self) -> Caching {
        match self {
            Posting::Line | Posting::WriteCombining => Caching::WriteCombining,
            Posting::Uncached => Caching::Uncached,
        }
    }
}

/// How a thread learns that a command has ended whose completion record it waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// It looks for the record again and again: soonest, and a processor is busy meanwhile.
    #[default]
    Polling,
    /// It sleeps until the page's MSI-X vector is signalled, and leaves the processor to others. An
    /// interrupt that is lost costs a millisecond, not the command; so may one that several pages
    /// share, where several threads sleep. What has no record (acceptance, room for a command, a
    /// drain) is polled for all the same.
    Interrupts,
}

/// Names, as users write them.
const WAITINGS: [(Waiting, &str); 2] = [(Waiting::Polling, "polling"), (Waiting::Interrupts, "interrupts")];

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(WAITINGS.iter().find(|(waiting, _)| waiting == self).map_or("", |(_, name)| name))
    }
}

impl std::str::FromStr for Waiting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Waiting, &'static str> {
        let found = WAITINGS.iter().find(|(_, name)| *name == text);
        found.map(|&(waiting, _)| waiting).ok_or("use polling or interrupts")
    }
}
