//! What a failed log holds: nobody waits for the unmap that ends it, since that is a later access
//! of the host (C10).

use nearpm_interface::status::Status;

use super::card::{ModelCard, Signal};
use super::item::Item;
use super::trace::What;

impl ModelCard {
    /// Asks for a look at what is held, once the rows of what was numbered in this cycle are
    /// complete.
    pub(super) fn hold_wanted(&mut self) {
        if self.order.has_failed() && !self.hold_due {
            self.hold_due = true;
            self.wheel.push(self.now + self.timing.host_row, Signal::Hold);
        }
    }

    /// Decides about everything that is held, in the order of arrival: stores are kept as long as
    /// there is room, loads are answered, and commands behind a kept store are refused.
    pub(super) fn on_hold(&mut self) {
        self.hold_due = false;
        if self.quiesce {
            return;
        }
        while let Some(line) = self.order.held_line() {
            let kept = self.order.lines[line as usize].write && self.order.keep(line);
            if !kept {
                self.give_up(line);
            }
        }
        for slot in self.order.block() {
            self.wheel.push(self.now + self.timing.retire, Signal::Retire { slot, status: Status::Latched.code() });
        }
        self.check_drained();
    }

    /// A held load is answered with an error, and a held store that cannot be kept is dropped.
    fn give_up(&mut self, line: u8) {
        self.counters.host_latched += 1;
        if let Some(ticket) = self.order.lines[line as usize].ticket.take() {
            let cycle = self.leaves(self.now + self.timing.host_return);
            self.answers.plain(ticket, cycle, true);
        }
        let item = Item::Line(line);
        self.trace(What::Retired { item, status: Status::Latched.code() });
        self.release(item);
    }
}
