//! Each rule of the contract that the card itself can break: its faults are planted, one at a time, and seen.
//!
//! A scenario must hold on the design with nothing switched on, and must fail, with the words that the table names, on the
//! same design with its fault. So the faults compile once, and a scenario that sees nothing is itself a failure here.

mod front_bench;
mod persistence_bench;
mod planted;

use nearpm_hdl::dut::{Dut, VerilatedDut, verilog_of};
use nearpm_hdl::units::front::Front;
use nearpm_hdl::units::persistence::Persistence;
use planted::faults::{FAULTS, Fault, Scenario};
use planted::{Design, INPUT, Place, plant};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

const FRONT: Design = Design { top: "top", core: "top", root: "front" };
const PERSISTENCE: Design = Design { top: "top", core: "top", root: "persistence" };

/// rust-hdl passes units by value on their way to the heap.
const STACK_BYTES: usize = 1 << 30;

fn on_big_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        thread.expect("the system has a thread left").join().expect("the unit passes its checks")
    })
}

/// Faults with their numbers.
fn numbered() -> impl Iterator<Item = (u64, &'static Fault)> {
    (1..).zip(FAULTS)
}

/// A design with all of its faults.
fn with_faults(design: Design, verilog: &str, is_in: fn(&Scenario) -> bool) -> String {
    let faults: Vec<(u64, &[Place])> =
        numbered().filter(|(_, fault)| is_in(&fault.scenario)).map(|(number, fault)| (number, fault.places)).collect();
    plant(design, verilog, &faults).unwrap_or_else(|stale| panic!("{stale}"))
}

/// What runs a scenario on the design that has that fault switched on; 0 is none.
struct Designs {
    front: String,
    persistence: String,
}

impl Designs {
    fn new() -> Self {
        let front = on_big_stack(|| verilog_of(Box::<Front>::default()));
        let persistence = on_big_stack(|| verilog_of(Box::<Persistence>::default()));
        Self {
            front: with_faults(FRONT, &front, |s| matches!(s, Scenario::Front(..))),
            persistence: with_faults(PERSISTENCE, &persistence, |s| matches!(s, Scenario::Persistence(..))),
        }
    }

    fn run(&self, scenario: Scenario, fault: u64) {
        let unit = |verilog: &String, scenario: fn(&mut dyn Dut)| {
            let mut dut = VerilatedDut::new(verilog.clone(), None);
            let dut: &mut dyn Dut = &mut dut;
            dut.set(INPUT, fault);
            scenario(dut);
        };
        match scenario {
            Scenario::Front(_, scenario) => unit(&self.front, scenario),
            Scenario::Persistence(_, scenario) => unit(&self.persistence, scenario),
        }
    }

    /// What a scenario said when it failed; nothing when it held.
    fn verdict(&self, scenario: Scenario, fault: u64) -> Option<String> {
        let verdict = catch_unwind(AssertUnwindSafe(|| self.run(scenario, fault)));
        verdict.err().map(|payload| message(payload.as_ref()))
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or(payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Every fault of a rule is seen, and the scenarios that see them hold without it.
fn sees_the_faults_of(rules: &[&str]) {
    let designs = Designs::new();
    let mut missed = Vec::new();
    let mut sound = Vec::new();
    for (number, fault) in numbered().filter(|(_, fault)| rules.contains(&fault.rule)) {
        let Fault { rule, what, scenario, seen, .. } = fault;
        if !sound.contains(&scenario.name()) {
            sound.push(scenario.name());
            if let Some(said) = designs.verdict(*scenario, 0) {
                missed.push(format!("{} fails without a fault: {said}", scenario.name()));
            }
        }
        match designs.verdict(*scenario, number) {
            Some(said) if said.contains(seen) => println!("{rule}: {what}: seen"),
            Some(said) => missed.push(format!("{rule}: {what}: {} says something else: {said}", scenario.name())),
            None => missed.push(format!("{rule}: {what}: {} does not see it", scenario.name())),
        }
    }
    assert!(!sound.is_empty(), "no fault of {rules:?}");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

macro_rules! rules {
    ($($name:ident = $($rule:literal)+;)+) => {
        $(
            #[test]
            fn $name() {
                sees_the_faults_of(&[$($rule),+]);
            }
        )+
    };
}

rules! {
    faults_of_order_and_release_are_seen = "C1" "C2";
    faults_of_posting_and_commit_are_seen = "C3" "C4";
    faults_of_refusal_and_latch_are_seen = "C5";
    faults_of_log_entries_are_seen = "C6";
    faults_of_save_replay_and_reset_are_seen = "C7" "C8";
    faults_of_progress_are_seen = "C10";
}
