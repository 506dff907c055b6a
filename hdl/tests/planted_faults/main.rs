//! Each rule of the contract that the card itself can break: its faults are planted, one at a time,
//! and seen.
//!
//! A scenario must hold on the design with nothing switched on, and must fail, with the words that
//! the table names, on the same design with its fault. So the faults compile once, and a scenario
//! that sees nothing is itself a failure here.

mod faults;
mod peer_faults;

use faults::{FAULTS, Fault, Plant, Scenario};
use nearpm_hdl::MODULE;
use nearpm_hdl::dut::{Dut, VerilatedDut, default_verilog};
use nearpm_hdl::units::front::Front;
use nearpm_hdl::units::memory_split::MemorySplit;
use nearpm_hdl::units::persistence::Persistence;
use nearpm_hdl_bench::card::{Cards, card, library};
use nearpm_hdl_bench::planted::{Design, INPUT, Place, plant};
use nearpm_interface::command::{OPCODES, Opcode};
use nearpm_interface::firmware::{Descriptor, ImageHead, Instruction};
use nearpm_interface::geometry::LINE;
use nearpm_interface::seal;
use nearpm_verilate::Library;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

const CARD: Design = Design { top: MODULE, core: "nearpm_core", root: "" };
const FRONT: Design = Design { top: "top", core: "top", root: "front" };
const PERSISTENCE: Design = Design { top: "top", core: "top", root: "persistence" };
const SPLIT: Design = Design { top: "top", core: "top", root: "split" };

/// All faults, in the order of the contract's page.
fn all() -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().chain(peer_faults::FAULTS)
}

/// Faults with their numbers.
fn numbered() -> impl Iterator<Item = (u64, &'static Fault)> {
    (1..).zip(all())
}

/// A design with all of its faults.
fn with_faults(design: Design, verilog: &str, is_in: fn(&Scenario) -> bool) -> String {
    let faults: Vec<(u64, &[Place])> = numbered()
        .filter(|(_, fault)| is_in(&fault.scenario))
        .filter_map(|(number, fault)| match fault.plant {
            Plant::Hardware(places) => Some((number, places)),
            Plant::Firmware(..) => None,
        })
        .collect();
    plant(design, verilog, &faults).unwrap_or_else(|stale| panic!("{stale}"))
}

/// The card's firmware with one program changed, and sealed again.
fn firmware(opcode: Opcode, change: fn(&mut Descriptor, &mut Vec<Instruction>)) -> Vec<u8> {
    let image = nearpm_firmware::standard();
    let mut head = image.descriptor(opcode as u8).expect("the firmware has the program");
    let mut code = image.program(opcode as u8).expect("the firmware has the program");
    let (old, length) = ((head, code.clone()), code.len());
    change(&mut head, &mut code);
    assert!((head, code.clone()) != old, "a planted fault no longer fits {opcode:?}: it changes nothing");
    assert!(code.len() <= length, "the program becomes longer");
    let mut bytes = image.bytes().to_vec();
    let mut put = |at: usize, number: u32| bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    put(ImageHead::SIZE + 4 * opcode as usize, head.0);
    let start = ImageHead::SIZE + 4 * (OPCODES + usize::from(head.entry()));
    code.iter().enumerate().for_each(|(i, instruction)| put(start + 4 * i, instruction.encode()));
    let mut line: [u8; LINE] = bytes[..LINE].try_into().expect("the head is one line");
    seal::seal(&bytes[LINE..], &mut line);
    bytes[..LINE].copy_from_slice(&line);
    assert!(nearpm_firmware::Image::parse(&bytes).is_err(), "a fault that the check of programs lets pass");
    bytes
}

/// What runs a scenario on the design that has one fault switched on, or none. Each is made when it
/// is first needed.
#[derive(Default)]
struct Designs {
    front: OnceLock<String>,
    persistence: OnceLock<String>,
    split: OnceLock<String>,
    card: OnceLock<Library>,
}

impl Designs {
    fn front(&self) -> String {
        let make = || {
            let verilog = default_verilog::<Front>();
            with_faults(FRONT, &verilog, |s| matches!(s, Scenario::Front(..)))
        };
        self.front.get_or_init(make).clone()
    }

    fn persistence(&self) -> String {
        let make = || {
            let verilog = default_verilog::<Persistence>();
            with_faults(PERSISTENCE, &verilog, |s| matches!(s, Scenario::Persistence(..)))
        };
        self.persistence.get_or_init(make).clone()
    }

    fn split(&self) -> String {
        let make = || {
            let verilog = default_verilog::<MemorySplit>();
            with_faults(SPLIT, &verilog, |s| matches!(s, Scenario::Split(..)))
        };
        self.split.get_or_init(make).clone()
    }

    fn card(&self) -> &Library {
        self.card.get_or_init(|| library(&with_faults(CARD, &card().verilog, |s| matches!(s, Scenario::Card(..)))))
    }

    fn run(&self, scenario: Scenario, fault: Option<(u64, &Fault)>) {
        let number = fault.map_or(0, |(number, _)| number);
        let unit = |verilog: String, scenario: fn(&mut dyn Dut)| {
            let mut dut = VerilatedDut::new(verilog, None);
            let dut: &mut dyn Dut = &mut dut;
            dut.set(INPUT, number);
            scenario(dut);
        };
        match scenario {
            Scenario::Front(_, scenario) => unit(self.front(), scenario),
            Scenario::Persistence(_, scenario) => unit(self.persistence(), scenario),
            Scenario::Split(_, scenario) => unit(self.split(), scenario),
            Scenario::Card(_, scenario) => {
                let cards = Cards::faulty(self.card(), INPUT, number);
                scenario(&match fault.map(|(_, fault)| fault.plant) {
                    Some(Plant::Firmware(opcode, change)) => cards.with_firmware(firmware(opcode, change)),
                    _ => cards,
                });
            }
        }
    }

    /// What a scenario said when it failed; nothing when it held.
    fn verdict(&self, scenario: Scenario, fault: Option<(u64, &Fault)>) -> Option<String> {
        let verdict = catch_unwind(AssertUnwindSafe(|| self.run(scenario, fault)));
        verdict.err().map(|payload| message(payload.as_ref()))
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or(payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Every one of the faults is seen, and the scenarios that see them hold without a fault.
fn sees(is_meant: impl Fn(&Fault) -> bool) {
    let designs = Designs::default();
    let mut missed = Vec::new();
    let mut sound = Vec::new();
    for (number, fault) in numbered().filter(|(_, fault)| is_meant(fault)) {
        let Fault { rule, what, scenario, seen, .. } = fault;
        if !sound.contains(&scenario.name()) {
            sound.push(scenario.name());
            if let Some(said) = designs.verdict(*scenario, None) {
                missed.push(format!("{} fails without a fault: {said}", scenario.name()));
            }
        }
        match designs.verdict(*scenario, Some((number, fault))) {
            Some(said) if said.contains(seen) => println!("{rule}: {what}: seen"),
            Some(said) => missed.push(format!("{rule}: {what}: {} says something else: {said}", scenario.name())),
            None => missed.push(format!("{rule}: {what}: {} does not see it", scenario.name())),
        }
    }
    let planted = numbered().filter(|(_, fault)| is_meant(fault)).count();
    println!(r#"{{"counts":{{"faults":{planted},"scenarios":{},"violations":{}}}}}"#, sound.len(), missed.len());
    assert!(!sound.is_empty(), "no fault is meant");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Faults of a part alone, by rules: each test builds front, persistence or the split, and not the
/// card.
macro_rules! faults_of_parts {
    ($($name:ident = $($rule:literal)+;)+) => {
        $(
            #[test]
            fn $name() {
                sees(|fault| [$($rule),+].contains(&fault.rule) && !matches!(fault.scenario, Scenario::Card(..)));
            }
        )+
    };
}

faults_of_parts! {
    faults_of_order_and_release_are_seen = "C1" "C2";
    faults_of_posting_and_commit_are_seen = "C3" "C4";
    faults_of_refusal_and_latch_are_seen = "C5" "C6";
    faults_of_save_replay_and_reset_are_seen = "C7" "C8";
    faults_of_progress_are_seen = "C10";
}

#[test]
fn faults_of_the_whole_card_are_seen() {
    sees(|fault| matches!(fault.scenario, Scenario::Card(..)));
}

/// The page of the contract has this table, in this order.
#[test]
fn the_contract_names_every_fault() {
    let page = include_str!("../../../docs/contract.md");
    let row =
        |fault: &Fault| format!("| {} | {} | `{}` | {} |", fault.rule, fault.what, fault.scenario.name(), fault.seen);
    let table: Vec<_> = all().map(row).collect();
    assert!(page.contains(&table.join("\n")), "docs/contract.md should say:\n{}", table.join("\n"));
    let missing: Vec<_> =
        (1..=10).map(|n| format!("C{n}")).filter(|rule| !FAULTS.iter().any(|f| f.rule == rule)).collect();
    assert_eq!(missing, ["C9"], "rules that the card alone cannot break");
}
