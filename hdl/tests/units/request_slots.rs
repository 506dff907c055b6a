//! What is kept of commands, against arrays.

use crate::{cycles, random_bits, seeded};
use nearpm_hdl::dut::{Dut, Value, on_rust_hdl};
use nearpm_hdl::units::request_slots::RequestSlots;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use rand::RngExt;

/// A slot: posted command, work, ticket, number of acceptance, and where it resumes.
#[derive(Clone, Copy)]
struct Slot {
    raw: Value,
    work: Value,
    ticket: Value,
    accepted: u64,
    resume: u64,
}

/// Commands enter and come behind waits in every cycle, and three slots are read meanwhile.
fn what_was_written_is_read_at_each_port(dut: &mut dyn Dut) {
    let mut rng = seeded(31);
    let empty = Slot { raw: Value::ZERO, work: Value::ZERO, ticket: Value::ZERO, accepted: 0, resume: 0 };
    let mut slots = [empty; 32];
    for cycle in 0..cycles(dut, 4000) {
        let kind = rng.random_range(0..3);
        let (at, fresh) = (rng.random_range(0..32usize), rng.random_range(0..128u64));
        let slot = Slot {
            raw: random_bits(&mut rng, 512),
            work: random_bits(&mut rng, 552),
            ticket: random_bits(&mut rng, 174),
            accepted: rng.random(),
            resume: fresh,
        };
        // A slot that is entered has the write port; progress waits.
        dut.set("write_valid", kind == 0);
        dut.set("write_slot", at as u64);
        dut.set("write_raw", slot.raw);
        dut.set("write_work", slot.work);
        dut.set("write_ticket", slot.ticket);
        dut.set("write_accepted", slot.accepted);
        dut.set("write_resume", slot.resume);
        let (other, pc) = (rng.random_range(0..32usize), rng.random_range(0..128u64));
        dut.set("progress_valid", kind == 1);
        dut.set("progress_slot", other as u64);
        dut.set("progress_pc", pc);
        let [issued, retired, saved] = [0; 3].map(|_: usize| rng.random_range(0..32usize));
        dut.set("issue_slot", issued as u64);
        dut.set("retire_slot", retired as u64);
        dut.set("save_slot", saved as u64);
        assert_eq!(dut.get("issue_work"), slots[issued].work, "cycle {cycle}: the work that is issued");
        assert_eq!(dut.get("issue_ticket"), slots[issued].ticket, "cycle {cycle}: the ticket that is issued");
        assert_eq!(dut.get("retire_ticket"), slots[retired].ticket, "cycle {cycle}: the ticket that retires");
        assert_eq!(dut.get("save_ticket"), slots[saved].ticket, "cycle {cycle}: the ticket that is saved");
        assert_eq!(dut.get("save_raw"), slots[saved].raw, "cycle {cycle}: the command that is saved");
        assert_eq!(dut.get_u64("save_accepted"), slots[saved].accepted, "cycle {cycle}: its number of acceptance");
        assert_eq!(dut.get_u64("save_resume"), slots[saved].resume, "cycle {cycle}: where a replay resumes");
        dut.cycle();
        match kind {
            0 => slots[at] = slot,
            1 => slots[other].resume = pc,
            _ => {}
        }
    }
}

#[test]
fn request_slots_keep_what_was_written() {
    on_rust_hdl::<RequestSlots>(what_was_written_is_read_at_each_port);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "what retires is told the ticket of what is issued",
        edits: &[Edit::Last("retire_ticket", "issue_ticket")],
        scenario: what_was_written_is_read_at_each_port,
        seen: "the ticket that retires",
    },
    UnitFault {
        module: "",
        what: "the progress of a command is stored for another one",
        edits: &[Edit::Last("resume$write_address", "resume$write_address ^ {4'd0, ~write_valid}")],
        scenario: what_was_written_is_read_at_each_port,
        seen: "where a replay resumes",
    },
    UnitFault {
        module: "",
        what: "a command that enters resumes where the one before it in its slot has come",
        edits: &[Edit::Last("resume$write_enable", "progress_valid")],
        scenario: what_was_written_is_read_at_each_port,
        seen: "where a replay resumes",
    },
    UnitFault {
        module: "",
        what: "a command is saved under its order number instead of the one of its acceptance",
        edits: &[Edit::Last("save_accepted", "save_ticket[63:0]")],
        scenario: what_was_written_is_read_at_each_port,
        seen: "its number of acceptance",
    },
];

#[test]
fn planted_faults_of_the_request_slots_are_seen() {
    each_is_seen::<RequestSlots>("RequestSlots", FAULTS);
}
