//! Persistence: the card's state, from boot over replay to the power-fail save.
//!
//! The rules are those of [`nearpm_interface::save`] and the text of `docs/hardware.md`. Where
//! these are silent:
//! - From the moment at which the arm word of a generation is on its way to memory, that generation
//!   is saved at power-fail like an open one, though nothing has been accepted: otherwise a cut
//!   between the store and the opening would look like a torn save.
//! - A replay that resumes does not execute the items that the progress word counts, but does again
//!   what they did to the mapping table, which the image holds as it was before them.
//! - Shutting down while a failed log holds stores, or a command waits for other devices, leaves a
//!   save instead of the clean word.

use nearpm_interface::command::Command;
use nearpm_interface::firmware::descriptor;
use nearpm_interface::firmware::{IMAGE_BYTES, IMAGE_LINES};
use nearpm_interface::geometry::{
    FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, FIRMWARE_SLOTS, LINE, LINE_U64, MAP_ENTRIES, SAVE_BASE,
};
use nearpm_interface::registers::{firmware_status, state};
use nearpm_interface::save::{
    ARM_LINE, ArmWord, FIRMWARE_WORD_OFFSET, FIRMWARE_WORD_TAG, HEAD_LINE, ITEM_COMMAND, ITEM_LINE, ITEM_PARKED,
    ITEM_STORE, LINES_PER_ITEM, MAPPING_LINE, MAX_ITEMS, PROGRESS_LINE, ProgressWord, SAVE_MAGIC, SAVE_VERSION,
    SaveHead, SavedItem, SavedMapping, firmware_word,
};
use nearpm_interface::seal;

use super::entry::{Entered, Origin};
use super::lost::Lost;
use super::phase::Phase;
use super::port::SYSTEM;
use super::{ModelCard, Ring, Signal};
use crate::model::fault::Fault;
use crate::model::firmware::Firmware;
use crate::model::item::Item;
use crate::model::memory::{Burst, Token, WriteBeat, burst_lines};
use crate::model::order::HostLine;
use crate::model::trace::What;

/// Who a burst of the system port belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Owner {
    Persistence = 0,
    Loader = 1,
}

/// Requests of the system port.
#[derive(Default)]
pub struct System {
    pub reads: std::collections::VecDeque<Burst>,
    pub writes: std::collections::VecDeque<(Burst, Vec<WriteBeat>)>,
    /// Writes of Persistence that are not answered.
    unanswered: u32,
}

/// A firmware load under way.
pub struct Loader {
    slot: u8,
    /// Checksum that the image must have at boot.
    expected: Option<u32>,
    /// Body lines, then the head line, as they come.
    lines: Vec<[u8; LINE]>,
    error: bool,
    /// Verified; its firmware word is on the way.
    verified: Option<Box<Firmware>>,
}

/// The saved image being replayed, and the state that outlives the phases.
pub struct Persistence {
    pub phase: Phase,
    /// Armed generation.
    pub generation: u64,
    /// Arm word as it was read at boot.
    arm: Option<ArmWord>,
    /// The generation to arm next.
    successor: u64,
    /// The head belongs to the generation that was armed.
    image: bool,
    /// Requests of the registers that wait until the card is open.
    reset_pending: bool,
    shut_pending: bool,
    /// Slot of a load that waits until what was asked for before is done.
    load_pending: Option<u32>,
    progress: Option<ProgressWord>,
    head: SaveHead,
    body: Vec<[u8; LINE]>,
    error: bool,
    /// Items by rising order number, with their first lines.
    items: Vec<(SavedItem, [u8; LINE])>,
    next: usize,
    /// The item before [`Persistence::next`] is running.
    running: bool,
    /// Unit that waits at a `wait` for its progress word.
    gate: Option<u8>,
    pub replayed: u32,
    /// Lines of the save that have been handed to the port, and its cycle of beginning.
    saved: usize,
    save_image: Vec<[u8; LINE]>,
    head_sent: bool,
    /// Memory refused a line of the save.
    save_failed: bool,
    save_start: u64,
    pub save_cycles: u64,
}

impl Persistence {
    pub fn new() -> Self {
        Persistence {
            phase: Phase::Words,
            generation: 0,
            arm: None,
            successor: 1,
            image: false,
            reset_pending: false,
            shut_pending: false,
            load_pending: None,
            progress: None,
            head: SaveHead::default(),
            body: Vec::new(),
            error: false,
            items: Vec::new(),
            next: 0,
            running: false,
            gate: None,
            replayed: 0,
            saved: 0,
            save_image: Vec::new(),
            head_sent: false,
            save_failed: false,
            save_start: 0,
            save_cycles: 0,
        }
    }
}

impl Persistence {
    /// Lines of mappings and items of the image.
    fn body_lines(&self) -> usize {
        ITEM_LINE - MAPPING_LINE + LINES_PER_ITEM * self.head.items as usize
    }
}

fn word(line: &[u8; LINE], offset: usize) -> u64 {
    u64::from_le_bytes(line[offset..offset + 8].try_into().expect("eight bytes"))
}

fn save_address(line: usize) -> u64 {
    SAVE_BASE + line as u64 * LINE_U64
}

impl ModelCard {
    /// Value of the state register.
    pub(in crate::model) fn state(&self) -> u32 {
        match self.persistence.phase {
            Phase::Words | Phase::BootFirmware | Phase::Body => state::BOOTING,
            Phase::Replay => state::REPLAYING,
            Phase::Arm if self.persistence.items.is_empty() => state::BOOTING,
            Phase::Arm => state::REPLAYING,
            Phase::Reset => state::BOOTING,
            Phase::Open | Phase::ShutDown | Phase::Clean if self.persistence.reset_pending => state::BOOTING,
            Phase::Open | Phase::ShutDown | Phase::Clean if self.firmware.crc == 0 => state::NO_FIRMWARE,
            Phase::Open | Phase::ShutDown | Phase::Clean => state::OPEN,
            Phase::Saving => state::SAVING,
            Phase::Saved => state::SAVED,
            Phase::Loss => state::LOSS,
            Phase::Missing => state::FIRMWARE_MISSING,
        }
    }

    /// Whether commands and host accesses are taken.
    pub(in crate::model) fn window_open(&self) -> bool {
        let early = self.fault == Some(Fault::WindowOpensEarly) && self.persistence.phase == Phase::Replay;
        early || matches!(self.persistence.phase, Phase::Open | Phase::Reset | Phase::ShutDown | Phase::Clean)
    }

    pub(in crate::model) fn enter_phase(&mut self, phase: Phase) {
        let before = self.state();
        self.persistence.phase = phase;
        if self.state() != before {
            self.trace(What::State(self.state()));
        }
    }

    fn system_read(&mut self, owner: Owner, address: u64, lines: usize) {
        let mut first = 0;
        while first < lines {
            let address = address + (first * LINE) as u64;
            let beats = burst_lines(address, (lines - first) as u64);
            let token = Token { requester: SYSTEM as u8, tag: owner as u8 };
            self.system.reads.push_back(Burst { token, address, beats: beats as u8 });
            first += beats as usize;
        }
        self.wake_port(self.now + self.timing.system_step);
    }

    fn system_write(&mut self, owner: Owner, address: u64, beats: Vec<WriteBeat>) {
        let token = Token { requester: SYSTEM as u8, tag: owner as u8 };
        self.system.writes.push_back((Burst { token, address, beats: beats.len() as u8 }, beats));
        if owner == Owner::Persistence {
            self.system.unanswered += 1;
        }
        self.wake_port(self.now + self.timing.system_step);
    }

    /// Stores one 8-byte word of the save area.
    fn store_word(&mut self, owner: Owner, offset: u64, value: u64) {
        let lane = (offset % LINE_U64) as usize;
        let mut data = [0; LINE];
        data[lane..lane + 8].copy_from_slice(&value.to_le_bytes());
        let address = SAVE_BASE + offset / LINE_U64 * LINE_U64;
        self.system_write(owner, address, vec![WriteBeat { data, strobes: 0xff << lane }]);
    }

    /// Begins to boot.
    pub(in crate::model) fn boot(&mut self) {
        self.system_read(Owner::Persistence, save_address(ARM_LINE), HEAD_LINE + 1);
    }

    /// A read burst of the system port has come.
    pub(in crate::model) fn system_read_done(&mut self, tag: u8, lines: &[[u8; LINE]], error: bool) {
        if tag == Owner::Loader as u8 {
            return self.loader_read(lines, error);
        }
        match self.persistence.phase {
            Phase::Words => self.boot_words(lines, error),
            Phase::Body => {
                self.persistence.body.extend_from_slice(lines);
                self.persistence.error |= error;
                if self.persistence.body.len() == self.persistence.body_lines() {
                    self.boot_body();
                }
            }
            phase => unreachable!("nothing is read in {phase:?}"),
        }
    }

    fn boot_words(&mut self, lines: &[[u8; LINE]], error: bool) {
        let arm = ArmWord::decode(word(&lines[ARM_LINE], 0)).filter(|_| !error);
        let firmware = word(&lines[ARM_LINE], FIRMWARE_WORD_OFFSET as usize);
        let head = SaveHead::from_bytes(&lines[HEAD_LINE]);
        let p = &mut self.persistence;
        p.arm = arm;
        p.progress = ProgressWord::decode(word(&lines[PROGRESS_LINE], 0));
        p.head = head;
        let armed = match arm {
            Some(ArmWord::Running(g) | ArmWord::Clean(g)) => g,
            Some(ArmWord::Blank) | None => 0,
        };
        // Each armed generation is above all that stand in the area, so that no stale head ever
        // matches.
        let ours = head.magic == SAVE_MAGIC && head.version == SAVE_VERSION;
        p.successor = armed.max(if ours { head.generation } else { 0 }) + 1;
        p.image = match arm {
            _ if self.fault == Some(Fault::TornSaveFallsBack) => ours,
            Some(ArmWord::Running(g)) => ours && head.generation == g,
            _ => false,
        } && head.items as usize <= MAX_ITEMS;
        let slot = (firmware >> 32) as u8;
        if !error && (firmware >> 56) as u8 == FIRMWARE_WORD_TAG && (slot as usize) < FIRMWARE_SLOTS {
            self.enter_phase(Phase::BootFirmware);
            self.start_loader(slot, Some(firmware as u32));
        } else {
            self.boot_by_arm();
        }
    }

    /// Goes on by what the arm word and the head say.
    fn boot_by_arm(&mut self) {
        match self.persistence.arm {
            _ if self.persistence.image => {
                self.enter_phase(Phase::Body);
                self.system_read(Owner::Persistence, save_address(MAPPING_LINE), self.persistence.body_lines());
            }
            Some(ArmWord::Blank | ArmWord::Clean(_)) => self.arm(),
            Some(ArmWord::Running(_)) | None => self.enter_phase(Phase::Loss),
        }
    }

    fn boot_body(&mut self) {
        let head = self.persistence.head;
        let sealed = seal::is_sealed(self.persistence.body.as_flattened(), &head.to_bytes())
            || self.fault == Some(Fault::TornSaveIsReplayed);
        if !sealed || self.persistence.error {
            self.enter_phase(Phase::Loss);
        } else if head.items > 0 && head.firmware_crc != self.firmware.crc {
            self.enter_phase(Phase::Missing);
        } else {
            self.start_replay();
        }
    }

    fn start_replay(&mut self) {
        let p = &mut self.persistence;
        for entry in 0..MAP_ENTRIES {
            self.map.restore(entry, &SavedMapping::from_bytes(&p.body[entry]));
        }
        let items = p.body[ITEM_LINE - MAPPING_LINE..].chunks_exact(LINES_PER_ITEM);
        p.items = items.map(|lines| (SavedItem::from_bytes(&lines[1]), lines[0])).collect();
        p.items.sort_by_key(|(item, _)| item.order);
        self.order.last = p.head.order;
        self.device = p.head.device.into();
        self.lost = Lost::of(&p.head);
        let counts = |w: &ProgressWord| w.generation == p.head.generation as u32 && w.items as usize <= p.items.len();
        p.progress = p.progress.filter(counts).filter(|_| self.fault != Some(Fault::ReplayStartsOver));
        p.next = p.progress.map_or(0, |w| w.items as usize);
        self.redo_mappings();
        self.enter_phase(Phase::Replay);
        self.replay_next();
    }

    /// Does again to the mapping table, and to that of parked commands, what the items that are not
    /// replayed did.
    fn redo_mappings(&mut self) {
        for i in 0..self.persistence.next {
            let (item, raw) = self.persistence.items[i];
            if item.kind == ITEM_PARKED {
                self.restore_parked(raw, &item);
            }
            if item.kind != ITEM_COMMAND || self.park_again(raw, &item) {
                continue;
            }
            let command = Command::from_bytes(&raw);
            let d = self.firmware.descriptor(command.opcode);
            let Some(entry) = self.map.find(command.pool, command.thread) else { continue };
            if d.flag(descriptor::UNMAPS) {
                self.map.set(entry, None);
            } else if d.flag(descriptor::COMMITS)
                && let Some(mapping) = self.map.get_mut(entry)
            {
                mapping.committed = command.txid;
            }
        }
    }

    /// Injects the next item, or arms when all are durable.
    fn replay_next(&mut self) {
        let p = &mut self.persistence;
        let Some((item, first)) = p.items.get(p.next).copied() else {
            // Everything else is replayed, and software has yet to hear of what was lost.
            return if p.head.stores_lost > 0 { self.enter_phase(Phase::Loss) } else { self.arm() };
        };
        // The progress word knows of a later wait than the image.
        let noted = p.progress.take().map_or(0, |w| w.resume);
        p.running = true;
        if item.kind == ITEM_STORE {
            let SavedItem { address, strobes, .. } = item;
            let taken =
                self.enter_host(HostLine { ticket: None, write: true, address, data: first, strobes, order: 0 });
            debug_assert!(taken, "replay is sequential");
        } else if item.kind == ITEM_PARKED {
            self.restore_parked(first, &item);
            self.replay_item_over();
        } else {
            let resume = if noted != 0 { noted } else { item.resume };
            let origin = Origin { resume, released: item.released != 0, accepted: item.order };
            if self.enter_command(item.page, first, origin) == Entered::Refused {
                self.replay_item_over();
            }
        }
    }

    /// Stores how far the replay has come, once nothing is live.
    fn replay_item_over(&mut self) {
        self.persistence.running = false;
        self.persistence.replayed += 1;
        let items = self.persistence.next as u16 + 1;
        self.store_progress(items, 0);
    }

    fn store_progress(&mut self, items: u16, resume: u8) {
        let generation = self.persistence.head.generation as u32;
        let word = ProgressWord { generation, items, resume }.encode();
        self.store_word(Owner::Persistence, (PROGRESS_LINE * LINE) as u64, word);
    }

    /// A unit waits at a `wait` until its progress is durable.
    pub(in crate::model) fn replay_progress(&mut self, unit: u8, resume: u8) {
        self.persistence.gate = Some(unit);
        self.store_progress(self.persistence.next as u16, resume);
    }

    /// Stores the arm word of the next generation.
    fn arm(&mut self) {
        let p = &mut self.persistence;
        p.generation = p.successor;
        p.successor += 1;
        let word = ArmWord::Running(p.generation).encode();
        self.enter_phase(Phase::Arm);
        self.store_word(Owner::Persistence, 0, word);
    }

    /// A write burst of the system port was answered.
    pub(in crate::model) fn system_write_done(&mut self, tag: u8, error: bool) {
        if tag == Owner::Loader as u8 {
            return if error { self.loader_failed(firmware_status::MEMORY_ERROR) } else { self.loader_over() };
        }
        self.system.unanswered -= 1;
        if error && self.persistence.phase == Phase::Saving {
            // Without its head the save is a loss, and is reported as such at the next boot.
            self.persistence.save_failed = true;
            return;
        }
        if error {
            return self.enter_phase(Phase::Loss);
        }
        match self.persistence.phase {
            Phase::Replay => match self.persistence.gate.take() {
                Some(unit) => self.unit_resume(unit as usize),
                None => {
                    self.persistence.next += 1;
                    self.replay_next();
                }
            },
            Phase::Arm => {
                self.persistence.items = Vec::new();
                self.open();
            }
            Phase::Clean => {
                self.enter_phase(Phase::Saved);
                self.set_stop(false);
            }
            Phase::Saving => self.save_answered(),
            phase => unreachable!("nothing is written in {phase:?}"),
        }
    }

    /// Something retired: a replay or a drain may go on.
    pub(in crate::model) fn after_retirement(&mut self, status: u8) {
        match self.persistence.phase {
            Phase::Replay if status >= 0x80 => self.enter_phase(Phase::Loss),
            Phase::Replay if self.persistence.running && self.order.is_empty() => self.replay_item_over(),
            _ => self.check_drained(),
        }
    }

    fn set_stop(&mut self, stop: bool) {
        self.stop = stop;
        if !stop {
            self.unblock_front();
            self.schedule_front();
        }
    }

    /// Takes work, or what was asked for while that could not be served.
    fn open(&mut self) {
        self.enter_phase(Phase::Open);
        if self.failing {
            return;
        }
        self.release_parked();
        self.announce();
        if self.persistence.shut_pending {
            self.shut_down();
        } else if self.persistence.reset_pending {
            self.function_reset();
        }
        self.begin_load();
    }

    /// Function-level reset.
    pub(in crate::model) fn function_reset(&mut self) {
        self.persistence.reset_pending = self.persistence.phase != Phase::Open;
        if self.persistence.reset_pending {
            return;
        }
        if self.fault == Some(Fault::ResetDropsWork) {
            self.forget_work();
        }
        self.enter_phase(Phase::Reset);
        self.set_stop(true);
        self.check_drained();
    }

    /// Clean shutdown.
    pub(in crate::model) fn shut_down(&mut self) {
        self.persistence.shut_pending = self.persistence.phase != Phase::Open;
        if !self.persistence.shut_pending {
            self.enter_phase(Phase::ShutDown);
            self.set_stop(true);
            self.check_drained();
        }
    }

    pub(in crate::model) fn check_drained(&mut self) {
        // What is left where nothing runs is held by a failed log.
        let drains = matches!(self.persistence.phase, Phase::Reset | Phase::ShutDown);
        if !drains || self.failing || self.loader.is_some() || !self.order.is_stuck() {
            return;
        }
        if self.persistence.phase == Phase::Reset {
            self.rings = [Ring::default(); 4];
            self.peers.silence();
            self.map.clear(self.parked.entries());
            self.release_failed(None);
            self.set_stop(false);
            self.open();
        } else if self.order.is_empty() && self.parked.is_empty() && self.lost.count == 0 {
            self.enter_phase(Phase::Clean);
            self.begin_load();
            self.store_word(Owner::Persistence, 0, ArmWord::Clean(self.persistence.generation).encode());
        } else {
            self.start_save();
        }
    }

    /// Accepts a loss and opens.
    pub(in crate::model) fn acknowledge_loss(&mut self) {
        let closed = matches!(self.persistence.phase, Phase::Loss | Phase::Missing);
        if closed || self.window_open() {
            self.lost = Lost::default();
        }
        if closed {
            self.arm();
        }
    }

    /// Loads an image on the host's wish, behind a reset, a shutdown or a load that has begun.
    pub(in crate::model) fn load_firmware(&mut self, slot: u32) {
        self.persistence.load_pending = Some(slot);
        self.set_firmware_status(firmware_status::BUSY);
        self.begin_load();
    }

    /// Begins the load that waits, if it need not wait any more. The ports wait meanwhile, so that
    /// no command meets half of two.
    fn begin_load(&mut self) {
        let phase = self.persistence.phase;
        if matches!(phase, Phase::Reset | Phase::ShutDown) || phase == Phase::Open && self.loader.is_some() {
            return;
        }
        let Some(slot) = self.persistence.load_pending.take() else { return };
        let idle = self.order.is_empty() && self.parked.is_empty();
        if phase != Phase::Open || !idle {
            return self.set_firmware_status(firmware_status::NOT_IDLE);
        }
        if slot as usize >= FIRMWARE_SLOTS {
            return self.set_firmware_status(firmware_status::BAD_MAGIC);
        }
        self.set_stop(true);
        self.start_loader(slot as u8, None);
    }

    fn start_loader(&mut self, slot: u8, expected: Option<u32>) {
        self.set_firmware_status(firmware_status::BUSY);
        let lines = Vec::with_capacity(IMAGE_LINES);
        self.loader = Some(Loader { slot, expected, lines, error: false, verified: None });
        let base = FIRMWARE_BASE + slot as u64 * FIRMWARE_SLOT_BYTES;
        // The body, then the head: as the seal wants it.
        self.system_read(Owner::Loader, base + LINE_U64, IMAGE_LINES - 1);
        self.system_read(Owner::Loader, base, 1);
    }

    fn loader_read(&mut self, lines: &[[u8; LINE]], error: bool) {
        let Some(loader) = &mut self.loader else { return };
        loader.lines.extend_from_slice(lines);
        loader.error |= error;
        if loader.lines.len() < IMAGE_LINES {
            return;
        }
        loader.lines.rotate_right(1);
        let verdict = match loader.error {
            true => Err(firmware_status::MEMORY_ERROR),
            false => Firmware::verify(loader.slot, &loader.lines.as_flattened()[..IMAGE_BYTES]),
        };
        let verdict = match (verdict, loader.expected) {
            (Ok(image), Some(crc)) if image.crc != crc => Err(firmware_status::BAD_CRC),
            (verdict, _) => verdict,
        };
        match verdict {
            Err(status) => self.loader_failed(status),
            Ok(image) => {
                let (slot, crc) = (loader.slot, image.crc);
                loader.verified = Some(Box::new(image));
                match self.persistence.phase {
                    // The firmware word stands already.
                    Phase::BootFirmware => self.loader_over(),
                    _ => self.store_word(Owner::Loader, FIRMWARE_WORD_OFFSET, firmware_word(slot, crc)),
                }
            }
        }
    }

    /// The image in force stays.
    fn loader_failed(&mut self, status: u32) {
        self.loader = None;
        self.set_firmware_status(status);
        self.loader_gone();
    }

    /// The firmware word is durable: the image comes into force.
    fn loader_over(&mut self) {
        let Some(loader) = self.loader.take() else { return };
        let before = self.state();
        self.firmware = *loader.verified.expect("only a verified image gets a word");
        self.set_firmware_status(firmware_status::OK);
        if self.state() != before {
            self.trace(What::State(self.state()));
        }
        self.loader_gone();
    }

    fn loader_gone(&mut self) {
        if self.persistence.phase == Phase::BootFirmware {
            self.boot_by_arm();
        } else if self.persistence.phase == Phase::Open && !self.failing {
            self.set_stop(false);
            self.begin_load();
        } else {
            self.check_drained();
        }
    }

    /// Whether a power cut now has something to save.
    pub(in crate::model) fn saves(&self) -> bool {
        matches!(
            self.persistence.phase,
            Phase::Arm | Phase::Open | Phase::Reset | Phase::ShutDown | Phase::Clean | Phase::Saving
        )
    }

    /// Collects the image of everything that is accepted, and begins to write it.
    pub(in crate::model) fn start_save(&mut self) {
        let mut image: Vec<[u8; LINE]> = (0..MAP_ENTRIES).map(|entry| self.map.saved(entry).to_bytes()).collect();
        let mut items = 0;
        for item in self.order.live() {
            let saved = match item {
                Item::Slot(slot) => {
                    let s = &self.order.slots[slot as usize];
                    let item = SavedItem {
                        order: s.accepted,
                        kind: ITEM_COMMAND,
                        page: s.page,
                        resume: s.resume,
                        released: s.released as u8,
                        ..SavedItem::default()
                    };
                    Some((s.raw, item))
                }
                Item::Line(line) => {
                    let l = &self.order.lines[line as usize];
                    let HostLine { order, address, strobes, .. } = *l;
                    let item = SavedItem { order, address, strobes, kind: ITEM_STORE, ..SavedItem::default() };
                    l.write.then_some((l.data, item))
                }
            };
            if let Some((first, second)) = saved {
                image.extend([first, second.to_bytes()]);
                items += 1;
            }
        }
        for (raw, item) in self.saved_parked() {
            image.extend([raw, item.to_bytes()]);
            items += 1;
        }
        let head = SaveHead {
            magic: SAVE_MAGIC,
            version: SAVE_VERSION,
            items,
            generation: self.persistence.generation,
            order: self.order.last,
            firmware_crc: self.firmware.crc,
            device: self.device as u8,
            stores_lost: self.lost.count,
            lost_first: self.lost.first,
            lost_last: self.lost.last,
            ..SaveHead::default()
        };
        let mut head = head.to_bytes();
        seal::seal(image.as_flattened(), &mut head);
        image.push(head);
        let p = &mut self.persistence;
        p.save_image = image;
        p.saved = 0;
        p.head_sent = false;
        p.save_failed = false;
        p.save_start = self.now;
        self.enter_phase(Phase::Saving);
        self.wheel.push(self.now + self.timing.save_line, Signal::Save);
    }

    /// Hands the next line of the body to the port.
    pub(in crate::model) fn on_save(&mut self) {
        let p = &mut self.persistence;
        let beat = WriteBeat { data: p.save_image[p.saved], strobes: u64::MAX };
        let address = save_address(MAPPING_LINE + p.saved);
        p.saved += 1;
        if p.saved + 1 < p.save_image.len() {
            self.wheel.push(self.now + self.timing.save_line, Signal::Save);
        }
        if self.fault == Some(Fault::TornSaveIsReplayed) && !self.persistence.head_sent {
            self.send_head();
        }
        self.system_write(Owner::Persistence, address, vec![beat]);
    }

    fn send_head(&mut self) {
        let p = &mut self.persistence;
        p.head_sent = true;
        let data = *p.save_image.last().expect("the head is the last line");
        self.system_write(Owner::Persistence, save_address(HEAD_LINE), vec![WriteBeat { data, strobes: u64::MAX }]);
    }

    fn save_answered(&mut self) {
        let p = &self.persistence;
        if p.save_failed || self.system.unanswered > 0 || p.saved + 1 < p.save_image.len() {
            return;
        }
        if !p.head_sent {
            return self.send_head();
        }
        self.persistence.save_cycles = self.now - self.persistence.save_start;
        self.enter_phase(Phase::Saved);
        self.set_stop(false);
    }
}
