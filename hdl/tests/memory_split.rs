//! The second port to memory: bursts at random, against a memory behind each port.

use nearpm_hdl::dut::on_both_back_ends;
use nearpm_hdl::units::memory_split::MemorySplit;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_hdl_bench::split;

macro_rules! on_the_split {
    ($($scenario:ident),+ $(,)?) => {
        $(
            #[test]
            fn $scenario() {
                on_both_back_ends::<MemorySplit>(split::$scenario);
            }
        )+
    };
}

on_the_split!(
    random_bursts_reach_their_port_and_come_back_in_order,
    a_line_a_cycle_each_way_and_no_port_starves,
    what_finds_nobody_waiting_passes_at_once,
);

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a store that memory refused is answered OKAY",
        edits: &[Edit::Last("s$bresp", "2'b00")],
        scenario: split::random_bursts_reach_their_port_and_come_back_in_order,
        seen: "the answer to a write",
    },
    UnitFault {
        module: "",
        what: "an error of a read is not passed on",
        edits: &[Edit::Last("s$rresp", "2'b00")],
        scenario: split::random_bursts_reach_their_port_and_come_back_in_order,
        seen: "the answer to a read",
    },
    UnitFault {
        module: "",
        what: "an answer that is not taken gives its turn away",
        edits: &[Edit::Last("b_turn$d", "~b_turn$q")],
        scenario: split::random_bursts_reach_their_port_and_come_back_in_order,
        seen: "is withdrawn or changes",
    },
    UnitFault {
        module: "",
        what: "a read is answered by whichever port has data",
        edits: &[Edit::Each("r_port", "lane$1$r_valid", 1)],
        scenario: split::random_bursts_reach_their_port_and_come_back_in_order,
        seen: "comes with wrong data",
    },
    UnitFault {
        module: "lane$1",
        what: "a read passes although there is no room for its data",
        edits: &[Edit::Each("ar_full", "ar$full", 1)],
        scenario: split::random_bursts_reach_their_port_and_come_back_in_order,
        seen: "comes with wrong data",
    },
    UnitFault {
        module: "lane$0",
        what: "an answer that finds nobody waiting is told twice",
        edits: &[Edit::Last("b$write", "m$bvalid")],
        scenario: split::random_bursts_reach_their_port_and_come_back_in_order,
        seen: "is unanswered",
    },
    UnitFault {
        module: "lane$1",
        what: "what finds nobody waiting waits all the same",
        edits: &[Edit::Each("r_valid", "~r$empty", 1)],
        scenario: split::what_finds_nobody_waiting_passes_at_once,
        seen: "is not passed on at once",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<MemorySplit>("MemorySplit", FAULTS);
}
