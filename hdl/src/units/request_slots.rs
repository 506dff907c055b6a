//! What the card keeps of a command from numbering to retirement.

use crate::bundles::Work;
use crate::cells::{AsyncRam, Widen};
use crate::dut::{PortValue, Ports};
use crate::sizes::Sizes;
use nearpm_interface::firmware::PROGRAM_WORDS;
use rust_hdl::prelude::*;

/// What retirement and the save need to know of a command.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Ticket {
    /// Order number.
    pub order: Bits<64>,
    /// Page that it came from.
    pub page: Bits<2>,
    /// Tag, for the completion record.
    pub tag: Bits<32>,
    /// A completion record was asked for.
    pub complete: Bit,
    /// Its mapping entry.
    pub map: Bits<4>,
    /// Raises the committed transaction.
    pub commits: Bit,
    /// Writes a log entry.
    pub logs: Bit,
    /// Frees the mapping entry.
    pub unmaps: Bit,
    /// Transaction.
    pub txid: Bits<64>,
    /// A place is kept for it where commands wait for other devices.
    pub parks: Bit,
    /// It has waited there.
    pub released: Bit,
    /// It waits for every participant.
    pub synchronises: Bit,
    /// It waits for every earlier command of its mapping entry.
    pub ordered: Bit,
}

/// The request FIFO's storage: 32 slots in the full card, each held from numbering to retirement.
///
/// Guarantees: what was written at an edge is read from the next cycle on. Which slots are live is
/// the dispatcher's knowledge.
#[derive(LogicBlock, Default, Ports)]
pub struct RequestSlots {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Store a command.
    pub write_valid: Signal<In, Bit>,
    /// Its slot.
    pub write_slot: Signal<In, Bits<5>>,
    /// The command as it was posted.
    pub write_raw: Signal<In, Bits<512>>,
    /// The command as a unit executes it.
    pub write_work: Signal<In, Work>,
    /// What retirement needs.
    pub write_ticket: Signal<In, Ticket>,
    /// Order number under which it was accepted: another than its own where it was replayed or has
    /// waited for other devices.
    pub write_accepted: Signal<In, Bits<64>>,
    /// Instruction at which a replay resumes; 0 from the entry.
    pub write_resume: Signal<In, Bits<8>>,
    /// A running command has come to an instruction behind a wait.
    pub progress_valid: Signal<In, Bit>,
    /// Its slot. Not in a cycle in which a command is stored.
    pub progress_slot: Signal<In, Bits<5>>,
    /// The instruction.
    pub progress_pc: Signal<In, Bits<8>>,
    /// Slot to issue.
    pub issue_slot: Signal<In, Bits<5>>,
    /// Its work.
    pub issue_work: Signal<Out, Work>,
    /// Its ticket.
    pub issue_ticket: Signal<Out, Ticket>,
    /// Slot to retire.
    pub retire_slot: Signal<In, Bits<5>>,
    /// Its ticket.
    pub retire_ticket: Signal<Out, Ticket>,
    /// Slot to read out, for a save or for the parked table.
    pub save_slot: Signal<In, Bits<5>>,
    /// Its command.
    pub save_raw: Signal<Out, Bits<512>>,
    /// Order number under which it was accepted.
    pub save_accepted: Signal<Out, Bits<64>>,
    /// Its ticket.
    pub save_ticket: Signal<Out, Ticket>,
    /// Where it resumes.
    pub save_resume: Signal<Out, Bits<8>>,
    raw: AsyncRam<Bits<512>, 5, 1>,
    work: AsyncRam<Work, 5, 1>,
    ticket: AsyncRam<Ticket, 5, 3>,
    accepted: AsyncRam<Bits<64>, 5, 1>,
    /// Programs are of 128 words.
    resume: AsyncRam<Bits<7>, 5, 1>,
    wide_resume: Widen<7, 8>,
}

const _: () = assert!(PROGRAM_WORDS <= 128);

impl RequestSlots {
    /// With as many slots.
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            raw: AsyncRam::of_depth(sizes.slots),
            work: AsyncRam::of_depth(sizes.slots),
            ticket: AsyncRam::of_depth(sizes.slots),
            accepted: AsyncRam::of_depth(sizes.slots),
            resume: AsyncRam::of_depth(sizes.slots),
            ..Self::default()
        }
    }
}

impl Logic for RequestSlots {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, raw, work, ticket, accepted, resume);
        self.raw.write_enable.next = self.write_valid.val();
        self.raw.write_address.next = self.write_slot.val();
        self.raw.write_data.next = self.write_raw.val();
        self.work.write_enable.next = self.write_valid.val();
        self.work.write_address.next = self.write_slot.val();
        self.work.write_data.next = self.write_work.val();
        self.ticket.write_enable.next = self.write_valid.val();
        self.ticket.write_address.next = self.write_slot.val();
        self.ticket.write_data.next = self.write_ticket.val();
        self.accepted.write_enable.next = self.write_valid.val();
        self.accepted.write_address.next = self.write_slot.val();
        self.accepted.write_data.next = self.write_accepted.val();
        self.accepted.read_address[0].next = self.save_slot.val();
        self.save_accepted.next = self.accepted.read_data[0].val();
        self.resume.write_enable.next = self.write_valid.val() | self.progress_valid.val();
        self.resume.write_address.next = self.progress_slot.val();
        self.resume.write_data.next = self.progress_pc.val().get_bits::<7>(0);
        if self.write_valid.val() {
            self.resume.write_address.next = self.write_slot.val();
            self.resume.write_data.next = self.write_resume.val().get_bits::<7>(0);
        }
        self.work.read_address[0].next = self.issue_slot.val();
        self.issue_work.next = self.work.read_data[0].val();
        self.ticket.read_address[0].next = self.issue_slot.val();
        self.issue_ticket.next = self.ticket.read_data[0].val();
        self.ticket.read_address[1].next = self.retire_slot.val();
        self.retire_ticket.next = self.ticket.read_data[1].val();
        self.ticket.read_address[2].next = self.save_slot.val();
        self.save_ticket.next = self.ticket.read_data[2].val();
        self.raw.read_address[0].next = self.save_slot.val();
        self.save_raw.next = self.raw.read_data[0].val();
        self.resume.read_address[0].next = self.save_slot.val();
        self.wide_resume.i.next = self.resume.read_data[0].val();
        self.save_resume.next = self.wide_resume.o.val();
    }
}
