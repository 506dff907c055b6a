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
            left,
            bytes,
            lane,
            low_bits,
            refused,
            poisoned_count
        );
        self.is_shut.next = self.link_down.val() | self.resetting.q.val();
        self.shut.next = self.is_shut.val();
        self.idle.next = self.phase.q.val() == Phase::Idle;

        // What the request says.
        self.kind.next = self.request.q.val().get_bits::<4>(75);
        self.bar.next = self.request.q.val().get_bits::<3>(112);
        self.known.next = (self.bar.val() == self.pm_bar.val())
            | (self.bar.val() == self.command_bar.val())
            | (self.bar.val() == self.register_bar.val())
            | (self.bar.val() == self.msix_bar.val());
        // The block passes poisoned data on where it is set to (AXISTEN_IF_CQ_EN_POISONED_MEM_WR).
        // A memory read has no data; of other requests the mark is believed.
        self.is_poisoned.next = self.request.q.val().get_bit(79) & (self.kind.val() != self.read_type.val());
        self.poisoned.next = self.poisoned_count.q.val();
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
        self.advance.next = self.access_ready.val() | !self.strobes.q.val().any();
        // The next beat is taken with the line before it; behind the last one, what it has for the
        // next line is written.
        self.takes_beat.next = self.cq_tvalid.val()
            & !self.is_shut.val()
            & ((self.phase.q.val() == Phase::WriteBeat)
                | ((self.phase.q.val() == Phase::WriteLine) & self.advance.val() & !self.last.q.val()));
        self.flushes.next =
            (self.phase.q.val() == Phase::WriteLine) & self.advance.val() & self.last.q.val() & !self.flushed.q.val();
        self.discontinue.next = self.cq_tuser.val().get_bit(96);
        self.payload.next = self.cq_tuser.val().get_bits::<64>(16);
        if self.cq_tuser.val().get_bit(80) {
            self.payload.next = self.cq_tuser.val().get_bits::<64>(16) & self.behind_descriptor.val();
        }
        if self.discontinue.val() | ((self.phase.q.val() == Phase::WriteLine) & self.last.q.val()) {
            self.payload.next = self.zero64.val();
        }
        self.align.data.next = self.cq_tdata.val();
        self.align.enables.next = self.payload.val();
        self.align.rotation.next = self.rotation.q.val();
        self.align.earlier.next = self.earlier.q.val();
        self.align.earlier_enables.next = self.earlier_enables.q.val();
        self.next_line.next = self.line.q.val() + self.one34.val();

        // Reads, line after line.
        self.shape.lane.next = self.lane.q.val().get_bits::<4>(0);
        self.shape.left.next = self.left.q.val();

        self.access_write.next = self.phase.q.val() == Phase::WriteLine;
        self.access_bar.next = self.bar.val();
        self.access_data.next = self.data.q.val();
        self.access_strobes.next = self.strobes.q.val();
        self.access_line.next = self.line.q.val();
        self.access_lanes.next = self.shape.lanes.val();
        self.access_valid.next = !self.is_shut.val()
            & (((self.phase.q.val() == Phase::WriteLine) & self.strobes.q.val().any())
                | (self.phase.q.val() == Phase::ReadLine));

        // What is to be answered.
        self.owe.next = (self.phase.q.val() == Phase::Tell) & !self.is_shut.val();
        self.owed.next.request = self.request.q.val();
        self.owed.next.first_enables = self.first_enables.q.val();
        self.owed.next.last_enables = self.last_enables.q.val();
        self.owed.next.lane = self.lane.q.val();
        self.owed.next.low_bits = self.low_bits.q.val();
        self.owed.next.left = self.left.q.val();
        self.owed.next.bytes = self.bytes.q.val();
        self.owed.next.refused = self.refused.q.val();

        // The next request begins in the cycle in which the one before it has asked for all.
        self.is_over.next = ((self.phase.q.val() == Phase::WriteLine) & self.advance.val() & self.flushed.q.val())
            | ((self.phase.q.val() == Phase::ReadLine) & self.access_ready.val() & !self.shape.more.val());
        self.begins.next =
            self.cq_tvalid.val() & !self.hold.val() & ((self.phase.q.val() == Phase::Idle) | self.is_over.val());

        self.cq_tready.next = self.takes_beat.val();
        self.unsupported.next = false;
        match self.phase.q.val() {
            Phase::Decide => {
                self.rotation.d.next = self.first_lane.val() - self.descriptor.val();
                self.earlier_enables.d.next = self.zero64.val();
                self.flushed.d.next = false;
                self.left.d.next = self.count.dwords.val();
                self.lane.d.next = self.offset.offset.val().get_bits::<5>(2);
                self.low_bits.d.next = self.count.offset.val();
                self.bytes.d.next = self.count.bytes.val();
                self.refused.d.next = false;
                self.line.d.next = self.offset_line.val();
                if self.is_poisoned.val() & !self.is_shut.val() {
                    self.poisoned_count.d.next = self.poisoned_count.q.val() + self.one32.val();
                }
                if (self.kind.val() == self.write_type.val()) & self.is_poisoned.val() {
                    self.phase.d.next = Phase::Drain;
                } else if (self.kind.val() == self.write_type.val()) & self.known.val() {
                    self.line.d.next = self.write_line.val();
                    self.phase.d.next = Phase::WriteBeat;
                } else if (self.kind.val() == self.read_type.val()) & self.known.val() {
                    self.cq_tready.next = true;
                    self.phase.d.next = Phase::Tell;
                } else {
                    self.unsupported.next = true;
                    self.refused.d.next = true;
                    if self.kind.val() != self.read_type.val() {
                        self.bytes.d.next = self.four_bytes.val();
                        self.lane.d.next = self.zero5.val();
                        self.low_bits.d.next = self.zero2.val();
                    }
                    self.phase.d.next = Phase::Drain;
                    if (self.kind.val() != self.write_type.val()) & (self.kind.val() < self.message_type.val()) {
                        self.phase.d.next = Phase::Tell;
                    }
                }
            }
            Phase::WriteBeat => {
                if self.takes_beat.val() {
                    self.phase.d.next = Phase::WriteLine;
                }
            }
            Phase::WriteLine => {
                if self.advance.val() {
                    self.line.d.next = self.next_line.val();
                    if !self.last.q.val() & !self.takes_beat.val() {
                        self.phase.d.next = Phase::WriteBeat;
                    }
                    if self.flushed.q.val() {
                        self.phase.d.next = Phase::Idle;
                    }
                }
            }
            Phase::Tell => {
                if !self.owe_full.val() {
                    self.phase.d.next = Phase::ReadLine;
                    if self.refused.q.val() {
                        self.phase.d.next = Phase::Drain;
                    }
                }
            }
            Phase::ReadLine => {
                if self.access_ready.val() {
                    self.line.d.next = self.next_line.val();
                    self.left.d.next = self.shape.rest.val();
                    self.lane.d.next = self.zero5.val();
                    if !self.shape.more.val() {
                        self.phase.d.next = Phase::Idle;
                    }
                }
            }
            Phase::Drain => {
                self.cq_tready.next = true;
                if self.cq_tvalid.val() & self.cq_tlast.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.takes_beat.val() {
            self.earlier.d.next = self.align.turned.val();
            self.earlier_enables.d.next = self.align.turned_enables.val();
            self.last.d.next = self.cq_tlast.val();
        }
        if self.takes_beat.val() | self.flushes.val() {
            self.data.d.next = self.align.line.val();
            self.strobes.d.next = self.align.strobes.val();
        }
        if self.flushes.val() {
            self.flushed.d.next = true;
        }
        if self.begins.val() {
            self.request.d.next = self.cq_tdata.val().get_bits::<128>(0);
            self.first_enables.d.next = self.cq_tuser.val().get_bits::<4>(0);
            self.last_enables.d.next = self.cq_tuser.val().get_bits::<4>(8);
            self.phase.d.next = Phase::Decide;
        }
        // What the host had asked is forgotten, but no port of the card is left in the middle of an
        // access.
        self.resetting.d.next = self.link_down.val() | (self.resetting.q.val() & !self.access_idle.val());
        if self.is_shut.val() {
            self.cq_tready.next = false;
            self.unsupported.next = false;
            self.phase.d.next = Phase::Idle;
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
            self.resetting.d.next = false;
            self.poisoned_count.d.next = self.zero32.val();
        }
    }
}
