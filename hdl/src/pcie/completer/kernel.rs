//! What Completer does in a cycle. One kernel, since rust-hdl knows no functions in it.

use super::{Completer, Phase};
use rust_hdl::prelude::*;

impl Logic for Completer {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            resetting,
            request,
            first_enables,
            last_enables,
            line,
            rotation,
            earlier,
            earlier_enables,
            data,
            strobes,
            last,
            flushed,
            answers,
            left,
            bytes,
            lane,
            low_bits,
            low,
            high,
            beat,
            status
        );
        self.shut.next = self.link_down.val() | self.resetting.q.val();

        self.idle.next = self.phase.q.val() == Phase::Idle;

        // What the request says.
        self.kind.next = self.request.q.val().get_bits::<4>(75);
        self.bar.next = self.request.q.val().get_bits::<3>(112);
        self.known.next = (self.bar.val() == self.pm_bar.val())
            | (self.bar.val() == self.command_bar.val())
            | (self.bar.val() == self.register_bar.val())
            | (self.bar.val() == self.msix_bar.val());
        self.offset.address.next = self.request.q.val().get_bits::<62>(2);
        self.offset.aperture.next = self.request.q.val().get_bits::<6>(115);
        self.offset_line.next = self.offset.offset.val().get_bits::<34>(6);
        self.first_lane.next = self.offset.offset.val().get_bits::<4>(2);
        self.count.dwords.next = self.request.q.val().get_bits::<11>(64);
        self.count.first.next = self.first_enables.q.val();
        self.count.last.next = self.last_enables.q.val();

        // Writes. What stands in front of the payload would belong to the line below.
        self.write_line.next = self.offset_line.val();
        if self.first_lane.val() < self.descriptor.val() {
            self.write_line.next = self.offset_line.val() - self.one34.val();
        }
        self.discontinue.next = self.cq_tuser.val().get_bit(96);
        self.payload.next = self.cq_tuser.val().get_bits::<64>(16);
        if self.cq_tuser.val().get_bit(80) {
            self.payload.next = self.cq_tuser.val().get_bits::<64>(16) & self.behind_descriptor.val();
        }
        if self.discontinue.val() | (self.phase.q.val() != Phase::WriteBeat) {
            self.payload.next = self.zero64.val();
        }
        self.align.data.next = self.cq_tdata.val();
        self.align.enables.next = self.payload.val();
        self.align.rotation.next = self.rotation.q.val();
        self.align.earlier.next = self.earlier.q.val();
        self.align.earlier_enables.next = self.earlier_enables.q.val();
        self.next_line.next = self.line.q.val() + self.one34.val();
        self.next_block.next = self.line.q.val() + self.two34.val();

        // Reads.
        self.shape.lane.next = self.lane.q.val();
        self.shape.left.next = self.left.q.val();
        self.block_dwords.i.next = self.shape.dwords.val();
        self.block_bytes.high.next = self.block_dwords.o.val();
        self.block_bytes.low.next = self.zero2.val();
        self.offset_bytes.i.next = self.low_bits.q.val();
        self.left_next.next = self.left.q.val() - self.block_dwords.o.val();
        self.bytes_next.next = self.bytes.q.val() - self.block_bytes.o.val() + self.offset_bytes.o.val();
        self.in_low.next = self.phase.q.val() == Phase::ReadLow;

        self.access_write.next = self.phase.q.val() == Phase::WriteLine;
        self.access_bar.next = self.bar.val();
        self.access_data.next = self.data.q.val();
        self.access_strobes.next = self.strobes.q.val();
        self.access_line.next = self.line.q.val();
        self.access_lanes.next = self.shape.low.val();
        if self.phase.q.val() == Phase::ReadHigh {
            self.access_line.next = self.next_line.val();
            self.access_lanes.next = self.shape.high.val();
        }
        self.asks.next = ((self.phase.q.val() == Phase::WriteLine) & self.strobes.q.val().any())
            | (self.in_low.val() & self.shape.low.val().any())
            | (self.phase.q.val() == Phase::ReadHigh);
        self.access_valid.next = self.asks.val();

        // Completions.
        self.lower.high.next = self.lane.q.val();
        self.lower.low.next = self.low_bits.q.val();
        self.header.request.next = self.request.q.val();
        self.header.lower.next = self.lower.o.val();
        self.header.bytes.next = self.bytes.q.val();
        self.header.status.next = self.status.q.val();
        self.header.dwords.next = self.shape.dwords.val();
        self.beats.header.next = self.header.header.val();
        self.beats.low.next = self.low.q.val();
        self.beats.high.next = self.high.q.val();
        self.beats.lane.next = self.lane.q.val();
        self.beats.dwords.next = self.shape.dwords.val();
        self.beats.beat.next = self.beat.q.val();
        self.end_lane.high.next = self.zero4.val();
        self.end_lane.low.next = self.neither.val();
        if !self.beat.q.val().any() {
            self.end_lane.low.next = self.is_sop.val();
        }
        if self.beats.last.val() {
            self.end_lane.high.next = self.beats.ending.val();
            self.end_lane.low.next = self.is_eop.val();
            if !self.beat.q.val().any() {
                self.end_lane.low.next = self.is_both.val();
            }
        }
        self.beat_user.i.next = self.end_lane.o.val();
        self.enables.high.next = self.last_enables.q.val();
        self.enables.low.next = self.first_enables.q.val();
        self.enables_dword.i.next = self.enables.o.val();
        self.refusal.high.next = self.enables_dword.o.val();
        self.refusal.low.next = self.header.header.val();
        self.refusal_beat.high.next = self.request.q.val();
        self.refusal_beat.low.next = self.refusal.o.val();
        self.refusal_data.i.next = self.refusal_beat.o.val();
        self.refusal_user.i.next = self.whole_packet.val();
        self.cc_tdata.next = self.beats.data.val();
        self.cc_tkeep.next = self.beats.keep.val();
        self.cc_tlast.next = self.beats.last.val();
        self.cc_tuser.next = self.beat_user.o.val();
        if self.phase.q.val() == Phase::Refuse {
            self.header.dwords.next = self.zero6.val();
            self.cc_tdata.next = self.refusal_data.o.val();
            self.cc_tkeep.next = self.refusal_keep.val();
            self.cc_tlast.next = true;
            self.cc_tuser.next = self.refusal_user.o.val();
        }
        self.cc_tvalid.next =
            ((self.phase.q.val() == Phase::Send) | (self.phase.q.val() == Phase::Refuse)) & !self.shut.val();

        self.cq_tready.next = false;
        self.unsupported.next = false;
        self.advance.next = self.access_done.val() | !self.strobes.q.val().any();
        self.read_done.next = !self.left_next.val().any();
        match self.phase.q.val() {
            Phase::Idle => {
                self.request.d.next = self.cq_tdata.val().get_bits::<128>(0);
                self.first_enables.d.next = self.cq_tuser.val().get_bits::<4>(0);
                self.last_enables.d.next = self.cq_tuser.val().get_bits::<4>(8);
                if self.cq_tvalid.val() & !self.hold.val() {
                    self.phase.d.next = Phase::Decide;
                }
            }
            Phase::Decide => {
                self.rotation.d.next = self.first_lane.val() - self.descriptor.val();
                self.earlier_enables.d.next = self.zero64.val();
                self.flushed.d.next = false;
                self.left.d.next = self.count.dwords.val();
                self.lane.d.next = self.offset.offset.val().get_bits::<5>(2);
                self.low_bits.d.next = self.count.offset.val();
                self.bytes.d.next = self.count.bytes.val();
                self.beat.d.next = self.zero2.val();
                self.status.d.next = self.success.val();
                self.answers.d.next = false;
                if (self.kind.val() == self.write_type.val()) & self.known.val() {
                    self.line.d.next = self.write_line.val();
                    self.phase.d.next = Phase::WriteBeat;
                } else if (self.kind.val() == self.read_type.val()) & self.known.val() {
                    self.line.d.next = (self.offset_line.val() >> self.one34.val()) << self.one34.val();
                    self.cq_tready.next = true;
                    self.phase.d.next = Phase::ReadLow;
                } else {
                    self.unsupported.next = true;
                    self.status.d.next = self.unsupported_status.val();
                    self.answers.d.next =
                        (self.kind.val() != self.write_type.val()) & (self.kind.val() < self.message_type.val());
                    if self.kind.val() != self.read_type.val() {
                        self.bytes.d.next = self.four_bytes.val();
                        self.lane.d.next = self.zero5.val();
                        self.low_bits.d.next = self.zero2.val();
                    }
                    self.phase.d.next = Phase::Drain;
                }
            }
            Phase::WriteBeat => {
                if self.cq_tvalid.val() {
                    self.cq_tready.next = true;
                    self.data.d.next = self.align.line.val();
                    self.strobes.d.next = self.align.strobes.val();
                    self.earlier.d.next = self.align.turned.val();
                    self.earlier_enables.d.next = self.align.turned_enables.val();
                    self.last.d.next = self.cq_tlast.val();
                    self.phase.d.next = Phase::WriteLine;
                }
            }
            Phase::WriteLine => {
                if self.advance.val() {
                    self.line.d.next = self.next_line.val();
                    self.phase.d.next = Phase::WriteBeat;
                    if self.last.q.val() {
                        // What the last beat has for the next line.
                        self.data.d.next = self.align.line.val();
                        self.strobes.d.next = self.align.strobes.val();
                        self.flushed.d.next = true;
                        self.phase.d.next = Phase::WriteLine;
                    }
                    if self.flushed.q.val() {
                        self.phase.d.next = Phase::Idle;
                    }
                }
            }
            Phase::Drain => {
                self.cq_tready.next = true;
                if self.cq_tvalid.val() & self.cq_tlast.val() {
                    self.phase.d.next = Phase::Idle;
                    if self.answers.q.val() {
                        self.phase.d.next = Phase::Refuse;
                    }
                }
            }
            Phase::ReadLow => {
                self.low.d.next = self.access_read.val();
                if !self.shape.low.val().any() {
                    self.phase.d.next = Phase::ReadHigh;
                } else if self.access_done.val() {
                    self.phase.d.next = Phase::Send;
                    if self.shape.high.val().any() {
                        self.phase.d.next = Phase::ReadHigh;
                    }
                    if self.access_error.val() {
                        self.status.d.next = self.abort.val();
                        self.phase.d.next = Phase::Refuse;
                    }
                }
            }
            Phase::ReadHigh => {
                self.high.d.next = self.access_read.val();
                if self.access_done.val() {
                    self.phase.d.next = Phase::Send;
                    if self.access_error.val() {
                        self.status.d.next = self.abort.val();
                        self.phase.d.next = Phase::Refuse;
                    }
                }
            }
            Phase::Send => {
                if self.cc_tready.val() {
                    self.beat.d.next = self.beat.q.val() + self.one2.val();
                    if self.beats.last.val() {
                        self.beat.d.next = self.zero2.val();
                        self.left.d.next = self.left_next.val();
                        self.bytes.d.next = self.bytes_next.val();
                        self.lane.d.next = self.zero5.val();
                        self.low_bits.d.next = self.zero2.val();
                        self.line.d.next = self.next_block.val();
                        self.phase.d.next = Phase::ReadLow;
                        if self.read_done.val() {
                            self.phase.d.next = Phase::Idle;
                        }
                    }
                }
            }
            Phase::Refuse => {
                if self.cc_tready.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        // What the host had asked is forgotten, but no port of the card is left in the middle of an access.
        self.resetting.d.next =
            self.link_down.val() | (self.resetting.q.val() & self.asks.val() & !self.access_done.val());
        if self.shut.val() {
            self.cq_tready.next = false;
            self.unsupported.next = false;
            if !self.asks.val() | self.access_done.val() {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
            self.resetting.d.next = false;
        }
    }
}
