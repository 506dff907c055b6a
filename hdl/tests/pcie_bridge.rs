//! The bridge from the PCIe block's streams to the card's ports.

mod pcie_bench;

use nearpm_hdl::dut::{Dut, Value, on_both_back_ends, on_rust_hdl, on_verilog};
use nearpm_hdl::pcie::bridge::{OVERLAP, PcieBridge};
use nearpm_hdl::pcie::function_reset::{FunctionReset, QUIET_CYCLES};
use nearpm_hdl::pcie::line_access::LineAccess;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::registers;
use pcie_bench::{Bench, untouched};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_byte_of_a_write_and_no_other_reaches_its_place() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let mut bench = Bench::new(dut, 1, 0.7);
        let mut wanted = bench.memory.clone();
        // All places in a line, and lengths around a beat, a line, and the largest payload.
        for n in 0..90u64 {
            let length = [1, 3, 4, 7, 8, 48, 49, 63, 64, 65, 100, 112, 113, 128, 200, 256][n as usize % 16];
            let bar = if n % 5 == 0 { 2 } else { 4 };
            let offset = n * 64 % 0x2000 + bench.random(64);
            let bytes: Vec<u8> = (0..length).map(|_| bench.random(256) as u8).collect();
            bench.write(bar, offset, &bytes);
            wanted.extend((offset..).zip(bytes).map(|(at, byte)| ((bar, at), byte)));
        }
        bench.settle();
        assert_eq!(bench.memory, wanted);
        assert_eq!((bench.completions.len(), bench.unsupported), (0, 0));
    });
}

#[test]
fn reads_are_answered_by_completions_as_pcie_wants_them() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let mut bench = Bench::new(dut, 2, 0.7);
        let mut asked = Vec::new();
        for tag in 0..60u64 {
            let length = [1, 2, 4, 8, 52, 53, 64, 116, 120, 128, 129, 256, 300, 512][tag as usize % 14];
            let offset = tag * 256 + bench.random(256);
            bench.read(4, offset, length, tag);
            asked.push((tag, offset, length));
        }
        bench.settle();
        for (tag, offset, length) in asked {
            let wanted: Vec<u8> = (offset..offset + length).map(|at| bench.byte(4, at)).collect();
            assert_eq!(bench.answered(tag, offset, length), wanted, "tag {tag}");
        }
        // A read of nothing is answered by a Dword that means nothing, and counts one byte.
        bench.completions.clear();
        bench.request(0, 4, 0x40, 1, (0, 0), 77);
        bench.settle();
        let [completion] = &bench.completions[..] else { panic!("{:?}", bench.completions) };
        assert_eq!((completion.tag, completion.status, completion.bytes, completion.length), (77, 0, 1, 1));
    });
}

#[test]
fn registers_are_accessed_dword_by_dword_and_everything_in_order() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let mut bench = Bench::new(dut, 3, 0.6);
        bench.write(0, 0x124, &[1, 2, 3, 4]);
        bench.write(0, 0x12a, &[5, 6]);
        bench.write(0, 0x178, &[7; 16]);
        bench.write(2, 0x1040, &[8; 64]);
        bench.read(0, 0x120, 8, 1);
        bench.write(4, 0x200, &[9; 8]);
        bench.read(4, 0x200, 8, 2);
        bench.settle();
        let wanted = [
            (0, 0x124, true),
            (0, 0x128, true),
            (0, 0x178, true),
            (0, 0x17c, true),
            (0, 0x180, true),
            (0, 0x184, true),
            (2, 0x1040, true),
            (0, 0x120, false),
            (0, 0x124, false),
            (4, 0x200, true),
            (4, 0x200, false),
        ];
        assert_eq!(bench.accesses, wanted);
        assert_eq!(bench.answered(1, 0x120, 8)[4..], [1, 2, 3, 4]);
        assert_eq!(bench.answered(2, 0x200, 8), [9; 8]);
        assert_eq!((bench.byte(0, 0x12a), bench.byte(0, 0x12b)), (5, 6));
        assert!(!bench.memory.contains_key(&(0, 0x129)), "a byte that is not enabled");
    });
}

#[test]
fn what_is_not_supported_is_refused_and_has_no_effect() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let mut bench = Bench::new(dut, 4, 0.8);
        // IO read, IO write, the three atomic operations, a locked read; a memory read of no BAR.
        bench.request(2, 4, 8, 1, (15, 0), 2);
        for (tag, kind) in [(3, 3), (4, 4), (5, 5), (6, 6)] {
            bench.with_data(kind, 4, tag);
        }
        bench.request(7, 4, 8, 1, (15, 0), 7);
        bench.request(0, 6, 0x44, 3, (12, 1), 8);
        // Nobody answers a message, or a write, to no BAR.
        bench.request(12, 4, 0, 0, (0, 0), 9);
        bench.write(6, 0x40, &[1; 100]);
        bench.read(4, 0x40, 4, 10);
        bench.settle();
        let refused: Vec<_> = bench.completions.iter().map(|c| (c.tag, c.status, c.length)).collect();
        let wanted = [(2, 1, 0), (3, 1, 0), (4, 1, 0), (5, 1, 0), (6, 1, 0), (7, 1, 0), (8, 1, 0), (10, 0, 1)];
        assert_eq!(refused, wanted);
        assert_eq!(bench.unsupported, 9);
        // Byte enables and descriptor, which the block logs; remaining bytes and lower address of a
        // memory read.
        let last = &bench.completions[6];
        assert_eq!((last.bytes, last.lower), (7, 0x46));
        assert_eq!((last.dwords.len(), last.dwords[0]), (5, 0x1c));
        assert_eq!(last.dwords[1], (pcie_bench::base(6) + 0x44) as u32);
        assert_eq!(last.dwords[3] & 0x7ff, 3);
        assert_eq!(bench.accesses, [(4, 0x40, false)]);
    });
}

#[test]
fn a_line_that_the_card_refuses_ends_the_read_with_an_abort() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let mut bench = Bench::new(dut, 5, 0.8);
        bench.refused.insert((4, 0x1c0 / 64));
        bench.read(4, 0x100, 512, 1);
        bench.read(4, 0x100, 64, 2);
        bench.settle();
        let [good, abort, next] = &bench.completions[..] else { panic!("{:?}", bench.completions) };
        assert_eq!((good.status, good.length, good.bytes), (0, 32, 512));
        assert_eq!((abort.tag, abort.status, abort.length, abort.bytes, abort.lower), (1, 4, 0, 384, 0));
        assert_eq!((next.tag, next.status, next.length), (2, 0, 16));
    });
}

fn accesses_reach_their_bound(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 14, 1.0);
    bench.latency = Some(70);
    for bar in [4, 2] {
        // Requests of a line each, then one of many lines.
        (0..20).for_each(|n| bench.write(bar, n * 64, &[n as u8; 64]));
        bench.settle();
        assert_eq!(bench.most_under_way(bar), [OVERLAP, 0], "stores of BAR {bar}");
        (0..20).for_each(|n| bench.read(bar, n * 64, 64, n));
        bench.settle();
        assert_eq!(bench.most_under_way(bar), [0, OVERLAP], "loads of BAR {bar}");
        bench.write(bar, 0, &[9; 1024]);
        bench.settle();
        bench.read(bar, 0, 1024, 20);
        bench.settle();
        assert_eq!(bench.most_under_way(bar), [OVERLAP, OVERLAP], "many lines of BAR {bar}");
        assert_eq!(bench.completions.iter().filter(|c| c.tag < 20).count(), 20);
        bench.completions.clear();
    }
}

#[test]
fn accesses_of_a_kind_overlap_up_to_their_bound_and_no_further() {
    on_both_back_ends::<PcieBridge>(accesses_reach_their_bound);
}

#[test]
fn as_many_accesses_are_under_way_as_the_parameter_says() {
    on_both_back_ends::<LineAccess<2, 3>>(|dut| {
        dut.reset();
        for (signal, value) in [("valid", 1u64), ("write", 1), ("bar", 4), ("host$awready", 1), ("host$wready", 1)] {
            dut.set(signal, value);
        }
        let taken = |dut: &mut dyn Dut, cycles: u64| -> u64 {
            let count = |_| {
                let taken = dut.get_bool("ready");
                dut.cycle();
                u64::from(taken)
            };
            (0..cycles).map(count).sum()
        };
        assert_eq!(taken(dut, 20), 4);
        dut.set("host$bvalid", true);
        dut.cycle();
        dut.set("host$bvalid", false);
        assert_eq!(taken(dut, 20), 1, "one was answered");
    });
}

/// The bytes that stand somewhere after some writes.
fn standing(wanted: &BTreeMap<(u64, u64), u8>, bar: u64, at: u64, count: u64) -> Vec<u8> {
    (at..at + count).map(|at| wanted.get(&(bar, at)).copied().unwrap_or(untouched(bar, at))).collect()
}

fn accesses_keep_their_order(dut: &mut dyn Dut) {
    for (seed, ready, slowness) in [(15, 1.0, 1), (16, 0.5, 12), (17, 1.0, 60), (18, 0.2, 40)] {
        let mut bench = Bench::new(dut, seed, ready);
        bench.slowness = slowness;
        let (mut wanted, mut lines, mut asked) = (bench.memory.clone(), Vec::new(), Vec::new());
        let (mut bar, mut writes) = (4, true);
        for tag in 0..120u64 {
            // Runs of accesses of one kind, to few lines, so that many meet.
            if bench.random(3) == 0 {
                (bar, writes) = ([4, 4, 2][bench.random(3) as usize], bench.random(2) == 0);
            }
            let (at, length) = (bench.random(8) * 64 + bench.random(64), 1 + bench.random(200));
            lines.extend((at / 64..(at + length).div_ceil(64)).map(|line| (bar, line * 64, writes)));
            if writes {
                let data: Vec<u8> = (0..length).map(|_| bench.random(256) as u8).collect();
                bench.write(bar, at, &data);
                wanted.extend((at..).zip(data).map(|(at, byte)| ((bar, at), byte)));
            } else {
                bench.read(bar, at, length, tag);
                asked.push((tag, at, length, standing(&wanted, bar, at, length)));
            }
        }
        bench.settle();
        assert_eq!(bench.accesses, lines, "the order at the ports");
        assert_eq!(bench.memory, wanted);
        // A tag comes again only when its completions are complete: the order is that of the
        // requests.
        let mut tags: Vec<_> = bench.completions.iter().map(|c| c.tag).collect();
        tags.dedup();
        assert!(tags.is_sorted() && tags.len() == asked.len(), "the order of the answers: {tags:?}");
        for (tag, at, length, wanted) in asked {
            assert_eq!(bench.answered(tag, at, length), wanted, "tag {tag}");
        }
    }
}

#[test]
fn overlapping_accesses_are_seen_in_the_order_in_which_they_came() {
    on_both_back_ends::<PcieBridge>(accesses_keep_their_order);
}

#[test]
fn a_command_comes_to_its_port_when_the_data_before_it_is_answered() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let mut bench = Bench::new(dut, 19, 1.0);
        bench.latency = Some(50);
        (0..OVERLAP).for_each(|n| bench.write(4, n * 64, &[n as u8 + 1; 64]));
        bench.write(2, 0x40, &[0xcc; 64]);
        bench.read(2, 0x1000, 64, 1);
        bench.write(4, 0x1000, &[0xdd; 64]);
        while !bench.accesses.iter().any(|access| access.0 == 2) {
            bench.step();
        }
        let data: Vec<_> = (0..OVERLAP).map(|n| u64::from(bench.byte(4, n * 64))).collect();
        assert_eq!(data, (1..=OVERLAP).collect::<Vec<_>>(), "data behind the command");
        bench.settle();
        let behind = [(2, 0x40, true), (2, 0x1000, false), (4, 0x1000, true)];
        assert_eq!(bench.accesses[OVERLAP as usize..], behind);
    });
}

/// Checks a read of lines of which the card refuses some: what is in front of them comes, and then
/// an abort.
fn check_refused(bench: &Bench<'_>, tag: u64, at: u64, length: u64) {
    let (mut from, end) = (at, at + length);
    let mut completions = bench.completions.iter().filter(|c| c.tag == tag);
    while from < end {
        let block_end = end.min((from / 128 + 1) * 128);
        let bad = (from / 64..block_end.div_ceil(64)).any(|line| bench.refused.contains(&(4, line)));
        let completion = completions.next().expect("a completion");
        let said = (completion.status, completion.bytes, completion.lower);
        assert_eq!(said, (if bad { 4 } else { 0 }, end - from, from % 128), "tag {tag} at {from:#x}");
        if bad {
            assert_eq!(completion.length, 0);
            break;
        }
        let data: Vec<u8> = completion.dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        let wanted: Vec<u8> = (from..block_end).map(|at| bench.byte(4, at)).collect();
        assert_eq!(data[(from % 4) as usize..][..wanted.len()], wanted, "tag {tag}");
        from = block_end;
    }
    assert_eq!(completions.next(), None, "tag {tag}: behind its end");
}

fn some_lines_are_refused(dut: &mut dyn Dut) {
    for (seed, ready, slowness) in [(20, 1.0, 30), (21, 0.4, 8)] {
        let mut bench = Bench::new(dut, seed, ready);
        bench.slowness = slowness;
        bench.refused = [1, 6, 7, 13, 20].map(|line| (4, line)).into_iter().collect::<BTreeSet<_>>();
        // Stores: those that are refused have no effect, those beside them do.
        (0..24).for_each(|n| bench.write(4, n * 64, &[n as u8 + 1; 64]));
        bench.settle();
        for line in 0..24 {
            let wanted = if bench.refused.contains(&(4, line)) { untouched(4, line * 64) } else { line as u8 + 1 };
            assert_eq!(bench.byte(4, line * 64), wanted);
        }
        let asked: Vec<_> = (0..60).map(|tag| (tag, bench.random(24 * 64 - 512), 1 + bench.random(512))).collect();
        for (tag, at, length) in &asked {
            bench.read(4, *at, *length, *tag);
        }
        bench.settle();
        asked.iter().for_each(|(tag, at, length)| check_refused(&bench, *tag, *at, *length));
        assert!(bench.is_at_rest());
    }
}

#[test]
fn a_refused_line_among_overlapping_ones_concerns_its_request_alone() {
    on_both_back_ends::<PcieBridge>(some_lines_are_refused);
}

/// What requests of all kinds must have done in the end.
struct Mixture {
    memory: BTreeMap<(u64, u64), u8>,
    accesses: Vec<(u64, u64, bool)>,
    /// Reads: tag, offset, length, and what stands there.
    reads: Vec<(u64, u64, u64, Vec<u8>)>,
    /// What each vector of the MSI-X table says.
    messages: [Option<[u8; 4]>; 4],
    /// Tags of all that is answered, in order, and their status.
    answers: Vec<(u64, u64)>,
    unsupported: u64,
    poisoned: u64,
}

impl Mixture {
    fn new(bench: &Bench<'_>) -> Self {
        let (memory, accesses, unsupported) = (bench.memory.clone(), bench.accesses.clone(), bench.unsupported);
        Self { memory, accesses, reads: Vec::new(), messages: [None; 4], answers: Vec::new(), unsupported, poisoned: 0 }
    }

    /// A place, and how many bytes: of lines many, of registers few, the longest read 4 KiB.
    fn place(bench: &mut Bench<'_>, bar: u64, writes: bool) -> (u64, u64) {
        if bar == 0 {
            return (0x200 + bench.random(0x100), 1 + bench.random(40));
        }
        let longest = [64, 200, if writes { 1024 } else { 4096 }][bench.random(3) as usize];
        let at = bench.random(16) * 64 + bench.random(64);
        (at, 1 + bench.random(longest - at % 4))
    }

    fn write(&mut self, bench: &mut Bench<'_>, bar: u64) {
        let (at, length) = Self::place(bench, bar, true);
        let data: Vec<u8> = (0..length).map(|_| bench.random(256) as u8).collect();
        bench.write(bar, at, &data);
        self.memory.extend((at..).zip(data).map(|(at, byte)| ((bar, at), byte)));
        self.reaches(bar, at, length, true);
    }

    fn read(&mut self, bench: &mut Bench<'_>, bar: u64, tag: u64) {
        let (at, length) = Self::place(bench, bar, false);
        bench.read(bar, at, length, tag);
        self.reads.push((tag, at, length, standing(&self.memory, bar, at, length)));
        self.answers.push((tag, 0));
        self.reaches(bar, at, length, false);
    }

    fn reaches(&mut self, bar: u64, at: u64, length: u64, writes: bool) {
        let width = if bar == 0 { 4 } else { 64 };
        let beats = at / width..(at + length).div_ceil(width);
        self.accesses.extend(beats.map(|beat| (bar, beat * width, writes)));
    }

    /// A write of a vector's message, or a read of what was written.
    fn use_table(&mut self, bench: &mut Bench<'_>, tag: u64) {
        let vector = bench.random(4);
        let at = vector * 16 + 8;
        if let (Some(message), true) = (self.messages[vector as usize], bench.random(2) == 0) {
            bench.read(1, at, 4, tag);
            self.reads.push((tag, at, 4, message.to_vec()));
            self.answers.push((tag, 0));
        } else {
            let message = [0; 4].map(|_: u8| bench.random(256) as u8);
            bench.write(1, at, &message);
            self.messages[vector as usize] = Some(message);
        }
    }

    /// What is not supported; of the last two nobody is told.
    fn refused(&mut self, bench: &mut Bench<'_>, tag: u64) {
        let kind = bench.random(9);
        match kind {
            0 => bench.request(2, 4, 8, 1, (15, 0), tag),
            1..=4 => bench.with_data(kind + 2, 4, tag),
            5 => bench.request(7, 4, 8, 1, (15, 0), tag),
            6 => bench.request(0, 6, 0x44, 300, (12, 1), tag),
            7 => bench.request(12, 4, 0, 0, (0, 0), tag),
            _ => bench.write(6, 0x40, &[1; 300]),
        }
        if kind < 7 {
            self.answers.push((tag, 1));
        }
        self.unsupported += 1;
    }

    /// A request whose data is poisoned: nothing of it is done, and what wants an answer is
    /// refused.
    fn poison(&mut self, bench: &mut Bench<'_>, tag: u64) {
        bench.poisons = true;
        match bench.random(4) {
            0 => bench.write(1, 8, &[0xbd; 4]),
            1 => {
                let kind = 3 + bench.random(4);
                bench.with_data(kind, 4, tag);
                self.answers.push((tag, 1));
                self.unsupported += 1;
            }
            _ => {
                let bar = [4, 2, 0, 6][bench.random(4) as usize];
                let (at, length) = Self::place(bench, bar, true);
                bench.write(bar, at, &vec![0xbd; length as usize]);
            }
        }
        bench.poisons = false;
        self.poisoned += 1;
    }

    /// One request, of the table only where that is wanted.
    fn ask(&mut self, bench: &mut Bench<'_>, tag: u64, with_table: bool) {
        let bar = [4, 4, 2][bench.random(3) as usize];
        match bench.random(13) {
            12 => self.poison(bench, tag),
            0..=4 => self.read(bench, bar, tag),
            5..=7 => self.write(bench, bar),
            8 => self.read(bench, 0, tag),
            9 => self.write(bench, 0),
            10 if with_table => self.use_table(bench, tag),
            _ => self.refused(bench, tag),
        }
    }

    /// All of it was done, and answered in order.
    fn check(&self, bench: &Bench<'_>) {
        assert_eq!(bench.memory, self.memory);
        assert!(bench.accesses.starts_with(&self.accesses), "the order at the ports");
        let mut answers: Vec<_> = bench.completions.iter().map(|c| (c.tag, c.status)).collect();
        answers.dedup();
        assert_eq!(answers, self.answers);
        for (tag, at, length, wanted) in &self.reads {
            assert_eq!(&bench.answered(*tag, *at, *length), wanted, "tag {tag}");
        }
        assert_eq!(bench.unsupported, self.unsupported);
    }
}

fn requests_of_all_kinds_are_mixed(dut: &mut dyn Dut) {
    for (seed, ready, slowness) in [(24, 1.0, 1), (25, 0.5, 20), (26, 1.0, 50), (27, 0.25, 6)] {
        let mut bench = Bench::new(dut, seed, ready);
        bench.slowness = slowness;
        let mut mixture = Mixture::new(&bench);
        (0..100).for_each(|tag| mixture.ask(&mut bench, tag, true));
        bench.settle();
        mixture.check(&bench);
        assert_eq!(bench.accesses.len(), mixture.accesses.len());
        assert_eq!(poisoned(&mut bench), mixture.poisoned, "requests with poisoned data");
    }
}

/// What the register says that counts them.
fn poisoned(bench: &mut Bench<'_>) -> u64 {
    let register = u64::from(registers::TLPS_POISONED);
    bench.completions.clear();
    bench.read(0, register, 4, 99);
    bench.settle();
    let said = bench.answered(99, register, 4);
    said.iter().rev().fold(0, |count, byte| count << 8 | u64::from(*byte))
}

/// Data that PCI Express calls poisoned, in requests of one beat and of several, among others that
/// are sound.
fn poisoned_data_has_no_effect(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 32, 0.7);
    bench.write(1, 8, &[1, 2, 3, 4]);
    let mut memory = bench.memory.clone();
    for n in 0..24u64 {
        let (bar, length) = ([4, 2, 0][n as usize % 3], [4, 40, 64, 300][n as usize % 4]);
        let (sound, bad) = (0x400 + n * 0x40, 0x800 + n * 0x20);
        bench.poisons = true;
        bench.write(bar, bad, &vec![0xbd; length]);
        bench.poisons = false;
        bench.write(bar, sound, &[n as u8; 4]);
        memory.extend((sound..sound + 4).map(|at| ((bar, at), n as u8)));
        bench.settle();
        assert_eq!(bench.memory, memory, "poisoned data was written");
        assert_eq!(poisoned(&mut bench), n + 1, "requests with poisoned data");
    }
    // The MSI-X table, a message, and what is refused anyhow.
    bench.poisons = true;
    bench.write(1, 8, &[0xbd; 4]);
    bench.request(12, 4, 0, 0, (0, 0), 0);
    bench.with_data(3, 4, 1);
    // The mark means nothing in a read.
    bench.read(1, 8, 4, 2);
    bench.poisons = false;
    bench.settle();
    assert_eq!(bench.answered(2, 8, 4), [1, 2, 3, 4], "poisoned data was written");
    assert_eq!(bench.unsupported, 2);
    assert_eq!(poisoned(&mut bench), 27, "requests with poisoned data");
    // The registers beside it are the card's, and a link that goes down forgets nothing.
    let register = u64::from(registers::TLPS_POISONED);
    bench.read(0, register - 8, 24, 3);
    bench.settle();
    let said = bench.answered(3, register - 8, 24);
    let mut wanted: Vec<u8> = (register - 8..register + 16).map(|at| bench.byte(0, at)).collect();
    wanted[8..12].copy_from_slice(&27u32.to_le_bytes());
    assert_eq!(said, wanted, "registers beside the count");
    bench.outage(0, 5);
    (0..10).for_each(|_| bench.step());
    assert_eq!(poisoned(&mut bench), 27, "requests with poisoned data");
}

#[test]
fn poisoned_data_is_dropped_and_counted() {
    on_both_back_ends::<PcieBridge>(poisoned_data_has_no_effect);
}

#[test]
fn requests_of_all_kinds_and_sizes_are_performed_and_answered_in_order() {
    on_both_back_ends::<PcieBridge>(requests_of_all_kinds_are_mixed);
}

fn completions_are_held_back(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 28, 1.0);
    bench.latency = Some(40);
    for length in [4, 64, 500, 4096] {
        let mut mixture = Mixture::new(&bench);
        // More requests, and more lines, than have room anywhere; and a store that comes only
        // behind them.
        bench.write(4, 0x100, &[length as u8; 300]);
        mixture.memory.extend((0x100..0x100 + 300).map(|at| ((4, at), length as u8)));
        mixture.reaches(4, 0x100, 300, true);
        for tag in 0..30 {
            let at = tag * 4;
            bench.read(4, at, length, tag);
            mixture.reads.push((tag, at, length, standing(&mixture.memory, 4, at, length)));
            mixture.answers.push((tag, 0));
            mixture.reaches(4, at, length, false);
        }
        bench.write(4, 0x40, &[0x5a; 64]);
        mixture.memory.extend((0x40..0x80).map(|at| ((4, at), 0x5a)));
        mixture.reaches(4, 0x40, 64, true);
        bench.holds_completions = true;
        (0..1000).for_each(|_| bench.step());
        assert!(bench.completions.is_empty() && bench.is_at_rest());
        assert_eq!(bench.most_under_way(4)[1], OVERLAP, "reads of {length} bytes have filled what room there is");
        bench.holds_completions = false;
        bench.settle();
        mixture.check(&bench);
        bench.completions.clear();
    }
}

#[test]
fn a_host_that_takes_no_completions_loses_none() {
    on_both_back_ends::<PcieBridge>(completions_are_held_back);
}

/// Accesses of a host to the PM window: how many, of how many bytes, whether they store, and
/// whether each waits for the answer to the one before.
const PATTERNS: [(&str, u64, u64, bool, bool); 5] = [
    ("64 stores of 64 bytes", 64, 64, true, false),
    ("16 stores of 256 bytes", 16, 256, true, false),
    ("16 loads of 64 bytes in sequence", 16, 64, false, true),
    ("64 loads of 64 bytes", 64, 64, false, false),
    ("8 loads of 512 bytes", 8, 512, false, false),
];

/// Cycles of each pattern, until the card has answered all stores, or the last completion has left,
/// where the port answers after so many cycles.
fn cycles_of_patterns(dut: &mut dyn Dut, latency: u64) -> [u64; PATTERNS.len()] {
    let mut bench = Bench::new(dut, 22, 1.0);
    bench.latency = Some(latency);
    PATTERNS.map(|(_, count, bytes, stores, in_sequence)| {
        bench.completions.clear();
        let (began, lines) = (bench.now, bench.accesses.len() as u64);
        let completions = |of: u64| if stores { 0 } else { of * bytes.div_ceil(128) };
        for n in 0..count {
            if stores {
                bench.write(4, n * bytes, &vec![n as u8; bytes as usize]);
            } else {
                bench.read(4, n * bytes, bytes, n);
            }
            while in_sequence && bench.completions.len() as u64 != completions(n + 1) {
                bench.step();
            }
        }
        let ends = (lines + count * bytes / 64, completions(count));
        while !bench.is_at_rest() || (bench.accesses.len() as u64, bench.completions.len() as u64) != ends {
            bench.step();
        }
        bench.now - began
    })
}

#[test]
fn stores_and_loads_do_not_wait_for_each_others_answers() {
    on_both_back_ends::<PcieBridge>(|dut| {
        for latency in [4, 20, 40] {
            let cycles = cycles_of_patterns(dut, latency);
            for ((name, count, bytes, stores, in_sequence), cycles) in PATTERNS.into_iter().zip(cycles) {
                if dut.back_end() == "verilator" {
                    println!("RTL cycles where the port answers after {latency}: {name} {cycles}");
                }
                // A store takes four cycles and one a line; a load one, and one for each line and
                // each beat of its completions. Or both take a latency for as many lines as
                // overlap.
                let lines = bytes / 64;
                let beats = bytes.div_ceil(128) * (bytes.min(128) + 12).div_ceil(64);
                let busy = if stores { 4 + lines } else { 1 + lines + beats };
                let share = busy.max((latency + 6) * lines / OVERLAP + 1);
                let bound = if in_sequence { count * (latency + 12) } else { count * share + latency + 20 };
                assert!(cycles < bound, "{name} at a latency of {latency}: {cycles} cycles, bound {bound}");
            }
        }
    });
}

/// Puts a record with this tag into the host's memory at `address`.
fn record(bench: &mut Bench<'_>, address: u64, tag: u32, page: u8) {
    let mut bytes = [0xee; 64];
    let at = (address % 64) as usize;
    bytes[at..at + 16].fill(0);
    bytes[at..at + 4].copy_from_slice(&tag.to_le_bytes());
    bytes[at + 5] = page;
    bench.dut.set("s_axi_cpl$awaddr", address & !63);
    bench.dut.set("s_axi_cpl$wdata", Value::from_bytes(&bytes));
    bench.dut.set("s_axi_cpl$wstrb", 0xffffu64 << (address % 64));
    bench.dut.set("s_axi_cpl$wlast", true);
    bench.dut.set("s_axi_cpl$bready", true);
    let (mut address_done, mut data_done) = (false, false);
    for _ in 0..1000 {
        bench.dut.set("s_axi_cpl$awvalid", !address_done);
        bench.dut.set("s_axi_cpl$wvalid", !data_done);
        let dut: &mut dyn Dut = bench.dut;
        address_done |= dut.get_bool("s_axi_cpl$awready") && dut.get_bool("s_axi_cpl$awvalid");
        data_done |= dut.get_bool("s_axi_cpl$wready") && dut.get_bool("s_axi_cpl$wvalid");
        let answered = dut.get_bool("s_axi_cpl$bvalid");
        bench.step();
        if answered {
            return;
        }
    }
    panic!("a record is not taken");
}

#[test]
fn records_are_written_before_their_interrupts_which_masks_hold_back() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let mut bench = Bench::new(dut, 6, 0.6);
        let ring = 0x12_3456_7000u64;
        // MSI-X is off: records only.
        record(&mut bench, ring + 16, 7, 2);
        bench.settle();
        assert_eq!(bench.requests, [(ring + 16, vec![7, 2 << 8, 0, 0], 15, 15)]);
        bench.requests.clear();
        // Vectors are masked after reset; what fires stays pending.
        bench.dut.set("cfg_interrupt_msix_enable", 1u64);
        for vector in 0..4u64 {
            let address: u64 = 0xfee0_0000_1000 + vector * 4;
            bench.write(1, vector * 16, &address.to_le_bytes());
            bench.write(1, vector * 16 + 8, &(0x40 + vector as u32).to_le_bytes());
        }
        bench.settle();
        record(&mut bench, ring + 32, 8, 2);
        record(&mut bench, ring + 48, 9, 3);
        bench.read(1, 0x800, 8, 1);
        bench.read(1, 0x2c, 4, 2);
        bench.settle();
        assert_eq!(bench.requests.len(), 2);
        assert_eq!(bench.answered(1, 0x800, 8), [12, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bench.answered(2, 0x2c, 4), [1, 0, 0, 0]);
        // Unmasked, but the function is masked.
        bench.dut.set("cfg_interrupt_msix_mask", 1u64);
        bench.write(1, 0x2c, &[0; 4]);
        bench.settle();
        assert_eq!(bench.requests.len(), 2);
        bench.dut.set("cfg_interrupt_msix_mask", 0u64);
        bench.settle();
        assert_eq!(bench.requests[2..], [(0xfee0_0000_1008, vec![0x42], 15, 0)]);
        record(&mut bench, ring + 64, 10, 2);
        bench.settle();
        assert_eq!(
            bench.requests[3..],
            [(ring + 64, vec![10, 2 << 8, 0, 0], 15, 15), (0xfee0_0000_1008, vec![0x42], 15, 0)]
        );
        // Without leave to be bus master nothing leaves.
        bench.dut.set("cfg_function_status", 0u64);
        record(&mut bench, ring + 80, 11, 2);
        bench.settle();
        assert_eq!(bench.requests.len(), 5);
    });
}

/// Requests of each kind that take long: a read of several lines, of registers, a write of several
/// lines, of registers; many reads, with and without what is not supported between them, many
/// writes.
fn begin(bench: &mut Bench<'_>, kind: u64) {
    match kind {
        0 => bench.read(4, 0x1010, 300, 200),
        1 => bench.read(0, 0x200, 24, 201),
        2 => bench.write(4, 0x2020, &[0xaa; 200]),
        3 => bench.write(0, 0x300, &[0xbb; 24]),
        4 => (0..12).for_each(|n| bench.read(4, 0x1000 + n * 64, 64, 210 + n)),
        5 => {
            bench.read(4, 0x1010, 700, 202);
            bench.request(2, 4, 8, 1, (15, 0), 203);
            bench.read(2, 0x1000, 100, 204);
            bench.with_data(4, 4, 205);
            bench.read(4, 0x1020, 200, 206);
        }
        _ => (0..12).for_each(|n| bench.write(4, 0x3000 + n * 64, &[n as u8 + 1; 64])),
    }
}

/// Runs a test of many trials on both back ends: on rust-hdl's simulator, which takes many times as
/// long, one in so many of them, and all of them in the thorough form.
fn in_trials(one_in: usize, test: fn(&mut dyn Dut, usize)) {
    on_rust_hdl::<PcieBridge>(|dut| test(dut, if nearpm_tier::thorough() { 1 } else { one_in }));
    on_verilog::<PcieBridge>(|dut| test(dut, 1));
}

fn a_link_goes_down_in_accesses(dut: &mut dyn Dut, one_in: usize) {
    let mut bench = Bench::new(dut, 7, 0.6);
    for trial in (0..168u64).step_by(one_in) {
        // Slow ports: the link is back before the card has answered.
        bench.slowness = if trial / 7 % 2 == 0 { 4 } else { 90 };
        bench.memory.retain(|(bar, at), _| (*bar, at / 0x1000) != (4, 3));
        begin(&mut bench, trial % 7);
        let (wait, cycles) = (trial / 7 * 2, 1 + bench.random(30));
        bench.outage(wait, cycles);
        (0..wait + cycles).for_each(|_| bench.step());
        bench.completions.clear();
        // What comes now is answered, and nothing of before.
        let (tag, at) = (trial % 50, 0x4000 + trial * 64);
        let bytes = [trial as u8; 40];
        bench.write(4, at + 20, &bytes);
        bench.read(4, at + 20, 40, tag);
        bench.write(2, 0x1040, &[trial as u8 + 1; 64]);
        bench.read(0, 0x124, 4, tag + 100);
        bench.settle();
        assert_eq!(bench.answered(tag, at + 20, 40), bytes, "trial {trial}");
        bench.answered(tag + 100, 0x124, 4);
        let tags: Vec<_> = bench.completions.iter().map(|c| c.tag).filter(|t| *t != tag && *t != tag + 100).collect();
        assert!(tags.is_empty(), "trial {trial}: completions of before, {tags:?}");
        assert_eq!(bench.byte(2, 0x1040), trial as u8 + 1);
        assert!(bench.is_at_rest(), "trial {trial}");
        // Of many writes the first ones were done, and none behind one that was not.
        let done: Vec<_> = (0..12).map(|n| bench.memory.get(&(4, 0x3000 + n * 64)) == Some(&(n as u8 + 1))).collect();
        assert!(done.is_sorted_by(|a, b| a >= b), "trial {trial}: {done:?}");
    }
    // Bytes of the writes that were cut short are the old ones or the new ones.
    for at in 0x2020..0x2020 + 200 {
        assert!(bench.byte(4, at) == 0xaa || !bench.memory.contains_key(&(4, at)));
    }
}

fn a_link_goes_down_in_records(dut: &mut dyn Dut, one_in: usize) {
    let mut bench = Bench::new(dut, 8, 0.3);
    let ring = 0x55_0000_1000u64;
    bench.dut.set("cfg_interrupt_msix_enable", 1u64);
    let address: u64 = 0xfee0_0000_2000;
    for trial in (0..40u64).step_by(one_in) {
        bench.write(1, 0, &address.to_le_bytes());
        bench.write(1, 8, &[trial as u8, 0, 0, 0, 0, 0, 0, 0]);
        bench.settle();
        bench.requests.clear();
        // `record` waits for the answer, and fails where none comes.
        bench.outage(trial / 2, 20);
        record(&mut bench, ring + trial * 16, trial as u32, 0);
        (0..trial / 2 + 40).for_each(|_| bench.step());
        bench.settle();
        // Either the host has the whole record, or nothing of it; and no interrupt without it.
        let sent: Vec<_> = bench.requests.iter().map(|(at, ..)| *at).collect();
        let whole = [ring + trial * 16, address];
        assert!(whole.starts_with(&sent), "trial {trial}: {sent:x?}");
        // The function begins anew: the vector is masked.
        bench.completions.clear();
        bench.read(1, 0xc, 4, 1);
        bench.settle();
        assert_eq!(bench.answered(1, 0xc, 4), [1, 0, 0, 0]);
    }
    // With the link up again records arrive.
    bench.requests.clear();
    record(&mut bench, ring, 99, 0);
    bench.settle();
    assert_eq!(bench.requests, [(ring, vec![99, 0, 0, 0], 15, 15)]);
}

#[test]
fn a_link_that_goes_down_in_the_middle_of_an_access_leaves_the_ports_in_step() {
    in_trials(5, a_link_goes_down_in_accesses);
}

#[test]
fn a_record_that_was_taken_is_answered_whatever_becomes_of_the_link() {
    in_trials(3, a_link_goes_down_in_records);
}

/// Runs until a function-level reset is done, or given up with the link.
fn reset_ends(bench: &mut Bench<'_>) {
    for _ in 0..40_000 {
        if !bench.is_resetting() {
            return;
        }
        bench.step();
    }
    panic!("the reset does not end");
}

/// The register that asks the card to drain was written, so often.
fn drains(bench: &Bench<'_>) -> usize {
    bench.accesses.iter().filter(|access| **access == (0, registers::CONTROL as u64, true)).count()
}

fn a_function_is_reset_when_idle(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 10, 0.7);
    bench.write(1, 0xc, &[0; 4]);
    bench.settle();
    bench.dut.set("cfg_interrupt_msix_enable", 1u64);
    bench.function_level_reset();
    reset_ends(&mut bench);
    assert_eq!((bench.resets.len(), drains(&bench)), (1, 1));
    assert!(bench.resets[0] > QUIET_CYCLES && bench.resets[0] < QUIET_CYCLES + 100, "{:?}", bench.resets);
    // The function begins anew, with its vectors masked, and works.
    bench.read(1, 0xc, 4, 1);
    bench.write(4, 0x1000, &[5; 70]);
    bench.read(4, 0x1000, 70, 2);
    bench.settle();
    assert_eq!(bench.answered(1, 0xc, 4), [1, 0, 0, 0]);
    assert_eq!(bench.answered(2, 0x1000, 70), [5; 70]);
    bench.function_level_reset();
    reset_ends(&mut bench);
    assert_eq!((bench.resets.len(), drains(&bench)), (2, 2));
}

fn a_function_is_reset_in_accesses(dut: &mut dyn Dut, one_in: usize) {
    let mut bench = Bench::new(dut, 11, 0.6);
    for (resets, trial) in (1..).zip((0..24u64).step_by(one_in)) {
        bench.slowness = if trial % 2 == 0 { 4 } else { 90 };
        bench.drain = bench.random(300);
        bench.accesses.clear();
        bench.completions.clear();
        let at = 0x8000 + trial * 0x400;
        bench.write(4, at + 20, &[trial as u8; 200]);
        bench.write(2, 0x1040, &[trial as u8 + 1; 64]);
        bench.read(4, at + 20, 200, trial);
        (0..trial).for_each(|_| bench.step());
        bench.function_level_reset();
        reset_ends(&mut bench);
        // All of it was performed and answered before the card was asked to drain.
        assert_eq!(bench.resets.len(), resets);
        assert_eq!(bench.answered(trial, at + 20, 200), [trial as u8; 200]);
        assert_eq!(bench.byte(2, 0x1040), trial as u8 + 1);
        let asked = bench.accesses.iter().position(|access| *access == (0, registers::CONTROL as u64, true));
        let last = bench.accesses.iter().rposition(|access| access.0 != 0);
        assert!(asked > last && drains(&bench) == 1, "trial {trial}: {:?}", bench.accesses);
    }
}

fn a_function_is_reset_in_overlapping_accesses(dut: &mut dyn Dut, one_in: usize) {
    let mut bench = Bench::new(dut, 23, 1.0);
    for (resets, trial) in (1..).zip((0..24u64).step_by(one_in)) {
        bench.slowness = if trial % 2 == 0 { 4 } else { 70 };
        bench.drain = bench.random(100);
        bench.accesses.clear();
        bench.completions.clear();
        let at = 0x8000 + trial * 0x400;
        (0..12).for_each(|n| bench.write(4, at + n * 64, &[(trial + n) as u8; 64]));
        if trial % 3 == 0 {
            (0..12).for_each(|n| bench.read(4, at + n * 64, 64, n));
        }
        (0..trial * 3).for_each(|_| bench.step());
        bench.function_level_reset();
        reset_ends(&mut bench);
        assert_eq!(bench.resets.len(), resets);
        for n in 0..12 {
            assert_eq!(bench.byte(4, at + n * 64 + 63), (trial + n) as u8, "trial {trial}");
            if trial % 3 == 0 {
                assert_eq!(bench.answered(n, at + n * 64, 64), [(trial + n) as u8; 64], "trial {trial}");
            }
        }
        let asked = bench.accesses.iter().position(|access| *access == (0, registers::CONTROL as u64, true));
        let last = bench.accesses.iter().rposition(|access| access.0 != 0);
        assert!(asked > last && drains(&bench) == 1, "trial {trial}: {:?}", bench.accesses);
    }
}

fn a_function_is_reset_in_requests_of_all_kinds(dut: &mut dyn Dut, one_in: usize) {
    for (seed, ready, slowness) in [(29, 1.0, 60), (30, 0.5, 20), (31, 1.0, 4)] {
        for trial in (0..6).step_by(one_in) {
            let mut bench = Bench::new(dut, seed + trial * 10, ready);
            (bench.slowness, bench.drain) = (slowness, trial * 20);
            let mut mixture = Mixture::new(&bench);
            (0..16).for_each(|tag| mixture.ask(&mut bench, tag, false));
            (0..trial * 40).for_each(|_| bench.step());
            bench.function_level_reset();
            reset_ends(&mut bench);
            assert_eq!((bench.resets.len(), drains(&bench)), (1, 1));
            let control = registers::CONTROL as u64;
            assert_eq!(bench.accesses[mixture.accesses.len()], (0, control, true), "all of before is done");
            mixture.memory.extend((control..control + 4).map(|at| ((0, at), bench.byte(0, at))));
            mixture.check(&bench);
            // The function works.
            bench.completions.clear();
            let mut mixture = Mixture::new(&bench);
            (0..8).for_each(|tag| mixture.ask(&mut bench, tag, true));
            bench.settle();
            mixture.check(&bench);
        }
    }
}

fn a_function_is_reset_while_the_card_holds_commands(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 12, 0.6);
    for (number, drain) in [0, 1, 40, 900].into_iter().enumerate() {
        bench.drain = drain;
        bench.requests.clear();
        bench.dut.set("cfg_function_status", 4u64);
        bench.function_level_reset();
        (0..60).for_each(|_| bench.step());
        // What comes now is against the rules: it is not performed before the reset is done.
        // Records of the drained work are answered, and dropped.
        bench.write(4, 0x3000, &[number as u8 + 1; 64]);
        let before = bench.accesses.len();
        if bench.is_resetting() {
            record(&mut bench, 0x77_0000_0000, 1, 0);
            assert_eq!(bench.requests, []);
        }
        while bench.is_draining() {
            bench.step();
            assert!(bench.accesses[before..].iter().all(|access| access.0 == 0));
        }
        reset_ends(&mut bench);
        assert!(bench.resets[number] >= drain);
        bench.settle();
        assert_eq!(bench.byte(4, 0x3000), number as u8 + 1);
    }
}

fn a_link_goes_down_in_resets(dut: &mut dyn Dut, one_in: usize) {
    // Ports that rarely take what is offered and answer late: an access of the reset is there to be
    // cut short in most cycles.
    let mut bench = Bench::new(dut, 13, 0.3);
    bench.slowness = 40;
    for trial in (0..60u64).step_by(one_in) {
        bench.drain = 60;
        (0..trial % 4).for_each(|kind| begin(&mut bench, kind));
        bench.settle();
        bench.function_level_reset();
        // From before the card is asked to drain until after it has.
        let (wait, cycles) = (QUIET_CYCLES - 4 + trial * 4, 1 + bench.random(10));
        bench.outage(wait, cycles);
        (0..wait + cycles).for_each(|_| bench.step());
        // The host's first access after it gets its own answer, not that of the reset.
        bench.completions.clear();
        bench.read(0, 0x124, 4, trial);
        bench.settle();
        let expected: Vec<u8> = (0x124..0x128).map(|at| bench.byte(0, at)).collect();
        assert_eq!(bench.answered(trial, 0x124, 4), expected, "trial {trial}");
        assert!(bench.is_at_rest(), "trial {trial}");
        // The next one is done, and the card drains for it.
        let before = (bench.resets.len(), drains(&bench));
        bench.function_level_reset();
        reset_ends(&mut bench);
        assert_eq!((bench.resets.len(), drains(&bench)), (before.0 + 1, before.1 + 1), "trial {trial}");
    }
    // Some were done before the link went down, and some were not.
    let (resets, trials) = (bench.resets.len(), 60_usize.div_ceil(one_in));
    assert!(resets > trials && resets < 2 * trials, "{resets}");
}

#[test]
fn a_function_level_reset_ends_with_the_work_of_before_done_and_the_vectors_masked() {
    on_both_back_ends::<PcieBridge>(a_function_is_reset_when_idle);
    in_trials(5, a_function_is_reset_in_accesses);
    in_trials(5, a_function_is_reset_in_overlapping_accesses);
    in_trials(3, a_function_is_reset_in_requests_of_all_kinds);
}

#[test]
fn a_function_level_reset_is_done_only_when_the_card_has_drained() {
    on_both_back_ends::<PcieBridge>(a_function_is_reset_while_the_card_holds_commands);
}

#[test]
fn a_function_level_reset_beside_a_link_that_goes_down_leaves_the_ports_in_step() {
    in_trials(5, a_link_goes_down_in_resets);
}

/// As many as the page of the contract names.
const FAULTS: &[UnitFault] = &[
    // Units that are reset with the link, in the middle of an access or of a reset.
    UnitFault {
        module: "",
        what: "the completer is reset with the link",
        edits: &[Edit::Last("completer$reset", "reset | link_down")],
        scenario: |dut| a_link_goes_down_in_accesses(dut, 1),
        seen: "trial",
    },
    UnitFault {
        module: "",
        what: "the accesses at the ports are reset with the link",
        edits: &[Edit::Last("access$reset", "reset | link_down")],
        scenario: |dut| a_link_goes_down_in_accesses(dut, 1),
        seen: "is withdrawn",
    },
    UnitFault {
        module: "",
        what: "the requester is reset with the link",
        edits: &[Edit::Last("requester$reset", "reset | link_down")],
        scenario: |dut| a_link_goes_down_in_records(dut, 1),
        seen: "a record is not taken",
    },
    UnitFault {
        module: "",
        what: "the function-level reset is reset with the link",
        edits: &[Edit::Last("function_reset$reset", "reset | link_down")],
        scenario: |dut| a_link_goes_down_in_resets(dut, 1),
        seen: "is withdrawn",
    },
    // The function-level reset.
    UnitFault {
        module: "",
        what: "a reset does not wait for requests",
        edits: &[Edit::Last("function_reset$idle", "1'b1")],
        scenario: |dut| a_function_is_reset_in_accesses(dut, 1),
        seen: "accesses of two kinds at a time",
    },
    UnitFault {
        module: "",
        what: "a reset does not wait for accesses and answers",
        edits: &[Edit::Last("function_reset$idle", "completer$idle")],
        scenario: |dut| a_function_is_reset_in_overlapping_accesses(dut, 1),
        seen: "accesses of two kinds at a time",
    },
    UnitFault {
        module: "",
        what: "requests are taken while the card drains",
        edits: &[Edit::Last("completer$hold", "1'b0")],
        scenario: a_function_is_reset_while_the_card_holds_commands,
        seen: "accesses of two kinds at a time",
    },
    UnitFault {
        module: "",
        what: "vectors stay unmasked in a reset",
        edits: &[Edit::Last("msix$reset", "reset | link_down")],
        scenario: a_function_is_reset_when_idle,
        seen: "left: ",
    },
    UnitFault {
        module: "function_reset",
        what: "a reset is done before the card has drained",
        edits: &[Edit::Each("drained", "1'b1", 1)],
        scenario: a_function_is_reset_while_the_card_holds_commands,
        seen: "done while the card still drains",
    },
    // The overlap of accesses: of both directions, of two ports, and more than may be.
    UnitFault {
        module: "access",
        what: "a read passes a write",
        edits: &[Edit::Text("(write == write_now$q)", "((write == write_now$q) | FAULT)", 1)],
        scenario: accesses_keep_their_order,
        seen: "accesses of two kinds at a time",
    },
    UnitFault {
        module: "access",
        what: "accesses of two ports are under way",
        edits: &[Edit::Text("(bar == bar_now$q)", "((bar == bar_now$q) | FAULT)", 1)],
        scenario: accesses_keep_their_order,
        seen: "accesses",
    },
    UnitFault {
        module: "access",
        what: "more accesses are under way than there are places",
        edits: &[Edit::Text("(open$q != most_open)", "((open$q != most_open) | FAULT)", 1)],
        scenario: accesses_reach_their_bound,
        seen: "accesses",
    },
    UnitFault {
        module: "access$answers",
        what: "what was read is given to the next request, whichever it was read for",
        edits: &[Edit::Each("valid", "|here", 1)],
        scenario: accesses_keep_their_order,
        seen: "the bridge does not come to rest",
    },
    UnitFault {
        module: "access",
        what: "a read is begun that has no place for its answer",
        edits: &[Edit::Text("(write | ~answers$full)", "(write | ~answers$full | FAULT)", 1)],
        scenario: accesses_keep_their_order,
        seen: "the order of the answers",
    },
    UnitFault {
        module: "completer",
        what: "what the host forgot with its link is answered when it comes back",
        edits: &[Edit::Text("(resetting$q & ~access_idle)", "(resetting$q & ~access_idle & ~FAULT)", 1)],
        scenario: |dut| a_link_goes_down_in_accesses(dut, 1),
        seen: "trial",
    },
    UnitFault {
        module: "responder",
        what: "requests of before are answered behind a link that went down",
        edits: &[Edit::Last("requests$reset", "reset")],
        scenario: |dut| a_link_goes_down_in_accesses(dut, 1),
        seen: "trial",
    },
    UnitFault {
        module: "",
        what: "a request for whose answer there is no room is forgotten",
        edits: &[Edit::Last("completer$owe_full", "1'b0")],
        scenario: completions_are_held_back,
        seen: "left: ",
    },
    UnitFault {
        module: "responder",
        what: "a line that the card has refused is sent",
        edits: &[Edit::Text("bad$d = error;", "bad$d = error & ~FAULT;", 1)],
        scenario: some_lines_are_refused,
        seen: "tag",
    },
    UnitFault {
        module: "responder",
        what: "lines behind a refused one are taken for the next request's",
        edits: &[Edit::Text("if (skips$q)", "if (skips$q & ~FAULT)", 1)],
        scenario: some_lines_are_refused,
        seen: "tag",
    },
    // Poisoned data.
    UnitFault {
        module: "completer",
        what: "a write whose data is poisoned is performed",
        edits: &[Edit::Each("is_poisoned", "1'b0", 1)],
        scenario: poisoned_data_has_no_effect,
        seen: "poisoned data was written",
    },
    UnitFault {
        module: "completer",
        what: "poisoned data is dropped and not counted",
        edits: &[Edit::Last("poisoned", "32'd0")],
        scenario: poisoned_data_has_no_effect,
        seen: "requests with poisoned data",
    },
    UnitFault {
        module: "access",
        what: "the count of poisoned data stands in each register",
        edits: &[Edit::Text("(word_place$o == poisoned_place)", "((word_place$o == poisoned_place) | FAULT)", 1)],
        scenario: poisoned_data_has_no_effect,
        seen: "registers beside the count",
    },
    UnitFault {
        module: "completer",
        what: "a read with the mark of poisoned data is counted as such",
        edits: &[Edit::Text("& (kind != read_type)", "& ((kind != read_type) | FAULT)", 1)],
        scenario: poisoned_data_has_no_effect,
        seen: "requests with poisoned data",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<PcieBridge>("PCIe bridge", FAULTS);
}

#[test]
fn a_card_that_never_drains_and_a_host_that_never_rests_do_not_hold_a_reset_up() {
    on_both_back_ends::<FunctionReset<10>>(|dut| {
        for (is_idle, arriving) in [(true, false), (true, true), (false, true)] {
            dut.reset();
            dut.set("idle", is_idle);
            dut.set("arriving", arriving);
            // STATE reads BOOTING for ever.
            for (signal, value) in
                [("awready", 1u64), ("wready", 1), ("bvalid", 1), ("arready", 1), ("rvalid", 1), ("rdata", 0)]
            {
                dut.set(&format!("ctrl${signal}"), value);
            }
            dut.set("in_process", 1u64);
            let mut asked = false;
            let done = (0..1100).position(|_| {
                asked |= dut.get_bool("ctrl$awvalid");
                dut.cycle();
                dut.get_u64("done") == 1
            });
            let done = done.expect("the reset ends");
            assert!((1000..1040).contains(&done), "{done}");
            assert_eq!(asked, is_idle, "the card is asked to drain");
            dut.set("in_process", 0u64);
        }
    });
}

#[test]
fn in_reset_no_record_is_taken() {
    on_both_back_ends::<PcieBridge>(|dut| {
        let bench = Bench::new(dut, 9, 1.0);
        bench.dut.set("s_axi_cpl$awvalid", true);
        bench.dut.set("s_axi_cpl$wvalid", true);
        bench.dut.set("reset", true);
        assert!(!bench.dut.get_bool("s_axi_cpl$awready") && !bench.dut.get_bool("s_axi_cpl$wready"));
        bench.dut.cycle();
        bench.dut.set("reset", false);
        assert!(bench.dut.get_bool("s_axi_cpl$awready") && bench.dut.get_bool("s_axi_cpl$wready"));
    });
}
