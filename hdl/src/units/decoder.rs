//! From 64 bytes to an item that the ordering point can number, or to a refusal without effect.

use super::request_slots::Ticket;
use crate::bundles::{MapEntry, Work};
use crate::cells::{Concat, Widen};
use crate::dut::Ports;
use nearpm_hdl_derive::steps;
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::status::Status;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Where the decoder is with its command: one cycle each, but for the ends.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Step {
    Idle,
    Size,
    Ends,
    Bounds,
    Overlap,
    Judge,
    Offer,
    Refuse,
}

/// Looks a command's descriptor and mapping up, translates and checks it.
///
/// Guarantees: what is offered is well formed: each range lies in its pool, and in the log ring
/// where the descriptor says so, and what it writes touches no line of its other ranges. What is
/// refused has had no effect. The first check that fails, in the order of `docs/hardware.md`, gives
/// the status. Bound: seven cycles from a command to its offer. One command at a time.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Decoder {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Number of this device, which is its bit in a participants mask.
    pub device_number: Signal<In, Bits<4>>,
    /// Other devices can be reached.
    pub speaks: Signal<In, Bit>,
    /// Mapping entries with a command that waits, may have to wait, or has waited for other
    /// devices, a bit each.
    pub busy: Signal<In, Bits<16>>,
    /// No more command may be numbered that may have to wait.
    pub full: Signal<In, Bit>,
    /// Lines of persistent memory.
    pub pm_lines: Signal<In, Bits<34>>,

    /// A command from the command port.
    pub cmd_valid: Signal<In, Bit>,
    /// It is taken.
    pub cmd_ready: Signal<Out, Bit>,
    /// Its bytes, byte 0 lowest. The checksum holds.
    pub cmd_data: Signal<In, Bits<512>>,
    /// Page that it came from.
    pub cmd_page: Signal<In, Bits<2>>,
    /// Pulse: the command was numbered or refused.
    pub cmd_done: Signal<Out, Bit>,
    /// A command that was accepted before: it is replayed, or has waited for other devices; it
    /// takes precedence.
    pub inject_valid: Signal<In, Bit>,
    /// It is taken.
    pub inject_taken: Signal<Out, Bit>,
    /// It was numbered or refused.
    pub inject_ready: Signal<Out, Bit>,
    /// Its bytes.
    pub inject_data: Signal<In, Bits<512>>,
    /// Its page.
    pub inject_page: Signal<In, Bits<2>>,
    /// Instruction at which it resumes; 0 from its entry.
    pub inject_resume: Signal<In, Bits<8>>,
    /// It waits for no device any more, whatever has happened to its mapping entry meanwhile.
    pub inject_released: Signal<In, Bit>,
    /// It waited when the power went, and does so again.
    pub inject_parks: Signal<In, Bit>,
    /// Order number under which it was accepted.
    pub inject_accepted: Signal<In, Bits<64>>,
    /// Nothing is being decoded.
    pub idle: Signal<Out, Bit>,

    /// Opcode whose descriptor is wanted.
    pub descriptor_index: Signal<Out, Bits<5>>,
    /// The descriptor, one cycle later.
    pub descriptor: Signal<In, Bits<32>>,
    /// Pool to look up.
    pub lookup_pool: Signal<Out, Bits<32>>,
    /// Thread to look up.
    pub lookup_thread: Signal<Out, Bits<16>>,
    /// Two cycles later: there is a mapping.
    pub found: Signal<In, Bit>,
    /// Its index.
    pub found_index: Signal<In, Bits<4>>,
    /// The mapping.
    pub entry: Signal<In, MapEntry>,
    /// Some mapping entry is free.
    pub any_free: Signal<In, Bit>,
    /// The lowest free entry.
    pub free_index: Signal<In, Bits<4>>,

    /// Every request slot holds a failed log: only an unmap is of any use.
    pub slots_lost: Signal<In, Bit>,
    /// An item is offered.
    pub item_valid: Signal<Out, Bit>,
    /// It is numbered.
    pub item_ready: Signal<In, Bit>,
    /// The command as it was posted.
    pub item_raw: Signal<Out, Bits<512>>,
    /// What a unit executes; its slot is 0.
    pub item_work: Signal<Out, Work>,
    /// What retirement needs; its order is 0.
    pub item_ticket: Signal<Out, Ticket>,
    /// Instruction at which it resumes; 0 from its entry.
    pub item_resume: Signal<Out, Bits<8>>,
    /// Ranges in use: source, destination, auxiliary.
    pub item_ranges: [Signal<Out, Bit>; 3],
    /// First line of each range.
    pub item_first: [Signal<Out, Bits<34>>; 3],
    /// Last line of each range.
    pub item_last: [Signal<Out, Bits<34>>; 3],
    /// It waits for every earlier command of its mapping entry.
    pub item_ordered: Signal<Out, Bit>,
    /// It was accepted before, under `item_accepted`.
    pub item_again: Signal<Out, Bit>,
    /// See `item_again`.
    pub item_accepted: Signal<Out, Bits<64>>,
    /// It unmaps: its mapping entry closes when it is numbered.
    pub item_unmaps: Signal<Out, Bit>,
    /// It maps: the entry is written when it is numbered.
    pub item_maps: Signal<Out, Bit>,
    /// The entry that it maps.
    pub item_entry: Signal<Out, MapEntry>,

    /// Pulse: a command was refused.
    pub refused_valid: Signal<Out, Bit>,
    /// Its page.
    pub refused_page: Signal<Out, Bits<2>>,
    /// Its tag.
    pub refused_tag: Signal<Out, Bits<32>>,
    /// Why.
    pub refused_status: Signal<Out, Bits<8>>,
    /// The refusal can be recorded.
    pub refused_ready: Signal<In, Bit>,

    step: DFF<Step>,
    raw: DFF<Bits<512>>,
    page: DFF<Bits<2>>,
    resume: DFF<Bits<8>>,
    injected: DFF<Bit>,
    released: DFF<Bit>,
    /// It was accepted before what may have happened to its mapping entry since.
    exempt: DFF<Bit>,
    parks: DFF<Bit>,
    accepted: DFF<Bits<64>>,
    desc: DFF<Bits<32>>,
    status: DFF<Bits<8>>,
    refuse: Signal<Local, Bit>,
    finished: Signal<Local, Bit>,

    length_bad: DFF<Bit>,
    uses_length: Signal<Local, Bit>,
    logged_offset: Signal<Local, Bits<6>>,
    wide_offset: Widen<6, 20>,
    wide_length: Widen<19, 20>,
    spanned: Signal<Local, Bits<20>>,
    wide_lines: Widen<14, 20>,
    entry_bytes: DFF<Bits<20>>,
    low_s: Signal<Local, Bits<40>>,
    use_s: Signal<Local, Bits<2>>,
    wide_s: Widen<40, 41>,
    size_s: Signal<Local, Bits<20>>,
    wide_size_s: Widen<20, 41>,
    end_s: DFF<Bits<41>>,
    final_s: Signal<Local, Bits<41>>,
    last_s: DFF<Bits<34>>,
    first_s: DFF<Bits<34>>,
    far_s: DFF<Bit>,
    beyond_s: DFF<Bit>,
    before_ring_s: DFF<Bit>,
    behind_ring_s: DFF<Bit>,
    askew_s: DFF<Bit>,
    head_s: DFF<Bits<34>>,
    tail_s: DFF<Bits<34>>,
    address_s: Concat<34, 6, 40>,
    low_d: Signal<Local, Bits<40>>,
    use_d: Signal<Local, Bits<2>>,
    wide_d: Widen<40, 41>,
    size_d: Signal<Local, Bits<20>>,
    wide_size_d: Widen<20, 41>,
    end_d: DFF<Bits<41>>,
    final_d: Signal<Local, Bits<41>>,
    last_d: DFF<Bits<34>>,
    first_d: DFF<Bits<34>>,
    far_d: DFF<Bit>,
    beyond_d: DFF<Bit>,
    before_ring_d: DFF<Bit>,
    behind_ring_d: DFF<Bit>,
    askew_d: DFF<Bit>,
    head_d: DFF<Bits<34>>,
    tail_d: DFF<Bits<34>>,
    address_d: Concat<34, 6, 40>,
    low_a: Signal<Local, Bits<40>>,
    use_a: Signal<Local, Bits<2>>,
    wide_a: Widen<40, 41>,
    size_a: Signal<Local, Bits<20>>,
    wide_size_a: Widen<20, 41>,
    end_a: DFF<Bits<41>>,
    final_a: Signal<Local, Bits<41>>,
    last_a: DFF<Bits<34>>,
    first_a: DFF<Bits<34>>,
    far_a: DFF<Bit>,
    beyond_a: DFF<Bit>,
    before_ring_a: DFF<Bit>,
    behind_ring_a: DFF<Bit>,
    askew_a: DFF<Bit>,
    head_a: DFF<Bits<34>>,
    tail_a: DFF<Bits<34>>,
    address_a: Concat<34, 6, 40>,
    wide_bytes: Widen<40, 41>,
    wide_ring: Widen<40, 41>,
    wide_ring_bytes: Widen<40, 41>,
    ring_end: DFF<Bits<41>>,
    map_end: DFF<Bits<41>>,
    map_ring_end: DFF<Bits<41>>,
    wide_map_length: Widen<32, 41>,
    long_map_length: Widen<32, 40>,
    wide_pm: Concat<34, 6, 40>,
    wider_pm: Widen<40, 41>,
    map_askew: DFF<Bit>,
    map_far: DFF<Bit>,
    map_beyond: DFF<Bit>,
    map_low: DFF<Bit>,
    map_ring_beyond: DFF<Bit>,
    incongruent: DFF<Bit>,
    old_txid: DFF<Bit>,
    known_txid: Signal<Local, Bits<64>>,
    base: Signal<Local, Bits<40>>,
    base_line: Signal<Local, Bits<34>>,
    map_flags: Signal<Local, Bits<3>>,
    strangers: DFF<Bit>,
    own_bit: DFF<Bits<32>>,
    others: DFF<Bit>,
    devices: Signal<Local, Bits<32>>,
    strange_devices: Signal<Local, Bits<32>>,
    busy_now: Signal<Local, Bits<16>>,
    sd_lap: DFF<Bit>,
    sa_lap: DFF<Bit>,
    da_lap: DFF<Bit>,
    outside: Signal<Local, Bit>,
    askew: Signal<Local, Bit>,
    lapped: Signal<Local, Bit>,

    #[default(Constant::new(Work::default()))]
    no_work: Constant<Work>,
    #[default(Constant::new(Ticket::default()))]
    no_ticket: Constant<Ticket>,
    #[default(Constant::new(MapEntry::default()))]
    no_entry: Constant<MapEntry>,
    #[default(Constant::new(1.into()))]
    in_use: Constant<Bits<3>>,
    #[default(Constant::new(0.into()))]
    zero6: Constant<Bits<6>>,
    #[default(Constant::new(0.into()))]
    zero8: Constant<Bits<8>>,
    #[default(Constant::new(0.into()))]
    zero_word: Constant<Bits<32>>,
    #[default(Constant::new(1.into()))]
    one_bit: Constant<Bits<32>>,
    #[default(Constant::new(1.into()))]
    one_wide: Constant<Bits<41>>,
    #[default(Constant::new(1.into()))]
    one_line: Constant<Bits<20>>,
    #[default(Constant::new(63.into()))]
    line_less_one: Constant<Bits<20>>,
    #[default(Constant::new(8.into()))]
    word_bytes: Constant<Bits<20>>,
    #[default(Constant::new(POOLS_BASE.into()))]
    pools_base: Constant<Bits<40>>,
    #[default(Constant::new(1.into()))]
    use_bytes: Constant<Bits<2>>,
    #[default(Constant::new(2.into()))]
    use_entry: Constant<Bits<2>>,
    #[default(Constant::new(3.into()))]
    use_word: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    no_use: Constant<Bits<2>>,
    #[default(code(Status::BadOpcode))]
    bad_opcode: Constant<Bits<8>>,
    #[default(code(Status::BadLength))]
    bad_length: Constant<Bits<8>>,
    #[default(code(Status::OutOfRange))]
    out_of_range: Constant<Bits<8>>,
    #[default(code(Status::Unmapped))]
    unmapped: Constant<Bits<8>>,
    #[default(code(Status::Misaligned))]
    misaligned: Constant<Bits<8>>,
    #[default(code(Status::Overlap))]
    overlapping: Constant<Bits<8>>,
    #[default(code(Status::NotPrivileged))]
    not_privileged: Constant<Bits<8>>,
    #[default(code(Status::MapFull))]
    map_full: Constant<Bits<8>>,
    #[default(code(Status::MapExists))]
    map_exists: Constant<Bits<8>>,
    #[default(code(Status::StaleTransaction))]
    stale: Constant<Bits<8>>,
    #[default(code(Status::Latched))]
    is_latched: Constant<Bits<8>>,
    #[default(code(Status::BadParticipants))]
    bad_participants: Constant<Bits<8>>,
    #[default(code(Status::ParkedFull))]
    parked_full: Constant<Bits<8>>,
}

/// A status that a command is answered with.
fn code(status: Status) -> Constant<Bits<8>> {
    Constant::new(u64::from(status.code()).into())
}

#[steps]
impl Logic for Decoder {
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            step,
            raw,
            page,
            resume,
            injected,
            released,
            exempt,
            parks,
            accepted,
            own_bit,
            others,
            desc,
            status,
            length_bad,
            entry_bytes,
            end_s,
            last_s,
            first_s,
            far_s,
            beyond_s,
            before_ring_s,
            behind_ring_s,
            askew_s,
            head_s,
            tail_s,
            end_d,
            last_d,
            first_d,
            far_d,
            beyond_d,
            before_ring_d,
            behind_ring_d,
            askew_d,
            head_d,
            tail_d,
            end_a,
            last_a,
            first_a,
            far_a,
            beyond_a,
            before_ring_a,
            behind_ring_a,
            askew_a,
            head_a,
            tail_a,
            ring_end,
            map_end,
            map_ring_end,
            map_askew,
            map_far,
            map_beyond,
            map_low,
            map_ring_beyond,
            incongruent,
            old_txid,
            strangers,
            sd_lap,
            sa_lap,
            da_lap
        );
        self.fields();
        self.length();
        self.source();
        self.destination();
        self.auxiliary();
        self.wider();
        self.thread();
        match self.step.q.val() {
            Step::Idle => self.idle(),
            Step::Size => self.size(),
            Step::Ends => self.ends(),
            Step::Bounds => self.bounds(),
            Step::Overlap => self.overlap(),
            Step::Judge => self.judge(),
            Step::Offer => self.offer(),
            Step::Refuse => self.refuse(),
            _ => {
                self.step.d.next = Step::Idle;
            }
        }
        self.reset();
        self.answer();
        self.judgement();
        self.refusal();
        self.item();
        self.work();
    }

    /// What of the command in hand is looked up; see the layout of `Command`.
    fn fields(&mut self) {
        self.lookup_pool.next = self.raw.q.val().get_bits::<32>(32);
        self.lookup_thread.next = self.raw.q.val().get_bits::<16>(16);
        self.descriptor_index.next = self.raw.q.val().get_bits::<5>(0);
        self.cmd_ready.next = false;
        self.refuse.next = false;
        self.finished.next = false;
        self.item_valid.next = false;
        self.idle.next = false;
    }

    /// How many lines the bytes of a log entry span.
    fn length(&mut self) {
        self.uses_length.next = false;
        self.logged_offset.next = self.raw.q.val().get_bits::<6>(128);
        if self.descriptor.val().get_bit(25) {
            self.logged_offset.next = self.raw.q.val().get_bits::<6>(192);
        }
        self.wide_offset.i.next = self.logged_offset.val();
        self.wide_length.i.next = self.raw.q.val().get_bits::<19>(384);
        self.spanned.next = self.wide_offset.o.val() + self.wide_length.o.val() + self.line_less_one.val();
        self.wide_lines.i.next = self.spanned.val().get_bits::<14>(6);
    }

    /// The first operand: its bytes by its use, and its addresses.
    fn source(&mut self) {
        self.low_s.next = self.raw.q.val().get_bits::<40>(128);
        self.use_s.next = self.desc.q.val().get_bits::<2>(9);
        self.size_s.next = self.wide_length.o.val();
        if self.use_s.val() == self.use_entry.val() {
            self.size_s.next = self.entry_bytes.q.val();
        }
        if self.use_s.val() == self.use_word.val() {
            self.size_s.next = self.word_bytes.val();
        }
        if (self.use_s.val() == self.use_bytes.val()) | (self.use_s.val() == self.use_entry.val()) {
            self.uses_length.next = true;
        }
        self.wide_s.i.next = self.low_s.val();
        self.wide_size_s.i.next = self.size_s.val();
        self.final_s.next = self.end_s.q.val() - self.one_wide.val();
        self.address_s.high.next = self.head_s.q.val();
        self.address_s.low.next = self.low_s.val().get_bits::<6>(0);
    }

    /// The second operand.
    fn destination(&mut self) {
        self.low_d.next = self.raw.q.val().get_bits::<40>(192);
        self.use_d.next = self.desc.q.val().get_bits::<2>(11);
        self.size_d.next = self.wide_length.o.val();
        if self.use_d.val() == self.use_entry.val() {
            self.size_d.next = self.entry_bytes.q.val();
        }
        if self.use_d.val() == self.use_word.val() {
            self.size_d.next = self.word_bytes.val();
        }
        if (self.use_d.val() == self.use_bytes.val()) | (self.use_d.val() == self.use_entry.val()) {
            self.uses_length.next = true;
        }
        self.wide_d.i.next = self.low_d.val();
        self.wide_size_d.i.next = self.size_d.val();
        self.final_d.next = self.end_d.q.val() - self.one_wide.val();
        self.address_d.high.next = self.head_d.q.val();
        self.address_d.low.next = self.low_d.val().get_bits::<6>(0);
    }

    /// The third operand.
    fn auxiliary(&mut self) {
        self.low_a.next = self.raw.q.val().get_bits::<40>(256);
        self.use_a.next = self.desc.q.val().get_bits::<2>(13);
        self.size_a.next = self.wide_length.o.val();
        if self.use_a.val() == self.use_entry.val() {
            self.size_a.next = self.entry_bytes.q.val();
        }
        if self.use_a.val() == self.use_word.val() {
            self.size_a.next = self.word_bytes.val();
        }
        if (self.use_a.val() == self.use_bytes.val()) | (self.use_a.val() == self.use_entry.val()) {
            self.uses_length.next = true;
        }
        self.wide_a.i.next = self.low_a.val();
        self.wide_size_a.i.next = self.size_a.val();
        self.final_a.next = self.end_a.q.val() - self.one_wide.val();
        self.address_a.high.next = self.head_a.q.val();
        self.address_a.low.next = self.low_a.val().get_bits::<6>(0);
    }

    /// What is compared without overflow.
    fn wider(&mut self) {
        self.wide_bytes.i.next = self.entry.val().bytes;
        self.wide_ring.i.next = self.entry.val().ring;
        self.wide_ring_bytes.i.next = self.entry.val().ring_bytes;
        self.wide_map_length.i.next = self.raw.q.val().get_bits::<32>(384);
        self.long_map_length.i.next = self.raw.q.val().get_bits::<32>(384);
        self.wide_pm.high.next = self.pm_lines.val();
        self.wide_pm.low.next = self.zero6.val();
        self.wider_pm.i.next = self.wide_pm.o.val();
    }

    /// What the mapping entry and other devices say of the command's thread.
    fn thread(&mut self) {
        self.own_bit.d.next = self.one_bit.val() << self.device_number.val();
        self.devices.next = self.raw.q.val().get_bits::<32>(448);
        self.strange_devices.next = self.devices.val() & !self.own_bit.q.val();
        self.busy_now.next = self.busy.val() >> self.found_index.val();
        self.inject_taken.next = false;
        self.map_flags.next = self.entry.val().flags;
        self.base.next = self.entry.val().base;
        self.base_line.next = self.base.val().get_bits::<34>(6);
        self.known_txid.next = self.entry.val().committed;
    }

    /// Takes a command that a replay or another device gives back, or else a new one.
    fn idle(&mut self) {
        self.idle.next = !self.inject_valid.val() & !self.cmd_valid.val();
        self.injected.d.next = self.inject_valid.val();
        self.inject_taken.next = self.inject_valid.val();
        self.released.d.next = self.inject_valid.val() & self.inject_released.val();
        self.parks.d.next = self.inject_valid.val() & self.inject_parks.val();
        self.exempt.d.next = self.inject_valid.val() & (self.inject_parks.val() | self.inject_released.val());
        self.accepted.d.next = self.inject_accepted.val();
        if self.inject_valid.val() {
            self.raw.d.next = self.inject_data.val();
            self.page.d.next = self.inject_page.val();
            self.resume.d.next = self.inject_resume.val();
            self.lookup_pool.next = self.inject_data.val().get_bits::<32>(32);
            self.lookup_thread.next = self.inject_data.val().get_bits::<16>(16);
            self.descriptor_index.next = self.inject_data.val().get_bits::<5>(0);
            self.step.d.next = Step::Size;
        } else {
            self.cmd_ready.next = self.cmd_valid.val();
            self.lookup_pool.next = self.cmd_data.val().get_bits::<32>(32);
            self.lookup_thread.next = self.cmd_data.val().get_bits::<16>(16);
            self.descriptor_index.next = self.cmd_data.val().get_bits::<5>(0);
            self.raw.d.next = self.cmd_data.val();
            self.page.d.next = self.cmd_page.val();
            self.resume.d.next = self.zero8.val();
            if self.cmd_valid.val() {
                self.step.d.next = Step::Size;
            }
        }
    }

    /// The descriptor is here, the mapping not yet.
    fn size(&mut self) {
        self.desc.d.next = self.descriptor.val();
        self.entry_bytes.d.next = (self.wide_lines.o.val() + self.one_line.val()) << 6;
        self.length_bad.d.next = (self.raw.q.val().get_bits::<32>(384) == self.zero_word.val())
            | self.raw.q.val().get_bits::<13>(403).any()
            | (self.raw.q.val().get_bit(402) & self.raw.q.val().get_bits::<18>(384).any());
        self.others.d.next = self.strange_devices.val().any();
        self.strangers.d.next = self.strange_devices.val().get_bits::<24>(8).any()
            | (self.devices.val().any() & !(self.devices.val() & self.own_bit.q.val()).any())
            | (self.strange_devices.val().any() & !self.speaks.val() & !self.injected.q.val());
        self.step.d.next = Step::Ends;
    }

    /// Where the operands end.
    fn ends(&mut self) {
        self.end_s.d.next = self.wide_s.o.val() + self.wide_size_s.o.val();
        self.far_s.d.next = self.raw.q.val().get_bits::<24>(168).any();
        self.end_d.d.next = self.wide_d.o.val() + self.wide_size_d.o.val();
        self.far_d.d.next = self.raw.q.val().get_bits::<24>(232).any();
        self.end_a.d.next = self.wide_a.o.val() + self.wide_size_a.o.val();
        self.far_a.d.next = self.raw.q.val().get_bits::<24>(296).any();
        self.ring_end.d.next = self.wide_ring.o.val() + self.wide_ring_bytes.o.val();
        self.map_end.d.next = self.wide_s.o.val() + self.wide_d.o.val();
        self.map_ring_end.d.next = self.wide_a.o.val() + self.wide_map_length.o.val();
        self.old_txid.d.next = self.raw.q.val().get_bits::<64>(64) <= self.known_txid.val();
        self.step.d.next = Step::Bounds;
    }

    /// What of that is out of bounds.
    fn bounds(&mut self) {
        self.beyond_s.d.next = self.end_s.q.val() > self.wide_bytes.o.val();
        self.before_ring_s.d.next = self.wide_s.o.val() < self.wide_ring.o.val();
        self.behind_ring_s.d.next = self.end_s.q.val() > self.ring_end.q.val();
        self.first_s.d.next = self.low_s.val().get_bits::<34>(6);
        self.last_s.d.next = self.final_s.val().get_bits::<34>(6);
        self.askew_s.d.next = ((self.use_s.val() == self.use_entry.val()) & self.low_s.val().get_bits::<6>(0).any())
            | ((self.use_s.val() == self.use_word.val()) & self.low_s.val().get_bits::<3>(0).any());
        self.beyond_d.d.next = self.end_d.q.val() > self.wide_bytes.o.val();
        self.before_ring_d.d.next = self.wide_d.o.val() < self.wide_ring.o.val();
        self.behind_ring_d.d.next = self.end_d.q.val() > self.ring_end.q.val();
        self.first_d.d.next = self.low_d.val().get_bits::<34>(6);
        self.last_d.d.next = self.final_d.val().get_bits::<34>(6);
        self.askew_d.d.next = ((self.use_d.val() == self.use_entry.val()) & self.low_d.val().get_bits::<6>(0).any())
            | ((self.use_d.val() == self.use_word.val()) & self.low_d.val().get_bits::<3>(0).any());
        self.beyond_a.d.next = self.end_a.q.val() > self.wide_bytes.o.val();
        self.before_ring_a.d.next = self.wide_a.o.val() < self.wide_ring.o.val();
        self.behind_ring_a.d.next = self.end_a.q.val() > self.ring_end.q.val();
        self.first_a.d.next = self.low_a.val().get_bits::<34>(6);
        self.last_a.d.next = self.final_a.val().get_bits::<34>(6);
        self.askew_a.d.next = ((self.use_a.val() == self.use_entry.val()) & self.low_a.val().get_bits::<6>(0).any())
            | ((self.use_a.val() == self.use_word.val()) & self.low_a.val().get_bits::<3>(0).any());
        self.incongruent.d.next = self.low_s.val().get_bits::<6>(0) != self.low_d.val().get_bits::<6>(0);
        self.map_askew.d.next = self.low_s.val().get_bits::<6>(0).any() | self.low_a.val().get_bits::<6>(0).any();
        self.map_far.d.next = self.far_s.q.val() | self.far_d.q.val() | self.far_a.q.val() | !self.low_d.val().any();
        self.map_beyond.d.next = self.map_end.q.val() > self.wider_pm.o.val();
        self.map_low.d.next = self.low_s.val() < self.pools_base.val();
        self.map_ring_beyond.d.next = self.map_ring_end.q.val() > self.wide_d.o.val();
        self.step.d.next = Step::Overlap;
    }

    /// The lines of the operands, and which of them meet; whether the command waits for other
    /// devices.
    fn overlap(&mut self) {
        // What is behind a command that waits, or has waited, in its thread may have to wait as
        // well.
        if !self.released.q.val()
            & !self.desc.q.val().get_bit(21)
            & ((self.desc.q.val().get_bit(26) & self.others.q.val())
                | ((self.desc.q.val().get_bit(26) | self.desc.q.val().get_bit(18)) & self.busy_now.val().get_bit(0)))
        {
            self.parks.d.next = true;
        }
        self.head_s.d.next = self.base_line.val() + self.first_s.q.val();
        self.tail_s.d.next = self.base_line.val() + self.last_s.q.val();
        self.head_d.d.next = self.base_line.val() + self.first_d.q.val();
        self.tail_d.d.next = self.base_line.val() + self.last_d.q.val();
        self.head_a.d.next = self.base_line.val() + self.first_a.q.val();
        self.tail_a.d.next = self.base_line.val() + self.last_a.q.val();
        self.sd_lap.d.next = (self.use_s.val() != self.no_use.val())
            & (self.use_d.val() != self.no_use.val())
            & (self.first_s.q.val() <= self.last_d.q.val())
            & (self.first_d.q.val() <= self.last_s.q.val());
        self.sa_lap.d.next = (self.use_s.val() != self.no_use.val())
            & (self.use_a.val() != self.no_use.val())
            & (self.first_s.q.val() <= self.last_a.q.val())
            & (self.first_a.q.val() <= self.last_s.q.val());
        self.da_lap.d.next = (self.use_d.val() != self.no_use.val())
            & (self.use_a.val() != self.no_use.val())
            & (self.first_d.q.val() <= self.last_a.q.val())
            & (self.first_a.q.val() <= self.last_d.q.val());
        self.step.d.next = Step::Judge;
    }

    /// From the last check to the first: the first that fails has the word.
    fn judge(&mut self) {
        self.status.d.next = self.zero8.val();
        if self.parks.q.val() & self.full.val() {
            self.status.d.next = self.parked_full.val();
            self.refuse.next = true;
        }
        if self.desc.q.val().get_bit(24) & self.old_txid.q.val() & !self.injected.q.val() {
            // Not for a replay: it was accepted before the commit that is known by now.
            self.status.d.next = self.stale.val();
            self.refuse.next = true;
        }
        if self.lapped.val() {
            self.status.d.next = self.overlapping.val();
            self.refuse.next = true;
        }
        if self.outside.val() {
            self.status.d.next = self.out_of_range.val();
            self.refuse.next = true;
        }
        if self.askew.val() {
            self.status.d.next = self.misaligned.val();
            self.refuse.next = true;
        }
        if self.uses_length.val() & self.length_bad.q.val() {
            self.status.d.next = self.bad_length.val();
            self.refuse.next = true;
        }
        if self.map_flags.val().get_bit(1) & !self.desc.q.val().get_bit(22) & !self.exempt.q.val() {
            self.status.d.next = self.is_latched.val();
            self.refuse.next = true;
        }
        if !self.found.val() | (self.map_flags.val().get_bit(2) & !self.exempt.q.val()) {
            self.status.d.next = self.unmapped.val();
            self.refuse.next = true;
        }
        if self.desc.q.val().get_bit(21) {
            // A map has a list of its own.
            self.refuse.next = false;
            self.status.d.next = self.zero8.val();
            if self.map_far.q.val() | self.map_beyond.q.val() | self.map_low.q.val() | self.map_ring_beyond.q.val() {
                self.status.d.next = self.out_of_range.val();
                self.refuse.next = true;
            }
            if self.map_askew.q.val() {
                self.status.d.next = self.misaligned.val();
                self.refuse.next = true;
            }
            if !self.any_free.val() {
                self.status.d.next = self.map_full.val();
                self.refuse.next = true;
            }
            if self.found.val() {
                self.status.d.next = self.map_exists.val();
                self.refuse.next = true;
            }
        }
        if self.strangers.q.val() {
            self.status.d.next = self.bad_participants.val();
            self.refuse.next = true;
        }
        if self.desc.q.val().get_bit(19) & self.page.q.val().any() {
            self.status.d.next = self.not_privileged.val();
            self.refuse.next = true;
        }
        if !self.desc.q.val().get_bit(8) | self.raw.q.val().get_bits::<3>(5).any() {
            self.status.d.next = self.bad_opcode.val();
            self.refuse.next = true;
        }
        self.step.d.next = Step::Offer;
        if self.refuse.val() {
            self.step.d.next = Step::Refuse;
        }
    }

    /// Offers the item to the ordering point.
    fn offer(&mut self) {
        self.item_valid.next = true;
        if self.item_ready.val() {
            self.finished.next = true;
            self.step.d.next = Step::Idle;
        } else {
            if self.slots_lost.val() & !self.desc.q.val().get_bit(22) & !self.exempt.q.val() {
                // Waiting would be for ever, with the unmap that frees slots behind this command.
                self.status.d.next = self.is_latched.val();
                self.step.d.next = Step::Refuse;
            }
        }
    }

    /// Tells the page of the command why it is refused.
    fn refuse(&mut self) {
        if self.refused_ready.val() {
            self.finished.next = true;
            self.step.d.next = Step::Idle;
        }
    }

    /// At reset: no command.
    fn reset(&mut self) {
        if self.reset.val() {
            self.step.d.next = Step::Idle;
        }
    }

    /// Who gave the command hears that it is done with.
    fn answer(&mut self) {
        self.cmd_done.next = self.finished.val() & !self.injected.q.val();
        self.inject_ready.next = self.finished.val() & self.injected.q.val();
    }

    /// What the checks of all operands say together.
    fn judgement(&mut self) {
        self.askew.next = self.askew_s.q.val()
            | self.askew_d.q.val()
            | self.askew_a.q.val()
            | (self.desc.q.val().get_bit(20) & self.incongruent.q.val());
        self.lapped.next = self.sd_lap.q.val() | self.sa_lap.q.val() | self.da_lap.q.val();
        self.outside.next = false;
        if (self.use_s.val() != self.no_use.val())
            & (self.far_s.q.val()
                | self.beyond_s.q.val()
                | (self.desc.q.val().get_bit(15) & (self.before_ring_s.q.val() | self.behind_ring_s.q.val())))
        {
            self.outside.next = true;
        }
        if (self.use_d.val() != self.no_use.val())
            & (self.far_d.q.val()
                | self.beyond_d.q.val()
                | (self.desc.q.val().get_bit(16) & (self.before_ring_d.q.val() | self.behind_ring_d.q.val())))
        {
            self.outside.next = true;
        }
        if (self.use_a.val() != self.no_use.val())
            & (self.far_a.q.val()
                | self.beyond_a.q.val()
                | (self.desc.q.val().get_bit(17) & (self.before_ring_a.q.val() | self.behind_ring_a.q.val())))
        {
            self.outside.next = true;
        }
    }

    /// The refusal that is offered.
    fn refusal(&mut self) {
        self.refused_valid.next = (self.step.q.val() == Step::Refuse) & self.refused_ready.val();
        self.refused_page.next = self.page.q.val();
        self.refused_tag.next = self.raw.q.val().get_bits::<32>(416);
        self.refused_status.next = self.status.q.val();
    }

    /// The item that is offered: what it touches.
    fn item(&mut self) {
        self.item_raw.next = self.raw.q.val();
        self.item_resume.next = self.resume.q.val();
        self.item_ordered.next = self.desc.q.val().get_bit(18);
        self.item_again.next = self.injected.q.val();
        self.item_accepted.next = self.accepted.q.val();
        self.item_unmaps.next = self.desc.q.val().get_bit(22);
        self.item_maps.next = self.desc.q.val().get_bit(21);
        self.item_first[0].next = self.head_s.q.val();
        self.item_last[0].next = self.tail_s.q.val();
        self.item_first[1].next = self.head_d.q.val();
        self.item_last[1].next = self.tail_d.q.val();
        self.item_first[2].next = self.head_a.q.val();
        self.item_last[2].next = self.tail_a.q.val();
        self.item_ranges[0].next = self.use_s.val() != self.no_use.val();
        self.item_ranges[1].next = self.use_d.val() != self.no_use.val();
        self.item_ranges[2].next = self.use_a.val() != self.no_use.val();
    }

    /// And what a unit is to do with it.
    fn work(&mut self) {
        self.item_work.next = self.no_work.val();
        self.item_work.next.pc = self.desc.q.val().get_bits::<8>(0);
        if self.resume.q.val().any() {
            self.item_work.next.pc = self.resume.q.val();
        }
        self.item_work.next.source = self.address_s.o.val();
        self.item_work.next.destination = self.address_d.o.val();
        self.item_work.next.auxiliary = self.address_a.o.val();
        self.item_work.next.value = self.raw.q.val().get_bits::<64>(256);
        self.item_work.next.source_offset = self.raw.q.val().get_bits::<64>(128);
        self.item_work.next.destination_offset = self.raw.q.val().get_bits::<64>(192);
        self.item_work.next.length = self.raw.q.val().get_bits::<19>(384);
        self.item_work.next.thread = self.raw.q.val().get_bits::<16>(16);
        self.item_work.next.pool = self.raw.q.val().get_bits::<32>(32);
        self.item_work.next.txid = self.raw.q.val().get_bits::<64>(64);
        self.item_work.next.sequence = self.raw.q.val().get_bits::<64>(320);
        self.item_work.next.participants = self.raw.q.val().get_bits::<32>(448);
        self.item_ticket.next = self.no_ticket.val();
        self.item_ticket.next.page = self.page.q.val();
        self.item_ticket.next.tag = self.raw.q.val().get_bits::<32>(416);
        self.item_ticket.next.complete = self.raw.q.val().get_bit(8);
        self.item_ticket.next.map = self.found_index.val();
        if self.desc.q.val().get_bit(21) {
            self.item_ticket.next.map = self.free_index.val();
        }
        self.item_ticket.next.commits = self.desc.q.val().get_bit(23);
        self.item_ticket.next.logs = self.desc.q.val().get_bit(24);
        self.item_ticket.next.unmaps = self.desc.q.val().get_bit(22);
        self.item_ticket.next.txid = self.raw.q.val().get_bits::<64>(64);
        self.item_ticket.next.parks = self.parks.q.val();
        self.item_ticket.next.released = self.released.q.val();
        self.item_ticket.next.synchronises = self.desc.q.val().get_bit(26);
        self.item_ticket.next.ordered = self.desc.q.val().get_bit(18);
        self.item_entry.next = self.no_entry.val();
        self.item_entry.next.flags = self.in_use.val();
        self.item_entry.next.thread = self.raw.q.val().get_bits::<16>(16);
        self.item_entry.next.pool = self.raw.q.val().get_bits::<32>(32);
        self.item_entry.next.base = self.low_s.val();
        self.item_entry.next.bytes = self.low_d.val();
        self.item_entry.next.ring = self.low_a.val();
        self.item_entry.next.ring_bytes = self.long_map_length.o.val();
        self.item_entry.next.committed = self.raw.q.val().get_bits::<64>(320);
        self.item_entry.next.reached = self.raw.q.val().get_bits::<64>(320);
    }
}
