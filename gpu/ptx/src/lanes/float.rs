//! Floating-point arithmetic, rounded to nearest. The `.approx` functions are computed in double
//! precision and rounded once: within the error that PTX allows, but not bit by bit what a card
//! gives.

use super::rounding::{Rounding, directed, step32};
use super::{One, Three, Two, Type, one, three, two};

/// Subnormal to zero of the same sign (`.ftz`).
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.is_subnormal() { f32::from_bits(x.to_bits() & 1 << 31) } else { x }
}

/// Every NaN that single-precision arithmetic gives is this one.
#[inline(always)]
pub(super) fn canonical(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(0x7fff_ffff) } else { x }
}

#[inline(always)]
fn saturate(x: f32) -> f32 {
    // NaN becomes zero, and so does -0.
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

/// How operands and result are treated besides the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    pub ftz: bool,
    pub sat: bool,
}

/// The four variants of a single-precision function.
macro_rules! modes {
    ($mode:expr, |$($x:ident),+| $body:expr, $lanes:ident) => {
        match ($mode.ftz, $mode.sat) {
            (false, false) => $lanes!(|$($x: f32),+| canonical($body)),
            (true, false) => $lanes!(|$($x: f32),+| { $(let $x = flush($x);)+ flush(canonical($body)) }),
            (false, true) => $lanes!(|$($x: f32),+| saturate($body)),
            (true, true) => $lanes!(|$($x: f32),+| { $(let $x = flush($x);)+ flush(saturate($body)) }),
        }
    };
}
macro_rules! one32 {
    ($f:expr) => {
        one!(f32, $f)
    };
}
macro_rules! two32 {
    ($f:expr) => {
        two!(f32, $f)
    };
}
macro_rules! three32 {
    ($f:expr) => {
        three!(f32, f32, $f)
    };
}

/// The smaller, -0 below +0, the number where one is none.
fn least(x: f32, y: f32) -> f32 {
    if x == y { f32::from_bits(x.to_bits() | y.to_bits()) } else { x.min(y) }
}

fn greatest(x: f32, y: f32) -> f32 {
    if x == y { f32::from_bits(x.to_bits() & y.to_bits()) } else { x.max(y) }
}

fn least64(x: f64, y: f64) -> f64 {
    if x == y { f64::from_bits(x.to_bits() | y.to_bits()) } else { x.min(y) }
}

fn greatest64(x: f64, y: f64) -> f64 {
    if x == y { f64::from_bits(x.to_bits() & y.to_bits()) } else { x.max(y) }
}

/// `add sub mul div min max min.NaN max.NaN copysign`
pub(crate) fn two_of(name: &str, t: Type, mode: Mode) -> Option<Two> {
    if t.bits == 64 {
        return match name {
            "add" => Some(two!(f64, |x: f64, y: f64| x + y)),
            "sub" => Some(two!(f64, |x: f64, y: f64| x - y)),
            "mul" => Some(two!(f64, |x: f64, y: f64| x * y)),
            "div" => Some(two!(f64, |x: f64, y: f64| x / y)),
            "min" => Some(two!(f64, least64)),
            "max" => Some(two!(f64, greatest64)),
            "copysign" => Some(two!(f64, |x: f64, y: f64| y.copysign(x))),
            _ => None,
        };
    }
    match name {
        "add" => Some(modes!(mode, |x, y| x + y, two32)),
        "sub" => Some(modes!(mode, |x, y| x - y, two32)),
        "mul" => Some(modes!(mode, |x, y| x * y, two32)),
        "div" => Some(modes!(mode, |x, y| x / y, two32)),
        "min" => Some(modes!(mode, |x, y| least(x, y), two32)),
        "max" => Some(modes!(mode, |x, y| greatest(x, y), two32)),
        "min.NaN" => Some(modes!(mode, |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { least(x, y) }, two32)),
        "max.NaN" => Some(modes!(mode, |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { greatest(x, y) }, two32)),
        "copysign" => Some(two!(f32, |x: f32, y: f32| y.copysign(x))),
        _ => None,
    }
}

/// `fma` and `mad`
pub(crate) fn three_of(name: &str, t: Type, mode: Mode) -> Option<Three> {
    match (name, t.bits) {
        ("fma" | "mad", 64) => Some(three!(f64, f64, |x: f64, y: f64, z: f64| x.mul_add(y, z))),
        ("fma" | "mad", 32) => Some(modes!(mode, |x, y, z| x.mul_add(y, z), three32)),
        _ => None,
    }
}

/// `neg abs sqrt rcp rsqrt sin cos ex2 lg2 tanh`
pub(crate) fn one_of(name: &str, t: Type, mode: Mode) -> Option<One> {
    if t.bits == 64 {
        return match name {
            "neg" => Some(one!(f64, |x: f64| -x)),
            "abs" => Some(one!(f64, |x: f64| x.abs())),
            "sqrt" => Some(one!(f64, |x: f64| x.sqrt())),
            "rcp" => Some(one!(f64, |x: f64| 1.0 / x)),
            "rsqrt" => Some(one!(f64, |x: f64| 1.0 / x.sqrt())),
            _ => None,
        };
    }
    // Through double precision, so that the one rounding is the last.
    match name {
        "neg" if mode.ftz => Some(one!(f32, |x: f32| -flush(x))),
        "neg" => Some(one!(f32, |x: f32| -x)),
        "abs" if mode.ftz => Some(one!(f32, |x: f32| flush(x).abs())),
        "abs" => Some(one!(f32, |x: f32| x.abs())),
        "sqrt" => Some(modes!(mode, |x| x.sqrt(), one32)),
        "rcp" => Some(modes!(mode, |x| 1.0 / x, one32)),
        "rsqrt" => Some(modes!(mode, |x| (1.0 / f64::from(x).sqrt()) as f32, one32)),
        "sin" => Some(modes!(mode, |x| f64::from(x).sin() as f32, one32)),
        "cos" => Some(modes!(mode, |x| f64::from(x).cos() as f32, one32)),
        "ex2" => Some(modes!(mode, |x| f64::from(x).exp2() as f32, one32)),
        "lg2" => Some(modes!(mode, |x| f64::from(x).log2() as f32, one32)),
        "tanh" => Some(modes!(mode, |x| f64::from(x).tanh() as f32, one32)),
        _ => None,
    }
}

/// `x * y + z` rounded once, as `rounding` says.
fn fused(x: f32, y: f32, z: f32, rounding: Rounding) -> f32 {
    // The product of two singles is exact in double precision; of the sum, `error` is what rounding
    // took away.
    let (product, addend) = (f64::from(x) * f64::from(y), f64::from(z));
    let sum = product + addend;
    let nearest = sum as f32;
    if !sum.is_finite() {
        return canonical(nearest);
    }
    let part = sum - product;
    let error = (product - (sum - part)) + (addend - part);
    if sum == 0.0 && error == 0.0 {
        // An exact zero of opposite terms is -0 when rounding down, +0 else.
        let opposite = product.is_sign_negative() != addend.is_sign_negative();
        return if opposite && rounding == Rounding::Down { -0.0 } else { nearest };
    }
    let order = match f64::from(nearest).partial_cmp(&sum) {
        Some(std::cmp::Ordering::Equal) | None => 0.0f64.total_cmp(&error),
        Some(order) => order,
    };
    let order = if f64::from(nearest) == sum && error == 0.0 { std::cmp::Ordering::Equal } else { order };
    directed(rounding, f64::from(nearest), order, step32) as f32
}

/// `add sub mul` of single precision with a rounding mode.
pub(crate) fn rounded_two_of(name: &str, t: Type, rounding: Rounding) -> Option<Two> {
    macro_rules! by_mode {
        (|$x:ident, $y:ident, $r:ident| $body:expr) => {
            match rounding {
                Rounding::Nearest => None,
                Rounding::Zero => Some(two!(f32, |$x: f32, $y: f32| {
                    let $r = Rounding::Zero;
                    $body
                })),
                Rounding::Down => Some(two!(f32, |$x: f32, $y: f32| {
                    let $r = Rounding::Down;
                    $body
                })),
                Rounding::Up => Some(two!(f32, |$x: f32, $y: f32| {
                    let $r = Rounding::Up;
                    $body
                })),
            }
        };
    }
    match (name, t.bits) {
        ("add", 32) => by_mode!(|x, y, r| fused(x, 1.0, y, r)),
        ("sub", 32) => by_mode!(|x, y, r| fused(x, 1.0, -y, r)),
        // A zero of the product's own sign leaves that sign alone.
        ("mul", 32) => by_mode!(|x, y, r| fused(x, y, if (x * y).is_sign_negative() { -0.0 } else { 0.0 }, r)),
        _ => None,
    }
}

/// `fma` of single precision with a rounding mode.
pub(crate) fn rounded_three_of(name: &str, t: Type, rounding: Rounding) -> Option<Three> {
    match (name, t.bits, rounding) {
        ("fma", 32, Rounding::Zero) => Some(three!(f32, f32, |x: f32, y: f32, z: f32| fused(x, y, z, Rounding::Zero))),
        ("fma", 32, Rounding::Down) => Some(three!(f32, f32, |x: f32, y: f32, z: f32| fused(x, y, z, Rounding::Down))),
        ("fma", 32, Rounding::Up) => Some(three!(f32, f32, |x: f32, y: f32, z: f32| fused(x, y, z, Rounding::Up))),
        _ => None,
    }
}
