//! A litmus test as kernels, one a launch: each thread is a warp of one thread, each block has an
//! SM of its own.

use std::fmt::Write as _;

use nearpm_gpusim::{Config, LINE, Simulator};
use nearpm_ptx::{Arguments, Launch, Module};
use nearpm_sbrp::Scope;
use nearpm_sbrp::litmus::{Action, Instruction, Test, Value, Wanted};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What PM may hold: a value a word of the test, 0 for those that are not in PM.
pub struct Run {
    /// At each moment of the run.
    pub images: Vec<Vec<Value>>,
    /// By the order of persists that the simulator has recorded.
    pub allowed: Vec<Vec<Value>>,
}

/// Runs a test; `seed` says how long its threads wait between their instructions.
pub fn run(test: &Test, config: &Config, seed: u64) -> Run {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let lines = test.words.iter().map(|word| word.line + 1).max().unwrap_or(1) as u64;
    let places = places(test);
    let mut before = vec![0; (lines * LINE) as usize];
    for (word, &place) in test.words.iter().zip(&places) {
        before[place] = word.initial;
    }
    let mut simulator = Simulator::new(config.clone()).unwrap();
    let volatile = simulator.allocate(lines * LINE).unwrap();
    simulator.gpu_mut().write(volatile, &before).unwrap();
    let pm = simulator.map_persistent(before.clone());
    simulator.record();
    let blocks = test.threads.iter().map(|thread| thread.block + 1).max().unwrap_or(1) as u32;
    for launch in 0..test.launches() {
        let text = text(test, &places, launch, &mut random);
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let arguments = Arguments::new().pointer(pm.address).pointer(volatile);
        let shape = Launch::linear(blocks, 32 * test.threads.len() as u32, arguments);
        simulator.launch(module.entry("litmus").unwrap(), &shape).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    let values = |image: &[u8]| places.iter().map(|&place| image[place]).collect::<Vec<Value>>();
    let (mut image, mut images) = (before.clone(), vec![values(&before)]);
    for event in simulator.journal().unwrap().events() {
        event.apply(pm.address, &mut image);
        images.push(values(&image));
    }
    let order = simulator.allowed().unwrap();
    let of_set = |set: Vec<bool>| {
        let mut image = before.clone();
        order.apply(&set, pm.address, &mut image);
        values(&image)
    };
    let allowed =
        (0..order.stores()).flat_map(|s| [of_set(order.least_with(s)), of_set(order.most_without(s))]).collect();
    Run { images, allowed }
}

/// Where each word lies, in PM or in volatile memory.
fn places(test: &Test) -> Vec<usize> {
    let place = |(index, word): (usize, &nearpm_sbrp::litmus::Word)| {
        let before = test.words[..index].iter().filter(|other| other.line == word.line).count();
        word.line * LINE as usize + 8 * before
    };
    test.words.iter().enumerate().map(place).collect()
}

fn text(test: &Test, places: &[usize], launch: usize, random: &mut ChaCha8Rng) -> String {
    let mut text = String::from(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry litmus(.param .u64 pm, .param .u64 gpu) {\n\
         .reg .pred %p<4>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [pm];\nld.param.u64 %rd2, [gpu];\n\
         mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n",
    );
    for register in 0..test.registers.len() {
        let _ = writeln!(text, "mov.u32 %r{}, 255;", register + 8);
    }
    let of_launch = || test.threads.iter().enumerate().filter(|(_, thread)| thread.launch == launch);
    for (number, thread) in of_launch() {
        let tid = 32 * of_launch().filter(|(other, t)| t.block == thread.block && *other < number).count();
        let _ = writeln!(
            text,
            "setp.eq.u32 %p1, %r1, {tid};\nsetp.eq.u32 %p2, %r2, {};\nand.pred %p1, %p1, %p2;\n@%p1 bra T{number};",
            thread.block
        );
    }
    text += "bra END;\n";
    for (number, thread) in of_launch() {
        let _ = writeln!(text, "T{number}:");
        for (at, instruction) in thread.program.iter().enumerate() {
            delay(&mut text, random, &format!("{number}_{at}"));
            translate(&mut text, test, places, instruction, &format!("{number}_{at}"));
        }
        text += "bra END;\n";
    }
    text + "END:\nret;\n}\n"
}

/// A thread does nothing for a while: mostly short, sometimes until all before is durable.
fn delay(text: &mut String, random: &mut ChaCha8Rng, label: &str) {
    let turns = match random.random_range(0..8) {
        0..4 => 0,
        4..7 => random.random_range(1..20),
        _ => random.random_range(20..300),
    };
    if turns > 0 {
        let _ = writeln!(
            text,
            "mov.u32 %r3, {turns};\nD{label}:\nsub.u32 %r3, %r3, 1;\nsetp.ne.u32 %p3, %r3, 0;\n@%p3 bra D{label};"
        );
    }
}

fn translate(text: &mut String, test: &Test, places: &[usize], instruction: &Instruction, label: &str) {
    if let Some((register, value)) = instruction.guard {
        let _ = writeln!(text, "setp.ne.u32 %p1, %r{}, {value};\n@%p1 bra S{label};", register + 8);
    }
    let address = |word: usize| {
        let base = if test.words[word].persistent { "%rd1" } else { "%rd2" };
        format!("[{base}+{}]", places[word])
    };
    let _ = match instruction.action {
        Action::Store { word, value, release, .. } => {
            writeln!(text, "st.{}global.u32 {}, {value};", relaxed(release), address(word))
        }
        Action::Load { word, wanted: Wanted::Register(register), acquire } => {
            writeln!(text, "ld.{}global.u32 %r{}, {};", relaxed(acquire), register + 8, address(word))
        }
        Action::Load { word, wanted: Wanted::Until(value), acquire } => writeln!(
            text,
            "W{label}:\nld.{}global.u32 %r4, {};\nsetp.ne.u32 %p1, %r4, {value};\n@%p1 bra W{label};",
            relaxed(acquire),
            address(word)
        ),
        Action::OFence => writeln!(text, "fence.acq_rel.gpu;"),
        Action::DFence => writeln!(text, "fence.acq_rel.sys;"),
        Action::Fence(scope) => writeln!(text, "membar.{};", ["cta", "gl", "sys"][scope as usize]),
        Action::Barrier => writeln!(text, "bar.sync 0;"),
        Action::Mark(_) => Ok(()),
    };
    if instruction.guard.is_some() {
        let _ = writeln!(text, "S{label}:");
    }
}

fn relaxed(scope: Option<Scope>) -> &'static str {
    match scope {
        None => "",
        Some(Scope::Block) => "relaxed.cta.",
        Some(_) => "relaxed.gpu.",
    }
}
