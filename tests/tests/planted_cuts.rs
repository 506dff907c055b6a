//! Faults in the RTL that only a power cut at the right cycles shows: each is planted, and cuts at
//! every cycle find it.

use std::collections::BTreeSet;

use nearpm_hdl::{MODULE, Parameters};
use nearpm_hdl_bench::planted::{Design, Edit, INPUT, Place, plant};
use nearpm_sim::rtl::{Options, RtlCards};
use nearpm_tests::cuts::catalogue;
use nearpm_tests::cuts::copies::keep_panics;
use nearpm_tests::cuts::striped;
use nearpm_tests::cuts::subject::Settings;
use nearpm_tests::cuts::tally::Moment;
use nearpm_tests::rig::thorough;

/// A protection that is gone for some cycles.
struct Fault {
    /// What the card then does.
    what: &'static str,
    /// Where.
    module: &'static str,
    /// What is changed there.
    edits: &'static [Edit],
    /// The scenario that meets those cycles.
    scenario: &'static str,
    /// The kind of the last cut of what is found: in the work, or in a boot or replay.
    moment: Moment,
    /// What is said of it.
    seen: &'static str,
}

const NOT_A_PREFIX: &str = "the memory is not that of the first";
const NO_SAVE: &str = "the save is torn, or not made, although there was energy for it";

/// The faults; most of them lie in Persistence. A fault's number is its place here, from 1.
const FAULTS: &[Fault] = &[
    Fault {
        what: "a save forgets the instruction at which a command resumes",
        module: "persistence",
        edits: &[Edit::Text(
            "lines$resume = saved_slot_resume;",
            "lines$resume = FAULT ? 8'd0 : saved_slot_resume;",
            1,
        )],
        scenario: "undo+redo of 4096 B",
        moment: Moment::Work,
        seen: NOT_A_PREFIX,
    },
    Fault {
        what: "a replay lets a command pass its wait before the progress word is stored",
        module: "persistence",
        edits: &[
            Edit::Last("gate_ready", "1'b1"),
            Edit::Text("if (gate_valid) begin", "if (gate_valid & ~FAULT) begin", 1),
        ],
        scenario: "undo+redo of 64 B",
        moment: Moment::Boot,
        seen: NOT_A_PREFIX,
    },
    Fault {
        what: "a replay that was cut starts over",
        module: "persistence",
        edits: &[Edit::Text("if (progress_now$q", "if (~FAULT & progress_now$q", 1)],
        scenario: "4 logs and stores in turn, then a commit",
        moment: Moment::Boot,
        seen: NOT_A_PREFIX,
    },
    Fault {
        what: "a replay counts an item before it is durable",
        module: "persistence",
        edits: &[Edit::Last("calm$d", "1'b1")],
        scenario: "4 logs and stores in turn, then a commit",
        moment: Moment::Boot,
        seen: NOT_A_PREFIX,
    },
    Fault {
        what: "a save leaves out the last request slot",
        module: "persistence",
        edits: &[Edit::Text("if (index$q == last_slot)", "if (index$q == (last_slot - {6'd0, FAULT}))", 1)],
        scenario: "more commands than slots behind a long one",
        moment: Moment::Work,
        seen: NOT_A_PREFIX,
    },
    Fault {
        what: "a card whose power fails while it loads firmware does not save",
        module: "persistence",
        edits: &[Edit::Last("phase$d", "((phase$q == Phase$LoadWait) & power_fail) ? Phase$Halt : phase$d")],
        scenario: "an image is loaded",
        moment: Moment::Work,
        seen: NO_SAVE,
    },
    Fault {
        what: "a card whose power fails while it arms a generation does not save",
        module: "persistence",
        edits: &[Edit::Last(
            "phase$d",
            "((phase$q == Phase$WriteWait) & (after$q == Phase$Open) & power_fail) ? Phase$Halt : phase$d",
        )],
        scenario: "switch",
        moment: Moment::BootWithEnergy,
        seen: NO_SAVE,
    },
    Fault {
        what: "a save is done before the memory has answered its head",
        module: "persistence",
        edits: &[Edit::Last("save_done", "saved$q | (saving$q & (phase$q == Phase$WriteWait))")],
        scenario: "switch",
        moment: Moment::Work,
        seen: NO_SAVE,
    },
    Fault {
        what: "a save leaves out what waits for other cards",
        module: "front",
        edits: &[Edit::Last("saved_parked_valid", "1'b0")],
        scenario: "Undo on 2 cards, they wait",
        moment: Moment::Work,
        seen: "the objects are of the transactions",
    },
];

fn cards() -> RtlCards {
    const CARD: Design = Design { top: MODULE, core: "nearpm_core", root: "" };
    let card = nearpm_hdl::generated(&Parameters::default());
    let places: Vec<[Place; 1]> =
        FAULTS.iter().map(|fault| [Place { module: fault.module, modules: 1, edits: fault.edits }]).collect();
    let numbered: Vec<(u64, &[Place])> = (1..).zip(&places).map(|(number, place)| (number, &place[..])).collect();
    let verilog = plant(CARD, &card.verilog, &numbered).unwrap_or_else(|stale| panic!("{stale}"));
    RtlCards::build(MODULE, &nearpm_hdl::for_simulation(&verilog), Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// One test, because a process that makes copies of itself keeps to one thread.
#[test]
fn each_planted_fault_is_found_by_a_cut_at_its_cycle() {
    let mut cards = cards();
    keep_panics();
    let subjects = catalogue::together(catalogue::all(), striped::all());
    let (mut missed, mut sound) = (Vec::new(), BTreeSet::new());
    // The ordinary form plants those that are found without looking into each replay.
    let planted = (1..).zip(FAULTS).filter(|(_, fault)| thorough() || fault.moment == Moment::Work);
    for (number, fault) in planted {
        let scenario =
            subjects.iter().find(|subject| subject.name() == fault.scenario).expect("a scenario of the catalogue");
        let replays = if fault.moment == Moment::Work { 0 } else { 6 };
        let settings = Settings { saves: 0, replays, ..Settings::FAST };
        if sound.insert(fault.scenario) {
            cards = cards.with_input(INPUT, 0);
            let some = Settings { stride: 16, saves: 0, replays: replays.min(1), ..Settings::FAST };
            if let Some(failure) = scenario.explore(&cards, some).failure {
                missed.push(format!("{} fails without a fault: {failure}", fault.scenario));
            }
        }
        cards = cards.with_input(INPUT, number);
        match scenario.explore(&cards, settings).failure {
            Some(failure) => {
                let in_work = |moment: Moment| moment == Moment::Work;
                let last = failure.cuts.last().map(|cut| in_work(cut.moment));
                let is_meant = failure.words.contains(fault.seen) && last == Some(in_work(fault.moment));
                println!("{}: {failure}", fault.what);
                if !is_meant {
                    missed.push(format!("{}: something else is found: {failure}", fault.what));
                }
            }
            None => {
                println!("{}: not found", fault.what);
                missed.push(format!("{}: not found", fault.what));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
