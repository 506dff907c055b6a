//! The C programs of `nearpm-pmemobj` on the simulated card: the same binaries, told by the
//! environment alone.

use std::fs;
use std::path::Path;

use nearpm_pmemobj_programs::rig::{End, Rig, draw};
use nearpm_pmemobj_programs::{CARD, Library, MECHANISMS, Program, commands};

macro_rules! programs {
    ($( $name:ident ),* $(,)?) => { $(
        #[test]
        fn $name() {
            let Some(program) = Program::compile(stringify!($name)) else { return };
            program.run(Library::SimulatedCard, &[]);
        }
    )* };
}

/// It makes large pools, and what it removes stays on the card.
#[test]
fn pool() {
    let Some(program) = Program::compile("pool") else { return };
    program.run(Library::SimulatedCard, &[("NEARPM_CARD_BYTES", "536870912")]);
}

programs! { stages, work, atomic, list, lock, memory, ctl, defects, threads, full }

/// Processes that are killed, one a round. In a round the card powers up, and the pool is read
/// through it: that takes a second.
fn killed(mechanism: Option<&str>) {
    let Some(program) = Program::compile("crash") else { return };
    let rounds = ("ROUNDS", if nearpm_tier::thorough() { "60" } else { "20" });
    let variables: Vec<_> = mechanism.map(|name| ("NEARPM_MECHANISM", name)).into_iter().chain([rounds]).collect();
    program.run(Library::SimulatedCard, &variables);
}

#[test]
fn crash() {
    killed(None);
}

/// Who follows a program does it no harm: a file that is no clock is left as it is, and a clock
/// that cannot be written stands still.
#[test]
fn a_clock_is_a_file_of_its_own() {
    let Some(program) = Program::compile("work") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other");
    fs::write(&other, "something else").expect("it can be written");
    let by = |clock: &Path| {
        let clock = clock.to_str().expect("a path that is text");
        let output = program.output(Library::SimulatedCard, &[("NEARPM_CARD_CLOCK", clock)]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (runs, said) = by(&other);
    assert!(!runs && said.contains("is no clock"), "{said}");
    assert_eq!(fs::read_to_string(&other).expect("it is there"), "something else");
    let (runs, said) = by(Path::new("/dev/full"));
    assert!(runs && said.contains("NEARPM_CARD_CLOCK stands still"), "{said}");
}

/// The card makes the copies for programs that know nothing of it: unchanged binaries, told by the
/// environment alone.
fn by_the_card(name: &str, mechanism: &str) {
    let Some(program) = Program::compile(name) else { return };
    for (executor, posts) in [("card", true), ("cpu", false)] {
        let variables = [("NEARPM_MECHANISM", mechanism), ("NEARPM_EXECUTOR", executor), ("NEARPM_STATISTICS", "1")];
        let output = program.output(Library::SimulatedCard, &variables);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} by {mechanism} on the {executor}: {}\n{text}", output.status);
        assert_eq!(commands(&text) > 0, posts, "{name} by {mechanism} on the {executor}");
    }
}

#[test]
fn transactions_go_home_by_the_cards_undo_logs() {
    ["work", "atomic", "list", "threads"].iter().for_each(|name| by_the_card(name, "undo"));
}

#[test]
fn transactions_go_home_by_redo_logs_that_the_card_applies() {
    ["work", "atomic"].iter().for_each(|name| by_the_card(name, "redo"));
}

#[test]
fn transactions_go_home_by_the_cards_checkpoints() {
    by_the_card("work", "checkpoint");
}

#[test]
fn transactions_go_home_by_pages_that_the_card_copies_aside() {
    ["work", "atomic"].iter().for_each(|name| by_the_card(name, "shadow"));
}

/// Processes that are killed while commands are on their way: the card's file has what they wrote.
#[test]
fn a_killed_process_leaves_what_its_commands_wrote() {
    let mechanisms = if nearpm_tier::thorough() { &MECHANISMS[..] } else { &["undo", "shadow"] };
    mechanisms.iter().for_each(|mechanism| killed(Some(mechanism)));
}

/// Without `NEARPM_CARD` the library is the ordinary one.
#[test]
fn files_are_as_with_the_ordinary_library() {
    let Some(program) = Program::compile("stages") else { return };
    program.run(Library::WorkingCopy, &[]);
    program.run(Library::InPlace, &[]);
}

/// What a program is on is configuration: one pool on the card and one in a file, each found again
/// however the program is started.
#[test]
fn a_pool_is_opened_where_it_was_made() {
    let Some(program) = Program::compile("power_cut") else { return };
    let folder = program.folder_for_pools(Library::SimulatedCard);
    let (on_card, in_file) = (folder.path().join("on-card"), folder.path().join("in-file"));
    let start = |library, pool: &Path, arguments: &[&str]| program.start(library, pool, arguments, &[]);
    assert!(start(Library::SimulatedCard, &on_card, &["prepare"]).status.success());
    assert!(start(Library::WorkingCopy, &in_file, &["prepare"]).status.success());
    assert!(fs::read_to_string(&on_card).unwrap().starts_with("nearpm-pool card:sim/on_card-"));
    assert_eq!(in_file.metadata().unwrap().len(), 8 << 20);
    for pool in [&on_card, &in_file] {
        assert!(start(Library::SimulatedCard, pool, &["work", "5", "30"]).status.success());
        assert!(start(Library::SimulatedCard, pool, &["verify", "5", "30"]).status.success());
    }
    assert!(start(Library::WorkingCopy, &in_file, &["verify", "5", "30"]).status.success());
    let output = start(Library::WorkingCopy, &on_card, &["verify", "5", "30"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("names the card \"sim\", which is not open"), "{text}");
    // A location names the pool as its file does.
    let location = fs::read_to_string(&on_card).unwrap();
    let location = location.trim_end().strip_prefix("nearpm-pool ").unwrap();
    let card = folder.path().join(CARD);
    let variables = [("NEARPM_CARD", card.to_str().unwrap())];
    let output = program.start(Library::WorkingCopy, Path::new(location), &["verify", "5", "30"], &variables);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What is no memory of a card is refused and left as it is; a blank file becomes one.
#[test]
fn a_file_that_is_no_card_is_left_alone() {
    let Some(program) = Program::compile("power_cut") else { return };
    let folder = program.folder_for_pools(Library::SimulatedCard);
    let (card, pool) = (folder.path().join(CARD), folder.path().join("pool"));
    let prepare = |variables: &[(&str, &str)]| program.start(Library::SimulatedCard, &pool, &["prepare"], variables);
    let mut beside_the_arm_word = vec![0; 16 << 20];
    beside_the_arm_word[5 << 20] = 1;
    for bytes in [vec![], vec![0; 5000], vec![0; 4096], vec![7; 16 << 20], beside_the_arm_word] {
        fs::write(&card, &bytes).unwrap();
        let output = prepare(&[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("nothing was changed"), "{text}");
        assert!(fs::read(&card).unwrap() == bytes && !pool.exists());
    }
    for (name, value) in [
        ("NEARPM_CARD_BYTES", "5000"),
        ("NEARPM_CARD_BYTES", "lots"),
        ("NEARPM_CARD_CUT", "cycle=0"),
        ("NEARPM_CARD_CUT", "fence=3"),
        ("NEARPM_CARD", "/no/such/folder/card"),
        ("NEARPM_MODE", "in-place"),
        ("NEARPM_MECHANISM", "magic"),
        ("NEARPM_EXECUTOR", "gpu"),
        ("NEARPM_DURABILITY", "never"),
    ] {
        let _ = fs::remove_file(&card);
        let output = prepare(&[(name, value)]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !pool.exists(), "{name}={value}: {text}");
    }
    fs::write(&card, vec![0; 16 << 20]).unwrap();
    assert!(prepare(&[]).status.success());
    assert_eq!(card.metadata().unwrap().len(), 16 << 20);
    let former = fs::read(&card).unwrap();
    let output = prepare(&[]);
    assert!(!output.status.success(), "the pool exists");
    let elsewhere = fs::File::open(&card).unwrap();
    elsewhere.lock().unwrap();
    let other = folder.path().join("other");
    let output = program.start(Library::SimulatedCard, &other, &["prepare"], &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("is in another process") && !other.exists(), "{text}");
    assert!(fs::read(&card).unwrap() == former, "a refusal changes nothing on the card");
}

/// Power cuts of computer and card at random cycles, also behind a hostile processor: the card
/// saves, and replays at the next start.
#[test]
fn power_cuts_lose_nothing_acknowledged() {
    lose_nothing_acknowledged("record", if nearpm_tier::thorough() { 2000 } else { 40 });
}

/// The same with commands on their way.
#[test]
fn power_cuts_among_commands_lose_nothing_acknowledged() {
    for mechanism in MECHANISMS {
        lose_nothing_acknowledged(mechanism, if nearpm_tier::thorough() { 700 } else { 14 });
    }
}

fn lose_nothing_acknowledged(mechanism: &'static str, cuts: u64) {
    let operations = if nearpm_tier::thorough() { 200 } else { 60 };
    let Some(rig) = Rig::by("power_cut", Library::SimulatedCard, mechanism) else { return };
    let never = format!("cycle={}", u64::MAX);
    let End::Whole(cycles) = rig.cut(1, operations, &never) else { panic!("power was cut without being told") };
    let mut met = 0;
    for seed in 1..=cuts {
        // Another seed, and a hostile processor, take about as many cycles: some cuts come too
        // late, which is no error.
        let cut = format!("cycle={},seed={seed},hostile={}", 1 + draw(seed) % cycles, seed % 2);
        met += u64::from(rig.cut(seed, operations, &cut) == End::Cut);
    }
    assert!(met * 2 > cuts, "only {met} of {cuts} cuts: {}", rig.folder().display());
}

/// Transactions that do not wait for the medium: what is found is a prefix of what has returned,
/// with everything up to the last call outside of transactions; and some of it is missing, or this
/// would show nothing.
#[test]
fn power_cuts_among_asynchronous_commits_leave_a_prefix() {
    // So many that most of the cycles are theirs: no cut of an opening or a close loses one.
    let (operations, cuts) = (600, if nearpm_tier::thorough() { 700 } else { 24 });
    let mut lost = 0;
    for mechanism in MECHANISMS.into_iter().chain(["record"]) {
        let Some(rig) = Rig::waiting("power_cut", Library::SimulatedCard, mechanism, "asynchronous") else { return };
        let never = format!("cycle={}", u64::MAX);
        let (End::Whole(cycles), 0) = rig.cut_and_lost(1, operations, &never) else {
            panic!("{mechanism}: power was cut without being told, or a pool that was closed lost something")
        };
        for seed in 1..=cuts {
            let cut = format!("cycle={},seed={seed},hostile={}", 1 + draw(seed) % cycles, seed % 2);
            lost += rig.cut_and_lost(seed, operations, &cut).1;
        }
    }
    assert!(lost > 0, "no transaction that had returned was lost");
}
