//! Every kind of pool: all crash states of the smallest transactions, and one of each kind of
//! larger ones.

mod common;

use std::time::Instant;

use common::{single, thorough};
use nearpm_explorer::explore::{Limits, Report, explore};
use nearpm_explorer::failure::Case;
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Program, Structure};

/// Explores a program, which survives.
fn survives(program: Program, limits: Limits) -> Report {
    let (report, failure) = explore(&program, limits).unwrap_or_else(|e| panic!("{program:?}: {e}"));
    if let Some(failure) = failure {
        let case = Case { program, failure }.minimise(limits);
        let path = std::env::temp_dir().join(format!("crash-{}.json", std::process::id()));
        case.write(&path).unwrap();
        panic!("{case:?}\nrepeat it with: cargo run -p nearpm-explorer -- replay {}", path.display());
    }
    report
}

/// Whether even a word makes a long record: then all states of a crash are explored, and crashes of
/// some recoveries.
fn has_long_records(pool: Kind) -> bool {
    use Kind::{CWorkingCopy, CardShadow, CardShadowUnordered, Growing, Shadow, WorkingCopy, WorkingCopyAsynchronous};
    // Their recoveries bring pages home, which is as long.
    matches!(pool, Kind::WorkingCopyByShadow | Kind::CardWorkingCopyByShadow)
        || pool.writes_once()
        || matches!(
            pool,
            Shadow | CardShadow | CardShadowUnordered | WorkingCopy | WorkingCopyAsynchronous | Growing | CWorkingCopy
        )
}

/// Whether it copies within the card what an epoch changes first, so that little is ever on the
/// way.
fn is_checkpointed_by_a_card(pool: Kind) -> bool {
    matches!(pool, Kind::CardCheckpoint | Kind::CardCheckpointUnordered | Kind::CardWorkingCopyByCheckpoint)
}

/// The smallest transactions: one that changes a word, and one that gives an object's place away.
/// On a card, whose logs are no stores, also one that makes an object and gives another one's place
/// away, behind one that changes a word.
fn smallest(pool: Kind) -> Vec<Program> {
    let before = vec![single(0, 1)];
    let program = |last| Program {
        pool,
        structure: Structure::Slots,
        before: before.clone(),
        transactions: vec![last],
        leave_out: None,
        schedule: Vec::new(),
        reader: None,
    };
    let mut programs = vec![program(single(5, 77))];
    // The record of that is too long for every state of a log of new values.
    if thorough() && !has_long_records(pool) && !matches!(pool, Kind::Redo | Kind::RedoAsynchronous) {
        programs.push(program(single(2, 0)));
    }
    let has_few_states = matches!(pool, Kind::CardUndo | Kind::CardUndoAsynchronous | Kind::CardUndoUnordered);
    if has_few_states || thorough() && is_checkpointed_by_a_card(pool) {
        let made = program(single(0, 2));
        programs.push(Program { transactions: vec![single(5, 78), single(0, 2)], ..made });
    }
    programs
}

/// Most lines with a store that is half there. Where values are written once the record says as
/// well what was durable. Nobody waits for the record of an asynchronous commit, so that it is on
/// the way beside the next one, which is long as well: all states of both are millions. Where such
/// a record is waited for, one torn line takes minutes: the fast tier has lines that are there, or
/// not.
fn torn_lines(pool: Kind) -> u32 {
    match pool {
        _ if thorough() => Limits::EXHAUSTIVE.tears,
        Kind::WrittenOnce => 0,
        Kind::WorkingCopyAsynchronous | Kind::WrittenOnceAsynchronous => 1,
        _ => Limits::EXHAUSTIVE.tears,
    }
}

/// Every state that a crash may leave, and every state that a crash of the recovery from it may
/// leave.
fn exhaustively(pool: Kind) {
    let begin = Instant::now();
    let mut total = Report::default();
    for program in smallest(pool) {
        let limits = match (has_long_records(pool), thorough()) {
            (false, _) => Limits::EXHAUSTIVE,
            (true, thorough) => {
                // Without torn lines there are few states.
                let again_one_in = match torn_lines(pool) {
                    0 => 4,
                    _ if thorough => 64,
                    _ => 256,
                };
                Limits { again_one_in, in_a_row: 3, ..Limits::EXHAUSTIVE }
            }
        };
        total += survives(program, Limits { tears: torn_lines(pool), ..limits });
    }
    println!("{pool:?}, exhaustively: {total}; {:.1} s", begin.elapsed().as_secs_f64());
    assert_eq!(total.cut_short, 0, "some states were left out");
    // A word that a working copy's commit brings home by the card's undo log is all that is ever on
    // the way.
    let has_few = is_checkpointed_by_a_card(pool) || pool == Kind::CardWorkingCopyByUndo;
    assert!(total.again > 0 && total.states > if has_few { 5 } else { 20 });
    assert_eq!(total.media, 1, "a command met what was not certain");
}

/// Random programs on every structure of the library; states that recovery cannot tell apart are
/// explored once.
fn lazily(pool: Kind) {
    let begin = Instant::now();
    let mut total = Report::default();
    for structure in Structure::LIBRARY {
        for seed in 0..if thorough() { 5 } else { 1 } {
            let transactions = if thorough() { 3 } else { 2 };
            // Of logs that commands apply many lines are on the way at each cut.
            let runs_per_cut = if pool == Kind::CardWorkingCopyByRedo { 16 } else { 64 };
            let limits =
                if thorough() { Limits::LAZY } else { Limits { runs_per_cut, again_one_in: 512, ..Limits::LAZY } };
            total += survives(Program::random(pool, structure, seed, transactions, 3), limits);
        }
    }
    println!("{pool:?}, lazily: {total}; {:.1} s", begin.elapsed().as_secs_f64());
    // By a card checkpoints and old values are copied within it, so that little is ever on the way.
    let least = if pool.is_on_card() { 100 } else { 300 };
    assert!(total.states > if thorough() { 6 * least } else { least }, "{total}");
    assert_eq!(total.media, 1, "a command met what was not certain");
}

macro_rules! each {
    ($($name:ident: $kind:ident,)*) => {$(
        mod $name {
            #[test]
            fn smallest_transactions_survive_every_crash() {
                super::exhaustively(super::Kind::$kind);
            }
            #[test]
            fn random_programs_survive_every_kind_of_crash() {
                super::lazily(super::Kind::$kind);
            }
        }
    )*};
}

each! {
    undo: Undo,
    undo_asynchronous: UndoAsynchronous,
    redo: Redo,
    redo_asynchronous: RedoAsynchronous,
    checkpoint: Checkpoint,
    shadow: Shadow,
    working_copy: WorkingCopy,
    working_copy_asynchronous: WorkingCopyAsynchronous,
    working_copy_by_undo: WorkingCopyByUndo,
    working_copy_by_redo: WorkingCopyByRedo,
    working_copy_by_checkpoint: WorkingCopyByCheckpoint,
    working_copy_by_shadow: WorkingCopyByShadow,
    written_once: WrittenOnce,
    written_once_asynchronous: WrittenOnceAsynchronous,
    growing: Growing,
    in_place: InPlace,
    in_place_growing: InPlaceGrowing,
    c_working_copy: CWorkingCopy,
    c_in_place: CInPlace,
    card_undo: CardUndo,
    card_undo_asynchronous: CardUndoAsynchronous,
    card_redo: CardRedo,
    card_redo_asynchronous: CardRedoAsynchronous,
    card_checkpoint: CardCheckpoint,
    card_shadow: CardShadow,
    card_working_copy_by_undo: CardWorkingCopyByUndo,
    card_working_copy_by_redo: CardWorkingCopyByRedo,
    card_working_copy_by_checkpoint: CardWorkingCopyByCheckpoint,
    card_working_copy_by_shadow: CardWorkingCopyByShadow,
    card_undo_unordered: CardUndoUnordered,
    card_redo_unordered: CardRedoUnordered,
    card_checkpoint_unordered: CardCheckpointUnordered,
    card_shadow_unordered: CardShadowUnordered,
}
