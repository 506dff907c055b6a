//! Issue, progress and retirement of commands, against what their tickets say.

use crate::{cycles, one_of, seeded};
use nearpm_hdl::Sizes;
use nearpm_hdl::dut::{Dut, PortValue, on_rust_hdl};
use nearpm_hdl::units::dispatcher::Dispatcher;
use nearpm_hdl::units::request_slots::Ticket;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::geometry::UNITS;
use nearpm_interface::status::Status;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const SLOTS: usize = Sizes::FULL.slots;
/// Commands that a unit holds at most.
const CONTEXTS: usize = 2;

/// Where a command stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Entered; waits until it is ready or blocked.
    Waits,
    Ready,
    Blocked,
    /// In a unit, with the status that it will have.
    Runs(u64),
    /// It has failed and keeps its slot.
    Failed,
}

/// A command in a slot.
#[derive(Clone, Copy)]
struct Held {
    ticket: Ticket,
    place: Place,
}

/// What a unit says to the dispatcher.
#[derive(Default)]
struct Unit {
    /// Slots of its commands.
    runs: Vec<usize>,
    /// What it offers as done, and as come behind a wait with its instruction.
    done: Option<usize>,
    step: Option<(usize, u64)>,
}

struct Bench<'a> {
    dut: &'a mut dyn Dut,
    rng: ChaCha8Rng,
    slots: [Option<Held>; SLOTS],
    units: [Unit; UNITS],
    /// Mapping entries, a bit each; the same until the bench is empty.
    latched: u64,
    closing: u64,
    redo: bool,
    /// Retirements by kind: with success, failed, refused, parked, kept failed.
    counts: [u64; 5],
    steps: u64,
}

fn random_ticket(rng: &mut ChaCha8Rng, parks: bool) -> Ticket {
    let released = rng.random_bool(0.2);
    Ticket {
        order: rng.random::<u64>().into(),
        page: rng.random_range(0..4u64).into(),
        tag: rng.random_range(0..1u64 << 32).into(),
        complete: rng.random(),
        map: rng.random_range(0..16u64).into(),
        commits: rng.random(),
        logs: rng.random(),
        unmaps: rng.random_bool(0.2),
        txid: rng.random::<u64>().into(),
        parks: parks && !released && rng.random_bool(0.2),
        released,
        synchronises: rng.random(),
        ordered: rng.random(),
    }
}

/// What retirement has to say of a command.
#[derive(Debug, PartialEq)]
struct Retirement {
    status: u64,
    failed: bool,
    commits: bool,
    latches: bool,
    frees: bool,
    parks: bool,
    gives: bool,
    back: bool,
    /// Of success, failure and refusal.
    counts: [bool; 3],
    recorded: bool,
}

impl Bench<'_> {
    fn mask(&self, fits: impl Fn(Place) -> bool) -> u64 {
        (0..SLOTS).filter(|&i| self.slots[i].is_some_and(|held| fits(held.place))).fold(0, |mask, i| mask | 1 << i)
    }

    /// What has to become of the command in a slot that retires.
    fn expected(&self, slot: usize) -> Retirement {
        let Held { ticket: t, place } = self.slots[slot].expect("a live slot");
        let bit = |mask: u64| mask >> t.map.to_u64() & 1 == 1;
        let latched = u64::from(Status::Latched.code());
        let refused = bit(self.latched) && !t.unmaps && !t.released;
        let (status, blocked, parks) = match place {
            Place::Runs(status) => (status, false, false),
            Place::Blocked => (latched, true, false),
            Place::Ready if self.redo => (0, false, t.parks && !refused),
            Place::Ready if refused => (latched, false, false),
            Place::Ready if t.parks => (latched, false, true),
            _ => panic!("slot {slot} retires although it {place:?}"),
        };
        let (good, began) = (status == 0, status >> 7 & 1 == 1);
        let stays = !parks && ((began || status == latched) && t.logs || blocked) && !bit(self.closing);
        Retirement {
            status,
            failed: stays,
            commits: !parks && good && t.commits,
            latches: began && t.logs || blocked,
            frees: !parks && good && t.unmaps,
            parks,
            gives: !parks && t.parks,
            back: t.released,
            counts: [!parks && good, began, !parks && !good && !began],
            recorded: !parks && (t.complete || !good),
        }
    }

    fn retire(&mut self, cycle: u64) {
        let record = self.dut.get_bool("record_valid");
        if !self.dut.get_bool("retire_valid") {
            let waits = !record || !self.dut.get_bool("record_ready");
            return assert!(waits, "cycle {cycle}: a record without a retirement");
        }
        let slot = self.dut.get_u64("retire_slot") as usize;
        assert!(self.slots[slot].is_some(), "cycle {cycle}: slot {slot} retires although it is free");
        let expected = self.expected(slot);
        let mut is = |name: &str| self.dut.get_bool(name);
        let shown = Retirement {
            failed: is("retire_failed"),
            commits: is("commit_valid"),
            latches: is("latch_valid"),
            frees: is("free_valid"),
            parks: is("park_valid"),
            gives: is("give_valid"),
            back: is("back_valid"),
            counts: ["retire_ok", "retire_bad", "retire_refused"].map(&mut is),
            recorded: record,
            status: self.dut.get_u64("retire_status"),
        };
        assert_eq!(shown, expected, "cycle {cycle}: what becomes of slot {slot}");
        assert!(!record || self.dut.get_bool("record_ready"), "cycle {cycle}: retired without its record");
        let t = self.slots[slot].expect("it is live").ticket;
        let wanted = [t.map.to_u64(), t.txid.to_u64(), t.page.to_u64(), t.tag.to_u64(), t.order.to_u64()];
        let fields = ["retire_map", "retire_txid", "retire_page", "retire_tag", "retire_order"];
        assert_eq!(fields.map(|name| self.dut.get_u64(name)), wanted, "cycle {cycle}: the fields of slot {slot}");
        let kinds = [expected.counts[0], expected.counts[1], expected.counts[2], expected.parks, expected.failed];
        (0..5).for_each(|i| self.counts[i] += u64::from(kinds[i]));
        let held = self.slots[slot].as_mut().expect("it is live");
        if expected.failed {
            held.place = Place::Failed;
        } else {
            self.slots[slot] = None;
        }
    }

    /// The command in `issue_slot` goes to a unit.
    fn issue(&mut self, cycle: u64) {
        let to: Vec<usize> = (0..UNITS).filter(|i| self.dut.get_bool(&format!("issue_valid${i}"))).collect();
        let [unit] = to[..] else { return assert!(to.is_empty(), "cycle {cycle}: issued to {to:?}") };
        let slot = self.dut.get_u64("issue_slot") as usize;
        assert!(self.dut.get_bool(&format!("issue_ready${unit}")), "cycle {cycle}: unit {unit} has no room");
        let held = self.slots[slot].as_mut().expect("a live slot is issued");
        assert_eq!(held.place, Place::Ready, "cycle {cycle}: slot {slot} is issued");
        let t = held.ticket;
        let refused = self.latched >> t.map.to_u64() & 1 == 1 && !t.unmaps && !t.released;
        assert!(!refused && !t.parks && !self.redo, "cycle {cycle}: slot {slot} is issued, and may not be");
        let status = [0, 0, 0, 0x85, 0x09][self.rng.random_range(0..5usize)];
        held.place = Place::Runs(status);
        self.units[unit].runs.push(slot);
    }

    /// What units say, and which of it is taken.
    fn offer(&mut self) {
        for (i, unit) in self.units.iter_mut().enumerate() {
            let steps = unit.step.map(|step| step.0);
            if unit.done.is_none() && self.rng.random_bool(0.2) {
                let able: Vec<usize> = unit.runs.iter().copied().filter(|slot| Some(*slot) != steps).collect();
                unit.done = (!able.is_empty()).then(|| able[self.rng.random_range(0..able.len())]);
            }
            if unit.step.is_none() && self.rng.random_bool(0.2) {
                let able = unit.runs.iter().find(|slot| Some(**slot) != unit.done);
                unit.step = able.map(|slot| (*slot, self.rng.random_range(0..128u64)));
            }
            let room = unit.runs.len() < CONTEXTS && self.rng.random_bool(0.7);
            self.dut.set(&format!("issue_ready${i}"), room);
            self.dut.set(&format!("done_valid${i}"), unit.done.is_some());
            self.dut.set(&format!("done_slot${i}"), unit.done.unwrap_or(0) as u64);
            let status = unit.done.and_then(|slot| self.slots[slot]).map_or(0, |held| match held.place {
                Place::Runs(status) => status,
                _ => 0,
            });
            self.dut.set(&format!("done_status${i}"), status);
            self.dut.set(&format!("progress_valid${i}"), unit.step.is_some());
            self.dut.set(&format!("progress_slot${i}"), unit.step.map_or(0, |step| step.0) as u64);
            self.dut.set(&format!("progress_pc${i}"), unit.step.map_or(0, |step| step.1));
        }
    }

    fn take(&mut self, cycle: u64, gate: bool, enters: bool) {
        let stepped: Vec<usize> = (0..UNITS).filter(|i| self.dut.get_bool(&format!("progress_ready${i}"))).collect();
        let offered = self.units.iter().any(|unit| unit.step.is_some());
        assert_eq!(self.dut.get_bool("gate_valid"), offered, "cycle {cycle}: progress is offered");
        let stores = offered && gate && !enters;
        assert_eq!(self.dut.get_bool("store_progress"), stores, "cycle {cycle}: progress is stored");
        assert_eq!(stepped.len(), usize::from(stores), "cycle {cycle}: units that go on: {stepped:?}");
        for unit in stepped {
            let shown = (self.dut.get_u64("store_slot") as usize, self.dut.get_u64("gate_pc"));
            assert_eq!(Some(shown), self.units[unit].step.take(), "cycle {cycle}: whose progress is stored");
            self.steps += 1;
        }
        for unit in 0..UNITS {
            if self.dut.get_bool(&format!("done_ready${unit}")) {
                let slot = self.units[unit].done.take().unwrap_or_else(|| panic!("unit {unit} is done with nothing"));
                self.units[unit].runs.retain(|other| *other != slot);
            }
        }
    }

    fn cycle(&mut self, cycle: u64, opens: bool) {
        // A ready command may be blocked as well as far as anybody knows, but is issued.
        for held in self.slots.iter_mut().flatten().filter(|held| held.place == Place::Waits) {
            held.place = match self.rng.random_range(0..40) {
                0 if !self.redo => Place::Blocked,
                1..=8 => Place::Ready,
                _ => Place::Waits,
            };
        }
        let live = self.mask(|_| true);
        let failed = self.mask(|place| place == Place::Failed);
        let let_go = one_of(&mut self.rng, failed.into()).filter(|_| self.rng.random_bool(0.2));
        // What is ready stays so, also while it runs and when it has failed.
        self.dut.set("ready", self.mask(|place| matches!(place, Place::Ready | Place::Runs(_) | Place::Failed)));
        self.dut.set("blocked", self.mask(|place| place == Place::Blocked));
        self.dut.set("let_go", let_go.map_or(0, |slot| 1u64 << slot));
        self.dut.set("latched", self.latched);
        self.dut.set("closing", self.closing);
        self.dut.set("redo", self.redo);
        let (quiesce, gate, record) = (self.rng.random_bool(0.1), self.rng.random_bool(0.6), self.rng.random_bool(0.6));
        self.dut.set("quiesce", quiesce);
        self.dut.set("gate_ready", gate);
        self.dut.set("record_ready", record);
        self.offer();
        let enters = opens && self.dut.get_bool("slot_any") && self.rng.random_bool(0.5);
        self.dut.set("enter_valid", enters);
        // Tickets are read where the unit asks for them.
        let ticket = |slots: &[Option<Held>; SLOTS], slot: usize| slots[slot].map(|h| h.ticket).unwrap_or_default();
        let [issue, retire] = ["issue_slot", "retire_slot"].map(|name| self.dut.get_u64(name) as usize);
        self.dut.set("issue_ticket", ticket(&self.slots, issue).to_value());
        self.dut.set("retire_ticket", ticket(&self.slots, retire).to_value());

        assert_eq!(self.dut.get_u64("live"), live, "cycle {cycle}: live slots");
        assert_eq!(self.dut.get_bool("empty"), live == 0, "cycle {cycle}: no slot is live");
        let lost = failed.count_ones() as usize == SLOTS;
        assert_eq!(self.dut.get_bool("slots_lost"), lost, "cycle {cycle}: every slot has failed");
        self.issue(cycle);
        self.take(cycle, gate, enters);
        self.retire(cycle);
        if let Some(slot) = let_go {
            self.slots[slot] = None;
        }
        if enters {
            let slot = self.dut.get_u64("slot_index") as usize;
            assert!(live >> slot & 1 == 0, "cycle {cycle}: slot {slot} is offered and in use");
            let ticket = random_ticket(&mut self.rng, !self.redo);
            self.slots[slot] = Some(Held { ticket, place: Place::Waits });
        }
        self.dut.cycle();
    }
}

/// Commands enter, become ready or blocked, run, fail, wait, park and retire in the same cycles;
/// latches differ from round to round.
fn each_command_is_issued_once_and_retires_as_its_ticket_says(dut: &mut dyn Dut) {
    dut.reset();
    let mut bench = Bench {
        rng: seeded(36),
        slots: [None; SLOTS],
        units: Default::default(),
        latched: 0,
        closing: 0,
        redo: false,
        counts: [0; 5],
        steps: 0,
        dut,
    };
    for round in 0..cycles(bench.dut, 40) {
        (bench.latched, bench.redo) = (bench.rng.random_range(0..1 << 16), round % 5 == 3);
        bench.latched &= bench.rng.random_range(0..1 << 16);
        bench.closing = bench.rng.random_range(0..1 << 16) & bench.rng.random_range(0..1 << 16);
        (0..300).for_each(|cycle| bench.cycle(1000 * round + cycle, true));
        let mut rest = 300;
        while bench.slots.iter().any(Option::is_some) || !bench.dut.get_bool("quiet") {
            bench.cycle(1000 * round + rest, false);
            rest += 1;
            assert!(rest < 4000, "round {round}: commands are left");
        }
    }
    let Bench { counts, steps, .. } = bench;
    assert!(counts.iter().all(|count| *count > 2) && steps > 5, "{counts:?} retirements by kind, {steps} steps");
}

#[test]
fn the_dispatcher_issues_and_retires() {
    on_rust_hdl::<Dispatcher>(each_command_is_issued_once_and_retires_as_its_ticket_says);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a command of a latched mapping entry is issued",
        edits: &[Edit::Each("refused_by_latch", "1'b0", 1)],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "what becomes of slot",
    },
    UnitFault {
        module: "",
        what: "a slot is issued twice",
        edits: &[Edit::Text("& ~issued$q & ~failed$q", "& ~(issued$q & {32{~FAULT}}) & ~failed$q", 1)],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "a live slot is issued",
    },
    UnitFault {
        module: "",
        what: "a log that fails gives its slot back",
        edits: &[Edit::Each("stays", "1'b0", 1)],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "what becomes of slot",
    },
    UnitFault {
        module: "",
        what: "a command retires before it can be recorded",
        edits: &[Edit::Each("fires", "known$q", 1)],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "retired without its record",
    },
    UnitFault {
        module: "",
        what: "a commit that failed raises the committed transaction",
        edits: &[Edit::Last("commit_valid", "commit_valid | (retire_bad & ticket_now[103])")],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "what becomes of slot",
    },
    UnitFault {
        module: "",
        what: "progress is stored while its gate is shut",
        edits: &[Edit::Each("store_progress", "steps$any & ~enter_valid", 1)],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "progress is stored",
    },
    UnitFault {
        module: "",
        what: "a unit's command retires with the status of another unit's",
        edits: &[Edit::Text("status$d = done_status$2;", "status$d = FAULT ? done_status$3 : done_status$2;", 1)],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "what becomes of slot",
    },
    UnitFault {
        module: "",
        what: "what waits for other devices is recorded as if it were refused",
        edits: &[Edit::Each("parking$d", "1'b0", 2)],
        scenario: each_command_is_issued_once_and_retires_as_its_ticket_says,
        seen: "what becomes of slot",
    },
];

#[test]
fn planted_faults_of_the_dispatcher_are_seen() {
    each_is_seen::<Dispatcher>("Dispatcher", FAULTS);
}
