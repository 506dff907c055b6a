//! A member of a pool, as recovery and tables of pages see it.

use nearpm_interface::media::PoolHead;

use crate::error::{Error, Problem};
use crate::memory::Medium;

/// One member of a pool, or all of an ordinary one.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub medium: &'a Medium,
    pub head: &'a PoolHead,
    /// Of a member.
    pub location: Option<&'a str>,
}

impl Part<'_> {
    /// Says of damage on which member it is.
    pub fn named(&self, error: Error) -> Error {
        match (error, self.location) {
            (Error::Corrupt { what, offset }, Some(location)) => Problem::Corrupt { what, offset }.at(location),
            (other, _) => other,
        }
    }
}
