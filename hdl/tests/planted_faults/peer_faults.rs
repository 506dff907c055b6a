//! The planted faults of waiting for other devices; the bench is the other device.

use crate::faults::{Fault, Plant, Scenario, at};
use nearpm_hdl_bench::card::peers;
use nearpm_hdl_bench::planted::Edit;

macro_rules! peers {
    ($name:ident) => {
        Scenario::Card(stringify!($name), peers::$name)
    };
}

/// All faults, by scenario.
pub const FAULTS: &[Fault] = &[
    Fault {
        rule: "devices",
        what: "a participant that has not reported is not missed",
        plant: Plant::Hardware(&[at("front$multi", &[Edit::Last("missing$d", "1'b0")])]),
        scenario: peers!(a_commit_waits_for_the_report_of_the_other_device),
        seen: "committed without the other device",
    },
    Fault {
        rule: "devices",
        what: "a device reports while what is before in the thread has not retired",
        plant: Plant::Hardware(&[at("front$ordering", &[Edit::Last("query_ordered", "1'b0")])]),
        scenario: peers!(a_device_reports_when_its_logs_are_durable),
        seen: "reported before the log was durable",
    },
    Fault {
        rule: "devices",
        what: "a later commit passes one that waits in its thread",
        plant: Plant::Hardware(&[at("front$decoder", &[Edit::Each("busy_now", "16'd0", 1)])]),
        scenario: peers!(a_later_commit_stays_behind_one_that_waits),
        seen: "a commit passed one that waits",
    },
    Fault {
        rule: "devices",
        what: "more commands than there are places may have to wait",
        plant: Plant::Hardware(&[at(
            "front$decoder",
            &[Edit::Text("if (parks$q & full)", "if (parks$q & full & ~FAULT)", 1)],
        )]),
        scenario: peers!(what_waits_holds_no_slot),
        seen: "one too many waits",
    },
    Fault {
        rule: "devices",
        what: "what waits keeps its request slot",
        plant: Plant::Hardware(&[at(
            "front$dispatcher",
            &[Edit::Last("alive$d", "alive$d | ((fires & parking$q) ? retire_mask : 32'd0)")],
        )]),
        scenario: peers!(what_waits_holds_no_slot),
        seen: "is not answered",
    },
    Fault {
        rule: "devices",
        what: "what waits is not saved",
        plant: Plant::Hardware(&[at("front", &[Edit::Last("saved_parked_valid", "1'b0")])]),
        scenario: peers!(what_waits_survives_a_power_failure),
        seen: "what waited is gone",
    },
    Fault {
        rule: "devices",
        what: "a device hears before software has numbered it",
        plant: Plant::Hardware(&[at("front$multi", &[Edit::Last("has_number$d", "1'b1")])]),
        scenario: peers!(what_waits_survives_a_power_failure),
        seen: "a device that has no number yet hears",
    },
    Fault {
        rule: "devices",
        what: "nobody asks for a message that was lost",
        plant: Plant::Hardware(&[at("front$multi", &[Edit::Last("asking$d", "16'd0")])]),
        scenario: peers!(who_waits_asks_again),
        seen: "nobody asks for what was lost",
    },
    Fault {
        rule: "devices",
        what: "a device that speaks discards",
        plant: Plant::Hardware(&[at(
            "front$multi",
            &[Edit::Last("places$doom_valid", "act_bit & (act_action == discards)")],
        )]),
        scenario: peers!(only_a_silent_device_discards),
        seen: "discarded what was reported",
    },
    Fault {
        rule: "devices",
        what: "the mapping that a reset left to what waits stays behind it",
        plant: Plant::Hardware(&[at("front$multi", &[Edit::Last("drop", "16'd0")])]),
        scenario: peers!(only_a_silent_device_discards),
        seen: "a mapping stays behind what was discarded",
    },
];
