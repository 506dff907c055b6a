//! Kinds of elements, and how two of them are combined.

use crate::error::{Error, Result};

/// What the elements of an array are. The numbers are part of the pools' format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// 8-bit unsigned integers.
    U8 = 1,
    /// 32-bit signed integers.
    I32 = 2,
    /// 32-bit unsigned integers.
    U32 = 3,
    /// 64-bit signed integers.
    I64 = 4,
    /// 64-bit unsigned integers.
    U64 = 5,
    /// 32-bit floating point numbers.
    F32 = 6,
    /// 64-bit floating point numbers.
    F64 = 7,
}

/// How an element is combined with the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Their sum; of integers modulo their size.
    Sum,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// The new one.
    Replace,
}

impl Op {
    /// All operations.
    pub const ALL: [Op; 4] = [Op::Sum, Op::Min, Op::Max, Op::Replace];
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] = [Kind::U8, Kind::I32, Kind::U32, Kind::I64, Kind::U64, Kind::F32, Kind::F64];

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Kind::U8 => 1,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 => 8,
        }
    }

    /// The kind that a number stands for.
    ///
    /// # Errors
    /// [`Error::BadOption`].
    pub fn of_code(code: u32) -> Result<Kind> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == code).ok_or_else(|| {
            Error::option(format!(
                "{code} is no kind of element (1 to {}); the file is damaged or newer",
                Self::ALL.len()
            ))
        })
    }

    /// Combines two elements that lie in the low bytes of words.
    pub fn combine(self, op: Op, old: u64, new: u64) -> u64 {
        macro_rules! of {
            ($type:ty, $from:expr, $to:expr, $sum:expr) => {{
                let (from, to, sum): (fn(u64) -> $type, fn($type) -> u64, fn($type, $type) -> $type) =
                    ($from, $to, $sum);
                let (a, b) = (from(old), from(new));
                to(match op {
                    Op::Sum => sum(a, b),
                    Op::Min => {
                        if b < a {
                            b
                        } else {
                            a
                        }
                    }
                    Op::Max => {
                        if b > a {
                            b
                        } else {
                            a
                        }
                    }
                    Op::Replace => b,
                })
            }};
        }
        match self {
            Kind::U8 => of!(u8, |w| w as u8, |v| v.into(), u8::wrapping_add),
            Kind::I32 => of!(i32, |w| w as i32, |v| v as u32 as u64, i32::wrapping_add),
            Kind::U32 => of!(u32, |w| w as u32, |v| v.into(), u32::wrapping_add),
            Kind::I64 => of!(i64, |w| w as i64, |v| v as u64, i64::wrapping_add),
            Kind::U64 => of!(u64, |w| w, |v| v, u64::wrapping_add),
            Kind::F32 => of!(f32, |w| f32::from_bits(w as u32), |v| v.to_bits().into(), |a, b| a + b),
            Kind::F64 => of!(f64, f64::from_bits, f64::to_bits, |a, b| a + b),
        }
    }

    /// The element at a byte of a word (of its little-endian bytes).
    pub fn extract(self, word: u64, byte: usize) -> u64 {
        let shifted = word >> (8 * byte);
        if self.bytes() == 8 { shifted } else { shifted & self.mask() }
    }

    /// A word with the element at a byte changed.
    pub fn insert(self, word: u64, byte: usize, element: u64) -> u64 {
        if self.bytes() == 8 {
            return element;
        }
        let mask = self.mask() << (8 * byte);
        word & !mask | (element << (8 * byte)) & mask
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }

    /// The elements of bytes, in the low bytes of words.
    pub fn elements(self, data: &[u8]) -> impl Iterator<Item = u64> + '_ {
        data.chunks_exact(self.bytes()).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        })
    }

    /// Combines elements with those in ordinary memory.
    pub fn combine_bytes(self, op: Op, old: &mut [u8], new: &[u8]) {
        let size = self.bytes();
        for (old, new) in old.chunks_exact_mut(size).zip(self.elements(new)) {
            let before = self.elements(old).next().unwrap_or(0);
            let now = self.combine(op, before, new).to_le_bytes();
            old.copy_from_slice(&now[..size]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_combined_as_their_type_says() {
        let neg = (-3_i32) as u32 as u64;
        assert_eq!(Kind::I32.combine(Op::Sum, neg, 5), 2);
        assert_eq!(Kind::I32.combine(Op::Min, neg, 5), neg);
        assert_eq!(Kind::U32.combine(Op::Min, neg, 5), 5);
        assert_eq!(f64::from_bits(Kind::F64.combine(Op::Sum, 1.5_f64.to_bits(), 2.25_f64.to_bits())), 3.75);
        assert_eq!(Kind::U8.insert(0x1122_3344, 1, 0xaa), 0x1122_aa44);
        assert_eq!(Kind::U8.extract(0x1122_3344, 1), 0x33);
        let mut bytes = 7_u32.to_le_bytes();
        Kind::U32.combine_bytes(Op::Sum, &mut bytes, &5_u32.to_le_bytes());
        assert_eq!(u32::from_le_bytes(bytes), 12);
    }
}
