//! The decoder against the checks of `docs/hardware.md` written as a program: random descriptors,
//! mappings and commands that lie close to every border.

use nearpm_hdl::bundles::{MapEntry, Work};
use nearpm_hdl::dut::{Dut, PortValue, Value, on_both_back_ends};
use nearpm_hdl::units::decoder::Decoder;
use nearpm_hdl::units::request_slots::Ticket;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::command::{Command, FLAG_COMPLETE};
use nearpm_interface::firmware::{Descriptor, Operand, Use, descriptor};
use nearpm_interface::geometry::{LINE_U64, MAX_COMMAND_BYTES, MAX_DEVICES, POOLS_BASE};
use nearpm_interface::media::entry_bytes;
use nearpm_interface::status::Status;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

const PM_BYTES: u64 = 1 << 30;
const DEVICE: u32 = 3;
const IN_USE: u64 = 1;
const LATCHED: u64 = 2;
const CLOSING: u64 = 4;
const OPERANDS: [Operand; 3] = [Operand::Source, Operand::Destination, Operand::Auxiliary];
/// Cycles from the handshake of a command to its offer or refusal.
const BOUND: u64 = 7;

/// A mapping as plain numbers.
#[derive(Clone, Copy, Debug)]
struct Map {
    pool: u64,
    thread: u64,
    base: u64,
    bytes: u64,
    ring: u64,
    ring_bytes: u64,
    committed: u64,
    flags: u64,
}

impl Map {
    fn entry(&self) -> MapEntry {
        MapEntry {
            flags: self.flags.into(),
            thread: self.thread.into(),
            pool: self.pool.into(),
            base: self.base.into(),
            bytes: self.bytes.into(),
            ring: self.ring.into(),
            ring_bytes: self.ring_bytes.into(),
            committed: self.committed.into(),
            reached: self.committed.into(),
            orphan: false,
        }
    }
}

/// Stands for the address map and the firmware store: answers two cycles and one cycle later.
struct Surroundings {
    maps: Vec<Option<Map>>,
    descriptors: Vec<Descriptor>,
    hit: Option<usize>,
    /// What is known of other devices.
    speaks: bool,
    busy: u64,
    full: bool,
}

/// How a command comes.
#[derive(Clone, Copy, Default)]
struct Origin {
    /// It was accepted before, and resumes here.
    resume: Option<u64>,
    released: bool,
    parks: bool,
}

impl Surroundings {
    fn empty() -> Self {
        let (maps, descriptors) = (vec![None; 16], vec![Descriptor::default(); 32]);
        Self { maps, descriptors, hit: None, speaks: false, busy: 0, full: false }
    }

    fn cycle(&mut self, dut: &mut dyn Dut) {
        let (pool, thread) = (dut.get_u64("lookup_pool"), dut.get_u64("lookup_thread"));
        let index = dut.get_u64("descriptor_index") as usize;
        dut.cycle();
        let found = self.hit;
        dut.set("found", found.is_some());
        dut.set("found_index", found.unwrap_or(0) as u64);
        let entry = found.and_then(|i| self.maps[i]).map(|m| m.entry()).unwrap_or_default();
        dut.set("entry", entry.to_value());
        dut.set("descriptor", u64::from(self.descriptors[index].0));
        self.hit = self.maps.iter().position(|m| m.is_some_and(|m| m.pool == pool && m.thread == thread));
    }
}

/// What a well-formed command becomes: lines of each range in use, its mapping entry.
#[derive(Debug, PartialEq)]
struct Item {
    lines: [Option<(u64, u64)>; 3],
    map: u64,
    parks: bool,
}

fn field(c: &Command, operand: Operand) -> u64 {
    match operand {
        Operand::Source => c.source,
        Operand::Destination => c.destination,
        Operand::Auxiliary => c.auxiliary,
    }
}

fn expected(c: &Command, page: u64, origin: Origin, around: &Surroundings) -> Result<Item, Status> {
    let Origin { resume, released, parks } = origin;
    let (replayed, exempt) = (resume.is_some(), released || parks);
    let d = *around.descriptors.get(usize::from(c.opcode)).ok_or(Status::BadOpcode)?;
    let check = |holds: bool, status: Status| if holds { Ok(()) } else { Err(status) };
    check(d.flag(descriptor::VALID), Status::BadOpcode)?;
    check(!d.flag(descriptor::PRIVILEGED) || page == 0, Status::NotPrivileged)?;
    let others = c.participants & !(1 << DEVICE);
    let known = c.participants & 1 << DEVICE != 0 && others < 1 << MAX_DEVICES;
    let reached = others == 0 || around.speaks || replayed;
    check(c.participants == 0 || known && reached, Status::BadParticipants)?;
    let (pool, thread) = (u64::from(c.pool), u64::from(c.thread));
    let found = around.maps.iter().position(|m| m.is_some_and(|m| m.pool == pool && m.thread == thread));
    if d.flag(descriptor::MAPS) {
        check(found.is_none(), Status::MapExists)?;
        let free = around.maps.iter().position(Option::is_none).ok_or(Status::MapFull)?;
        check(c.source.is_multiple_of(LINE_U64) && c.auxiliary.is_multiple_of(LINE_U64), Status::Misaligned)?;
        let inside = |a: u64, b: u64, end: u64| a.checked_add(b).is_some_and(|sum| sum <= end);
        let fits = c.source >= POOLS_BASE && c.destination > 0 && inside(c.source, c.destination, PM_BYTES);
        check(fits && inside(c.auxiliary, c.length.into(), c.destination), Status::OutOfRange)?;
        return Ok(Item { lines: [None; 3], map: free as u64, parks });
    }
    let index = found.ok_or(Status::Unmapped)?;
    let m = around.maps[index].expect("it was found");
    check(exempt || m.flags & CLOSING == 0, Status::Unmapped)?;
    check(exempt || m.flags & LATCHED == 0 || d.flag(descriptor::UNMAPS), Status::Latched)?;
    let lengthy = OPERANDS.iter().any(|&o| matches!(d.operand_use(o), Use::Bytes | Use::Entry));
    check(!lengthy || (1..=MAX_COMMAND_BYTES).contains(&c.length), Status::BadLength)?;
    for o in OPERANDS {
        let unit = match d.operand_use(o) {
            Use::Entry => LINE_U64,
            Use::Word => 8,
            Use::None | Use::Bytes => 1,
        };
        check(field(c, o).is_multiple_of(unit), Status::Misaligned)?;
    }
    let congruent = c.source % LINE_U64 == c.destination % LINE_U64;
    check(!d.flag(descriptor::CONGRUENT) || congruent, Status::Misaligned)?;
    let mut lines = [None; 3];
    for (i, o) in OPERANDS.into_iter().enumerate() {
        let bytes = match d.operand_use(o) {
            Use::None => continue,
            Use::Bytes => c.length.into(),
            Use::Entry => entry_bytes(field(c, d.logged()) % LINE_U64, c.length),
            Use::Word => 8,
        };
        let first = field(c, o);
        let end = first.checked_add(bytes).ok_or(Status::OutOfRange)?;
        check(end <= m.bytes, Status::OutOfRange)?;
        let in_ring = first >= m.ring && end <= m.ring + m.ring_bytes;
        check(!d.in_ring(o) || in_ring, Status::OutOfRange)?;
        lines[i] = Some(((m.base + first) / LINE_U64, (m.base + end - 1) / LINE_U64));
    }
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        if let (Some(a), Some(b)) = (lines[a], lines[b]) {
            check(a.1 < b.0 || b.1 < a.0, Status::Overlap)?;
        }
    }
    // A log that is replayed was accepted before the commit that is known by now.
    check(!d.flag(descriptor::LOGS) || replayed || c.txid > m.committed, Status::StaleTransaction)?;
    let synchronises = d.flag(descriptor::SYNCHRONISES);
    let behind = (synchronises || d.flag(descriptor::ORDERED)) && around.busy >> index & 1 == 1;
    let parks = parks || !released && (synchronises && others != 0 || behind);
    check(!parks || !around.full, Status::ParkedFull)?;
    Ok(Item { lines, map: index as u64, parks })
}

fn any_descriptor(rng: &mut ChaCha8Rng) -> Descriptor {
    let mut d = Descriptor::default().with_entry(rng.random());
    if rng.random_ratio(1, 6) {
        // A map has no operands that are ranges: its fields say where the pool lies.
        return d.with(descriptor::VALID).with(descriptor::MAPS).with(descriptor::PRIVILEGED);
    }
    for o in OPERANDS {
        let how = [Use::None, Use::Bytes, Use::Entry, Use::Word][rng.random_range(0..4usize)];
        d = d.with_use(o, how);
        if rng.random_range(0..4) == 0 {
            d = d.with(descriptor::IN_RING + o as u32);
        }
    }
    let flags = [
        (descriptor::VALID, 14, 15),
        (descriptor::ORDERED, 1, 3),
        (descriptor::PRIVILEGED, 1, 8),
        (descriptor::CONGRUENT, 1, 4),
        (descriptor::UNMAPS, 1, 6),
        (descriptor::COMMITS, 1, 3),
        (descriptor::LOGS, 1, 3),
        (descriptor::LOGS_DESTINATION, 1, 3),
        (descriptor::SYNCHRONISES, 1, 3),
    ];
    flags.into_iter().fold(d, |d, (bit, n, of)| if rng.random_ratio(n, of) { d.with(bit) } else { d })
}

fn any_map(rng: &mut ChaCha8Rng, index: u64) -> Map {
    let bytes = LINE_U64 * rng.random_range(64..10_000u64);
    let ring = LINE_U64 * rng.random_range(0..bytes / LINE_U64);
    Map {
        pool: index / 3,
        thread: index % 3,
        base: POOLS_BASE + LINE_U64 * rng.random_range(0..1_000_000u64),
        bytes,
        ring,
        ring_bytes: rng.random_range(0..=bytes - ring),
        committed: rng.random_range(0..20),
        flags: IN_USE
            | if rng.random_ratio(1, 12) { LATCHED } else { 0 }
            | if rng.random_ratio(1, 12) { CLOSING } else { 0 },
    }
}

/// A number close to one of the borders.
fn near(rng: &mut ChaCha8Rng, borders: &[u64]) -> u64 {
    let border = borders[rng.random_range(0..borders.len())];
    let step = [1, 8, LINE_U64, LINE_U64, LINE_U64][rng.random_range(0..5usize)];
    let moved = border.wrapping_add(rng.random_range(0..8u64) * step).wrapping_sub(3 * step);
    if rng.random_ratio(1, 60) { moved | 1 << rng.random_range(36..64u32) } else { moved }
}

fn any_command(rng: &mut ChaCha8Rng, around: &Surroundings) -> Command {
    let known: Vec<_> = around.maps.iter().flatten().copied().collect();
    let m = known.get(rng.random_range(0..known.len().max(1))).copied().unwrap_or(any_map(rng, 0));
    let mut borders = vec![0, m.bytes / 2, m.bytes / 3, m.bytes, m.ring, m.ring + m.ring_bytes, m.ring + LINE_U64];
    let stranger = rng.random_ratio(1, 8);
    if stranger {
        borders = vec![0, POOLS_BASE, PM_BYTES, PM_BYTES / 2, 1 << 20];
    }
    let lengths = [0, 1, 7, 8, 63, 64, 65, 130, 200, MAX_COMMAND_BYTES, MAX_COMMAND_BYTES + 1, 1 << 19, u32::MAX];
    let wide = rng.random_ratio(1, 8);
    Command {
        opcode: if rng.random_ratio(1, 40) { rng.random_range(32..=255) } else { rng.random_range(0..32) },
        flags: rng.random_range(0..2),
        thread: if stranger { 7 } else { m.thread as u16 },
        pool: m.pool as u32,
        txid: m.committed + rng.random_range(0..5u64),
        source: near(rng, &borders),
        destination: near(rng, &borders),
        auxiliary: near(rng, &borders),
        sequence: rng.random(),
        length: lengths[if wide { rng.random_range(0..lengths.len()) } else { rng.random_range(1..9usize) }],
        tag: rng.random(),
        participants: [0, 1 << DEVICE, 1 << DEVICE | 1, 1 << DEVICE | 0x80, 1 << DEVICE | 1 << 8, 2]
            [rng.random_range(0..6usize)] as u32
            * u32::from(rng.random_ratio(1, 3)),
        crc: 0,
    }
}

/// Offers the command, as a post or as a replay, and waits for what becomes of it.
fn decide(dut: &mut dyn Dut, around: &mut Surroundings, c: &Command, page: u64, origin: Origin) -> u64 {
    let Origin { resume, released, parks } = origin;
    dut.set("inject_released", released);
    dut.set("inject_parks", parks);
    dut.set("inject_accepted", c.sequence);
    dut.set("speaks", around.speaks);
    dut.set("busy", around.busy);
    dut.set("full", around.full);
    let bytes = Value::from_bytes(&c.encode());
    let (group, data) = if resume.is_some() { ("inject", "inject_data") } else { ("cmd", "cmd_data") };
    dut.set(data, bytes);
    dut.set(&format!("{group}_page"), page);
    dut.set("inject_resume", resume.unwrap_or(0));
    dut.set(&format!("{group}_valid"), true);
    if resume.is_none() {
        while !dut.get_bool("cmd_ready") {
            around.cycle(dut);
        }
    }
    let start = dut.cycles();
    around.cycle(dut);
    dut.set("cmd_valid", false);
    while !dut.get_bool("item_valid") && !dut.get_bool("refused_valid") {
        assert!(dut.cycles() - start < 100, "{c:?} is neither numbered nor refused");
        around.cycle(dut);
    }
    dut.cycles() - start
}

fn check_item(dut: &mut dyn Dut, c: &Command, page: u64, resume: u64, item: &Item, around: &Surroundings) {
    let d = around.descriptors[usize::from(c.opcode)];
    let work = Work::from_value(dut.get("item_work"));
    let ticket = Ticket::from_value(dut.get("item_ticket"));
    for i in 0..3 {
        assert_eq!(dut.get_bool(&format!("item_ranges${i}")), item.lines[i].is_some(), "{c:?} {d:?}");
        let Some((first, last)) = item.lines[i] else { continue };
        let ends = (dut.get_u64(&format!("item_first${i}")), dut.get_u64(&format!("item_last${i}")));
        assert_eq!(ends, (first, last), "range {i} of {c:?} {d:?}");
        let address = [work.source, work.destination, work.auxiliary][i].to_u64();
        assert_eq!(address, first * LINE_U64 + field(c, OPERANDS[i]) % LINE_U64);
    }
    assert_eq!(dut.get("item_raw"), Value::from_bytes(&c.encode()));
    assert_eq!(dut.get_u64("item_resume"), resume);
    assert_eq!(work.pc.to_u64(), if resume == 0 { u64::from(d.entry()) } else { resume });
    assert_eq!(work.value.to_u64(), c.auxiliary);
    assert_eq!((work.source_offset.to_u64(), work.destination_offset.to_u64()), (c.source, c.destination));
    assert_eq!((work.pool.to_u64(), work.thread.to_u64()), (u64::from(c.pool), u64::from(c.thread)));
    assert_eq!((work.txid.to_u64(), work.sequence.to_u64()), (c.txid, c.sequence));
    assert_eq!(work.participants.to_u64(), u64::from(c.participants));
    if c.length <= MAX_COMMAND_BYTES {
        assert_eq!(work.length.to_u64(), u64::from(c.length));
    }
    assert_eq!((ticket.page.to_u64(), ticket.tag.to_u64()), (page, u64::from(c.tag)));
    assert_eq!(ticket.complete, c.flags & FLAG_COMPLETE != 0);
    assert_eq!(ticket.txid.to_u64(), c.txid);
    assert_eq!(ticket.map.to_u64(), item.map);
    let flags = (ticket.commits, ticket.logs, ticket.unmaps);
    let bits = [descriptor::COMMITS, descriptor::LOGS, descriptor::UNMAPS].map(|bit| d.flag(bit));
    assert_eq!(flags, (bits[0], bits[1], bits[2]));
    assert_eq!(ticket.parks, item.parks, "{c:?} {d:?}");
    let flags = (ticket.synchronises, ticket.ordered);
    assert_eq!(flags, (d.flag(descriptor::SYNCHRONISES), d.flag(descriptor::ORDERED)));
    assert_eq!(dut.get_bool("item_ordered"), d.flag(descriptor::ORDERED));
    assert_eq!(dut.get_bool("item_maps"), d.flag(descriptor::MAPS));
    assert_eq!(dut.get_bool("item_unmaps"), d.flag(descriptor::UNMAPS));
    if d.flag(descriptor::MAPS) {
        let made = MapEntry::from_value(dut.get("item_entry"));
        let wanted = Map {
            pool: c.pool.into(),
            thread: c.thread.into(),
            base: c.source,
            bytes: c.destination,
            ring: c.auxiliary,
            ring_bytes: c.length.into(),
            committed: c.sequence,
            flags: IN_USE,
        };
        assert_eq!(made, wanted.entry());
    }
}

fn commands_close_to_every_border(dut: &mut dyn Dut) {
    let rounds = if dut.back_end() == "verilator" { 60_000 } else { 3_000 };
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    dut.reset();
    dut.set("device_number", u64::from(DEVICE));
    dut.set("pm_lines", PM_BYTES / LINE_U64);
    dut.set("refused_ready", true);
    let mut around = Surroundings::empty();
    let (mut seen, mut numbered) = (BTreeSet::new(), 0);
    for round in 0..rounds {
        if round % 50 == 0 {
            let full = rng.random_ratio(1, 4);
            around.descriptors.iter_mut().for_each(|d| *d = any_descriptor(&mut rng));
            for (i, m) in around.maps.iter_mut().enumerate() {
                *m = (full || rng.random()).then(|| any_map(&mut rng, i as u64));
            }
            let free = around.maps.iter().position(Option::is_none);
            dut.set("any_free", free.is_some());
            dut.set("free_index", free.unwrap_or(0) as u64);
        }
        let c = any_command(&mut rng, &around);
        let (page, resume) = (rng.random_range(0..4u64) & rng.random_range(0..4), rng.random_ratio(1, 5));
        let resume = resume.then(|| rng.random_range(0..4u64));
        let kind = rng.random_range(0..3u8);
        let origin = Origin { resume, released: resume.is_some() && kind == 1, parks: resume.is_some() && kind == 2 };
        (around.speaks, around.busy, around.full) =
            (rng.random(), rng.random_range(0..=0xffff), rng.random_ratio(1, 6));
        let cycles = decide(dut, &mut around, &c, page, origin);
        assert!(cycles <= BOUND, "{cycles} cycles");
        match expected(&c, page, origin, &around) {
            Ok(item) => {
                numbered += 1;
                assert!(dut.get_bool("item_valid"), "{:#x}: {c:?}", dut.get_u64("refused_status"));
                for _ in 0..rng.random_range(0..3) {
                    around.cycle(dut);
                }
                check_item(dut, &c, page, resume.unwrap_or(0), &item, &around);
                assert_eq!(Ticket::from_value(dut.get("item_ticket")).released, origin.released);
                assert_eq!(dut.get_bool("item_again"), resume.is_some());
                assert!(resume.is_none() || dut.get_u64("item_accepted") == c.sequence);
                assert!(!dut.get_bool("cmd_done") && !dut.get_bool("inject_ready"));
                dut.set("item_ready", true);
            }
            Err(status) => {
                seen.insert(status.code());
                assert!(dut.get_bool("refused_valid"), "{status:?} is wanted for {c:?}");
                let maps = &around.maps;
                assert_eq!(dut.get_u64("refused_status"), u64::from(status.code()), "{status:?} {c:?} {maps:?}");
                assert_eq!(dut.get_u64("refused_tag"), u64::from(c.tag));
                assert_eq!(dut.get_u64("refused_page"), page);
            }
        }
        assert_eq!(dut.get_bool("cmd_done"), resume.is_none());
        assert_eq!(dut.get_bool("inject_ready"), resume.is_some());
        around.cycle(dut);
        dut.set("item_ready", false);
        dut.set("inject_valid", false);
        assert!(!dut.get_bool("item_valid") && !dut.get_bool("refused_valid") && dut.get_bool("idle"));
    }
    // What is discarded was accepted before.
    let refusals = Status::ALL.iter().map(|s| s.0).filter(|s| !s.had_side_effects() && *s != Status::Discarded);
    let all: BTreeSet<_> = refusals.map(Status::code).collect();
    assert_eq!(seen, all, "every refusal was met");
    assert!(numbered > rounds / 20, "only {numbered} commands of {rounds} were well formed");
}

#[test]
fn every_command_is_judged_as_the_page_says() {
    on_both_back_ends::<Decoder>(commands_close_to_every_border);
}

fn a_refusal_waits(dut: &mut dyn Dut) {
    dut.reset();
    let mut around = Surroundings::empty();
    dut.set("cmd_data", Value::from_bytes(&Command::default().encode()));
    dut.set("cmd_valid", true);
    around.cycle(dut);
    for _ in 0..20 {
        assert!(!dut.get_bool("refused_valid") && !dut.get_bool("cmd_done") && !dut.get_bool("cmd_ready"));
        around.cycle(dut);
    }
    dut.set("refused_ready", true);
    assert!(dut.get_bool("refused_valid") && dut.get_bool("cmd_done"));
    assert_eq!(dut.get_u64("refused_status"), u64::from(Status::BadOpcode.code()));
}

#[test]
fn a_refusal_waits_until_it_can_be_recorded() {
    on_both_back_ends::<Decoder>(a_refusal_waits);
}

fn failed_logs_hold_all_slots(dut: &mut dyn Dut) {
    dut.reset();
    dut.set("refused_ready", true);
    let mut around = Surroundings::empty();
    around.maps[5] = Some(Map { flags: IN_USE, pool: 0, thread: 0, ..any_map(&mut ChaCha8Rng::seed_from_u64(1), 5) });
    around.descriptors[0] = Descriptor::default().with(descriptor::VALID).with(descriptor::ORDERED);
    around.descriptors[1] = around.descriptors[0].with(descriptor::UNMAPS);
    for (opcode, refused) in [(0, true), (1, false)] {
        let c = Command { opcode, ..Command::default() };
        dut.set("slots_lost", false);
        decide(dut, &mut around, &c, 0, Origin::default());
        for _ in 0..20 {
            assert!(dut.get_bool("item_valid"), "it waits for a slot");
            around.cycle(dut);
        }
        dut.set("slots_lost", true);
        around.cycle(dut);
        assert_eq!(dut.get_bool("refused_valid"), refused);
        if refused {
            assert_eq!(dut.get_u64("refused_status"), u64::from(Status::Latched.code()));
        }
        around.cycle(dut);
    }
}

#[test]
fn a_command_that_waits_for_a_slot_is_refused_when_failed_logs_hold_them_all() {
    on_both_back_ends::<Decoder>(failed_logs_hold_all_slots);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a destination that ends behind its pool is taken",
        edits: &[Edit::Text(
            "beyond_d$d = end_d$q > wide_bytes$o;",
            "beyond_d$d = ~FAULT & (end_d$q > wide_bytes$o);",
            1,
        )],
        scenario: commands_close_to_every_border,
        seen: "OutOfRange",
    },
    UnitFault {
        module: "",
        what: "a log that begins before its ring is taken",
        edits: &[Edit::Text(
            "(before_ring_d$q | behind_ring_d$q)",
            "((before_ring_d$q & ~FAULT) | behind_ring_d$q)",
            1,
        )],
        scenario: commands_close_to_every_border,
        seen: "OutOfRange",
    },
    UnitFault {
        module: "",
        what: "source and destination that share their last line are taken",
        edits: &[Edit::Text(
            "sd_lap$d = (use_s != no_use) & (use_d != no_use) & (first_s$q <= last_d$q)",
            "sd_lap$d = (use_s != no_use) & (use_d != no_use) & (FAULT ? first_s$q < last_d$q : first_s$q <= last_d$q)",
            1,
        )],
        scenario: commands_close_to_every_border,
        seen: "Overlap",
    },
    UnitFault {
        module: "",
        what: "every page may do what page 0 may",
        edits: &[Edit::Text("if (desc$q[32'h13] & |page$q)", "if (desc$q[32'h13] & (|page$q) & ~FAULT)", 1)],
        scenario: commands_close_to_every_border,
        seen: "NotPrivileged",
    },
    UnitFault {
        module: "",
        what: "a log of the transaction that has just committed is taken",
        edits: &[Edit::Text("if (desc$q[32'h18] & old_txid$q", "if (desc$q[32'h18] & old_txid$q & ~FAULT", 1)],
        scenario: commands_close_to_every_border,
        seen: "StaleTransaction",
    },
    UnitFault {
        module: "",
        what: "a command of a latched entry is numbered",
        edits: &[Edit::Text(
            "if (map_flags[32'h1] & ~desc$q[32'h16]",
            "if (map_flags[32'h1] & ~FAULT & ~desc$q[32'h16]",
            1,
        )],
        scenario: commands_close_to_every_border,
        seen: "Latched",
    },
    UnitFault {
        module: "",
        what: "what has waited for other devices is refused by the latch",
        edits: &[Edit::Text(
            "& ~desc$q[32'h16] & ~exempt$q) begin\n                        status$d = is_latched;\n                        refuse",
            "& ~desc$q[32'h16] & ~(exempt$q & ~FAULT)) begin\n                        status$d = is_latched;\n                        refuse",
            1,
        )],
        scenario: commands_close_to_every_border,
        seen: "Command",
    },
    UnitFault {
        module: "",
        what: "a command behind one that waits for other devices does not wait",
        edits: &[Edit::Text("& busy_now[32'h0]", "& busy_now[32'h0] & ~FAULT", 1)],
        scenario: commands_close_to_every_border,
        seen: "left: ",
    },
    UnitFault {
        module: "",
        what: "a refusal does not wait for its record",
        edits: &[Edit::Last("refused_valid", "step$q == Step$Refuse")],
        scenario: a_refusal_waits,
        seen: "refused_valid",
    },
    UnitFault {
        module: "",
        what: "a command waits for ever for a slot that failed logs hold",
        edits: &[Edit::Text("if (slots_lost & ~desc", "if (slots_lost & ~FAULT & ~desc", 1)],
        scenario: failed_logs_hold_all_slots,
        seen: "left: ",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<Decoder>("Decoder", FAULTS);
}
