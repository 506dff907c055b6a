//! Records that recovery found in the segments of the log.

use nearpm_interface::record::{Kind, Operation, RecordHead};

/// A record that counts.
pub(crate) struct Found {
    pub(super) head: RecordHead,
    pub(super) kind: Kind,
    pub(super) body: Vec<u8>,
    /// Offset in the pool, for messages.
    pub(super) offset: u64,
}

impl Found {
    /// Its operations.
    pub(super) fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let mut body = &self.body[..];
        std::iter::from_fn(move || {
            let (operation, rest) = Operation::decode(body)?;
            body = rest;
            Some(operation)
        })
    }
}

/// Whether a record shows that everything in front of it in its segment was durable once: it is the
/// first of its append, before which the append in front was durable, unless that was an
/// asynchronous commit, which a later record names.
pub(super) fn is_later(head: &RecordHead, newest: u64) -> bool {
    let begins = head.sequence == head.first || (head.kind == Kind::Commit as u32 && head.parts == 0);
    head.sequence > newest && head.depends == 0 && begins
}
