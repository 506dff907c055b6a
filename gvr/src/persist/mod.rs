//! stub
use crate::array::{Changed, Core, Sealer};
use crate::error::Result;
/// Job.
pub struct Inner;
impl Sealer for Inner {
    fn seal(&self, _: &[&Core], _: &[Vec<Changed>], _: &str) -> Result<()> { Ok(()) }
    fn sealed_by_all(&self) -> Result<()> { Ok(()) }
}
