//! What is known of lost stores, and which mapping entries they strike.

use nearpm_hdl::bundles::MapEntry;
use nearpm_hdl::dut::{Dut, PortValue, Value, on_both_back_ends};
use nearpm_hdl::units::address_map::AddressMap;
use nearpm_hdl::units::lost_stores::LostStores;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::geometry::{LINE_U64, MAP_ENTRIES};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn known(count: u64, first: u64, last: u64) -> Value {
    Value::from(count).with_slice(32, 34, first).with_slice(66, 34, last)
}

#[test]
fn lost_stores_are_counted_between_their_lowest_and_highest_line() {
    on_both_back_ends::<LostStores>(scenarios::lost_stores_are_counted_between_their_lowest_and_highest_line);
}

#[test]
fn a_lost_store_latches_every_entry_of_its_pool_and_no_other() {
    on_both_back_ends::<AddressMap>(scenarios::a_lost_store_latches_every_entry_of_its_pool_and_no_other);
}

/// What planted faults are seen by, too.
mod scenarios {
    use super::*;

    pub fn lost_stores_are_counted_between_their_lowest_and_highest_line(dut: &mut dyn Dut) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        dut.reset();
        let (mut count, mut first, mut last) = (0u64, 0u64, 0u64);
        for cycle in 0..3000 {
            let (refused, forget, restore) = (rng.random_bool(0.4), rng.random_bool(0.02), rng.random_bool(0.01));
            let line = rng.random_range(0..1u64 << 34) >> rng.random_range(0..34);
            // Also what stands at its highest value.
            let count_before = if rng.random_bool(0.5) {
                u64::from(u32::MAX) - rng.random_range(0..3)
            } else {
                rng.random_range(0..2)
            };
            let low = rng.random_range(0..1u64 << 33);
            let before = if count_before == 0 { (0, 0, 0) } else { (count_before, low, low + rng.random_range(0..99)) };
            dut.set("refused", refused);
            dut.set("line", line);
            dut.set("forget", forget);
            dut.set("restore_valid", restore);
            dut.set("restore", known(before.0, before.1, before.2));
            dut.cycle();
            if forget {
                (count, first, last) = (0, 0, 0);
            }
            if restore {
                (count, first, last) = before;
            }
            if refused {
                (first, last) = if count == 0 { (line, line) } else { (first.min(line), last.max(line)) };
                count = (count + 1).min(u32::MAX.into());
            }
            assert_eq!(dut.get("lost"), known(count, first, last), "cycle {cycle}");
            assert_eq!(dut.get_bool("any"), count > 0);
        }
        dut.reset();
        assert!(!dut.get_bool("any"));
    }

    pub fn a_lost_store_latches_every_entry_of_its_pool_and_no_other(dut: &mut dyn Dut) {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for round in 0..60 {
            dut.reset();
            // Pools of any size at any line, some of them shared by two threads, some entries free.
            let mut pools = [None; MAP_ENTRIES];
            for entry in 0..MAP_ENTRIES {
                let fresh = (rng.random_range(0..1u64 << 20) * LINE_U64, rng.random_range(1..1u64 << 22));
                let pool = if entry > 0 && rng.random_bool(0.3) { pools[entry - 1] } else { Some(fresh) };
                pools[entry] = pool.filter(|_| rng.random_bool(0.8));
                let Some((base, bytes)) = pools[entry] else { continue };
                let written =
                    MapEntry { flags: 1u64.into(), base: base.into(), bytes: bytes.into(), ..Default::default() };
                dut.set("write_valid", true);
                dut.set("write_index", entry as u64);
                dut.set("write_entry", written.to_value());
                dut.cycle();
            }
            dut.set("write_valid", false);
            let mut latched = 0u64;
            for _ in 0..8 {
                // Near the edges of a pool, most of the time.
                let (base, bytes) = pools[rng.random_range(0..MAP_ENTRIES)].unwrap_or((0, 1 << 30));
                let edge = [base, base + (bytes - 1) / LINE_U64 * LINE_U64][rng.random_range(0..2)] / LINE_U64;
                let line = (edge + rng.random_range(0..3)).saturating_sub(1);
                let told = rng.random_bool(0.8);
                dut.set("lost_valid", told);
                dut.set("lost_line", line);
                dut.cycle();
                let holds = |pool: &Option<(u64, u64)>| {
                    pool.is_some_and(|(base, bytes)| (base..base + bytes).contains(&(line * LINE_U64)))
                };
                for entry in (0..MAP_ENTRIES).filter(|&entry| told && holds(&pools[entry])) {
                    latched |= 1 << entry;
                }
                assert_eq!(dut.get_u64("latched"), latched, "round {round}, line {line:#x}");
            }
            dut.set("lost_valid", false);
            dut.cycle();
            assert_eq!(dut.get_u64("latched"), latched, "it stays");
            // An entry that is freed in that cycle is not.
            dut.set("lost_valid", true);
            dut.set("lost_line", pools[0].map_or(0, |(base, _)| base / LINE_U64));
            dut.cycle();
            dut.set("lost_valid", false);
            dut.set("clear", true);
            dut.cycle();
            dut.set("clear", false);
            assert_eq!(dut.get_u64("latched"), 0);
        }
    }
}

#[test]
fn planted_faults_of_the_count_are_seen() {
    const FAULTS: &[UnitFault] = &[
        UnitFault {
            module: "",
            what: "a store that is lost when the others are forgotten is forgotten, too",
            edits: &[Edit::Each("newer", "forget ? none : older", 1)],
            scenario: scenarios::lost_stores_are_counted_between_their_lowest_and_highest_line,
            seen: "cycle ",
        },
        UnitFault {
            module: "",
            what: "a reset forgets no lost store",
            edits: &[Edit::Last("known$reset", "1'b0")],
            scenario: scenarios::lost_stores_are_counted_between_their_lowest_and_highest_line,
            seen: "any",
        },
    ];
    each_is_seen::<LostStores>("LostStores", FAULTS);
}

#[test]
fn planted_faults_of_the_latch_are_seen() {
    const FAULTS: &[UnitFault] = &[
        UnitFault {
            module: "",
            what: "a pool's last line is not its own",
            edits: &[Edit::Text("offset < place[j][79:40]", "offset + (FAULT ? 40'd64 : 40'd0) < place[j][79:40]", 1)],
            scenario: scenarios::a_lost_store_latches_every_entry_of_its_pool_and_no_other,
            seen: "line 0x",
        },
        UnitFault {
            module: "",
            what: "an entry that is not in use is latched",
            edits: &[Edit::Text("holds[j] = flags[j][0] &", "holds[j] = (flags[j][0] | FAULT) &", 1)],
            scenario: scenarios::a_lost_store_latches_every_entry_of_its_pool_and_no_other,
            seen: "line 0x",
        },
        UnitFault {
            module: "",
            what: "the latch goes with the pulse",
            edits: &[Edit::Text("if (struck[i]) flags[i][1]", "if (struck[i] & ~FAULT) flags[i][1]", 1)],
            scenario: scenarios::a_lost_store_latches_every_entry_of_its_pool_and_no_other,
            seen: "line 0x",
        },
    ];
    each_is_seen::<AddressMap>("AddressMap", FAULTS);
}
