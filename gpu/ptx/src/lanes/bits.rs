//! Logic, shifts, counts and fields of bits.

use super::{Four, Lanes, One, Three, Two, Type, WARP, one, two};

/// `and or xor shl shr`
pub(crate) fn two_of(name: &str, t: Type) -> Option<Two> {
    match (name, t.bits) {
        ("and", _) => Some(two!(u64, |x: u64, y: u64| x & y)),
        ("or", _) => Some(two!(u64, |x: u64, y: u64| x | y)),
        ("xor", _) => Some(two!(u64, |x: u64, y: u64| x ^ y)),
        // The distance is a 32-bit value; one of the width or more shifts everything out.
        ("shl", 16) => Some(two!(u64, |x: u64, n: u64| if n as u32 > 15 { 0 } else { (x << (n & 15)) & 0xffff })),
        ("shl", 32) => {
            Some(two!(u64, |x: u64, n: u64| if n as u32 > 31 { 0 } else { u64::from((x as u32) << (n & 31)) }))
        }
        ("shl", 64) => Some(two!(u64, |x: u64, n: u64| if n as u32 > 63 { 0 } else { x << (n & 63) })),
        ("shr", 16) if t.signed() => {
            Some(two!(u64, |x: u64, n: u64| u64::from((x as i16 >> (n as u32).min(15)) as u16)))
        }
        ("shr", 32) if t.signed() => {
            Some(two!(u64, |x: u64, n: u64| u64::from((x as i32 >> (n as u32).min(31)) as u32)))
        }
        ("shr", 64) if t.signed() => Some(two!(u64, |x: u64, n: u64| (x as i64 >> (n as u32).min(63)) as u64)),
        ("shr", 16 | 32 | 64) => Some(two!(u64, |x: u64, n: u64| if n as u32 > 63 { 0 } else { x >> (n & 63) })),
        _ => None,
    }
}

/// `shl` and `shr` by the same distance in all lanes, which the compiler turns into vector shifts.
/// Expects a distance below the width.
pub(crate) fn uniform_shift(name: &str, t: Type) -> Option<Two> {
    macro_rules! shift {
        ($type:ty, $op:tt) => {
            (|a: &Lanes, n: &Lanes, out: &mut Lanes| {
                let n = (n[0] & u64::from(<$type>::BITS - 1)) as u32;
                for i in 0..WARP {
                    out[i] = (<$type as super::Lane>::of(a[i]) $op n).bits();
                }
            }) as Two
        };
    }
    use super::Lane;
    match (name, t.bits, t.signed()) {
        ("shl", 32, _) => Some(shift!(u32, <<)),
        ("shl", 64, _) => Some(shift!(u64, <<)),
        ("shr", 32, false) => Some(shift!(u32, >>)),
        ("shr", 64, false) => Some(shift!(u64, >>)),
        ("shr", 32, true) => Some(shift!(i32, >>)),
        ("shr", 64, true) => Some(shift!(i64, >>)),
        _ => None,
    }
}

/// `not cnot popc clz brev bfind bfind.shiftamt`
pub(crate) fn one_of(name: &str, t: Type) -> Option<One> {
    match (name, t.bits) {
        ("not", 16) => Some(one!(u16, |x: u16| !x)),
        ("not", 32) => Some(one!(u32, |x: u32| !x)),
        ("not", 64) => Some(one!(u64, |x: u64| !x)),
        ("cnot", 16 | 32 | 64) => Some(one!(u64, |x: u64| u64::from(x == 0))),
        ("popc", 32 | 64) => Some(one!(u64, |x: u64| u64::from(x.count_ones()))),
        ("clz", 32) => Some(one!(u32, |x: u32| x.leading_zeros())),
        ("clz", 64) => Some(one!(u64 => u32, |x: u64| x.leading_zeros())),
        ("brev", 32) => Some(one!(u32, |x: u32| x.reverse_bits())),
        ("brev", 64) => Some(one!(u64, |x: u64| x.reverse_bits())),
        ("bfind", 32) if t.signed() => Some(one!(u32, |x: u32| found(u64::from(significant32(x)), 32, false))),
        ("bfind", 64) if t.signed() => Some(one!(u64 => u32, |x: u64| found(significant64(x), 64, false))),
        ("bfind", 32 | 64) => Some(one!(u64 => u32, |x: u64| found(x, 64, false))),
        ("bfind.shiftamt", 32) if t.signed() => Some(one!(u32, |x: u32| found(u64::from(significant32(x)), 32, true))),
        ("bfind.shiftamt", 64) if t.signed() => Some(one!(u64 => u32, |x: u64| found(significant64(x), 64, true))),
        ("bfind.shiftamt", 32) => Some(one!(u64 => u32, |x: u64| found(x, 32, true))),
        ("bfind.shiftamt", 64) => Some(one!(u64 => u32, |x: u64| found(x, 64, true))),
        _ => None,
    }
}

/// Bits that differ from the sign.
fn significant32(x: u32) -> u32 {
    if (x as i32) < 0 { !x } else { x }
}

fn significant64(x: u64) -> u64 {
    if (x as i64) < 0 { !x } else { x }
}

/// Position of the highest one bit, or how far left it has to be shifted; all ones where there is
/// none.
fn found(x: u64, bits: u32, shift: bool) -> u32 {
    match x.checked_ilog2() {
        None => u32::MAX,
        Some(position) if shift => bits - 1 - position,
        Some(position) => position,
    }
}

/// `bfe`, `prmt`, `shf`
pub(crate) fn three_of(name: &str, t: Type) -> Option<Three> {
    macro_rules! lanes3 {
        ($function:expr) => {
            (|a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes| {
                for i in 0..WARP {
                    out[i] = $function(a[i], b[i], c[i]);
                }
            }) as Three
        };
    }
    match (name, t.bits, t.signed()) {
        ("bfe", 32, false) => Some(lanes3!(|a, p, n| extract(a, p, n, 32, false))),
        ("bfe", 64, false) => Some(lanes3!(|a, p, n| extract(a, p, n, 64, false))),
        ("bfe", 32, true) => Some(lanes3!(|a, p, n| extract(a, p, n, 32, true))),
        ("bfe", 64, true) => Some(lanes3!(|a, p, n| extract(a, p, n, 64, true))),
        ("prmt", 32, _) => Some(lanes3!(permute)),
        ("prmt.f4e", 32, _) => Some(lanes3!(|a, b, c| permute(a, b, pattern(c, [0x3210, 0x4321, 0x5432, 0x6543])))),
        ("prmt.b4e", 32, _) => Some(lanes3!(|a, b, c| permute(a, b, pattern(c, [0x5670, 0x6701, 0x7012, 0x0123])))),
        ("prmt.rc8", 32, _) => Some(lanes3!(|a, b, c| permute(a, b, pattern(c, [0x0000, 0x1111, 0x2222, 0x3333])))),
        ("prmt.ecl", 32, _) => Some(lanes3!(|a, b, c| permute(a, b, pattern(c, [0x3210, 0x3211, 0x3222, 0x3333])))),
        ("prmt.ecr", 32, _) => Some(lanes3!(|a, b, c| permute(a, b, pattern(c, [0x0000, 0x1110, 0x2210, 0x3210])))),
        ("prmt.rc16", 32, _) => Some(lanes3!(|a, b, c| permute(a, b, pattern(c, [0x1010, 0x3232, 0x1010, 0x3232])))),
        ("shf.l.wrap", 32, _) => Some(lanes3!(|a, b, n| funnel_left(a, b, n & 31))),
        ("shf.l.clamp", 32, _) => Some(lanes3!(|a, b, n: u64| funnel_left(a, b, u64::from((n as u32).min(32))))),
        ("shf.r.wrap", 32, _) => Some(lanes3!(|a, b, n| funnel_right(a, b, n & 31))),
        ("shf.r.clamp", 32, _) => Some(lanes3!(|a, b, n: u64| funnel_right(a, b, u64::from((n as u32).min(32))))),
        _ => None,
    }
}

fn funnel_left(low: u64, high: u64, distance: u64) -> u64 {
    ((high << 32 | low) << distance) >> 32
}

fn funnel_right(low: u64, high: u64, distance: u64) -> u64 {
    ((high << 32 | low) >> distance) & 0xffff_ffff
}

fn extract(a: u64, position: u64, length: u64, bits: u32, signed: bool) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let width = u64::from(bits);
    let all = if bits == 64 { u64::MAX } else { 0xffff_ffff };
    if length == 0 {
        return 0;
    }
    let shifted = if position >= width { 0 } else { (a & all) >> position };
    let field = if length >= width { shifted } else { shifted & ((1 << length) - 1) };
    // The sign is the field's highest bit, or the value's where the field reaches beyond it.
    let sign = signed && a >> (position + length - 1).min(width - 1) & 1 == 1;
    let taken = length.min(width.saturating_sub(position));
    if sign && taken < width { field | (all & (u64::MAX << taken)) } else { field }
}

fn pattern(selector: u64, patterns: [u64; 4]) -> u64 {
    patterns[(selector & 3) as usize]
}

fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = (b << 32 | a & 0xffff_ffff).to_le_bytes();
    (0..4).fold(0, |result, i| {
        let choice = selector >> (4 * i);
        let byte = bytes[(choice & 7) as usize];
        let byte = if choice & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte };
        result | u64::from(byte) << (8 * i)
    })
}

/// `bfi`, `lop3`
pub(crate) fn four_of(name: &str, t: Type) -> Option<Four> {
    macro_rules! lanes4 {
        ($function:expr) => {
            (|a: &Lanes, b: &Lanes, c: &Lanes, d: &Lanes, out: &mut Lanes| {
                for i in 0..WARP {
                    out[i] = $function(a[i], b[i], c[i], d[i]);
                }
            }) as Four
        };
    }
    match (name, t.bits) {
        ("bfi", 32) => Some(lanes4!(|a, b, p, n| insert(a, b, p, n, 32) & 0xffff_ffff)),
        ("bfi", 64) => Some(lanes4!(|a, b, p, n| insert(a, b, p, n, 64))),
        ("lop3", 32) => Some(lanes4!(|a: u64, b: u64, c: u64, table: u64| {
            (0..8).fold(0, |result, i| {
                let chosen = |bit: u64, value: u64| if bit & 1 == 1 { value } else { !value };
                let term = chosen(i >> 2, a) & chosen(i >> 1, b) & chosen(i, c);
                result | if table >> i & 1 == 1 { term } else { 0 }
            }) & 0xffff_ffff
        })),
        _ => None,
    }
}

fn insert(a: u64, b: u64, position: u64, length: u64, width: u64) -> u64 {
    let (position, length) = (position & 0xff, (length & 0xff).min(width));
    if position >= width || length == 0 {
        return b;
    }
    let field = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    b & !(field << position) | (a & field) << position
}
