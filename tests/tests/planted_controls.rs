//! Faults in the RTL for the campaigns that look at it from outside: litmus tests, traffic at the
//! pins, programs of the units. Each is planted, and found by the campaign that it is for; without
//! a fault the same design shows nothing.
//!
//! The faults of the contract, each with the scenario that sees it, are in
//! `hdl/tests/planted_faults`.

use std::collections::BTreeSet;
use std::sync::Arc;

use nearpm_hdl::{MODULE, Parameters};
use nearpm_hdl_bench::planted::{Design, Edit, INPUT, Place, plant};
use nearpm_interface::geometry::UNITS;
use nearpm_ppo::litmus::Test;
use nearpm_ppo::verdict::{expected, printed};
use nearpm_sim::machine::Power;
use nearpm_sim::rtl::{Options, RtlCards};
use nearpm_tests::cuts::copies::{caught, keep_panics};
use nearpm_tests::fuzzing;
use nearpm_tests::litmus::{at_random, every_cycle, tests};
use nearpm_tests::pins::session;
use nearpm_verilate::{Library, Source};

/// What has to find a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finder {
    /// A litmus test on one card, which shows a state that the model does not allow.
    Litmus(&'static str),
    /// One on several cards.
    LitmusOnCards(&'static str),
    /// Traffic at the pins.
    Pins,
    /// Programs of the units.
    Units,
}

/// A protection that is gone.
struct Fault {
    /// What the card then does.
    what: &'static str,
    /// Where.
    place: Place,
    finder: Finder,
}

const fn at(module: &'static str, edits: &'static [Edit]) -> Place {
    Place { module, modules: 1, edits }
}

/// A fault's number is its place here, from 1.
const FAULTS: &[Fault] = &[
    Fault {
        what: "a load waits for nothing",
        place: at("front$ordering", &[Edit::Last("query_range", "query_range & (query_command | query_write)")]),
        finder: Finder::Litmus("i1-command-then-load"),
    },
    Fault {
        what: "a commit waits for conflicts only, and not for the logs of its thread",
        place: at("front$ordering", &[Edit::Last("query_ordered", "1'b0")]),
        finder: Finder::Litmus("c1-commit-after-its-logs"),
    },
    Fault {
        what: "a host access does not wait for commands",
        place: at(
            "front$matrix",
            &[Edit::Text(
                "mine = set_bits &",
                "mine = (FAULT & (set_row >= 7'd32) ? {set_bits[95:32], 32'd0} : set_bits) &",
                1,
            )],
        ),
        finder: Finder::Litmus("i2-bypassing-store-behind-command"),
    },
    Fault {
        what: "a command does not wait for held stores",
        place: at(
            "front$ranges",
            &[Edit::Text(
                "line_may[i] <= query_range",
                "line_may[i] <= ~(FAULT & query_command & writes[i]) & query_range",
                1,
            )],
        ),
        finder: Finder::Litmus("c7-order-of-stores-survives"),
    },
    Fault {
        what: "a participant that has not reported is not missed",
        place: at("front$multi", &[Edit::Last("missing$d", "1'b0")]),
        finder: Finder::LitmusOnCards("i3-three-cards"),
    },
    Fault {
        what: "ranges are not checked against pool and ring",
        place: at("front$decoder", &[Edit::Each("outside", "1'b0", 4)]),
        finder: Finder::Pins,
    },
    Fault {
        what: "a save is done before the memory has answered its head",
        place: at("persistence", &[Edit::Last("save_done", "saved$q | (saving$q & (phase$q == Phase$WriteWait))")]),
        finder: Finder::Pins,
    },
    Fault {
        what: "a card opens although its save tells of lost stores",
        place: at("persistence", &[Edit::Last("head_lost$d", "1'b0")]),
        finder: Finder::Pins,
    },
    Fault {
        what: "copies of exact bytes write whole lines",
        place: Place {
            module: "back$unit$*$engine$writer",
            modules: UNITS,
            edits: &[Edit::Text("wstrb = mask$mask;", "wstrb = FAULT ? ~none64 : mask$mask;", 1)],
        },
        finder: Finder::Units,
    },
];

/// Programs of a litmus test that are cut at every cycle, and runs of one on several cards.
const PROGRAMS: u64 = 5;
const RUNS: u64 = 64;
/// Memories of traffic at the pins beside the one that is apart.
const MEMORIES: u64 = 12;
/// Programs of the units, and the bytes of the longest.
const INPUTS: u64 = 300;
const LONGEST: usize = 2000;
/// Copies of the process at a time.
const JOBS: usize = 4;

/// The design with all faults.
fn with_faults() -> String {
    const CARD: Design = Design { top: MODULE, core: "nearpm_core", root: "" };
    let card = nearpm_hdl::generated(&Parameters::default());
    let faults: Vec<(u64, &[Place])> =
        (1..).zip(FAULTS).map(|(number, fault)| (number, std::slice::from_ref(&fault.place))).collect();
    nearpm_hdl::for_simulation(&plant(CARD, &card.verilog, &faults).unwrap_or_else(|stale| panic!("{stale}")))
}

/// What is shown of a test, as often as it takes to find what is wrong, and the first state that
/// is.
fn forbidden(test: &Test, most: u64, mut show: impl FnMut(u64) -> BTreeSet<Vec<String>>) -> Option<String> {
    let may = expected(test);
    (0..most).find_map(|run| show(run).into_iter().find(|state| !may.contains(state))).map(|s| printed(test, &s))
}

/// What is wrong with the cards of this design, if that is found.
fn found(verilog: &str, fault: u64, finder: Finder) -> Option<String> {
    let cards = || {
        let cards = RtlCards::build(MODULE, verilog, Options::default()).unwrap_or_else(|error| panic!("{error}"));
        cards.with_input(INPUT, fault)
    };
    let tests = tests();
    match finder {
        Finder::Litmus(name) => {
            let cards = Arc::new(cards());
            let most = if fault == 0 { 1 } else { PROGRAMS };
            forbidden(&tests[name], most, |program| every_cycle::observe(&tests[name], &cards, program, JOBS).states)
        }
        Finder::LitmusOnCards(name) => forbidden(&tests[name], 1, |_| {
            let mut shown = BTreeSet::new();
            at_random::observe(&tests[name], &cards(), &mut shown, RUNS, JOBS);
            shown
        }),
        Finder::Pins => {
            let library = Library::build(&Source::new(MODULE, verilog)).unwrap_or_else(|error| panic!("{error}"));
            let memories = if fault == 0 { 1 } else { MEMORIES };
            let inputs = [(INPUT, fault)];
            caught(|| session::run(&library, &inputs, 1, memories, &mut |_| {})).err()
        }
        Finder::Units => {
            let (cards, inputs) = (cards(), if fault == 0 { INPUTS / 10 } else { INPUTS });
            (0..inputs).find_map(|seed| {
                let data = fuzzing::bytes(seed, LONGEST);
                caught(|| fuzzing::microprograms(&|medium| cards.power_up(medium), &data)).err()
            })
        }
    }
}

/// One test, because a process that makes copies of itself keeps to one thread.
#[test]
fn each_planted_fault_is_found_from_outside() {
    let verilog = with_faults();
    keep_panics();
    let mut wrong = Vec::new();
    // What a finder looks at without a fault is the same for all faults that are its.
    let mut sound_before = BTreeSet::new();
    for (number, fault) in (1..).zip(FAULTS) {
        // What goes wrong otherwise is not what the finder is for.
        let mut look = |number| {
            caught(|| found(&verilog, number, fault.finder)).unwrap_or_else(|words| {
                wrong.push(format!("{:?}, {}: {words}", fault.finder, fault.what));
                None
            })
        };
        let sound = if sound_before.insert(fault.finder) { look(0) } else { None };
        let broken = look(number);
        println!("{:?}: {}: {}", fault.finder, fault.what, broken.as_deref().unwrap_or("not found"));
        wrong.extend(sound.map(|what| format!("{:?} without a fault: {what}", fault.finder)));
        wrong.extend(broken.is_none().then(|| format!("{:?} does not find: {}", fault.finder, fault.what)));
    }
    drop(std::panic::take_hook());
    assert_eq!(wrong, [""; 0]);
}
