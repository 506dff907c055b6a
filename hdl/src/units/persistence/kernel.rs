//! What Persistence does in a cycle, phase by phase: boot, replay, open, save.

use super::{Form, Persistence, Phase, Section};
use nearpm_hdl_derive::steps;
use rust_hdl::prelude::*;

#[steps]
impl Logic for Persistence {
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            after,
            section,
            form,
            public_state,
            open,
            stopped,
            clearing,
            quiesced,
            gating,
            saving,
            saved,
            clean,
            shut_pending,
            reset_pending,
            load_pending,
            loaded,
            refused,
            failure,
            line,
            line_error,
            held,
            target,
            word_only,
            address_done,
            unanswered,
            posted,
            answered,
            write_error,
            feed,
            feed_first,
            armed,
            successor,
            arm_running,
            arm_fresh,
            boot_slot,
            boot_crc,
            boot_tagged,
            loading_boot,
            head_ok,
            head_lost,
            progress_now,
            head_now,
            head_above,
            head_crc,
            head_firmware,
            items,
            skip,
            resume,
            item_resume,
            done,
            all_done,
            skipping,
            last_item,
            second,
            index,
            pause,
            run,
            counting,
            calm,
            cycles,
            replayed_count,
            candidate,
            candidate_index,
            candidate_valid,
            best,
            best_index,
            found,
            floor
        );
        clock!(self, clock, orders, crc);

        self.outputs();
        self.what_the_line_says();
        self.unless_a_phase_says_otherwise();
        self.the_line_to_write();
        self.checksum();
        self.memory();
        self.requests_of_registers();
        self.search();
        self.comparisons();
        match self.phase.q.val() {
            // One line to or from the save area.
            Phase::Read => self.read(),
            Phase::ReadWait => self.read_wait(),
            Phase::ReadDone => self.read_done(),
            Phase::Write => self.write(),
            Phase::WriteWait => self.write_wait(),
            Phase::Post => self.post(),
            // Boot: what does the medium say?
            Phase::Reset => self.begin(),
            Phase::GotArm => self.got_arm(),
            Phase::GotProgress => self.got_progress(),
            Phase::GotHead => self.got_head(),
            Phase::Successor => self.successor(),
            Phase::BootFirmware => self.boot_firmware(),
            Phase::Decide => self.decide(),
            // The whole image, before anything of it is used.
            Phase::Verify => self.verify(),
            Phase::VerifyLine => self.verify_line(),
            Phase::VerifyStep => self.verify_step(),
            Phase::VerifyHead => self.verify_head(),
            Phase::VerifyEnd => self.verify_end(),
            // Mappings, then one item after the other.
            Phase::Restore => self.restore(),
            Phase::RestoreLine => self.restore_line(),
            Phase::NextItem => self.next_item(),
            Phase::Scan => self.scan(),
            Phase::ScanTail => self.scan_tail(),
            Phase::ScanEnd => self.scan_end(),
            Phase::Skip => self.skip(),
            Phase::ItemData => self.item_data(),
            Phase::ItemRecord => self.item_record(),
            Phase::Inject => self.inject(),
            Phase::Settle => self.settle(),
            Phase::GateTake => self.gate_take(),
            Phase::ItemDone => self.item_done(),
            // The next generation.
            Phase::Arm => self.arm(),
            Phase::ArmLine => self.arm_line(),
            // Open.
            Phase::Open => self.open(),
            Phase::Load => self.load(),
            Phase::LoadWait => self.load_wait(),
            Phase::ShutDown => self.shut_down(),
            Phase::CleanDone => self.clean_done(),
            Phase::FunctionReset => self.function_reset(),
            // Closed.
            Phase::Loss => self.loss(),
            Phase::Missing => self.missing(),
            // Save: mappings, commands, stores, commands that wait for other devices, head.
            Phase::Drain => self.drain(),
            Phase::SaveIndex => self.save_index(),
            Phase::SaveLook => self.save_look(),
            Phase::SaveSecond => self.save_second(),
            Phase::SaveNext => self.save_next(),
            Phase::SaveWait => self.save_wait(),
            Phase::SaveSeal => self.save_seal(),
            Phase::SaveHead => self.save_head(),
            Phase::SaveFailed => self.save_failed(),
            Phase::Halt => self.halt(),
            Phase::Saved => self.saved(),
            _ => {
                self.phase.d.next = Phase::Reset;
            }
        }
        self.refuse_requests();
        self.show_a_reset_as_booting();
        self.count_the_unanswered();
        self.reset();
    }

    /// Outputs that are registers.
    fn outputs(&mut self) {
        self.save_done.next = self.saved.q.val();
        self.state.next = self.public_state.q.val();
        self.generation.next = self.armed.q.val();
        self.replayed.next = self.replayed_count.q.val();
        self.save_cycles.next = self.cycles.q.val();
        // The outcome shows when the state does.
        self.loaded.d.next = self.phase.q.val() == Phase::LoadWait;
        self.load_waits.next = self.load_request.val()
            | self.load_pending.q.val()
            | (self.phase.q.val() == Phase::Load)
            | (self.phase.q.val() == Phase::LoadWait)
            | self.loaded.q.val();
        self.load_refused.next = self.refused.q.val();
        self.window_open.next = self.open.q.val();
        self.stop.next = self.stopped.q.val();
        self.quiesce.next = self.quiesced.q.val();
        self.save_index.next = self.index.q.val();
        self.map_restore_index.next = self.index.q.val().get_bits::<4>(0);
        self.inject_command.next = self.held.q.val();
        self.inject_resume.next = self.item_resume.q.val();
        self.redo.next = self.gating.q.val() & self.skipping.q.val();
        self.inject_store_data.next = self.held.q.val();
        self.firmware_slot.next = self.boot_slot.q.val();
        self.firmware_expect.next = self.boot_crc.q.val();
        self.firmware_boot.next = self.loading_boot.q.val();
    }

    /// What the line in hand says.
    fn what_the_line_says(&mut self) {
        self.fields.line.next = self.line.q.val();
        self.map_restore.next = self.fields.mapping.val();
        self.inject_page.next = self.fields.item_page.val();
        self.inject_released.next = self.fields.item_released.val();
        self.inject_parks.next = self.fields.item_parked.val();
        self.inject_accepted.next = self.fields.item_order.val();
        self.replays.next = self.fields.item_command.val() | self.fields.item_parked.val();
        self.restore_valid.next = false;
        self.restore_order.next = self.fields.head_order.val();
        self.restore_device.next = self.fields.head_device.val();
        self.restore_lost.next = self.fields.head_lost.val();
        self.lost_forget.next = self.acknowledge_loss.val()
            & (self.open.q.val() | (self.phase.q.val() == Phase::Loss) | (self.phase.q.val() == Phase::Missing));
        self.inject_store_line.next = self.fields.item_line.val();
        self.inject_store_strobes.next = self.fields.item_strobes.val();
    }

    /// Pulses and handshakes that most phases do without.
    fn unless_a_phase_says_otherwise(&mut self) {
        self.firmware_load.next = false;
        self.clear.next = self.clearing.q.val();
        self.clearing.d.next = false;
        self.map_restore_valid.next = false;
        self.inject_command_valid.next = false;
        self.inject_store_valid.next = false;
        self.gate_ready.next = !self.gating.q.val();
    }

    /// How a line is made that is to be written.
    fn the_line_to_write(&mut self) {
        self.lines.form.next = self.form.q.val();
        self.lines.generation.next = self.armed.q.val();
        self.lines.items.next = self.done.q.val();
        self.lines.resume.next = self.saved_slot_resume.val();
        if self.gating.q.val() {
            self.lines.resume.next = self.gate_pc.val();
        }
        self.lines.mapping.next = self.saved_map.val();
        self.lines.order.next = self.saved_slot_order.val();
        if self.form.q.val() == Form::Store {
            self.lines.order.next = self.saved_line_order.val();
        }
        self.lines.page.next = self.saved_slot_page.val();
        if self.form.q.val() == Form::Parked {
            self.lines.order.next = self.saved_parked_order.val();
            self.lines.page.next = self.saved_parked_page.val();
        }
        self.lines.released.next = self.saved_slot_released.val();
        self.lines.device.next = self.device_number.val();
        self.lines.lost.next = self.lost.val();
        if self.form.q.val() == Form::Head {
            self.lines.order.next = self.order.val();
            self.lines.items.next = self.items.q.val();
        }
        self.lines.address.next = self.saved_line_line.val();
        self.lines.strobes.next = self.saved_line_strobes.val();
        self.lines.firmware.next = self.firmware_crc.val();
        self.lines.crc.next = self.head_crc.q.val();
    }

    /// The checksum runs over every line that is fed.
    fn checksum(&mut self) {
        self.crc.reset.next = self.reset.val();
        self.crc.valid.next = self.feed.q.val();
        self.crc.first.next = self.feed_first.q.val();
        self.crc.block.next = self.line.q.val();
        self.seal.state.next = self.crc.state.val();
        self.feed.d.next = false;
        self.feed_first.d.next = false;
    }

    /// One access to memory, of the line in hand.
    fn memory(&mut self) {
        self.place.high.next = self.base.val();
        self.place.low.next = self.target.q.val();
        self.mem.rd_valid.next = false;
        self.mem.rd_line.next = self.place.o.val();
        self.mem.rd_beats.next = 0.into();
        self.mem.rd_tag.next = 0.into();
        self.mem.wr_valid.next = false;
        self.mem.wr_line.next = self.place.o.val();
        self.mem.wr_beats.next = 0.into();
        self.mem.wr_tag.next = 0.into();
        self.mem.wdata.next = self.line.q.val();
        self.mem.wstrb.next = self.all_strobes.val();
        if self.word_only.q.val() {
            self.mem.wstrb.next = self.word_strobes.val();
        }
        if self.mem.b_valid.val() & self.mem.b_error.val() {
            self.write_error.d.next = true;
        }
    }

    /// Requests of the registers wait until they can be served.
    fn requests_of_registers(&mut self) {
        if self.shut_down.val() {
            self.shut_pending.d.next = true;
        }
        if self.function_reset.val() {
            self.reset_pending.d.next = true;
        }
        if self.load_request.val() {
            self.load_pending.d.next = true;
            self.boot_slot.d.next = self.load_slot.val();
        }
        if (self.failed.val() | self.store_failed.val()) & self.gating.q.val() {
            self.failure.d.next = true;
        }
        if self.saving.q.val() {
            self.cycles.d.next = self.cycles.q.val() + self.one32.val();
        }
    }

    /// The order table, and the search for the next item: the lowest order above the last.
    fn search(&mut self) {
        self.wide_best.i.next = self.best_index.q.val();
        self.twice.high.next = self.wide_best.o.val();
        self.twice.low.next = self.zero1.val();
        self.orders.write_address.next = self.done.q.val().get_bits::<7>(0);
        self.orders.write_data.next = self.fields.item_order.val();
        self.orders.write_enable.next = false;
        self.orders.read_address[0].next = self.index.q.val();
        self.candidate.d.next = self.orders.read_data[0].val();
        self.candidate_index.d.next = self.index.q.val();
        self.candidate_valid.d.next = false;
        if self.candidate_valid.q.val()
            & (self.candidate.q.val() > self.floor.q.val())
            & (!self.found.q.val() | (self.candidate.q.val() < self.best.q.val()))
        {
            self.best.d.next = self.candidate.q.val();
            self.best_index.d.next = self.candidate_index.q.val();
            self.found.d.next = true;
        }
    }

    /// What later cycles compare. While an item is replayed calm means that it has retired.
    fn comparisons(&mut self) {
        self.calm.d.next = self.quiet.val() & !self.firmware_busy.val() & (self.idle.val() | !self.gating.q.val());
        self.counting.d.next = false;
        self.run.d.next = 0.into();
        if self.counting.q.val() & self.calm.q.val() {
            self.run.d.next = self.run.q.val() + self.one9.val();
        }
        self.progress_now.d.next = self.fields.progress_tagged.val()
            & (self.fields.progress_generation.val() == self.armed.q.val().get_bits::<32>(0));
        self.head_now.d.next = self.fields.head_ours.val()
            & (self.fields.head_generation.val() == self.armed.q.val())
            & (self.fields.head_items.val() <= self.max_items.val());
        self.head_above.d.next = self.fields.head_ours.val() & (self.fields.head_generation.val() > self.armed.q.val());
        self.all_done.d.next = self.done.q.val() == self.items.q.val();
        self.skipping.d.next = self.done.q.val() < self.skip.q.val();
        self.last_item.d.next = self.items.q.val() - self.one16.val();
        self.posted.d.next = false;
        self.answered.d.next = self.mem.b_valid.val();
        self.pause.d.next = self.zero3.val();
    }

    /// Asks for a line of the save area.
    fn read(&mut self) {
        self.mem.rd_valid.next = true;
        if self.mem.rd_ready.val() {
            self.phase.d.next = Phase::ReadWait;
        }
    }

    /// Takes it.
    fn read_wait(&mut self) {
        self.line.d.next = self.mem.rdata.val();
        self.line_error.d.next = self.mem.rdata_error.val();
        if self.mem.rdata_valid.val() {
            self.phase.d.next = Phase::ReadDone;
        }
    }

    /// What it says is here a cycle later.
    fn read_done(&mut self) {
        self.phase.d.next = self.after.q.val();
    }

    /// Writes a line. Data is asked for behind the request that it belongs to.
    fn write(&mut self) {
        self.write_error.d.next = false;
        self.mem.wr_valid.next = !self.address_done.q.val();
        if self.mem.wr_ready.val() {
            self.address_done.d.next = true;
        }
        if self.mem.wdata_ready.val() {
            self.address_done.d.next = false;
            self.phase.d.next = Phase::WriteWait;
        }
    }

    /// Waits for the answer, without which a boot is a loss and a save fails.
    fn write_wait(&mut self) {
        if self.mem.b_valid.val() {
            self.phase.d.next = self.after.q.val();
            if self.mem.b_error.val() {
                self.phase.d.next = Phase::Loss;
                if self.saving.q.val() {
                    self.phase.d.next = Phase::SaveFailed;
                }
            }
        }
    }

    /// As `write`, but the answer is only counted.
    fn post(&mut self) {
        self.mem.wr_valid.next = !self.address_done.q.val();
        if self.mem.wr_ready.val() {
            self.address_done.d.next = true;
        }
        if self.mem.wdata_ready.val() {
            self.address_done.d.next = false;
            self.target.d.next = self.target.q.val() + self.one9.val();
            self.posted.d.next = true;
            self.phase.d.next = self.after.q.val();
        }
    }

    /// Nothing is known yet: reads the arm word.
    fn begin(&mut self) {
        self.open.d.next = false;
        self.saved.d.next = false;
        self.clean.d.next = false;
        self.stopped.d.next = false;
        self.quiesced.d.next = false;
        self.public_state.d.next = self.is_booting.val();
        self.target.d.next = self.arm_line.val();
        self.after.d.next = Phase::GotArm;
        self.phase.d.next = Phase::Read;
    }

    /// Was the card running, shut down, or never used? Reads the progress word.
    fn got_arm(&mut self) {
        self.arm_running.d.next = self.fields.arm_running.val() & !self.line_error.q.val();
        self.arm_fresh.d.next = (self.fields.arm_clean.val() | self.fields.arm_blank.val()) & !self.line_error.q.val();
        self.armed.d.next = self.zero48.val();
        if self.fields.arm_running.val() | self.fields.arm_clean.val() {
            self.armed.d.next = self.fields.arm_generation.val();
        }
        self.boot_tagged.d.next = self.fields.firmware_tagged.val()
            & !self.line_error.q.val()
            & !self.fields.firmware_slot.val().get_bits::<7>(1).any();
        self.boot_slot.d.next = self.fields.firmware_slot.val();
        self.boot_crc.d.next = self.fields.firmware_crc.val();
        self.target.d.next = self.progress_line.val();
        self.after.d.next = Phase::GotProgress;
        self.phase.d.next = Phase::Read;
    }

    /// Which items were replayed? Reads the head.
    fn got_progress(&mut self) {
        self.skip.d.next = 0.into();
        self.resume.d.next = 0.into();
        if self.progress_now.q.val() & !self.line_error.q.val() {
            self.skip.d.next = self.fields.progress_items.val();
            self.resume.d.next = self.fields.progress_resume.val();
        }
        self.target.d.next = self.head_line.val();
        self.after.d.next = Phase::GotHead;
        self.phase.d.next = Phase::Read;
        // A progress word that cannot be read leaves unknown what was replayed.
        if self.line_error.q.val() {
            self.arm_running.d.next = false;
        }
    }

    /// Is the head of the armed generation?
    fn got_head(&mut self) {
        self.held.d.next = self.line.q.val();
        self.items.d.next = self.fields.head_items.val();
        self.head_firmware.d.next = self.fields.head_firmware.val();
        self.head_ok.d.next = self.head_now.q.val() & !self.line_error.q.val();
        self.head_lost.d.next = self.fields.head_lost.val().count.any();
        self.successor.d.next = self.armed.q.val();
        if self.head_above.q.val() {
            self.successor.d.next = self.fields.head_generation.val();
        }
        self.phase.d.next = Phase::Successor;
    }

    /// The next generation is above all that stand anywhere.
    fn successor(&mut self) {
        self.successor.d.next = self.successor.q.val() + self.one48.val();
        self.phase.d.next = Phase::Decide;
        if self.boot_tagged.q.val() {
            self.loading_boot.d.next = true;
            self.phase.d.next = Phase::BootFirmware;
        }
    }

    /// The firmware that the arm word names is loaded.
    fn boot_firmware(&mut self) {
        self.firmware_load.next = !self.counting.q.val();
        self.counting.d.next = true;
        if self.counting.q.val() & self.run.q.val().get_bit(4) {
            self.loading_boot.d.next = false;
            self.phase.d.next = Phase::Decide;
        }
    }

    /// A card that was running needs a whole image; a fresh one is armed.
    fn decide(&mut self) {
        self.target.d.next = self.mapping_line.val();
        self.done.d.next = 0.into();
        self.second.d.next = false;
        self.phase.d.next = Phase::Loss;
        if self.arm_running.q.val() & self.head_ok.q.val() {
            self.phase.d.next = Phase::Verify;
        }
        if self.arm_fresh.q.val() {
            self.phase.d.next = Phase::Arm;
        }
        if self.power_fail.val() {
            self.phase.d.next = Phase::Halt;
        }
    }

    /// The whole image, before anything of it is used; `done` counts items.
    fn verify(&mut self) {
        self.after.d.next = Phase::VerifyLine;
        self.phase.d.next = Phase::Read;
        if (self.target.q.val() >= self.item_line.val()) & self.all_done.q.val() {
            self.phase.d.next = Phase::VerifyHead;
        }
        if self.power_fail.val() {
            self.phase.d.next = Phase::Halt;
        }
    }

    /// A line is fed to the checksum; the second one of an item has its order.
    fn verify_line(&mut self) {
        self.crc.valid.next = true;
        self.crc.first.next = self.target.q.val() == self.mapping_line.val();
        self.target.d.next = self.target.q.val() + self.one9.val();
        if self.target.q.val() >= self.item_line.val() {
            self.second.d.next = !self.second.q.val();
            if self.second.q.val() {
                self.orders.write_enable.next = true;
                self.done.d.next = self.done.q.val() + self.one16.val();
            }
        }
        self.phase.d.next = Phase::VerifyStep;
        if self.line_error.q.val() {
            self.phase.d.next = Phase::Loss;
        }
    }

    /// `done` has changed: its comparisons follow a cycle later.
    fn verify_step(&mut self) {
        self.phase.d.next = Phase::Verify;
    }

    /// The head is fed last.
    fn verify_head(&mut self) {
        self.line.d.next = self.held.q.val();
        self.feed.d.next = true;
        self.phase.d.next = Phase::VerifyEnd;
    }

    /// The checksum is known: an image that is whole is replayed.
    fn verify_end(&mut self) {
        self.pause.d.next = self.pause.q.val() + self.one3.val();
        if self.pause.q.val() == self.crc_latency.val() {
            self.target.d.next = self.mapping_line.val();
            self.index.d.next = 0.into();
            self.restore_valid.next = true;
            self.phase.d.next = Phase::Restore;
            if self.items.q.val().any() & (self.head_firmware.q.val() != self.firmware_crc.val()) {
                self.restore_valid.next = false;
                self.phase.d.next = Phase::Missing;
            }
            if self.crc.crc.val() != self.residue.val() {
                self.restore_valid.next = false;
                self.phase.d.next = Phase::Loss;
            }
        }
    }

    /// Reads a mapping.
    fn restore(&mut self) {
        self.public_state.d.next = self.is_replaying.val();
        self.gating.d.next = true;
        self.failure.d.next = false;
        self.after.d.next = Phase::RestoreLine;
        self.phase.d.next = Phase::Read;
    }

    /// Puts it into the table.
    fn restore_line(&mut self) {
        self.map_restore_valid.next = self.fields.mapping_used.val();
        self.target.d.next = self.target.q.val() + self.one9.val();
        self.index.d.next = self.index.q.val() + self.one7.val();
        self.phase.d.next = Phase::Restore;
        if self.index.q.val() == self.last_map.val() {
            self.done.d.next = 0.into();
            self.floor.d.next = self.zero64.val();
            self.phase.d.next = Phase::Skip;
        }
        if self.line_error.q.val() {
            self.phase.d.next = Phase::Loss;
        }
    }

    /// Looks for the next item, or is done.
    fn next_item(&mut self) {
        self.index.d.next = 0.into();
        self.found.d.next = false;
        self.phase.d.next = Phase::Scan;
        if self.all_done.q.val() {
            self.phase.d.next = Phase::Arm;
            // Everything else is replayed, and software has yet to hear of what was lost.
            if self.head_lost.q.val() {
                self.phase.d.next = Phase::Loss;
            }
        }
        if self.power_fail.val() {
            self.phase.d.next = Phase::Halt;
        }
    }

    /// Compares the orders of all items, one a cycle.
    fn scan(&mut self) {
        self.candidate_valid.d.next = true;
        self.index.d.next = self.index.q.val() + self.one7.val();
        if self.index.q.val() == self.last_item.q.val().get_bits::<7>(0) {
            self.phase.d.next = Phase::ScanTail;
        }
    }

    /// The last comparison is under way.
    fn scan_tail(&mut self) {
        self.phase.d.next = Phase::ScanEnd;
    }

    /// Reads the item that was found.
    fn scan_end(&mut self) {
        self.floor.d.next = self.best.q.val();
        self.target.d.next = self.item_line.val() + self.twice.o.val();
        self.after.d.next = Phase::ItemData;
        self.phase.d.next = Phase::Read;
        // Two items of one order: no card writes that.
        if !self.found.q.val() {
            self.phase.d.next = Phase::Loss;
        }
    }

    /// `done` has changed: its comparisons follow a cycle later.
    fn skip(&mut self) {
        self.phase.d.next = Phase::NextItem;
    }

    /// Keeps the first line of the item, and reads the second.
    fn item_data(&mut self) {
        self.held.d.next = self.line.q.val();
        self.target.d.next = self.target.q.val() + self.one9.val();
        self.after.d.next = Phase::ItemRecord;
        self.phase.d.next = Phase::Read;
        if self.line_error.q.val() {
            self.phase.d.next = Phase::Loss;
        }
    }

    /// Where the item goes on, and whether anything of it is left to do.
    fn item_record(&mut self) {
        self.item_resume.d.next = self.fields.item_resume.val();
        if self.resume.q.val().any() {
            self.item_resume.d.next = self.resume.q.val();
        }
        self.phase.d.next = Phase::Inject;
        // The progress word's instruction is that of the first item that is not counted. Of the
        // counted ones only what commands did to the mapping table is not durable, nor that they
        // wait.
        if self.skipping.q.val() {
            self.item_resume.d.next = 0.into();
            if !self.replays.val() {
                self.done.d.next = self.done.q.val() + self.one16.val();
                self.phase.d.next = Phase::Skip;
            }
        } else {
            self.resume.d.next = 0.into();
        }
        if self.line_error.q.val() {
            self.phase.d.next = Phase::Loss;
        }
    }

    /// Gives the item to the decoder or the host queue.
    fn inject(&mut self) {
        self.form.d.next = Form::Progress;
        self.inject_command_valid.next = self.replays.val();
        self.inject_store_valid.next = !self.replays.val();
        if (self.replays.val() & self.inject_command_ready.val())
            | (!self.replays.val() & self.inject_store_ready.val())
        {
            self.phase.d.next = Phase::Settle;
        }
    }

    /// Waits until it has retired; its progress is written as it comes.
    fn settle(&mut self) {
        self.counting.d.next = true;
        self.line.d.next = self.lines.line.val();
        self.word_only.d.next = true;
        self.target.d.next = self.progress_line.val();
        if self.gate_valid.val() {
            self.after.d.next = Phase::GateTake;
            self.phase.d.next = Phase::Write;
        }
        if self.counting.q.val() & self.run.q.val().get_bit(4) {
            self.done.d.next = self.done.q.val() + self.one16.val();
            if self.skipping.q.val() {
                self.phase.d.next = Phase::Skip;
            } else {
                self.replayed_count.d.next = self.replayed_count.q.val() + self.one32.val();
                self.phase.d.next = Phase::ItemDone;
            }
        }
        if self.failure.q.val() {
            self.phase.d.next = Phase::Loss;
        }
        if self.power_fail.val() {
            self.counting.d.next = false;
            self.phase.d.next = Phase::Halt;
        }
    }

    /// The progress is durable: its unit may go on.
    fn gate_take(&mut self) {
        self.gate_ready.next = true;
        self.phase.d.next = Phase::Settle;
    }

    /// Counts the item. No unit runs any more, so that `gate_pc` is not a place to resume at.
    fn item_done(&mut self) {
        self.lines.resume.next = 0.into();
        self.line.d.next = self.lines.line.val();
        self.after.d.next = Phase::NextItem;
        self.phase.d.next = Phase::Write;
    }

    /// One store consumes the image and arms the next generation.
    fn arm(&mut self) {
        self.form.d.next = Form::Running;
        self.armed.d.next = self.successor.q.val();
        self.successor.d.next = self.successor.q.val() + self.one48.val();
        self.phase.d.next = Phase::ArmLine;
    }

    /// Writes the arm word.
    fn arm_line(&mut self) {
        self.line.d.next = self.lines.line.val();
        self.word_only.d.next = true;
        self.target.d.next = self.arm_line.val();
        self.after.d.next = Phase::Open;
        self.phase.d.next = Phase::Write;
    }

    /// Serves the host until something is asked for.
    fn open(&mut self) {
        self.gating.d.next = false;
        self.open.d.next = true;
        self.stopped.d.next = false;
        self.public_state.d.next = self.is_no_firmware.val();
        if self.firmware_ok.val() {
            self.public_state.d.next = self.is_open.val();
        }
        // Asked for before the card was open.
        if self.reset_pending.q.val() {
            self.public_state.d.next = self.is_booting.val();
        }
        // What is asked for at the same time comes first; a load waits for it.
        if self.load_pending.q.val() & !self.reset_pending.q.val() & !self.shut_pending.q.val() & !self.power_fail.val()
        {
            self.load_pending.d.next = false;
            self.refused.d.next = !self.idle.val() | self.parked_any.val();
            if self.idle.val() & !self.parked_any.val() {
                self.phase.d.next = Phase::Load;
            }
        }
        if self.reset_pending.q.val() {
            self.phase.d.next = Phase::FunctionReset;
        }
        if self.shut_pending.q.val() {
            self.phase.d.next = Phase::ShutDown;
        }
        if self.power_fail.val() {
            self.phase.d.next = Phase::Drain;
        }
    }

    /// The ports wait while an image is loaded, so that no command meets half of two.
    fn load(&mut self) {
        self.stopped.d.next = true;
        self.counting.d.next = self.stopped.q.val();
        if self.counting.q.val() & self.run.q.val().get_bit(4) {
            self.refused.d.next = !self.idle.val() | self.parked_any.val();
            self.firmware_load.next = self.idle.val() & !self.parked_any.val();
            self.counting.d.next = false;
            self.phase.d.next = Phase::Open;
            if self.idle.val() & !self.parked_any.val() {
                self.phase.d.next = Phase::LoadWait;
            }
        }
    }

    /// The image is in force, or refused.
    fn load_wait(&mut self) {
        self.counting.d.next = true;
        if self.counting.q.val() & self.run.q.val().get_bit(4) {
            self.phase.d.next = Phase::Open;
        }
    }

    /// Waits until nothing is under way. Bit 8 of `run`: 256 quiet cycles, so that what is left
    /// waits for a failed log.
    fn shut_down(&mut self) {
        self.shut_pending.d.next = false;
        self.form.d.next = Form::Clean;
        self.stopped.d.next = true;
        self.counting.d.next = self.stopped.q.val();
        self.line.d.next = self.lines.line.val();
        if self.counting.q.val() & self.run.q.val().get_bit(4) & self.idle.val() {
            self.word_only.d.next = true;
            self.target.d.next = self.arm_line.val();
            self.after.d.next = Phase::CleanDone;
            self.phase.d.next = Phase::Write;
            // What waits for other devices is kept, and so is the word of what was lost.
            if self.parked_any.val() | self.lost_any.val() {
                self.counting.d.next = false;
                self.phase.d.next = Phase::Drain;
            }
        }
        if self.counting.q.val() & self.run.q.val().get_bit(8) & self.latched_any.val() & !self.idle.val() {
            self.counting.d.next = false;
            self.phase.d.next = Phase::Drain;
        }
        if self.power_fail.val() {
            self.counting.d.next = false;
            self.phase.d.next = Phase::Drain;
        }
    }

    /// The arm word says that nothing was running.
    fn clean_done(&mut self) {
        self.clean.d.next = true;
        self.phase.d.next = Phase::Saved;
    }

    /// Waits until nothing is under way, and clears the tables.
    fn function_reset(&mut self) {
        self.stopped.d.next = true;
        self.counting.d.next = self.stopped.q.val();
        if self.counting.q.val()
            & ((self.run.q.val().get_bit(4) & self.idle.val()) | (self.run.q.val().get_bit(8) & self.latched_any.val()))
        {
            self.counting.d.next = false;
            self.reset_pending.d.next = false;
            self.clearing.d.next = true;
            self.phase.d.next = Phase::Open;
        }
        if self.power_fail.val() {
            self.counting.d.next = false;
            self.phase.d.next = Phase::Drain;
        }
    }

    /// Closed until somebody says that what is lost is lost.
    fn loss(&mut self) {
        self.public_state.d.next = self.is_loss.val();
        self.gating.d.next = false;
        if self.acknowledge_loss.val() {
            self.phase.d.next = Phase::Arm;
        }
        if self.power_fail.val() {
            self.phase.d.next = Phase::Halt;
        }
    }

    /// Closed for want of the firmware that the items need.
    fn missing(&mut self) {
        self.public_state.d.next = self.is_missing.val();
        if self.acknowledge_loss.val() {
            self.phase.d.next = Phase::Arm;
        }
        if self.power_fail.val() {
            self.phase.d.next = Phase::Halt;
        }
    }

    /// Power goes: all bursts end.
    fn drain(&mut self) {
        self.public_state.d.next = self.is_saving.val();
        self.stopped.d.next = true;
        self.quiesced.d.next = true;
        self.saving.d.next = true;
        if !self.saving.q.val() {
            self.cycles.d.next = 0.into();
        }
        self.counting.d.next = self.quiesced.q.val();
        self.write_error.d.next = false;
        self.unanswered.d.next = 0.into();
        self.word_only.d.next = false;
        self.target.d.next = self.mapping_line.val();
        self.items.d.next = 0.into();
        self.index.d.next = 0.into();
        self.section.d.next = Section::Mappings;
        if self.counting.q.val() & self.run.q.val().get_bit(4) {
            self.phase.d.next = Phase::SaveIndex;
        }
    }

    /// The row of the table is read.
    fn save_index(&mut self) {
        self.form.d.next = Form::Mapping;
        self.phase.d.next = Phase::SaveLook;
    }

    /// Writes what the row holds; items have a second line.
    fn save_look(&mut self) {
        self.phase.d.next = Phase::SaveNext;
        self.form.d.next = Form::Store;
        if self.section.q.val() == Section::Slots {
            self.form.d.next = Form::Command;
        }
        if self.section.q.val() == Section::Parked {
            self.form.d.next = Form::Parked;
        }
        match self.section.q.val() {
            Section::Mappings => {
                self.line.d.next = self.lines.line.val();
                self.feed.d.next = true;
                self.feed_first.d.next = !self.index.q.val().any();
                self.after.d.next = Phase::SaveNext;
                self.phase.d.next = Phase::Post;
            }
            Section::Slots => {
                self.line.d.next = self.saved_slot_command.val();
                if self.saved_slot_valid.val() {
                    self.feed.d.next = true;
                    self.items.d.next = self.items.q.val() + self.one16.val();
                    self.after.d.next = Phase::SaveSecond;
                    self.phase.d.next = Phase::Post;
                }
            }
            Section::Lines => {
                self.line.d.next = self.saved_line_data.val();
                if self.saved_line_valid.val() {
                    self.feed.d.next = true;
                    self.items.d.next = self.items.q.val() + self.one16.val();
                    self.after.d.next = Phase::SaveSecond;
                    self.phase.d.next = Phase::Post;
                }
            }
            Section::Parked => {
                self.line.d.next = self.saved_parked_command.val();
                if self.saved_parked_valid.val() {
                    self.feed.d.next = true;
                    self.items.d.next = self.items.q.val() + self.one16.val();
                    self.after.d.next = Phase::SaveSecond;
                    self.phase.d.next = Phase::Post;
                }
            }
            _ => {}
        }
    }

    /// The second line of an item.
    fn save_second(&mut self) {
        self.line.d.next = self.lines.line.val();
        self.feed.d.next = true;
        self.after.d.next = Phase::SaveNext;
        self.phase.d.next = Phase::Post;
    }

    /// The next row, or the next table.
    fn save_next(&mut self) {
        self.form.d.next = Form::Head;
        self.head_crc.d.next = self.zero32.val();
        self.index.d.next = self.index.q.val() + self.one7.val();
        self.phase.d.next = Phase::SaveIndex;
        match self.section.q.val() {
            Section::Mappings => {
                if self.index.q.val() == self.last_map.val() {
                    self.index.d.next = 0.into();
                    self.section.d.next = Section::Slots;
                }
            }
            Section::Slots => {
                if self.index.q.val() == self.last_slot.val() {
                    self.index.d.next = 0.into();
                    self.section.d.next = Section::Lines;
                }
            }
            Section::Lines => {
                if self.index.q.val() == self.last_line.val() {
                    self.index.d.next = 0.into();
                    self.section.d.next = Section::Parked;
                }
            }
            _ => {
                if self.index.q.val() == self.last_place.val() {
                    self.phase.d.next = Phase::SaveWait;
                }
            }
        }
    }

    /// All lines are answered before the head is sealed.
    fn save_wait(&mut self) {
        self.line.d.next = self.lines.line.val();
        if !self.unanswered.q.val().any() {
            self.feed.d.next = true;
            self.phase.d.next = Phase::SaveSeal;
            if self.write_error.q.val() {
                self.feed.d.next = false;
                self.phase.d.next = Phase::SaveFailed;
            }
        }
    }

    /// The checksum of the head is known.
    fn save_seal(&mut self) {
        self.head_crc.d.next = self.seal.crc.val();
        self.pause.d.next = self.pause.q.val() + self.one3.val();
        if self.pause.q.val() == self.crc_latency.val() {
            self.phase.d.next = Phase::SaveHead;
        }
    }

    /// Writes the head, which makes the image count.
    fn save_head(&mut self) {
        self.line.d.next = self.lines.line.val();
        self.target.d.next = self.head_line.val();
        self.after.d.next = Phase::Saved;
        self.phase.d.next = Phase::Write;
    }

    /// Without its head the save is a loss, and is reported as such at the next boot.
    fn save_failed(&mut self) {
        self.saving.d.next = false;
    }

    /// Power goes before the card was open: the image and the progress word are the save.
    fn halt(&mut self) {
        self.gating.d.next = false;
        self.public_state.d.next = self.is_saving.val();
        self.stopped.d.next = true;
        self.quiesced.d.next = true;
        self.counting.d.next = self.quiesced.q.val();
        if self.counting.q.val() & self.run.q.val().get_bit(4) {
            self.phase.d.next = Phase::Saved;
        }
    }

    /// Power may go.
    fn saved(&mut self) {
        self.saving.d.next = false;
        self.saved.d.next = true;
        self.open.d.next = false;
        self.stopped.d.next = self.quiesced.q.val();
        self.public_state.d.next = self.is_saved.val();
        if self.clean.q.val() & self.reset_pending.q.val() & !self.power_fail.val() {
            self.reset_pending.d.next = false;
            self.clearing.d.next = true;
            self.phase.d.next = Phase::Reset;
        }
    }

    /// Requests that this state does not serve.
    fn refuse_requests(&mut self) {
        if self.load_pending.q.val() & !self.open.q.val() {
            self.load_pending.d.next = false;
            self.refused.d.next = true;
        }
        if !self.open.q.val() & !self.clean.q.val() {
            self.shut_pending.d.next = false;
        }
    }

    /// Who has asked for a function-level reset reads from the next cycle on that it is not done.
    fn show_a_reset_as_booting(&mut self) {
        if (self.function_reset.val() | self.reset_pending.q.val())
            & (self.open.q.val() | self.clean.q.val())
            & !self.power_fail.val()
            & !self.saving.q.val()
        {
            self.public_state.d.next = self.is_booting.val();
        }
    }

    /// Writes of a save that the memory has not answered.
    fn count_the_unanswered(&mut self) {
        if self.posted.q.val() & !self.answered.q.val() {
            self.unanswered.d.next = self.unanswered.q.val() + self.one9.val();
        }
        if !self.posted.q.val() & self.answered.q.val() {
            self.unanswered.d.next = self.unanswered.q.val() - self.one9.val();
        }
    }

    /// At reset: nothing is known, and nothing is open.
    fn reset(&mut self) {
        if self.reset.val() {
            self.phase.d.next = Phase::Reset;
            self.saved.d.next = false;
            self.saving.d.next = false;
            self.clean.d.next = false;
            self.open.d.next = false;
            self.stopped.d.next = false;
            self.quiesced.d.next = false;
            self.gating.d.next = false;
            self.refused.d.next = false;
            self.loading_boot.d.next = false;
            self.shut_pending.d.next = false;
            self.reset_pending.d.next = false;
            self.load_pending.d.next = false;
            self.address_done.d.next = false;
            self.unanswered.d.next = 0.into();
            self.cycles.d.next = 0.into();
            self.replayed_count.d.next = 0.into();
            self.public_state.d.next = self.is_booting.val();
        }
    }
}
