//! The command pages against a host that splits its stores as it likes.

use nearpm_hdl::dut::{Dut, Value, on_both_back_ends};
use nearpm_hdl::units::command_port::CommandPort;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::seal::{is_sealed, seal};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

const OKAY: u64 = 0;
const SLAVE_ERROR: u64 = 2;
/// Burst types.
const FIXED: u64 = 0;
const INCREMENTING: u64 = 1;

/// One beat to a slot.
#[derive(Clone, Debug)]
struct Beat {
    page: usize,
    slot: u64,
    data: [u8; 64],
    strobes: u64,
    id: u64,
    /// Type of its burst, beats of it, and its place among them.
    kind: u64,
    beats: u64,
    place: u64,
}

impl Beat {
    /// Its burst is refused.
    fn is_refused(&self) -> bool {
        self.beats > 1 || self.kind != INCREMENTING
    }

    fn is_last(&self) -> bool {
        self.place + 1 == self.beats
    }
}

/// A read of a page: its burst type and beats.
#[derive(Clone, Copy, Debug)]
struct Read {
    page: usize,
    kind: u64,
    beats: u64,
}

impl From<usize> for Read {
    fn from(page: usize) -> Self {
        Read { page, kind: INCREMENTING, beats: 1 }
    }
}

/// A write without an answer.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: u64,
    /// Its command is not numbered.
    waits: bool,
    refused: bool,
}

/// What the port holds of a slot.
#[derive(Clone, Copy)]
struct Slot {
    bytes: [u8; 64],
    mask: u64,
}

struct Bench {
    rng: ChaCha8Rng,
    /// Chance of every ready, and of every answer of the ordering point.
    pace: f64,
    slots: Vec<Slot>,
    beats: VecDeque<Beat>,
    /// `awvalid`, `wvalid` of the first beat that is not taken, and whether its address is.
    address_on: bool,
    address_taken: bool,
    data_on: bool,
    open: VecDeque<Open>,
    /// Commands that are due, and those that are being numbered.
    commands: VecDeque<(usize, [u8; 64])>,
    numbering: bool,
    /// Since when data of the last whole command is in.
    whole_at: Option<u64>,
    slowest: u64,
    dropped: usize,
    passed: usize,
    pages: [PageStatus; 4],
    reads: VecDeque<Read>,
    /// The status line that is due, and beats of it.
    reading: Option<(Vec<u8>, u64)>,
    refused: usize,
    /// What was shown of it and not taken.
    shown: Option<Value>,
    read: usize,
}

impl Bench {
    fn new(dut: &mut dyn Dut, seed: u64) -> Self {
        for port in ["s$awvalid", "s$wvalid", "s$arvalid", "host_asks", "host_takes"] {
            dut.set(port, false);
        }
        dut.reset();
        // The slots are swept.
        dut.run(66);
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            pace: 0.6,
            slots: vec![Slot { bytes: [0; 64], mask: 0 }; 64],
            beats: VecDeque::new(),
            address_on: false,
            address_taken: false,
            data_on: false,
            open: VecDeque::new(),
            commands: VecDeque::new(),
            numbering: false,
            whole_at: None,
            slowest: 0,
            dropped: 0,
            passed: 0,
            pages: Default::default(),
            reads: VecDeque::new(),
            reading: None,
            refused: 0,
            shown: None,
            read: 0,
        }
    }

    fn flip(&mut self, chance: f64) -> bool {
        self.rng.random_bool(chance)
    }

    /// A command, sealed.
    fn command(&mut self) -> [u8; 64] {
        let mut bytes = [0; 64];
        self.rng.fill_bytes(&mut bytes);
        seal(&[], &mut bytes);
        bytes
    }

    fn push(&mut self, page: usize, slot: u64, data: [u8; 64], strobes: u64) {
        let id = self.rng.random_range(0..64);
        let (kind, beats, place) = (INCREMENTING, 1, 0);
        self.beats.push_back(Beat { page, slot, data, strobes, id, kind, beats, place });
    }

    /// A burst of whole commands, which is refused.
    fn push_burst(&mut self, page: usize, slot: u64, kind: u64, beats: u64) {
        let id = self.rng.random_range(0..64);
        for place in 0..beats {
            let data = self.command();
            self.beats.push_back(Beat { page, slot, data, strobes: u64::MAX, id, kind, beats, place });
        }
    }

    /// The same command in random pieces.
    fn push_split(&mut self, page: usize, slot: u64, data: [u8; 64]) {
        let pieces = self.rng.random_range(1..5);
        let mut masks = vec![0u64; pieces];
        let mut bytes: Vec<_> = (0..64).collect();
        bytes.shuffle(&mut self.rng);
        for byte in bytes {
            let piece = self.rng.random_range(0..pieces);
            masks[piece] |= 1 << byte;
        }
        for mask in masks {
            // What the strobes leave out is noise.
            let mut noise = [0; 64];
            self.rng.fill_bytes(&mut noise);
            let mixed = std::array::from_fn(|i| if mask >> i & 1 == 1 { data[i] } else { noise[i] });
            self.push(page, slot, mixed, mask);
        }
    }

    /// The port has all of a beat.
    fn merge(&mut self, dut: &dyn Dut, beat: &Beat) {
        if beat.is_refused() {
            if beat.is_last() {
                self.open.push_back(Open { id: beat.id, waits: false, refused: true });
            }
            return;
        }
        let slot = &mut self.slots[beat.page * 16 + beat.slot as usize % 16];
        let mut waits = false;
        if beat.slot < 16 {
            if slot.mask & beat.strobes != 0 {
                slot.mask = 0;
            }
            for i in (0..64).filter(|i| beat.strobes >> i & 1 == 1) {
                slot.bytes[i] = beat.data[i];
            }
            slot.mask |= beat.strobes;
            if slot.mask == u64::MAX {
                slot.mask = 0;
                if is_sealed(&[], &slot.bytes) {
                    self.commands.push_back((beat.page, slot.bytes));
                    self.whole_at = Some(dut.cycles());
                    waits = true;
                } else {
                    self.pages[beat.page].dropped += 1;
                }
            }
        }
        self.open.push_back(Open { id: beat.id, waits, refused: false });
    }

    fn drive(&mut self, dut: &mut dyn Dut) {
        let pace = self.pace;
        let (address, data) = (self.flip(pace), self.flip(pace));
        let beat = self.beats.front().cloned();
        self.address_on = beat.is_some() && !self.address_taken && (self.address_on || address);
        self.data_on = beat.is_some() && (self.data_on || data);
        dut.set("s$awvalid", self.address_on);
        dut.set("s$wvalid", self.data_on);
        if let Some(beat) = beat {
            dut.set("s$awaddr", (beat.page as u64) << 12 | beat.slot << 6);
            dut.set("s$awid", beat.id);
            dut.set("s$wdata", Value::from_bytes(&beat.data));
            dut.set("s$wstrb", beat.strobes);
            dut.set("s$wlast", beat.is_last());
            dut.set("s$awlen", beat.beats - 1);
            dut.set("s$awburst", beat.kind);
            dut.set("s$awsize", 6u64);
        }
        dut.set("s$arvalid", !self.reads.is_empty());
        if let Some(read) = self.reads.front() {
            dut.set("s$araddr", (read.page as u64) << 12 | 0x40);
            dut.set("s$arid", read.page as u64 + 40);
            dut.set("s$arlen", read.beats - 1);
            dut.set("s$arburst", read.kind);
            dut.set("s$arsize", 6u64);
        }
        for port in ["s$bready", "s$rready", "cmd_ready"] {
            dut.set(port, self.flip(pace));
        }
        // A command is done with its handshake or later.
        let offered = dut.get_bool("cmd_valid") && dut.get_bool("cmd_ready");
        let done = (self.numbering || offered) && self.flip(pace);
        dut.set("cmd_done", done);
    }

    /// One cycle.
    fn step(&mut self, dut: &mut dyn Dut) {
        self.drive(dut);
        let taken =
            |dut: &mut dyn Dut, c: &str| dut.get_bool(&format!("{c}valid")) && dut.get_bool(&format!("{c}ready"));
        let (aw, w, b) = (taken(dut, "s$aw"), taken(dut, "s$w"), taken(dut, "s$b"));
        let (ar, r, command) = (taken(dut, "s$ar"), taken(dut, "s$r"), taken(dut, "cmd_"));
        // A command is in hand from its data until it is numbered.
        let in_hand = w && self.beats.front().is_some_and(|beat| !beat.is_refused());
        if in_hand || self.open.iter().any(|open| open.waits) {
            assert!(dut.get_bool("busy"), "busy while a write is in hand");
            assert!(!ar, "no read passes a write");
        }
        assert!(!((aw || ar) && dut.get_bool("stop")));
        assert!(!(ar && dut.get_bool("host_writes_pending")));

        // Answers before requests: what comes now is answered later.
        if b {
            let Open { id, waits, refused } = self.open.pop_front().expect("an answer is due");
            let response = if refused { SLAVE_ERROR } else { OKAY };
            assert_eq!((dut.get_u64("s$bid"), dut.get_u64("s$bresp")), (id, response));
            assert!(!waits, "a command is answered when it is numbered");
            self.refused += usize::from(refused);
        }
        if dut.get_bool("cmd_valid")
            && let Some(since) = self.whole_at.take()
        {
            self.slowest = self.slowest.max(dut.cycles() - since);
        }
        if command {
            let (page, bytes) = self.commands.pop_front().expect("a command is due");
            assert_eq!((dut.get_u64("cmd_page"), dut.get("cmd_data").to_bytes(64)), (page as u64, bytes.to_vec()));
            assert!(!self.numbering, "one command at a time");
            self.numbering = true;
            self.passed += 1;
        }
        if dut.get_bool("cmd_done") {
            self.numbering = false;
            self.open.iter_mut().find(|x| x.waits).expect("a command is in hand").waits = false;
        }
        self.dropped += usize::from(dut.get_bool("ev_dropped"));
        if r {
            let (line, left) = self.reading.take().expect("a read is due");
            let read = self.reads[0];
            let refused = read.beats > 1 || read.kind != INCREMENTING;
            assert_eq!(dut.get("s$rdata").to_bytes(64), line);
            assert_eq!(dut.get_u64("s$rresp"), if refused { SLAVE_ERROR } else { OKAY });
            assert_eq!(dut.get_bool("s$rlast"), left == 1, "{left} beats are left");
            assert_eq!(dut.get_u64("s$rid"), read.page as u64 + 40);
            if left > 1 {
                self.reading = Some((line, left - 1));
            } else {
                self.reads.pop_front();
                self.read += 1;
            }
        }
        let shows = dut.get_bool("s$rvalid").then(|| dut.get("s$rdata"));
        assert!(self.shown.is_none() || self.shown == shows, "a status line changed before it was taken");
        self.shown = shows.filter(|_| !r);
        if ar {
            assert!(self.reading.is_none());
            let Read { page, kind, beats } = *self.reads.front().unwrap();
            let (order, stores_lost) = (dut.get_u64("order"), dut.get_u64("stores_lost") as u32);
            let status = PageStatus { order, stores_lost, ..self.pages[page] };
            let line = if beats > 1 || kind != INCREMENTING { vec![0; 64] } else { status.to_bytes().to_vec() };
            self.reading = Some((line, beats));
        }

        // Data is not taken before its address.
        self.address_taken |= aw;
        self.address_on &= !aw;
        if w {
            assert!(self.address_taken);
            self.data_on = false;
            let beat = self.beats.pop_front().unwrap();
            self.address_taken = !beat.is_last();
            self.merge(dut, &beat);
        }
        dut.cycle();
    }

    fn drain(&mut self, dut: &mut dyn Dut) {
        for _ in 0..20_000 {
            if self.beats.is_empty() && self.open.is_empty() && self.reads.is_empty() {
                return;
            }
            self.step(dut);
        }
        panic!("something was never answered");
    }
}

#[test]
fn random_splits_become_exactly_the_sealed_commands() {
    on_both_back_ends::<CommandPort>(scenarios::random_splits_become_exactly_the_sealed_commands);
}

#[test]
fn a_byte_that_comes_twice_begins_the_slot_anew() {
    on_both_back_ends::<CommandPort>(|dut| {
        let mut b = Bench::new(dut, 2);
        let (old, new) = (b.command(), b.command());
        b.push(1, 15, old, u64::MAX >> 1);
        b.push(1, 15, new, 1);
        b.push(1, 15, old, 1 << 63);
        b.drain(dut);
        assert_eq!((b.passed, b.dropped), (0, 0), "neither is whole");
        b.push(1, 15, new, u64::MAX << 1 & !(1 << 63));
        b.drain(dut);
        assert_eq!((b.passed, b.dropped), (0, 1), "the pieces of both are not a command");
        b.push(1, 15, old, u64::MAX >> 8);
        b.push(1, 15, new, u64::MAX);
        b.drain(dut);
        assert_eq!((b.passed, b.dropped), (1, 1), "a whole beat stands alone");
    });
}

#[test]
fn a_whole_command_is_offered_in_six_cycles_and_they_follow_at_eight() {
    on_both_back_ends::<CommandPort>(|dut| {
        let mut b = Bench::new(dut, 3);
        b.pace = 1.0;
        for slot in 0..40 {
            let data = b.command();
            b.push(0, slot % 16, data, u64::MAX);
        }
        let start = dut.cycles();
        b.drain(dut);
        assert_eq!(b.passed, 40);
        assert!(b.slowest <= 6, "{} cycles to the offer", b.slowest);
        assert!(dut.cycles() - start <= 8 * 40 + 8, "{} cycles", dut.cycles() - start);
    });
}

#[test]
fn the_status_line_counts_what_happened_to_its_page() {
    on_both_back_ends::<CommandPort>(|dut| {
        let mut b = Bench::new(dut, 4);
        for cycle in 0..600u64 {
            dut.set("order", cycle << 33 | cycle);
            dut.set("stores_lost", cycle << 20 | cycle);
            let mut pages = b.pages;
            for kind in ["accepted", "retired", "refused", "failed"] {
                let (on, page) = (b.flip(0.4), b.rng.random_range(0..4usize));
                dut.set(&format!("{kind}_valid"), on);
                dut.set(&format!("{kind}_page"), page as u64);
                let (tag, status) = (b.rng.random::<u32>(), b.rng.random::<u8>());
                let bad = kind == "refused" || kind == "failed";
                if bad {
                    dut.set(&format!("{kind}_tag"), u64::from(tag));
                    dut.set(&format!("{kind}_status"), u64::from(status));
                }
                let of = &mut pages[page];
                let counter = match kind {
                    "accepted" => &mut of.accepted,
                    "retired" => &mut of.retired,
                    "refused" => &mut of.refused,
                    _ => &mut of.failed,
                };
                *counter += u32::from(on);
                if on && bad {
                    (of.last_bad_tag, of.last_bad_status) = (tag, status);
                }
            }
            if b.reads.is_empty() {
                let page = b.rng.random_range(0..4);
                b.reads.push_back(page.into());
            }
            b.step(dut);
            b.pages = pages;
        }
        assert!(b.read > 60, "{}", b.read);
    });
}

#[test]
fn a_read_waits_for_writes_here_and_in_the_host_port() {
    on_both_back_ends::<CommandPort>(|dut| {
        let mut b = Bench::new(dut, 5);
        b.pace = 1.0;
        dut.set("host_writes_pending", true);
        b.reads.push_back(2.into());
        for _ in 0..10 {
            b.step(dut);
        }
        assert_eq!((b.read, b.reading.is_some()), (0, false));
        dut.set("host_writes_pending", false);
        b.drain(dut);
        // A command that waits for its number.
        let data = b.command();
        b.push(0, 0, data, u64::MAX);
        while b.open.is_empty() {
            b.step(dut);
        }
        b.pace = 0.0;
        b.reads.push_back(2.into());
        for _ in 0..20 {
            b.step(dut);
        }
        assert_eq!((b.read, b.reading.is_some()), (1, false));
        b.pace = 1.0;
        b.drain(dut);
        assert_eq!((b.passed, b.read), (1, 2));
    });
}

#[test]
fn stopped_it_takes_no_new_address_and_ends_what_it_has() {
    on_both_back_ends::<CommandPort>(|dut| {
        let mut b = Bench::new(dut, 6);
        b.pace = 1.0;
        for slot in 0..2 {
            let data = b.command();
            b.push(3, slot, data, u64::MAX);
        }
        while b.beats.len() == 2 {
            b.step(dut);
        }
        dut.set("stop", true);
        b.reads.push_back(0.into());
        for _ in 0..40 {
            b.step(dut);
        }
        assert_eq!((b.beats.len(), b.open.len(), b.passed, b.read), (1, 0, 1, 0));
        assert!(!dut.get_bool("busy"));
        dut.set("stop", false);
        b.drain(dut);
        assert_eq!((b.passed, b.read), (2, 1));
    });
}

#[test]
fn a_function_reset_forgets_pieces_and_counters_at_any_time() {
    on_both_back_ends::<CommandPort>(|dut| {
        let mut b = Bench::new(dut, 7);
        for wait in 0..12 {
            // A piece in a slot of page 2; the reset falls into the write of a command to page 0.
            let (piece, whole) = (b.command(), b.command());
            b.push(2, 5, piece, u64::MAX >> 1);
            b.pace = 0.6;
            b.drain(dut);
            b.push(0, wait, whole, u64::MAX);
            b.pace = 1.0;
            for _ in 0..wait {
                b.step(dut);
            }
            dut.set("clear", true);
            b.step(dut);
            dut.set("clear", false);
            b.drain(dut);
            (0..70).for_each(|_| b.step(dut));
            b.slots[2 * 16 + 5].mask = 0;
            b.pages = Default::default();
            let passed = b.passed;
            (0..4).for_each(|page: usize| b.reads.push_back(page.into()));
            b.push(2, 5, piece, 1 << 63);
            b.drain(dut);
            assert_eq!(b.passed, passed, "reset after {wait} cycles: the rest came before it");
            b.push(2, 5, piece, u64::MAX >> 1);
            b.drain(dut);
            assert_eq!(b.passed, passed + 1, "reset after {wait} cycles");
        }
    });
}

/// A burst of two beats used to be taken for a write of one, with the second beat left over for the
/// command behind it.
#[test]
fn a_burst_is_refused_and_the_port_stays_in_step() {
    on_both_back_ends::<CommandPort>(scenarios::a_burst_is_refused_and_the_port_stays_in_step);
}

/// An AXI master may hold its data back until it has read something.
#[test]
fn nobody_waits_for_what_only_the_master_of_a_write_can_give() {
    on_both_back_ends::<CommandPort>(scenarios::nobody_waits_for_what_only_the_master_of_a_write_can_give);
}

/// What planted faults are seen by, too.
mod scenarios {
    use super::*;

    pub fn random_splits_become_exactly_the_sealed_commands(dut: &mut dyn Dut) {
        let mut b = Bench::new(dut, 1);
        for _ in 0..60 {
            b.pace = b.rng.random_range(0.3..1.0);
            for _ in 0..6 {
                let (page, slot) = (b.rng.random_range(0..4), b.rng.random_range(0..18));
                let mut data = b.command();
                match b.rng.random_range(0..6) {
                    // A flipped bit, a command that is cut off, stray bytes.
                    0 => {
                        data[b.rng.random_range(0..64)] ^= 1 << b.rng.random_range(0..8);
                        b.push_split(page, slot, data);
                    }
                    1 => {
                        b.push_split(page, slot, data);
                        b.beats.pop_back();
                    }
                    2 => {
                        let strobes = b.rng.random();
                        b.push(page, slot, data, strobes);
                    }
                    3 => b.push(page, slot, data, u64::MAX),
                    4 => {
                        let (kind, beats) = (b.rng.random_range(0..4), b.rng.random_range(2..9));
                        b.push_burst(page, slot, kind, beats);
                    }
                    _ => b.push_split(page, slot, data),
                }
            }
            // Beats of different slots come mixed, half of the time.
            if b.flip(0.5) && b.beats.iter().all(|beat| beat.beats == 1) {
                let mut beats: Vec<_> = b.beats.drain(..).collect();
                beats.shuffle(&mut b.rng);
                b.beats = beats.into();
            }
            if b.flip(0.5) {
                let page = b.rng.random_range(0..4);
                let (kind, beats) =
                    if b.flip(0.3) { (b.rng.random_range(0..4), b.rng.random_range(1..20)) } else { (1, 1) };
                b.reads.push_back(Read { page, kind, beats });
            }
            b.drain(dut);
        }
        assert!(b.passed > 60 && b.dropped > 10 && b.read > 5, "{} {} {}", b.passed, b.dropped, b.read);
        assert!(b.refused > 20, "{} bursts", b.refused);
        let dropped: u32 = b.pages.iter().map(|page| page.dropped).sum();
        assert_eq!(b.dropped, dropped as usize);
    }

    pub fn a_burst_is_refused_and_the_port_stays_in_step(dut: &mut dyn Dut) {
        let mut b = Bench::new(dut, 8);
        for pace in [1.0, 0.5] {
            b.pace = pace;
            for (kind, beats) in [(INCREMENTING, 2), (INCREMENTING, 256), (2, 16), (FIXED, 1), (FIXED, 3)] {
                let (passed, refused, read) = (b.passed, b.refused, b.read);
                b.push_burst(1, 3, kind, beats);
                let (first, second) = (b.command(), b.command());
                b.push_split(1, 3, first);
                b.push(1, 4, second, u64::MAX);
                b.reads.extend([Read { page: 1, kind, beats }, 1.into()]);
                b.drain(dut);
                let done = (b.passed - passed, b.refused - refused, b.read - read);
                assert_eq!(done, (2, 1, 2), "type {kind}, {beats} beats");
            }
        }
    }

    pub fn nobody_waits_for_what_only_the_master_of_a_write_can_give(dut: &mut dyn Dut) {
        // The address of a write, and a burst of which one beat has come.
        for case in 0..2 {
            let mut b = Bench::new(dut, 9);
            b.pace = 1.0;
            match case {
                0 => {
                    dut.set("s$awvalid", true);
                    dut.set("s$awaddr", 0u64);
                    dut.set("s$awlen", 0u64);
                    dut.set("s$awburst", INCREMENTING);
                    assert!(dut.get_bool("s$awready"));
                    dut.cycle();
                    // The next one stands at the port.
                    for _ in 0..3 {
                        assert!(!dut.get_bool("s$awready"));
                        dut.cycle();
                    }
                }
                _ => {
                    b.push_burst(0, 0, INCREMENTING, 2);
                    b.beats.pop_back();
                    while !b.beats.is_empty() {
                        b.step(dut);
                    }
                }
            }
            assert!(!dut.get_bool("busy"), "case {case}: the host's accesses wait");
            dut.set("s$arvalid", true);
            dut.set("s$arlen", 0u64);
            dut.set("s$arburst", INCREMENTING);
            assert!(dut.get_bool("s$arready"), "case {case}: a read waits");
            // Neither does it wait when the host was served last.
            dut.set("s$arvalid", false);
            dut.set("host_asks", true);
            dut.set("host_takes", true);
            (0..3).for_each(|_| dut.cycle());
            dut.set("host_takes", false);
            dut.set("s$arvalid", true);
            assert!(!dut.get_bool("busy") && dut.get_bool("s$arready"), "case {case}: a read waits for its turn");
        }
    }
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a burst is taken for a write of one beat",
        edits: &[Edit::Each("is_burst", "1'b0", 2)],
        scenario: scenarios::a_burst_is_refused_and_the_port_stays_in_step,
        seen: "a command is due",
    },
    UnitFault {
        module: "",
        what: "a burst of loads is answered with one beat",
        edits: &[Edit::Last("s$rlast", "1'b1")],
        scenario: scenarios::a_burst_is_refused_and_the_port_stays_in_step,
        seen: "beats are left",
    },
    UnitFault {
        module: "",
        what: "a refused burst is answered OKAY",
        edits: &[Edit::Last("s$bresp", "2'd0")],
        scenario: scenarios::a_burst_is_refused_and_the_port_stays_in_step,
        seen: "left: ",
    },
    UnitFault {
        module: "",
        what: "the host waits for a command without its data",
        edits: &[Edit::Last("busy", "busy | has_address$q")],
        scenario: scenarios::nobody_waits_for_what_only_the_master_of_a_write_can_give,
        seen: "the host's accesses wait",
    },
    UnitFault {
        module: "",
        what: "the host's accesses pass a command that is checked",
        edits: &[Edit::Last("busy", "(may_take & s$wvalid)")],
        scenario: scenarios::random_splits_become_exactly_the_sealed_commands,
        seen: "busy while a write is in hand",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<CommandPort>("CommandPort", FAULTS);
}
