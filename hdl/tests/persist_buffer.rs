//! The persist buffer of a GPU: each of its parts by hand, and the whole beside the machine that
//! defines it.

use nearpm_hdl::dut::{Dut, on_both_back_ends, on_both_back_ends_with, on_rust_hdl};
use nearpm_hdl::persist_buffer::kind::*;
use nearpm_hdl::persist_buffer::{LastOrders, OrderFlags, PaperBuffer, SmallBuffer};
use nearpm_hdl_bench::persist_buffer::{Counts, Record, Shape, side_by_side};
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};

/// A warp's request and its answer: accepted, held, refused.
fn ask(dut: &mut dyn Dut, kind: u64, warp: u64, line: u64) -> [bool; 3] {
    dut.set("advance", false);
    while !dut.get_bool("request_ready") {
        dut.cycle();
    }
    dut.set("request_valid", true);
    dut.set("request_kind", kind);
    dut.set("request_warp", warp);
    dut.set("request_line", line);
    dut.cycle();
    dut.set("request_valid", false);
    let answer = ["accepted", "held", "refused"].map(|pin| dut.get_bool(pin));
    dut.cycle();
    answer
}

const ACCEPTED: [bool; 3] = [true, false, false];
const HELD: [bool; 3] = [true, true, false];
const REFUSED: [bool; 3] = [false, false, true];

/// What the head does in its next turn: the line that goes, or whether an entry leaves.
fn head(dut: &mut dyn Dut) -> (Option<u64>, bool) {
    dut.set("advance", true);
    while !dut.get_bool("request_ready") {
        dut.cycle();
    }
    let line = dut.get_bool("flush_valid").then(|| dut.get_u64("flush_line"));
    let left = dut.get_bool("left");
    dut.cycle();
    dut.set("advance", false);
    (line, left)
}

fn acknowledge(dut: &mut dyn Dut) {
    dut.set("acknowledge", true);
    dut.cycle();
    dut.set("acknowledge", false);
}

#[test]
fn what_lies_behind_a_fence_waits_and_what_does_not_goes() {
    on_both_back_ends::<PaperBuffer>(|dut| {
        dut.reset();
        for (kind, warp, line) in [(PERSIST, 3, 500), (OFENCE, 3, 0), (PERSIST, 4, 77), (PERSIST, 3, 9)] {
            assert_eq!(ask(dut, kind, warp, line), ACCEPTED);
        }
        assert_eq!([head(dut), head(dut), head(dut)], [(Some(500), false), (None, true), (Some(77), false)]);
        assert_eq!(dut.get_u64("flush_status"), 1 << 3);
        assert_eq!(head(dut), (None, false), "two lines are outstanding");
        acknowledge(dut);
        assert_eq!(head(dut), (None, false), "one is");
        acknowledge(dut);
        assert_eq!(head(dut), (Some(9), false));
        assert!(!dut.get_bool("drained"));
        acknowledge(dut);
        assert!(dut.get_bool("drained"));
    });
}

#[test]
fn a_store_joins_its_line_or_waits_for_it() {
    on_both_back_ends::<SmallBuffer>(|dut| {
        dut.reset();
        assert_eq!(ask(dut, PERSIST, 0, 2), ACCEPTED);
        assert_eq!(ask(dut, PERSIST, 1, 2), ACCEPTED, "the same entry");
        assert_eq!(ask(dut, OFENCE, 0, 0), ACCEPTED);
        assert_eq!(ask(dut, OFENCE, 2, 0), ACCEPTED, "shares the fence");
        assert_eq!(ask(dut, PERSIST, 1, 2), ACCEPTED, "the fence is not its own");
        assert_eq!(ask(dut, PERSIST, 0, 2), REFUSED);
        assert_eq!(ask(dut, PERSIST, 2, 2), REFUSED, "the shared fence is its own, too");
        assert_eq!(dut.get_u64("eviction_delay"), 0b101);
        assert_eq!(ask(dut, EVICTED, 0, 3), REFUSED, "no such line is dirty");
        assert_eq!([head(dut), head(dut)], [(Some(2), false), (None, true)]);
        assert_eq!(dut.get_u64("flush_status"), 0b101);
        assert_eq!(dut.get_u64("eviction_delay"), 0, "its order has left");
        assert_eq!(ask(dut, PERSIST, 0, 2), ACCEPTED, "a new entry");
        assert_eq!(head(dut), (None, false), "behind the old one");
        acknowledge(dut);
        assert_eq!(head(dut), (Some(2), false));
    });
}

#[test]
fn releases_and_durability_fences_hold_their_warp_and_the_head() {
    on_both_back_ends::<SmallBuffer>(|dut| {
        for kind in [RELEASE_DEVICE, DFENCE] {
            dut.reset();
            assert_eq!(ask(dut, PERSIST, 1, 0), ACCEPTED);
            assert_eq!(ask(dut, kind, 1, 0), HELD);
            assert_eq!(ask(dut, PERSIST, 2, 1), ACCEPTED);
            assert_eq!(dut.get_u64("order_delay"), 0b10);
            assert_eq!([head(dut), head(dut)], [(Some(0), false), (None, false)]);
            acknowledge(dut);
            assert_eq!(dut.get_u64("order_delay"), 0b10);
            assert_eq!([head(dut), head(dut)], [(None, true), (Some(1), false)]);
            assert_eq!(dut.get_u64("order_delay"), 0);
        }
        for kind in [ACQUIRE_BLOCK, RELEASE_BLOCK, ACQUIRE_DEVICE] {
            dut.reset();
            assert_eq!(ask(dut, kind, 3, 0), ACCEPTED);
            assert_eq!(head(dut), (None, true));
            assert_eq!(dut.get_u64("flush_status"), 0b1000);
        }
    });
}

#[test]
fn lines_are_evicted_where_no_order_is_before_them_and_keep_their_place() {
    on_both_back_ends::<SmallBuffer>(|dut| {
        dut.reset();
        for (kind, warp, line) in [(PERSIST, 0, 0), (PERSIST, 0, 1), (OFENCE, 1, 0), (PERSIST, 0, 2)] {
            assert_eq!(ask(dut, kind, warp, line), ACCEPTED);
        }
        assert!(dut.get_bool("full"));
        assert_eq!(ask(dut, PERSIST, 0, 3), REFUSED);
        assert_eq!(ask(dut, EVICTED, 0, 2), REFUSED, "behind a fence");
        assert_eq!(ask(dut, EVICTED, 0, 1), ACCEPTED);
        assert_eq!(dut.get_u64("outstanding_count"), 1);
        assert!(dut.get_bool("full"), "its place is taken until it is at the head");
        assert_eq!(ask(dut, EVICTED, 0, 1), REFUSED, "it has gone");
        assert_eq!([head(dut), head(dut), head(dut)], [(Some(0), false), (None, true), (None, true)]);
        assert_eq!(ask(dut, EVICTED, 0, 2), ACCEPTED);
        assert_eq!(dut.get_u64("outstanding_count"), 3);
        assert_eq!(ask(dut, PERSIST, 0, 3), ACCEPTED);
        assert_eq!([head(dut), head(dut)], [(None, true), (None, false)], "the counter is full");
        acknowledge(dut);
        assert_eq!(head(dut), (Some(3), false));
    });
}

#[test]
fn last_orders_are_those_that_have_not_left() {
    on_both_back_ends_with(
        || Box::new(LastOrders::<4, 2, 3>::default()),
        |dut| {
            dut.reset();
            let set = |dut: &mut dyn Dut, warp: u64, place: u64| {
                dut.set("warp", warp);
                dut.set("set_place", place);
                dut.set("set", true);
                dut.cycle();
                dut.set("set", false);
            };
            let leave = |dut: &mut dyn Dut, place: u64| {
                dut.set("leave_place", place);
                dut.set("leave", true);
                dut.cycle();
                dut.set("leave", false);
            };
            let look = |dut: &mut dyn Dut, warp: u64| {
                dut.set("warp", warp);
                dut.get_bool("known").then(|| dut.get_u64("place"))
            };
            set(dut, 1, 5);
            set(dut, 2, 5);
            set(dut, 2, 6);
            assert_eq!([0, 1, 2].map(|warp| look(dut, warp)), [None, Some(5), Some(6)]);
            leave(dut, 5);
            assert_eq!([0, 1, 2].map(|warp| look(dut, warp)), [None, None, Some(6)]);
            dut.reset();
            assert_eq!(look(dut, 2), None);
        },
    );
}

#[test]
fn order_flags_look_from_the_head_to_a_place_and_round() {
    on_both_back_ends_with(
        || Box::new(OrderFlags::<3>::default()),
        |dut| {
            dut.reset();
            dut.set("set_place", 7u64);
            dut.set("set", true);
            dut.cycle();
            dut.set("set", false);
            for head in 0..8u64 {
                for place in 0..8u64 {
                    dut.set("head", head);
                    dut.set("place", place);
                    let between = (0..(place + 8 - head) % 8).any(|i| (head + i) % 8 == 7);
                    assert_eq!(dut.get_bool("order_before"), between, "from {head} to {place}");
                }
            }
            dut.set("head", 7u64);
            dut.set("leave", true);
            dut.cycle();
            dut.set("leave", false);
            dut.set("head", 0u64);
            dut.set("place", 7u64);
            assert!(!dut.get_bool("order_before"));
        },
    );
}

fn run(dut: &mut dyn Dut, shape: Shape, seeds: u64, cycles: u64) {
    let mut all = Counts::default();
    (0..seeds).for_each(|seed| all += side_by_side(dut, shape, seed, cycles));
    println!("{}: {all:?}", dut.back_end());
    let least = [all.accepted, all.held, all.refused, all.flushed, all.left].into_iter().min();
    assert!(least > Some(50), "{all:?}");
}

/// Rare meetings (an acknowledgement with the next flush, a warp that shares a fence and comes back
/// to its line) want many habits.
fn a_small_unit_does_what_the_machine_does(dut: &mut dyn Dut) {
    let seeds = if dut.back_end() == "verilator" { 60 } else { 12 };
    run(dut, Shape::SMALL, seeds, 2000);
}

/// A sample of `cargo run --release -p nearpm-hdl --example persist_buffer_campaign`.
#[test]
fn the_unit_does_what_the_machine_does() {
    // On Verilog with the faults below.
    on_rust_hdl::<SmallBuffer>(a_small_unit_does_what_the_machine_does);
    on_both_back_ends::<PaperBuffer>(|dut| run(dut, Shape::PAPER, 12, 1000));
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a request is taken in reset",
        edits: &[Edit::Each("request_ready", "heads_turn$q", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "a request is taken in reset",
    },
    UnitFault {
        module: "",
        what: "a store joins an entry that has left",
        edits: &[Edit::Each("in_queue", "1'b1", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "FSM, ODM, EDM, ACTR, full, drained",
    },
    UnitFault {
        module: "",
        what: "a store joins the entry of its line that lies before an order of its warp",
        edits: &[Edit::Each("behind_order", "1'b0", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "accepted, held, refused, left",
    },
    UnitFault {
        module: "",
        what: "a fence that two warps share is an order of the first alone",
        edits: &[Edit::Each("last_orders$set", "is_order & push", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "accepted, held, refused, left",
    },
    UnitFault {
        module: "",
        what: "a fence joins what is no fence",
        edits: &[Edit::Each("merge", "(asked_kind$q == ofence_kind) & ~empty", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "accepted, held, refused, left",
    },
    UnitFault {
        module: "",
        what: "an entry comes into a full queue",
        edits: &[Edit::Each("push", "wants_entry", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "accepted, held, refused, left",
    },
    UnitFault {
        module: "",
        what: "the last entry does not fill the queue",
        edits: &[Edit::Each("is_full$d", "1'b0", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "FSM, ODM, EDM, ACTR, full, drained",
    },
    UnitFault {
        module: "",
        what: "a line goes that an order of its warp holds",
        edits: &[Edit::Each("flush", "moves & (entry_kind == persist_kind) & can_count", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "a line goes",
    },
    UnitFault {
        module: "",
        what: "a line goes with a full counter",
        edits: &[Edit::Each("can_count", "1'b1", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "a line goes",
    },
    UnitFault {
        module: "",
        what: "a durability fence leaves while a flush is outstanding",
        edits: &[Edit::Each("leave", "moves & (entry_kind != persist_kind)", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "accepted, held, refused, left",
    },
    UnitFault {
        module: "",
        what: "a line is evicted from behind an order",
        edits: &[Edit::Each("evict", "is_eviction & hit & ~marked & can_count", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "accepted, held, refused, left",
    },
    UnitFault {
        module: "",
        what: "marks outlive the last flush",
        edits: &[Edit::Text("if (none_outstanding) begin", "if (none_outstanding & ~FAULT) begin", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "a line goes",
    },
    UnitFault {
        module: "",
        what: "an acknowledgement counts with nothing outstanding",
        edits: &[Edit::Each("acknowledged", "acknowledge", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "FSM, ODM, EDM, ACTR, full, drained",
    },
    UnitFault {
        module: "",
        what: "a warp that waits goes on although another line has gone in that cycle",
        edits: &[Edit::Text("if (acknowledged & ~sends &", "if (acknowledged & (~sends | FAULT) &", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "FSM, ODM, EDM, ACTR, full, drained",
    },
    UnitFault {
        module: "",
        what: "an order that leaves lets every warp go",
        edits: &[Edit::Text("evicting$q & ~entry_mask", "(FAULT ? no_warp : evicting$q & ~entry_mask)", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "FSM, ODM, EDM, ACTR, full, drained",
    },
    UnitFault {
        module: "",
        what: "a shared entry forgets who was in it",
        edits: &[Edit::Text("entry_mask | warp_bit", "(FAULT ? warp_bit : entry_mask | warp_bit)", 1)],
        scenario: a_small_unit_does_what_the_machine_does,
        seen: "a line goes",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<SmallBuffer>("PersistBuffer", FAULTS);
}

#[test]
fn a_record_that_is_none_is_told_with_its_line() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("persist-buffer-record.txt");
    for (text, wanted) in
        [("# a head\nseeds = 4\nevents: 3\n", "line 3: no"), ("seeds = x\n", "line 1: `x`"), ("sods = 1\n", "`sods`")]
    {
        std::fs::write(&path, text).expect("a file");
        let wrong = Record::read(&path).expect_err("no record");
        assert!(wrong.contains(wanted), "{wrong}");
    }
    std::fs::write(&path, "seeds = 4\nheld = 3\n").expect("a file");
    let record = Record::read(&path).expect("a record");
    assert_eq!((record.seeds, record.counts.held), (4, 3));
    std::fs::remove_file(&path).expect("the file");
}
