//! The PM window against an AXI host, an ordering point and a queue that answers in any order.

use nearpm_hdl::dut::{Dut, Value, on_both_back_ends};
use nearpm_hdl::units::host_port::HostPort;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE_U64, SAVE_BASE, SAVE_BYTES};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

const PM_LINES: u64 = 1 << 20;
const OKAY: u64 = 0;
const SLAVE_ERROR: u64 = 2;
/// The burst type that the port serves, and log2 of the bytes of a full beat.
const INCREMENTING: u64 = 1;
const FULL: u64 = 6;

/// A burst of the host.
#[derive(Clone, Debug)]
struct Burst {
    id: u64,
    /// Byte address of its first beat.
    address: u64,
    beats: u64,
    kind: u64,
    size: u64,
}

impl Burst {
    /// Whole lines.
    fn lines(id: u64, line: u64, beats: u64) -> Self {
        Burst { id, address: line * LINE_U64, beats, kind: INCREMENTING, size: FULL }
    }

    /// Line of a beat (ARM IHI 0022, A3.4.1).
    fn line(&self, beat: u64) -> u64 {
        let aligned = self.address >> self.size << self.size;
        (if beat == 0 { self.address } else { aligned + (beat << self.size) }) / LINE_U64
    }

    /// The port does not serve such bursts.
    fn is_odd(&self) -> bool {
        self.kind != INCREMENTING || self.size > FULL
    }
}

/// A load that is numbered and not answered.
#[derive(Clone, Debug)]
struct Load {
    id: u64,
    data: Vec<u8>,
    error: bool,
}

struct Bench {
    rng: ChaCha8Rng,
    /// Chance of every ready, and of every answer.
    pace: f64,
    /// Chance of `hold`.
    holding: f64,
    open: bool,
    firmware: (bool, u64),
    /// Stores whose address is not taken, and the one whose data is, with its beats that are.
    stores: VecDeque<Burst>,
    addressed: Option<(Burst, u64)>,
    beat: Option<(Vec<u8>, u64)>,
    /// `awvalid`, `arvalid`.
    asking: [bool; 2],
    /// Answers that are due for stores: identifier and error.
    due_b: VecDeque<(u64, bool)>,
    errors: bool,
    loads: VecDeque<Burst>,
    /// The load burst in hand, and the beats that are answered.
    reading: Option<(Burst, u64)>,
    /// Loads in the queue, and the one that it answers now.
    queue: Vec<Load>,
    offer: Option<Load>,
    /// Identifiers of loads that were refused and not answered.
    refusals: Vec<u64>,
    /// What was shown and not taken.
    last_channels: BTreeMap<&'static str, Vec<Value>>,
    stored: usize,
    loaded: usize,
    refused: usize,
    answered: usize,
}

impl Bench {
    fn new(dut: &mut dyn Dut, seed: u64) -> Self {
        dut.reset();
        dut.set("pm_lines", PM_LINES);
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            pace: 0.6,
            holding: 0.0,
            open: true,
            firmware: (true, 0),
            stores: VecDeque::new(),
            addressed: None,
            beat: None,
            asking: [false; 2],
            due_b: VecDeque::new(),
            errors: false,
            loads: VecDeque::new(),
            reading: None,
            queue: Vec::new(),
            offer: None,
            refusals: Vec::new(),
            last_channels: BTreeMap::new(),
            stored: 0,
            loaded: 0,
            refused: 0,
            answered: 0,
        }
    }

    fn burst(&mut self, beats: u64) -> Burst {
        let base = match self.rng.random_range(0..8) {
            0 => SAVE_BASE + self.rng.random_range(0..SAVE_BYTES),
            1 => SAVE_BASE + SAVE_BYTES,
            2 => SAVE_BASE.saturating_sub(4096),
            3 | 4 => FIRMWARE_BASE + self.rng.random_range(0..3 * FIRMWARE_SLOT_BYTES),
            5 => PM_LINES * LINE_U64 + self.rng.random_range(0..1u64 << 39),
            _ => self.rng.random_range(0..PM_LINES * LINE_U64),
        };
        let line = base / LINE_U64 % (1 << 34);
        // A burst stays inside 4 KiB.
        let line = line - (line % 64).saturating_sub(64 - beats);
        let mut burst = Burst::lines(self.rng.random_range(0..64), line, beats);
        if self.rng.random_bool(0.4) {
            burst.size = self.rng.random_range(0..7);
            burst.address += self.rng.random_range(0..LINE_U64);
        } else if self.rng.random_bool(0.2) {
            (burst.kind, burst.size) = (self.rng.random_range(0..4), self.rng.random_range(0..8));
        }
        burst
    }

    fn refuses(&self, burst: &Burst, beat: u64, write: bool) -> bool {
        let line = burst.line(beat);
        let at = line * LINE_U64;
        let save = (SAVE_BASE..SAVE_BASE + SAVE_BYTES).contains(&at);
        let slot = FIRMWARE_BASE + self.firmware.1 * FIRMWARE_SLOT_BYTES;
        let image = self.firmware.0 && (slot..slot + FIRMWARE_SLOT_BYTES).contains(&at);
        burst.is_odd() || !self.open || line >= PM_LINES || write && (save || image)
    }

    fn flip(&mut self, chance: f64) -> bool {
        self.rng.random_bool(chance)
    }

    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }

    /// What stands valid and is not taken stays as it is.
    fn steady(&mut self, dut: &mut dyn Dut, channel: &'static str, signals: &[&str], taken: bool) {
        let now: Vec<_> = signals.iter().map(|s| dut.get(s)).collect();
        let valid = now[0] != Value::ZERO;
        if let Some(before) = self.last_channels.remove(channel) {
            assert_eq!(now, before, "{channel} changed before it was taken");
        }
        if valid && !taken {
            self.last_channels.insert(channel, now);
        }
    }

    fn drive_address(&mut self, dut: &mut dyn Dut, letter: &str, which: usize, burst: Option<&Burst>) {
        let turns_on = self.flip(self.pace);
        self.asking[which] = burst.is_some() && (self.asking[which] || turns_on);
        dut.set(&format!("s$a{letter}valid"), self.asking[which]);
        if let Some(burst) = burst {
            dut.set(&format!("s$a{letter}addr"), burst.address);
            dut.set(&format!("s$a{letter}len"), burst.beats - 1);
            dut.set(&format!("s$a{letter}size"), burst.size);
            dut.set(&format!("s$a{letter}burst"), burst.kind);
            dut.set(&format!("s$a{letter}id"), burst.id);
        }
    }

    fn drive(&mut self, dut: &mut dyn Dut) {
        let (hold, pace) = (self.flip(self.holding), self.pace);
        dut.set("hold", hold);
        dut.set("window_open", self.open);
        dut.set("firmware_ok", self.firmware.0);
        dut.set("firmware_slot", self.firmware.1);
        for port in ["acc_ready", "s$bready", "s$rready"] {
            dut.set(port, self.flip(pace));
        }
        let (store, load) = (self.stores.front().cloned(), self.loads.front().cloned());
        self.drive_address(dut, "w", 0, store.as_ref());
        self.drive_address(dut, "r", 1, load.as_ref());
        // Data may be shown before its address.
        let current = self.addressed.clone().or(store.map(|s| (s, 0)));
        if self.beat.is_none() && current.is_some() && self.flip(pace) {
            self.beat = Some((self.bytes(), self.rng.random()));
        }
        dut.set("s$wvalid", self.beat.is_some());
        if let (Some((data, strobes)), Some((burst, done))) = (&self.beat, &current) {
            dut.set("s$wdata", Value::from_bytes(data));
            dut.set("s$wstrb", *strobes);
            dut.set("s$wlast", done + 1 == burst.beats);
        }
        if self.offer.is_none() && !self.queue.is_empty() && self.flip(pace) {
            let at = self.rng.random_range(0..self.queue.len());
            self.offer = Some(self.queue.swap_remove(at));
        }
        dut.set("rsp_valid", self.offer.is_some());
        if let Some(load) = &self.offer {
            dut.set("rsp_id", load.id);
            dut.set("rsp_data", Value::from_bytes(&load.data));
            dut.set("rsp_error", load.error);
        }
    }

    /// One cycle.
    fn step(&mut self, dut: &mut dyn Dut) {
        self.drive(dut);
        let taken = |dut: &mut dyn Dut, channel: &str| {
            dut.get_bool(&format!("{channel}valid")) && dut.get_bool(&format!("{channel}ready"))
        };
        let (aw, w, b) = (taken(dut, "s$aw"), taken(dut, "s$w"), taken(dut, "s$b"));
        let (ar, r) = (taken(dut, "s$ar"), taken(dut, "s$r"));
        let (acc, rsp) = (taken(dut, "acc_"), taken(dut, "rsp_"));
        let writes = dut.get_bool("acc_write");
        let (mut stored, mut loaded, mut refused) = (false, false, false);
        assert!(!(acc && dut.get_bool("hold")), "nothing is handed over while it is held");
        self.steady(dut, "b", &["s$bvalid", "s$bid", "s$bresp"], b);
        self.steady(dut, "r", &["s$rvalid", "s$rid", "s$rresp", "s$rlast", "s$rdata"], r);
        // A store with its data goes before the loads.
        let ahead = self.addressed.is_some() && dut.get_bool("s$wvalid");
        if ahead {
            assert!(dut.get_bool("writes_pending"));
            assert!(!acc || writes, "a store goes before the loads");
        }
        if !dut.get_bool("s$wvalid") {
            assert!(!dut.get_bool("writes_pending"), "nobody waits for a store without its data");
        }

        // Stores.
        if w {
            let (burst, done) = self.addressed.take().expect("data is not taken before its address");
            let (line, (data, strobes)) = (burst.line(done), self.beat.take().unwrap());
            refused = self.refuses(&burst, done, true);
            stored = !refused;
            assert_eq!(acc, stored, "line {line:#x}");
            if stored {
                assert!(writes);
                assert_eq!(dut.get_u64("acc_line"), line);
                assert_eq!(dut.get("acc_data").to_bytes(64), data);
                assert_eq!(dut.get_u64("acc_strb"), strobes);
            }
            self.errors |= refused;
            if done + 1 == burst.beats {
                self.due_b.push_back((burst.id, std::mem::take(&mut self.errors)));
            } else {
                self.addressed = Some((burst, done + 1));
            }
        }
        if aw {
            assert!(self.addressed.is_none());
            self.addressed = self.stores.pop_front().map(|burst| (burst, 0));
            self.asking[0] = false;
        }

        // Loads.
        let mut asked = None;
        if ar {
            let burst = self.loads.pop_front().unwrap();
            self.asking[1] = false;
            if burst.beats == 1 {
                asked = Some((burst, 0));
            } else {
                assert!(self.reading.is_none() && self.queue.is_empty() && self.offer.is_none());
                self.reading = Some((burst, 0));
            }
        } else if let Some(reading) = &self.reading {
            asked = Some(reading.clone()).filter(|_| !w && (acc || dut.get_bool("ev_refused")));
        }
        if let Some((burst, beat)) = asked {
            let (id, line) = (burst.id, burst.line(beat));
            refused = self.refuses(&burst, beat, false);
            loaded = !refused;
            assert_eq!(acc, loaded, "line {line:#x}");
            if loaded {
                assert!(!writes);
                assert_eq!(dut.get_u64("acc_line"), line);
                assert_eq!(dut.get_u64("acc_id"), id);
                let load = Load { id, data: self.bytes(), error: self.rng.random_bool(0.1) };
                self.queue.push(load);
            } else {
                self.refusals.push(id);
            }
        }
        assert_eq!(acc, stored || loaded, "every access was asked for");
        assert_eq!(dut.get_bool("ev_write"), stored);
        assert_eq!(dut.get_bool("ev_read"), loaded);
        assert_eq!(dut.get_bool("ev_refused"), refused);
        self.stored += usize::from(stored);
        self.loaded += usize::from(loaded);
        self.refused += usize::from(refused);

        // Answers.
        if b {
            let (id, error) = self.due_b.pop_front().expect("an answer is due");
            assert_eq!(dut.get_u64("s$bid"), id);
            assert_eq!(dut.get_u64("s$bresp"), if error { SLAVE_ERROR } else { OKAY });
        }
        if r {
            let id = dut.get_u64("s$rid");
            let error = if rsp {
                let load = self.offer.take().unwrap();
                assert_eq!((id, dut.get("s$rdata").to_bytes(64)), (load.id, load.data));
                load.error
            } else {
                let at = self.refusals.iter().position(|&x| x == id).expect("a load was refused");
                self.refusals.remove(at);
                true
            };
            assert_eq!(dut.get_u64("s$rresp"), if error { SLAVE_ERROR } else { OKAY });
            let last = self.reading.as_ref().is_none_or(|(burst, beat)| beat + 1 == burst.beats);
            assert_eq!(dut.get_bool("s$rlast"), last);
            if let Some((burst, beat)) = &mut self.reading {
                assert_eq!(id, burst.id);
                *beat += 1;
                if last {
                    self.reading = None;
                }
            }
            self.answered += 1;
        }
        assert!(r || !rsp, "an answer is passed on at once");
        dut.cycle();
    }

    /// Until nothing is left to do.
    fn drain(&mut self, dut: &mut dyn Dut) {
        for _ in 0..4000 {
            let waiting =
                (self.stores.len(), self.loads.len(), self.due_b.len(), self.queue.len(), self.refusals.len());
            if waiting == (0, 0, 0, 0, 0) && self.addressed.is_none() && self.reading.is_none() && self.offer.is_none()
            {
                return;
            }
            self.step(dut);
        }
        panic!("something was never answered");
    }

    /// An identifier that no load in hand has.
    fn free_id(&mut self) -> u64 {
        loop {
            let id = self.rng.random_range(0..64);
            let bursts = self.loads.iter().chain(self.reading.iter().map(|(burst, _)| burst)).map(|x| x.id);
            let open = self.queue.iter().chain(&self.offer).map(|x| x.id);
            if bursts.chain(open).chain(self.refusals.iter().copied()).all(|x| x != id) {
                return id;
            }
        }
    }
}

#[test]
fn random_bursts_become_lines_and_get_their_answers() {
    on_both_back_ends::<HostPort>(scenarios::random_bursts_become_lines_and_get_their_answers);
}

#[test]
fn only_what_is_the_cards_own_is_refused() {
    on_both_back_ends::<HostPort>(|dut| {
        let mut b = Bench::new(dut, 2);
        b.pace = 1.0;
        let lines = |base: u64, bytes: u64| {
            let (first, end) = (base / LINE_U64, (base + bytes) / LINE_U64);
            [first.saturating_sub(1), first, end - 1, end]
        };
        let slots = [0, 1].map(|slot| lines(FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES, FIRMWARE_SLOT_BYTES));
        for firmware in [(true, 0), (true, 1), (false, 0), (false, 1)] {
            b.firmware = firmware;
            for line in slots.iter().flatten().copied().chain(lines(SAVE_BASE, SAVE_BYTES)).chain([
                PM_LINES - 1,
                PM_LINES,
                (1 << 34) - 1,
            ]) {
                for write in [true, false] {
                    let (refused, done) = (b.refused, b.stored + b.loaded);
                    let burst = Burst::lines(9, line, 1);
                    let wanted = if b.refuses(&burst, 0, write) { (1, 0) } else { (0, 1) };
                    if write {
                        b.stores.push_back(burst)
                    } else {
                        b.loads.push_back(burst)
                    }
                    b.drain(dut);
                    assert_eq!((b.refused - refused, b.stored + b.loaded - done), wanted);
                }
            }
        }
        // The size of the memory and the window.
        dut.set("pm_lines", 100u64);
        for (line, ready) in [(99u64, true), (100, false)] {
            dut.set("s$arvalid", true);
            dut.set("s$araddr", line * LINE_U64);
            dut.set("s$arlen", 0u64);
            dut.set("s$arsize", FULL);
            dut.set("s$arburst", INCREMENTING);
            dut.set("acc_ready", false);
            assert_eq!((dut.get_bool("acc_valid"), dut.get_bool("s$arready")), (ready, !ready));
        }
    });
}

#[test]
fn single_loads_and_single_stores_pass_at_one_a_cycle() {
    on_both_back_ends::<HostPort>(|dut| {
        let mut b = Bench::new(dut, 3);
        b.pace = 1.0;
        for id in 0..60 {
            b.loads.push_back(Burst::lines(id, 0x4_0000 + id, 1));
        }
        let start = dut.cycles();
        while !b.loads.is_empty() {
            b.step(dut);
        }
        assert!(dut.cycles() - start <= 62, "{} cycles", dut.cycles() - start);
        b.drain(dut);
        for id in 0..60 {
            b.stores.push_back(Burst::lines(id, 0x4_0000 + id, 1));
        }
        let start = dut.cycles();
        b.drain(dut);
        assert!(dut.cycles() - start <= 60 + 3, "{} cycles", dut.cycles() - start);
        // A long store hands over a line a cycle.
        b.stores.push_back(Burst::lines(1, 0x4_0000, 64));
        let start = dut.cycles();
        b.drain(dut);
        assert!(dut.cycles() - start <= 64 + 4, "{} cycles", dut.cycles() - start);
    });
}

#[test]
fn a_flood_of_stores_lets_each_load_and_each_status_read_through() {
    on_both_back_ends::<HostPort>(|dut| {
        for (beats, pace) in [(1, 1.0), (1, 0.5), (8, 1.0), (8, 0.7)] {
            let mut b = Bench::new(dut, 6);
            b.pace = pace;
            // Two store bursts and what the pace costs: a beat takes 1 / pace cycles of host, and
            // as many of the ordering point.
            let bound = (2.0 * (beats as f64 + 2.0) * 6.0 / (pace * pace)) as u64;
            let mut line = 0x4_0000;
            let mut flood = |b: &mut Bench| {
                while b.stores.len() < 3 {
                    line += 64;
                    b.stores.push_back(Burst::lines(line / 64 % 64, line, beats));
                }
            };
            for round in 0..40 {
                for _ in 0..5 {
                    flood(&mut b);
                    b.step(dut);
                }
                let (start, stored, status) = (dut.cycles(), b.stored, round % 3 == 2);
                if status {
                    dut.set("status_waits", true);
                } else {
                    let id = b.free_id();
                    b.loads.push_back(Burst::lines(id, 0x3_0000, 1));
                }
                loop {
                    flood(&mut b);
                    if status && !dut.get_bool("writes_pending") || !status && b.loads.is_empty() {
                        break;
                    }
                    b.step(dut);
                    assert!(dut.cycles() - start <= bound, "a read waits for more than {bound} cycles");
                }
                // At most the burst in hand, the one whose address stands at the port, and, for a
                // load that the bench shows later, what comes until then.
                if pace == 1.0 {
                    assert!(b.stored - stored <= 2 * beats as usize, "{} lines passed", b.stored - stored);
                }
                dut.set("status_waits", false);
            }
            b.drain(dut);
        }
    });
}

#[test]
fn a_store_that_stands_at_the_port_goes_before_a_load_that_comes_with_it() {
    on_both_back_ends::<HostPort>(|dut| {
        let mut b = Bench::new(dut, 7);
        b.pace = 1.0;
        for i in 0..20 {
            b.stores.push_back(Burst::lines(i, 0x4_0000 + i, 1));
            b.loads.push_back(Burst::lines(i, 0x4_0000 + i, 1));
            while !b.loads.is_empty() {
                assert!(b.loaded == i as usize);
                b.step(dut);
            }
            assert_eq!((b.stored, b.loaded), (i as usize + 1, i as usize + 1), "the store was numbered first");
            b.drain(dut);
        }
    });
}

#[test]
fn held_or_stopped_nothing_is_handed_over() {
    on_both_back_ends::<HostPort>(|dut| {
        for port in ["hold", "stop"] {
            let mut b = Bench::new(dut, 4);
            b.pace = 1.0;
            b.holding = f64::from(u8::from(port == "hold"));
            dut.set("stop", port == "stop");
            b.loads.push_back(Burst::lines(1, 0x4_0000, 1));
            b.loads.push_back(Burst::lines(2, 0x4_0001, 3));
            for _ in 0..10 {
                b.step(dut);
            }
            assert_eq!(b.loads.len(), 2, "{port}: no load is taken");
            b.stores.push_back(Burst::lines(3, 0x4_0002, 2));
            for _ in 0..10 {
                b.step(dut);
            }
            assert_eq!(b.stored + b.loaded + b.refused, 0, "{port}");
            assert_eq!(b.stores.is_empty(), port == "hold", "{port}: no address is taken when stopped");
            assert!(dut.get_bool("writes_pending"));
            b.holding = 0.0;
            dut.set("stop", false);
            b.drain(dut);
            assert_eq!((b.stored, b.loaded), (2, 4));
            assert!(!dut.get_bool("writes_pending"));
        }
    });
}

#[test]
fn loads_of_one_identifier_are_answered_in_order() {
    on_both_back_ends::<HostPort>(|dut| {
        let mut b = Bench::new(dut, 5);
        // The queue answers in any order, and a refusal must not pass a load: so each waits for the
        // one before it.
        for i in 0..200 {
            let line = if b.flip(0.2) { PM_LINES + i } else { 0x4_0000 + i };
            b.loads.push_back(Burst::lines(i % 3 % 2, line, 1));
        }
        while b.answered < 200 {
            b.step(dut);
            let mut open = [0; 2];
            let queued = b.queue.iter().chain(&b.offer).map(|load| load.id);
            queued.chain(b.refusals.iter().copied()).for_each(|id| open[id as usize] += 1);
            assert!(open[0] <= 1 && open[1] <= 1, "two loads of one identifier are open");
            assert!(dut.cycles() < 20_000);
        }
        assert!(b.loaded > 100 && b.refused > 20);
    });
}

/// An AXI master may hold the data of a store back until it has loaded something.
#[test]
fn a_load_waits_for_no_store_that_only_its_master_can_complete() {
    on_both_back_ends::<HostPort>(scenarios::a_load_waits_for_no_store_that_only_its_master_can_complete);
}

/// What planted faults are seen by, too.
mod scenarios {
    use super::*;

    pub fn random_bursts_become_lines_and_get_their_answers(dut: &mut dyn Dut) {
        let mut b = Bench::new(dut, 1);
        let mut beats = 0;
        for round in 0..40 {
            // What may be refused changes only while nothing is under way.
            b.open = round % 8 != 7;
            b.firmware = (b.flip(0.7), b.rng.random_range(0..2));
            (b.pace, b.holding) = (b.rng.random_range(0.3..1.0), b.rng.random_range(0.0..0.5));
            for _ in 0..25 {
                let long = b.flip(0.2);
                let length = if long { b.rng.random_range(2..20) } else { 1 };
                let mut burst = b.burst(length);
                if b.flip(0.5) {
                    b.stores.push_back(burst);
                } else {
                    burst.id = b.free_id();
                    beats += burst.beats as usize;
                    b.loads.push_back(burst);
                }
            }
            b.drain(dut);
        }
        assert_eq!(b.answered, beats);
        assert!(b.stored > 500 && b.loaded > 500 && b.refused > 300, "{} {} {}", b.stored, b.loaded, b.refused);
    }

    pub fn a_load_waits_for_no_store_that_only_its_master_can_complete(dut: &mut dyn Dut) {
        for beats_that_come in [0u64, 1, 2] {
            let mut b = Bench::new(dut, 8);
            b.pace = 1.0;
            for burst in [Burst::lines(1, 0x4_0000, 3), Burst::lines(2, 0x5_0000, 1)] {
                b.stores.push_back(burst);
            }
            // So many beats come, and then none; the address of the next store stands at the port.
            while b.addressed.as_ref().is_none_or(|(_, done)| *done < beats_that_come) {
                b.step(dut);
            }
            dut.set("s$wvalid", false);
            dut.set("s$awvalid", true);
            dut.set("status_waits", true);
            for id in 10..14u64 {
                assert!(!dut.get_bool("writes_pending"), "{beats_that_come} beats: a status line waits");
                dut.set("s$arvalid", true);
                dut.set("s$arid", id);
                dut.set("s$araddr", 0x4_0000 * LINE_U64);
                dut.set("s$arlen", 0u64);
                dut.set("s$arsize", FULL);
                dut.set("s$arburst", INCREMENTING);
                assert!(dut.get_bool("asks") && dut.get_bool("s$arready"), "{beats_that_come} beats: a load waits");
                assert!(dut.get_bool("acc_valid") && !dut.get_bool("acc_write"));
                dut.cycle();
            }
        }
    }
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "an answer to a store is lost where the one before it is not taken",
        edits: &[Edit::Each("may_answer", "1'b1", 1)],
        scenario: scenarios::random_bursts_become_lines_and_get_their_answers,
        seen: "changed before it was taken",
    },
    UnitFault {
        module: "",
        what: "a narrow beat goes on to the next line",
        edits: &[Edit::Each("write_next", "write_place$q + 7'd64", 1)],
        scenario: scenarios::random_bursts_become_lines_and_get_their_answers,
        seen: "left: ",
    },
    UnitFault {
        module: "",
        what: "a narrow load goes on to the next line",
        edits: &[Edit::Each("burst_next", "burst_place$q + 7'd64", 1)],
        scenario: scenarios::random_bursts_become_lines_and_get_their_answers,
        seen: "left: ",
    },
    UnitFault {
        module: "",
        what: "a store burst of any type is served",
        edits: &[Edit::Each("writes_odd", "1'b0", 1)],
        scenario: scenarios::random_bursts_become_lines_and_get_their_answers,
        seen: "line 0x",
    },
    UnitFault {
        module: "",
        what: "a load burst of any type is served",
        edits: &[Edit::Each("load_odd", "1'b0", 2)],
        scenario: scenarios::random_bursts_become_lines_and_get_their_answers,
        seen: "line 0x",
    },
    UnitFault {
        module: "",
        what: "every beat of a load is the last",
        edits: &[Edit::Last("s$rlast", "1'b1")],
        scenario: scenarios::random_bursts_become_lines_and_get_their_answers,
        seen: "left: true",
    },
    UnitFault {
        module: "",
        what: "a load waits for a store without its data",
        edits: &[Edit::Each("store_ahead", "has_write$q", 1)],
        scenario: scenarios::a_load_waits_for_no_store_that_only_its_master_can_complete,
        seen: "a status line waits",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<HostPort>("HostPort", FAULTS);
}
