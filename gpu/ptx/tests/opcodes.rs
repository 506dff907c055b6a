//! Opcodes on integers, bits, comparisons, atomics: against arithmetic written another way, on
//! random values and on those at the edges.

mod opcode;

use opcode::{check, one, s, three, two, u};

const SIZES: [u32; 3] = [16, 32, 64];

#[test]
fn integer_arithmetic() {
    for n in SIZES {
        check(&format!("add.u{n}"), two(n), |v| (u(n, v[0]) + u(n, v[1])) as u64);
        check(&format!("sub.s{n}"), two(n), |v| (s(n, v[0]) - s(n, v[1])) as u64);
        check(&format!("mul.lo.u{n}"), two(n), |v| u(n, v[0]).wrapping_mul(u(n, v[1])) as u64);
        check(&format!("mul.hi.u{n}"), two(n), |v| ((u(n, v[0]) * u(n, v[1])) >> n) as u64);
        check(&format!("mul.hi.s{n}"), two(n), |v| ((s(n, v[0]) * s(n, v[1])) >> n) as u64);
        check(&format!("mad.lo.s{n}"), three(n), |v| {
            (s(n, v[0]).wrapping_mul(s(n, v[1]))).wrapping_add(s(n, v[2])) as u64
        });
        check(&format!("mad.hi.u{n}"), three(n), |v| (((u(n, v[0]) * u(n, v[1])) >> n) + u(n, v[2])) as u64);
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
    // The upper half of a product of 64 bits by 64 bits, from parts of 32 bits, as 128-bit integers
    // are multiplied.
    let body = "mov.b64 {%r4, %r5}, %d0;\nmov.b64 {%r6, %r7}, %d1;\nmul.lo.u32 %r0, %r4, %r6;\nmul.hi.u32 %r1, %r4, %r6;\n\
                mad.lo.cc.u32 %r1, %r5, %r6, %r1;\nmadc.hi.u32 %r2, %r5, %r6, 0;\nmad.lo.cc.u32 %r1, %r4, %r7, %r1;\n\
                madc.hi.cc.u32 %r2, %r4, %r7, %r2;\nmadc.hi.u32 %r3, %r5, %r7, 0;\nmad.lo.cc.u32 %r2, %r5, %r7, %r2;\n\
                addc.u32 %r3, %r3, 0;\nmov.b64 %d3, {%r2, %r3};";
    opcode::check_body("mad.cc", body, two(64), false, |v| ((u(64, v[0]) * u(64, v[1])) >> 64) as u64);
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
        // Each lane has a shared word of its own: first value a, then the atomic with b. Old and
        // new are combined.
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
