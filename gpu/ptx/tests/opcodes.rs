//! Each opcode against arithmetic written another way, on random values and on those at the edges.

mod opcode;

use opcode::{check, check_float, one, three, two};

fn s(bits: u32, value: u64) -> i128 {
    let shift = 128 - bits;
    ((value as i128) << shift) >> shift
}

fn u(bits: u32, value: u64) -> u128 {
    u128::from(value) & ((1 << bits) - 1)
}

const SIZES: [u32; 3] = [16, 32, 64];

#[test]
fn integer_arithmetic() {
    for n in SIZES {
        check(&format!("add.u{n}"), two(n), |v| (u(n, v[0]) + u(n, v[1])) as u64);
        check(&format!("sub.s{n}"), two(n), |v| (s(n, v[0]) - s(n, v[1])) as u64);
        check(&format!("mul.lo.u{n}"), two(n), |v| u(n, v[0]).wrapping_mul(u(n, v[1])) as u64);
        check(&format!("mul.hi.u{n}"), two(n), |v| (u(n, v[0]) * u(n, v[1]) >> n) as u64);
        check(&format!("mul.hi.s{n}"), two(n), |v| (s(n, v[0]) * s(n, v[1]) >> n) as u64);
        check(&format!("mad.lo.s{n}"), three(n), |v| {
            (s(n, v[0]).wrapping_mul(s(n, v[1]))).wrapping_add(s(n, v[2])) as u64
        });
        check(&format!("mad.hi.u{n}"), three(n), |v| ((u(n, v[0]) * u(n, v[1]) >> n) + u(n, v[2])) as u64);
        check(&format!("sad.s{n}"), three(n), |v| ((s(n, v[0]) - s(n, v[1])).unsigned_abs() + u(n, v[2])) as u64);
        check(&format!("min.s{n}"), two(n), |v| s(n, v[0]).min(s(n, v[1])) as u64);
        check(&format!("max.s{n}"), two(n), |v| s(n, v[0]).max(s(n, v[1])) as u64);
        check(&format!("min.u{n}"), two(n), |v| u(n, v[0]).min(u(n, v[1])) as u64);
        check(&format!("max.u{n}"), two(n), |v| u(n, v[0]).max(u(n, v[1])) as u64);
        check(&format!("neg.s{n}"), one(n), |v| -s(n, v[0]) as u64);
        check(&format!("abs.s{n}"), one(n), |v| s(n, v[0]).unsigned_abs() as u64);
    }
    check("add.sat.s32", two(32), |v| (s(32, v[0]) + s(32, v[1])).clamp(-1 << 31, (1 << 31) - 1) as u64);
    check("sub.sat.s32", two(32), |v| (s(32, v[0]) - s(32, v[1])).clamp(-1 << 31, (1 << 31) - 1) as u64);
    check("mul24.lo.u32", two(32), |v| (u(24, v[0]) * u(24, v[1])) as u64);
    check("mul24.lo.s32", two(32), |v| (s(24, v[0]) * s(24, v[1])) as u64);
}

#[test]
fn division_signed_by_zero_and_overflowing() {
    for n in SIZES {
        let all = u64::MAX >> (64 - n);
        check(&format!("div.u{n}"), two(n), |v| u(n, v[0]).checked_div(u(n, v[1])).map_or(all, |q| q as u64));
        check(&format!("rem.u{n}"), two(n), |v| u(n, v[0]).checked_rem(u(n, v[1])).map_or(v[0], |r| r as u64));
        check(&format!("div.s{n}"), two(n), |v| s(n, v[0]).checked_div(s(n, v[1])).map_or(all, |q| q as u64));
        check(&format!("rem.s{n}"), two(n), |v| s(n, v[0]).checked_rem(s(n, v[1])).map_or(v[0], |r| r as u64));
    }
}

#[test]
fn wide_products() {
    for n in [16, 32] {
        let wide = |count| ([n, n, 2 * n], count, 2 * n);
        check(&format!("mul.wide.u{n}"), wide(2), |v| (u(n, v[0]) * u(n, v[1])) as u64);
        check(&format!("mul.wide.s{n}"), wide(2), |v| (s(n, v[0]) * s(n, v[1])) as u64);
        check(&format!("mad.wide.u{n}"), wide(3), |v| (u(n, v[0]) * u(n, v[1])).wrapping_add(u(64, v[2])) as u64);
        check(&format!("mad.wide.s{n}"), wide(3), |v| (s(n, v[0]) * s(n, v[1])).wrapping_add(s(64, v[2])) as u64);
    }
}

#[test]
fn logic_and_shifts_of_the_width_and_more() {
    for n in SIZES {
        check(&format!("and.b{n}"), two(n), |v| v[0] & v[1]);
        check(&format!("or.b{n}"), two(n), |v| v[0] | v[1]);
        check(&format!("xor.b{n}"), two(n), |v| v[0] ^ v[1]);
        check(&format!("not.b{n}"), one(n), |v| !v[0]);
        check(&format!("cnot.b{n}"), one(n), |v| u64::from(u(n, v[0]) == 0));
        let shift = ([n, 32, 32], 2, n);
        check(&format!("shl.b{n}"), shift, |v| (u(n, v[0]).checked_shl(v[1] as u32).unwrap_or(0)) as u64);
        check(&format!("shr.u{n}"), shift, |v| (u(n, v[0]).checked_shr(v[1] as u32).unwrap_or(0)) as u64);
        check(&format!("shr.s{n}"), shift, |v| (s(n, v[0]) >> (v[1] as u32).min(127)) as u64);
    }
    let pair = |v: &[u64; 3]| u128::from(v[1] << 32 | v[0] & 0xffff_ffff);
    check("shf.l.wrap.b32", three(32), |v| (pair(v) << (v[2] & 31) >> 32) as u64);
    check("shf.l.clamp.b32", three(32), |v| (pair(v) << (v[2] as u32).min(32) >> 32) as u64);
    check("shf.r.wrap.b32", three(32), |v| (pair(v) >> (v[2] & 31)) as u64);
    check("shf.r.clamp.b32", three(32), |v| (pair(v) >> (v[2] as u32).min(32)) as u64);
    check("lop3.b32@0xe8", three(32), |v| v[0] & v[1] | v[0] & v[2] | v[1] & v[2]);
    check("lop3.b32@0x96", three(32), |v| v[0] ^ v[1] ^ v[2]);
}

#[test]
fn counts_and_fields_of_bits() {
    for n in [32, 64] {
        let count = ([n, n, n], 1, 32);
        check(&format!("popc.b{n}"), count, |v| (0..n).filter(|i| v[0] >> i & 1 == 1).count() as u64);
        check(&format!("clz.b{n}"), count, |v| (0..n).rev().take_while(|i| v[0] >> i & 1 == 0).count() as u64);
        check(&format!("brev.b{n}"), one(n), |v| (0..n).fold(0, |r, i| r | (v[0] >> i & 1) << (n - 1 - i)));
        let top = |v: u64| (0..n).rev().find(|i| v >> i & 1 == 1);
        check(&format!("bfind.u{n}"), count, |v| top(v[0]).map_or(u64::MAX, u64::from));
        let unsign = |v: u64| if v >> (n - 1) & 1 == 1 { !v } else { v };
        check(&format!("bfind.s{n}"), count, |v| top(unsign(v[0])).map_or(u64::MAX, u64::from));
        check(&format!("bfind.shiftamt.s{n}"), count, |v| top(unsign(v[0])).map_or(u64::MAX, |i| u64::from(n - 1 - i)));
        check(&format!("bfind.shiftamt.u{n}"), count, |v| top(v[0]).map_or(u64::MAX, |i| u64::from(n - 1 - i)));
        let field = ([n, 32, 32], 3, n);
        // As the reference of PTX writes it, bit by bit.
        let extract = |v: &[u64; 3], signed: bool| {
            let (position, length) = (v[1] & 0xff, v[2] & 0xff);
            let highest = u64::from(n) - 1;
            let sign = if !signed || length == 0 { 0 } else { v[0] >> (position + length - 1).min(highest) & 1 };
            (0..=highest).fold(0, |d, i| {
                let bit = if i < length && position + i <= highest { v[0] >> (position + i) & 1 } else { sign };
                d | bit << i
            })
        };
        check(&format!("bfe.u{n}"), field, |v| extract(v, false));
        check(&format!("bfe.s{n}"), field, |v| extract(v, true));
        check(&format!("bfi.b{n}"), ([n, n, 32], 4, n), |v| {
            let (position, length) = (v[2] & 0xff, 11);
            (0..length).fold(v[1], |f, i| {
                if position + i >= u64::from(n) {
                    f
                } else {
                    f & !(1 << (position + i)) | (v[0] >> i & 1) << (position + i)
                }
            })
        });
    }
    let byte = |v: &[u64; 3], choice: u64| {
        let whole = v[1] << 32 | v[0] & 0xffff_ffff;
        let byte = whole >> (8 * (choice & 7)) & 0xff;
        if choice & 8 == 0 { byte } else { 0xff * (byte >> 7) }
    };
    check("prmt.b32", three(32), |v| (0..4).fold(0, |d, i| d | byte(v, v[2] >> (4 * i) & 15) << (8 * i)));
    check("prmt.b32.rc16", three(32), |v| {
        let low = if v[2] & 1 == 0 { 0 } else { 2 };
        [low, low + 1, low, low + 1].iter().enumerate().fold(0, |d, (i, &from)| d | byte(v, from) << (8 * i))
    });
}

#[test]
fn comparisons_and_selections() {
    type Holds = fn(i128, i128) -> bool;
    let integer: [(&str, Holds); 6] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
    ];
    for n in SIZES {
        for (name, holds) in integer {
            let result = ([n, n, n], 2, 32);
            check(&format!("setp.{name}.s{n}"), result, move |v| u64::from(holds(s(n, v[0]), s(n, v[1]))));
            check(&format!("setp.{name}.u{n}"), result, move |v| {
                u64::from(holds(u(n, v[0]) as i128, u(n, v[1]) as i128))
            });
        }
    }
    let values = |v: &[u64; 3]| (f32::from_bits(v[0] as u32), f32::from_bits(v[1] as u32));
    type FloatHolds = fn(f32, f32) -> bool;
    let float: [(&str, FloatHolds); 7] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
        ("num", |_, _| true),
    ];
    for (name, holds) in float {
        let result = ([32, 32, 32], 2, 32);
        check(&format!("setp.{name}.f32"), result, move |v| {
            let (a, b) = values(v);
            u64::from(!a.is_nan() && !b.is_nan() && holds(a, b))
        });
        let unordered = if name == "num" { "nan".to_string() } else { format!("{name}u") };
        check(&format!("setp.{unordered}.f32"), result, move |v| {
            let (a, b) = values(v);
            u64::from(a.is_nan() || b.is_nan() || name != "num" && holds(a, b))
        });
    }
    check("selp.b64", ([64, 64, 64], 3, 64), |v| if v[2] & 1 == 1 { v[0] } else { v[1] });
    check("slct.u32.s32", three(32), |v| if s(32, v[2]) >= 0 { v[0] } else { v[1] });
    check("set.lt.u32.s32", ([32, 32, 32], 2, 32), |v| if s(32, v[0]) < s(32, v[1]) { u64::MAX } else { 0 });
}

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

#[test]
fn floating_point_arithmetic() {
    check_float("add.f32", two(32), |v| u64::from((f(v[0]) + f(v[1])).to_bits()));
    check_float("sub.rn.f32", two(32), |v| u64::from((f(v[0]) - f(v[1])).to_bits()));
    check_float("mul.f32", two(32), |v| u64::from((f(v[0]) * f(v[1])).to_bits()));
    check_float("div.rn.f32", two(32), |v| u64::from((f(v[0]) / f(v[1])).to_bits()));
    check_float("fma.rn.f32", three(32), |v| u64::from(f(v[0]).mul_add(f(v[1]), f(v[2])).to_bits()));
    check_float("sqrt.rn.f32", one(32), |v| u64::from(f(v[0]).sqrt().to_bits()));
    check_float("rcp.rn.f32", one(32), |v| u64::from((1.0 / f(v[0])).to_bits()));
    check_float("add.f64", two(64), |v| (d(v[0]) + d(v[1])).to_bits());
    check_float("sub.f64", two(64), |v| (d(v[0]) - d(v[1])).to_bits());
    check_float("mul.f64", two(64), |v| (d(v[0]) * d(v[1])).to_bits());
    check_float("div.rn.f64", two(64), |v| (d(v[0]) / d(v[1])).to_bits());
    check_float("fma.rn.f64", three(64), |v| d(v[0]).mul_add(d(v[1]), d(v[2])).to_bits());
    check_float("sqrt.rn.f64", one(64), |v| d(v[0]).sqrt().to_bits());
    check("neg.f32", one(32), |v| v[0] ^ 1 << 31);
    check("abs.f64", one(64), |v| v[0] & u64::MAX >> 1);
    // The sign of the first operand on the size of the second.
    check("copysign.f32", two(32), |v| v[1] & 0x7fff_ffff | v[0] & 1 << 31);
    check("testp.finite.f32", ([32, 32, 32], 1, 32), |v| u64::from(v[0] >> 23 & 0xff != 0xff));
    check("testp.subnormal.f64", ([64, 64, 64], 1, 32), |v| u64::from(v[0] >> 52 & 0x7ff == 0 && v[0] << 12 != 0));
}

#[test]
fn minimum_and_maximum_of_floats_prefer_numbers_and_order_zeros() {
    let pick = |v: &[u64; 3], least: bool| {
        let (a, b) = (f(v[0]), f(v[1]));
        if a.is_nan() {
            return v[1];
        }
        // A total order of numbers: -0 below +0.
        let key = |bits: u64| if bits >> 31 & 1 == 1 { -((bits & 0x7fff_ffff) as i64) - 1 } else { bits as i64 };
        if b.is_nan() || (key(v[0] & 0xffff_ffff) <= key(v[1] & 0xffff_ffff)) == least { v[0] } else { v[1] }
    };
    check_float("min.f32", two(32), |v| pick(v, true));
    check_float("max.f32", two(32), |v| pick(v, false));
    check_float("max.NaN.f32", two(32), |v| {
        if f(v[0]).is_nan() || f(v[1]).is_nan() { u64::from(f32::NAN.to_bits()) } else { pick(v, false) }
    });
}

#[test]
fn flush_and_saturation() {
    let flush = |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x };
    check_float("add.ftz.f32", two(32), |v| u64::from(flush(flush(f(v[0])) + flush(f(v[1]))).to_bits()));
    check_float("mul.ftz.f32", two(32), |v| u64::from(flush(flush(f(v[0])) * flush(f(v[1]))).to_bits()));
    check("add.sat.f32", two(32), |v| {
        let sum = f(v[0]) + f(v[1]);
        u64::from((if sum > 0.0 { sum.min(1.0) } else { 0.0 }).to_bits())
    });
    check("setp.eq.ftz.f32", ([32, 32, 32], 2, 32), |v| u64::from(flush(f(v[0])) == flush(f(v[1]))));
}

#[test]
fn approximations_are_within_what_ptx_allows() {
    type Exact = fn(f64) -> f64;
    let functions: [(&str, Exact, f64, f64); 6] = [
        ("ex2.approx.f32", f64::exp2, -20.0, 20.0),
        ("lg2.approx.f32", f64::log2, 0.01, 1e6),
        ("sin.approx.f32", f64::sin, -3.0, 3.0),
        ("cos.approx.f32", f64::cos, -3.0, 3.0),
        ("rsqrt.approx.f32", |x| 1.0 / x.sqrt(), 1e-6, 1e6),
        ("sqrt.approx.f32", f64::sqrt, 0.0, 1e6),
    ];
    for (op, exact, low, high) in functions {
        let inputs: Vec<u64> =
            (0..32).map(|i| u64::from(((low + (high - low) * f64::from(i) / 31.0) as f32).to_bits())).collect();
        let outputs = opcode::Kernel::new(op, one(32)).run(&inputs);
        for (input, output) in inputs.iter().zip(outputs) {
            let (expected, found) = (exact(f64::from(f(*input))), f64::from(f(output)));
            assert!((expected - found).abs() <= 1e-6 * expected.abs().max(1.0), "{op} {input:x}: {expected} {found}");
        }
    }
}

#[test]
fn conversions_between_integers() {
    for (from, to) in [(16, 32), (16, 64), (32, 16), (32, 64), (64, 16), (64, 32), (32, 32)] {
        let shape = ([from; 3], 1, to);
        check(&format!("cvt.u{to}.u{from}"), shape, |v| u(from, v[0]) as u64);
        check(&format!("cvt.s{to}.s{from}"), shape, |v| s(from, v[0]) as u64);
        check(&format!("cvt.u{to}.s{from}"), shape, |v| s(from, v[0]) as u64);
        check(&format!("cvt.sat.s{to}.s{from}"), shape, |v| {
            s(from, v[0]).clamp(-1 << (to - 1), (1 << (to - 1)) - 1) as u64
        });
        check(&format!("cvt.sat.u{to}.s{from}"), shape, |v| s(from, v[0]).clamp(0, (1 << to) - 1) as u64);
        check(&format!("cvt.sat.u{to}.u{from}"), shape, |v| u(from, v[0]).min((1 << to) - 1) as u64);
    }
    check("cvt.u8.u32", one(32), |v| v[0] & 0xff);
    check("cvt.s8.s32", one(32), |v| s(8, v[0]) as u64);
    check("cvt.u32.u8", one(32), |v| v[0] & 0xff);
    check("cvt.s32.s8", one(32), |v| s(8, v[0]) as u64);
}

#[test]
fn conversions_from_floats_round_and_saturate() {
    type Round = fn(f64) -> f64;
    let roundings: [(&str, Round); 4] =
        [("rni", f64::round_ties_even), ("rzi", f64::trunc), ("rmi", f64::floor), ("rpi", f64::ceil)];
    for (name, round) in roundings {
        for to in SIZES {
            // The largest number is no float: compare before converting.
            let (low, high) = (-2f64.powi(to as i32 - 1), 2f64.powi(to as i32 - 1));
            let to_signed = move |x: f64| match round(x) {
                _ if x.is_nan() => {
                    if to == 64 {
                        1 << 63
                    } else {
                        0
                    }
                }
                r if r < low => (1u64 << (to - 1)) as u64,
                r if r >= high => (1u64 << (to - 1)) - 1,
                r => r as i128 as u64,
            };
            let to_unsigned = move |x: f64| match round(x) {
                _ if x.is_nan() => {
                    if to == 64 {
                        1 << 63
                    } else {
                        0
                    }
                }
                r if r <= 0.0 => 0,
                r if r >= 2.0 * high => u64::MAX,
                r => r as u128 as u64,
            };
            check(&format!("cvt.{name}.s{to}.f32"), ([32; 3], 1, to), move |v| to_signed(f64::from(f(v[0]))));
            check(&format!("cvt.{name}.u{to}.f32"), ([32; 3], 1, to), move |v| to_unsigned(f64::from(f(v[0]))));
            check(&format!("cvt.{name}.s{to}.f64"), ([64; 3], 1, to), move |v| to_signed(d(v[0])));
            check(&format!("cvt.{name}.u{to}.f64"), ([64; 3], 1, to), move |v| to_unsigned(d(v[0])));
        }
        check_float(&format!("cvt.{name}.f32.f32"), one(32), move |v| {
            u64::from((round(f64::from(f(v[0]))) as f32).to_bits())
        });
        check_float(&format!("cvt.{name}.f64.f64"), one(64), move |v| round(d(v[0])).to_bits());
    }
}

#[test]
fn conversions_to_floats_round_as_they_say() {
    // Directed rounding: the nearest float on the wanted side of the exact value.
    let to_f32 = |exact: i128, rounding: &str| {
        let near = exact as f32;
        let (over, under) = (near as i128 > exact, (near as i128) < exact);
        let down = match rounding {
            "rm" => over,
            "rz" => over && exact > 0,
            _ => false,
        };
        let up = match rounding {
            "rp" => under,
            "rz" => under && exact < 0,
            _ => false,
        };
        u64::from(
            (if down {
                near.next_down()
            } else if up {
                near.next_up()
            } else {
                near
            })
            .to_bits(),
        )
    };
    for rounding in ["rn", "rz", "rm", "rp"] {
        for n in [32, 64] {
            check(&format!("cvt.{rounding}.f32.s{n}"), ([n; 3], 1, 32), move |v| to_f32(s(n, v[0]), rounding));
            check(&format!("cvt.{rounding}.f32.u{n}"), ([n; 3], 1, 32), move |v| to_f32(u(n, v[0]) as i128, rounding));
        }
        check_float(&format!("cvt.{rounding}.f32.f64"), ([64; 3], 1, 32), move |v| {
            let (exact, near) = (d(v[0]), d(v[0]) as f32);
            let toward_zero = exact.abs() < f64::from(near.abs());
            let near = match rounding {
                "rz" if toward_zero => f32::from_bits(near.to_bits() - 1),
                "rm" if f64::from(near) > exact => near.next_down(),
                "rp" if f64::from(near) < exact => near.next_up(),
                _ => near,
            };
            u64::from(near.to_bits())
        });
    }
    check("cvt.rn.f64.s64", one(64), |v| (s(64, v[0]) as f64).to_bits());
    check("cvt.rn.f64.u32", ([32; 3], 1, 64), |v| (u(32, v[0]) as f64).to_bits());
    check_float("cvt.f64.f32", ([32; 3], 1, 64), |v| f64::from(f(v[0])).to_bits());
}

#[test]
fn carries_make_wider_sums() {
    // 128-bit sums of (a, b) and (b, c), through the carry.
    let body = |op: &str| format!("{op}.cc.u64 %d4, %d0, %d1;\n{op}c.u64 %d5, %d1, %d2;\nxor.b64 %d3, %d5, 0;");
    let wide = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
    opcode::check_body("add.cc", &body("add"), three(64), false, |v| {
        (wide(v[0], v[1]).wrapping_add(wide(v[1], v[2])) >> 64) as u64
    });
    opcode::check_body("sub.cc", &body("sub"), three(64), false, |v| {
        (wide(v[0], v[1]).wrapping_sub(wide(v[1], v[2])) >> 64) as u64
    });
}

#[test]
fn carries_make_wider_products() {
    // The upper half of a product of 64 bits by 64 bits, from parts of 32 bits, as 128-bit integers are multiplied.
    let body = "mov.b64 {%r4, %r5}, %d0;\nmov.b64 {%r6, %r7}, %d1;\nmul.lo.u32 %r0, %r4, %r6;\nmul.hi.u32 %r1, %r4, %r6;\n\
                mad.lo.cc.u32 %r1, %r5, %r6, %r1;\nmadc.hi.u32 %r2, %r5, %r6, 0;\nmad.lo.cc.u32 %r1, %r4, %r7, %r1;\n\
                madc.hi.cc.u32 %r2, %r4, %r7, %r2;\nmadc.hi.u32 %r3, %r5, %r7, 0;\nmad.lo.cc.u32 %r2, %r5, %r7, %r2;\n\
                addc.u32 %r3, %r3, 0;\nmov.b64 %d3, {%r2, %r3};";
    opcode::check_body("mad.cc", body, two(64), false, |v| (u(64, v[0]) * u(64, v[1]) >> 64) as u64);
}

#[test]
fn directed_rounding_of_single_precision() {
    // Against double precision, where the exact value is one: bounds the result from the right side, and tightly.
    let shorten = |bits: u64| f32::from_bits(bits as u32 & 0xffff_f000);
    for (name, sign) in [("rz", 0), ("rm", -1), ("rp", 1)] {
        let right = move |exact: f64, found: f32| {
            let found = f64::from(found);
            let direction = if sign == 0 { if exact > 0.0 { -1 } else { 1 } } else { sign };
            let near = f64::from((found as f32).next_up()) > exact && f64::from((found as f32).next_down()) < exact;
            near && if direction < 0 { found <= exact } else { found >= exact }
        };
        let mut checked = 0;
        for (op, exact) in [
            ("add", (|a, b, _| a + b) as fn(f64, f64, f64) -> f64),
            ("sub", |a, b, _| a - b),
            ("mul", |a, b, _| a * b),
            ("fma", |a, b, c| a * b + c),
        ] {
            let kernel =
                opcode::Kernel::new(&format!("{op}.{name}.f32"), if op == "fma" { three(32) } else { two(32) });
            let values: Vec<u64> = (1..=96u64)
                .map(|i| {
                    let bits = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                    u64::from(shorten(0x3e00_0000 + bits % 0x0300_0000 + (bits & 1) * 0x8000_0000).to_bits())
                })
                .collect();
            for (lane, found) in values.chunks(3).zip(kernel.run(&values)) {
                let [a, b, c] = [0, 1, 2].map(|i| f64::from(f(lane[i])));
                assert!(right(exact(a, b, c), f(found)), "{op}.{name} {a} {b} {c}: {}", f(found));
                checked += 1;
            }
        }
        assert_eq!(checked, 128);
    }
    // Exact results stay; a zero of opposite terms has the sign that the mode gives it.
    let zero = |name: &str| opcode::Kernel::new(name, two(32)).run(&[0x3f80_0000, 0xbf80_0000, 0].repeat(2))[0];
    assert_eq!([zero("add.rz.f32"), zero("add.rm.f32"), zero("add.rp.f32")], [0, 0x8000_0000, 0]);
}

#[test]
fn packing_and_unpacking() {
    opcode::check_body("mov.b64 {}", "mov.b64 {%r4, %r5}, %d0;\nmov.b64 %d3, {%r5, %r4};", one(64), false, |v| {
        v[0].rotate_left(32)
    });
    let halves = "mov.b128 %q0, {%d0, %d1};\nmov.b128 {%d4, %d5}, %q0;\nsub.u64 %d3, %d4, %d5;";
    opcode::check_body("mov.b128", halves, two(64), false, |v| v[0].wrapping_sub(v[1]));
}

#[test]
fn narrow_accesses_extend() {
    for (kind, bits, signed) in
        [("s8", 8, true), ("u8", 8, false), ("s16", 16, true), ("u16", 16, false), ("s32", 32, true)]
    {
        let body = format!(".local .align 8 .b8 spot[8];\nst.local.u64 [spot], %d0;\nld.local.{kind} %d3, [spot];");
        opcode::check_body(kind, &body, one(64), false, move |v| {
            if signed { s(bits, v[0]) as u64 } else { u(bits, v[0]) as u64 }
        });
    }
}

#[test]
fn atomics_apply_lane_by_lane() {
    for (op, kind, n) in [
        ("add", "u32", 32),
        ("add", "u64", 64),
        ("min", "s32", 32),
        ("max", "s64", 64),
        ("min", "u64", 64),
        ("max", "u32", 32),
        ("and", "b32", 32),
        ("or", "b64", 64),
        ("xor", "b32", 32),
        ("exch", "b64", 64),
        ("inc", "u32", 32),
        ("dec", "u32", 32),
    ] {
        let register = if n == 32 { "r" } else { "d" };
        // Each lane has a shared word of its own: first value a, then the atomic with b. Old and new are combined.
        let body = format!(
            ".shared .align 8 .b64 spots[32];\nmov.u32 %r6, %tid.x;\nmul.wide.u32 %d6, %r6, 8;\nmov.u64 %d7, spots;\n\
             add.u64 %d7, %d7, %d6;\nst.shared.u64 [%d7], 0;\nst.shared.b{n} [%d7], %{register}0;\n\
             atom.shared.{op}.{kind} %{register}4, [%d7], %{register}1;\nld.shared.b{n} %{register}5, [%d7];\n\
             xor.b{n} %{register}3, %{register}4, %{register}5;"
        );
        let signed = kind.starts_with('s');
        opcode::check_body(&format!("atom.{op}.{kind}"), &body, two(n), false, move |v| {
            let (a, b) = (u(n, v[0]), u(n, v[1]));
            let less = if signed { s(n, v[0]) < s(n, v[1]) } else { a < b };
            let new = match op {
                "add" => a + b,
                "min" => {
                    if less {
                        a
                    } else {
                        b
                    }
                }
                "max" => {
                    if less {
                        b
                    } else {
                        a
                    }
                }
                "and" => a & b,
                "or" => a | b,
                "xor" => a ^ b,
                "exch" => b,
                "inc" => {
                    if a >= b {
                        0
                    } else {
                        a + 1
                    }
                }
                _ => {
                    if a == 0 || a > b {
                        b
                    } else {
                        a - 1
                    }
                }
            };
            (a ^ new) as u64
        });
    }
}
