//! `cvt`: between integers (with truncation, extension, saturation) and floating point (with a
//! rounding mode).

use super::float::{canonical, flush};
use super::rounding::{Rounding, directed, step32, step64};
use super::{Lanes, One, Type, WARP, one};

macro_rules! cast {
    ($from:expr, $to:expr; $($a:ident $ab:literal $b:ident $bb:literal $at:ty => $bt:ty),*) => {
        match (letter($from), $from.bits, letter($to), $to.bits) {
            $((Letter::$a, $ab, Letter::$b, $bb) => Some(one!($at => $bt, |x: $at| x as $bt)),)*
            _ => None,
        }
    };
}

#[derive(PartialEq)]
enum Letter {
    U,
    S,
}

fn letter(t: Type) -> Letter {
    if t.signed() { Letter::S } else { Letter::U }
}

/// Between integers: extension by the source's sign, truncation; `sat` clamps to the target's
/// range.
pub(crate) fn integer(to: Type, from: Type, sat: bool) -> Option<One> {
    if sat {
        return saturating(to, from);
    }
    // Truncation and zero extension are masks; only sign extension looks at the type.
    cast!(from, to;
        S 8 S 16 i8 => i16, S 8 U 16 i8 => u16, S 8 S 32 i8 => i32, S 8 U 32 i8 => u32, S 8 S 64 i8 => i64,
        S 8 U 64 i8 => u64, S 16 S 32 i16 => i32, S 16 U 32 i16 => u32, S 16 S 64 i16 => i64, S 16 U 64 i16 => u64,
        S 32 S 64 i32 => i64, S 32 U 64 i32 => u64)
    .or_else(|| match to.bits.min(from.bits) {
        // `cvt` to 8 bits leaves the value in a wider register, extended by the target's sign.
        8 => Some(one!(u64, |x: u64| x & 0xff)),
        16 => Some(one!(u64, |x: u64| x & 0xffff)),
        32 => Some(one!(u64, |x: u64| x & 0xffff_ffff)),
        64 => Some(one!(u64, |x: u64| x)),
        _ => None,
    })
}

fn saturating(to: Type, from: Type) -> Option<One> {
    macro_rules! clamp {
        ($($a:ident $ab:literal $at:ty),*; $b:ty) => {
            match (letter(from), from.bits) {
                $((Letter::$a, $ab) => Some(one!($at => $b, |x: $at| {
                    (x as i128).clamp(<$b>::MIN as i128, <$b>::MAX as i128) as $b
                })),)*
                _ => None,
            }
        };
        ($b:ty) => {
            clamp!(U 8 u8, U 16 u16, U 32 u32, U 64 u64, S 8 i8, S 16 i16, S 32 i32, S 64 i64; $b)
        };
    }
    match (letter(to), to.bits) {
        (Letter::U, 8) => clamp!(u8),
        (Letter::U, 16) => clamp!(u16),
        (Letter::U, 32) => clamp!(u32),
        (Letter::U, 64) => clamp!(u64),
        (Letter::S, 8) => clamp!(i8),
        (Letter::S, 16) => clamp!(i16),
        (Letter::S, 32) => clamp!(i32),
        (Letter::S, 64) => clamp!(i64),
        _ => None,
    }
}

macro_rules! by_rounding {
    ($rounding:expr, $r:ident => $function:expr) => {
        match $rounding {
            Rounding::Nearest => {
                const $r: Rounding = Rounding::Nearest;
                $function
            }
            Rounding::Zero => {
                const $r: Rounding = Rounding::Zero;
                $function
            }
            Rounding::Down => {
                const $r: Rounding = Rounding::Down;
                $function
            }
            Rounding::Up => {
                const $r: Rounding = Rounding::Up;
                $function
            }
        }
    };
}

/// Float to integer: out of range clamps, NaN gives 0 (32 bits and below) or the highest bit alone
/// (64 bits), as PTX says.
pub(crate) fn float_to_integer(to: Type, from: Type, rounding: Rounding, ftz: bool) -> Option<One> {
    macro_rules! convert {
        ($to:ty, $nan:expr) => {
            match from.bits {
                32 if ftz => Some(by_rounding!(rounding, R => one!(f32 => $to, |x: f32| {
                    if x.is_nan() { $nan } else { R.integral(f64::from(flush(x))) as $to }
                }))),
                32 => Some(by_rounding!(rounding, R => one!(f32 => $to, |x: f32| {
                    if x.is_nan() { $nan } else { R.integral(f64::from(x)) as $to }
                }))),
                64 => Some(by_rounding!(rounding, R => one!(f64 => $to, |x: f64| {
                    if x.is_nan() { $nan } else { R.integral(x) as $to }
                }))),
                _ => None,
            }
        };
    }
    match (letter(to), to.bits) {
        (Letter::U, 8) => convert!(u8, 0),
        (Letter::U, 16) => convert!(u16, 0),
        (Letter::U, 32) => convert!(u32, 0),
        (Letter::U, 64) => convert!(u64, 1 << 63),
        (Letter::S, 8) => convert!(i8, 0),
        (Letter::S, 16) => convert!(i16, 0),
        (Letter::S, 32) => convert!(i32, 0),
        (Letter::S, 64) => convert!(i64, i64::MIN),
        _ => None,
    }
}

/// Integer to float.
pub(crate) fn integer_to_float(to: Type, from: Type, rounding: Rounding) -> Option<One> {
    macro_rules! convert {
        ($from:ty) => {
            match (to.bits, rounding) {
                (32, Rounding::Nearest) => Some(one!($from => f32, |x: $from| x as f32)),
                (64, Rounding::Nearest) => Some(one!($from => f64, |x: $from| x as f64)),
                (32, _) => Some(by_rounding!(rounding, R => one!($from => f32, |x: $from| {
                    let nearest = x as f32;
                    directed(R, f64::from(nearest), (nearest as i128).cmp(&(x as i128)), step32) as f32
                }))),
                (64, _) => Some(by_rounding!(rounding, R => one!($from => f64, |x: $from| {
                    let nearest = x as f64;
                    directed(R, nearest, (nearest as i128).cmp(&(x as i128)), step64)
                }))),
                _ => None,
            }
        };
    }
    match (letter(from), from.bits) {
        (Letter::U, 8) => convert!(u8),
        (Letter::U, 16) => convert!(u16),
        (Letter::U, 32) => convert!(u32),
        (Letter::U, 64) => convert!(u64),
        (Letter::S, 8) => convert!(i8),
        (Letter::S, 16) => convert!(i16),
        (Letter::S, 32) => convert!(i32),
        (Letter::S, 64) => convert!(i64),
        _ => None,
    }
}

/// Float to float: `integral` where the rounding mode is one to an integral value.
pub(crate) fn float(to: Type, from: Type, rounding: Rounding, integral: bool, ftz: bool, sat: bool) -> Option<One> {
    macro_rules! finish32 {
        ($from:ty, $body:expr) => {
            match (ftz, sat) {
                (false, false) => Some(by_rounding!(rounding, R => one!($from => f32, |x: $from| $body(R, x)))),
                (true, false) => {
                    Some(by_rounding!(rounding, R => one!($from => f32, |x: $from| flush($body(R, x)))))
                }
                (_, true) => Some(by_rounding!(rounding, R => one!($from => f32, |x: $from| {
                    let value: f32 = flush($body(R, x));
                    if value > 0.0 { value.min(1.0) } else { 0.0 }
                }))),
            }
        };
    }
    match (from.bits, to.bits, integral) {
        (32, 32, false) if ftz => finish32!(f32, |_: Rounding, x: f32| canonical(flush(x))),
        (32, 32, false) => finish32!(f32, |_: Rounding, x: f32| canonical(x)),
        (32, 32, true) => finish32!(f32, |r: Rounding, x: f32| canonical(r.integral(f64::from(x)) as f32)),
        (64, 32, false) => finish32!(f64, |r: Rounding, x: f64| canonical(narrow(r, x))),
        (32, 64, false) if ftz => Some(one!(f32 => f64, |x: f32| f64::from(flush(x)))),
        (32, 64, false) => Some(one!(f32 => f64, f64::from)),
        (64, 64, true) => Some(by_rounding!(rounding, R => one!(f64, |x: f64| R.integral(x)))),
        (64, 64, false) => Some(one!(f64, |x: f64| x)),
        _ => None,
    }
}

fn narrow(rounding: Rounding, x: f64) -> f32 {
    let nearest = x as f32;
    match f64::from(nearest).partial_cmp(&x) {
        Some(order) => directed(rounding, f64::from(nearest), order, step32) as f32,
        None => nearest,
    }
}

/// Sign extension of the lowest `bits` to 64, for narrow loads into wide registers and 8-bit
/// targets.
pub(crate) fn sign_extend(bits: u32) -> One {
    fn extend<const BITS: u32>(a: &Lanes, out: &mut Lanes) {
        for i in 0..WARP {
            out[i] = (((a[i] << (64 - BITS)) as i64) >> (64 - BITS)) as u64;
        }
    }
    match bits {
        8 => extend::<8>,
        16 => extend::<16>,
        32 => extend::<32>,
        _ => extend::<64>,
    }
}
