//! Bytes of a dump, as they are read.

/// Bytes that are read one after the other.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// The next bytes, the lowest first, as a number without a sign.
    pub fn little(&mut self, count: usize) -> Option<u64> {
        Some(self.take(count)?.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// The same, the highest first.
    pub fn big(&mut self, count: usize) -> Option<u64> {
        Some(self.take(count)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }
}
