//! Host loads and stores from numbering to the memory's answer.

use crate::bundles::MemoryRequester;
use crate::cells::{AsyncRam, Fifo, PriorityPick, Register, RoundRobin};
use crate::dut::{PortValue, Ports};
use crate::sizes::Sizes;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// What the queue keeps of a line besides its data.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct HostLine {
    /// Line address.
    pub line: Bits<34>,
    /// Bytes to store.
    pub strobes: Bits<64>,
    /// Identifier of a load.
    pub id: Bits<6>,
    /// Order number.
    pub order: Bits<64>,
}

/// A load's data on its way to the host.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct HostAnswer {
    /// Identifier of the load.
    pub id: Bits<6>,
    /// The memory could not read.
    pub error: Bit,
    /// Tag to free.
    pub tag: Bits<3>,
    /// The line.
    pub data: Bits<512>,
}

/// 64 lines in the full card, each held from numbering until the memory has answered.
///
/// Guarantees: a line goes to memory once, when it is `ready`; loads and stores each in turn, at
/// most eight of either outstanding. A store retires when the memory has answered it, a load when
/// its data is here; its data waits in a queue of eight for the host, which holds back further
/// loads but never memory. Stores that the memory refuses retire all the same, and are told: they
/// are lost. What is `held` would wait for the host itself: a load is answered with an error and no
/// data; of stores at most [`Sizes::held_stores`] are kept, and those beyond are dropped. Both are
/// told, and go before what is ready, so that a held line is gone in a bounded time. Bound: a load
/// and a store every two cycles.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct HostQueue {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no line is live.
    pub reset: Signal<In, Bit>,
    /// Some line is free.
    pub free_any: Signal<Out, Bit>,
    /// A free line.
    pub free_index: Signal<Out, Bits<6>>,
    /// An access enters that line; only while `free_any`.
    pub ins_valid: Signal<In, Bit>,
    /// It stores.
    pub ins_write: Signal<In, Bit>,
    /// Its line address.
    pub ins_line: Signal<In, Bits<34>>,
    /// What it stores.
    pub ins_data: Signal<In, Bits<512>>,
    /// Bytes that it stores.
    pub ins_strb: Signal<In, Bits<64>>,
    /// Identifier of a load.
    pub ins_id: Signal<In, Bits<6>>,
    /// Order number.
    pub ins_order: Signal<In, Bits<64>>,
    /// Lines whose dependencies are gone.
    pub ready: Signal<In, Bits<64>>,
    /// Lines that only a later access of the host can make ready.
    pub held: Signal<In, Bits<64>>,
    /// Held stores that are kept until what holds them is let go, a bit each.
    pub kept_lines: Signal<Out, Bits<64>>,
    /// Request nothing new.
    pub quiesce: Signal<In, Bit>,
    /// Nothing is outstanding at the memory; data of loads may still wait for the host.
    pub quiet: Signal<Out, Bit>,
    /// No line is live.
    pub empty: Signal<Out, Bit>,
    /// Live lines, a bit each.
    pub live: Signal<Out, Bits<64>>,
    /// The memory.
    pub mem: MemoryRequester,
    /// Pulse: a store retires.
    pub retw_valid: Signal<Out, Bit>,
    /// Its line.
    pub retw_index: Signal<Out, Bits<6>>,
    /// Pulse: a load retires.
    pub retr_valid: Signal<Out, Bit>,
    /// Its line.
    pub retr_index: Signal<Out, Bits<6>>,
    /// Data of a load.
    pub rsp_valid: Signal<Out, Bit>,
    /// It is taken.
    pub rsp_ready: Signal<In, Bit>,
    /// Its identifier.
    pub rsp_id: Signal<Out, Bits<6>>,
    /// The line.
    pub rsp_data: Signal<Out, Bits<512>>,
    /// The memory could not read it.
    pub rsp_error: Signal<Out, Bit>,
    /// Pulse: the memory refused a store, in the cycle before.
    pub lost: Signal<Out, Bit>,
    /// Its line address.
    pub lost_line: Signal<Out, Bits<34>>,
    /// Pulse: a held load was answered with an error, or a held store dropped.
    pub ev_latched: Signal<Out, Bit>,
    /// Line to read out, while nothing is issued; the rest answers in the next cycle.
    pub save_index: Signal<In, Bits<6>>,
    /// It holds a store.
    pub save_valid: Signal<Out, Bit>,
    /// Its line address.
    pub save_line: Signal<Out, Bits<34>>,
    /// Its data.
    pub save_data: Signal<Out, Bits<512>>,
    /// Its strobes.
    pub save_strb: Signal<Out, Bits<64>>,
    /// Its order number.
    pub save_order: Signal<Out, Bits<64>>,
    #[default(Register::new(0.into()))]
    alive: Register<Bits<64>>,
    #[default(Register::new(0.into()))]
    stores: Register<Bits<64>>,
    #[default(Register::new(0.into()))]
    issued: Register<Bits<64>>,
    #[default(Register::new(0.into()))]
    kept: Register<Bits<64>>,
    #[default(Register::new(0.into()))]
    kept_count: Register<Bits<7>>,
    holder: RoundRobin<64, 6>,
    finds_store: Signal<Local, Bit>,
    keeps: Signal<Local, Bit>,
    keep_mask: Signal<Local, Bits<64>>,
    gives_up: Signal<Local, Bits<64>>,
    unkeeps: Signal<Local, Bit>,
    refusing: DFF<Bit>,
    refused_store: DFF<Bit>,
    refused_index: DFF<Bits<6>>,
    refuses_load: Signal<Local, Bit>,
    drops_store: Signal<Local, Bit>,
    has_refused: DFF<Bit>,
    enter_mask: Signal<Local, Bits<64>>,
    leave_write: Signal<Local, Bits<64>>,
    leave_read: Signal<Local, Bits<64>>,
    pick_write: Signal<Local, Bits<64>>,
    pick_read: Signal<Local, Bits<64>>,
    free: PriorityPick<64, 6>,
    /// The line that is offered as free, picked ahead.
    spare: Register<Bit>,
    spare_index: Register<Bits<6>>,
    spare_mask: Register<Bits<64>>,
    data: AsyncRam<Bits<512>, 6, 1>,
    lines: AsyncRam<HostLine, 6, 3>,
    writer: RoundRobin<64, 6>,
    reader: RoundRobin<64, 6>,
    write_held: DFF<Bit>,
    write_index: DFF<Bits<6>>,
    read_held: DFF<Bit>,
    read_index: DFF<Bits<6>>,
    #[default(Register::new(255.into()))]
    write_tags: Register<Bits<8>>,
    #[default(Register::new(255.into()))]
    read_tags: Register<Bits<8>>,
    #[default(Register::new(0.into()))]
    reading: Register<Bits<8>>,
    write_tag: PriorityPick<8, 3>,
    read_tag: PriorityPick<8, 3>,
    /// Some tag is free: what `read_tag.any` says, from a register, since retirement hangs on it.
    #[default(Register::new(true))]
    read_tag_left: Register<Bit>,
    write_table: AsyncRam<Bits<6>, 3, 1>,
    write_lines: AsyncRam<Bits<34>, 3, 1>,
    has_lost: DFF<Bit>,
    has_lost_line: DFF<Bits<34>>,
    read_table: AsyncRam<Bits<6>, 3, 1>,
    id_table: AsyncRam<Bits<6>, 3, 1>,
    granted: Fifo<Bits<6>, 3, 4>,
    answers: Fifo<HostAnswer, 3, 4>,
    answer: Signal<Local, HostAnswer>,
    to_write: Signal<Local, HostLine>,
    to_read: Signal<Local, HostLine>,
    to_send: Signal<Local, HostLine>,
    sends: Signal<Local, Bit>,
    loads: Signal<Local, Bit>,
    pops: Signal<Local, Bit>,
    saved: DFF<Bits<6>>,
    saved_stores: Signal<Local, Bits<64>>,
    tag_taken_w: Signal<Local, Bits<8>>,
    tag_freed_w: Signal<Local, Bits<8>>,
    tag_taken_r: Signal<Local, Bits<8>>,
    tag_freed_r: Signal<Local, Bits<8>>,
    tag_read: Signal<Local, Bits<8>>,
    tag_used: Signal<Local, Bits<8>>,
    #[default(Constant::new(0.into()))]
    no_data: Constant<Bits<512>>,
    #[default(Constant::new(HostLine::default()))]
    no_line: Constant<HostLine>,
    #[default(Constant::new(HostAnswer::default()))]
    no_answer: Constant<HostAnswer>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<64>>,
    #[default(Constant::new(0.into()))]
    none: Constant<Bits<64>>,
    #[default(Constant::new(1.into()))]
    one8: Constant<Bits<8>>,
    #[default(Constant::new(0.into()))]
    none8: Constant<Bits<8>>,
    #[default(Constant::new(0.into()))]
    single: Constant<Bits<6>>,
    #[default(Constant::new(1.into()))]
    one7: Constant<Bits<7>>,
    #[default(Constant::new((Sizes::FULL.held_stores as u64).into()))]
    held_stores: Constant<Bits<7>>,
}

impl HostQueue {
    /// With as many lines.
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            free: PriorityPick::among(sizes.lines),
            data: AsyncRam::of_depth(sizes.lines),
            lines: AsyncRam::of_depth(sizes.lines),
            held_stores: Constant::new((sizes.held_stores as u64).into()),
            ..Self::default()
        }
    }
}

impl Logic for HostQueue {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            write_held,
            write_index,
            read_held,
            read_index,
            saved,
            refusing,
            refused_store,
            refused_index,
            has_refused,
            has_lost,
            has_lost_line
        );
        clock!(
            self,
            clock,
            alive,
            spare,
            spare_index,
            spare_mask,
            stores,
            issued,
            kept,
            kept_count,
            holder,
            data,
            lines,
            writer,
            reader,
            write_tags,
            read_tags,
            read_tag_left,
            reading,
            write_table,
            write_lines,
            read_table,
            id_table,
            granted,
            answers
        );
        self.alive.reset.next = self.reset.val();
        self.stores.reset.next = self.reset.val();
        self.issued.reset.next = self.reset.val();
        self.kept.reset.next = self.reset.val();
        self.kept_count.reset.next = self.reset.val();
        self.holder.reset.next = self.reset.val();
        self.writer.reset.next = self.reset.val();
        self.reader.reset.next = self.reset.val();
        self.write_tags.reset.next = self.reset.val();
        self.read_tags.reset.next = self.reset.val();
        self.read_tag_left.reset.next = self.reset.val();
        self.reading.reset.next = self.reset.val();
        self.granted.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();
        self.alive.enable.next = true;
        self.stores.enable.next = true;
        self.issued.enable.next = true;
        self.kept.enable.next = true;
        self.kept_count.enable.next = true;
        self.write_tags.enable.next = true;
        self.read_tags.enable.next = true;
        self.read_tag_left.enable.next = true;
        self.reading.enable.next = true;
        self.live.next = self.alive.q.val();
        self.empty.next = !self.alive.q.val().any();
        // A free line is offered from a register; the next one is picked while it is.
        self.free.requests.next = !self.alive.q.val() & !self.spare_mask.q.val();
        self.spare.reset.next = self.reset.val();
        self.spare_index.reset.next = self.reset.val();
        self.spare_mask.reset.next = self.reset.val();
        self.spare.enable.next = !self.spare.q.val() | self.ins_valid.val();
        self.spare_index.enable.next = !self.spare.q.val() | self.ins_valid.val();
        self.spare_mask.enable.next = !self.spare.q.val() | self.ins_valid.val();
        self.spare.d.next = self.free.any.val();
        self.spare_index.d.next = self.free.index.val();
        self.spare_mask.d.next = self.free.grant.val();
        self.free_any.next = self.spare.q.val();
        self.free_index.next = self.spare_index.q.val();

        // The lines that are requested next, or the one that is given up.
        self.lines.read_address[0].next = self.write_index.q.val();
        self.lines.read_address[1].next = self.read_index.q.val();
        if self.refusing.q.val() {
            self.lines.read_address[1].next = self.refused_index.q.val();
        }
        self.to_write.next = self.lines.read_data[0].val();
        self.to_read.next = self.lines.read_data[1].val();

        // The memory's answers retire lines.
        self.write_table.read_address[0].next = self.mem.b_tag.val();
        self.read_table.read_address[0].next = self.mem.rdata_tag.val();
        self.id_table.read_address[0].next = self.mem.rdata_tag.val();
        // What is held and cannot be kept retires when no answer of the memory does. No request is
        // made meanwhile, so that moment comes.
        self.refuses_load.next = self.refusing.q.val()
            & !self.refused_store.q.val()
            & self.read_tag_left.q.val()
            & !self.mem.rdata_valid.val()
            & !self.quiesce.val();
        self.drops_store.next =
            self.refusing.q.val() & self.refused_store.q.val() & !self.mem.b_valid.val() & !self.quiesce.val();
        self.has_refused.d.next = self.refuses_load.val() | self.drops_store.val();
        self.ev_latched.next = self.has_refused.q.val();
        self.retw_valid.next = self.mem.b_valid.val() | self.drops_store.val();
        // Where neither happens nobody looks at the index, which is picked by what is known first.
        self.retw_index.next = self.refused_index.q.val();
        if self.mem.b_valid.val() {
            self.retw_index.next = self.write_table.read_data[0].val();
        }
        self.write_lines.read_address[0].next = self.mem.b_tag.val();
        self.has_lost.d.next = self.mem.b_valid.val() & self.mem.b_error.val();
        self.has_lost_line.d.next = self.write_lines.read_data[0].val();
        self.lost.next = self.has_lost.q.val();
        self.lost_line.next = self.has_lost_line.q.val();
        self.retr_valid.next = self.mem.rdata_valid.val() | self.refuses_load.val();
        self.retr_index.next = self.refused_index.q.val();
        if self.mem.rdata_valid.val() {
            self.retr_index.next = self.read_table.read_data[0].val();
        }
        self.leave_write.next = self.none.val();
        if self.retw_valid.val() {
            self.leave_write.next = self.one.val() << self.retw_index.val();
        }
        self.leave_read.next = self.none.val();
        if self.retr_valid.val() {
            self.leave_read.next = self.one.val() << self.retr_index.val();
        }

        // Data of loads waits for the host.
        self.answers.write.next = self.mem.rdata_valid.val() | self.refuses_load.val();
        self.answers.data_in.next = self.no_answer.val();
        self.answers.data_in.next.id = self.id_table.read_data[0].val();
        self.answers.data_in.next.error = self.mem.rdata_error.val();
        self.answers.data_in.next.tag = self.mem.rdata_tag.val();
        self.answers.data_in.next.data = self.mem.rdata.val();
        if self.refuses_load.val() {
            self.answers.data_in.next.id = self.to_read.val().id;
            self.answers.data_in.next.error = true;
            self.answers.data_in.next.tag = self.read_tag.index.val();
            self.answers.data_in.next.data = self.no_data.val();
        }
        self.answer.next = self.answers.data_out.val();
        self.pops.next = !self.answers.empty.val() & self.rsp_ready.val();
        self.answers.read.next = self.pops.val();
        self.rsp_valid.next = !self.answers.empty.val();
        self.rsp_id.next = self.answer.val().id;
        self.rsp_error.next = self.answer.val().error;
        self.rsp_data.next = self.answer.val().data;

        // Requests: one load and one store are picked ahead.
        self.write_tag.requests.next = self.write_tags.q.val();
        self.read_tag.requests.next = self.read_tags.q.val();
        self.mem.wr_valid.next = self.write_held.q.val()
            & self.write_tag.any.val()
            & !self.granted.full.val()
            & !self.quiesce.val()
            & !self.refusing.q.val();
        self.mem.wr_line.next = self.to_write.val().line;
        self.mem.wr_beats.next = self.single.val();
        self.mem.wr_tag.next = self.write_tag.index.val();
        self.sends.next = self.write_held.q.val()
            & self.write_tag.any.val()
            & !self.granted.full.val()
            & !self.quiesce.val()
            & !self.refusing.q.val()
            & self.mem.wr_ready.val();
        self.mem.rd_valid.next =
            self.read_held.q.val() & self.read_tag.any.val() & !self.quiesce.val() & !self.refusing.q.val();
        self.mem.rd_line.next = self.to_read.val().line;
        self.mem.rd_beats.next = self.single.val();
        self.mem.rd_tag.next = self.read_tag.index.val();
        self.loads.next = self.read_held.q.val()
            & self.read_tag.any.val()
            & !self.quiesce.val()
            & !self.refusing.q.val()
            & self.mem.rd_ready.val();
        self.write_table.write_enable.next = self.sends.val();
        self.write_table.write_address.next = self.write_tag.index.val();
        self.write_table.write_data.next = self.write_index.q.val();
        self.write_lines.write_enable.next = self.sends.val();
        self.write_lines.write_address.next = self.write_tag.index.val();
        self.write_lines.write_data.next = self.to_write.val().line;
        self.read_table.write_enable.next = self.loads.val();
        self.read_table.write_address.next = self.read_tag.index.val();
        self.read_table.write_data.next = self.read_index.q.val();
        self.id_table.write_enable.next = self.loads.val();
        self.id_table.write_address.next = self.read_tag.index.val();
        self.id_table.write_data.next = self.to_read.val().id;
        self.tag_taken_w.next = self.none8.val();
        if self.sends.val() {
            self.tag_taken_w.next = self.one8.val() << self.write_tag.index.val();
        }
        self.tag_freed_w.next = self.none8.val();
        if self.mem.b_valid.val() {
            self.tag_freed_w.next = self.one8.val() << self.mem.b_tag.val();
        }
        self.write_tags.d.next = (self.write_tags.q.val() & !self.tag_taken_w.val()) | self.tag_freed_w.val();
        self.tag_taken_r.next = self.none8.val();
        if self.loads.val() {
            self.tag_taken_r.next = self.one8.val() << self.read_tag.index.val();
        }
        self.tag_freed_r.next = self.none8.val();
        if self.pops.val() {
            self.tag_freed_r.next = self.one8.val() << self.answer.val().tag;
        }
        self.tag_used.next = self.tag_taken_r.val();
        if self.refuses_load.val() {
            self.tag_used.next = self.one8.val() << self.read_tag.index.val();
        }
        self.read_tags.d.next = (self.read_tags.q.val() & !self.tag_used.val()) | self.tag_freed_r.val();
        self.read_tag_left.d.next = self.read_tags.d.val().any();
        self.tag_read.next = self.none8.val();
        if self.mem.rdata_valid.val() {
            self.tag_read.next = self.one8.val() << self.mem.rdata_tag.val();
        }
        self.reading.d.next = (self.reading.q.val() & !self.tag_read.val()) | self.tag_taken_r.val();

        self.writer.requests.next = self.ready.val() & self.alive.q.val() & self.stores.q.val() & !self.issued.q.val();
        self.reader.requests.next = self.ready.val() & self.alive.q.val() & !self.stores.q.val() & !self.issued.q.val();
        self.writer.take.next = false;
        self.reader.take.next = false;
        self.pick_write.next = self.none.val();
        self.pick_read.next = self.none.val();
        if self.sends.val() {
            self.write_held.d.next = false;
        }
        if self.loads.val() {
            self.read_held.d.next = false;
        }
        if !self.write_held.q.val() & !self.quiesce.val() {
            self.writer.take.next = self.writer.any.val();
            self.write_held.d.next = self.writer.any.val();
            self.write_index.d.next = self.writer.index.val();
            self.pick_write.next = self.writer.grant.val();
        }
        if !self.read_held.q.val() & !self.quiesce.val() {
            self.reader.take.next = self.reader.any.val();
            self.read_held.d.next = self.reader.any.val();
            self.read_index.d.next = self.reader.index.val();
            self.pick_read.next = self.reader.grant.val();
        }

        // Of what is held one line is looked at in a cycle: a store is kept, or is given up as
        // every load is.
        self.holder.requests.next = self.held.val() & self.alive.q.val() & !self.issued.q.val() & !self.kept.q.val();
        self.holder.take.next = false;
        self.finds_store.next = (self.holder.grant.val() & self.stores.q.val()).any();
        self.keeps.next = false;
        self.keep_mask.next = self.none.val();
        self.gives_up.next = self.none.val();
        if self.refuses_load.val() | self.drops_store.val() {
            self.refusing.d.next = false;
        }
        if self.holder.any.val() & !self.refusing.q.val() & !self.quiesce.val() {
            self.holder.take.next = true;
            self.refused_index.d.next = self.holder.index.val();
            self.refused_store.d.next = self.finds_store.val();
            if self.finds_store.val() & (self.kept_count.q.val() < self.held_stores.val()) {
                self.keeps.next = true;
                self.keep_mask.next = self.holder.grant.val();
            } else {
                self.gives_up.next = self.holder.grant.val();
                self.refusing.d.next = true;
            }
        }
        self.kept_lines.next = self.kept.q.val();
        self.unkeeps.next = (self.kept.q.val() & self.leave_write.val()).any();
        self.kept.d.next = (self.kept.q.val() & !self.leave_write.val()) | self.keep_mask.val();
        self.kept_count.d.next = self.kept_count.q.val();
        if self.keeps.val() & !self.unkeeps.val() {
            self.kept_count.d.next = self.kept_count.q.val() + self.one7.val();
        }
        if !self.keeps.val() & self.unkeeps.val() {
            self.kept_count.d.next = self.kept_count.q.val() - self.one7.val();
        }

        // Data of the stores that were granted, in the order of the grants.
        self.granted.write.next = self.sends.val();
        self.granted.data_in.next = self.write_index.q.val();
        self.granted.read.next = self.mem.wdata_ready.val();
        self.data.read_address[0].next = self.granted.data_out.val();
        self.lines.read_address[2].next = self.granted.data_out.val();
        if self.granted.empty.val() {
            self.data.read_address[0].next = self.saved.q.val();
            self.lines.read_address[2].next = self.saved.q.val();
        }
        self.to_send.next = self.lines.read_data[2].val();
        self.mem.wdata.next = self.data.read_data[0].val();
        self.mem.wstrb.next = self.to_send.val().strobes;

        // Lines.
        self.enter_mask.next = self.none.val();
        if self.ins_valid.val() {
            self.enter_mask.next = self.spare_mask.q.val();
        }
        self.alive.d.next =
            (self.alive.q.val() & !self.leave_write.val() & !self.leave_read.val()) | self.enter_mask.val();
        self.issued.d.next = (self.issued.q.val() & !self.enter_mask.val())
            | self.pick_write.val()
            | self.pick_read.val()
            | self.gives_up.val();
        self.stores.d.next = self.stores.q.val() & !self.enter_mask.val();
        if self.ins_write.val() {
            self.stores.d.next = self.stores.q.val() | self.enter_mask.val();
        }
        self.data.write_enable.next = self.ins_valid.val();
        self.data.write_address.next = self.spare_index.q.val();
        self.data.write_data.next = self.ins_data.val();
        self.lines.write_enable.next = self.ins_valid.val();
        self.lines.write_address.next = self.spare_index.q.val();
        self.lines.write_data.next = self.no_line.val();
        self.lines.write_data.next.line = self.ins_line.val();
        self.lines.write_data.next.strobes = self.ins_strb.val();
        self.lines.write_data.next.id = self.ins_id.val();
        self.lines.write_data.next.order = self.ins_order.val();
        self.quiet.next =
            (self.write_tags.q.val() == !self.none8.val()) & self.granted.empty.val() & !self.reading.q.val().any();

        // Save read-out.
        self.saved.d.next = self.save_index.val();
        self.saved_stores.next = (self.alive.q.val() & self.stores.q.val()) >> self.saved.q.val();
        self.save_valid.next = self.saved_stores.val().get_bit(0);
        self.save_line.next = self.to_send.val().line;
        self.save_strb.next = self.to_send.val().strobes;
        self.save_order.next = self.to_send.val().order;
        self.save_data.next = self.data.read_data[0].val();
        if self.reset.val() {
            self.write_held.d.next = false;
            self.read_held.d.next = false;
            self.refusing.d.next = false;
            self.has_refused.d.next = false;
            self.has_lost.d.next = false;
        }
    }
}
