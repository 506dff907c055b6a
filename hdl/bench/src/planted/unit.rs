//! Faults planted into one unit, each of which a test of that unit has to see: not only one of the
//! whole card, where much hides much.

use super::{Design, Edit, INPUT, Place, plant};
use nearpm_hdl::dut::{Dut, VerilatedDut, default_verilog};
use rust_hdl::prelude::Block;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

const UNIT: Design = Design { top: "top", core: "top", root: "" };

/// A fault of a unit.
pub struct UnitFault {
    /// Where, with `$` between levels: empty for the unit's own module, else that of a unit in it.
    pub module: &'static str,
    /// What the unit then does.
    pub what: &'static str,
    /// The changes.
    pub edits: &'static [Edit],
    /// The test that sees it.
    pub scenario: fn(&mut dyn Dut),
    /// What the test says; nothing else counts as seen.
    pub seen: &'static str,
}

/// Each fault is seen, and the tests that see them hold on the same Verilog without a fault. The
/// page of the contract names them all.
pub fn each_is_seen<U: Block + Default>(unit: &str, faults: &'static [UnitFault]) {
    let missed = see(&default_verilog::<U>(), faults);
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    // Read when it runs: a page that changes compiles nothing anew.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/contract.md");
    let page = std::fs::read_to_string(page).expect("the page of the contract");
    let rows: String = faults.iter().map(|fault| format!("| `{unit}` | {} | {} |\n", fault.what, fault.seen)).collect();
    assert!(page.contains(&rows), "docs/contract.md should say:\n{rows}");
}

fn see(verilog: &str, faults: &'static [UnitFault]) -> Vec<String> {
    let places: Vec<[Place; 1]> =
        faults.iter().map(|fault| [Place { module: fault.module, modules: 1, edits: fault.edits }]).collect();
    let planted: Vec<(u64, &[Place])> = (1..).zip(places.iter().map(|place| &place[..])).collect();
    let verilog = plant(UNIT, verilog, &planted).unwrap_or_else(|stale| panic!("{stale}"));
    let verdict = |scenario: fn(&mut dyn Dut), number: u64| {
        let run = || {
            let mut dut = VerilatedDut::new(verilog.clone(), None);
            let dut: &mut dyn Dut = &mut dut;
            dut.set(INPUT, number);
            scenario(dut);
        };
        catch_unwind(AssertUnwindSafe(run)).err().map(|payload| message(payload.as_ref()))
    };
    let mut missed = Vec::new();
    let mut sound: Vec<fn(&mut dyn Dut)> = Vec::new();
    for (number, fault) in (1..).zip(faults) {
        let UnitFault { what, scenario, seen, .. } = fault;
        // Each scenario once without a fault.
        if !sound.iter().any(|other| std::ptr::fn_addr_eq(*other, *scenario)) {
            sound.push(*scenario);
            if let Some(said) = verdict(*scenario, 0) {
                missed.push(format!("what sees \"{what}\" fails without a fault: {said}"));
            }
        }
        match verdict(*scenario, number) {
            Some(said) if said.contains(seen) => {}
            Some(said) => missed.push(format!("{what}: seen as something else: {said}")),
            None => missed.push(format!("{what}: not seen")),
        }
    }
    missed
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or(payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
