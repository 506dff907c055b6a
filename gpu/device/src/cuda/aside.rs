//! Copies that go on beside the work of the others.

use cudarc::driver::{result, sys};

use super::{Cuda, refused};
use crate::device::Aside;
use crate::error::Error;

impl Cuda {
    pub(super) fn begin_aside(&self, to: u64, from: u64, bytes: u64) -> Result<Aside, Error> {
        self.current()?;
        let event =
            || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(refused("make an event"));
        let (before, done) = (event()?, event()?);
        // SAFETY: events and streams are this device's; the driver refuses addresses that it has
        // not given or pinned. An event that is destroyed goes when what waits for it has ended.
        let begun = unsafe {
            result::event::record(before, self.stream)
                .and_then(|()| {
                    result::stream::wait_event(self.copies, before, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)
                })
                .and_then(|()| sys::cuMemcpyAsync(to, from, bytes as usize, self.copies).result())
                .and_then(|()| result::event::record(done, self.copies))
                .and(result::event::destroy(before))
        };
        begun.map_err(refused("begin a copy"))?;
        let number = self.next_aside.replace(self.next_aside.get() + 1);
        self.asides.borrow_mut().insert(number, done);
        Ok(Aside(number))
    }

    pub(super) fn end_aside(&self, copy: Aside) -> Result<(), Error> {
        self.current()?;
        let Some(done) = self.asides.borrow_mut().remove(&copy.0) else {
            return Err(Error::Invalid("a copy that this device has not begun".to_owned()));
        };
        // SAFETY: the event was made by this device, and is not used again.
        unsafe { result::event::synchronize(done).and(result::event::destroy(done)) }.map_err(refused("finish a copy"))
    }
}
