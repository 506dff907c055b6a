//! What MultiDevice does in a cycle. One kernel, since rust-hdl knows no functions in it.

use super::{MultiDevice, Phase};
use rust_hdl::prelude::*;

impl Logic for MultiDevice {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            has_number,
            announced,
            telling,
            asking,
            timer,
            sending,
            out,
            message,
            map,
            place,
            speaking,
            left,
            has,
            best_any,
            best,
            best_place,
            own,
            others,
            missing,
            owed,
            chosen,
            shown_others,
            shown_own
        );
        clock!(self, clock, places, heard, raw, note, brief, inbox, turn);
        self.places.reset.next = self.reset.val();
        self.heard.reset.next = self.reset.val();
        self.inbox.reset.next = self.reset.val();
        self.turn.reset.next = self.reset.val();
        self.active.next = self.window_open.val() & !self.quiesce.val();
        self.runs.next = self.active.val() & !self.stop.val();
        self.own.d.next = self.one16.val() << self.device_number.val();
        self.speaker.i.next = self.device_number.val();
        self.map_bit.next = self.one16.val() << self.map.q.val();
        self.arrival_device.next = self.message.q.val().device;

        // Commands come, and go.
        self.places.keep_valid.next = self.keep_valid.val();
        self.places.keep_map.next = self.keep_map.val();
        self.places.give_valid.next = self.give_valid.val();
        self.places.give_map.next = self.give_map.val();
        self.places.put_valid.next = self.park_valid.val();
        self.places.put_map.next = self.park_ticket.val().map;
        self.places.leave_valid.next = false;
        self.places.leave_place.next = self.place.q.val();
        self.places.let_valid.next = self.let_valid.val();
        self.places.let_map.next = self.let_map.val();
        self.places.back_valid.next = self.back_valid.val();
        self.places.back_map.next = self.back_map.val();
        self.places.back_failed.next = self.back_failed.val();
        self.places.close_valid.next = self.close_valid.val();
        self.places.close_map.next = self.close_map.val();
        self.places.close_all.next = self.clear.val();
        self.places.ask_map.next = self.map.q.val();
        self.busy.next = self.places.busy.val();
        self.waiting.next = self.places.waiting.val();
        self.any.next = self.places.waiting.val().any();
        self.full.next = self.places.full.val();
        self.raw.write_enable.next = self.park_valid.val();
        self.raw.write_address.next = self.places.put_place.val();
        self.raw.write_data.next = self.park_raw.val();
        self.parked_note.next.order = self.park_order.val();
        self.parked_note.next.page = self.park_ticket.val().page;
        self.parked_note.next.synchronises = self.park_ticket.val().synchronises;
        self.parked_note.next.ordered = self.park_ticket.val().ordered;
        self.parked_note.next.unmaps = self.park_ticket.val().unmaps;
        self.note.write_enable.next = self.park_valid.val();
        self.note.write_address.next = self.places.put_place.val();
        self.note.write_data.next = self.parked_note.val();
        self.parked_brief.next.pool = self.park_raw.val().get_bits::<32>(32);
        self.parked_brief.next.thread = self.park_raw.val().get_bits::<16>(16);
        self.parked_brief.next.opcode = self.park_raw.val().get_bits::<8>(0);
        self.parked_brief.next.participants = self.park_raw.val().get_bits::<8>(448);
        self.parked_brief.next.txid = self.park_raw.val().get_bits::<64>(64);
        self.parked_brief.next.map = self.park_ticket.val().map;
        self.brief.write_enable.next = self.park_valid.val();
        self.brief.write_address.next = self.places.put_place.val();
        self.brief.write_data.next = self.parked_brief.val();

        // The command that is looked at. While the power goes that is the save's.
        self.raw.read_address[0].next = self.place.q.val();
        self.note.read_address[0].next = self.place.q.val();
        if self.quiesce.val() {
            self.raw.read_address[0].next = self.save_place.val();
            self.note.read_address[0].next = self.save_place.val();
        }
        self.command.next = self.raw.read_data[0].val();
        self.noted.next = self.note.read_data[0].val();
        self.txid.next = self.command.val().get_bits::<64>(64);
        self.place_used.next = self.places.used.val() >> self.save_place.val();
        self.saved_valid.next = self.place_used.val().get_bit(0);
        self.saved_raw.next = self.command.val();
        self.saved_order.next = self.noted.val().order;
        self.saved_page.next = self.noted.val().page;
        self.release_raw.next = self.command.val();
        self.release_page.next = self.noted.val().page;
        self.release_order.next = self.noted.val().order;
        self.discard_page.next = self.noted.val().page;
        self.discard_tag.next = self.command.val().get_bits::<32>(416);
        self.is_forced.next = self.places.forced.val() >> self.place.q.val();
        self.release_valid.next = false;
        self.discard_valid.next = false;
        self.reopen_valid.next = false;
        self.look_map.next = self.map.q.val();
        self.looked_flags.next = self.looked.val().flags;
        self.reach_valid.next = false;
        self.reach_map.next = self.map.q.val();
        self.reach_txid.next = self.txid.val();
        self.heard.look_map.next = self.map.q.val();
        self.heard.look_txid.next = self.txid.val();
        self.heard.tell_valid.next = false;
        self.heard.tell_map.next = self.map.q.val();
        self.heard.tell_device.next = self.arrival_device.val().get_bits::<3>(0);
        self.heard.tell_txid.next = self.message.q.val().txid;
        self.heard.forget_valid.next = self.forget_valid.val();
        self.heard.forget_map.next = self.forget_map.val();
        // An entry that a function-level reset left goes with its last command.
        self.drop.next = self.none16.val();
        if self.active.val() {
            self.drop.next = self.orphans.val() & !self.places.busy.val();
        }

        // What software asks and decides.
        self.parked.next = self.places.used.val();
        self.act_bit.next = self.act_valid.val() & self.active.val() & !self.act_place.val().get_bits::<3>(5).any();
        self.places.act_place.next = self.act_place.val().get_bits::<5>(0);
        self.places.force_valid.next = self.act_bit.val() & (self.act_action.val() == self.releases.val());
        self.places.doom_valid.next =
            self.act_bit.val() & (self.act_action.val() == self.discards.val()) & !self.has_number.q.val();
        self.selected.next = self.places.used.val() >> self.select.val().get_bits::<5>(0);
        self.chosen.d.next = self.selected.val().get_bit(0) & !self.select.val().get_bits::<27>(5).any();
        self.brief.read_address[0].next = self.select.val().get_bits::<5>(0);
        self.brief_now.next = self.brief.read_data[0].val();
        self.brief_devices.next = self.brief_now.val().participants;
        self.shown_map.next = self.brief_now.val().map;
        self.heard.show_map.next = self.brief_now.val().map;
        self.heard.show_txid.next = self.brief_now.val().txid;
        self.shown_others.d.next = self.brief_devices.val() & !self.own.q.val().get_bits::<8>(0);
        self.shown_own.d.next = self.brief_devices.val() & self.own.q.val().get_bits::<8>(0);
        self.shown.next = self.no_brief.val();
        self.shown_reached.next = self.none8.val();
        if self.chosen.q.val() {
            self.shown.next = self.brief_now.val();
            self.shown_reached.next = self.shown_others.q.val() & !self.heard.shown.val();
            if self.shown_turn.val() >= self.brief_now.val().txid {
                self.shown_reached.next =
                    (self.shown_others.q.val() & !self.heard.shown.val()) | self.shown_own.q.val();
            }
        }

        // Messages come. What finds no room is asked for again, so that no device waits for
        // another's port.
        self.peer_in_ready.next = true;
        self.inbox.write.next = self.peer_in_valid.val();
        self.inbox.data_in.next = self.peer_in_data.val();
        self.inbox.read.next = false;
        self.arrival.next = self.inbox.data_out.val();
        self.lookup_pool.next = self.arrival.val().pool;
        self.lookup_thread.next = self.arrival.val().thread;
        self.is_behind.next = self.heard.behind.val() >> self.arrival_device.val().get_bits::<3>(0);

        // Messages go.
        self.speaks.next = self.has_number.q.val();
        self.peer_out_valid.next = self.sending.q.val();
        self.peer_out_data.next = self.out.q.val();
        if self.peer_out_ready.val() {
            self.sending.d.next = false;
        }

        // Whose turn is it?
        self.pick.requests.next = self.left.q.val();
        self.doom.requests.next = self.places.doomed.val();
        self.due.requests.next = self.telling.q.val() | self.asking.q.val();
        self.turn.requests.next = self.places.waiting.val() & !self.places.let_go.val();
        self.turn.take.next = false;
        self.has.d.next = false;

        // Who waits asks.
        self.timer.d.next = self.timer.q.val() + self.one12.val();
        if (self.timer.q.val() == self.last_cycle.val()) & self.has_number.q.val() & self.active.val() {
            self.asking.d.next = self.asking.q.val() | self.places.waiting.val();
        }
        if !self.places.waiting.val().any() {
            self.timer.d.next = 0.into();
        }
        if self.has_number.q.val() & self.active.val() & !self.announced.q.val() {
            self.announced.d.next = true;
            self.timer.d.next = 0.into();
            self.telling.d.next = self.places.waiting.val();
            self.asking.d.next = self.places.waiting.val();
        }

        match self.phase.q.val() {
            Phase::Idle => {
                if !self.inbox.empty.val() {
                    self.phase.d.next = Phase::Find;
                } else if self.doom.any.val() & self.active.val() {
                    self.place.d.next = self.doom.index.val();
                    self.phase.d.next = Phase::Discard;
                } else if self.due.any.val() & self.active.val() & !self.sending.q.val() {
                    self.map.d.next = self.due.index.val();
                    self.speaking.d.next = true;
                    self.phase.d.next = Phase::Gather;
                } else if self.turn.any.val() & self.runs.val() {
                    self.turn.take.next = true;
                    self.map.d.next = self.turn.index.val();
                    self.speaking.d.next = false;
                    self.phase.d.next = Phase::Gather;
                }
            }

            // A message: is its (pool, thread) mapped here?
            Phase::Find => {
                self.phase.d.next = Phase::Arrived;
            }
            Phase::Arrived => {
                self.inbox.read.next = true;
                self.message.d.next = self.arrival.val();
                self.map.d.next = self.lookup_index.val();
                self.phase.d.next = Phase::Idle;
                if self.lookup_found.val() & self.has_number.q.val() & self.active.val() {
                    self.phase.d.next = Phase::Learn;
                }
            }
            Phase::Learn => {
                self.heard.look_txid.next = self.message.q.val().txid;
                self.phase.d.next = Phase::Learnt;
            }
            Phase::Learnt => {
                self.phase.d.next = Phase::Idle;
                if self.message.q.val().status == self.asks.val() {
                    if (self.looked.val().reached >= self.message.q.val().txid) & self.has_number.q.val() {
                        self.telling.d.next = self.telling.q.val() | self.map_bit.val();
                    }
                } else {
                    self.heard.tell_valid.next =
                        self.is_behind.val().get_bit(0) & !self.arrival_device.val().get_bits::<5>(3).any();
                }
            }

            // The command of a mapping entry that was accepted first.
            Phase::Gather => {
                self.left.d.next = self.places.of_map.val();
                self.best_any.d.next = false;
                self.phase.d.next = Phase::Collect;
            }
            Phase::Collect => {
                self.place.d.next = self.pick.index.val();
                self.has.d.next = self.pick.any.val();
                self.left.d.next = self.left.q.val() & !self.pick.grant.val();
                if self.has.q.val() & (!self.best_any.q.val() | (self.noted.val().order < self.best.q.val())) {
                    self.best.d.next = self.noted.val().order;
                    self.best_place.d.next = self.place.q.val();
                    self.best_any.d.next = true;
                }
                if !self.pick.any.val() & !self.has.q.val() {
                    self.place.d.next = self.best_place.q.val();
                    self.phase.d.next = Phase::Read;
                }
            }
            Phase::Read => {
                self.others.d.next = self.command.val().get_bits::<8>(448) & !self.own.q.val().get_bits::<8>(0);
                self.phase.d.next = Phase::Weigh;
            }
            Phase::Weigh => {
                self.missing.d.next = self.noted.val().synchronises
                    & !self.is_forced.val().get_bit(0)
                    & (self.others.q.val() & self.heard.behind.val()).any();
                self.owed.d.next = self.noted.val().synchronises
                    & self.noted.val().ordered
                    & self.others.q.val().any()
                    & (self.looked.val().reached < self.txid.val());
                self.phase.d.next = Phase::Judge;
            }
            Phase::Judge => {
                self.phase.d.next = Phase::Idle;
                if self.speaking.q.val() {
                    self.out.d.next.pool = self.looked.val().pool;
                    self.out.d.next.thread = self.looked.val().thread;
                    self.out.d.next.device = self.speaker.o.val();
                    self.out.d.next.status = self.tells.val();
                    self.out.d.next.txid = self.looked.val().reached;
                    if (self.telling.q.val() & self.map_bit.val()).any() {
                        self.telling.d.next = self.telling.q.val() & !self.map_bit.val();
                        self.sending.d.next =
                            self.looked_flags.val().get_bit(0) & (self.looked.val().reached != self.none64.val());
                    } else {
                        self.out.d.next.status = self.asks.val();
                        self.out.d.next.txid = self.txid.val();
                        self.asking.d.next = self.asking.q.val() & !self.map_bit.val();
                        self.sending.d.next = self.best_any.q.val() & self.noted.val().synchronises;
                    }
                } else if self.best_any.q.val() & self.runs.val() {
                    if self.owed.q.val() {
                        self.reach_valid.next = true;
                        if self.has_number.q.val() {
                            self.telling.d.next = self.telling.q.val() | self.map_bit.val();
                        }
                    }
                    if !self.missing.q.val() {
                        self.phase.d.next = Phase::Let;
                    }
                }
            }

            // Only while a slot is free, so that the command port is not held up for it.
            Phase::Let => {
                self.release_valid.next = self.slot_any.val() & self.runs.val();
                if !self.release_valid.val() {
                    self.phase.d.next = Phase::Idle;
                }
                if self.release_taken.val() {
                    self.phase.d.next = Phase::Letting;
                }
            }
            // It is in its slot before it has left the table.
            Phase::Letting => {
                if self.release_ready.val() {
                    self.places.leave_valid.next = true;
                    self.phase.d.next = Phase::Idle;
                }
            }
            Phase::Discard => {
                self.discard_valid.next = self.active.val() & self.discard_ready.val();
                self.reopen_valid.next = self.discard_valid.val() & self.noted.val().unmaps;
                self.places.leave_valid.next = self.discard_valid.val();
                if self.discard_valid.val() | !self.active.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }

        if self.numbered.val() {
            self.has_number.d.next = true;
            self.announced.d.next = false;
        }
        if self.reset.val() | self.clear.val() | self.quiesce.val() {
            self.has_number.d.next = false;
            self.announced.d.next = false;
            self.telling.d.next = self.none16.val();
            self.asking.d.next = self.none16.val();
            self.sending.d.next = false;
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
            self.timer.d.next = 0.into();
        }
    }
}
