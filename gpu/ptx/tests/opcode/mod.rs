//! Runs one instruction on 32 lanes of values and compares with a function.
#![allow(dead_code, reason = "each test program uses a part of it")]

use nearpm_ptx::{Arguments, Config, Entry, Gpu, Launch, Module, Run};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// Bits of the three operands, how many of them there are, bits of the result.
pub type Shape = ([u32; 3], usize, u32);

pub fn one(bits: u32) -> Shape {
    ([bits; 3], 1, bits)
}

pub fn two(bits: u32) -> Shape {
    ([bits; 3], 2, bits)
}

pub fn three(bits: u32) -> Shape {
    ([bits; 3], 3, bits)
}

fn register(bits: u32) -> char {
    match bits {
        16 => 'h',
        32 => 'r',
        _ => 'd',
    }
}

pub struct Kernel {
    entry: Entry,
    shape: Shape,
}

impl Kernel {
    /// `op` on the operands; `op@n` has the immediate n as a last operand, a shape of four operands
    /// the immediate 11.
    pub fn new(op: &str, shape: Shape) -> Self {
        let (bits, count, result) = shape;
        let (name, immediate) = op.split_once('@').unwrap_or((op, ""));
        let mut operands: Vec<String> = (0..count.min(3)).map(|i| format!("%{}{i}", register(bits[i]))).collect();
        if count == 4 {
            operands.push("11".into());
        }
        if !immediate.is_empty() {
            operands.push(immediate.into());
        }
        let target = format!("%{}3", register(result));
        let body = match name.split('.').next().unwrap() {
            "setp" | "testp" => format!("{name} %p0, {};\nselp.u32 {target}, 1, 0, %p0;", operands.join(", ")),
            "selp" => format!("and.b64 %d2, %d2, 1;\nsetp.eq.u64 %p0, %d2, 1;\n{name} {target}, %d0, %d1, %p0;"),
            _ => format!("{name} {target}, {};", operands.join(", ")),
        };
        Self::of_body(&body, shape)
    }

    /// Operands are in registers 0 to 2 of their size, the result is taken from register 3 of its
    /// size.
    pub fn of_body(body: &str, shape: Shape) -> Self {
        let (bits, _, result) = shape;
        let loads: String =
            (0..3).map(|i| format!("ld.global.b{} %{}{i}, [%d8+{}];\n", bits[i], register(bits[i]), i * 8)).collect();
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
             .reg .pred %p<4>;\n.reg .b16 %h<10>;\n.reg .b32 %r<10>;\n.reg .b64 %d<12>;\n.reg .b128 %q<2>;\n\
             ld.param.u64 %d8, [in];\nld.param.u64 %d9, [out];\nmov.u32 %r8, %tid.x;\n\
             mad.wide.u32 %d8, %r8, 24, %d8;\nmad.wide.u32 %d9, %r8, 8, %d9;\n{loads}{body}\n\
             st.global.b{result} [%d9], %{}3;\nret;\n}}\n",
            register(result)
        );
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Self { entry: module.entry("k").unwrap().clone(), shape }
    }

    /// Results of up to 32 lanes, each of which has three operands, or one where there are 32
    /// values.
    pub fn run(&self, values: &[u64]) -> Vec<u64> {
        let lanes: Vec<[u64; 3]> = if values.len() == 32 {
            values.iter().map(|&value| [value, 0, 0]).collect()
        } else {
            values.chunks(3).map(|lane| lane.try_into().unwrap()).collect()
        };
        let mut gpu = Gpu::new(Config::default());
        let (input, out) = (gpu.allocate(32 * 24).unwrap(), gpu.allocate(32 * 8).unwrap());
        let bytes: Vec<u8> = lanes.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        gpu.write(input, &bytes).unwrap();
        let launch = Launch::linear(1, lanes.len() as u32, Arguments::new().pointer(input).pointer(out));
        gpu.launch(&self.entry, &launch, &mut Run::default()).unwrap();
        let mut results = vec![0; lanes.len() * 8];
        gpu.read(out, &mut results).unwrap();
        results.chunks(8).map(|value| u64::from_le_bytes(value.try_into().unwrap())).collect()
    }
}

/// Integers and floats of both sizes that are at some edge.
fn edge() -> impl Strategy<Value = u64> {
    let near_powers = (0u32..64, -1i64..=1).prop_map(|(power, add)| (1u64 << power).wrapping_add_signed(add));
    let small = 0u64..70;
    let floats = prop_oneof![
        Just(0.0),
        Just(-0.0),
        Just(1.0),
        Just(-1.5),
        Just(0.5),
        Just(2.5),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(1e-40),
        Just(-1e-310),
        Just(2147483647.5),
        Just(-2147483648.5),
        Just(9223372036854775808.0),
        Just(65535.5),
        Just(1.0000000596046448),
        Just(f64::MAX),
        Just(3.4028235e38)
    ];
    let single = floats.clone().prop_map(|x: f64| u64::from((x as f32).to_bits()));
    let double = floats.prop_map(|x: f64| x.to_bits());
    let moderate = (-100_000i32..100_000).prop_map(|x| u64::from((x as f32 / 16.0).to_bits()));
    let moderate64 = (-100_000i32..100_000).prop_map(|x| (f64::from(x) / 16.0).to_bits());
    prop_oneof![
        near_powers,
        small,
        single,
        double,
        moderate,
        moderate64,
        any::<u64>(),
        any::<u32>().prop_map(u64::from)
    ]
}

pub fn check(op: &str, shape: Shape, expected: impl Fn(&[u64; 3]) -> u64) {
    compare(op, &Kernel::new(op, shape), false, &expected);
}

/// As [`check`], where any NaN is as good as another.
pub fn check_float(op: &str, shape: Shape, expected: impl Fn(&[u64; 3]) -> u64) {
    compare(op, &Kernel::new(op, shape), true, &expected);
}

pub fn check_body(name: &str, body: &str, shape: Shape, nan: bool, expected: impl Fn(&[u64; 3]) -> u64) {
    compare(name, &Kernel::of_body(body, shape), nan, &expected);
}

/// One function for all of them: the runner would be compiled for each of hundreds of closures.
fn compare(name: &str, kernel: &Kernel, nan: bool, expected: &dyn Fn(&[u64; 3]) -> u64) {
    let (bits, _, result) = kernel.shape;
    let mask = |bits: u32| u64::MAX >> (64 - bits);
    let same = |a: u64, b: u64| {
        let both_nan = match result {
            32 => f32::from_bits(a as u32).is_nan() && f32::from_bits(b as u32).is_nan(),
            _ => f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan(),
        };
        a == b || nan && both_nan
    };
    let mut runner = TestRunner::new(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() });
    let lanes = proptest::collection::vec(edge(), 96);
    runner
        .run(&lanes, |mut values| {
            for (i, value) in values.iter_mut().enumerate() {
                *value &= mask(bits[i % 3]);
            }
            let results = kernel.run(&values);
            for (lane, found) in values.chunks(3).zip(results) {
                let wanted = expected(lane.try_into().unwrap()) & mask(result);
                prop_assert!(same(wanted, found), "{name} {lane:x?}: expected {wanted:x}, found {found:x}");
            }
            Ok(())
        })
        .unwrap();
}

/// The value as a signed number of so many bits.
pub fn s(bits: u32, value: u64) -> i128 {
    let shift = 128 - bits;
    ((value as i128) << shift) >> shift
}

/// The value as an unsigned one.
pub fn u(bits: u32, value: u64) -> u128 {
    u128::from(value) & ((1 << bits) - 1)
}
