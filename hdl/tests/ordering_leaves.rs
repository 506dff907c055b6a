//! Range table and dependency matrix against simple models, and on both back ends.

use std::collections::BTreeSet;

use nearpm_hdl::Sizes;
use nearpm_hdl::dut::{Dut, Value, on_both_back_ends, on_both_back_ends_with};
use nearpm_hdl::units::address_map::AddressMap;
use nearpm_hdl::units::command_port::CommandPort;
use nearpm_hdl::units::decoder::Decoder;
use nearpm_hdl::units::dependency_matrix::DependencyMatrix;
use nearpm_hdl::units::dispatcher::Dispatcher;
use nearpm_hdl::units::front::Front;
use nearpm_hdl::units::host_port::HostPort;
use nearpm_hdl::units::host_queue::HostQueue;
use nearpm_hdl::units::ordering_point::OrderingPoint;
use nearpm_hdl::units::range_table::RangeTable;
use nearpm_hdl::units::request_slots::RequestSlots;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Debug)]
struct Item {
    ranges: Vec<(u64, u64, bool)>,
    map: Option<u64>,
}

fn conflict(new: &Item, old: &Item, ordered: bool) -> bool {
    let touch = |a: &(u64, u64, bool), b: &(u64, u64, bool)| a.0 <= b.1 && b.0 <= a.1 && (a.2 || b.2);
    new.ranges.iter().any(|a| old.ranges.iter().any(|b| touch(a, b)))
        || (ordered && new.map.is_some() && new.map == old.map)
}

/// Tables of a small card, with fewer slots than lines: neither number may stand for the other.
const SMALL: Sizes = Sizes { slots: 8, lines: 16, held_stores: 8, map_entries: 4, parked_commands: 8 };

fn enter(dut: &mut dyn Dut, slots: usize, row: usize, item: &Item) {
    if row < slots {
        dut.set("slot_valid", true);
        dut.set("slot_index", row as u64);
        for r in 0..3 {
            let range = item.ranges.iter().find(|x| (x.2 && r > 0) || (!x.2 && r == 0)).filter(|_| r < 2);
            dut.set(&format!("slot_ranges${r}"), range.is_some());
            dut.set(&format!("slot_first${r}"), range.map_or(0, |x| x.0));
            dut.set(&format!("slot_last${r}"), range.map_or(0, |x| x.1));
        }
        dut.set("slot_map", item.map.unwrap());
    } else {
        dut.set("line_valid", true);
        dut.set("line_index", (row - slots) as u64);
        dut.set("line_address", item.ranges[0].0);
        dut.set("line_write", item.ranges[0].2);
    }
}

#[test]
fn the_range_table_finds_exactly_the_conflicts() {
    finds_exactly_the_conflicts(&Sizes::FULL);
}

#[test]
fn so_does_that_of_a_small_card() {
    finds_exactly_the_conflicts(&SMALL);
}

fn finds_exactly_the_conflicts(sizes: &Sizes) {
    let (slots, items) = (sizes.slots, sizes.slots + sizes.lines);
    on_both_back_ends_with(
        || Box::new(RangeTable::new(sizes)),
        |dut| {
            let mut rng = ChaCha8Rng::seed_from_u64(4);
            dut.reset();
            let mut live: Vec<Option<Item>> = vec![None; items];
            for _ in 0..400 {
                let row = rng.random_range(0..items);
                for port in ["slot_valid", "line_valid", "query_valid", "retire_slot_valid", "retire_write_valid"] {
                    dut.set(port, false);
                }
                if live[row].is_some() {
                    live[row] = None;
                    let (valid, index, place) = if row < slots {
                        ("retire_slot_valid", "retire_slot", row)
                    } else {
                        ("retire_write_valid", "retire_write", row - slots)
                    };
                    dut.set(valid, true);
                    dut.set(index, place as u64);
                    dut.cycle();
                    continue;
                }
                let ordered = row < slots && rng.random_range(0..5) == 0;
                let item = if row < slots {
                    let mut range = |write| {
                        let first = rng.random_range(0..60u64);
                        (first, first + rng.random_range(0..6u64), write)
                    };
                    Item { ranges: vec![range(false), range(true)], map: Some(row as u64 % 3) }
                } else {
                    let line = rng.random_range(0..60u64);
                    Item { ranges: vec![(line, line, rng.random())], map: None }
                };
                enter(dut, slots, row, &item);
                let mut hits = Value::ZERO;
                let count = item.ranges.len();
                for (i, &(first, last, write)) in item.ranges.iter().enumerate() {
                    dut.set("query_valid", true);
                    dut.set("query_first", first);
                    dut.set("query_last", last);
                    dut.set("query_range", true);
                    dut.set("query_write", write);
                    dut.set("query_command", row < slots);
                    dut.set("query_ordered", ordered);
                    dut.set("query_map", item.map.unwrap_or(0));
                    dut.set("query_row", row as u64);
                    dut.set("query_end", i + 1 == count);
                    dut.cycle();
                    dut.set("slot_valid", false);
                    dut.set("line_valid", false);
                    dut.set("query_valid", false);
                    dut.cycle();
                    assert!(dut.get_bool("hits_valid"));
                    assert_eq!(dut.get("hits_row"), row as u64);
                    assert_eq!(dut.get_bool("hits_end"), i + 1 == count);
                    let found = dut.get("hits");
                    (0..96).filter(|&b| found.bit(b)).for_each(|b| hits.set_bit(b, true));
                }
                let expected: BTreeSet<usize> =
                    (0..items).filter(|&o| live[o].as_ref().is_some_and(|old| conflict(&item, old, ordered))).collect();
                let found: BTreeSet<usize> = (0..96).filter(|&b| hits.bit(b)).collect();
                assert_eq!(found, expected, "row {row}: {item:?}");
                live[row] = Some(item);
            }
        },
    );
}

/// What the table holds of a slot or a line, as the test keeps it.
#[derive(Clone, Debug)]
struct Held {
    /// Ranges with whether they are written.
    ranges: Vec<(u64, u64, bool)>,
    map: Option<u64>,
    failed: bool,
}

/// A query on its way: its row, and whom it names unless they go first.
struct Asked {
    row: usize,
    command: bool,
    end: bool,
    named: BTreeSet<usize>,
}

/// Everything at once: items enter and retire, logs fail and are let go, in every cycle of every
/// query.
#[test]
fn queries_overlap_retirement_and_name_nobody_who_has_gone() {
    for sizes in [Sizes::FULL, SMALL] {
        overlap_queries_with_retirement(&sizes);
    }
}

fn overlap_queries_with_retirement(sizes: &Sizes) {
    on_both_back_ends_with(|| Box::new(RangeTable::new(sizes)), |dut| queries_against_an_oracle(dut, sizes));
}

fn queries_of_the_full_card(dut: &mut dyn Dut) {
    queries_against_an_oracle(dut, &Sizes::FULL);
}

fn queries_against_an_oracle(dut: &mut dyn Dut, sizes: &Sizes) {
    const MAPS: u64 = 16;
    let Sizes { slots, lines, .. } = *sizes;
    let cycles = if dut.back_end() == "verilator" { 20_000 } else { 1500 };
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    dut.reset();
    let mut held: Vec<Option<Held>> = vec![None; slots + lines];
    let (mut let_go, mut queue) = (BTreeSet::new(), std::collections::VecDeque::new());
    let (mut now, mut before): (Option<Asked>, Option<Asked>) = (None, None);
    let (mut named, mut gone_meanwhile, mut counts) = (0, 0, [0; 4]);
    for cycle in 0..cycles {
        // Who retires in this cycle; a failed slot only by being let go.
        let mut retires = |rows: std::ops::Range<usize>, chance: f64, fits: &dyn Fn(&Held) -> bool| {
            let able: Vec<usize> =
                rows.filter(|&row| held[row].as_ref().is_some_and(fits) && !let_go.contains(&row)).collect();
            (!able.is_empty() && rng.random_bool(chance)).then(|| able[rng.random_range(0..able.len())])
        };
        let slot = retires(0..slots, 0.35, &|h| !h.failed);
        let write = retires(slots..slots + lines, 0.3, &|h| h.ranges[0].2);
        let read = retires(slots..slots + lines, 0.3, &|h| !h.ranges[0].2);
        let fails = slot.is_some() && rng.random_bool(0.2);
        let (close, all) = (rng.random_bool(0.1).then(|| rng.random_range(0..MAPS)), rng.random_bool(0.01));
        dut.set("retire_slot_valid", slot.is_some());
        dut.set("retire_slot", slot.unwrap_or(0) as u64);
        dut.set("retire_failed", fails);
        dut.set("retire_write_valid", write.is_some());
        dut.set("retire_write", write.map_or(0, |row| (row - slots) as u64));
        dut.set("retire_read_valid", read.is_some());
        dut.set("retire_read", read.map_or(0, |row| (row - slots) as u64));
        dut.set("close_valid", close.is_some());
        dut.set("close_map", close.unwrap_or(0));
        dut.set("close_all", all);
        let shown: BTreeSet<usize> = (0..32).filter(|&bit| dut.get("let_go").bit(bit)).collect();
        assert_eq!(shown, let_go, "cycle {cycle}: what is let go");

        // A new item, with its first query; the others follow.
        let free: Vec<usize> = (0..slots + lines).filter(|&row| held[row].is_none()).collect();
        let enters = (queue.is_empty() && !free.is_empty() && rng.random_bool(0.6))
            .then(|| free[rng.random_range(0..free.len())]);
        dut.set("slot_valid", enters.is_some_and(|row| row < slots));
        dut.set("line_valid", enters.is_some_and(|row| row >= slots));
        let mut fresh = None;
        if let Some(row) = enters {
            let item = if row < slots {
                let used: [bool; 3] = std::array::from_fn(|_| rng.random_bool(0.6));
                let range = |rng: &mut ChaCha8Rng, write: bool| {
                    let first = rng.random_range(0..80u64);
                    (first, first + rng.random_range(0..4u64), write)
                };
                let ranges: Vec<_> = (0..3).map(|r| range(&mut rng, r > 0)).collect();
                for (r, (first, last, _)) in ranges.iter().enumerate() {
                    dut.set(&format!("slot_ranges${r}"), used[r]);
                    dut.set(&format!("slot_first${r}"), *first);
                    dut.set(&format!("slot_last${r}"), *last);
                }
                let ranges: Vec<_> = ranges.into_iter().zip(used).filter(|(_, used)| *used).map(|(r, _)| r).collect();
                counts[ranges.len()] += 1;
                let map = rng.random_range(0..MAPS);
                dut.set("slot_index", row as u64);
                dut.set("slot_map", map);
                Held { ranges, map: Some(map), failed: false }
            } else {
                let (line, write) = (rng.random_range(0..80u64), rng.random());
                dut.set("line_index", (row - slots) as u64);
                dut.set("line_address", line);
                dut.set("line_write", write);
                Held { ranges: vec![(line, line, write)], map: None, failed: false }
            };
            let ordered = row < slots && rng.random_bool(0.3);
            // A command without a range asks once, too.
            let asks = item.ranges.len().max(1);
            for n in 0..asks {
                queue.push_back((row, item.ranges.get(n).copied(), ordered, item.map, n + 1 == asks));
            }
            fresh = Some((row, item));
        }
        let query = queue.pop_front();
        dut.set("query_valid", query.is_some());
        let mut asked = None;
        if let Some((row, range, ordered, map, end)) = query {
            let (first, last, write) = range.unwrap_or((0, 0, false));
            dut.set("query_first", first);
            dut.set("query_last", last);
            dut.set("query_range", range.is_some());
            dut.set("query_write", write);
            dut.set("query_command", row < slots);
            dut.set("query_ordered", ordered);
            dut.set("query_map", map.unwrap_or(0));
            dut.set("query_row", row as u64);
            dut.set("query_end", end);
            let touches = |h: &Held| {
                let hit = |r: &(u64, u64, bool)| range.is_some() && first <= r.1 && r.0 <= last && (write || r.2);
                h.ranges.iter().any(hit) || ordered && h.map == map
            };
            let command = row < slots;
            let names =
                |(_, h): &(usize, &Option<Held>)| h.as_ref().is_some_and(|h| touches(h) && !(command && h.failed));
            let named =
                held.iter().enumerate().filter(names).map(|(other, _)| other).filter(|other| *other != row).collect();
            asked = Some(Asked { row, command, end, named });
        }

        // Who has gone is named by no query that is on its way; a log that fails goes for commands
        // only.
        let mut gone: BTreeSet<usize> = let_go.iter().copied().chain(write).chain(read).collect();
        gone.extend(slot.filter(|_| !fails));
        for query in [&mut asked, &mut now].into_iter().flatten() {
            let count = query.named.len();
            query.named.retain(|row| !(gone.contains(row) || query.command && fails && Some(*row) == slot));
            gone_meanwhile += count - query.named.len();
        }
        // The hits of the query before last.
        assert_eq!(dut.get_bool("hits_valid"), before.is_some(), "cycle {cycle}");
        if let Some(Asked { row, end, named: wanted, .. }) = before.take() {
            let hits = dut.get("hits");
            let found: BTreeSet<usize> = (0..96).filter(|&bit| hits.bit(bit)).collect();
            assert_eq!(found, wanted, "cycle {cycle}: the hits of row {row}");
            assert_eq!((dut.get_u64("hits_row"), dut.get_bool("hits_end")), (row as u64, end));
            named += wanted.len();
        }
        dut.cycle();
        (before, now) = (now.take(), asked);

        for row in gone {
            held[row] = None;
        }
        if let Some(row) = slot.filter(|_| fails) {
            held[row].as_mut().expect("it was live").failed = true;
        }
        let ends = |h: &Held| h.failed && (all || close.is_some() && h.map == close);
        let_go = (0..slots).filter(|&row| held[row].as_ref().is_some_and(ends)).collect();
        if let Some((row, item)) = fresh {
            held[row] = Some(item);
        }
    }
    assert!(named > cycles / 20 && gone_meanwhile > cycles / 100, "{named} named, {gone_meanwhile} gone meanwhile");
    assert!(counts.iter().all(|&count| count > 5), "{counts:?} commands by ranges");
}

#[test]
fn planted_faults_of_the_range_table_are_seen() {
    const FAULTS: &[UnitFault] = &[
        UnitFault {
            module: "",
            what: "an item that retires in the cycle of its query is still named",
            edits: &[Edit::Text(
                "& ~(retiring & ~{ 64'd0, query_command",
                "& ~({96{~FAULT}} & retiring & ~{ 64'd0, query_command",
                1,
            )],
            scenario: queries_of_the_full_card,
            seen: "the hits of row",
        },
        UnitFault {
            module: "",
            what: "an item that retires in the cycle behind its query is still named",
            edits: &[Edit::Text(
                "& ~(retiring & ~{ 64'd0, stage_command",
                "& ~({96{~FAULT}} & retiring & ~{ 64'd0, stage_command",
                1,
            )],
            scenario: queries_of_the_full_card,
            seen: "the hits of row",
        },
        UnitFault {
            module: "",
            what: "a command waits for a failed log",
            edits: &[Edit::Text("query_command ? failed : 32'd0", "(query_command & ~FAULT) ? failed : 32'd0", 1)],
            scenario: queries_of_the_full_card,
            seen: "the hits of row",
        },
        UnitFault {
            module: "",
            what: "the third range is not compared",
            edits: &[Edit::Text("& may2[n])", "& may2[n] & ~FAULT)", 1)],
            scenario: queries_of_the_full_card,
            seen: "the hits of row",
        },
        UnitFault {
            module: "",
            what: "an ordered command waits for those of some other mapping entries",
            edits: &[Edit::Text(
                "(maps[i] == query_map)",
                "(FAULT ? maps[i][2:0] == query_map[2:0] : maps[i] == query_map)",
                1,
            )],
            scenario: queries_of_the_full_card,
            seen: "the hits of row",
        },
        UnitFault {
            module: "",
            what: "an unmap lets go what another entry's logs hold",
            edits: &[Edit::Text("maps[i] == close_map", "(maps[i] == close_map | FAULT)", 1)],
            scenario: queries_of_the_full_card,
            seen: "what is let go",
        },
    ];
    each_is_seen::<RangeTable>("RangeTable", FAULTS);
}

#[test]
fn a_failed_slot_holds_host_accesses_until_its_entry_closes() {
    on_both_back_ends::<RangeTable>(|dut| {
        dut.reset();
        let item = Item { ranges: vec![(5, 5, true)], map: Some(2) };
        enter(dut, Sizes::FULL.slots, 7, &item);
        dut.cycle();
        dut.set("slot_valid", false);
        dut.set("retire_slot_valid", true);
        dut.set("retire_slot", 7u64);
        dut.set("retire_failed", true);
        dut.cycle();
        dut.set("retire_slot_valid", false);
        let ask = |dut: &mut dyn Dut, command: bool| {
            dut.set("query_valid", true);
            dut.set("query_first", 5u64);
            dut.set("query_last", 5u64);
            dut.set("query_range", true);
            dut.set("query_write", true);
            dut.set("query_command", command);
            dut.set("query_row", if command { 1u64 } else { 40 });
            dut.set("query_end", true);
            dut.cycle();
            dut.set("query_valid", false);
            dut.cycle();
            dut.get("hits").bit(7)
        };
        assert!(ask(dut, false), "a store to what the failed log covers is held");
        assert!(!ask(dut, true), "commands are refused by the latch instead");
        dut.set("close_valid", true);
        dut.set("close_map", 2u64);
        dut.cycle();
        dut.set("close_valid", false);
        assert_eq!(dut.get("let_go"), 1u64 << 7);
        dut.cycle();
        assert!(!ask(dut, false), "the unmap lets it go");
    });
}

#[test]
fn an_item_is_ready_when_what_it_waits_for_has_retired() {
    [Sizes::FULL, SMALL].iter().for_each(is_ready_when_what_it_waits_for_has_retired);
}

fn is_ready_when_what_it_waits_for_has_retired(sizes: &Sizes) {
    // Host line 8 waits for slot 3 and host line 3.
    let row = sizes.slots + 8;
    on_both_back_ends_with(
        || Box::new(DependencyMatrix::new(sizes)),
        |dut| {
            dut.reset();
            dut.set("enter_valid", true);
            dut.set("enter_row", row as u64);
            dut.cycle();
            dut.set("enter_valid", false);
            dut.set("set_valid", true);
            dut.set("set_row", row as u64);
            dut.set("set_end", true);
            let mut bits = Value::ZERO;
            bits.set_bit(3, true);
            bits.set_bit(sizes.slots + 3, true);
            dut.set("set_bits", bits);
            dut.cycle();
            dut.set("set_valid", false);
            dut.cycle();
            assert!(dut.get_bool("held_host"));
            dut.run(2);
            assert_eq!(dut.get("ready_lines"), 0u64);
            dut.set("retire_slot_valid", true);
            dut.set("retire_slot", 3u64);
            dut.cycle();
            dut.set("retire_slot_valid", false);
            dut.run(2);
            assert_eq!(dut.get("ready_lines"), 0u64);
            dut.set("retire_read_valid", true);
            dut.set("retire_read", 3u64);
            dut.cycle();
            dut.set("retire_read_valid", false);
            dut.run(2);
            assert_eq!(dut.get("ready_lines"), 1u64 << 8);
            assert_eq!(dut.get("ready_slots"), 0u64);
        },
    );
}

#[test]
fn the_other_units_build_without_denied_warnings() {
    on_both_back_ends::<AddressMap>(|dut| dut.reset());
    on_both_back_ends::<RequestSlots>(|dut| dut.run(2));
    on_both_back_ends::<Decoder>(|dut| dut.reset());
    on_both_back_ends::<OrderingPoint>(|dut| dut.reset());
    on_both_back_ends::<Dispatcher>(|dut| dut.reset());
    on_both_back_ends::<CommandPort>(|dut| dut.reset());
    on_both_back_ends::<HostPort>(|dut| dut.reset());
    on_both_back_ends::<HostQueue>(|dut| dut.reset());
    on_both_back_ends::<Front>(|dut| dut.reset());
    on_both_back_ends_with(|| Box::new(Front::new(&SMALL)), |dut| dut.reset());
}
