//! C programs on `nearpm.h`, linked with the ordinary library, on the one with a simulated card:
//! told by the environment alone.

mod rig;
mod served;

use std::process::Command;

use rig::{Library, MECHANISMS, Program, Rig, built, draw, fail, succeed};

fn exports(library: &str) -> Vec<String> {
    let mut command = Command::new("nm");
    command.args(["--dynamic", "--defined-only", "--format=posix"]).arg(built(library));
    let (text, _) = succeed(&mut command);
    let names = text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned);
    let mut ours: Vec<String> = names.filter(|name| name.to_lowercase().starts_with("nearpm_")).collect();
    ours.sort_unstable();
    ours
}

#[test]
fn the_library_with_the_card_has_the_same_interface() {
    let ordinary = exports("libnearpm_c.so");
    assert!(ordinary.len() > 40, "{ordinary:?}");
    assert_eq!(exports("libnearpm_c_card.so"), ordinary);
}

/// The tests of the interface, with every mechanism; they look at how many commands were posted.
#[test]
fn everything_works_on_the_card_as_documented() {
    for way in ["working-copy"].iter().chain(&MECHANISMS) {
        let program = Program::compile("libnearpm/c/tests/c/direct.c");
        program.run(&[way]);
        let pointer = std::fs::read_to_string(program.pool()).expect("the pool has a file");
        assert!(pointer.starts_with("nearpm-pool card:sim/pool-"), "{pointer}");
    }
}

#[test]
fn misuse_is_refused_on_the_card() {
    for way in ["working-copy", "undo", "shadow"] {
        Program::compile("libnearpm/c/tests/c/misuse.c").run(&[way]);
    }
}

/// The examples, which know of no card; each process starts it anew.
#[test]
fn the_examples_run_on_the_card() {
    let list = Program::compile("libnearpm/c/examples/list.c");
    list.run(&["add", "5", "3", "8"]);
    assert_eq!(list.command(&["crash", "4"]).output().expect("it runs").status.code(), Some(3));
    assert_eq!(list.run(&["show"]).0, "3 5 8\n");
    let counter = Program::compile("libnearpm/c/examples/counter.c");
    for round in 1..=2 {
        assert_eq!(counter.command(&["crash"]).output().expect("it runs").status.code(), Some(3));
        let expected = format!("undo {round}, redo {round}, checkpoint {round}, shadow {round}\n");
        assert_eq!(counter.run(&[]).0, expected);
    }
    let bank = Program::compile("libnearpm/c/examples/bank.c");
    assert!(bank.run(&["100"]).0.contains(" committed, "));
}

/// The card posts commands where it makes the copies, and none where the processor does.
fn posts(name: &str, way: &'static str, expected: bool) {
    let (_, commands) = Rig::new(name, way).whole(7, 40);
    assert_eq!(commands > 0, expected, "{name} by {way}: {commands} commands");
}

#[test]
fn the_card_makes_the_copies_of_transactions() {
    posts("transactions", "working-copy", false);
    MECHANISMS.iter().for_each(|way| posts("transactions", way, true));
}

#[test]
fn the_card_makes_the_copies_of_primitives() {
    posts("primitives", "card", true);
    posts("primitives", "cpu", false);
}

/// What a program sees of primitives is the same on a copy and in memory that has addresses.
#[test]
fn primitives_show_the_same_on_a_card_and_in_a_file() {
    let program = Program::compile("sim/c-card/tests/c/seen.c");
    succeed(&mut program.plain(Library::Ordinary, &[]));
    std::fs::remove_file(program.pool()).expect("the pool is a file");
    program.run(&[]);
    assert!(program.card().exists(), "it ran on the card");
}

/// Power cuts of computer and card at random cycles, also behind a hostile processor.
fn lose_nothing_acknowledged(name: &str, way: &'static str, cuts: u64) {
    let operations = 50;
    let rig = Rig::new(name, way);
    let (cycles, _) = rig.whole(1, operations);
    let met = (1..=cuts).filter(|&seed| {
        // Another seed, and a hostile processor, take about as many cycles: some cuts come too
        // late, which is no error.
        let cut = format!("cycle={},seed={seed},hostile={}", 1 + draw(seed) % cycles, seed % 2);
        rig.cut(seed, operations, &cut)
    });
    let met = met.count() as u64;
    assert!(met * 2 > cuts, "{name} by {way}: only {met} of {cuts} cuts");
}

#[test]
fn power_cuts_lose_no_transaction_that_was_acknowledged() {
    let cuts = if nearpm_tier::thorough() { 300 } else { 8 };
    ["working-copy"].into_iter().chain(MECHANISMS).for_each(|way| lose_nothing_acknowledged("transactions", way, cuts));
}

#[test]
fn power_cuts_lose_no_primitive_that_was_acknowledged() {
    lose_nothing_acknowledged("primitives", "card", if nearpm_tier::thorough() { 1000 } else { 24 });
    lose_nothing_acknowledged("primitives", "cpu", if nearpm_tier::thorough() { 100 } else { 4 });
}

fn survive_kills(name: &str, way: &'static str, kills: u64) {
    let rig = Rig::new(name, way);
    (1..=kills).for_each(|seed| rig.kill(seed, (1 + draw(seed) % 60) as usize));
}

#[test]
fn kills_lose_no_transaction_that_was_acknowledged() {
    let kills = if nearpm_tier::thorough() { 60 } else { 5 };
    MECHANISMS.into_iter().for_each(|way| survive_kills("transactions", way, kills));
}

#[test]
fn kills_lose_no_primitive_that_was_acknowledged() {
    survive_kills("primitives", "card", if nearpm_tier::thorough() { 200 } else { 12 });
}

/// The ordinary library says which one has a card, and a pool on the card is found from its file
/// alone.
#[test]
fn the_ordinary_library_has_no_card() {
    let program = Program::compile("sim/c-card/tests/c/transactions.c");
    let mut command = program.plain(Library::Ordinary, &["undo", "prepare"]);
    let said = fail(command.env("NEARPM_CARD", program.card()));
    assert!(said.contains("code 10") && said.contains("./x libnearpm --simulated-card"), "{said}");
    assert!(!program.pool().exists() && !program.card().exists());
    program.run(&["undo", "prepare"]);
    let said = fail(&mut program.plain(Library::WithCard, &["undo", "verify", "1", "0"]));
    assert!(said.contains("names the card \"sim\", which is not open"), "{said}");
    program.run(&["undo", "verify", "1", "0"]);
    // Without a card in the environment the library is the ordinary one.
    std::fs::remove_file(program.pool()).expect("the file is there");
    succeed(&mut program.plain(Library::WithCard, &["undo", "prepare"]));
    assert_eq!(program.pool().metadata().expect("a pool").len(), 8 << 20);
    succeed(&mut program.plain(Library::Ordinary, &["undo", "work", "1", "20"]));
}
