//! The command pages against a host that splits its stores as it likes.

use nearpm_hdl::dut::{Dut, Value, on_both_back_ends};
use nearpm_hdl::units::command_port::CommandPort;
use nearpm_interface::completion::PageStatus;
use nearpm_interface::seal::{is_sealed, seal};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// One beat to a slot.
#[derive(Clone, Debug)]
struct Beat {
    page: usize,
    slot: u64,
    data: [u8; 64],
    strobes: u64,
    id: u64,
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
    /// Identifiers of the beats without an answer, and whether each waits for its command.
    open: VecDeque<(u64, bool)>,
    /// Commands that are due, and those that are being numbered.
    commands: VecDeque<(usize, [u8; 64])>,
    numbering: bool,
    /// Since when data of the last whole command is in.
    whole_at: Option<u64>,
    slowest: u64,
    dropped: usize,
    passed: usize,
    pages: [PageStatus; 4],
    reads: VecDeque<usize>,
    /// The status line that is due.
    reading: Option<Vec<u8>>,
    /// What was shown of it and not taken.
    shown: Option<Value>,
    read: usize,
}

impl Bench {
    fn new(dut: &mut dyn Dut, seed: u64) -> Self {
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
        self.beats.push_back(Beat { page, slot, data, strobes, id });
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
        self.open.push_back((beat.id, waits));
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
            dut.set("s$wlast", true);
        }
        dut.set("s$arvalid", !self.reads.is_empty());
        dut.set("s$araddr", self.reads.front().map_or(0, |&page| (page as u64) << 12 | 0x40));
        dut.set("s$arid", self.reads.front().map_or(0, |&page| page as u64 + 40));
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
        if aw || self.address_taken || !self.open.is_empty() {
            assert!(dut.get_bool("busy"), "busy while a write is in hand");
            assert!(!ar, "no read passes a write");
        }
        assert!(!((aw || ar) && dut.get_bool("stop")));
        assert!(!(ar && dut.get_bool("host_writes_pending")));

        // Answers before requests: what comes now is answered later.
        if b {
            let (id, waits) = self.open.pop_front().expect("an answer is due");
            assert_eq!((dut.get_u64("s$bid"), dut.get_u64("s$bresp")), (id, 0));
            assert!(!waits, "a command is answered when it is numbered");
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
            self.open.iter_mut().find(|x| x.1).expect("a command is in hand").1 = false;
        }
        self.dropped += usize::from(dut.get_bool("ev_dropped"));
        if r {
            let line = self.reading.take().expect("a read is due");
            assert_eq!(dut.get("s$rdata").to_bytes(64), line);
            assert!(dut.get_bool("s$rlast") && dut.get_u64("s$rresp") == 0);
            assert_eq!(Some(dut.get_u64("s$rid")), self.reads.pop_front().map(|page| page as u64 + 40));
            self.read += 1;
        }
        let shows = dut.get_bool("s$rvalid").then(|| dut.get("s$rdata"));
        assert!(self.shown.is_none() || self.shown == shows, "a status line changed before it was taken");
        self.shown = shows.filter(|_| !r);
        if ar {
            assert!(self.reading.is_none());
            let page = *self.reads.front().unwrap();
            let status = PageStatus { order: dut.get_u64("order"), ..self.pages[page] };
            self.reading = Some(status.to_bytes().to_vec());
        }

        // Data is not taken before its address.
        self.address_taken |= aw;
        self.address_on &= !aw;
        if w {
            assert!(self.address_taken);
            self.address_taken = false;
            self.data_on = false;
            let beat = self.beats.pop_front().unwrap();
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
    on_both_back_ends::<CommandPort>(|dut| {
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
                    _ => b.push_split(page, slot, data),
                }
            }
            // Beats of different slots come mixed, half of the time.
            if b.flip(0.5) {
                let mut beats: Vec<_> = b.beats.drain(..).collect();
                beats.shuffle(&mut b.rng);
                b.beats = beats.into();
            }
            if b.flip(0.3) {
                let page = b.rng.random_range(0..4);
                b.reads.push_back(page);
            }
            b.drain(dut);
        }
        assert!(b.passed > 60 && b.dropped > 10 && b.read > 5, "{} {} {}", b.passed, b.dropped, b.read);
        let dropped: u32 = b.pages.iter().map(|page| page.dropped).sum();
        assert_eq!(b.dropped, dropped as usize);
    });
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
                b.reads.push_back(page);
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
        b.reads.push_back(2);
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
        b.reads.push_back(2);
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
        b.reads.push_back(0);
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
            (0..4).for_each(|page| b.reads.push_back(page));
            b.push(2, 5, piece, 1 << 63);
            b.drain(dut);
            assert_eq!(b.passed, passed, "reset after {wait} cycles: the rest came before it");
            b.push(2, 5, piece, u64::MAX >> 1);
            b.drain(dut);
            assert_eq!(b.passed, passed + 1, "reset after {wait} cycles");
        }
    });
}
