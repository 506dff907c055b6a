//! The table of MultiDevice: commands that wait for other devices, and software's view of them.
//!
//! A command whose descriptor *synchronises* goes to a unit only when every participant of its
//! transaction has reported, and a command that is ordered or synchronises stays behind one of its
//! (pool, thread) that waits. Until then it lies here, *parked*, and holds no request slot, no
//! range, no unit and no host line. A place is kept for it before it is numbered, so that it can
//! always leave its slot: a command that finds no place is refused. When its turn has come it is
//! numbered again, behind everything that was accepted meanwhile.

use nearpm_interface::command::Command;
use nearpm_interface::firmware::{Descriptor, descriptor};
use nearpm_interface::geometry::{LINE, MAX_DEVICES, PARKED_COMMANDS};
use nearpm_interface::registers::parked_action;
use nearpm_interface::save::{ITEM_PARKED, SavedItem};
use nearpm_interface::status::Status;

use super::ModelCard;
use super::entry::Entered;
use super::phase::Phase;
use crate::model::fault::Fault;
use crate::model::item::Item;
use crate::model::order::Slot;
use crate::model::trace::What;

/// A command that waits.
#[derive(Clone, Copy)]
pub struct Parked {
    /// The command as it was posted.
    pub raw: [u8; LINE],
    /// The same by fields.
    pub command: Command,
    /// Operand descriptor.
    pub descriptor: Descriptor,
    /// Order number under which it was accepted.
    pub order: u64,
    /// Page that it came from.
    pub page: u8,
    /// Mapping entry.
    pub entry: u8,
    /// Software has decided that its transaction is committed.
    pub forced: bool,
}

/// The places, and which one the registers show.
#[derive(Default)]
pub struct Table {
    places: [Option<Parked>; PARKED_COMMANDS],
    /// Places in use, one bit each.
    used: u32,
    select: u32,
}

impl Table {
    /// Commands with their places.
    fn iter(&self) -> impl Iterator<Item = (u8, &Parked)> {
        self.places.iter().enumerate().filter_map(|(place, parked)| Some((place as u8, parked.as_ref()?)))
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The command of a mapping entry that goes first.
    pub fn oldest(&self, entry: u8) -> Option<(u8, &Parked)> {
        self.iter().filter(|(_, parked)| parked.entry == entry).min_by_key(|(_, parked)| parked.order)
    }

    /// One bit per mapping entry with a command that waits.
    pub fn entries(&self) -> u32 {
        self.iter().fold(0, |mask, (_, parked)| mask | 1 << parked.entry)
    }

    fn selected(&self) -> Option<&Parked> {
        self.places.get(self.select as usize)?.as_ref()
    }
}

impl ModelCard {
    /// Participants other than this device.
    fn others(&self, command: &Command) -> u32 {
        command.participants & !1u32.checked_shl(self.device).unwrap_or(0)
    }

    /// Whether a command may have to wait, so that a place must be kept for it.
    pub(in crate::model) fn may_park(&self, command: &Command, d: Descriptor, entry: u8) -> bool {
        let synchronises = d.flag(descriptor::SYNCHRONISES);
        let follows = synchronises || d.flag(descriptor::ORDERED);
        let earlier = || self.is_behind(entry, u64::MAX) || self.order.has_parking(entry);
        synchronises && self.others(command) != 0 || follows && earlier()
    }

    /// Whether another command may be numbered that may have to wait.
    pub(in crate::model) fn has_place(&self) -> bool {
        let kept = self.order.parking().count();
        kept + (self.parked.used.count_ones() as usize) < PARKED_COMMANDS
    }

    /// Whether a command of a mapping entry that was accepted before another one waits, or has
    /// waited and has not retired. The latter was numbered again, perhaps behind the one that asks.
    fn is_behind(&self, entry: u8, accepted: u64) -> bool {
        let waits = self.parked.oldest(entry).is_some_and(|(_, parked)| parked.order < accepted);
        (waits || self.order.has_released(entry, accepted)) && self.fault != Some(Fault::LaterPassesParked)
    }

    /// Participants of a command that have not come as far.
    fn missing(&self, command: &Command, entry: u8) -> u32 {
        let Some(mapping) = self.map.get(entry) else { return 0 };
        let behind = |device: &usize| mapping.heard[*device] < command.txid;
        let devices = (0..MAX_DEVICES).filter(behind).fold(0, |mask, device| mask | 1 << device);
        self.others(command) & devices
    }

    /// Whether a command that is about to be issued has to wait. If it reports, it does so now.
    pub(in crate::model) fn must_park(&mut self, slot: u8) -> bool {
        let Slot { command, descriptor: d, entry, released, accepted, .. } = self.order.slots[slot as usize];
        if released {
            return false;
        }
        let synchronises = d.flag(descriptor::SYNCHRONISES);
        let behind = (synchronises || d.flag(descriptor::ORDERED)) && self.is_behind(entry, accepted);
        if !behind || self.fault == Some(Fault::ReportsBehindParked) {
            self.reach(&command, d, entry);
        }
        let waits_for_peers = synchronises && self.missing(&command, entry) != 0;
        behind || waits_for_peers && self.fault != Some(Fault::SynchronisesWithNobody)
    }

    /// An ordered command that synchronises has come to its turn: everything of its thread before
    /// it is durable.
    pub(in crate::model) fn reach(&mut self, command: &Command, d: Descriptor, entry: u8) {
        if !d.flag(descriptor::SYNCHRONISES) || !d.flag(descriptor::ORDERED) || self.others(command) == 0 {
            return;
        }
        if let Some(mapping) = self.map.get_mut(entry).filter(|mapping| mapping.reached < command.txid) {
            mapping.reached = command.txid;
            self.tell(entry);
        }
    }

    /// Takes a command out of its slot into the table.
    pub(in crate::model) fn park(&mut self, slot: u8) {
        let Slot { raw, command, descriptor, accepted: order, page, entry, .. } = self.order.slots[slot as usize];
        let forced = false;
        self.put_parked(Parked { raw, command, descriptor, order, page, entry, forced });
        let item = Item::Slot(slot);
        self.order.slots[slot as usize].parks = false;
        self.trace(What::Parked { item });
        if self.fault != Some(Fault::ParkedHoldsItsSlot) {
            self.release(item);
        }
        self.after_retirement(Status::Ok.code());
    }

    /// Puts a command into a free place.
    fn put_parked(&mut self, parked: Parked) {
        let place = self.parked.used.trailing_ones();
        self.parked.places[place as usize] = Some(parked);
        self.parked.used |= 1 << place;
        self.ask_later();
    }

    /// What is first in its thread reports, and goes on if it waits for nothing more and there is a
    /// slot.
    pub(in crate::model) fn release_parked(&mut self) {
        let runs = matches!(self.persistence.phase, Phase::Open | Phase::Reset | Phase::ShutDown);
        if self.parked.is_empty() || !runs || self.quiesce || self.failing {
            return;
        }
        let mut entries = self.parked.entries();
        while entries != 0 {
            let entry = entries.trailing_zeros() as u8;
            entries &= entries - 1;
            if self.order.has_released(entry, u64::MAX) {
                continue;
            }
            let (place, &parked) = self.parked.oldest(entry).expect("the entry has a command");
            let Parked { command, descriptor: d, forced, .. } = parked;
            self.reach(&command, d, entry);
            let missing = d.flag(descriptor::SYNCHRONISES) && !forced && self.missing(&command, entry) != 0;
            if missing || self.order.free_slot().is_none() {
                continue;
            }
            // In its slot and in the table at once: it is never in neither.
            let entered = self.enter_released(&parked);
            debug_assert_eq!(entered, Entered::Numbered, "it was accepted before");
            self.leave(place);
        }
    }

    /// Frees a place.
    fn leave(&mut self, place: u8) {
        if let Some(gone) = self.parked.places[place as usize].take() {
            self.parked.used &= !(1 << place);
            self.drop_orphan(gone.entry);
        }
    }

    /// Frees a mapping entry that a function-level reset left to its parked commands, with the last
    /// of them.
    pub(in crate::model) fn drop_orphan(&mut self, entry: u8) {
        let orphan = self.map.get(entry).is_some_and(|mapping| mapping.orphan);
        if orphan && self.parked.oldest(entry).is_none() && !self.order.has_slot(entry) {
            self.map.set(entry, None);
        }
    }

    /// Carries out what software has decided about a place.
    pub(in crate::model) fn act_on_parked(&mut self, value: u32) {
        let place = (value & 0xff) as usize;
        if !self.window_open() {
            return;
        }
        let Some(Some(parked)) = self.parked.places.get_mut(place) else { return };
        match value >> 8 & 0xff {
            parked_action::RELEASE => {
                parked.forced = true;
                self.release_parked();
            }
            parked_action::DISCARD if !self.peers.speaks || self.fault == Some(Fault::DiscardsWhileSpeaking) => {
                let Parked { command, descriptor, page, entry, .. } = *parked;
                if descriptor.flag(descriptor::UNMAPS)
                    && let Some(mapping) = self.map.get_mut(entry)
                {
                    mapping.closing = mapping.orphan;
                }
                self.refuse_command(page, &command, Status::Discarded);
                self.leave(place as u8);
                self.release_parked();
            }
            _ => {}
        }
    }

    /// Parked commands as the save holds them.
    pub(in crate::model) fn saved_parked(&self) -> impl Iterator<Item = ([u8; LINE], SavedItem)> {
        let lost = self.fault == Some(Fault::ParkedIsNotSaved);
        self.parked.iter().filter(move |_| !lost).map(|(_, parked)| {
            let Parked { raw, order, page, .. } = *parked;
            (raw, SavedItem { order, kind: ITEM_PARKED, page, ..SavedItem::default() })
        })
    }

    /// Puts a saved command back; nothing of its thread was replayed before it that waits.
    pub(in crate::model) fn restore_parked(&mut self, raw: [u8; LINE], item: &SavedItem) {
        let command = Command::from_bytes(&raw);
        let descriptor = self.firmware.descriptor(command.opcode);
        let Some(entry) = self.map.find(command.pool, command.thread) else { return };
        if descriptor.flag(descriptor::UNMAPS)
            && let Some(mapping) = self.map.get_mut(entry)
        {
            mapping.closing = true;
        }
        let (order, page) = (item.order, item.page);
        self.put_parked(Parked { raw, command, descriptor, order, page, entry, forced: false });
    }

    /// Does again what a command that a replay does not execute did to the table; whether it waits.
    pub(in crate::model) fn park_again(&mut self, raw: [u8; LINE], item: &SavedItem) -> bool {
        let command = Command::from_bytes(&raw);
        let d = self.firmware.descriptor(command.opcode);
        let Some(entry) = self.map.find(command.pool, command.thread) else { return false };
        let waits = item.released == 0 && self.may_park(&command, d, entry);
        if self.parked.oldest(entry).is_none() {
            self.reach(&command, d, entry);
        }
        if waits {
            self.restore_parked(raw, item);
        }
        waits
    }

    /// Value of a register of the table.
    pub(in crate::model) fn read_parked(&self, offset: u32) -> u32 {
        use nearpm_interface::registers as r;
        if offset == r::PARKED {
            return self.parked.used;
        }
        if offset == r::PARKED_SELECT {
            return self.parked.select;
        }
        let Some(&Parked { command: c, entry, .. }) = self.parked.selected() else { return 0 };
        match offset {
            r::PARKED_POOL => c.pool,
            r::PARKED_THREAD => c.thread as u32 | (c.opcode as u32) << 16 | c.participants << 24,
            r::PARKED_TXID_LO => c.txid as u32,
            r::PARKED_TXID_HI => (c.txid >> 32) as u32,
            r::PARKED_REACHED => {
                let own = c.participants & !self.others(&c);
                let turn = self.map.get(entry).is_some_and(|mapping| mapping.reached >= c.txid);
                self.others(&c) & !self.missing(&c, entry) | if turn { own } else { 0 }
            }
            _ => 0,
        }
    }

    /// Selects the place that the registers show.
    pub(in crate::model) fn select_parked(&mut self, place: u32) {
        self.parked.select = place;
    }
}
