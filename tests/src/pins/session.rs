//! A card from power-up to power cut.

use std::collections::HashMap;

use nearpm_interface::geometry::{
    ADDRESS_BITS, FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE_U64, MAP_ENTRIES, PARKED_COMMANDS, POOLS_BASE, SAVE_BASE,
};
use nearpm_interface::registers::{self, control, firmware_status, parked_action, state};
use nearpm_interface::save::{ARM_LINE, ArmWord, HEAD_LINE, SaveHead};
use nearpm_sim::bench::provisioned;
use nearpm_verilate::{Instance, Library, Port};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::foreign;
use super::life::{LIVES, LIVES_APART, Life};
use super::memory::{CHANNELS, Contents, Memory};
use super::past::{age, fails_in_replay};
use super::peripherals::{Others, Records};
use super::slave::{Done, Slave, Transfer};
use super::traffic::{PRIVATE_LINES, Traffic, register, write_register};
use crate::programs;

/// Cycles after which a card that does not answer, open or save hangs: beyond all that a queue of
/// the longest commands takes on slow memory.
pub(super) const HANG_CYCLES: u64 = 3_000_000;
/// Cycles in which what is shown first of a load of firmware stays, unless that was that the card
/// is busy with it.
const REPORT_CYCLES: u64 = 2000;
/// Sessions of one memory in which everything is checked, those behind them in which the card's own
/// lines fail, too, and the last ones, on what others left.
const POWER_UPS: u64 = 5;
const ROUGH_ONES: u64 = 6;
const FOREIGN_ONES: u64 = 6;

/// Largest memory that a card can have, in bytes: the number of its lines has 34 bits.
const LARGEST: u64 = (1 << ADDRESS_BITS) - 4096;

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Power-ups.
    pub sessions: u64,
    /// Clock cycles.
    pub cycles: u64,
    /// Accesses that were answered.
    pub accesses: u64,
    /// Loads that were compared with what was stored.
    pub compared: u64,
    /// Commands and host accesses that waited for a conflicting earlier one.
    pub held: u64,
    /// Losses, each reported behind a save that ran out of energy, or a replay of a program that
    /// ends with a failure.
    pub losses: u64,
    /// Boots that told of lost stores, as the save of others that they found did.
    pub lost_stores: u64,
}

/// What is checked in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Everything.
    Whole,
    /// Traffic begins at once, on lines of the card's own some of which fail, and the power may go
    /// at any moment of the boot: what is checked is only that ports and memory are used as they
    /// are to be.
    Rough,
    /// Firmware and saves are of others: every access is answered all the same, where no command
    /// waits for other cards.
    Foreign,
    /// A life that chance does not bring; everything is checked.
    Of(Life),
}

/// How a session goes.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// One cycle in so many is a pause of a port.
    pub patience: u32,
    /// Now and then a port pauses for thousands of cycles.
    pub sulks: bool,
    /// An access is offered in one of so many cycles.
    pub gap: u32,
    /// Another card says something in one of so many cycles.
    pub silence: u32,
    /// Registers are written, too.
    pub configures: bool,
    /// Cycles that a burst takes in memory, at most.
    pub latency: u32,
    pub cycles: u64,
    pub peers: bool,
    pub bad_lines: bool,
    /// Traffic goes on until the power fails.
    pub abrupt: bool,
    pub shut_down: bool,
    /// Cycles of energy for the save.
    pub energy: Option<u64>,
}

impl Plan {
    fn new(rng: &mut ChaCha8Rng) -> Plan {
        let mut of = |all: &[u32]| *all.choose(rng).expect("some");
        let (patience, gap, latency) = (of(&[2, 4, 20, 1000]), of(&[1, 1, 3, 12]), of(&[0, 20, 150, 400]));
        let silence = of(&[1, 20, 20, 20]);
        let cycles = rng.random_range(4_000..24_000);
        let energy = (rng.random_range(0..4) == 0).then(|| rng.random_range(0..4_000));
        let [peers, abrupt] = [(); 2].map(|()| rng.random());
        let [bad_lines, shut_down, sulks] = [(); 3].map(|()| rng.random_range(0..4) == 0);
        Plan {
            patience,
            sulks,
            gap,
            silence,
            configures: true,
            latency,
            cycles,
            peers,
            bad_lines,
            abrupt,
            shut_down,
            energy,
        }
    }
}

/// What pauses on its own: the slave ports, host memory for records, other cards, the channels of
/// the memory.
const AROUND: usize = 5 + CHANNELS;

/// A powered card and all around it.
pub(super) struct Card<'a> {
    model: Instance,
    clock: Port,
    slaves: [Slave; 3],
    pub(super) memory: Memory,
    records: Records,
    others: Others,
    /// Cycles for which each of what is around pauses.
    pauses: [u64; AROUND],
    pub(super) plan: Plan,
    pub(super) rng: &'a mut ChaCha8Rng,
    pub(super) traffic: &'a mut Traffic,
    pub(super) tally: &'a mut Tally,
    /// What private lines hold.
    private: &'a mut HashMap<u64, [u8; 64]>,
    /// Stores of a command that are still to come.
    pieces: Vec<Transfer>,
    talks: bool,
    /// Stores of this card's own were lost before its last reset.
    lost_before: bool,
    /// Head of the save that its last boot was to replay; without a save all is 0.
    found: SaveHead,
}

/// Ports.
pub(super) const CONTROL: usize = 0;
pub(super) const COMMANDS: usize = 1;
pub(super) const HOST: usize = 2;
/// Of what pauses: the data that the memory is read for, and its answers to writes.
pub(super) const MEMORY_ANSWERS: usize = 5 + 3;
pub(super) const MEMORY_WRITE_ANSWERS: usize = 5 + 4;

impl Card<'_> {
    fn set(&mut self, name: &str, value: u64) {
        let port = self.model.port(name).unwrap_or_else(|error| panic!("{error}"));
        self.model.set_u64(port, value);
    }

    /// The patience of each of what is around: 1 is a pause.
    fn patience(&mut self) -> [u32; AROUND] {
        let Plan { patience, sulks, .. } = self.plan;
        self.pauses.each_mut().map(|left| {
            *left = left.saturating_sub(1);
            if sulks && *left == 0 && self.rng.random_range(0..10_000) == 0 {
                *left = 1 << self.rng.random_range(0..15);
            }
            if *left == 0 { patience } else { 1 }
        })
    }

    /// One cycle, in which traffic is offered where `busy` says so.
    pub(super) fn cycle(&mut self, busy: bool) -> Vec<Done> {
        let [control, commands, host, records, others, memory @ ..] = self.patience();
        for (slave, patience) in self.slaves.iter_mut().zip([control, commands, host]) {
            slave.drive(&mut self.model, self.rng, patience);
        }
        if busy && self.rng.random_range(0..self.plan.gap) == 0 {
            self.offer_some();
        }
        self.memory.drive(&mut self.model, self.rng, memory);
        self.records.drive(&mut self.model, self.rng, records);
        let (traffic, talks, silence) = (&*self.traffic, self.talks, self.plan.silence);
        let next = |rng: &mut ChaCha8Rng| (talks && rng.random_range(0..silence) == 0).then(|| traffic.message(rng));
        self.others.drive(&mut self.model, self.rng, others, next);
        self.model.settle();
        let done: Vec<Done> = self.slaves.iter_mut().flat_map(|slave| slave.sample(&self.model)).collect();
        self.memory.sample(&self.model, self.rng);
        self.records.sample(&self.model);
        self.others.sample(&self.model);
        self.model.edge(self.clock);
        self.tally.cycles += 1;
        self.tally.accesses += done.len() as u64;
        done.iter().for_each(|done| self.compare(done));
        done
    }

    fn offer_some(&mut self) {
        let at = match self.rng.random_range(0..16) {
            0 => CONTROL,
            1..=6 => COMMANDS,
            _ => HOST,
        };
        let transfer = match at {
            CONTROL => register(self.rng, self.plan.configures),
            COMMANDS if self.rng.random_range(0..20) == 0 => {
                Transfer::read(self.rng.random_range(0..256) * LINE_U64, 1)
            }
            COMMANDS => {
                if self.pieces.is_empty() {
                    self.pieces = self.traffic.command_stores(self.rng, self.plan.peers);
                    self.pieces.reverse();
                }
                self.pieces.last().expect("a command is a store at least").clone()
            }
            _ => self.traffic.memory(self.rng),
        };
        let waits = !self.slaves[at].has_room(transfer.is_write())
            || (private(&transfer).is_some() && self.slaves[at].touches(transfer.address / LINE_U64));
        if !waits {
            if at == COMMANDS && transfer.is_write() {
                self.pieces.pop();
            }
            self.slaves[at].offer(&mut self.model, self.rng, transfer);
        }
    }

    /// Takes what was stored to a private line, or compares what was loaded. Firmware that nobody
    /// has checked may write there, too.
    fn compare(&mut self, done: &Done) {
        let is_kept = !done.error && !self.memory.contents.any_firmware;
        let Some(line) = private(&done.transfer).filter(|_| is_kept) else { return };
        match done.transfer.data.first() {
            Some((data, strobes)) => {
                let kept = self.private.get_mut(&line);
                kept.into_iter().for_each(|kept| {
                    (0..64).filter(|i| strobes >> i & 1 == 1).for_each(|i| kept[i] = data[i]);
                });
                if *strobes == u64::MAX {
                    self.private.insert(line, *data);
                }
            }
            None => {
                if let Some(kept) = self.private.get(&line) {
                    assert_eq!(done.lines[0], *kept, "line {line:#x} is loaded as it was stored");
                    self.tally.compared += 1;
                }
            }
        }
    }

    /// Pauses one of what is around.
    pub(super) fn keep_waiting(&mut self, what: usize, cycles: u64) {
        self.pauses[what] = cycles;
    }

    /// Offers a transfer where there is room for it in some hundred cycles.
    pub(super) fn offer_soon(&mut self, at: usize, transfer: Transfer) {
        for _ in 0..300 {
            if self.slaves[at].has_room(transfer.is_write()) {
                return self.slaves[at].offer(&mut self.model, self.rng, transfer);
            }
            self.cycle(false);
        }
    }

    /// An access whose answer is waited for.
    pub(super) fn access(&mut self, at: usize, transfer: Transfer, busy: bool) -> Done {
        let wanted = (transfer.address, transfer.is_write());
        let mut left = Some(transfer);
        for _ in 0..HANG_CYCLES {
            if self.slaves[at].open() == 0
                && let Some(transfer) = left.take()
            {
                self.slaves[at].offer(&mut self.model, self.rng, transfer);
            }
            // Nothing else is offered at the same port meanwhile.
            let found = self.cycle(busy && left.is_some() && at == HOST);
            let is_it = |done: &Done| left.is_none() && (done.transfer.address, done.transfer.is_write()) == wanted;
            if let Some(done) = found.into_iter().find(is_it) {
                return done;
            }
        }
        panic!("no answer to an access of {wanted:x?}")
    }

    pub(super) fn register(&mut self, offset: u32) -> u32 {
        let done = self.access(CONTROL, Transfer::read(offset.into(), 1), false);
        u32::from_le_bytes(done.lines[0][..4].try_into().expect("four bytes"))
    }

    pub(super) fn set_register(&mut self, offset: u32, value: u32) {
        self.access(CONTROL, write_register(offset, value, 0xf), false);
    }

    /// Waits for a state.
    pub(super) fn until(&mut self, wanted: &[u32]) -> u32 {
        let end = self.tally.cycles + HANG_CYCLES;
        loop {
            let found = self.register(registers::STATE);
            if wanted.contains(&found) {
                return found;
            }
            assert!(self.tally.cycles < end, "the card stays in state {found}");
        }
    }

    /// Waits until the card is open. Where memory has refused stores, it stands in a loss before,
    /// until software has heard.
    pub(super) fn until_open(&mut self) {
        if self.until(&[state::OPEN, state::LOSS]) == state::LOSS {
            assert!(self.register(registers::STORES_LOST) > 0, "a loss is reported behind a save with energy");
            self.set_register(registers::CONTROL, control::ACKNOWLEDGE_LOSS);
            self.until(&[state::OPEN]);
        }
    }

    /// Opens the card, maps most pools, and sets up what a driver does.
    pub(super) fn open(&mut self, may_lose: bool) {
        if self.until(&[state::OPEN, state::LOSS]) == state::LOSS {
            if may_lose {
                self.tally.losses += 1;
                self.private.clear();
            } else {
                // Lines that fail are nobody's private ones, which are there still.
                assert!(self.register(registers::STORES_LOST) > 0, "a loss is reported behind a save with energy");
            }
            self.set_register(registers::CONTROL, control::ACKNOWLEDGE_LOSS);
            self.until(&[state::OPEN]);
        }
        if self.rng.random() {
            let slot = self.rng.random_range(0..2);
            // That this slot is in force is not always noted, and then it is not.
            let fails = self.rng.random_range(0..4) == 0;
            self.memory.contents.bad.extend(fails.then_some(SAVE_BASE + ARM_LINE as u64 * LINE_U64));
            let ended = self.load(slot);
            assert!(!fails || ended != firmware_status::OK, "firmware is in force that is not noted");
            self.memory.contents.bad.clear();
        }
        if self.plan.peers {
            let number = self.rng.random_range(0..8);
            self.set_register(registers::DEVICE_NUMBER, number);
            self.talks = true;
        }
        for page in 0..4 {
            let ring = registers::completion_ring(page);
            let (low, high, size) = (self.rng.random(), self.rng.random(), self.rng.random_range(0..=12));
            [low, high, size].into_iter().zip((ring..).step_by(4)).for_each(|(v, r)| self.set_register(r, v));
        }
        self.map();
    }

    pub(super) fn map(&mut self) {
        let first = self.rng.random_range(0..MAP_ENTRIES);
        for number in first..first + MAP_ENTRIES {
            let bytes = self.traffic.map(number).encode();
            self.access(COMMANDS, Transfer::write(number as u64 % 16 * LINE_U64, vec![(bytes, u64::MAX)]), false);
        }
    }

    /// Opens the card, works, and sees to it that everything is answered.
    fn serve(&mut self, may_lose: bool) {
        self.open(may_lose);
        self.work();
        if !self.plan.abrupt {
            self.finish();
        }
        if self.plan.shut_down {
            self.drain();
            self.set_register(registers::CONTROL, control::SHUT_DOWN);
            self.until(&[state::SAVED]);
        }
    }

    pub(super) fn work(&mut self) {
        let middle = (self.rng.random_range(0..3) == 0).then_some(self.plan.cycles / 2);
        for cycle in 0..self.plan.cycles {
            if middle == Some(cycle) {
                self.drain();
                self.set_register(registers::CONTROL, control::FUNCTION_RESET);
                self.until(&[state::OPEN]);
                self.map();
            }
            if self.plan.bad_lines && self.rng.random_range(0..2000) == 0 {
                let bad = self.traffic.memory(self.rng).address;
                self.memory.contents.bad.extend((bad >= POOLS_BASE + PRIVATE_LINES * LINE_U64).then_some(bad));
            }
            self.cycle(true);
        }
    }

    /// Traffic from the first cycle on, whatever comes of it.
    fn endure(&mut self) {
        self.private.clear();
        self.talks = self.rng.random();
        self.plan.energy = Some(if self.rng.random() { self.rng.random_range(0..6000) } else { 0 });
        for _ in 0..self.rng.random_range(0..3) {
            let (base, bytes) = *[(SAVE_BASE, 2048), (SAVE_BASE, 256), (FIRMWARE_BASE, 2 * FIRMWARE_SLOT_BYTES)]
                .choose(self.rng)
                .expect("three places");
            let line = base + self.rng.random_range(0..bytes) / LINE_U64 * LINE_U64;
            if self.rng.random() {
                self.memory.contents.bad.push(line);
            } else {
                self.memory.contents.write(line, &[0; 64], self.rng.random());
            }
        }
        let cycles = self.rng.random_range(0..16_000) >> self.rng.random_range(0..5);
        for _ in 0..cycles {
            self.cycle(true);
            if self.rng.random_range(0..500) == 0 && self.slaves[CONTROL].has_room(true) {
                let act = if self.rng.random() { control::ACKNOWLEDGE_LOSS } else { self.rng.random_range(0..8) };
                let transfer = match self.rng.random() {
                    true => write_register(registers::CONTROL, act, 0xf),
                    false => write_register(registers::FIRMWARE_LOAD, self.rng.random_range(0..2), 0xf),
                };
                self.slaves[CONTROL].offer(&mut self.model, self.rng, transfer);
            }
        }
        // A card that was told to shut down takes no further access, so that what is offered may
        // stay.
    }

    /// Works with what others have left, in one life after another of a card that is shut down and
    /// reset, or until other cards are waited for.
    fn meet(&mut self) {
        self.talks = self.plan.peers;
        if self.rng.random_range(0..6) == 0 {
            return self.lose_power_in_the_replay();
        }
        while self.opens() {
            self.map();
            for _ in 0..self.plan.cycles / 2 {
                if self.rng.random_range(0..3000) == 0 && !self.plan.peers {
                    self.drain();
                    self.load_any();
                    self.map();
                }
                self.cycle(true);
            }
            if self.plan.peers {
                return self.decide();
            }
            self.drain();
            if self.rng.random() || !self.memory.contents.bad.is_empty() || !self.begins_anew(false) {
                return;
            }
        }
        // What is closed saves nothing.
        self.plan.energy.get_or_insert(1000);
    }

    /// Whether a card opens that finds anything.
    pub(super) fn opens(&mut self) -> bool {
        if !self.memory.contents.bad.is_empty() {
            // The save may fail.
            self.plan.energy.get_or_insert(4000);
        }
        let ends = [state::OPEN, state::LOSS, state::FIRMWARE_MISSING, state::NO_FIRMWARE];
        let mut acknowledged = false;
        for _ in 0..8 {
            let found = self.until(&ends);
            self.compare_lost(found, acknowledged);
            match found {
                state::OPEN => return true,
                state::NO_FIRMWARE => self.load_any(),
                state::FIRMWARE_MISSING if self.rng.random() => self.load_any(),
                _ => {
                    self.set_register(registers::CONTROL, control::ACKNOWLEDGE_LOSS);
                    acknowledged = true;
                }
            }
            self.leaves(found);
        }
        false
    }

    /// The power goes in a boot that replays, if it does.
    fn lose_power_in_the_replay(&mut self) {
        let ends = [state::OPEN, state::LOSS, state::FIRMWARE_MISSING, state::NO_FIRMWARE];
        self.until(&[&ends[..], &[state::REPLAYING]].concat());
        let cycles = self.rng.random_range(0..20_000) >> self.rng.random_range(0..6);
        (0..cycles).for_each(|_| _ = self.cycle(false));
        self.plan.energy.get_or_insert(4000);
    }

    /// Whether what a boot says of lost stores is what the save said whose boot it was, and those
    /// of its stores that memory refuses. No card opens over them, or over a save that tells of
    /// some, unless a loss was acknowledged.
    fn compare_lost(&mut self, found: u32, acknowledged: bool) {
        let lost = self.register(registers::STORES_LOST);
        let head = self.found;
        if found == state::OPEN && !acknowledged {
            let tells = head.stores_lost;
            assert_eq!(tells, 0, "no store was lost, says a card behind a save that tells of {tells}");
        }
        if lost == 0 || self.lost_before {
            return;
        }
        assert!(found == state::LOSS, "state {found} hides that {lost} stores were lost");
        let in_the_replay = lost.checked_sub(head.stores_lost);
        let told = in_the_replay.is_some_and(|more| more <= u32::from(head.items));
        assert!(told, "{lost} lost stores behind a save of {} items that tells of {}", head.items, head.stores_lost);
        let lines = [registers::LOST_FIRST_LO, registers::LOST_LAST_LO].map(|low| {
            let [low, high] = [low, low + 4].map(|half| u64::from(self.register(half)));
            low | high << 32
        });
        if in_the_replay == Some(0) && head.stores_lost < u32::MAX {
            let line = |address: u64| address & ((1 << ADDRESS_BITS) - LINE_U64);
            assert_eq!(lines, [line(head.lost_first), line(head.lost_last)], "the lines of lost stores");
        }
        self.tally.lost_stores += 1;
    }

    /// Whether the card leaves a state soon: in the time of some accesses to its memory.
    fn leaves(&mut self, left: u32) -> bool {
        let accesses = 4 * (u64::from(self.plan.latency) + 100);
        let end = self.tally.cycles + accesses * u64::from(self.plan.patience).min(20);
        while self.tally.cycles < end {
            if self.register(registers::STATE) != left {
                return true;
            }
        }
        false
    }

    /// Decides about what waits for other cards, as software does, or resets it.
    fn decide(&mut self) {
        for _ in 0..self.rng.random_range(0..80) {
            let action = if self.rng.random() { parked_action::RELEASE } else { parked_action::DISCARD };
            let place = self.rng.random_range(0..PARKED_COMMANDS as u32);
            self.set_register(registers::PARKED_ACT, place | action << 8);
            (0..self.rng.random_range(0..100)).for_each(|_| _ = self.cycle(true));
        }
        if self.rng.random() {
            self.set_register(registers::CONTROL, control::FUNCTION_RESET);
            (0..self.rng.random_range(0..2000)).for_each(|_| _ = self.cycle(true));
        }
    }

    /// Shuts the card down and resets it, on a memory that others have had in between; whether it
    /// boots. It does not where it had to save, for which pools with failed logs go first. With
    /// `beyond`, more of the save counts as replayed than any save holds.
    pub(super) fn begins_anew(&mut self, beyond: bool) -> bool {
        self.set_register(registers::CONTROL, control::FUNCTION_RESET);
        self.until(&[state::OPEN]);
        self.set_register(registers::CONTROL, control::SHUT_DOWN);
        self.until(&[state::SAVED]);
        self.lost_before = self.register(registers::STORES_LOST) > 0;
        foreign::leave(&mut self.memory.contents, self.traffic, self.plan.peers, self.rng);
        self.found = saved_head(&self.memory.contents);
        if beyond {
            foreign::count_beyond(&mut self.memory.contents);
        }
        self.set_register(registers::CONTROL, control::FUNCTION_RESET);
        self.leaves(state::SAVED)
    }

    /// Asks for firmware of some slot, there or not.
    fn load_any(&mut self) {
        let slot = if self.rng.random_range(0..4) == 0 { self.rng.random() } else { self.rng.random_range(0..2) };
        self.load(slot);
    }

    /// Asks for the firmware of a slot, and waits for what becomes of it.
    pub(super) fn load(&mut self, slot: u32) -> u32 {
        self.set_register(registers::FIRMWARE_LOAD, slot);
        let heard = self.tally.cycles + REPORT_CYCLES;
        let mut status = self.register(registers::FIRMWARE_STATUS) & 0xff;
        while status == firmware_status::BUSY || self.tally.cycles < heard {
            let before = status;
            status = self.register(registers::FIRMWARE_STATUS) & 0xff;
            if before == firmware_status::BUSY && status != before {
                break;
            }
            assert_eq!(status, before, "the outcome of a load was shown before it was known");
        }
        status
    }

    /// Waits until everything is answered, and counts what waited for something else.
    pub(super) fn finish(&mut self) {
        self.drain();
        let held = [registers::COMMANDS_HELD, registers::HOST_HELD].map(|of| u64::from(self.register(of)));
        self.tally.held += held.iter().sum::<u64>();
    }

    /// Waits until everything that was offered is answered.
    pub(super) fn drain(&mut self) {
        let end = self.tally.cycles + HANG_CYCLES;
        while self.slaves.iter().any(|slave| slave.open() > 0) {
            assert!(self.tally.cycles < end, "accesses stay without an answer");
            self.cycle(false);
        }
    }

    /// Cuts the power; gives the memory, and whether the energy ended before the save.
    fn cut(mut self) -> (Contents, bool) {
        // What is on its way may or may not arrive.
        let slaves = &self.slaves;
        self.private.retain(|line, _| !slaves[HOST].touches(*line));
        self.talks = false;
        self.set("power_fail", 1);
        let saved = self.model.port("save_done").unwrap_or_else(|error| panic!("{error}"));
        let energy = self.plan.energy.unwrap_or(HANG_CYCLES);
        let mut left = energy;
        self.cycle(false);
        while left > 0 && self.model.get_u64(saved) == 0 {
            self.cycle(false);
            left -= 1;
        }
        let whole = self.model.get_u64(saved) == 1;
        assert!(whole || self.plan.energy.is_some(), "the save does not end");
        // The voltage falls: the memory's answers, reset, then everything else.
        let memory = ["rvalid", "bvalid"].map(|valid| format!("m_axi_mem0_{valid}"));
        for name in [&*memory[0], &*memory[1], "rst_n", "pm_bytes", "power_fail"] {
            self.set(name, 0);
            (0..4).for_each(|_| {
                self.model.settle();
                self.model.edge(self.clock);
            });
        }
        let mut contents = self.memory.power_fail(self.rng);
        contents.bad.clear();
        (contents, !whole)
    }
}

/// The head of the save that a boot on this memory is to replay.
fn saved_head(contents: &Contents) -> SaveHead {
    let line = |number: usize| contents.line(SAVE_BASE + number as u64 * LINE_U64);
    let arm = u64::from_le_bytes(line(ARM_LINE)[..8].try_into().expect("eight bytes"));
    match ArmWord::decode(arm) {
        Some(ArmWord::Running(_)) => SaveHead::from_bytes(&line(HEAD_LINE)),
        _ => SaveHead::default(),
    }
}

/// The private line that a transfer is about.
fn private(transfer: &Transfer) -> Option<u64> {
    let line = transfer.address / LINE_U64;
    (POOLS_BASE / LINE_U64..POOLS_BASE / LINE_U64 + PRIVATE_LINES).contains(&line).then_some(line)
}

/// Powers a card up, works with it, cuts its power.
fn session(
    (library, inputs): (&Library, &[(&str, u64)]),
    rng: &mut ChaCha8Rng,
    traffic: &mut Traffic,
    private: &mut HashMap<u64, [u8; 64]>,
    tally: &mut Tally,
    (mut contents, may_lose): (Contents, bool),
    manner: Manner,
) -> (Contents, bool) {
    let mut model = library.instance().unwrap_or_else(|error| panic!("{error}"));
    let clock = model.port("clk").unwrap_or_else(|error| panic!("{error}"));
    let plan = match manner {
        Manner::Of(life) => life.plan(),
        _ => Plan::new(rng),
    };
    let bytes = contents.bytes;
    if manner == Manner::Foreign {
        foreign::leave(&mut contents, traffic, plan.peers, rng);
    }
    for &(name, value) in inputs {
        let port = model.port(name).unwrap_or_else(|error| panic!("{error}"));
        model.set_u64(port, value);
    }
    let slaves = ["s_axil_ctrl", "s_axi_cmd", "s_axi_host"].map(|bus| Slave::new(&mut model, bus));
    let found = saved_head(&contents);
    let memory = Memory::new(&model, contents, plan.latency);
    let (records, others) = (Records::new(&mut model), Others::new(&model));
    let pieces = Vec::new();
    let mut card = Card {
        model,
        clock,
        slaves,
        memory,
        records,
        others,
        pauses: [0; AROUND],
        plan,
        rng,
        traffic,
        tally,
        private,
        pieces,
        talks: false,
        lost_before: false,
        found,
    };
    card.tally.sessions += 1;
    card.set("pm_bytes", bytes);
    (0..16).for_each(|_| {
        card.model.settle();
        card.model.edge(card.clock);
    });
    card.set("rst_n", 1);
    (0..16).for_each(|_| _ = card.cycle(false));
    match manner {
        Manner::Whole => card.serve(may_lose),
        Manner::Rough => card.endure(),
        Manner::Foreign => card.meet(),
        Manner::Of(life) => card.live(life, may_lose),
    }
    card.cut()
}

/// Runs memories of a seed, each in cards of several power-ups, and one more for lives of its own;
/// `progress` hears of each. `inputs` are those that the design has beyond the card's, with the
/// values at which they are held.
///
/// # Panics
/// At the first thing that does not hold.
pub fn run(
    library: &Library,
    inputs: &[(&str, u64)],
    seed: u64,
    memories: u64,
    progress: &mut dyn FnMut(Tally),
) -> Tally {
    let mut tally = Tally::default();
    for number in 0..=memories {
        let apart = number == memories;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(if apart { u64::MAX } else { number });
        let bytes = match number % 3 {
            _ if apart => LARGEST,
            0 => LARGEST,
            _ => ((1 << 22) + (rng.random_range(0..LARGEST) >> rng.random_range(0..18))).min(LARGEST) / 4096 * 4096,
        };
        let mut traffic = Traffic::new(&mut rng, bytes);
        let mut start = provisioned(POOLS_BASE as usize, programs::standard_elsewhere(&mut rng).bytes());
        let other = if rng.random() { programs::random(&mut rng) } else { programs::standard_elsewhere(&mut rng) };
        start.bytes[(FIRMWARE_BASE + FIRMWARE_SLOT_BYTES) as usize..][..other.bytes().len()]
            .copy_from_slice(other.bytes());
        let mut kept = (Contents::new(bytes, &start), false);
        let lines = (0..PRIVATE_LINES).map(|line| POOLS_BASE / LINE_U64 + line);
        let mut private = lines.map(|line| (line, kept.0.line(line * LINE_U64))).collect();
        let lives: &[Life] = match number {
            _ if apart => &LIVES_APART,
            0 => &LIVES,
            _ => &[],
        };
        let manners = [(Manner::Whole, POWER_UPS), (Manner::Rough, ROUGH_ONES), (Manner::Foreign, FOREIGN_ONES)];
        let manners =
            manners.into_iter().filter(|_| !apart).flat_map(|(manner, times)| (0..times).map(move |_| manner));
        for manner in lives.iter().copied().map(Manner::Of).chain(manners) {
            kept.1 |= fails_in_replay(&kept.0);
            kept = session((library, inputs), &mut rng, &mut traffic, &mut private, &mut tally, kept, manner);
            age(&mut kept.0, &mut rng);
        }
        progress(tally);
    }
    tally
}
