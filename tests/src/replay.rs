//! Plays what was recorded at a card's ports to any card, at the same cycles after it is open.

use nearpm_interface::command::{Command, FLAG_COMPLETE};
use nearpm_interface::geometry::COMMAND_PAGE_BYTES;
use nearpm_sim::bench::{Records, wait_until_open};
use nearpm_sim::core::{Access, CardCore, Ticket};

use crate::agreement::{Item, command_kind};
use crate::drive::{Outcome, Run, WHOLE_SAVE};

/// Cycles after which a card that does not answer hangs.
const HANG_CYCLES: u64 = 2_000_000;

/// A recording that asks for a completion record of each command, so that all their times are seen.
pub struct Script {
    steps: Vec<(u64, Access, Option<Key>)>,
}

/// Page and tag of a command.
type Key = (usize, u32);

impl Script {
    /// From accesses with their cycles.
    ///
    /// # Panics
    /// If a command is written in pieces, or there is nothing.
    pub fn new(accesses: &[(u64, Access)]) -> Script {
        let first = accesses.first().expect("something was recorded").0;
        let step = |(cycle, access): &(u64, Access)| {
            let Access::CommandWrite { offset, data, strobes } = access else {
                return (cycle - first, access.clone(), None);
            };
            assert_eq!(*strobes, u64::MAX, "a command is one write");
            let command = Command::decode(data).expect("the driver's commands are whole");
            let command = Command { flags: command.flags | FLAG_COMPLETE, ..command };
            let key = (*offset as usize / COMMAND_PAGE_BYTES, command.tag);
            let access = Access::CommandWrite { offset: *offset, data: command.encode(), strobes: *strobes };
            (cycle - first, access, Some(key))
        };
        Script { steps: accesses.iter().map(step).collect() }
    }

    /// What is compared of each step.
    pub fn items(&self) -> Vec<Item> {
        let kind = |access: &Access| match access {
            Access::CommandWrite { data, .. } => Some(command_kind(Command::decode(data)?.opcode)),
            Access::PmRead { .. } => Some("load".into()),
            Access::CommandRead { .. } => Some("status line".into()),
            Access::RegisterRead { .. } | Access::RegisterWrite { .. } | Access::PmWrite { .. } => None,
        };
        self.steps.iter().map(|(at, access, _)| Item { submitted: *at, kind: kind(access) }).collect()
    }

    /// Plays it.
    ///
    /// # Panics
    /// If the card hangs, or answers a host access with an error.
    pub fn play(&self, mut card: Box<dyn CardCore>) -> Run {
        wait_until_open(&mut *card);
        let start = card.cycle();
        let mut tickets = Vec::with_capacity(self.steps.len());
        for (at, access, _) in &self.steps {
            card.advance_to(start + at);
            tickets.push(card.submit(access.clone()));
        }
        let mut records = Records::default();
        let outcomes: Vec<Outcome> = self
            .steps
            .iter()
            .zip(tickets)
            .map(|((_, access, key), ticket)| finish(&mut *card, &mut records, access, *key, ticket))
            .collect();
        // A store is answered when it is accepted: give the memory time to take the last ones.
        card.advance_to(card.cycle() + 2_000);
        let end = outcomes.iter().map(Outcome::cycle).max().unwrap_or(start);
        Run { outcomes, start, cycles: end - start, medium: card.power_fail(WHOLE_SAVE, 0) }
    }
}

/// Waits for what an access gives.
fn finish(
    card: &mut dyn CardCore,
    records: &mut Records,
    access: &Access,
    key: Option<Key>,
    ticket: Ticket,
) -> Outcome {
    let answer = card.wait(ticket, HANG_CYCLES);
    assert!(!answer.error, "the card refused {access:?}");
    match (access, key) {
        (_, Some(key)) => Outcome::Command { accepted: answer.cycle, done: records.wait_for(card, key) },
        (Access::PmRead { .. }, None) => Outcome::Load { cycle: answer.cycle, data: answer.data },
        _ => Outcome::Store { cycle: answer.cycle },
    }
}
