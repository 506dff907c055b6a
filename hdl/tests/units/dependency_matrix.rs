//! Who waits for whom, against sets.

use crate::{cycles, one_of, seeded};
use nearpm_hdl::Sizes;
use nearpm_hdl::dut::{Dut, Value, on_rust_hdl};
use nearpm_hdl::units::dependency_matrix::DependencyMatrix;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

const SLOTS: usize = Sizes::FULL.slots;
const ROWS: usize = SLOTS + Sizes::FULL.lines;
const COMMANDS: u128 = (1 << SLOTS) - 1;

/// The matrix as sets; masks have a bit for each row.
struct Matrix {
    /// What each item waits for.
    rows: [u128; ROWS],
    complete: u128,
    /// Rows to which something was named.
    told: u128,
    /// What the unit has to show.
    ready: u128,
    held: u128,
    blocked: u128,
    /// Failed logs that were not let go.
    failed: u128,
    /// Items that were entered and have not retired.
    live: u128,
    /// Pulses to come, for a command and for an access: of the next cycle, and of the one behind.
    pulses: VecDeque<[bool; 2]>,
    /// The row that is being set waits for something.
    waits: bool,
}

/// What happens in a cycle.
#[derive(Default)]
struct Events {
    enter: Option<usize>,
    /// Row, bits, and whether they are the last.
    set: Option<(usize, u128, bool)>,
    slot: Option<usize>,
    fails: bool,
    write: Option<usize>,
    read: Option<usize>,
    let_go: u128,
    kept: u128,
}

impl Events {
    fn offer(&self, dut: &mut dyn Dut) {
        dut.set("enter_valid", self.enter.is_some());
        dut.set("enter_row", self.enter.unwrap_or(0) as u64);
        dut.set("set_valid", self.set.is_some());
        let (row, bits, end) = self.set.unwrap_or_default();
        let bits = Value::from(bits as u64).with_slice(64, 32, (bits >> 64) as u64);
        dut.set("set_row", row as u64);
        dut.set("set_bits", bits);
        dut.set("set_end", end);
        dut.set("retire_slot_valid", self.slot.is_some());
        dut.set("retire_slot", self.slot.unwrap_or(0) as u64);
        dut.set("retire_failed", self.fails);
        for (name, row) in [("retire_write", self.write), ("retire_read", self.read)] {
            dut.set(&format!("{name}_valid"), row.is_some());
            dut.set(name, row.map_or(0, |row| row - SLOTS) as u64);
        }
        dut.set("let_go", self.let_go as u64);
        dut.set("kept_lines", (self.kept >> SLOTS) as u64);
    }

    /// Whom nobody of these rows waits for any more.
    fn gone(&self, commands: bool) -> u128 {
        let lines = [self.write, self.read].into_iter().flatten().fold(self.let_go, |mask, row| mask | 1 << row);
        lines | self.slot.filter(|_| commands || !self.fails).map_or(0, |slot| 1 << slot)
    }
}

impl Matrix {
    fn new() -> Self {
        Self {
            rows: [0; ROWS],
            complete: 0,
            told: 0,
            ready: 0,
            held: 0,
            blocked: 0,
            failed: 0,
            live: 0,
            pulses: VecDeque::from([[false; 2], [false; 2]]),
            waits: false,
        }
    }

    fn all(&self, fits: impl Fn(u128) -> bool) -> u128 {
        (0..ROWS)
            .filter(|&row| self.complete >> row & 1 == 1 && fits(self.rows[row]))
            .fold(0, |mask, row| mask | 1 << row)
    }

    fn edge(&mut self, e: &Events) {
        let (held, kept) = (self.held | self.failed, e.kept);
        let (ready, waits, blocked) =
            (self.all(|row| row == 0), self.all(|row| row & held != 0), self.all(|row| row & kept != 0));
        (self.ready, self.held, self.blocked) = (ready, waits, blocked & COMMANDS);
        self.failed &= !e.let_go;
        if let Some(slot) = e.slot.filter(|_| e.fails) {
            self.failed |= 1 << slot;
        }
        let gone = |row: usize| e.gone(row < SLOTS);
        for row in 0..ROWS {
            self.rows[row] &= !gone(row);
        }
        let mut pulse = [false; 2];
        if let Some((row, bits, end)) = e.set {
            self.told |= u128::from(bits != 0) << row;
            if end {
                // Without anything named it is ready at once.
                self.ready |= 1 << row & !self.told;
            }
            let bits = bits & !gone(row);
            self.rows[row] |= bits;
            self.waits |= bits != 0;
            if end {
                self.complete |= 1 << row;
                pulse[usize::from(row >= SLOTS)] = std::mem::take(&mut self.waits);
            }
        }
        self.pulses.pop_front();
        self.pulses.push_back(pulse);
        if let Some(row) = e.enter {
            self.rows[row] = 0;
            let others = !(1 << row);
            self.complete &= others;
            self.told &= others;
            self.ready &= others;
            self.held &= others;
            self.blocked &= others;
            self.live |= 1 << row;
        }
        self.live &= !(e.gone(true) & !self.failed);
    }

    fn check(&self, dut: &mut dyn Dut, cycle: u64) {
        let mut shown = |slots: &str, lines: &str| {
            let slots = if slots.is_empty() { 0 } else { dut.get_u64(slots) };
            let lines = if lines.is_empty() { 0 } else { dut.get_u64(lines) };
            u128::from(slots) | u128::from(lines) << SLOTS
        };
        assert_eq!(shown("ready_slots", "ready_lines"), self.ready, "cycle {cycle}: who is ready");
        assert_eq!(shown("", "held_lines"), self.held & !COMMANDS, "cycle {cycle}: who is held");
        assert_eq!(shown("blocked_slots", ""), self.blocked, "cycle {cycle}: who is blocked");
        let pulses = ["held_command", "held_host"].map(|pulse| dut.get_bool(pulse));
        assert_eq!(pulses, self.pulses[0], "cycle {cycle}: who was told to wait");
    }
}

/// Which items retire, and which failed logs are let go; what is ready retires, and what is blocked
/// as a failure.
fn leave(rng: &mut ChaCha8Rng, m: &Matrix, e: &mut Events) {
    let able = m.ready & m.live & !m.failed;
    if rng.random_bool(0.5) {
        e.slot = one_of(rng, (able | m.blocked & m.live & !m.failed) & COMMANDS);
        e.fails = e.slot.is_some_and(|slot| m.ready >> slot & 1 == 0 || rng.random_bool(0.2));
    }
    if rng.random_bool(0.3) {
        e.write = one_of(rng, able & !COMMANDS);
    }
    if rng.random_bool(0.3) {
        e.read = one_of(rng, able & !COMMANDS & !e.write.map_or(0, |row| 1 << row));
    }
    if rng.random_bool(0.03) {
        e.let_go = m.failed;
    }
}

/// Items enter, are set in one to three steps, retire, fail and are let go, all in the same cycles.
fn items_wait_for_what_was_set_and_has_not_gone(dut: &mut dyn Dut) {
    let mut rng = seeded(33);
    dut.reset();
    let (mut m, mut steps, mut kept) = (Matrix::new(), VecDeque::new(), 0u128);
    let mut seen = [0; 4];
    for cycle in 0..cycles(dut, 12_000) {
        let mut e = Events::default();
        leave(&mut rng, &m, &mut e);
        let leaving = e.gone(true);
        if steps.is_empty() && rng.random_bool(0.7) {
            // A row is entered in one cycle, and set from the next but one on.
            e.enter = one_of(&mut rng, !m.live & !leaving & ((1 << ROWS) - 1));
            let count = rng.random_range(1..=3);
            steps.extend(e.enter.into_iter().flat_map(|_| [None]));
            steps.extend(e.enter.into_iter().flat_map(|row| (1..=count).map(move |n| Some((row, n == count)))));
        } else if let Some((row, end)) = steps.pop_front().flatten() {
            // It may wait for whoever is live in the cycle of the query; who retires at this edge
            // included.
            let who = m.live & !(1 << row) & if row < SLOTS { !m.failed } else { u128::MAX };
            let few =
                (0..rng.random_range(0..3)).filter_map(|_| one_of(&mut rng, who)).fold(0, |bits, bit| bits | 1 << bit);
            e.set = Some((row, few, end));
        }
        // A line that is held is kept until it is let go.
        kept = (kept | m.held & !COMMANDS & if rng.random_bool(0.2) { u128::MAX } else { 0 }) & m.held;
        e.kept = kept;
        e.offer(dut);
        dut.cycle();
        m.edge(&e);
        m.check(dut, cycle);
        let counts = [m.ready & m.live, m.held, m.blocked, m.failed];
        (0..4).for_each(|i| seen[i] += u64::from(counts[i] != 0));
    }
    assert!(seen.iter().all(|count| *count > 30), "cycles with ready, held, blocked and failed items: {seen:?}");
}

#[test]
fn the_dependency_matrix_shows_who_waits() {
    on_rust_hdl::<DependencyMatrix>(items_wait_for_what_was_set_and_has_not_gone);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "an item is ready before its row is complete",
        edits: &[Edit::Text("early | complete & ~{", "early | (complete | {96{FAULT}}) & ~{", 1)],
        scenario: items_wait_for_what_was_set_and_has_not_gone,
        seen: "who is ready",
    },
    UnitFault {
        module: "",
        what: "a bit that is set in the cycle of its retirement stays",
        edits: &[Edit::Text(
            "mine = set_bits & ~((set_row < 7'd32) ? commands : hosts);",
            "mine = set_bits & ~({96{~FAULT}} & ((set_row < 7'd32) ? commands : hosts));",
            1,
        )],
        scenario: items_wait_for_what_was_set_and_has_not_gone,
        seen: "who ",
    },
    UnitFault {
        module: "",
        what: "a failed log lets the host's accesses go",
        edits: &[Edit::Text("{32{~retire_failed}}", "{32{~retire_failed | FAULT}}", 1)],
        scenario: items_wait_for_what_was_set_and_has_not_gone,
        seen: "who is",
    },
    UnitFault {
        module: "",
        what: "who waits for a held item is not held",
        edits: &[Edit::Text("blockers = waits |", "blockers = (waits & {96{~FAULT}}) |", 1)],
        scenario: items_wait_for_what_was_set_and_has_not_gone,
        seen: "who is held",
    },
    UnitFault {
        module: "",
        what: "an item waits for what the one before it in its row has waited for",
        edits: &[Edit::Text("if (entered[i]) rows[i]", "if (entered[i] & ~FAULT) rows[i]", 1)],
        scenario: items_wait_for_what_was_set_and_has_not_gone,
        seen: "who is ready",
    },
    UnitFault {
        module: "",
        what: "an item whose last answer names nobody is ready whatever was named before",
        edits: &[Edit::Text("early = chosen & ~told &", "early = chosen & ~(told & {96{~FAULT}}) &", 1)],
        scenario: items_wait_for_what_was_set_and_has_not_gone,
        seen: "who is ready",
    },
    UnitFault {
        module: "",
        what: "an item that enters is as ready as the one before it",
        edits: &[Edit::Text("}) & ~entered; else", "}) & ~(entered & {96{~FAULT}}); else", 1)],
        scenario: items_wait_for_what_was_set_and_has_not_gone,
        seen: "who is ready",
    },
];

#[test]
fn planted_faults_of_the_dependency_matrix_are_seen() {
    each_is_seen::<DependencyMatrix>("DependencyMatrix", FAULTS);
}
