//! Places of commands that wait for other devices, against a list.

use crate::{cycles, one_of, seeded};
use nearpm_hdl::dut::{Dut, on_rust_hdl};
use nearpm_hdl::units::parked_places::ParkedPlaces;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const PLACES: usize = 32;
const MAPS: usize = 16;

/// A command in a place.
#[derive(Clone, Copy)]
struct Parked {
    map: usize,
    forced: bool,
    doomed: bool,
}

#[derive(Default)]
struct Table {
    places: [Option<Parked>; PLACES],
    /// Mapping entries of commands for which a place is kept.
    kept: Vec<usize>,
    /// Entries with a command that was let go, and with one that then failed.
    running: u16,
    failed: u16,
}

impl Table {
    fn mask(&self, fits: impl Fn(Parked) -> bool) -> u64 {
        (0..PLACES).filter(|&i| self.places[i].is_some_and(&fits)).fold(0, |mask, i| mask | 1 << i)
    }

    fn maps(&self) -> u64 {
        self.places.iter().flatten().fold(0, |mask, parked| mask | 1 << parked.map)
    }

    fn check(&self, dut: &mut dyn Dut, cycle: u64, asks: usize) {
        let used = self.mask(|_| true);
        assert_eq!(dut.get_u64("used"), used, "cycle {cycle}: places in use");
        assert_eq!(dut.get_u64("forced"), self.mask(|p| p.forced), "cycle {cycle}: whose transaction is committed");
        assert_eq!(dut.get_u64("doomed"), self.mask(|p| p.doomed), "cycle {cycle}: whose command is taken away");
        assert_eq!(dut.get_u64("of_map"), self.mask(|p| p.map == asks), "cycle {cycle}: places of entry {asks}");
        assert_eq!(dut.get_u64("waiting"), self.maps(), "cycle {cycle}: entries that wait");
        let let_go = u64::from(self.running | self.failed);
        assert_eq!(dut.get_u64("let_go"), let_go, "cycle {cycle}: entries that were let go");
        let busy = self.kept.iter().fold(self.maps() | let_go, |mask, map| mask | 1 << map);
        assert_eq!(dut.get_u64("busy"), busy, "cycle {cycle}: entries that are busy");
        let full = used.count_ones() as usize + self.kept.len() == PLACES;
        assert_eq!(dut.get_bool("full"), full, "cycle {cycle}: full");
    }
}

/// Sets a port and its operand, and says which it is.
fn offer(dut: &mut dyn Dut, name: &str, operand: &str, value: Option<usize>) -> Option<usize> {
    dut.set(&format!("{name}_valid"), value.is_some());
    dut.set(operand, value.unwrap_or(0) as u64);
    value
}

/// Commands in every state come and go in the same cycles, and software acts on places in use and
/// on others.
fn places_are_kept_used_and_free_again(dut: &mut dyn Dut) {
    let mut rng = seeded(34);
    dut.reset();
    let (mut t, mut seen) = (Table::default(), [0; 3]);
    for cycle in 0..cycles(dut, 12_000) {
        // Now and then the table fills, and then empties.
        let fills = cycle / 200 % 2 == 0;
        let used = t.mask(|_| true);
        let is_full = used.count_ones() as usize + t.kept.len() == PLACES;
        let map = |rng: &mut ChaCha8Rng| rng.random_range(0..MAPS);
        let chance = |rng: &mut ChaCha8Rng, often: bool| rng.random_bool(if often { 0.6 } else { 0.15 });
        let keep = (!is_full && chance(&mut rng, fills)).then(|| map(&mut rng));
        let keep = offer(dut, "keep", "keep_map", keep);
        let mut kept = |rng: &mut ChaCha8Rng, often| {
            let wanted = !t.kept.is_empty() && chance(rng, often);
            wanted.then(|| t.kept.swap_remove(rng.random_range(0..t.kept.len())))
        };
        let give = kept(&mut rng, false);
        let put = kept(&mut rng, fills);
        let give = offer(dut, "give", "give_map", give);
        let put = offer(dut, "put", "put_map", put);
        let leave = if chance(&mut rng, !fills) { one_of(&mut rng, used.into()) } else { None };
        let leave = offer(dut, "leave", "leave_place", leave);
        let lets = rng.random_bool(0.1).then(|| map(&mut rng));
        let lets = offer(dut, "let", "let_map", lets);
        let back = if rng.random_bool(0.1) { one_of(&mut rng, t.running.into()) } else { None };
        let back = offer(dut, "back", "back_map", back);
        let fails: bool = rng.random();
        dut.set("back_failed", fails);
        let close = rng.random_bool(0.05).then(|| map(&mut rng));
        let close = offer(dut, "close", "close_map", close);
        let all = rng.random_bool(0.01);
        dut.set("close_all", all);
        let (act, [force, doom]) = (rng.random_range(0..PLACES), [0; 2].map(|_| rng.random_bool(0.1)));
        dut.set("force_valid", force);
        dut.set("doom_valid", doom);
        dut.set("act_place", act as u64);
        let asks = map(&mut rng);
        dut.set("ask_map", asks as u64);
        let place = dut.get_u64("put_place") as usize;
        assert!(put.is_none() || t.places[place].is_none(), "cycle {cycle}: a place in use is given");

        dut.cycle();
        if let Some(parked) = &mut t.places[act] {
            parked.forced |= force;
            parked.doomed |= doom;
        }
        if let Some(map) = put {
            t.places[place] = Some(Parked { map, forced: false, doomed: false });
        }
        leave.iter().for_each(|&place| t.places[place] = None);
        t.kept.extend(keep);
        if all {
            t.failed = 0;
        }
        t.failed &= !close.map_or(0, |map| 1 << map);
        if let Some(map) = back {
            t.running &= !(1 << map);
            t.failed |= u16::from(fails) << map;
        }
        t.running |= lets.map_or(0, |map| 1 << map);
        t.check(dut, cycle, asks);
        let counts = [is_full, t.mask(|p| p.forced) != 0 && t.mask(|p| p.doomed) != 0, give.is_some() && put.is_some()];
        (0..3).for_each(|i| seen[i] += u64::from(counts[i]));
    }
    assert!(
        seen.iter().all(|count| *count > 5),
        "cycles full, with both acts, and with places given and taken: {seen:?}"
    );
}

#[test]
fn the_places_of_what_waits_are_kept() {
    on_rust_hdl::<ParkedPlaces>(places_are_kept_used_and_free_again);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a place in use is given to another command",
        edits: &[Edit::Text("free = ~used[31:0];", "free = ~used[31:0] | {32{FAULT}};", 1)],
        scenario: places_are_kept_used_and_free_again,
        seen: "a place in use is given",
    },
    UnitFault {
        module: "",
        what: "a command that retires without having waited keeps its place",
        edits: &[Edit::Text("- {5'd0, give_valid} -", "- {5'd0, give_valid & ~FAULT} -", 1)],
        scenario: places_are_kept_used_and_free_again,
        seen: ": full",
    },
    UnitFault {
        module: "",
        what: "software acts on a place that is not in use",
        edits: &[Edit::Text("act_at = used[31:0] &", "act_at = (used[31:0] | {32{FAULT}}) &", 1)],
        scenario: places_are_kept_used_and_free_again,
        seen: "whose transaction is committed",
    },
    UnitFault {
        module: "",
        what: "the command that is put behind one that was taken away is taken away, too",
        edits: &[Edit::Text(
            "{32{doom_valid}})) & ~came & ~gone",
            "{32{doom_valid}})) & ~came & ~(gone & {32{~FAULT}})",
            1,
        )],
        scenario: places_are_kept_used_and_free_again,
        seen: "whose command is taken away",
    },
    UnitFault {
        module: "",
        what: "an entry whose command was let go is not busy",
        edits: &[Edit::Text("busy[n] = |places[n] | running[n]", "busy[n] = |places[n] | (running[n] & ~FAULT)", 1)],
        scenario: places_are_kept_used_and_free_again,
        seen: "entries that are busy",
    },
    UnitFault {
        module: "",
        what: "what failed of an entry stays when the entry closes",
        edits: &[Edit::Text("if (close_valid) failed", "if (close_valid & ~FAULT) failed", 1)],
        scenario: places_are_kept_used_and_free_again,
        seen: "entries that were let go",
    },
];

#[test]
fn planted_faults_of_the_parked_places_are_seen() {
    each_is_seen::<ParkedPlaces>("ParkedPlaces", FAULTS);
}
