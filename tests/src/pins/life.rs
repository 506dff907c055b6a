//! The lives that chance does not bring, and where they come.

use nearpm_interface::geometry::MAP_ENTRIES;
use nearpm_interface::save::{ITEM_LINE, LINES_PER_ITEM, MAPPING_LINE};

/// A life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Counters and rings go round.
    Long,
    /// For each mapping entry, as many commands as there are places wait for other cards; software
    /// lets them go, or takes them away. The last ones still wait when the power goes.
    Crowded,
    /// Software takes away what the life before left.
    Forsaken,
    /// Logs fail in every slot, and stores to what they were to save are held in every line of the
    /// host queue.
    Latched,
    /// Memory answers no reads for a while, then no writes, and then not those of the save:
    /// everything asks for as much as it may.
    Unanswered,
    /// All units copy as much as a command may, from the last byte of a burst on.
    Longest,
    /// For each mapping entry, a command that has waited for other cards waits for a store that a
    /// failed log holds.
    Failing,
    /// Firmware is loaded while a command comes, or the other way round, a cycle later each time.
    Overtaken,
    /// A log fails, and in every other slot a command waits for a store that it holds. All of that
    /// is saved.
    Blocked,
    /// A line of the save could be read when it was checked, and cannot any more when it is
    /// restored.
    Faded(usize),
    /// One boot after the other, without a power cut between, replays as many stores as a save
    /// holds.
    Heaped,
    /// Others leave firmware and saves, in one boot after another of a card that has power all the
    /// time.
    Inherited,
}

/// Lives of the first memory, in the order in which they come.
pub const LIVES: [Life; 5] = [Life::Crowded, Life::Forsaken, Life::Latched, Life::Unanswered, Life::Long];

/// Lives of a memory of their own, behind the others, so that chance brings those what it brought
/// them before.
pub const LIVES_APART: [Life; 9] = [
    Life::Unanswered,
    Life::Longest,
    Life::Failing,
    Life::Overtaken,
    Life::Blocked,
    Life::Faded(MAPPING_LINE + MAP_ENTRIES / 2),
    Life::Faded(ITEM_LINE + LINES_PER_ITEM + 1),
    Life::Heaped,
    Life::Inherited,
];
