//! A bounded piece of card traffic, and what the memory may be after each part of it.

use std::hash::{BuildHasher, Hasher};

use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::geometry::{COMMAND_PAGES, SAVE_BASE, SAVE_BYTES, SLOTS_PER_PAGE};
use nearpm_sim::core::{Access, Medium};
use serde::{Deserialize, Serialize};

use crate::oracle::Oracle;
use crate::rig::medium;
use crate::trace::{Step, Timed};

/// What an access does to memory and to the mapping table once the card has accepted it.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Nothing: a load, a register, what is refused, a piece of a command that completes nothing.
    Nothing,
    /// The store itself.
    Store,
    /// The command that it is, or that it completes.
    Command(Command),
    /// The same, but a failed log may end its thread before.
    UnlessLatched(Command),
}

/// An access and when it is submitted.
#[derive(Clone, Debug)]
pub struct Event {
    /// Cycles after the submission of the one before.
    pub gap: u64,
    /// The access.
    pub access: Access,
    /// What it does.
    pub effect: Effect,
}

impl Event {
    /// Whether an answer to it says that it and all before it are accepted: loads wait for their
    /// data, and registers are no part of the one order.
    pub fn certifies(&self) -> bool {
        matches!(self.access, Access::CommandWrite { .. } | Access::PmWrite { .. })
    }
}

/// Traffic whose power is cut at every cycle.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Names it among all.
    pub name: String,
    /// What it belongs to.
    pub family: &'static str,
    /// Commands that are done before the first cut: further mappings.
    pub setup: Vec<Command>,
    /// The traffic.
    pub events: Vec<Event>,
    /// A line of memory that answers with an error until the power is cut.
    pub bad_line: Option<u64>,
    /// A reset clears the mapping table at a moment that no answer tells.
    pub resets: bool,
    /// Checksums of the firmware images of which one is in force.
    pub firmware: Vec<u32>,
}

impl Scenario {
    /// Traffic on the pool of [`crate::trace::POOL`], with the standard firmware.
    pub fn new(family: &'static str, name: impl Into<String>, events: Vec<Event>) -> Self {
        Scenario {
            name: name.into(),
            family,
            setup: Vec::new(),
            events,
            bad_line: None,
            resets: false,
            firmware: vec![image_checksum(nearpm_firmware::standard().bytes())],
        }
    }

    /// A trace, each command by one store of 64 bytes.
    pub fn of_trace(family: &'static str, name: impl Into<String>, trace: &[Timed]) -> Self {
        let mut slots = Slots::default();
        let event = |timed: &Timed| match &timed.step {
            Step::Command(command) => slots.whole(timed.gap, command, Effect::Command(*command)),
            Step::Malformed(command) => slots.whole(timed.gap, command, Effect::Nothing),
            Step::Host(access) => host(timed.gap, access.clone()),
        };
        Self::new(family, name, trace.iter().map(event).collect())
    }

    /// What may be found when the first so many accesses were accepted: one row for each number
    /// from 0 to all.
    pub fn expected(&self) -> Vec<Vec<State>> {
        let mapped = 1 + self.setup.len() as u32;
        let mut branches = vec![(Oracle::new(medium()), mapped)];
        let mut rows = vec![states(&branches)];
        for event in &self.events {
            match &event.effect {
                Effect::Nothing => {}
                Effect::Store => {
                    for (oracle, _) in &mut branches {
                        oracle.host(&event.access);
                    }
                }
                Effect::Command(command) => branches.iter_mut().for_each(|branch| execute(branch, command)),
                Effect::UnlessLatched(command) => {
                    let mut executed: Vec<_> =
                        branches.iter().map(|(o, mapped)| (Oracle::new(o.medium.clone()), *mapped)).collect();
                    executed.iter_mut().for_each(|branch| execute(branch, command));
                    branches.extend(executed);
                }
            }
            let same = matches!(event.effect, Effect::Nothing);
            let row = if same { rows.last().expect("the first row").clone() } else { states(&branches) };
            rows.push(row);
        }
        rows
    }
}

fn execute((oracle, mapped): &mut (Oracle, u32), command: &Command) {
    match Opcode::from_code(command.opcode) {
        Some(Opcode::Map) => *mapped += 1,
        Some(Opcode::Unmap) => *mapped -= 1,
        _ => oracle.command(command),
    }
}

fn states(branches: &[(Oracle, u32)]) -> Vec<State> {
    let state = |(oracle, mapped): &(Oracle, u32)| State { contents: contents(&oracle.medium), mapped: *mapped };
    let mut states: Vec<State> = branches.iter().map(state).collect();
    states.dedup();
    states
}

/// What is looked at behind a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// [`contents`] of the memory.
    pub contents: u64,
    /// Entries of the mapping table in use.
    pub mapped: u32,
}

/// A number that names the bytes of a medium but those of the save area.
pub fn contents(medium: &Medium) -> u64 {
    let end = (SAVE_BASE + SAVE_BYTES) as usize;
    let mut hasher = foldhash::quality::FixedState::with_seed(1).build_hasher();
    hasher.write(&medium.bytes[..SAVE_BASE as usize]);
    hasher.write(&medium.bytes[end..]);
    hasher.finish()
}

/// The checksum in the head of a firmware image.
pub fn image_checksum(image: &[u8]) -> u32 {
    u32::from_le_bytes(image[60..64].try_into().expect("an image has a head line"))
}

/// A host access.
pub fn host(gap: u64, access: Access) -> Event {
    let effect = if matches!(access, Access::PmWrite { .. }) { Effect::Store } else { Effect::Nothing };
    Event { gap, access, effect }
}

/// Hands out the slots of the command pages in turn, and numbers the commands by their tags.
#[derive(Default)]
pub struct Slots {
    next: usize,
}

impl Slots {
    fn take(&mut self, command: &Command) -> (u64, [u8; 64]) {
        let n = self.next;
        self.next += 1;
        let command = Command { tag: n as u32, ..*command };
        (slot_offset(n % COMMAND_PAGES, n / COMMAND_PAGES % SLOTS_PER_PAGE), command.encode())
    }

    /// A command by one store of 64 bytes.
    pub fn whole(&mut self, gap: u64, command: &Command, effect: Effect) -> Event {
        let (offset, data) = self.take(command);
        Event { gap, access: Access::CommandWrite { offset, data, strobes: u64::MAX }, effect }
    }

    /// A command from the privileged page.
    pub fn privileged(&mut self, gap: u64, command: &Command) -> Event {
        self.next = self.next.next_multiple_of(COMMAND_PAGES);
        self.whole(gap, command, Effect::Command(*command))
    }

    /// A command in pieces of whole words, in the order given; the last piece completes it where
    /// every word is named.
    pub fn pieces(&mut self, gap: u64, command: &Command, words: &[&[usize]]) -> Vec<Event> {
        let (offset, data) = self.take(command);
        let mut arrived = 0;
        let piece = |words: &&[usize]| {
            let strobes = words.iter().fold(0, |bits, word| bits | 0xff << (8 * word));
            arrived |= strobes;
            let effect = if arrived == u64::MAX { Effect::Command(*command) } else { Effect::Nothing };
            Event { gap, access: Access::CommandWrite { offset, data, strobes }, effect }
        };
        words.iter().map(piece).collect()
    }
}
