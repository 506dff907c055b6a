//! What commands write to the card's file.
//!
//! The file is what a card holds that goes on without its computer: every item that it has accepted
//! carried out, in the order of arrival (C1). So a command writes the file as soon as it has
//! arrived whole, and reads what has arrived before it; when the simulated card gets to it does not
//! matter. A process that is killed in the middle of such a write leaves a part of it: of a log
//! entry, which is none then; of what is copied from a log that is committed or undone, which the
//! recovery copies again; of a page that nothing names; and words are written at once.

use std::collections::BTreeMap;
use std::ops::Range;

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::effect::Effect;
use nearpm_interface::geometry::{COMMAND_PAGE_BYTES, LINE, LINE_U64, MAP_ENTRIES, SLOTS_PER_PAGE};

use crate::image::Image;

/// Commands that arrive, and the pools that they are about.
#[derive(Default)]
pub struct Commands {
    /// Commands of which a part has come: by offset, the bytes and which of them are there.
    parts: BTreeMap<u64, ([u8; LINE], u64)>,
    /// Where the mapped pools lie, by pool and thread.
    places: BTreeMap<(u32, u16), Range<u64>>,
}

impl Commands {
    /// A part of a line of the command BAR has arrived.
    pub fn write(&mut self, offset: u64, data: &[u8; LINE], strobes: u64, image: &Image) {
        // Behind the slots of a page lies its status.
        if offset % COMMAND_PAGE_BYTES as u64 / LINE_U64 >= SLOTS_PER_PAGE as u64 {
            return;
        }
        let (line, there) = self.parts.entry(offset).or_insert(([0; LINE], 0));
        if *there & strobes != 0 {
            *there = 0;
        }
        let chosen = |byte: usize| strobes >> byte & 1 == 1;
        (0..LINE).filter(|&byte| chosen(byte)).for_each(|byte| line[byte] = data[byte]);
        *there |= strobes;
        if *there == u64::MAX {
            let command = Command::decode(line);
            self.parts.remove(&offset);
            if let Some(command) = command {
                self.carry_out(&command, image);
            }
        }
    }

    fn carry_out(&mut self, command: &Command, image: &Image) {
        let key = (command.pool, command.thread);
        match Opcode::from_code(command.opcode) {
            Some(Opcode::Map) if self.places.len() < MAP_ENTRIES => {
                self.places.entry(key).or_insert(command.source..command.source.saturating_add(command.destination));
            }
            Some(Opcode::Unmap) => drop(self.places.remove(&key)),
            _ => {
                let Some(place) = self.places.get(&key).filter(|place| place.end <= image.bytes()) else { return };
                let bytes = place.end - place.start;
                // What leaves the pool is refused by the card, too.
                if command.source.saturating_add(command.length.into()) > bytes {
                    return;
                }
                let load = |range: Range<u64>| image.load(place.start + range.start..place.start + range.end);
                let Some(effect) = Effect::of(command, load) else { return };
                if effect.destination.saturating_add(effect.bytes.len() as u64) <= bytes {
                    image.store_bytes(place.start + effect.destination, &effect.bytes);
                }
            }
        }
    }
}
