//! What the buffer does in a cycle.

use super::PersistBuffer;
use rust_hdl::prelude::*;

impl<const W: usize, const V: usize, const K: usize, const L: usize, const A: usize> Logic
    for PersistBuffer<W, V, K, L, A>
{
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, kinds, masks, lines, places, last_orders, order_flags);
        clock!(self, clock, head, tail, is_full, flushing, ordering, evicting, outstanding);
        clock!(self, clock, heads_turn, asked, asked_kind, asked_warp, asked_line, asked_place);
        self.last_orders.reset.next = self.reset.val();
        self.order_flags.reset.next = self.reset.val();
        self.head.reset.next = self.reset.val();
        self.tail.reset.next = self.reset.val();
        self.is_full.reset.next = self.reset.val();
        self.flushing.reset.next = self.reset.val();
        self.ordering.reset.next = self.reset.val();
        self.evicting.reset.next = self.reset.val();
        self.outstanding.reset.next = self.reset.val();
        self.heads_turn.reset.next = self.reset.val();
        self.asked.reset.next = self.reset.val();
        self.asked_kind.reset.next = self.reset.val();
        self.asked_warp.reset.next = self.reset.val();
        self.asked_line.reset.next = self.reset.val();
        self.asked_place.reset.next = self.reset.val();

        // Turns. In the head's a request is taken, and the entry of its line looked up.
        self.heads_turn.enable.next = true;
        self.heads_turn.d.next = !self.heads_turn.q.val();
        self.request_ready.next = self.heads_turn.q.val() & !self.reset.val();
        self.asked.enable.next = true;
        self.asked.d.next = self.heads_turn.q.val() & self.request_valid.val();
        self.asked_kind.enable.next = self.heads_turn.q.val();
        self.asked_kind.d.next = self.request_kind.val();
        self.asked_warp.enable.next = self.heads_turn.q.val();
        self.asked_warp.d.next = self.request_warp.val();
        self.asked_line.enable.next = self.heads_turn.q.val();
        self.asked_line.d.next = self.request_line.val();
        self.places.read_address[0].next = self.request_line.val();
        self.asked_place.enable.next = self.heads_turn.q.val();
        self.asked_place.d.next = self.places.read_data[0].val();

        // What is asked for.
        self.is_persist.next = self.asked.q.val() & (self.asked_kind.q.val() == self.persist_kind.val());
        self.is_eviction.next = self.asked.q.val() & (self.asked_kind.q.val() == self.evicted_kind.val());
        self.is_order.next = self.asked.q.val()
            & (self.asked_kind.q.val() != self.persist_kind.val())
            & (self.asked_kind.q.val() != self.evicted_kind.val());
        self.holds.next = (self.asked_kind.q.val() == self.release_device_kind.val())
            | (self.asked_kind.q.val() == self.dfence_kind.val());
        self.warp_bit.next = self.one_warp.val() << self.asked_warp.q.val();

        // The entry that is looked at: the head, in the other turn the newest for an order, else
        // that of the line.
        self.used.next = self.tail.q.val() - self.head.q.val();
        self.empty.next = !self.is_full.q.val() & !self.used.val().any();
        self.next_tail.next = self.tail.q.val() + self.one_place.val();
        self.newest.next = self.tail.q.val() - self.one_place.val();
        self.place.next = self.asked_place.q.val();
        if self.is_order.val() {
            self.place.next = self.newest.val();
        }
        if self.heads_turn.q.val() {
            self.place.next = self.head.q.val();
        }
        self.kinds.read_address[0].next = self.place.val();
        self.masks.read_address[0].next = self.place.val();
        self.lines.read_address[0].next = self.place.val();
        self.entry_kind.next = self.kinds.read_data[0].val();
        self.entry_mask.next = self.masks.read_data[0].val();
        self.offset.next = self.place.val() - self.head.q.val();
        self.in_queue.next = self.is_full.q.val() | (self.offset.val() < self.used.val());
        self.hit.next = self.in_queue.val()
            & (self.entry_kind.val() == self.persist_kind.val())
            & (self.lines.read_data[0].val() == self.asked_line.q.val());

        // A persist whose line has an entry before an order of its warp waits until that has left,
        // or nothing is outstanding.
        self.last_orders.warp.next = self.asked_warp.q.val();
        self.order_offset.next = self.last_orders.place.val() - self.head.q.val();
        self.behind_order.next = self.last_orders.known.val() & (self.offset.val() < self.order_offset.val());
        self.waits.next = self.is_persist.val() & self.hit.val() & self.behind_order.val();
        self.merge.next = (self.asked_kind.q.val() == self.ofence_kind.val())
            & !self.empty.val()
            & (self.entry_kind.val() == self.ofence_kind.val());
        self.share.next = (self.is_persist.val() & self.hit.val() & !self.behind_order.val())
            | (self.is_order.val() & self.merge.val());
        self.wants_entry.next = (self.is_persist.val() & !self.hit.val()) | (self.is_order.val() & !self.merge.val());
        self.push.next = self.wants_entry.val() & !self.is_full.q.val();

        // Counting of what is outstanding. Marks count while something is.
        self.none_outstanding.next = !self.outstanding.q.val().any();
        self.can_count.next = self.outstanding.q.val() != self.most_flushes.val();
        self.marks.next = self.flushing.q.val();
        if self.none_outstanding.val() {
            self.marks.next = self.no_warp.val();
        }
        self.marked.next = (self.entry_mask.val() & self.marks.val()).any();

        // An eviction: no order before the line, and none of its warps marked.
        self.order_flags.head.next = self.head.q.val();
        self.order_flags.place.next = self.place.val();
        self.evict.next = self.is_eviction.val()
            & self.hit.val()
            & !self.order_flags.order_before.val()
            & !self.marked.val()
            & self.can_count.val();

        // The head.
        self.moves.next = self.heads_turn.q.val() & self.advance.val() & !self.empty.val();
        self.flush.next = self.moves.val()
            & (self.entry_kind.val() == self.persist_kind.val())
            & !self.marked.val()
            & self.can_count.val();
        self.holds_head.next = (self.entry_kind.val() == self.release_device_kind.val())
            | (self.entry_kind.val() == self.dfence_kind.val());
        self.leave.next = self.moves.val()
            & (self.entry_kind.val() != self.persist_kind.val())
            & (!self.holds_head.val() | self.none_outstanding.val());
        self.head.enable.next = self.flush.val() | self.leave.val();
        self.head.d.next = self.head.q.val() + self.one_place.val();
        self.tail.enable.next = self.push.val();
        self.tail.d.next = self.next_tail.val();
        self.is_full.enable.next = self.push.val() | self.flush.val() | self.leave.val();
        self.is_full.d.next = self.push.val() & (self.next_tail.val() == self.head.q.val());

        // Entries.
        self.kinds.write_enable.next = self.push.val() | self.evict.val();
        self.kinds.write_address.next = self.tail.q.val();
        self.kinds.write_data.next = self.asked_kind.q.val();
        self.masks.write_enable.next = self.push.val() | self.share.val();
        self.masks.write_address.next = self.tail.q.val();
        self.masks.write_data.next = self.warp_bit.val();
        if self.evict.val() {
            self.kinds.write_address.next = self.place.val();
        }
        if self.share.val() {
            self.masks.write_address.next = self.place.val();
            self.masks.write_data.next = self.entry_mask.val() | self.warp_bit.val();
        }
        self.lines.write_enable.next = self.push.val();
        self.lines.write_address.next = self.tail.q.val();
        self.lines.write_data.next = self.asked_line.q.val();
        self.places.write_enable.next = self.push.val() & self.is_persist.val();
        self.places.write_address.next = self.asked_line.q.val();
        self.places.write_data.next = self.tail.q.val();
        self.last_orders.set.next = self.is_order.val() & (self.push.val() | self.share.val());
        self.last_orders.set_place.next = self.tail.q.val();
        if self.share.val() {
            self.last_orders.set_place.next = self.newest.val();
        }
        self.last_orders.leave.next = self.leave.val();
        self.last_orders.leave_place.next = self.head.q.val();
        self.order_flags.set.next = self.push.val() & self.is_order.val();
        self.order_flags.set_place.next = self.tail.q.val();
        self.order_flags.leave.next = self.leave.val();

        // The masks and the counter.
        self.flushing.enable.next = self.heads_turn.q.val() & self.advance.val();
        self.flushing.d.next = self.marks.val();
        if self.leave.val() & !self.holds_head.val() & (self.entry_kind.val() != self.evicted_kind.val()) {
            self.flushing.d.next = self.marks.val() | self.entry_mask.val();
        }
        self.ordering.enable.next = true;
        self.ordering.d.next = self.ordering.q.val();
        if self.push.val() & self.is_order.val() & self.holds.val() {
            self.ordering.d.next = self.ordering.q.val() | self.warp_bit.val();
        }
        if self.leave.val() & self.holds_head.val() {
            self.ordering.d.next = self.ordering.q.val() & !self.entry_mask.val();
        }
        self.sends.next = self.flush.val() | self.evict.val();
        self.acknowledged.next = self.acknowledge.val() & !self.none_outstanding.val();
        self.outstanding.enable.next = self.sends.val() ^ self.acknowledged.val();
        self.outstanding.d.next = self.outstanding.q.val() - self.one_flush.val();
        if self.sends.val() {
            self.outstanding.d.next = self.outstanding.q.val() + self.one_flush.val();
        }
        self.evicting.enable.next = true;
        self.evicting.d.next = self.evicting.q.val();
        if self.waits.val() {
            self.evicting.d.next = self.evicting.q.val() | self.warp_bit.val();
        }
        if self.leave.val() & (self.entry_kind.val() != self.evicted_kind.val()) {
            self.evicting.d.next = self.evicting.q.val() & !self.entry_mask.val();
        }
        if self.acknowledged.val() & !self.sends.val() & (self.outstanding.q.val() == self.one_flush.val()) {
            self.evicting.d.next = self.no_warp.val();
        }

        // What is told.
        self.accepted.next = self.push.val() | self.share.val() | self.evict.val();
        self.held.next = self.push.val() & self.is_order.val() & self.holds.val();
        self.refused.next = self.asked.q.val() & !self.push.val() & !self.share.val() & !self.evict.val();
        self.flush_valid.next = self.sends.val();
        self.flush_line.next = self.lines.read_data[0].val();
        self.left.next = self.leave.val();
        self.flush_status.next = self.flushing.q.val();
        self.order_delay.next = self.ordering.q.val();
        self.eviction_delay.next = self.evicting.q.val();
        self.outstanding_count.next = self.outstanding.q.val();
        self.full.next = self.is_full.q.val();
        self.drained.next = self.empty.val() & self.none_outstanding.val();
    }
}
