//! What a history has left, held against its answers.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use nearpm_gphash::{Outcome, Table};
use nearpm_gpu::{Device, Interpreted, Medium, PmRegion};

use crate::linear::{Answered, Event, State, is_linearizable};
use crate::trial::{Left, Trial};
use crate::values::{MEMORY, VALUE, number_of};

impl Trial<'_> {
    /// Recovers what is there, and compares it with the answers.
    pub(crate) fn judge(&self, left: &Left) -> Result<()> {
        let ends = self.recovered(&left.image)?;
        if let Some(cached) = &left.cached {
            ensure!(*cached == ends, "the cache has {cached:?}, the table {ends:?}");
        }
        self.explained(left, &ends)
    }

    /// What recovery finds of each key in a table that is sound. The answers have no part in it.
    pub(crate) fn recovered(&self, image: &[u8]) -> Result<Vec<State>> {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device, Medium::of_bytes(image.to_vec()))?;
        let table = Table::open_with(&region, "table", &self.subject.module)?;
        let found = table.check()?;
        ensure!(found.is_sound(), "the table is not sound: {found}");
        self.states(&table)
    }

    /// Holds the answers against what is there of each key.
    pub(crate) fn explained(&self, left: &Left, ends: &[State]) -> Result<()> {
        let events = self.events(left)?;
        for (key, &end) in (1..).zip(ends) {
            let before = self.before.contains(&key).then_some(0);
            let of_key: Vec<Event> = events.iter().filter(|event| event.key == key).copied().collect();
            ensure!(
                is_linearizable(&of_key, before, Some(end)),
                "key {key}, {before:?} before and {end:?} at the end: no order explains\n{}",
                of_key.iter().map(|event| format!("  {event:?}\n")).collect::<String>()
            );
        }
        Ok(())
    }

    fn events(&self, left: &Left) -> Result<Vec<Event>> {
        let bytes = &left.image[self.answers_at as usize..][..16 * self.ops.len()];
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let (begun, answers) = words.split_at(self.ops.len());
        self.ops
            .iter()
            .enumerate()
            .map(|(at, &(op, key))| {
                let answer = match &left.answers {
                    // A batch's operations are all at the same time.
                    Some((outcomes, found)) => {
                        let place = self.place(at);
                        let value = number_of(&found[place * VALUE as usize..][..VALUE as usize]);
                        Some(Answered { at: 1, outcome: outcomes[place], value })
                    }
                    None if answers[at] == 0 => None,
                    None => {
                        let outcome = Outcome::from_code((answers[at] >> 32) as u32 & 0xff);
                        let outcome =
                            outcome.with_context(|| format!("operation {at} left the answer {:#x}", answers[at]))?;
                        Some(Answered { at: answers[at] >> 40, outcome, value: answers[at] as u32 })
                    }
                };
                Ok(Event { op, key, value: at as u32 + 1, begun: begun[at], answer })
            })
            .collect()
    }
}
