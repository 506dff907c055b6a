//! Making an array.

use std::rc::Rc;

use super::core::Core;
use super::geometry::{FIRST, Geometry};
use super::message::Served;
use super::options::{Access, Options};
use super::shape::Shape;
use crate::error::{Error, Result};
use crate::rma::{Kind, Rma};

impl Core {
    /// Makes an array. All ranks call it alike.
    pub fn new(rma: Rc<dyn Rma>, dims: &[u64], kind: Kind, options: Options) -> Result<Core> {
        let planned = Shape::new(dims, kind.bytes() as u64, rma.ranks())
            .and_then(|shape| Ok((Geometry::new(shape.part_bytes(), &options)?, shape)));
        // Other sizes on one rank would be other places in the windows of all.
        let asked = crc32c::crc32c(format!("{dims:?} {kind:?} {options:?}").as_bytes());
        let asked = rma.allgather(&[u64::from(planned.is_ok()) << 32 | u64::from(asked)])?;
        let (geometry, shape) = planned?;
        if let Some(other) = asked.iter().position(|other| *other != asked[0]) {
            return Err(Error::option(format!(
                "rank {other} asks for another array than rank 0: nothing was made; all ranks give the same sizes, elements and options"
            )));
        }
        let base = rma.alloc(geometry.bytes)?;
        let mut core = Core::over(rma, shape, kind, options, geometry, base);
        if core.is_log() {
            core.rma.replace_many(core.place(core.me(), 0), &[FIRST])?;
            core.note_opened(FIRST, FIRST)?;
            core.rma.flush(core.me())?;
        }
        if options.access == Access::Message {
            core.reach = Some(Box::new(Served::start(&core)?));
        }
        core.rma.barrier()?;
        Ok(core)
    }
}
