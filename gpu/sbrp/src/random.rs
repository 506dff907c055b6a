//! Random programs, as the text of litmus tests: what finds a difference prints it ready to be
//! kept.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Model;
use crate::litmus::{Test, parse};
use crate::rules::{Rule, Semantics};

/// Most instructions of a random program.
pub const MOST: usize = 8;

/// A program of a seed, and a semantics to run it in: a model, in every other program without one
/// of its rules.
pub struct Trial {
    /// The text of the litmus test; its `allowed` is a placeholder.
    pub text: String,
    /// The test.
    pub test: Test,
    /// What it runs in.
    pub semantics: Semantics,
    /// The rule that was dropped.
    pub dropped: Option<Rule>,
}

/// The trial of a seed.
///
/// # Panics
/// If the generator makes a text that is no litmus test: a mistake here.
pub fn trial(seed: u64) -> Trial {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let text = text(&mut random);
    let test = parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
    // SBRP is what this is about: half of all.
    let model = *pick(
        &mut random,
        &[Model::Sbrp, Model::Sbrp, Model::Sbrp, Model::SbrpAsPublished, Model::Epoch, Model::Strict],
    );
    let dropped = random.random_bool(0.5).then(|| *pick(&mut random, Rule::ALL));
    let semantics = Semantics::of(model);
    let semantics = dropped.map_or(semantics, |rule| semantics.without(rule));
    Trial { text, test, semantics, dropped }
}

fn pick<'a, T>(random: &mut ChaCha8Rng, of: &'a [T]) -> &'a T {
    &of[random.random_range(0..of.len())]
}

fn text(random: &mut ChaCha8Rng) -> String {
    let threads = random.random_range(1..=3);
    let blocks = random.random_range(1..=2);
    let second_launch = threads > 1 && random.random_bool(0.1);
    let total = random.random_range(3..=MOST);
    let mut programs: Vec<Vec<String>> = vec![Vec::new(); threads];
    let mut observed = vec!["x".to_string(), "y".into(), "z".into()];
    let mut marks = 0;
    for _ in 0..total {
        let thread = random.random_range(0..threads);
        let (line, seen) = instruction(random, observed.len(), &mut marks);
        let line = guarded(random, &programs[thread], line);
        programs[thread].push(line);
        observed.extend(seen);
    }
    let mut text =
        String::from("title: random\nfamily: random\nsource: random\nmemory:\n  pm x=0 y=0 | z=0\n  gpu f=0 g=0\n");
    let with_bar = random.random_bool(0.15);
    for (index, program) in programs.iter().enumerate() {
        let block = if with_bar { 0 } else { random.random_range(0..blocks) };
        let launch = if second_launch && index + 1 == threads && !with_bar { " launch 1" } else { "" };
        text += &format!("T{index}@block{block}{launch}:\n");
        let at = if with_bar { random.random_range(0..=program.len()) } else { usize::MAX };
        for (place, line) in program.iter().enumerate() {
            text += if place == at { "  bar\n" } else { "" };
            text += &format!("  {line}\n");
        }
        text += if with_bar && at == program.len() { "  bar\n" } else { "" };
    }
    text + &format!("observe: {} end\nallowed:\n  any: {} end=0\n", observed.join(" "), placeholder(&observed))
}

fn placeholder(observed: &[String]) -> String {
    observed.iter().map(|name| format!("{name}=0")).collect::<Vec<_>>().join(" ")
}

/// Puts a condition before some instructions of a thread that has loaded.
fn guarded(random: &mut ChaCha8Rng, before: &[String], line: String) -> String {
    let loaded = before.iter().rev().filter(|l| !l.starts_with("if")).find_map(|l| {
        let mut words = l.split_whitespace();
        let first = words.next()?;
        (first == "load" || first.starts_with("pAcq")).then(|| words.nth(1).unwrap_or_default().to_string())
    });
    match loaded.filter(|r| r.starts_with('r') && random.random_bool(0.3)) {
        Some(register) => format!("if {register}={}: {line}", random.random_range(0..2)),
        None => line,
    }
}

/// An instruction, and what it lets observe.
fn instruction(random: &mut ChaCha8Rng, number: usize, marks: &mut usize) -> (String, Option<String>) {
    let persistent = *pick(random, &["x", "x", "y", "z"]);
    let flag = *pick(random, &["f", "f", "g", "x", "y"]);
    let value = random.random_range(1..=2);
    let register = format!("r{number}");
    let scope = *pick(random, &["block", "dev"]);
    match random.random_range(0..20) {
        0..6 => (format!("store {persistent} {value}"), None),
        6 => (format!("store {flag} {value}"), None),
        7..9 => (format!("load {flag} {register}"), Some(register)),
        9..12 => (format!("pRel_{scope} {flag} {value}"), None),
        12..15 => (format!("pAcq_{scope} {flag} {register}"), Some(register)),
        15..17 => ("oFence".into(), None),
        17 => ("dFence".into(), None),
        18 => (format!("fence.{}", pick(random, &["block", "dev", "sys"])), None),
        _ => {
            *marks += 1;
            (format!("mark M{marks}"), Some(format!("M{marks}")))
        }
    }
}
