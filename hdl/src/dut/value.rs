//! The value of a port of any width.

use std::fmt;

/// Words of a value.
const WORDS: usize = Value::BITS / 32;

/// An unsigned number of up to 1024 bits, the widest port that a [`Dut`](super::Dut) can have.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value([u32; WORDS]);

impl Value {
    /// Width, bits.
    pub const BITS: usize = 1024;
    /// All bits 0.
    pub const ZERO: Self = Self([0; WORDS]);

    /// The number with these 32-bit words, lowest first; at most 32 of them.
    pub fn from_words(words: &[u32]) -> Self {
        let mut value = Self::ZERO;
        value.0[..words.len()].copy_from_slice(words);
        value
    }

    /// The number with these bytes, lowest first; at most 128 of them.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        assert!(bytes.len() * 8 <= Self::BITS, "{} bytes are too many", bytes.len());
        let mut value = Self::ZERO;
        for (index, byte) in bytes.iter().enumerate() {
            value.0[index / 4] |= u32::from(*byte) << (index % 4 * 8);
        }
        value
    }

    /// `width` bits of 1.
    pub fn ones(width: usize) -> Self {
        let mut value = Self::ZERO;
        (0..width).for_each(|bit| value.set_bit(bit, true));
        value
    }

    /// The 32-bit words, lowest first.
    pub fn words(&self) -> &[u32; WORDS] {
        &self.0
    }

    /// The low `count` bytes, lowest first.
    pub fn to_bytes(&self, count: usize) -> Vec<u8> {
        (0..count).map(|i| (self.0[i / 4] >> (i % 4 * 8)) as u8).collect()
    }

    /// The number, which must fit.
    pub fn to_u64(&self) -> u64 {
        assert!(self.width() <= 64, "{self:?} does not fit 64 bits");
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    /// The number of bits up to the highest 1.
    pub fn width(&self) -> usize {
        let top = self.0.iter().rposition(|w| *w != 0);
        top.map_or(0, |i| i * 32 + 32 - self.0[i].leading_zeros() as usize)
    }

    /// Bit `index`, 0 to 1023.
    pub fn bit(&self, index: usize) -> bool {
        self.0[index / 32] >> (index % 32) & 1 == 1
    }

    /// Sets bit `index`, 0 to 1023.
    pub fn set_bit(&mut self, index: usize, bit: bool) {
        let mask = 1 << (index % 32);
        let word = &mut self.0[index / 32];
        *word = if bit { *word | mask } else { *word & !mask };
    }

    /// The `width` bits from bit `low` up, as a number.
    pub fn slice(&self, low: usize, width: usize) -> Self {
        let mut out = Self::ZERO;
        (0..width).for_each(|bit| out.set_bit(bit, self.bit(low + bit)));
        out
    }

    /// This number with the `width` bits from bit `low` up replaced by those of `part`.
    #[must_use]
    pub fn with_slice(mut self, low: usize, width: usize, part: impl Into<Self>) -> Self {
        let part = part.into();
        assert!(part.width() <= width, "{part:?} does not fit {width} bits");
        (0..width).for_each(|bit| self.set_bit(low + bit, part.bit(bit)));
        self
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::from_words(&[value as u32, (value >> 32) as u32])
    }
}

impl From<u128> for Value {
    fn from(value: u128) -> Self {
        Self::from_bytes(&value.to_le_bytes())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        u64::from(value).into()
    }
}

impl PartialEq<u64> for Value {
    fn eq(&self, other: &u64) -> bool {
        *self == Self::from(*other)
    }
}

impl PartialEq<bool> for Value {
    fn eq(&self, other: &bool) -> bool {
        *self == Self::from(*other)
    }
}

/// Hexadecimal without leading zeros: `0x1f`.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let top = self.0.iter().rposition(|w| *w != 0).unwrap_or(0);
        write!(f, "{:#x}", self.0[top])?;
        self.0[..top].iter().rev().try_for_each(|word| write!(f, "_{word:08x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn slices_and_words_agree() {
        let value = Value::from(0x1234_5678_9abc_def0u64).with_slice(500, 12, 0xabcu64);
        assert_eq!(value.slice(500, 12), 0xabcu64);
        assert_eq!(value.slice(4, 8), 0xefu64);
        assert_eq!(value.width(), 512);
        assert_eq!(value.words()[15], 0xabc0_0000);
        assert_eq!(Value::from_bytes(&value.to_bytes(64)), value);
        assert_eq!(format!("{:?}", Value::ones(36)), "0xf_ffffffff");
    }
}
