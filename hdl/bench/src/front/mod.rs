//! A host, a memory and four units around the front, and the oracle that tells what must come of
//! it.
//!
//! **Order.** The bench releases one item after the other: an item's first valid comes at the
//! earliest in the cycle after the last handshake of the item before it. So the arrival order is
//! known, and the oracle executes each item at once in that order. A read may be passed by what
//! comes after it, so its data has to be what the oracle's line held at some time between its
//! address and its answer.
//!
//! **Adversary.** Units and memory sample every line that they read, and change every line that
//! they write, at random times between the first moment and the last at which hardware might do it.

pub mod scenarios;

use nearpm_hdl::bundles::Work;
use nearpm_hdl::dut::{Dut, PortId, PortValue, Value};
use nearpm_hdl::units::completion_writer::Record;
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::firmware::{Descriptor, Operand, Use, descriptor};
use nearpm_interface::geometry::{LINE, LINE_U64, POOLS_BASE, UNITS};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

pub type Line = [u8; LINE];

/// Device number of the card.
pub const DEVICE: u64 = 1;
/// Lines of memory.
pub const PM_LINES: u64 = 1 << 20;
/// Device address of pool `p`.
pub fn base(pool: u64) -> u64 {
    POOLS_BASE + pool * POOL_BYTES
}
/// Bytes of a pool.
pub const POOL_BYTES: u64 = 1 << 16;
/// Offset of the log ring, to the end of the pool.
pub const RING: u64 = POOL_BYTES / 2;

/// Descriptors as the standard firmware has them; the entry is the opcode, so that the unit model
/// knows it.
pub fn descriptors() -> [Descriptor; 32] {
    use descriptor as d;
    let mut all = [Descriptor::default(); 32];
    let valid = |op: Opcode| Descriptor::default().with_entry(op as u8).with(d::VALID);
    let ring = |o: Operand| d::IN_RING + o as u32;
    let (s, t, a) = (Operand::Source, Operand::Destination, Operand::Auxiliary);
    let mut put = |op: Opcode, value: Descriptor| all[op as usize] = value;
    put(Opcode::Fence, valid(Opcode::Fence).with(d::ORDERED));
    let log = valid(Opcode::UndoLog).with_use(s, Use::Bytes).with_use(t, Use::Entry);
    put(Opcode::UndoLog, log.with(ring(t)).with(d::LOGS));
    let copy = valid(Opcode::Apply).with_use(s, Use::Bytes).with_use(t, Use::Bytes);
    put(Opcode::Apply, copy.with(d::CONGRUENT));
    let both = valid(Opcode::UndoRedo).with_use(s, Use::Bytes).with_use(t, Use::Bytes).with_use(a, Use::Entry);
    put(Opcode::UndoRedo, both.with(ring(a)).with(d::CONGRUENT).with(d::LOGS).with(d::LOGS_DESTINATION));
    put(Opcode::Commit, valid(Opcode::Commit).with_use(t, Use::Word).with(d::ORDERED).with(d::COMMITS));
    put(Opcode::Map, valid(Opcode::Map).with(d::MAPS).with(d::PRIVILEGED));
    put(Opcode::Unmap, valid(Opcode::Unmap).with(d::UNMAPS).with(d::PRIVILEGED).with(d::ORDERED));
    all
}

/// What a line holds that nobody wrote.
pub fn blank(line: u64) -> Line {
    let mut bytes = [0; LINE];
    ChaCha8Rng::seed_from_u64(line).fill_bytes(&mut bytes);
    bytes
}

pub fn merge(line: &mut Line, data: &Line, strobes: u64) {
    (0..LINE).filter(|i| strobes >> i & 1 == 1).for_each(|i| line[i] = data[i]);
}

/// One step of a program: what lies between two waits.
#[derive(Clone, Debug)]
pub enum Stage {
    Log { from: u64, to: u64, length: u64, txid: u64 },
    Copy { from: u64, to: u64, length: u64 },
    Word { to: u64, value: u64 },
}

/// The strobes of the bytes `first..end` in a line.
fn strobes(line: u64, first: u64, end: u64) -> u64 {
    let low = first.max(line * LINE_U64) - line * LINE_U64;
    let high = end.min((line + 1) * LINE_U64) - line * LINE_U64;
    (low..high).fold(0, |mask, i| mask | 1 << i)
}

fn lines(first: u64, length: u64) -> std::ops::RangeInclusive<u64> {
    first / LINE_U64..=(first + length - 1) / LINE_U64
}

impl Stage {
    pub fn reads(&self) -> Vec<u64> {
        match *self {
            Stage::Log { from, length, .. } | Stage::Copy { from, length, .. } => lines(from, length).collect(),
            Stage::Word { .. } => vec![],
        }
    }
    pub fn writes(&self, read: &BTreeMap<u64, Line>) -> Vec<(u64, Line, u64)> {
        match *self {
            Stage::Log { from, to, length, txid } => {
                let mut head = [0xee; LINE];
                head[..8].copy_from_slice(&txid.to_le_bytes());
                head[8..16].copy_from_slice(&from.to_le_bytes());
                let data = lines(from, length).zip(to / LINE_U64 + 1..).map(|(source, target)| {
                    let mut bytes = [0; LINE];
                    merge(&mut bytes, &read[&source], strobes(source, from, from + length));
                    (target, bytes, u64::MAX)
                });
                data.chain([(to / LINE_U64, head, u64::MAX)]).collect()
            }
            Stage::Copy { from, to, length } => lines(from, length)
                .zip(lines(to, length))
                .map(|(source, target)| (target, read[&source], strobes(target, to, to + length)))
                .collect(),
            Stage::Word { to, value } => {
                let at = (to % LINE_U64) as usize;
                let mut bytes = [0; LINE];
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                vec![(to / LINE_U64, bytes, 0xff << at)]
            }
        }
    }
}

/// The steps of a program, from device addresses.
fn program(op: u64, s: u64, t: u64, a: u64, value: u64, length: u64, txid: u64) -> Vec<Stage> {
    match Opcode::from_code(op as u8) {
        Some(Opcode::UndoLog) => vec![Stage::Log { from: s, to: t, length, txid }],
        Some(Opcode::Apply) => vec![Stage::Copy { from: s, to: t, length }],
        Some(Opcode::UndoRedo) => {
            vec![Stage::Log { from: t, to: a, length, txid }, Stage::Copy { from: s, to: t, length }]
        }
        Some(Opcode::Commit) => vec![Stage::Word { to: t, value }],
        _ => vec![],
    }
}

/// Memory by line.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Lines(pub BTreeMap<u64, Line>);

impl Lines {
    pub fn get(&self, line: u64) -> Line {
        self.0.get(&line).copied().unwrap_or_else(|| blank(line))
    }
    pub fn put(&mut self, line: u64, data: &Line, strobes: u64) {
        let mut bytes = self.get(line);
        merge(&mut bytes, data, strobes);
        self.0.insert(line, bytes);
    }
}

/// Executes items one after the other, and remembers what each line ever held.
#[derive(Default)]
pub struct Oracle {
    pub memory: Lines,
    /// By line: since how many items it holds this.
    history: BTreeMap<u64, Vec<(usize, Line)>>,
    pub items: usize,
}

impl Oracle {
    fn put(&mut self, line: u64, data: &Line, strobes: u64) {
        self.memory.put(line, data, strobes);
        self.history.entry(line).or_default().push((self.items, self.memory.get(line)));
    }
    pub fn store(&mut self, line: u64, data: &Line, strobes: u64) {
        self.items += 1;
        self.put(line, data, strobes);
    }
    pub fn command(&mut self, c: &Command, pool_base: u64) {
        self.items += 1;
        let at = |offset: u64| pool_base.wrapping_add(offset);
        let (s, t, a) = (at(c.source), at(c.destination), at(c.auxiliary));
        for stage in program(c.opcode.into(), s, t, a, c.auxiliary, c.length.into(), c.txid) {
            let read = stage.reads().into_iter().map(|l| (l, self.memory.get(l))).collect();
            for (line, data, strobes) in stage.writes(&read) {
                self.put(line, &data, strobes);
            }
        }
    }
    /// Whether the line held this after some number of items between these two.
    pub fn held(&self, line: u64, from: usize, to: usize, data: &Line) -> bool {
        let past = self.history.get(&line).map_or(&[][..], Vec::as_slice);
        let before = past.iter().rev().find(|(at, _)| *at <= from).map_or_else(|| blank(line), |(_, d)| *d);
        before == *data || past.iter().any(|(at, d)| *at > from && *at <= to && d == data)
    }
}

/// A command in a unit.
struct Run {
    work: Work,
    stages: VecDeque<Stage>,
    pending: Vec<u64>,
    buffer: BTreeMap<u64, Line>,
    writes: Option<Vec<(u64, Line, u64)>>,
    progress: bool,
    stages_done: u64,
    status: u64,
}

macro_rules! pins {
    ($group:ident { $($name:ident),+ $(,)? }) => {
        #[allow(dead_code, reason = "a group is listed whole, whatever the bench reads of it")]
        struct $group { $($name: PortId),+ }
        impl $group {
            fn new(dut: &dyn Dut, prefix: &str) -> Self {
                Self { $($name: dut.port(&format!("{prefix}{}", stringify!($name)))),+ }
            }
        }
    };
}
pins!(Axi {
    awid,
    awaddr,
    awlen,
    awsize,
    awburst,
    awvalid,
    awready,
    wdata,
    wstrb,
    wlast,
    wvalid,
    wready,
    bid,
    bresp,
    bvalid,
    bready,
    arid,
    araddr,
    arlen,
    arsize,
    arburst,
    arvalid,
    arready,
    rid,
    rdata,
    rresp,
    rlast,
    rvalid,
    rready,
});
pins!(Mem {
    rd_valid,
    rd_ready,
    rd_line,
    rd_beats,
    rd_tag,
    rdata_valid,
    rdata,
    rdata_tag,
    rdata_last,
    rdata_error,
    wr_valid,
    wr_ready,
    wr_line,
    wr_beats,
    wr_tag,
    wdata,
    wstrb,
    wdata_ready,
    b_valid,
    b_tag,
    b_error,
});
pins!(Top {
    descriptor_index,
    descriptor,
    work,
    gate_valid,
    gate_pc,
    gate_ready,
    record_valid,
    record_ready,
    record,
    order,
    idle,
    quiet,
});
struct Unit {
    issue_valid: PortId,
    issue_ready: PortId,
    done_valid: PortId,
    done_ready: PortId,
    done_slot: PortId,
    done_status: PortId,
    progress_valid: PortId,
    progress_ready: PortId,
    progress_slot: PortId,
    progress_pc: PortId,
    runs: Vec<Run>,
    done: VecDeque<(u64, u64)>,
}

/// A write beat on one of the host's ports.
#[derive(Clone)]
pub struct Beat {
    pub address: u64,
    pub data: Line,
    pub strobes: u64,
}

/// The write side and the read side of one of the card's slave ports.
struct Master {
    pins: Axi,
    aw: Option<Beat>,
    w: Option<Beat>,
    ar: Option<(u64, u64, usize)>,
    next_id: u64,
    /// Writes whose answer has not come.
    unanswered: usize,
    reads: BTreeMap<u64, (u64, usize)>,
}

/// An answer to a read of the host.
#[derive(Clone, Debug)]
pub struct Answer {
    pub id: u64,
    pub address: u64,
    /// `items` of the bench when its address was offered.
    pub since: usize,
    pub data: Line,
    pub error: bool,
}

struct Read {
    tag: u64,
    line: u64,
    data: Option<Line>,
}

struct Write {
    tag: u64,
    line: u64,
    data: Option<(Line, u64)>,
    applied: bool,
}

pub struct Bench<'a> {
    pub dut: &'a mut dyn Dut,
    cmd: Master,
    host: Master,
    mem: Mem,
    top: Top,
    units: Vec<Unit>,
    descriptors: [Descriptor; 32],
    pub rng: ChaCha8Rng,
    pub memory: Lines,
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// Units take commands.
    pub issue: bool,
    /// Commands in units go on.
    pub work: bool,
    /// The memory takes requests of the host queue.
    pub serve: bool,
    /// The progress gate is open.
    pub gate: bool,
    /// Let units and memory go on where the host has waited for so many cycles.
    pub relent: Option<u64>,
    /// One chance in so many that something that may happen in a cycle does.
    pub laziness: u32,
    /// Sequences of commands that fail with a memory error.
    pub failing: Vec<u64>,
    /// Lines whose stores memory refuses.
    pub refusing: Vec<u64>,
    pub records: Vec<Record>,
    pub answers: Vec<Answer>,
    pub write_errors: usize,
    /// Items that the oracle has executed; for the test to keep.
    pub items: usize,
    /// Lines that the host queue wrote, in the order of the requests.
    pub stored: Vec<u64>,
    /// Opcodes issued, with their sequence.
    pub issued: Vec<(u64, u64)>,
    /// Cycle of each issue.
    pub issue_cycles: Vec<u64>,
}

const ONE_BEAT_SIZE: u64 = 6;

fn to_line(value: Value) -> Line {
    let mut line = [0; LINE];
    for (i, byte) in line.iter_mut().enumerate() {
        *byte = value.slice(8 * i, 8).to_u64() as u8;
    }
    line
}

impl Master {
    fn new(dut: &dyn Dut, prefix: &str) -> Self {
        let pins = Axi::new(dut, prefix);
        Self { pins, aw: None, w: None, ar: None, next_id: 0, unanswered: 0, reads: BTreeMap::new() }
    }

    fn drive(&self, dut: &mut dyn Dut, ready: [bool; 2]) {
        let p = &self.pins;
        dut.write(p.awvalid, self.aw.is_some().into());
        if let Some(beat) = &self.aw {
            dut.write(p.awaddr, beat.address.into());
            dut.write(p.awid, (self.next_id % 64).into());
            dut.write(p.awsize, ONE_BEAT_SIZE.into());
            dut.write(p.awburst, 1u64.into());
        }
        dut.write(p.wvalid, self.w.is_some().into());
        if let Some(beat) = &self.w {
            dut.write(p.wdata, Value::from_bytes(&beat.data));
            dut.write(p.wstrb, beat.strobes.into());
            dut.write(p.wlast, true.into());
        }
        dut.write(p.arvalid, self.ar.is_some().into());
        if let Some((id, address, _)) = self.ar {
            dut.write(p.araddr, address.into());
            dut.write(p.arid, id.into());
            dut.write(p.arsize, ONE_BEAT_SIZE.into());
            dut.write(p.arburst, 1u64.into());
        }
        dut.write(p.bready, ready[0].into());
        dut.write(p.rready, ready[1].into());
    }

    /// Notes the handshakes of this cycle; gives (write answered with an error?, read answered).
    fn note(&mut self, dut: &mut dyn Dut) -> (Option<bool>, Option<Answer>) {
        let on = |dut: &mut dyn Dut, a, b| dut.read(a) == true && dut.read(b) == true;
        let p = &self.pins;
        if on(dut, p.awvalid, p.awready) {
            self.aw = None;
            self.unanswered += 1;
        }
        if on(dut, p.wvalid, p.wready) {
            self.w = None;
        }
        if on(dut, p.arvalid, p.arready) {
            let (id, address, since) = self.ar.take().expect("it was driven");
            self.reads.insert(id, (address, since));
        }
        let answered = on(dut, p.bvalid, p.bready).then(|| dut.read(p.bresp) != 0u64);
        if answered.is_some() {
            self.unanswered = self.unanswered.checked_sub(1).expect("an answer to a write that there was");
        }
        let answer = on(dut, p.rvalid, p.rready).then(|| {
            assert!(dut.read(p.rlast) == true);
            let id = dut.read(p.rid).to_u64();
            let (address, since) = self.reads.remove(&id).expect("an answer to a read that there was");
            let error = dut.read(p.rresp) != 0u64;
            Answer { id, address, since, data: to_line(dut.read(p.rdata)), error }
        });
        (answered, answer)
    }
}

impl<'a> Bench<'a> {
    pub fn new(dut: &'a mut dyn Dut, seed: u64) -> Self {
        let unit = |u: usize| {
            let port = |name: &str| dut.port(&format!("{name}${u}"));
            Unit {
                issue_valid: port("issue_valid"),
                issue_ready: port("issue_ready"),
                done_valid: port("done_valid"),
                done_ready: port("done_ready"),
                done_slot: port("done_slot"),
                done_status: port("done_status"),
                progress_valid: port("progress_valid"),
                progress_ready: port("progress_ready"),
                progress_slot: port("progress_slot"),
                progress_pc: port("progress_pc"),
                runs: vec![],
                done: VecDeque::new(),
            }
        };
        let units = (0..UNITS).map(unit).collect();
        let bench = Self {
            cmd: Master::new(dut, "cmd$"),
            host: Master::new(dut, "host$"),
            mem: Mem::new(dut, "mem$"),
            top: Top::new(dut, ""),
            units,
            descriptors: descriptors(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            memory: Lines::default(),
            reads: vec![],
            writes: vec![],
            issue: true,
            work: true,
            serve: true,
            gate: true,
            relent: None,
            laziness: 3,
            failing: vec![],
            refusing: vec![],
            records: vec![],
            answers: vec![],
            write_errors: 0,
            items: 0,
            stored: vec![],
            issued: vec![],
            issue_cycles: vec![],
            dut,
        };
        bench.dut.reset();
        bench.dut.set("device_number", DEVICE);
        bench.dut.set("pm_lines", PM_LINES);
        bench.dut.set("window_open", true);
        bench.dut.set("firmware_ok", true);
        bench
    }

    fn chance(&mut self) -> bool {
        self.laziness <= 1 || self.rng.random_ratio(1, self.laziness)
    }

    /// One clock cycle of everything.
    pub fn cycle(&mut self) {
        let ready = [self.chance() || self.chance(), self.chance() || self.chance()];
        self.cmd.drive(self.dut, ready);
        self.host.drive(self.dut, ready);
        let record_ready = self.chance() || self.chance();
        self.dut.write(self.top.record_ready, record_ready.into());
        self.dut.write(self.top.gate_ready, self.gate.into());
        let read_answer = self.drive_memory();
        self.drive_units();

        // Everything has settled: what happens at the edge.
        let index = self.dut.read(self.top.descriptor_index).to_u64() as usize;
        let (answered, answer) = self.cmd.note(self.dut);
        self.write_errors += usize::from(answered == Some(true));
        self.answers.extend(answer);
        let (answered, answer) = self.host.note(self.dut);
        self.write_errors += usize::from(answered == Some(true));
        self.answers.extend(answer);
        if record_ready && self.dut.read(self.top.record_valid) == true {
            let record = self.dut.read(self.top.record);
            self.records.push(Record::from_value(record));
        }
        self.note_memory(read_answer);
        self.note_units();
        self.dut.cycle();
        let descriptor = u64::from(self.descriptors[index].0);
        self.dut.write(self.top.descriptor, descriptor.into());
        self.step_memory();
        self.step_units();
    }

    /// Answers at most one read and one write; gives their places.
    fn drive_memory(&mut self) -> (Option<usize>, Option<usize>) {
        let read = (0..self.reads.len()).find(|&i| self.reads[i].data.is_some()).filter(|_| self.chance());
        let write = (0..self.writes.len()).find(|&i| self.writes[i].applied).filter(|_| self.chance());
        let (rd_ready, wr_ready) = (self.serve && self.chance(), self.serve && self.chance());
        let data_ready = self.writes.iter().any(|w| w.data.is_none()) && self.chance();
        let (p, dut) = (&self.mem, &mut *self.dut);
        dut.write(p.rd_ready, rd_ready.into());
        dut.write(p.wr_ready, wr_ready.into());
        dut.write(p.wdata_ready, data_ready.into());
        dut.write(p.rdata_valid, read.is_some().into());
        dut.write(p.rdata_last, true.into());
        if let Some(read) = read.map(|i| &self.reads[i]) {
            dut.write(p.rdata, Value::from_bytes(&read.data.expect("it was sampled")));
            dut.write(p.rdata_tag, read.tag.into());
        }
        dut.write(p.b_valid, write.is_some().into());
        if let Some(write) = write.map(|i| &self.writes[i]) {
            dut.write(p.b_tag, write.tag.into());
            dut.write(p.b_error, self.refusing.contains(&write.line).into());
        }
        (read, write)
    }

    fn note_memory(&mut self, (read, write): (Option<usize>, Option<usize>)) {
        let (p, dut) = (&self.mem, &mut *self.dut);
        let mut on = |a, b| dut.read(a) == true && dut.read(b) == true;
        let (asks_read, asks_write) = (on(p.rd_valid, p.rd_ready), on(p.wr_valid, p.wr_ready));
        if dut.read(p.wdata_ready) == true {
            let data = (to_line(dut.read(p.wdata)), dut.read(p.wstrb).to_u64());
            self.writes.iter_mut().find(|w| w.data.is_none()).expect("a granted write").data = Some(data);
        }
        if let Some(i) = read {
            self.reads.remove(i);
        }
        if let Some(i) = write {
            self.writes.remove(i);
        }
        if asks_read {
            assert!(dut.read(p.rd_beats) == 0u64);
            let (tag, line) = (dut.read(p.rd_tag).to_u64(), dut.read(p.rd_line).to_u64());
            assert!(self.reads.iter().all(|r| r.tag != tag), "read tag {tag} is in use");
            self.reads.push(Read { tag, line, data: None });
        }
        if asks_write {
            assert!(dut.read(p.wr_beats) == 0u64);
            let (tag, line) = (dut.read(p.wr_tag).to_u64(), dut.read(p.wr_line).to_u64());
            assert!(self.writes.iter().all(|w| w.tag != tag), "write tag {tag} is in use");
            self.writes.push(Write { tag, line, data: None, applied: false });
            self.stored.push(line);
        }
    }

    fn step_memory(&mut self) {
        for i in 0..self.reads.len() {
            if self.reads[i].data.is_none() && self.chance() {
                self.reads[i].data = Some(self.memory.get(self.reads[i].line));
            }
        }
        for i in 0..self.writes.len() {
            let Some((data, strobes)) = self.writes[i].data else { continue };
            if !self.writes[i].applied && self.chance() {
                if !self.refusing.contains(&self.writes[i].line) {
                    self.memory.put(self.writes[i].line, &data, strobes);
                }
                self.writes[i].applied = true;
            }
        }
        let (reads, writes) = (self.reads.len(), self.writes.len());
        if reads > 1 {
            let (a, b) = (self.rng.random_range(0..reads), self.rng.random_range(0..reads));
            self.reads.swap(a, b);
        }
        // Data comes in the order of the grants, so only writes that have theirs are answered in
        // any order.
        let full = self.writes.iter().take_while(|w| w.data.is_some()).count();
        if writes > 1 && full > 1 {
            let (a, b) = (self.rng.random_range(0..full), self.rng.random_range(0..full));
            self.writes.swap(a, b);
        }
    }

    fn drive_units(&mut self) {
        for u in 0..UNITS {
            let ready = self.issue && self.units[u].runs.len() + self.units[u].done.len() < 2 && self.chance();
            let (unit, dut) = (&self.units[u], &mut *self.dut);
            dut.write(unit.issue_ready, ready.into());
            dut.write(unit.done_valid, (!unit.done.is_empty()).into());
            if let Some(&(slot, status)) = unit.done.front() {
                dut.write(unit.done_slot, slot.into());
                dut.write(unit.done_status, status.into());
            }
            let step = unit.runs.iter().find(|r| r.progress);
            dut.write(unit.progress_valid, step.is_some().into());
            if let Some(run) = step {
                dut.write(unit.progress_slot, run.work.slot.to_u64().into());
                dut.write(unit.progress_pc, (run.work.pc.to_u64() + 0x40 * run.stages_done).into());
            }
        }
    }

    fn note_units(&mut self) {
        let now = self.dut.cycles();
        let mut issues = 0;
        for u in 0..UNITS {
            let (unit, dut) = (&mut self.units[u], &mut *self.dut);
            if !unit.done.is_empty() && dut.read(unit.done_ready) == true {
                unit.done.pop_front();
            }
            if dut.read(unit.progress_valid) == true && dut.read(unit.progress_ready) == true {
                let run = unit.runs.iter_mut().find(|r| r.progress);
                run.expect("it was offered").progress = false;
            }
            if dut.read(unit.issue_valid) == true && dut.read(unit.issue_ready) == true {
                issues += 1;
                let work = Work::from_value(dut.read(self.top.work));
                self.issued.push((work.pc.to_u64() & 0x3f, work.sequence.to_u64()));
                self.issue_cycles.push(now);
                unit.runs.push(Run::new(work, self.failing.contains(&work.sequence.to_u64())));
            }
        }
        assert!(issues <= 1, "one command is issued a cycle");
    }

    fn step_units(&mut self) {
        if !self.work {
            return;
        }
        for u in 0..UNITS {
            let mut r = 0;
            while r < self.units[u].runs.len() {
                let lucky = self.chance();
                let unit = &mut self.units[u];
                if lucky {
                    unit.runs[r].step(&mut self.memory, &mut self.rng);
                }
                if unit.runs[r].is_over() {
                    let run = unit.runs.remove(r);
                    unit.done.push_back((run.work.slot.to_u64(), run.status));
                } else {
                    r += 1;
                }
            }
        }
    }

    pub fn run(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.cycle());
    }

    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for passed in 0..20_000 {
            if done(self) {
                return;
            }
            if self.relent == Some(passed) {
                (self.issue, self.serve) = (true, true);
            }
            self.cycle();
        }
        panic!("{what} did not come until cycle {}", self.dut.cycles());
    }

    /// Offers a beat on the command port, address and data up to three cycles apart, until both are
    /// taken.
    pub fn command_beat(&mut self, beat: Beat) {
        self.cmd.next_id += 1;
        let skew = self.rng.random_range(0..6u32);
        if skew != 1 {
            self.cmd.aw = Some(beat.clone());
        }
        if skew != 2 {
            self.cmd.w = Some(beat.clone());
        }
        if skew == 1 || skew == 2 {
            let wait = self.rng.random_range(1..4);
            self.run(wait);
            if skew == 1 { self.cmd.aw = Some(beat) } else { self.cmd.w = Some(beat) }
        }
        self.until("the command beat", |b| b.cmd.aw.is_none() && b.cmd.w.is_none());
    }

    /// Posts a command in one beat.
    pub fn post(&mut self, page: usize, slot: usize, c: &Command) {
        let beat = Beat { address: slot_offset(page, slot), data: c.encode(), strobes: u64::MAX };
        self.command_beat(beat);
    }

    /// Posts a command in one beat, address and data at once.
    pub fn post_fast(&mut self, page: usize, slot: usize, c: &Command) {
        self.offer_post(page, slot, c);
        self.until("the command beat", |b| b.cmd.aw.is_none() && b.cmd.w.is_none());
    }

    /// Posts a command in eight-byte pieces of any grouping and order.
    pub fn post_in_pieces(&mut self, page: usize, slot: usize, c: &Command) {
        let mut words: Vec<u32> = (0..8).collect();
        for i in (1..8).rev() {
            words.swap(i, self.rng.random_range(0..=i));
        }
        while !words.is_empty() {
            let take = self.rng.random_range(1..=words.len());
            let strobes = words.drain(..take).fold(0u64, |mask, w| mask | 0xff << (8 * w));
            // What is not strobed is garbage.
            let mut data = [0x5a; LINE];
            merge(&mut data, &c.encode(), strobes);
            self.command_beat(Beat { address: slot_offset(page, slot), data, strobes });
            let pause = self.rng.random_range(0..3);
            self.run(pause);
        }
    }

    /// Offers a store if the host port has taken the one before it.
    pub fn offer_store(&mut self, line: u64, data: Line, strobes: u64) {
        if !self.has_offer().1 {
            self.host.next_id += 1;
            let beat = Beat { address: line * LINE_U64, data, strobes };
            (self.host.aw, self.host.w) = (Some(beat.clone()), Some(beat));
        }
    }

    /// Offers a command in one beat if the command port has taken the one before it.
    pub fn offer_post(&mut self, page: usize, slot: usize, c: &Command) {
        if !self.has_offer().0 {
            let beat = Beat { address: slot_offset(page, slot), data: c.encode(), strobes: u64::MAX };
            self.cmd.next_id += 1;
            (self.cmd.aw, self.cmd.w) = (Some(beat.clone()), Some(beat));
        }
    }

    /// Whether some write waits to be taken, on the command port and on the host's.
    pub fn has_offer(&self) -> (bool, bool) {
        (self.cmd.aw.is_some() || self.cmd.w.is_some(), self.host.aw.is_some() || self.host.w.is_some())
    }

    pub fn store(&mut self, line: u64, data: Line, strobes: u64) {
        self.offer_store(line, data, strobes);
        self.until("the store", |b| b.host.aw.is_none() && b.host.w.is_none());
    }

    /// Offers a read if the host port has taken the one before it and an identifier is free.
    pub fn offer_load(&mut self, line: u64) {
        let id = (0..64).find(|id| !self.host.reads.contains_key(id));
        if let (None, Some(id)) = (&self.host.ar, id) {
            self.host.ar = Some((id, line * LINE_U64, self.items));
        }
    }

    /// Offers a read and gives its identifier, 0 to 63, once its address is taken.
    pub fn load(&mut self, line: u64) -> u64 {
        let id = (0..64).find(|id| !self.host.reads.contains_key(id));
        let Some(id) = id else {
            self.cycle();
            return self.load(line);
        };
        self.host.ar = Some((id, line * LINE_U64, self.items));
        self.until("the read address", |b| b.host.ar.is_none());
        id
    }

    /// All writes on both ports have been answered.
    pub fn settle_writes(&mut self) {
        self.until("the answers to writes", |b| b.cmd.unanswered == 0 && b.host.unanswered == 0);
    }

    /// Whether some write has no answer yet, on the command port and on the host's.
    pub fn unanswered(&self) -> (usize, usize) {
        (self.cmd.unanswered, self.host.unanswered)
    }

    /// Nothing is under way.
    pub fn drain(&mut self) {
        self.settle_writes();
        self.until("the end", |b| {
            let idle = b.dut.read(b.top.idle) == true;
            idle && b.host.reads.is_empty() && b.units.iter().all(|u| u.runs.is_empty() && u.done.is_empty())
        });
    }

    pub fn load_now(&mut self, line: u64) -> Line {
        let id = self.load(line);
        self.answers.clear();
        self.until("the read", |b| b.answers.iter().any(|a| a.id == id));
        let answer = self.answers.iter().find(|a| a.id == id).expect("it has come");
        assert!(!answer.error);
        answer.data
    }

    /// Asks for the status line of a page, which comes among the answers.
    pub fn ask_page_status(&mut self, page: usize) {
        self.cmd.ar = Some((0, slot_offset(page, 3), self.items));
    }

    /// The status line of a page.
    pub fn page_status(&mut self, page: usize) -> PageStatus {
        self.ask_page_status(page);
        self.answers.clear();
        self.until("the status line", |b| !b.answers.is_empty());
        PageStatus::from_bytes(&self.answers[0].data)
    }

    /// Maps pool `p` for `thread`.
    pub fn map(&mut self, pool: u64, thread: u64) {
        let c = Command {
            opcode: Opcode::Map as u8,
            thread: thread as u16,
            pool: pool as u32,
            source: base(pool),
            destination: POOL_BYTES,
            auxiliary: RING,
            length: (POOL_BYTES - RING) as u32,
            ..Command::default()
        };
        self.post(0, 0, &c);
        self.settle_writes();
    }

    /// Order number of the last numbered item.
    pub fn order(&mut self) -> u64 {
        self.dut.read(self.top.order).to_u64()
    }
}

impl Run {
    fn new(work: Work, fails: bool) -> Self {
        let pc = work.pc.to_u64();
        let mut stages: VecDeque<_> = program(
            pc & 0x3f,
            work.source.to_u64(),
            work.destination.to_u64(),
            work.auxiliary.to_u64(),
            work.value.to_u64(),
            work.length.to_u64(),
            work.txid.to_u64(),
        )
        .into();
        let done = pc >> 6;
        stages.drain(..done as usize);
        let pending = stages.front().map(Stage::reads).unwrap_or_default();
        let status = if fails { 0x80 } else { 0 };
        Self {
            work,
            stages,
            pending,
            buffer: BTreeMap::new(),
            writes: None,
            progress: false,
            stages_done: done,
            status,
        }
    }

    fn is_over(&self) -> bool {
        self.stages.is_empty() && !self.progress
    }

    /// Reads or writes one line.
    fn step(&mut self, memory: &mut Lines, rng: &mut ChaCha8Rng) {
        if self.progress {
            return;
        }
        let Some(stage) = self.stages.front() else { return };
        if !self.pending.is_empty() {
            let line = self.pending.swap_remove(rng.random_range(0..self.pending.len()));
            self.buffer.insert(line, memory.get(line));
            return;
        }
        if self.status != 0 {
            self.stages.clear();
            return;
        }
        let buffer = &self.buffer;
        let writes = self.writes.get_or_insert_with(|| stage.writes(buffer));
        if !writes.is_empty() {
            let (line, data, strobes) = writes.swap_remove(rng.random_range(0..writes.len()));
            memory.put(line, &data, strobes);
        }
        if writes.is_empty() {
            self.writes = None;
            self.stages.pop_front();
            self.stages_done += 1;
            self.buffer.clear();
            self.progress = !self.stages.is_empty();
            self.pending = self.stages.front().map(Stage::reads).unwrap_or_default();
        }
    }
}

/// A command of a pool that is well formed.
pub fn any_command(rng: &mut ChaCha8Rng, pool: u64, thread: u64, sequence: u64, span: u64) -> Command {
    let lines = span / LINE_U64;
    let line = |rng: &mut ChaCha8Rng| LINE_U64 * rng.random_range(0..lines);
    let offset = rng.random_range(0..LINE_U64);
    let length = [1, 8, 40, 64, 64, 150, 200][rng.random_range(0..7usize)];
    let flags = if rng.random() { FLAG_COMPLETE } else { 0 };
    let txid = 1 + sequence;
    let mut c = Command {
        flags,
        thread: thread as u16,
        pool: pool as u32,
        sequence,
        tag: sequence as u32,
        ..Command::default()
    };
    c.txid = txid;
    c.source = line(rng) + offset;
    c.length = length;
    match rng.random_range(0..10) {
        0 => c.opcode = Opcode::Fence as u8,
        1 => {
            c.opcode = Opcode::Commit as u8;
            c.destination = line(rng) + 8 * rng.random_range(0..8u64);
            c.auxiliary = txid;
            // Commands that follow have greater numbers, so that none of their transactions is
            // stale.
            c.txid = 0;
        }
        2..=4 => {
            c.opcode = Opcode::Apply as u8;
            // Half a span away, so that the ranges never overlap.
            c.destination = (c.source + span / 2) % span / LINE_U64 * LINE_U64 + offset;
        }
        5..=6 => {
            c.opcode = Opcode::UndoRedo as u8;
            c.destination = (c.source + span / 2) % span / LINE_U64 * LINE_U64 + offset;
            c.auxiliary = RING + LINE_U64 * rng.random_range(0..32u64);
        }
        _ => {
            c.opcode = Opcode::UndoLog as u8;
            c.destination = RING + LINE_U64 * rng.random_range(0..32u64);
        }
    }
    c
}
