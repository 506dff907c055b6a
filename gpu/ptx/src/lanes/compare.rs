//! Comparisons: one bit a lane.

use super::{Class, Lane, Lanes, Test, Type, WARP};

macro_rules! test {
    ($type:ty, $function:expr) => {
        (|a: &Lanes, b: &Lanes| {
            let mut bits = 0;
            for i in 0..WARP {
                bits |= u32::from($function(<$type as Lane>::of(a[i]), <$type as Lane>::of(b[i]))) << i;
            }
            bits
        }) as Test
    };
}

macro_rules! ordered {
    ($name:expr, $type:ty) => {
        match $name {
            "eq" => Some(test!($type, |x: $type, y: $type| x == y)),
            "ne" => Some(test!($type, |x: $type, y: $type| x != y)),
            "lt" | "lo" => Some(test!($type, |x: $type, y: $type| x < y)),
            "le" | "ls" => Some(test!($type, |x: $type, y: $type| x <= y)),
            "gt" | "hi" => Some(test!($type, |x: $type, y: $type| x > y)),
            "ge" | "hs" => Some(test!($type, |x: $type, y: $type| x >= y)),
            _ => None,
        }
    };
}

macro_rules! float {
    ($name:expr, $type:ty, $prepare:expr) => {
        match $name {
            "eq" => Some(test!($type, |x, y| $prepare(x) == $prepare(y))),
            // Ordered: false where either is no number.
            "ne" => Some(test!($type, |x, y| $prepare(x) < $prepare(y) || $prepare(x) > $prepare(y))),
            "lt" => Some(test!($type, |x, y| $prepare(x) < $prepare(y))),
            "le" => Some(test!($type, |x, y| $prepare(x) <= $prepare(y))),
            "gt" => Some(test!($type, |x, y| $prepare(x) > $prepare(y))),
            "ge" => Some(test!($type, |x, y| $prepare(x) >= $prepare(y))),
            // Unordered: true where either is no number.
            "equ" => Some(test!($type, |x, y| !($prepare(x) < $prepare(y) || $prepare(x) > $prepare(y)))),
            "neu" => Some(test!($type, |x, y| $prepare(x) != $prepare(y))),
            "ltu" => {
                Some(test!($type, |x: $type, y: $type| unordered(x.is_nan(), y.is_nan(), $prepare(x) < $prepare(y))))
            }
            "leu" => {
                Some(test!($type, |x: $type, y: $type| unordered(x.is_nan(), y.is_nan(), $prepare(x) <= $prepare(y))))
            }
            "gtu" => {
                Some(test!($type, |x: $type, y: $type| unordered(x.is_nan(), y.is_nan(), $prepare(x) > $prepare(y))))
            }
            "geu" => {
                Some(test!($type, |x: $type, y: $type| unordered(x.is_nan(), y.is_nan(), $prepare(x) >= $prepare(y))))
            }
            "num" => Some(test!($type, |x: $type, y: $type| !x.is_nan() && !y.is_nan())),
            "nan" => Some(test!($type, |x: $type, y: $type| x.is_nan() || y.is_nan())),
            _ => None,
        }
    };
}

fn unordered(x_nan: bool, y_nan: bool, holds: bool) -> bool {
    x_nan | y_nan | holds
}

/// The comparison `name` of values of type `t`; `ftz` takes subnormal `f32` values for zero.
pub(crate) fn test_of(name: &str, t: Type, ftz: bool) -> Option<Test> {
    // `lo ls hi hs` are the unsigned comparisons' own names.
    if matches!(name, "lo" | "ls" | "hi" | "hs") && t.class != Class::Unsigned {
        return None;
    }
    match (t.class, t.bits) {
        (Class::Signed, 16) => ordered!(name, i16),
        (Class::Signed, 32) => ordered!(name, i32),
        (Class::Signed, 64) => ordered!(name, i64),
        (Class::Float, 32) if ftz => float!(name, f32, super::float::flush),
        (Class::Float, 32) => float!(name, f32, std::convert::identity),
        (Class::Float, 64) => float!(name, f64, std::convert::identity),
        (Class::Bits, 16 | 32 | 64) if !matches!(name, "eq" | "ne") => None,
        (Class::Bits | Class::Unsigned, 16) => ordered!(name, u16),
        (Class::Bits | Class::Unsigned, 32) => ordered!(name, u32),
        (Class::Bits | Class::Unsigned, 64) => ordered!(name, u64),
        _ => None,
    }
}

/// `testp.finite` and its like; the second operand is not looked at.
pub(crate) fn property_of(name: &str, t: Type) -> Option<Test> {
    macro_rules! property {
        ($type:ty) => {
            match name {
                "finite" => Some(test!($type, |x: $type, _: $type| x.is_finite())),
                "infinite" => Some(test!($type, |x: $type, _: $type| x.is_infinite())),
                "number" => Some(test!($type, |x: $type, _: $type| !x.is_nan())),
                "notanumber" => Some(test!($type, |x: $type, _: $type| x.is_nan())),
                "normal" => Some(test!($type, |x: $type, _: $type| x.is_normal())),
                "subnormal" => Some(test!($type, |x: $type, _: $type| x.is_subnormal())),
                _ => None,
            }
        };
    }
    match (t.class, t.bits) {
        (Class::Float, 32) => property!(f32),
        (Class::Float, 64) => property!(f64),
        _ => None,
    }
}
