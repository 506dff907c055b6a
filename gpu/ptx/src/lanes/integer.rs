//! Integer arithmetic.

use super::{Four, Lane, One, Three, Two, Type, one, three, two};

/// Chooses a lane function by the type of its operands.
macro_rules! by_type {
    ($type:expr, $x:ident => $function:expr) => {
        match ($type.signed(), $type.bits) {
            (false, 16) => {
                type $x = u16;
                Some($function)
            }
            (false, 32) => {
                type $x = u32;
                Some($function)
            }
            (false, 64) => {
                type $x = u64;
                Some($function)
            }
            (true, 16) => {
                type $x = i16;
                Some($function)
            }
            (true, 32) => {
                type $x = i32;
                Some($function)
            }
            (true, 64) => {
                type $x = i64;
                Some($function)
            }
            _ => None,
        }
    };
}

trait Divide: Lane {
    fn quotient(self, by: Self) -> Self;
    fn remainder(self, by: Self) -> Self;
    fn high(self, by: Self) -> Self;
}

macro_rules! divide {
    ($($type:ty, $wide:ty);*) => {$(
        impl Divide for $type {
            // Division by zero gives all ones, as the card does (PTX leaves it open).
            #[inline(always)]
            fn quotient(self, by: Self) -> Self { if by == 0 { <$type>::MAX | !0 } else { self.wrapping_div(by) } }
            #[inline(always)]
            fn remainder(self, by: Self) -> Self { if by == 0 { self } else { self.wrapping_rem(by) } }
            #[inline(always)]
            fn high(self, by: Self) -> Self { ((self as $wide * by as $wide) >> <$type>::BITS) as $type }
        }
    )*};
}
divide!(u16, u32; u32, u64; u64, u128; i16, i32; i32, i64; i64, i128);

/// `add sub mul.lo mul.hi div rem min max`; None for a name or type that there is not.
pub(crate) fn two_of(name: &str, t: Type) -> Option<Two> {
    match name {
        "add" => by_type!(t, X => two!(X, |x: X, y: X| x.wrapping_add(y))),
        "sub" => by_type!(t, X => two!(X, |x: X, y: X| x.wrapping_sub(y))),
        "mul.lo" => by_type!(t, X => two!(X, |x: X, y: X| x.wrapping_mul(y))),
        "mul.hi" => by_type!(t, X => two!(X, |x: X, y: X| Divide::high(x, y))),
        "div" => by_type!(t, X => two!(X, |x: X, y: X| Divide::quotient(x, y))),
        "rem" => by_type!(t, X => two!(X, |x: X, y: X| Divide::remainder(x, y))),
        "min" => by_type!(t, X => two!(X, |x: X, y: X| x.min(y))),
        "max" => by_type!(t, X => two!(X, |x: X, y: X| x.max(y))),
        "add.sat" if t.signed() && t.bits == 32 => Some(two!(i32, |x: i32, y: i32| x.saturating_add(y))),
        "sub.sat" if t.signed() && t.bits == 32 => Some(two!(i32, |x: i32, y: i32| x.saturating_sub(y))),
        "mul.wide" => wide(t),
        "mul24.lo" => match (t.signed(), t.bits) {
            (false, 32) => Some(two!(u32, |x: u32, y: u32| (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff))),
            (true, 32) => Some(two!(i32, |x: i32, y: i32| (x << 8 >> 8).wrapping_mul(y << 8 >> 8))),
            _ => None,
        },
        _ => None,
    }
}

fn wide(t: Type) -> Option<Two> {
    match (t.signed(), t.bits) {
        (false, 16) => Some(two!(u16 => u32, |x: u16, y: u16| u32::from(x) * u32::from(y))),
        (false, 32) => Some(two!(u32 => u64, |x: u32, y: u32| u64::from(x) * u64::from(y))),
        (true, 16) => Some(two!(i16 => i32, |x: i16, y: i16| i32::from(x) * i32::from(y))),
        (true, 32) => Some(two!(i32 => i64, |x: i32, y: i32| i64::from(x) * i64::from(y))),
        _ => None,
    }
}

/// `mad.lo mad.hi mad.wide sad`
pub(crate) fn three_of(name: &str, t: Type) -> Option<Three> {
    match name {
        "mad.lo" => by_type!(t, X => three!(X, X, |x: X, y: X, z: X| x.wrapping_mul(y).wrapping_add(z))),
        "mad.hi" => by_type!(t, X => three!(X, X, |x: X, y: X, z: X| Divide::high(x, y).wrapping_add(z))),
        "sad" => by_type!(t, X => three!(X, X, |x: X, y: X, z: X| z.wrapping_add(x.max(y).wrapping_sub(x.min(y))))),
        "mad.wide" => match (t.signed(), t.bits) {
            (false, 16) => {
                Some(three!(u16, u32, |x: u16, y: u16, z: u32| (u32::from(x) * u32::from(y)).wrapping_add(z)))
            }
            (false, 32) => {
                Some(three!(u32, u64, |x: u32, y: u32, z: u64| (u64::from(x) * u64::from(y)).wrapping_add(z)))
            }
            (true, 16) => {
                Some(three!(i16, i32, |x: i16, y: i16, z: i32| (i32::from(x) * i32::from(y)).wrapping_add(z)))
            }
            (true, 32) => {
                Some(three!(i32, i64, |x: i32, y: i32, z: i64| (i64::from(x) * i64::from(y)).wrapping_add(z)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `neg abs`
pub(crate) fn one_of(name: &str, t: Type) -> Option<One> {
    match (name, t.bits) {
        ("neg", 16) => Some(one!(i16, |x: i16| x.wrapping_neg())),
        ("neg", 32) => Some(one!(i32, |x: i32| x.wrapping_neg())),
        ("neg", 64) => Some(one!(i64, |x: i64| x.wrapping_neg())),
        ("abs", 16) => Some(one!(i16, |x: i16| x.wrapping_abs())),
        ("abs", 32) => Some(one!(i32, |x: i32| x.wrapping_abs())),
        ("abs", 64) => Some(one!(i64, |x: i64| x.wrapping_abs())),
        _ => None,
    }
}

/// Addition with carry in (the third operand's lowest bit) of 32 or 64 bits; the carry out is a
/// lane function of its own, since an instruction has one result.
pub(crate) fn carry_of(subtract: bool, carry_out: bool, bits: u32) -> Option<Four> {
    macro_rules! carry {
        ($type:ty, $method:ident) => {{
            fn both(a: u64, b: u64, c: u64) -> ($type, bool) {
                let (first, one) = <$type>::of(a).$method(<$type>::of(b));
                let (second, two) = first.$method(c as $type & 1);
                (second, one | two)
            }
            if carry_out {
                Some((|a, b, c, _, out| (0..32).for_each(|i| out[i] = u64::from(both(a[i], b[i], c[i]).1))) as Four)
            } else {
                Some((|a, b, c, _, out| (0..32).for_each(|i| out[i] = both(a[i], b[i], c[i]).0.bits())) as Four)
            }
        }};
    }
    match (subtract, bits) {
        (false, 32) => carry!(u32, overflowing_add),
        (false, 64) => carry!(u64, overflowing_add),
        (true, 32) => carry!(u32, overflowing_sub),
        (true, 64) => carry!(u64, overflowing_sub),
        _ => None,
    }
}

/// `mad.lo` and `mad.hi` with carry in (the fourth operand's lowest bit), of 32 or 64 bits: the
/// sum, or its carry out.
pub(crate) fn mad_carry_of(high: bool, carry_out: bool, t: Type) -> Option<Four> {
    macro_rules! mad {
        ($type:ty, $part:expr) => {{
            fn both(a: u64, b: u64, c: u64, carry: u64) -> ($type, bool) {
                let product: $type = $part(<$type>::of(a), <$type>::of(b));
                let (first, one) = product.overflowing_add(<$type>::of(c));
                let (second, two) = first.overflowing_add(carry as $type & 1);
                (second, one | two)
            }
            if carry_out {
                Some(
                    (|a, b, c, d, out| (0..32).for_each(|i| out[i] = u64::from(both(a[i], b[i], c[i], d[i]).1)))
                        as Four,
                )
            } else {
                Some((|a, b, c, d, out| (0..32).for_each(|i| out[i] = both(a[i], b[i], c[i], d[i]).0.bits())) as Four)
            }
        }};
    }
    match (t.bits, high, t.signed()) {
        (32, false, _) => mad!(u32, |a: u32, b: u32| a.wrapping_mul(b)),
        (64, false, _) => mad!(u64, |a: u64, b: u64| a.wrapping_mul(b)),
        (32, true, false) => mad!(u32, |a: u32, b: u32| a.high(b)),
        (64, true, false) => mad!(u64, |a: u64, b: u64| a.high(b)),
        (32, true, true) => mad!(u32, |a: u32, b: u32| (a as i32).high(b as i32) as u32),
        (64, true, true) => mad!(u64, |a: u64, b: u64| (a as i64).high(b as i64) as u64),
        _ => None,
    }
}
