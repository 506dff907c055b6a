//! Random programs, two commands at a time, before a memory that answers when it likes: every port
//! is held up.

use crate::seeded;
use nearpm_hdl::bundles::Work;
use nearpm_hdl::dut::{Dut, PortId, PortValue, Value, on_rust_hdl};
use nearpm_hdl::units::nearpm_unit::NearPmUnit;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::firmware::{Instruction, Operand, PROGRAM_WORDS};
use nearpm_interface::geometry::{CONTEXTS_PER_UNIT, LINE, LINE_U64};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, lines_of};
use nearpm_interface::status::Status;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Line = [u8; LINE];

/// Lines that a copy of most programs may touch, and so the distance of the places that they copy
/// to.
const STRIDE: u8 = 20;
/// A word that is no instruction.
const NOTHING: u32 = 0xf000_0000;
/// Cycles in which nothing moves at any port, after which a unit hangs.
const PATIENCE: u64 = 2000;

/// A program in the control store.
#[derive(Clone)]
struct Program {
    pc: u64,
    words: Vec<u32>,
    /// No copy meets another one however long they are.
    roomy: bool,
}

/// What a command that is issued has to do, and how far it has come.
struct Running {
    /// Waits that are passed; and the one behind which nothing is done any more.
    phase: usize,
    last: usize,
    /// Where a replay resumes behind each wait.
    resumes: Vec<u64>,
    status: u64,
    /// Memory fails for it: what it writes of its last phase may be missing.
    fails: bool,
    lines: BTreeSet<u64>,
}

/// What one line has to become.
struct Planned {
    slot: usize,
    phase: usize,
    line: Line,
    mask: u64,
    written: u64,
}

struct Beat {
    line: u64,
    data: Line,
    strobes: u64,
}

/// Chances in a cycle: memory takes a read, gives a line, takes a write, takes a line, answers; an
/// end and a progress are noted, the unit is told to be quiet.
const CHANNELS: usize = 8;

macro_rules! pins {
    ($($name:ident = $port:literal),+ $(,)?) => {
        struct Pins { $($name: PortId),+ }
        impl Pins {
            fn new(dut: &dyn Dut) -> Self { Self { $($name: dut.port($port)),+ } }
        }
    };
}
pins!(
    issue_valid = "issue_valid",
    issue_ready = "issue_ready",
    work = "work",
    done_valid = "done_valid",
    done_ready = "done_ready",
    done_slot = "done_slot",
    done_status = "done_status",
    progress_valid = "progress_valid",
    progress_ready = "progress_ready",
    progress_slot = "progress_slot",
    progress_pc = "progress_pc",
    quiesce = "quiesce",
    quiet = "quiet",
    rd_valid = "mem$rd_valid",
    rd_ready = "mem$rd_ready",
    rd_line = "mem$rd_line",
    rd_beats = "mem$rd_beats",
    rdata_valid = "mem$rdata_valid",
    rdata = "mem$rdata",
    rdata_error = "mem$rdata_error",
    wr_valid = "mem$wr_valid",
    wr_ready = "mem$wr_ready",
    wr_line = "mem$wr_line",
    wr_beats = "mem$wr_beats",
    wr_tag = "mem$wr_tag",
    wdata = "mem$wdata",
    wstrb = "mem$wstrb",
    wdata_ready = "mem$wdata_ready",
    b_valid = "mem$b_valid",
    b_tag = "mem$b_tag",
    b_error = "mem$b_error",
);

struct Bench<'a> {
    dut: &'a mut dyn Dut,
    pins: Pins,
    rng: ChaCha8Rng,
    chances: [f64; CHANNELS],
    programs: Vec<Program>,
    /// By request slot.
    running: BTreeMap<usize, Running>,
    /// A command that is offered until it is taken.
    offered: Option<(Work, Running)>,
    memory: BTreeMap<u64, Line>,
    plan: BTreeMap<u64, Planned>,
    /// Lines that a command may read, with its slot and its phase.
    sources: BTreeMap<u64, (usize, usize)>,
    unreadable: BTreeSet<u64>,
    unwritable: BTreeSet<u64>,
    /// Lines that were asked for and have not come.
    reads: VecDeque<u64>,
    /// The write burst whose data comes: its next line, what is left, its tag, what has come.
    burst: Option<(u64, u64, usize, Vec<Beat>)>,
    answers: [VecDeque<Vec<Beat>>; CONTEXTS_PER_UNIT],
    /// What was offered and not taken in the cycle before.
    kept: [Option<Vec<Value>>; 4],
    was_quiesced: bool,
    was_asking: bool,
    next: u64,
    /// Bytes that a command may have at most.
    longest: u64,
    /// Memory answers no write for long, and copies are long.
    stalls: bool,
    /// Lines, bursts, answers, progresses and ends until now.
    moves: u64,
    /// Ended well, with a memory error, otherwise; waits.
    counts: [u64; 4],
}

impl<'a> Bench<'a> {
    fn new(dut: &'a mut dyn Dut, seed: u64) -> Self {
        dut.reset();
        let (pins, slow) = (Pins::new(dut), dut.back_end() == "rust-hdl");
        Self {
            dut,
            pins,
            rng: seeded(seed),
            chances: [0.5; CHANNELS],
            programs: Vec::new(),
            running: BTreeMap::new(),
            offered: None,
            memory: BTreeMap::new(),
            plan: BTreeMap::new(),
            sources: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            unwritable: BTreeSet::new(),
            reads: VecDeque::new(),
            burst: None,
            answers: Default::default(),
            kept: Default::default(),
            was_quiesced: false,
            was_asking: false,
            next: 1 << 20,
            longest: if slow { 3000 } else { 70_000 },
            stalls: false,
            moves: 0,
            counts: [0; 4],
        }
    }

    fn set(&mut self, pin: fn(&Pins) -> PortId, value: impl Into<Value>) {
        self.dut.write(pin(&self.pins), value.into());
    }

    fn get(&mut self, pin: fn(&Pins) -> PortId) -> Value {
        self.dut.read(pin(&self.pins))
    }

    fn number(&mut self, pin: fn(&Pins) -> PortId) -> u64 {
        self.get(pin).to_u64()
    }

    fn high(&mut self, pin: fn(&Pins) -> PortId) -> bool {
        self.get(pin).bit(0)
    }

    /// What a line holds; one that was never written, bytes made from its number.
    fn line(&self, line: u64) -> Line {
        let made = || std::array::from_fn(|i| (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 57)) as u8 ^ i as u8);
        self.memory.get(&line).copied().unwrap_or_else(made)
    }

    /// Fills the control store with programs, one of which runs off its end.
    fn store_programs(&mut self) {
        let mut words: Vec<u32> = Vec::new();
        self.programs.clear();
        while words.len() < PROGRAM_WORDS {
            let room = PROGRAM_WORDS - words.len();
            let program = random_program(&mut self.rng, words.len() as u64, room);
            words.extend(&program.words);
            self.programs.push(program);
        }
        for (address, word) in words.iter().enumerate() {
            self.dut.set("prog_we", true);
            self.dut.set("prog_addr", address as u64);
            self.dut.set("prog_data", u64::from(*word));
            self.dut.cycle();
        }
        self.dut.set("prog_we", false);
        // Nothing is behind the last word.
        self.programs.push(Program { pc: PROGRAM_WORDS as u64, words: vec![NOTHING], roomy: true });
    }

    /// A command of one of the programs on ranges of its own, and what it has to do.
    fn command(&mut self) -> (Work, Running) {
        let slot =
            (0..32).filter(|slot| !self.running.contains_key(slot)).nth(self.rng.random_range(0..8)).unwrap_or(0);
        let program = self.programs[self.rng.random_range(0..self.programs.len())].clone();
        let offset = self.rng.random_range(0..LINE_U64);
        let most = (u64::from(STRIDE) - 1) * LINE_U64;
        let length = match self.rng.random_range(0..40) {
            0 => 0,
            6..=39 if program.roomy && self.stalls => self.rng.random_range(self.longest / 2..self.longest),
            1..=4 if program.roomy => self.rng.random_range(1..self.longest),
            5..=8 => most,
            9..=20 => self.rng.random_range(1..200),
            _ => self.rng.random_range(1..most),
        };
        let region = lines_of(offset, length) + 7 * u64::from(STRIDE);
        let operands: [u64; 3] = std::array::from_fn(|_| {
            let at = self.next + self.rng.random_range(0..70);
            self.next = at + region;
            at * LINE_U64 + offset
        });
        let mut word = || self.rng.random::<u64>() & !63 | offset;
        let (source_offset, destination_offset) = (word(), word());
        let work = Work {
            slot: (slot as u64).into(),
            pc: program.pc.into(),
            source: operands[0].into(),
            destination: operands[1].into(),
            auxiliary: operands[2].into(),
            value: self.rng.random::<u64>().into(),
            source_offset: source_offset.into(),
            destination_offset: destination_offset.into(),
            length: length.into(),
            thread: self.rng.random_range(0..1u64 << 16).into(),
            pool: u64::from(self.rng.random::<u32>()).into(),
            txid: self.rng.random::<u64>().into(),
            sequence: self.rng.random::<u64>().into(),
            participants: u64::from(self.rng.random::<u32>()).into(),
        };
        let running = self.planned(slot, &work, &program, length);
        (work, running)
    }

    /// Runs the program as the page of the instructions says, with a line that memory refuses in
    /// one of eight.
    fn planned(&mut self, slot: usize, work: &Work, program: &Program, length: u64) -> Running {
        let operands = [work.source, work.destination, work.auxiliary].map(|address| address.to_u64());
        let offset = operands[0] % LINE_U64;
        let lines = lines_of(offset, length);
        // Memory refuses a read, or a write, of this command; behind a read that failed nothing is
        // written.
        let [mut bad_read, mut bad_write] =
            [[true, false], [false, true], [false; 2]][self.rng.random_range(0..30usize).min(2)];
        let (mut phase, mut status, mut fails, mut silent) = (0, Status::FirmwareFault as u64, false, false);
        let (mut resumes, mut planned) = (Vec::new(), BTreeSet::new());
        // The data lines of the last copy, as they are summed; what this command has written.
        let mut copied: Option<Vec<u8>> = None;
        let mut now: BTreeMap<u64, Line> = BTreeMap::new();
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        let mut pc = program.pc;
        for word in &program.words {
            pc += 1;
            let Some(instruction) = Instruction::decode(*word) else { break };
            let mut writes: Vec<(u64, Line, u64)> = Vec::new();
            match instruction {
                Instruction::End { status: code } => {
                    status = code.into();
                    break;
                }
                Instruction::Wait => {
                    resumes.push(pc);
                    copied = None;
                    if fails {
                        break;
                    }
                    phase += 1;
                }
                Instruction::Copy { from, from_lines, to, to_lines, lines: whole } => {
                    if length == 0 {
                        break;
                    }
                    let read = operands[from as usize] / LINE_U64 + u64::from(from_lines);
                    let write = operands[to as usize] / LINE_U64 + u64::from(to_lines);
                    let mut data = Vec::new();
                    for i in 0..lines {
                        self.sources.entry(read + i).or_insert((slot, phase));
                        let fallback = self.line(read + i);
                        let mut line = *now.get(&(read + i)).unwrap_or(&fallback);
                        let mask = mask_of(i, lines, offset, length);
                        (0..LINE).filter(|byte| mask >> byte & 1 == 0).for_each(|byte| line[byte] = 0);
                        data.extend(line);
                        writes.push((write + i, line, if whole { u64::MAX } else { mask }));
                    }
                    copied = Some(data);
                    let at = self.rng.random_range(0..lines);
                    let read_before = seen.contains(&(read + at));
                    seen.extend(read..read + lines);
                    if bad_read && !read_before && self.rng.random_bool(0.5) {
                        self.unreadable.insert(read + at);
                        writes.truncate(at as usize);
                        self.plan_writes(slot, phase, writes, &mut now, &mut planned);
                        (fails, silent, bad_read) = (true, true, false);
                        continue;
                    }
                }
                Instruction::Generate { object: Operand::Auxiliary, .. } => break,
                Instruction::Generate { at, object, kind } => {
                    let Some(data) = &copied else { break };
                    let head = EntryHead {
                        magic: ENTRY_MAGIC,
                        kind,
                        version: ENTRY_VERSION,
                        thread: work.thread.to_u64() as u16,
                        sequence: work.sequence.to_u64(),
                        txid: work.txid.to_u64(),
                        offset: [work.source_offset, work.destination_offset][object as usize].to_u64(),
                        length: length as u32,
                        pool: work.pool.to_u64() as u32,
                        participants: work.participants.to_u64() as u32,
                        ..EntryHead::default()
                    };
                    let entry = head.encode(&data[offset as usize..(offset + length) as usize]);
                    writes.push((
                        operands[at as usize] / LINE_U64,
                        entry[..LINE].try_into().expect("a line"),
                        u64::MAX,
                    ));
                }
                Instruction::Store { at } => {
                    let lane = operands[at as usize] % LINE_U64 / 8;
                    let bytes: Vec<u8> = work.value.to_u64().to_le_bytes().repeat(8);
                    let line = bytes.try_into().expect("a line");
                    writes.push((operands[at as usize] / LINE_U64, line, 0xff << (8 * lane)));
                }
            }
            if let Some((line, ..)) = writes.last().filter(|_| bad_write && self.rng.random_bool(0.5)) {
                self.unwritable.insert(*line);
                (fails, bad_write) = (true, false);
            }
            if !silent {
                self.plan_writes(slot, phase, writes, &mut now, &mut planned);
            }
        }
        if fails {
            status = Status::MemoryError as u64;
        }
        Running { phase: 0, last: phase, resumes, status, fails, lines: planned }
    }

    fn plan_writes(
        &mut self,
        slot: usize,
        phase: usize,
        writes: Vec<(u64, Line, u64)>,
        now: &mut BTreeMap<u64, Line>,
        planned: &mut BTreeSet<u64>,
    ) {
        for (number, line, mask) in writes {
            let mut held = self.line(number);
            (0..LINE).filter(|byte| mask >> byte & 1 == 1).for_each(|byte| held[byte] = line[byte]);
            now.insert(number, held);
            planned.insert(number);
            let before = self.plan.insert(number, Planned { slot, phase, line, mask, written: 0 });
            assert!(before.is_none(), "the bench lets two instructions write a line");
        }
    }

    /// What is offered stays as it is until it is taken.
    fn keeps(&mut self, which: usize, valid: fn(&Pins) -> PortId, taken: bool, shown: &[fn(&Pins) -> PortId]) -> bool {
        let is = self.high(valid);
        let values: Vec<Value> = shown.iter().map(|pin| self.get(*pin)).collect();
        if let Some(before) = self.kept[which].take() {
            assert!(is && before == values, "channel {which} is withdrawn or changes");
        }
        self.kept[which] = (is && !taken).then_some(values);
        is
    }

    fn reads(&mut self, take: bool) {
        let asked = self.keeps(0, |p| p.rd_valid, take, &[|p| p.rd_line, |p| p.rd_beats]);
        if asked && !self.was_asking {
            let quiesced = self.high(|p| p.quiesce);
            assert!(!quiesced, "a read is begun while the unit is to be quiet");
        }
        self.was_asking = asked && !take;
        if !asked || !take {
            return;
        }
        let (first, beats) = (self.number(|p| p.rd_line), self.number(|p| p.rd_beats) + 1);
        assert!(beats <= 16 && first / 64 == (first + beats - 1) / 64, "a burst of {beats} lines at {first:#x}");
        for line in first..first + beats {
            let (slot, phase) = *self.sources.get(&line).unwrap_or_else(|| panic!("line {line:#x} is read for nobody"));
            let reader = self.running.get(&slot).unwrap_or_else(|| panic!("line {line:#x} is read for what has ended"));
            assert!(reader.phase >= phase, "line {line:#x} is read before the progress is taken");
            self.reads.push_back(line);
        }
    }

    fn writes(&mut self, take: bool, data: bool) {
        if data {
            let (wdata, strobes) = (self.get(|p| p.wdata).to_bytes(LINE), self.number(|p| p.wstrb));
            let (line, left, tag, mut beats) = self.burst.take().expect("data is taken of a burst");
            let wdata: Line = wdata.try_into().expect("a line");
            if strobes != 0 {
                let planned = self.plan.get(&line).unwrap_or_else(|| panic!("line {line:#x} is written for nobody"));
                assert_eq!(strobes & !planned.mask, 0, "bytes of line {line:#x} that no program writes");
                let differs = (0..LINE).find(|byte| strobes >> byte & 1 == 1 && wdata[*byte] != planned.line[*byte]);
                assert_eq!(differs, None, "the data of line {line:#x}");
                let owner = self.running.get(&planned.slot).expect("a line is written for what has ended");
                assert!(owner.phase >= planned.phase, "line {line:#x} is written before the progress is taken");
            }
            beats.push(Beat { line, data: wdata, strobes });
            if left > 1 {
                self.burst = Some((line + 1, left - 1, tag, beats));
            } else {
                self.answers[tag].push_back(beats);
            }
        }
        let asked = self.keeps(1, |p| p.wr_valid, take, &[|p| p.wr_line, |p| p.wr_beats, |p| p.wr_tag]);
        if !asked || !take {
            return;
        }
        let (first, beats, tag) =
            (self.number(|p| p.wr_line), self.number(|p| p.wr_beats) + 1, self.number(|p| p.wr_tag));
        assert!(beats <= 16 && first / 64 == (first + beats - 1) / 64, "a burst of {beats} lines at {first:#x}");
        assert!(self.burst.is_none(), "a burst is taken while data of the one before is left");
        self.burst = Some((first, beats, tag as usize, Vec::new()));
    }

    fn answer(&mut self, tag: usize) -> bool {
        let beats = self.answers[tag].pop_front().expect("there is one");
        let refused = beats.iter().any(|beat| self.unwritable.contains(&beat.line));
        for Beat { line, data, strobes } in beats {
            if strobes == 0 || refused && self.unwritable.contains(&line) {
                continue;
            }
            let mut held = self.line(line);
            (0..LINE).filter(|byte| strobes >> byte & 1 == 1).for_each(|byte| held[byte] = data[byte]);
            self.memory.insert(line, held);
            if let Some(planned) = self.plan.get_mut(&line) {
                planned.written |= strobes;
            }
        }
        refused
    }

    /// Whether memory has all of what a command writes up to a phase.
    fn is_durable(&self, running: &Running, phase: usize) -> bool {
        let mut planned = running.lines.iter().map(|line| &self.plan[line]);
        planned.all(|planned| planned.phase > phase || planned.written == planned.mask)
    }

    fn progress(&mut self, take: bool) {
        if !self.keeps(2, |p| p.progress_valid, take, &[|p| p.progress_slot, |p| p.progress_pc]) {
            return;
        }
        let (slot, pc) = (self.number(|p| p.progress_slot) as usize, self.number(|p| p.progress_pc));
        let running = self.running.get(&slot).unwrap_or_else(|| panic!("progress of slot {slot}, which has ended"));
        assert!(running.phase < running.last, "progress of slot {slot}, which does not wait");
        assert_eq!(pc, running.resumes[running.phase], "where slot {slot} resumes");
        assert!(self.is_durable(running, running.phase), "progress of slot {slot} before it is durable");
        if take {
            self.running.get_mut(&slot).expect("it is there").phase += 1;
            self.counts[3] += 1;
            self.moves += 1;
        }
    }

    fn done(&mut self, take: bool) {
        if !self.keeps(3, |p| p.done_valid, take, &[|p| p.done_slot, |p| p.done_status]) {
            return;
        }
        let (slot, status) = (self.number(|p| p.done_slot) as usize, self.number(|p| p.done_status));
        let running = self.running.get(&slot).unwrap_or_else(|| panic!("slot {slot} is done, which has no command"));
        assert_eq!(status, running.status, "the status of slot {slot}");
        assert_eq!(running.phase, running.last, "the waits that slot {slot} has passed");
        assert!(running.fails || self.is_durable(running, running.last), "slot {slot} is done before it is durable");
        let unanswered = self.answers.iter().flatten().flatten().chain(self.burst.iter().flat_map(|burst| &burst.3));
        let mut lines = unanswered.map(|beat| beat.line);
        assert!(!lines.any(|line| running.lines.contains(&line)), "slot {slot} is done before memory has answered");
        if take {
            let kind = [Status::Ok as u64, Status::MemoryError as u64].iter().position(|code| *code == status);
            self.counts[kind.unwrap_or(2)] += 1;
            self.moves += 1;
            let Running { lines, .. } = self.running.remove(&slot).expect("it is there");
            self.plan.retain(|line, _| !lines.contains(line));
            self.sources.retain(|_, (reader, _)| *reader != slot);
        }
    }

    fn cycle(&mut self) {
        let goes: [bool; CHANNELS] = std::array::from_fn(|channel| self.rng.random_bool(self.chances[channel]));
        let [read, line, write, data, answer, done, progress, quiesce] = goes;
        self.set(|p| p.quiesce, quiesce);
        self.set(|p| p.rd_ready, read);
        let line = if line { self.reads.pop_front() } else { None };
        self.set(|p| p.rdata_valid, line.is_some());
        let failed = line.is_some_and(|line| self.unreadable.contains(&line));
        let bytes = match line {
            Some(line) if !failed => self.line(line),
            _ => self.rng.random(),
        };
        self.set(|p| p.rdata, Value::from_bytes(&bytes));
        self.set(|p| p.rdata_error, failed);
        // A burst is taken when the data of the one before is, with its last line at the earliest.
        let left = self.burst.as_ref().map_or(0, |burst| burst.1);
        let data = data && left > 0;
        let write = write && left == u64::from(data);
        self.set(|p| p.wr_ready, write);
        self.set(|p| p.wdata_ready, data);
        self.moves += u64::from(line.is_some()) + u64::from(data);
        let tag = self.rng.random_range(0..CONTEXTS_PER_UNIT);
        let answer = answer && !self.answers[tag].is_empty();
        self.moves += u64::from(answer);
        let refused = answer && self.answer(tag);
        self.set(|p| p.b_valid, answer);
        self.set(|p| p.b_tag, tag as u64);
        self.set(|p| p.b_error, refused);
        self.set(|p| p.done_ready, done);
        self.set(|p| p.progress_ready, progress);
        self.set(|p| p.issue_valid, self.offered.is_some());
        if let Some(work) = self.offered.as_ref().map(|(work, _)| work.to_value()) {
            self.set(|p| p.work, work);
        }

        let quiet = self.high(|p| p.quiet);
        let under_way =
            !self.reads.is_empty() || self.burst.is_some() || self.answers.iter().any(|all| !all.is_empty());
        assert!(
            !quiet || !under_way && line.is_none() && !self.high(|p| p.done_valid),
            "quiet with something under way"
        );
        let asks = self.high(|p| p.wr_valid);
        let begins = asks && self.kept[1].is_none();
        assert!(!begins || !self.was_quiesced, "a write is begun while the unit is to be quiet");
        self.was_quiesced = quiesce;
        self.reads(read);
        self.writes(write, data);
        self.progress(progress);
        self.done(done);
        let ready = self.high(|p| p.issue_ready);
        assert!(ready || self.running.len() >= CONTEXTS_PER_UNIT, "a context is free and not offered");
        if let Some((work, running)) = self.offered.take() {
            if ready {
                self.running.insert(work.slot.to_u64() as usize, running);
            } else {
                self.offered = Some((work, running));
            }
        }
        self.dut.cycle();
    }
}

/// Bytes of line `i` of a range's lines.
fn mask_of(i: u64, lines: u64, offset: u64, length: u64) -> u64 {
    let from = if i == 0 { offset } else { 0 };
    let to = if i + 1 == lines { (offset + length - 1) % LINE_U64 } else { LINE_U64 - 1 };
    (from..=to).fold(0, |mask, byte| mask | 1 << byte)
}

/// A program for the control store's words from `pc` on; it takes them all where there are few.
fn random_program(rng: &mut ChaCha8Rng, pc: u64, room: usize) -> Program {
    let targets = [Operand::Destination, Operand::Auxiliary];
    let mut words: Vec<u32> = Vec::new();
    // Places that were copied to since the start, those of before the last wait, and lines of heads
    // and words that are taken.
    let [mut fresh, mut settled]: [Vec<(Operand, u8)>; 2] = Default::default();
    let (mut count, mut taken, mut copied) = ([0u8; 2], [false; 2], false);
    for _ in 0..rng.random_range(0..8) {
        let which = rng.random_range(0..2);
        let instruction = match rng.random_range(0..10) {
            0..=4 if count[which] < 5 => {
                let to_lines = 1 + STRIDE * count[which];
                let (from, from_lines) = match settled[..] {
                    [.., last] if rng.random_bool(0.5) => last,
                    _ => (Operand::Source, rng.random_range(0..3)),
                };
                count[which] += 1;
                fresh.push((targets[which], to_lines));
                copied = true;
                Instruction::Copy { from, from_lines, to: targets[which], to_lines, lines: rng.random() }
            }
            5..=6 if !taken[which] && (copied || rng.random_bool(0.1)) => {
                taken[which] = true;
                let object = if rng.random() { Operand::Source } else { Operand::Destination };
                Instruction::Generate { at: targets[which], object, kind: rng.random() }
            }
            7 if !taken[which] => {
                taken[which] = true;
                Instruction::Store { at: targets[which] }
            }
            8 => {
                settled.append(&mut fresh);
                copied = false;
                Instruction::Wait
            }
            _ => continue,
        };
        words.push(instruction.encode());
        if rng.random_bool(0.02) {
            words.push(NOTHING);
        }
    }
    let end = Instruction::End { status: if rng.random_bool(0.8) { 0 } else { rng.random_range(1..0x80) } };
    words.push(end.encode());
    words.truncate(room);
    let roomy = count.iter().all(|copies| *copies < 2) && settled.is_empty();
    Program { pc, words, roomy }
}

/// Two commands at a time of any programs, with everything held up at random; some rounds with a
/// memory that stops for long.
fn commands_leave_what_their_programs_say_in_their_order(dut: &mut dyn Dut) {
    let (rounds, commands) = if dut.back_end() == "verilator" { (60, 24) } else { (3, 6) };
    let mut bench = Bench::new(dut, 37);
    for round in 0..rounds {
        let chance = |rng: &mut ChaCha8Rng| [0.03, 0.2, 0.6, 0.95, 1.0][rng.random_range(0..5usize)];
        bench.chances = std::array::from_fn(|_| chance(&mut bench.rng));
        bench.chances[CHANNELS - 1] = [0.0, 0.1, 0.5][round % 3];
        bench.stalls = round % 12 == 5;
        if bench.stalls {
            bench.chances = [1.0, 1.0, 1.0, 1.0, 0.006, 1.0, 1.0, 0.0];
        }
        bench.set(|p| p.quiesce, false);
        bench.store_programs();
        let mut idle = 0;
        let mut left = commands;
        while left > 0 || bench.offered.is_some() || !bench.running.is_empty() {
            if bench.offered.is_none() && left > 0 && bench.rng.random_bool(0.3) {
                bench.offered = Some(bench.command());
                left -= 1;
            }
            let before = bench.moves;
            bench.cycle();
            idle = if bench.moves > before { 0 } else { idle + 1 };
            assert!(idle < PATIENCE, "round {round}: nothing moves");
        }
        bench.chances = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0];
        (0..4).for_each(|_| bench.cycle());
        assert!(bench.high(|p| p.quiet), "round {round}: not quiet with nothing to do");
    }
    assert!(bench.counts.iter().all(|count| *count > 0), "{:?}: ends and waits by kind", bench.counts);
}

#[test]
fn the_unit_runs_programs() {
    on_rust_hdl::<NearPmUnit>(commands_leave_what_their_programs_say_in_their_order);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "sequencer",
        what: "a command is done before its writes are answered",
        edits: &[Edit::Each("contexts$0$answered", "1'b1", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is done before it is durable",
    },
    UnitFault {
        module: "sequencer",
        what: "a command is done before its reads have come",
        edits: &[Edit::Each("contexts$1$retire", "contexts$1$operate", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is done before it is durable",
    },
    UnitFault {
        module: "sequencer",
        what: "a head is written without a copy before it",
        edits: &[Edit::Text(
            "(is_generate & here$0 & ~contexts$0$copied)",
            "(is_generate & here$0 & ~contexts$0$copied & ~FAULT)",
            1,
        )],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is read for nobody",
    },
    UnitFault {
        module: "sequencer",
        what: "a copy of no bytes is begun",
        edits: &[Edit::Text(
            "(is_copy & here$1 & contexts$1$empty)",
            "(is_copy & here$1 & contexts$1$empty & ~FAULT)",
            1,
        )],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is read for nobody",
    },
    UnitFault {
        module: "sequencer",
        what: "a program runs on behind its store",
        edits: &[Edit::Text("| pc[32'h7] |", "| (pc[32'h7] & ~FAULT) |", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is read for nobody",
    },
    UnitFault {
        module: "sequencer",
        what: "an operation that the engine does not take is given up",
        edits: &[Edit::Each("go_on", "operation_valid", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "nothing moves",
    },
    UnitFault {
        module: "sequencer",
        what: "a head that the generator does not take is written all the same",
        edits: &[Edit::Each("operation_valid", "operates", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "nothing moves",
    },
    UnitFault {
        module: "sequencer",
        what: "a head is made of what the engine does not take",
        edits: &[Edit::Each("generate_valid", "operates & is_generate", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "nothing moves",
    },
    UnitFault {
        module: "sequencer",
        what: "a command is taken although both contexts have one",
        edits: &[Edit::Each("accept", "issue_valid", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is read for nobody",
    },
    UnitFault {
        module: "sequencer",
        what: "the end of one command is lost behind that of the other",
        edits: &[Edit::Text("if (~state$q[(64'hc)+:(1)]) begin", "if (~state$q[(64'hc)+:(1)] | FAULT) begin", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is withdrawn or changes",
    },
    UnitFault {
        module: "sequencer",
        what: "an end is told for one cycle",
        edits: &[Edit::Text("if (done_ready) begin", "if (done_ready | FAULT) begin", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is withdrawn or changes",
    },
    UnitFault {
        module: "sequencer",
        what: "progress is told for one cycle",
        edits: &[Edit::Text("else if (progress_ready) begin", "else if (progress_ready | FAULT) begin", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is withdrawn or changes",
    },
    UnitFault {
        module: "sequencer",
        what: "progress is that of the other command",
        edits: &[Edit::Text("if (state$q[(64'hb)+:(1)]) begin", "if (state$q[(64'hb)+:(1)] & ~FAULT) begin", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "which does not wait",
    },
    UnitFault {
        module: "sequencer",
        what: "a command waits for nothing",
        edits: &[Edit::Each("contexts$0$wait_durable", "1'b0", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "nothing moves",
    },
    UnitFault {
        module: "sequencer",
        what: "the unit is quiet with an end that is not told",
        edits: &[Edit::Text("quiet = ~state$q[(64'hc)+:(1)] &", "quiet = (~state$q[(64'hc)+:(1)] | FAULT) &", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "quiet with something under way",
    },
    UnitFault {
        module: "sequencer$contexts$1",
        what: "progress is told before everything is durable",
        edits: &[Edit::Text(
            "want_progress = state$q[(64'h3)+:(1)] & drained",
            "want_progress = state$q[(64'h3)+:(1)] & (drained | FAULT)",
            1,
        )],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "progress of slot",
    },
    UnitFault {
        module: "sequencer$contexts$1",
        what: "a command goes on behind a wait although memory has failed",
        edits: &[Edit::Text("& ~state$q[(64'h4)+:(1)];", "& (~state$q[(64'h4)+:(1)] | FAULT);", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "which does not wait",
    },
    UnitFault {
        module: "sequencer$contexts$1",
        what: "a memory error is not told",
        edits: &[Edit::Text("status = memory_error_status;", "status = FAULT ? status : memory_error_status;", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the status of slot",
    },
    UnitFault {
        module: "sequencer$contexts$1",
        what: "a head behind a wait is sealed over what was copied before",
        edits: &[Edit::Text(
            "state$d[(64'h5)+:(1)] = 1'b0;\n            state$d[(64'h1)+:(1)] = 1'b1;",
            "state$d[(64'h5)+:(1)] = FAULT & state$q[(64'h5)+:(1)];\n            state$d[(64'h1)+:(1)] = 1'b1;",
            1,
        )],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is written for nobody",
    },
    UnitFault {
        module: "sequencer$contexts$1",
        what: "a command fails for the error of the one before it",
        edits: &[Edit::Text(
            "state$d[(64'h4)+:(1)] = 1'b0;",
            "state$d[(64'h4)+:(1)] = FAULT & state$q[(64'h4)+:(1)];",
            1,
        )],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the status of slot",
    },
    UnitFault {
        module: "engine$reader",
        what: "a read is begun while the unit is to be quiet",
        edits: &[Edit::Text("& ~quiesce)", "& (~quiesce | FAULT))", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "a read is begun while the unit is to be quiet",
    },
    UnitFault {
        module: "engine$reader",
        what: "a read is asked for without room for its lines",
        edits: &[Edit::Each("plenty$d", "1'b1", 2)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
    UnitFault {
        module: "engine$reader",
        what: "a read that is not taken is withdrawn",
        edits: &[Edit::Text("= rd_valid & ~rd_ready;", "= rd_valid & ~rd_ready & ~FAULT;", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is withdrawn or changes",
    },
    UnitFault {
        module: "engine$reader",
        what: "a line that cannot be read is no error",
        edits: &[Edit::Each("memory_error$0", "1'b0", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is written for nobody",
    },
    UnitFault {
        module: "engine$reader",
        what: "an error of a read strikes the other command",
        edits: &[Edit::Each("memory_error$1", "rdata_valid & rdata_error", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the status of slot",
    },
    UnitFault {
        module: "engine$reader",
        what: "the last line of a copy is not cut off",
        edits: &[Edit::Each("mask$last", "1'b0", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
    UnitFault {
        module: "engine$reader",
        what: "the second line of a copy is cut off as the first",
        edits: &[Edit::Each("mask$first", "1'b1", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
    UnitFault {
        module: "engine$reader",
        what: "the unit is quiet with lines outstanding",
        edits: &[Edit::Each("quiet", "~rd_valid", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "quiet with something under way",
    },
    UnitFault {
        module: "engine$writer",
        what: "a write is begun while the unit is to be quiet",
        edits: &[Edit::Text("& ~quiesce &", "& (~quiesce | FAULT) &", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "a write is begun while the unit is to be quiet",
    },
    UnitFault {
        module: "engine$writer",
        what: "behind a memory error data is written",
        edits: &[Edit::Text("wstrb = none64;", "wstrb = FAULT ? wstrb : none64;", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is written for nobody",
    },
    UnitFault {
        module: "engine$writer",
        what: "an answer counts for the other command",
        edits: &[Edit::Each("answers$1", "b_valid & ~b_tag[32'h0]", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "nothing moves",
    },
    UnitFault {
        module: "engine$writer",
        what: "a write is asked for before its lines are there",
        edits: &[Edit::Text("(burst$lines <= available$q)", "((burst$lines <= available$q) | FAULT)", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
    UnitFault {
        module: "engine$writer",
        what: "a head is asked for before it is made",
        edits: &[Edit::Text("& head_ready)", "& (head_ready | FAULT))", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
    UnitFault {
        module: "engine$writer",
        what: "more bursts are unanswered than are counted",
        edits: &[Edit::Text("(unanswered$0$q != most6)", "((unanswered$0$q != most6) | FAULT)", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "is done before it is durable",
    },
    UnitFault {
        module: "generator",
        what: "a head is sealed over the copy before the last one",
        edits: &[Edit::Each("wanted", "started - one4 - one4", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
    UnitFault {
        module: "generator",
        what: "a head is sealed with the sum of before its last line",
        edits: &[Edit::Each("bypass", "1'b0", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
    UnitFault {
        module: "generator",
        what: "a head that is not written gives way to the next one",
        edits: &[Edit::Each("head_ready", "~heads$empty & ~state$q[(64'h6)+:(1)] & (~ahead[32'h3] | soon)", 1)],
        scenario: commands_leave_what_their_programs_say_in_their_order,
        seen: "the data of line",
    },
];

#[test]
fn planted_faults_of_the_unit_are_seen() {
    each_is_seen::<NearPmUnit>("NearPmUnit", FAULTS);
}
