//! Persistence against a behavioural memory and a behavioural front.
//!
//! The memory keeps only what it has answered: a cut drops, completes or tears (in words of 8
//! bytes) every other write. The front shows slots and lines for a save, and runs injected items
//! for a few cycles.

pub mod scenarios;

use nearpm_hdl::dut::{Dut, PortId, Value};
use nearpm_interface::geometry::{LINE, SAVE_BASE};
use nearpm_interface::registers::state;
use nearpm_interface::save::{
    ARM_LINE, ArmWord, HEAD_LINE, ITEM_COMMAND, ITEM_LINE, ITEM_PARKED, ITEM_STORE, LINES_PER_ITEM, MAPPING_LINE,
    MAX_ITEMS, SaveHead, SavedItem, SavedMapping, firmware_word,
};
use nearpm_interface::seal;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

type Line = [u8; LINE];

/// What survives.
#[derive(Clone, Default)]
struct Medium(BTreeMap<u64, Line>);

impl Medium {
    fn line(&self, line: usize) -> Line {
        self.0.get(&(SAVE_BASE / 64 + line as u64)).copied().unwrap_or([0; LINE])
    }
    fn set(&mut self, line: usize, bytes: Line) {
        self.0.insert(SAVE_BASE / 64 + line as u64, bytes);
    }
    fn word(&self, line: usize, at: usize) -> u64 {
        u64::from_le_bytes(self.line(line)[at..at + 8].try_into().unwrap())
    }
    fn set_word(&mut self, line: usize, at: usize, word: u64) {
        let mut bytes = self.line(line);
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        self.set(line, bytes);
    }
    fn arm(&self) -> Option<ArmWord> {
        ArmWord::decode(self.word(ARM_LINE, 0))
    }
    fn head(&self) -> SaveHead {
        SaveHead::from_bytes(&self.line(HEAD_LINE))
    }
    /// The complete image of `generation`, by the rules and not by the hardware: items by order.
    fn image(&self, generation: u64) -> Option<Vec<Item>> {
        let head = self.head();
        let lines = ITEM_LINE + LINES_PER_ITEM * usize::from(head.items);
        if head.generation != generation || usize::from(head.items) > MAX_ITEMS {
            return None;
        }
        let body: Vec<u8> = (MAPPING_LINE..lines).flat_map(|l| self.line(l)).collect();
        if !seal::is_sealed(&body, &self.line(HEAD_LINE)) {
            return None;
        }
        let mut items: Vec<_> = (0..usize::from(head.items))
            .map(|i| Item {
                data: self.line(ITEM_LINE + 2 * i),
                record: SavedItem::from_bytes(&self.line(ITEM_LINE + 2 * i + 1)),
            })
            .collect();
        items.sort_by_key(|i| i.record.order);
        Some(items)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    data: Line,
    record: SavedItem,
}

/// What the tables of the front hold.
#[derive(Clone)]
struct Tables {
    maps: [SavedMapping; 16],
    slots: [Option<Item>; 32],
    lines: [Option<Item>; 64],
    /// Commands that wait for other devices.
    parked: [Option<Item>; 32],
    order: u64,
}

impl Tables {
    fn empty() -> Self {
        Self { maps: [SavedMapping::default(); 16], slots: [None; 32], lines: [None; 64], parked: [None; 32], order: 0 }
    }

    /// Tables with that many commands, as many that wait for other devices, and so many stores, in
    /// random places and in a random order.
    fn random(rng: &mut ChaCha8Rng, commands: usize, stores: usize) -> Self {
        let mut tables = Self::empty();
        for map in &mut tables.maps {
            if rng.random_bool(0.5) {
                continue;
            }
            *map = SavedMapping {
                flags: 1 | rng.random_range(0..8) << 1,
                thread: rng.random(),
                pool: rng.random(),
                base: rng.random::<u64>() >> 24,
                bytes: rng.random::<u64>() >> 24,
                ring: rng.random::<u64>() >> 24,
                ring_bytes: rng.random::<u64>() >> 24,
                committed: rng.random(),
                reached: rng.random(),
                ..SavedMapping::default()
            };
        }
        let mut orders: Vec<u64> = (0..(2 * commands + stores) as u64).map(|i| 1000 + 3 * i).collect();
        for i in (1..orders.len()).rev() {
            orders.swap(i, rng.random_range(0..=i));
        }
        tables.order = 5000;
        let mut order = orders.into_iter();
        for _ in 0..commands {
            let free: Vec<_> = (0..32).filter(|i| tables.slots[*i].is_none()).collect();
            let record = SavedItem {
                order: order.next().unwrap(),
                kind: ITEM_COMMAND,
                page: rng.random_range(0..4),
                resume: if rng.random_bool(0.3) { rng.random_range(1..128) } else { 0 },
                released: rng.random_range(0..2),
                ..SavedItem::default()
            };
            let at = free[rng.random_range(0..free.len())];
            tables.slots[at] = Some(Item { data: rng.random(), record });
        }
        for _ in 0..commands {
            let free: Vec<_> = (0..32).filter(|i| tables.parked[*i].is_none()).collect();
            let (order, page) = (order.next().unwrap(), rng.random_range(0..4));
            let record = SavedItem { order, kind: ITEM_PARKED, page, ..SavedItem::default() };
            let at = free[rng.random_range(0..free.len())];
            tables.parked[at] = Some(Item { data: rng.random(), record });
        }
        for _ in 0..stores {
            let free: Vec<_> = (0..64).filter(|i| tables.lines[*i].is_none()).collect();
            let record = SavedItem {
                order: order.next().unwrap(),
                kind: ITEM_STORE,
                address: (rng.random::<u64>() >> 24) & !63,
                strobes: rng.random(),
                ..SavedItem::default()
            };
            let at = free[rng.random_range(0..free.len())];
            tables.lines[at] = Some(Item { data: rng.random(), record });
        }
        tables
    }

    fn items(&self) -> Vec<Item> {
        let mut items: Vec<_> = self.slots.iter().chain(&self.lines).chain(&self.parked).filter_map(|i| *i).collect();
        items.sort_by_key(|i| i.record.order);
        items
    }
}

fn map_value(map: &SavedMapping) -> Value {
    Value::ZERO
        .with_slice(0, 3, u64::from(map.flags & 7))
        .with_slice(3, 16, u64::from(map.thread))
        .with_slice(19, 32, u64::from(map.pool))
        .with_slice(51, 40, map.base)
        .with_slice(91, 40, map.bytes)
        .with_slice(131, 40, map.ring)
        .with_slice(171, 40, map.ring_bytes)
        .with_slice(211, 64, map.committed)
        .with_slice(275, 64, map.reached)
        .with_slice(339, 1, u64::from(map.flags >> 3 & 1))
}

struct Write {
    line: u64,
    strobes: u64,
    data: Line,
    answered_at: u64,
}

macro_rules! ports {
    ($($name:ident = $port:literal),+ $(,)?) => {
        struct Pins { $($name: PortId),+ }
        impl Pins {
            fn new(dut: &dyn Dut) -> Self { Self { $($name: dut.port($port)),+ } }
        }
    };
}
ports! {
    power_fail = "power_fail", save_done = "save_done", state = "state", order = "order",
    quiet = "quiet", idle = "idle", index = "save_index", map = "saved_map",
    slot_valid = "saved_slot_valid", slot_command = "saved_slot_command",
    slot_order = "saved_slot_order", slot_page = "saved_slot_page",
    slot_resume = "saved_slot_resume", slot_released = "saved_slot_released",
    parked_valid = "saved_parked_valid", parked_command = "saved_parked_command",
    parked_order = "saved_parked_order", parked_page = "saved_parked_page",
    parked_any = "parked_any", line_valid = "saved_line_valid",
    line_data = "saved_line_data", line_line = "saved_line_line",
    line_strobes = "saved_line_strobes", line_order = "saved_line_order",
    restore_valid = "map_restore_valid", restore_index = "map_restore_index",
    restore = "map_restore",
    command_valid = "inject_command_valid", command_ready = "inject_command_ready",
    command = "inject_command", page = "inject_page", resume = "inject_resume", released = "inject_released",
    parks = "inject_parks", accepted = "inject_accepted",
    redo = "redo",
    store_valid = "inject_store_valid", store_ready = "inject_store_ready",
    store_data = "inject_store_data",
    gate_valid = "gate_valid", gate_pc = "gate_pc", gate_ready = "gate_ready",
    failed = "failed", store_failed = "store_failed", lost = "lost", lost_any = "lost_any",
    lost_forget = "lost_forget", restore_lost = "restore_lost", restores = "restore_valid",
    firmware_load = "firmware_load", firmware_busy = "firmware_busy",
    firmware_ok = "firmware_ok", firmware_crc = "firmware_crc",
    firmware_expect = "firmware_expect", firmware_boot = "firmware_boot",
    window = "window_open", stop = "stop", clear = "clear",
    latched_any = "latched_any",
    rd_valid = "mem$rd_valid", rd_ready = "mem$rd_ready", rd_line = "mem$rd_line",
    rdata_valid = "mem$rdata_valid", rdata = "mem$rdata", rdata_error = "mem$rdata_error",
    wr_valid = "mem$wr_valid", wr_ready = "mem$wr_ready", wr_line = "mem$wr_line",
    wdata = "mem$wdata", wstrb = "mem$wstrb", wdata_ready = "mem$wdata_ready",
    b_valid = "mem$b_valid", b_error = "mem$b_error",
}

/// An item on its way through the front.
struct Running {
    item: usize,
    gates: VecDeque<u8>,
    ends_at: u64,
}

struct Bench<'a> {
    dut: &'a mut dyn Dut,
    pins: Pins,
    rng: ChaCha8Rng,
    medium: Medium,
    tables: Tables,
    /// Checksum of the firmware that a load at boot finds.
    firmware: Option<u32>,
    in_force: u32,
    loading: u32,
    reads: VecDeque<(u64, u64)>,
    writes: VecDeque<Write>,
    address: Option<u64>,
    restored: BTreeMap<u64, Value>,
    /// Every injection: (command?, data, page or 0, resume).
    injected: Vec<(bool, Line, u64, u8)>,
    /// Of every command among them: it waits no more, it waits again, under which number it was
    /// accepted.
    origins: Vec<(bool, bool, u64)>,
    /// Every command that was injected only for what it did to the mapping table: (data, page).
    redone: Vec<(Line, u64)>,
    running: Option<Running>,
    /// Gates that each command passes, by its first byte; empty for none.
    gated: bool,
    /// (item count at injection, pc) of every progress that was taken.
    taken: Vec<(usize, u8)>,
    fail_item: Option<usize>,
    /// Stores that memory refused, as the front knows them.
    lost: SaveHead,
    /// What a boot told the front of lost stores.
    told: Option<Value>,
    ready_after: u32,
    write_errors: bool,
    /// Cycles that each item takes besides.
    longer: u64,
    /// A line that cannot be written.
    refused: Option<usize>,
    /// Chance of a cycle in which something is under way elsewhere in the card; cycles since the
    /// last one, of the last eight cycles.
    restless: f64,
    calm: VecDeque<u64>,
    was_writing: bool,
    read_error: Option<usize>,
    now: u64,
}

impl<'a> Bench<'a> {
    fn new(dut: &'a mut dyn Dut, seed: u64) -> Self {
        let pins = Pins::new(dut);
        Self {
            dut,
            pins,
            rng: ChaCha8Rng::seed_from_u64(seed),
            medium: Medium::default(),
            tables: Tables::empty(),
            firmware: None,
            in_force: 0,
            loading: 0,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            address: None,
            restored: BTreeMap::new(),
            injected: Vec::new(),
            origins: Vec::new(),
            redone: Vec::new(),
            running: None,
            gated: false,
            taken: Vec::new(),
            fail_item: None,
            lost: SaveHead::default(),
            told: None,
            ready_after: 0,
            write_errors: false,
            longer: 0,
            refused: None,
            restless: 0.0,
            calm: VecDeque::new(),
            was_writing: false,
            read_error: None,
            now: 0,
        }
    }

    fn set(&mut self, pin: fn(&Pins) -> PortId, value: impl Into<Value>) {
        let pin = pin(&self.pins);
        self.dut.write(pin, value.into());
    }
    fn get(&mut self, pin: fn(&Pins) -> PortId) -> Value {
        let pin = pin(&self.pins);
        self.dut.read(pin)
    }
    fn high(&mut self, pin: fn(&Pins) -> PortId) -> bool {
        self.get(pin).bit(0)
    }
    fn state(&mut self) -> u32 {
        self.get(|p| p.state).to_u64() as u32
    }

    /// Power comes back: everything but the medium is gone.
    fn power_up(&mut self) {
        self.tables = Tables::empty();
        self.reads.clear();
        self.writes.clear();
        self.address = None;
        self.restored.clear();
        self.injected.clear();
        self.origins.clear();
        self.redone.clear();
        self.running = None;
        self.taken.clear();
        self.in_force = 0;
        self.loading = 0;
        self.ready_after = 0;
        self.lost = SaveHead::default();
        self.told = None;
        for pin in [
            |p: &Pins| p.power_fail,
            |p: &Pins| p.failed,
            |p: &Pins| p.store_failed,
            |p: &Pins| p.firmware_busy,
            |p: &Pins| p.gate_valid,
            |p: &Pins| p.rdata_valid,
            |p: &Pins| p.b_valid,
            |p: &Pins| p.latched_any,
        ] {
            self.set(pin, false);
        }
        self.set(|p: &Pins| p.quiet, true);
        self.calm = [0; 8].into();
        self.was_writing = false;
        self.dut.reset();
    }

    /// Power is gone: what was not answered is there, not there, or there in part.
    fn cut(&mut self) {
        for write in std::mem::take(&mut self.writes) {
            let fate = self.rng.random_range(0..3);
            let words = match fate {
                0 => 0,
                1 => 0xff,
                _ => self.rng.random::<u8>(),
            };
            self.apply(&write, words);
        }
        self.power_up();
    }

    fn apply(&mut self, write: &Write, words: u8) {
        let bytes = self.medium.0.entry(write.line).or_insert([0; LINE]);
        for (i, (old, new)) in bytes.iter_mut().zip(write.data).enumerate() {
            if write.strobes >> i & 1 == 1 && words >> (i / 8) & 1 == 1 {
                *old = new;
            }
        }
    }

    /// One cycle of card, memory and front.
    fn step(&mut self) {
        self.now += 1;
        // Memory: what it drives in this cycle.
        let ready = self.rng.random_bool(0.7);
        self.set(|p| p.rd_ready, ready);
        let ready = self.rng.random_bool(0.7);
        self.set(|p| p.wr_ready, ready);
        let data_ready = self.address.is_some();
        self.set(|p| p.wdata_ready, data_ready);
        let answer = self.reads.front().is_some_and(|(_, at)| *at <= self.now);
        self.set(|p| p.rdata_valid, answer);
        if answer {
            let (line, _) = self.reads.pop_front().unwrap();
            let bytes = self.medium.0.get(&line).copied().unwrap_or([0; LINE]);
            self.set(|p| p.rdata, Value::from_bytes(&bytes));
            let error = self.read_error.map(|l| SAVE_BASE / 64 + l as u64) == Some(line);
            self.set(|p| p.rdata_error, error);
        }
        let answer = self.writes.front().is_some_and(|w| w.answered_at <= self.now);
        self.set(|p| p.b_valid, answer);
        let refused = self.refused.map(|line| SAVE_BASE / 64 + line as u64);
        let refuses = self.write_errors || self.writes.front().is_some_and(|write| Some(write.line) == refused);
        self.set(|p| p.b_error, refuses);
        if answer {
            let write = self.writes.pop_front().unwrap();
            if !refuses {
                self.apply(&write, 0xff);
            }
        }
        let busy = self.restless > 0.0 && self.rng.random_bool(self.restless);
        self.set(|p| p.quiet, !busy);
        let calm = if busy { 0 } else { self.calm.back().map_or(0, |calm| calm + 1) };
        self.calm.push_back(calm);
        self.calm.pop_front();
        // Firmware store.
        let busy = self.loading > 0;
        self.set(|p| p.firmware_busy, busy);
        self.set(|p| p.firmware_crc, u64::from(self.in_force));
        self.set(|p| p.firmware_ok, self.in_force != 0);
        // Front.
        self.set(|p| p.order, self.tables.order);
        let running = self.running.is_some();
        let waits = self.tables.parked.iter().any(Option::is_some);
        self.set(|p| p.parked_any, waits);
        let tables = self.tables.slots.iter().chain(&self.tables.lines);
        let empty = tables.flatten().next().is_none() && !running;
        self.set(|p| p.idle, empty);
        let gate = self.running.as_ref().and_then(|r| r.gates.front().copied());
        self.set(|p| p.gate_valid, gate.is_some());
        self.set(|p| p.gate_pc, u64::from(gate.unwrap_or(0)));
        let waiting = self.high(|p| p.command_valid) || self.high(|p| p.store_valid);
        self.ready_after = match (waiting && !running, self.ready_after) {
            (false, _) => self.rng.random_range(1..6),
            (true, n) => n.saturating_sub(1),
        };
        assert!(!waiting || !running, "an item is given while the one before it runs");
        let take = waiting && !running && self.ready_after == 0;
        self.set(|p| p.command_ready, take);
        self.set(|p| p.store_ready, take);
        let fails = self
            .running
            .as_ref()
            .is_some_and(|r| r.gates.is_empty() && r.ends_at <= self.now && self.fail_item == Some(r.item));
        // A store by the memory's answer, a command by its status.
        let stores = self.running.as_ref().and_then(|r| self.injected.get(r.item)).is_some_and(|item| !item.0);
        self.set(|p| p.failed, fails && !stores);
        self.set(|p| p.store_failed, fails && stores);
        let line = |address: u64| address / LINE as u64;
        let SaveHead { stores_lost, lost_first, lost_last, .. } = self.lost;
        let lost = Value::from(u64::from(stores_lost)).with_slice(32, 34, line(lost_first)).with_slice(
            66,
            34,
            line(lost_last),
        );
        self.set(|p| p.lost, lost);
        self.set(|p| p.lost_any, stores_lost > 0);

        // What the card does in this cycle.
        if self.high(|p| p.rd_valid) && self.high(|p| p.rd_ready) {
            let line = self.get(|p| p.rd_line).to_u64();
            self.reads.push_back((line, self.now + self.rng.random_range(1..4)));
        }
        if data_ready && self.high(|p| p.wdata_ready) {
            let data = self.get(|p| p.wdata).to_bytes(LINE).try_into().unwrap();
            let strobes = self.get(|p| p.wstrb).to_u64();
            let last = self.writes.back().map_or(0, |w| w.answered_at);
            let line = self.address.take().unwrap();
            // What is refused is refused late.
            let late = if self.refused.map(|line| SAVE_BASE / 64 + line as u64) == Some(line) { 60 } else { 0 };
            let answered_at = last.max(self.now) + self.rng.random_range(1..6) + late;
            self.writes.push_back(Write { line, strobes, data, answered_at });
        }
        if self.high(|p| p.wr_valid) && self.high(|p| p.wr_ready) {
            assert!(self.address.is_none(), "a second write before the data of the first");
            self.address = Some(self.get(|p| p.wr_line).to_u64());
        }
        if self.high(|p| p.restores) {
            let lost = self.get(|p| p.restore_lost);
            assert!(self.told.replace(lost).is_none(), "a boot tells once");
        }
        if self.high(|p| p.lost_forget) {
            self.lost = SaveHead::default();
        }
        if self.high(|p| p.restore_valid) {
            let index = self.get(|p| p.restore_index).to_u64();
            let entry = self.get(|p| p.restore);
            assert!(self.restored.insert(index, entry).is_none(), "entry {index} twice");
        }
        if take {
            let command = self.high(|p| p.command_valid);
            assert_ne!(command, self.high(|p| p.store_valid));
            let (data, page, resume) = if command {
                let page = self.get(|p| p.page).to_u64();
                (self.get(|p| p.command), page, self.get(|p| p.resume).to_u64() as u8)
            } else {
                (self.get(|p| p.store_data), 0, 0)
            };
            let data: Line = data.to_bytes(LINE).try_into().unwrap();
            let gates: VecDeque<u8> = [20u8, 40, 60].into();
            let redo = self.high(|p| p.redo);
            let origin = (self.high(|p| p.released), self.high(|p| p.parks), self.get(|p| p.accepted).to_u64());
            let gates = if command && self.gated && !redo && !origin.1 {
                gates.into_iter().filter(|g| *g > resume).collect()
            } else {
                VecDeque::new()
            };
            let ends_at = self.now + self.rng.random_range(1..30) + self.longer;
            self.running = Some(Running { item: self.injected.len(), gates, ends_at });
            if redo {
                assert!(command && resume == 0, "only commands are done again, and from their start");
                assert!(self.injected.is_empty(), "done again behind what is replayed");
                self.redone.push((data, page));
            } else {
                self.injected.push((command, data, page, resume));
                self.origins.push(origin);
            }
        } else if let Some(pc) = gate {
            if self.high(|p| p.gate_ready) {
                self.running.as_mut().unwrap().gates.pop_front();
                let item = self.injected.len();
                self.taken.push((item, pc));
            }
        } else if self.running.as_ref().is_some_and(|r| r.ends_at <= self.now) {
            self.running = None;
        }
        if self.high(|p| p.firmware_load) {
            self.loading = self.rng.random_range(3..9);
        } else if self.loading > 0 {
            self.loading -= 1;
            if self.loading == 0 {
                let boot = self.high(|p| p.firmware_boot);
                let expect = self.get(|p| p.firmware_expect).to_u64() as u32;
                if let Some(crc) = self.firmware.filter(|crc| !boot || *crc == expect) {
                    self.in_force = crc;
                }
            }
        }
        self.check_calm();
        let index = self.get(|p| p.index).to_u64() as usize;
        self.dut.cycle();
        // The tables answer in the next cycle.
        let map = map_value(&self.tables.maps[index % 16]);
        self.set(|p| p.map, map);
        let (slot, line) = (self.tables.slots[index % 32], self.tables.lines[index % 64]);
        self.set(|p| p.slot_valid, slot.is_some());
        if let Some(item) = slot {
            self.set(|p| p.slot_command, Value::from_bytes(&item.data));
            self.set(|p| p.slot_order, item.record.order);
            self.set(|p| p.slot_page, u64::from(item.record.page));
            self.set(|p| p.slot_resume, u64::from(item.record.resume));
            self.set(|p| p.slot_released, item.record.released == 1);
        }
        let parked = self.tables.parked[index % 32];
        self.set(|p| p.parked_valid, parked.is_some());
        if let Some(item) = parked {
            self.set(|p| p.parked_command, Value::from_bytes(&item.data));
            self.set(|p| p.parked_order, item.record.order);
            self.set(|p| p.parked_page, u64::from(item.record.page));
        }
        self.set(|p| p.line_valid, line.is_some());
        if let Some(item) = line {
            self.set(|p| p.line_data, Value::from_bytes(&item.data));
            self.set(|p| p.line_order, item.record.order);
            self.set(|p| p.line_line, item.record.address / 64);
            self.set(|p| p.line_strobes, item.record.strobes);
        }
    }

    /// What has to wait until nothing is under way comes behind some cycles of calm.
    fn check_calm(&mut self) {
        if self.restless == 0.0 {
            return;
        }
        let first = [ARM_LINE, MAPPING_LINE].map(|line| SAVE_BASE / 64 + line as u64);
        let writing = self.high(|p| p.wr_valid) && first.contains(&self.get(|p| p.wr_line).to_u64());
        let opened = self.high(|p| p.window);
        let begins = writing && !self.was_writing && opened
            || self.high(|p| p.clear) && opened
            || self.high(|p| p.firmware_load) && !self.high(|p| p.firmware_boot);
        self.was_writing = writing;
        assert!(!begins || self.calm.iter().any(|calm| *calm > 8), "begins while something is under way");
    }

    fn pulse(&mut self, pin: &str) {
        self.dut.set(pin, true);
        self.step();
        self.dut.set(pin, false);
    }

    fn run_to_state(&mut self, wanted: &[u32]) -> u32 {
        for _ in 0..200_000 {
            let state = self.state();
            if wanted.contains(&state) {
                return state;
            }
            self.step();
        }
        panic!("the card stays in state {}, waiting for {wanted:?}", self.state());
    }

    fn boot(&mut self) -> u32 {
        self.run_to_state(&[state::OPEN, state::NO_FIRMWARE, state::LOSS, state::FIRMWARE_MISSING])
    }

    fn power_fail(&mut self) {
        self.set(|p| p.power_fail, true);
        for _ in 0..20_000 {
            if self.high(|p| p.save_done) {
                assert!(self.writes.is_empty(), "save_done before the last answer");
                return;
            }
            self.step();
        }
        panic!("no save_done; state {}", self.state());
    }

    /// A card with firmware 77 in force, armed, whose tables hold these items.
    fn running(&mut self, commands: usize, stores: usize) -> Vec<Item> {
        self.firmware = Some(77);
        self.medium.set_word(ARM_LINE, 8, firmware_word(1, 77));
        self.power_up();
        assert_eq!(self.boot(), state::OPEN);
        self.tables = Tables::random(&mut self.rng, commands, stores);
        self.tables.items()
    }

    fn check_injected(&self, items: &[Item]) {
        assert_eq!(self.injected.len(), items.len(), "the number of items that were replayed");
        for ((command, data, page, _), item) in self.injected.iter().zip(items) {
            assert_eq!(*command, item.record.kind != ITEM_STORE, "the order of what was replayed");
            assert_eq!(*data, item.data, "the order of what was replayed");
            assert_eq!(*page, u64::from(item.record.page));
        }
        for (origin, item) in self.origins.iter().zip(items).filter(|(_, i)| i.record.kind != ITEM_STORE) {
            let SavedItem { released, kind, order, .. } = item.record;
            assert_eq!(*origin, (released == 1, kind == ITEM_PARKED, order), "who waits again, and since when");
        }
    }
}
