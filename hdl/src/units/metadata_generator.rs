//! Head lines of log entries.

use crate::bundles::Work;
use crate::cells::crc32c_block::{advance, retreat};
use crate::cells::{AsyncRam, Concat, Crc32cBlock, Fifo, Register, clocked};
use crate::dut::Ports;
use crate::dut::{PortValue, Value};
use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead};
use nearpm_interface::seal::HEAD_COVERED;
use rust_hdl::core::timing::TimingInfo;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Puts the fields of a head in their places and keeps them. The checksum is zero.
#[derive(LogicBlock, Default, Ports)]
pub struct HeadFields {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Take the fields at the next edge.
    pub enable: Signal<In, Bit>,
    /// The command.
    pub work: Signal<In, Work>,
    /// Code of the kind of entry.
    pub kind: Signal<In, Bits<8>>,
    /// Pool offset of the logged range.
    pub object: Signal<In, Bits<64>>,
    /// The head line, from the edge on.
    pub line: Signal<Out, Bits<512>>,
}

impl Logic for HeadFields {
    fn update(&mut self) {
        if !(self.clock.pos_edge() && self.enable.val()) {
            return;
        }
        let work = self.work.val();
        let head = EntryHead {
            magic: ENTRY_MAGIC,
            kind: self.kind.val().to_u64() as u8,
            version: ENTRY_VERSION,
            thread: work.thread.to_u64() as u16,
            sequence: work.sequence.to_u64(),
            txid: work.txid.to_u64(),
            offset: self.object.val().to_u64(),
            length: work.length.to_u64() as u32,
            pool: work.pool.to_u64() as u32,
            participants: work.participants.to_u64() as u32,
            ..EntryHead::default()
        };
        self.line.next = PortValue::from_value(Value::from_bytes(&head.to_bytes()));
    }

    fn connect(&mut self) {
        self.line.connect();
    }

    fn hdl(&self) -> Verilog {
        let work = Work::default();
        let part = |low: usize, bits: usize| format!("work[{low} +: {bits}]");
        let mut code = String::from("initial line = 512'd0;\nalways @(posedge clock) if (enable) begin\n");
        for field in EntryHead::LAYOUT.fields {
            let value = match field.name {
                "magic" => format!("32'h{ENTRY_MAGIC:x}"),
                "kind" => "kind".into(),
                "version" => format!("8'd{ENTRY_VERSION}"),
                "thread" => part(work.get_my_offset_thread(), 16),
                "sequence" => part(work.get_my_offset_sequence(), 64),
                "txid" => part(work.get_my_offset_txid(), 64),
                "offset" => "object".into(),
                "length" => format!("{{13'd0, {}}}", part(work.get_my_offset_length(), 19)),
                "pool" => part(work.get_my_offset_pool(), 32),
                "participants" => part(work.get_my_offset_participants(), 32),
                "reserved" | "crc" => format!("{}'d0", field.size * 8),
                other => unreachable!("the generator does not know the field {other} of a head"),
            };
            code += &format!("    line[{} +: {}] <= {value};\n", field.offset * 8, field.size * 8);
        }
        Verilog::Custom(code + "end\n")
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("head_fields", &["enable", "work", "kind", "object"], &["line"])
    }
}

/// Seals a head and keeps it: an XOR of about 32 bits before the register.
///
/// A CRC is linear over XOR, so the state behind data and head is the state behind the head alone,
/// plus what the data changed in the initial state (which is the CRC of the data), moved on over
/// the head. `line` carries the state behind the head alone in the place of the checksum. That was
/// computed over 64 bytes, the last four zero; stepping back over them is linear as well.
#[derive(LogicBlock, Default, Ports)]
pub struct HeadSeal {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Seal the head at the next edge.
    pub enable: Signal<In, Bit>,
    /// The head, with the state in the place of its checksum.
    pub line: Signal<In, Bits<512>>,
    /// CRC-32C of the data lines.
    pub crc: Signal<In, Bits<32>>,
    /// The sealed head, from the edge on.
    pub head: Signal<Out, Bits<512>>,
}

/// Bits of a head that its checksum covers.
const COVERED_BITS: usize = HEAD_COVERED * 8;

impl Logic for HeadSeal {
    fn update(&mut self) {
        if !(self.clock.pos_edge() && self.enable.val()) {
            return;
        }
        let line = self.line.val().to_value();
        let state = line.slice(COVERED_BITS, 32).to_u64() as u32;
        let moved = advance(self.crc.val().to_u64() as u32, COVERED_BITS);
        let sum = !(retreat(state, LINE * 8 - COVERED_BITS) ^ moved);
        self.head.next = PortValue::from_value(line.with_slice(COVERED_BITS, 32, u64::from(sum)));
    }

    fn connect(&mut self) {
        self.head.connect();
    }

    fn hdl(&self) -> Verilog {
        let mut code = String::from("initial head = 512'd0;\nalways @(posedge clock) if (enable) begin\n");
        code += &format!("    head[{}:0] <= line[{}:0];\n", COVERED_BITS - 1, COVERED_BITS - 1);
        for row in 0..32 {
            let taps = |matrix: fn(u32, usize) -> u32, bits: usize| {
                let taps = (0..32).filter(|bit| matrix(1 << bit, bits) >> row & 1 == 1);
                taps.fold(0u32, |mask, bit| mask | 1 << bit)
            };
            let (back, on) = (taps(retreat, LINE * 8 - COVERED_BITS), taps(advance, COVERED_BITS));
            let at = COVERED_BITS + row;
            code += &format!(
                "    head[{at}] <= ~(^(line[511:{COVERED_BITS}] & 32'h{back:08x}) ^ ^(crc & 32'h{on:08x}));\n"
            );
        }
        Verilog::Custom(code + "end\n")
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("head_seal", &["enable", "line", "crc"], &["head"])
    }
}

/// The head that is computed, the head that is written, and how far copies are.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct State {
    busy: Bit,
    feed: Bit,
    computed: Bit,
    last1: Bit,
    last2: Bit,
    last3: Bit,
    /// A head was asked for in the cycle before, over the copy `sealed`.
    taking: Bit,
    ready: Bit,
    summed: Bits<4>,
    started: Bits<4>,
    sealed: Bits<4>,
}

/// Builds the head lines of log entries and seals them over the data of the copies before them.
///
/// Guarantees: heads come in the order in which they were asked for, each sealed over the last copy
/// that was started before it is taken. Bound: a head may be taken two cycles after the last line
/// of its copy, while its sum is finished; three heads at a time, then `generate_ready` is low. At
/// most seven copies are summed and not started.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct MetadataGenerator {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,

    /// A head is asked for.
    pub generate_valid: Signal<In, Bit>,
    /// The head is taken on.
    pub generate_ready: Signal<Out, Bit>,
    /// Its command.
    pub work: Signal<In, Work>,
    /// Pool offset of its object.
    pub object: Signal<In, Bits<64>>,
    /// Code of its kind.
    pub kind: Signal<In, Bits<8>>,

    /// A line of a copy arrives.
    pub line_valid: Signal<In, Bit>,
    /// The first of its copy.
    pub line_first: Signal<In, Bit>,
    /// The last of its copy.
    pub line_last: Signal<In, Bit>,
    /// The line, zero outside of the range.
    pub line: Signal<In, Bits<512>>,
    /// A copy begins to be written.
    pub copy_started: Signal<In, Bit>,

    /// `head_take` is allowed.
    pub head_ready: Signal<Out, Bit>,
    /// Put the next head on `head` at the edge behind the next one.
    pub head_take: Signal<In, Bit>,
    /// The head; stays until it is written.
    pub head: Signal<Out, Bits<512>>,
    /// The head is written.
    pub head_written: Signal<In, Bit>,

    fields: HeadFields,
    own_crc: Crc32cBlock,
    joined: Concat<32, 480, 512>,
    heads: Fifo<Bits<512>, 1, 2>,
    data_crc: Crc32cBlock,
    /// CRC of the data of copies, by number.
    sums: AsyncRam<Bits<32>, 3, 1>,
    seal: HeadSeal,
    state: Register<State>,

    summed: Signal<Local, Bits<4>>,
    started: Signal<Local, Bits<4>>,
    ahead: Signal<Local, Bits<4>>,
    wanted: Signal<Local, Bits<4>>,
    sealed: Signal<Local, Bits<4>>,
    soon: Signal<Local, Bit>,
    bypass: Signal<Local, Bit>,
    #[default(Constant::new(1.into()))]
    one4: Constant<Bits<4>>,
}

impl Logic for MetadataGenerator {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, fields, own_crc, heads, data_crc, sums, seal, state);
        self.own_crc.reset.next = self.reset.val();
        self.heads.reset.next = self.reset.val();
        self.data_crc.reset.next = self.reset.val();
        self.state.reset.next = self.reset.val();
        self.state.enable.next = true;
        self.state.d.next = self.state.q.val();

        // The head alone.
        self.generate_ready.next = !self.state.q.val().busy;
        self.fields.work.next = self.work.val();
        self.fields.kind.next = self.kind.val();
        self.fields.object.next = self.object.val();
        self.fields.enable.next = self.generate_valid.val() & !self.state.q.val().busy;
        self.own_crc.valid.next = self.state.q.val().feed;
        self.own_crc.first.next = true;
        self.own_crc.block.next = self.fields.line.val();
        self.state.d.next.feed = false;
        if self.fields.enable.val() {
            self.state.d.next.busy = true;
            self.state.d.next.feed = true;
        }
        if self.own_crc.done.val() {
            self.state.d.next.computed = true;
        }
        self.joined.high.next = self.own_crc.state.val();
        self.joined.low.next = self.fields.line.val().get_bits::<480>(0);
        self.heads.data_in.next = self.joined.o.val();
        self.heads.write.next = self.state.q.val().computed & !self.heads.full.val();
        if self.heads.write.val() {
            self.state.d.next.computed = false;
            self.state.d.next.busy = false;
        }

        // The data. `summed` and `started` number the copies.
        self.data_crc.valid.next = self.line_valid.val();
        self.data_crc.first.next = self.line_first.val();
        self.data_crc.block.next = self.line.val();
        self.state.d.next.last1 = self.line_valid.val() & self.line_last.val();
        self.state.d.next.last2 = self.state.q.val().last1;
        self.state.d.next.last3 = self.state.q.val().last2;
        self.summed.next = self.state.q.val().summed;
        self.started.next = self.state.q.val().started;
        self.sums.write_enable.next = self.state.q.val().last3;
        self.sums.write_address.next = self.summed.val().get_bits::<3>(0);
        self.sums.write_data.next = self.data_crc.crc.val();
        if self.state.q.val().last3 {
            self.state.d.next.summed = self.summed.val() + self.one4.val();
        }
        if self.copy_started.val() {
            self.state.d.next.started = self.started.val() + self.one4.val();
        }

        // The seal over both.
        self.wanted.next = self.started.val() - self.one4.val();
        self.ahead.next = self.summed.val() - self.started.val();
        self.soon.next =
            (self.state.q.val().last2 | self.state.q.val().last3) & (self.summed.val() == self.wanted.val());
        self.head_ready.next = !self.heads.empty.val()
            & !self.state.q.val().taking
            & !self.state.q.val().ready
            & (!self.ahead.val().get_bit(3) | self.soon.val());
        // Sealed in the cycle after it was taken, in which the sum is there at the latest; another
        // copy may have started by then.
        self.sealed.next = self.state.q.val().sealed;
        self.bypass.next = self.state.q.val().last3 & (self.summed.val() == self.sealed.val());
        self.heads.read.next = self.state.q.val().taking;
        self.sums.read_address[0].next = self.sealed.val().get_bits::<3>(0);
        self.seal.line.next = self.heads.data_out.val();
        self.seal.crc.next = self.sums.read_data[0].val();
        if self.bypass.val() {
            self.seal.crc.next = self.data_crc.crc.val();
        }
        self.seal.enable.next = self.state.q.val().taking;
        self.head.next = self.seal.head.val();
        if self.head_written.val() {
            self.state.d.next.ready = false;
        }
        self.state.d.next.taking = self.head_take.val();
        if self.head_take.val() {
            self.state.d.next.sealed = self.wanted.val();
        }
        if self.state.q.val().taking {
            self.state.d.next.ready = true;
        }
    }
}
