//! Numbering, and what is asked for each item, against a list.

use crate::{cycles, seeded};
use nearpm_hdl::Sizes;
use nearpm_hdl::dut::{Dut, PortValue, on_rust_hdl};
use nearpm_hdl::units::ordering_point::OrderingPoint;
use nearpm_hdl::units::request_slots::Ticket;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// A query of the range table.
#[derive(Clone, Debug, PartialEq)]
struct Query {
    /// Lines and whether they are a range; of a command's second operand, which may be none.
    lines: Option<(u64, u64)>,
    write: bool,
    command: bool,
    ordered: bool,
    /// Mapping entry of a command.
    map: Option<u64>,
    row: u64,
    end: bool,
}

/// A command as the decoder offers it.
#[derive(Clone, Debug)]
struct Item {
    ranges: [Option<(u64, u64)>; 3],
    ordered: bool,
    map: u64,
    /// Under which number it was accepted before.
    again: Option<u64>,
}

impl Item {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        Self {
            ranges: std::array::from_fn(|_| {
                let (first, length) = (rng.random_range(0..1 << 33), rng.random_range(0..64));
                rng.random_bool(0.6).then_some((first, first + length))
            }),
            ordered: rng.random(),
            map: rng.random_range(0..16),
            again: rng.random_bool(0.3).then(|| rng.random()),
        }
    }

    fn offer(&self, dut: &mut dyn Dut) {
        for (i, range) in self.ranges.iter().enumerate() {
            dut.set(&format!("item_ranges${i}"), range.is_some());
            dut.set(&format!("item_first${i}"), range.map_or(0, |r| r.0));
            dut.set(&format!("item_last${i}"), range.map_or(0, |r| r.1));
        }
        dut.set("item_ordered", self.ordered);
        dut.set("item_again", self.again.is_some());
        dut.set("item_accepted", self.again.unwrap_or(77));
        dut.set("item_ticket", Ticket { map: self.map.into(), ..Ticket::default() }.to_value());
    }

    /// The queries for it: what it reads, then what it writes; of operands that are none only those
    /// in front.
    fn queries(&self, slot: u64) -> impl Iterator<Item = Query> + '_ {
        let last = (1..3).rev().find(|&i| self.ranges[i].is_some()).unwrap_or(0);
        (0..=last).map(move |i| Query {
            lines: self.ranges[i],
            write: i > 0,
            command: true,
            ordered: self.ordered,
            map: Some(self.map),
            row: slot,
            end: i == last,
        })
    }
}

/// What is asked in this cycle.
fn asked(dut: &mut dyn Dut) -> Option<Query> {
    if !dut.get_bool("query_valid") {
        return None;
    }
    let command = dut.get_bool("query_command");
    let lines = (dut.get_u64("query_first"), dut.get_u64("query_last"));
    Some(Query {
        lines: dut.get_bool("query_range").then_some(lines),
        write: dut.get_bool("query_write"),
        command,
        ordered: dut.get_bool("query_ordered"),
        map: command.then(|| dut.get_u64("query_map")),
        row: dut.get_u64("query_row"),
        end: dut.get_bool("query_end"),
    })
}

/// Commands, host accesses and replayed stores are offered at once, and slots and lines are free or
/// not.
fn everything_offered_gets_its_number_and_its_queries(dut: &mut dyn Dut) {
    let mut rng = seeded(32);
    dut.reset();
    let (mut number, mut queue) = (0u64, VecDeque::new());
    let (mut item, mut access, mut store): (Option<Item>, Option<(u64, bool)>, Option<u64>) = (None, None, None);
    let mut taken = [0; 3];
    for cycle in 0..cycles(dut, 8000) {
        // What is offered stays until it is taken.
        if item.is_none() && rng.random_bool(0.4) {
            item = Some(Item::random(&mut rng));
        }
        if access.is_none() && rng.random_bool(0.5) {
            access = Some((rng.random_range(0..1 << 34), rng.random()));
        }
        if store.is_none() && rng.random_bool(0.2) {
            store = Some(rng.random_range(0..1 << 34));
        }
        let (slot, line) = (rng.random_bool(0.8), rng.random_bool(0.8));
        let (slot_index, line_index) = (rng.random_range(0..32u64), rng.random_range(0..64u64));
        dut.set("item_valid", item.is_some());
        item.iter().for_each(|item| item.offer(dut));
        dut.set("acc_valid", access.is_some());
        dut.set("acc_line", access.map_or(0, |a| a.0));
        dut.set("acc_write", access.is_some_and(|a| a.1));
        dut.set("store_valid", store.is_some());
        dut.set("store_line", store.unwrap_or(0));
        dut.set("slot_any", slot);
        dut.set("slot_index", slot_index);
        dut.set("line_any", line);
        dut.set("line_index", line_index);
        let restores = queue.is_empty() && item.is_none() && access.is_none() && store.is_none();
        let restored = (restores && rng.random_bool(0.5)).then(|| rng.random::<u64>() >> 1);
        dut.set("restore_valid", restored.is_some());
        dut.set("restore_order", restored.unwrap_or(0));

        let free = queue.is_empty();
        let takes_item = free && item.is_some() && slot;
        let takes_line = free && !takes_item && line;
        let (takes_store, takes_access) =
            (takes_line && store.is_some(), takes_line && store.is_none() && access.is_some());
        let who = ["item_ready", "store_ready", "acc_ready"].map(|ready| dut.get_bool(ready));
        assert_eq!(who, [takes_item, takes_store, takes_access], "cycle {cycle}: who is numbered");
        let enters = ["enter_slot", "enter_line"].map(|enter| dut.get_bool(enter));
        assert_eq!(enters, [takes_item, takes_store || takes_access], "cycle {cycle}: what enters");
        assert_eq!(dut.get_bool("busy"), !free || who.contains(&true), "cycle {cycle}: busy");
        assert_eq!(dut.get_u64("order"), number, "cycle {cycle}: the last number");
        if who.contains(&true) {
            number = number.wrapping_add(1);
            assert_eq!(dut.get_u64("enter_order"), number, "cycle {cycle}: the number");
        }
        if let Some(item) = item.take_if(|_| takes_item) {
            queue.extend(item.queries(slot_index));
            let ticket = Ticket::from_value(dut.get("enter_ticket"));
            assert_eq!((ticket.order.to_u64(), ticket.map.to_u64()), (number, item.map), "cycle {cycle}: the ticket");
            let accepted = dut.get_u64("enter_accepted");
            assert_eq!(accepted, item.again.unwrap_or(number), "cycle {cycle}: the number of acceptance");
            assert_eq!(dut.get_u64("enter_row"), slot_index, "cycle {cycle}: the row");
            assert_eq!(dut.get("enter_work").slice(0, 5), slot_index, "cycle {cycle}: the slot of the work");
            taken[0] += 1;
        } else if takes_store || takes_access {
            let (at, write) =
                if takes_store { (store.take().unwrap_or(0), true) } else { access.take().unwrap_or_default() };
            taken[if takes_store { 1 } else { 2 }] += 1;
            let row = Sizes::FULL.slots as u64 + line_index;
            let shown = (dut.get_u64("enter_address"), dut.get_bool("enter_write"), dut.get_u64("enter_row"));
            assert_eq!(shown, (at, write, row), "cycle {cycle}: the line that enters");
            let lines = Some((at, at));
            queue.push_back(Query { lines, write, command: false, ordered: false, map: None, row, end: true });
        }
        assert_eq!(asked(dut), queue.pop_front(), "cycle {cycle}: what is asked");
        number = restored.unwrap_or(number);
        dut.cycle();
    }
    assert!(taken.iter().all(|count| *count > 20), "{taken:?} commands, replayed stores and accesses");
}

#[test]
fn the_ordering_point_numbers_what_is_offered() {
    on_rust_hdl::<OrderingPoint>(everything_offered_gets_its_number_and_its_queries);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a command that was accepted before is given a new number of acceptance",
        edits: &[Edit::Last("enter_accepted", "next_number")],
        scenario: everything_offered_gets_its_number_and_its_queries,
        seen: "the number of acceptance",
    },
    UnitFault {
        module: "",
        what: "a command's third range is not asked for",
        edits: &[Edit::Text("if (ranges$1$q) begin", "if (ranges$1$q & ~FAULT) begin", 1)],
        scenario: everything_offered_gets_its_number_and_its_queries,
        seen: "busy",
    },
    UnitFault {
        module: "",
        what: "what a command writes is asked for as if it were read",
        edits: &[Edit::Last("query_write", "query_write & ~query_command")],
        scenario: everything_offered_gets_its_number_and_its_queries,
        seen: "what is asked",
    },
    UnitFault {
        module: "",
        what: "an access is numbered in the cycle of a command",
        edits: &[Edit::Each(
            "take_host",
            "(phase$q == Phase$Ready) & (acc_valid | store_valid) & line_any & ~reset",
            1,
        )],
        scenario: everything_offered_gets_its_number_and_its_queries,
        seen: "who is numbered",
    },
    UnitFault {
        module: "",
        what: "a store of the replay gives way to one of the host",
        edits: &[
            Edit::Last("store_ready", "store_ready & ~acc_valid"),
            Edit::Last("acc_ready", "acc_ready | (take_host & acc_valid)"),
        ],
        scenario: everything_offered_gets_its_number_and_its_queries,
        seen: "who is numbered",
    },
    UnitFault {
        module: "",
        what: "a number is given twice",
        edits: &[Edit::Last("number$enable", "number$enable & ~(take_host & store_valid)")],
        scenario: everything_offered_gets_its_number_and_its_queries,
        seen: "the last number",
    },
];

#[test]
fn planted_faults_of_the_ordering_point_are_seen() {
    each_is_seen::<OrderingPoint>("OrderingPoint", FAULTS);
}
