//! Opcodes on floating point, and conversions: against arithmetic written another way.

mod opcode;

use opcode::{check, check_float, one, s, three, two, u};

const SIZES: [u32; 3] = [16, 32, 64];

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
                r if r < low => 1u64 << (to - 1),
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
fn directed_rounding_of_single_precision() {
    // Against double precision, where the exact value is one: bounds the result from the right
    // side, and tightly.
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
