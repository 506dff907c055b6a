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
