//! What a transaction collects that is open beside others.

use std::ops::Range;

use super::{Allocator, Inner};
use crate::error::Error;
use crate::heap::Reservation;
use crate::write_set::WriteSet;

/// What a transaction has collected.
#[derive(Default)]
pub(super) struct Collected {
    /// New bytes, by offsets as programs see them: pages may move until the commit.
    pub writes: WriteSet,
    pub declared: Vec<Range<u64>>,
    /// Objects from the commit on.
    pub reserved: Vec<Reservation>,
    /// Allocated and freed again. Nobody else gets them before the end, as `writes` names them.
    pub cancelled: Vec<Reservation>,
    /// Objects until the commit.
    pub freed: Vec<u64>,
    /// Something was written, declared, allocated or freed.
    pub changes: bool,
}

impl Collected {
    pub fn clear(&mut self) {
        let Collected { writes, declared, reserved, cancelled, freed, changes } = self;
        writes.clear();
        declared.clear();
        reserved.clear();
        cancelled.clear();
        freed.clear();
        *changes = false;
    }

    /// The heap gets what the transaction has taken and claimed, to make it so or to take it back.
    pub fn hand_to(&self, allocator: &mut Allocator) {
        allocator.adopt(&self.reserved, &self.cancelled, &self.freed);
    }

    /// Does to the mechanism what the transaction was to do. The heap has adopted it.
    pub fn replay(&self, inner: &mut Inner) -> Result<(), Error> {
        let Inner { cx, protocol, allocator, .. } = inner;
        for object in self.reserved.iter().chain(&self.cancelled) {
            protocol.fresh(cx, object.offset, object.bytes);
        }
        for range in &self.declared {
            match protocol.declare(cx, range.start, range.end - range.start) {
                // It is logged by the parts that are stored to.
                Err(Error::TooLarge { .. }) => {}
                declared => declared?,
            }
        }
        allocator.change_adopted(cx, &mut **protocol)?;
        self.writes.runs().try_for_each(|(offset, bytes)| protocol.write(cx, offset, bytes))
    }
}
