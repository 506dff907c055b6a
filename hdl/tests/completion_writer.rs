//! Completion records as the host finds them.

use nearpm_hdl::dut::{Dut, Value, on_both_back_ends};
use nearpm_hdl::units::completion_writer::CompletionWriter;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::completion::Completion;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

/// Host memory behind the write port, with stalls.
struct Host {
    rng: ChaCha8Rng,
    bytes: BTreeMap<u64, u8>,
    addresses: VecDeque<u64>,
    data: VecDeque<(Vec<u8>, u64)>,
    beats: usize,
}

impl Host {
    fn new() -> Self {
        let rng = ChaCha8Rng::seed_from_u64(1);
        Self { rng, bytes: BTreeMap::new(), addresses: VecDeque::new(), data: VecDeque::new(), beats: 0 }
    }

    fn step(&mut self, dut: &mut dyn Dut) {
        dut.set("axi$awready", self.rng.random_bool(0.6));
        dut.set("axi$wready", self.rng.random_bool(0.6));
        if dut.get_bool("axi$awvalid") && dut.get_bool("axi$awready") {
            assert_eq!(dut.get_u64("axi$awsize"), 6);
            assert_eq!(dut.get_u64("axi$awlen"), 0);
            let address = dut.get_u64("axi$awaddr");
            assert_eq!(address % 64, 0);
            self.addresses.push_back(address);
        }
        if dut.get_bool("axi$wvalid") && dut.get_bool("axi$wready") {
            assert!(dut.get_bool("axi$wlast"));
            self.data.push_back((dut.get("axi$wdata").to_bytes(64), dut.get_u64("axi$wstrb")));
        }
        dut.cycle();
        if let (Some(address), true) = (self.addresses.front(), !self.data.is_empty()) {
            let (data, strobes) = self.data.pop_front().unwrap();
            assert_eq!(strobes.count_ones(), 16);
            for byte in (0..64).filter(|b| strobes >> b & 1 == 1) {
                self.bytes.insert(address + byte as u64, data[byte]);
            }
            self.addresses.pop_front();
            self.beats += 1;
        }
    }

    fn record(&self, base: u64, index: u64) -> Option<Completion> {
        let bytes: Option<Vec<u8>> = (0..16).map(|i| self.bytes.get(&(base + 16 * index + i)).copied()).collect();
        Some(Completion::from_bytes(&bytes?.try_into().unwrap()))
    }
}

fn put(dut: &mut dyn Dut, host: &mut Host, record: (u32, u8, u8, u64)) {
    let (tag, status, page, order) = record;
    let value = Value::from(u64::from(tag))
        .with_slice(32, 8, u64::from(status))
        .with_slice(40, 2, u64::from(page))
        .with_slice(42, 64, order);
    dut.set("record", value);
    dut.set("record_valid", true);
    while !dut.get_bool("record_ready") {
        host.step(dut);
    }
    host.step(dut);
    dut.set("record_valid", false);
}

fn start(dut: &mut dyn Dut, page: usize, base: u64, size: u64) {
    dut.set(&format!("ring_base${page}"), base);
    dut.set(&format!("ring_size${page}"), size);
    dut.set(&format!("ring_start${page}"), true);
    dut.cycle();
    dut.set(&format!("ring_start${page}"), false);
}

fn rings_are_filled(dut: &mut dyn Dut) {
    let mut host = Host::new();
    dut.reset();
    start(dut, 1, 0x12_3456_7840, 3);
    start(dut, 3, 0x8000, 0);
    for n in 0..100u64 {
        // Page 2 has no ring: its records vanish.
        for page in [1, 2, 3] {
            put(dut, &mut host, (n as u32, 0x80 + page, page, 5000 + n));
        }
    }
    for _ in 0..300 * 4 {
        host.step(dut);
    }
    assert_eq!(host.beats, 200, "records written");
    for index in 0..8u64 {
        let n = if index < 4 { 96 + index } else { 88 + index };
        let wanted = Completion { tag: n as u32, status: 0x81, page: 1, lap: (n / 8 + 1) as u16, order: 5000 + n };
        assert_eq!(host.record(0x12_3456_7840, index), Some(wanted), "record {index} of the ring");
    }
    assert_eq!(host.record(0x12_3456_7840, 8), None, "behind the ring");
    assert_eq!(host.record(0x8000, 0).unwrap().lap, 100, "the lap");
    // A ring that is written anew starts over; a cleared one is off.
    start(dut, 1, 0x4000, 2);
    put(dut, &mut host, (9, 0, 1, 1));
    (0..20).for_each(|_| host.step(dut));
    assert_eq!(host.record(0x4000, 0).unwrap().lap, 1);
    dut.set("clear", true);
    dut.cycle();
    dut.set("clear", false);
    put(dut, &mut host, (9, 0, 1, 1));
    (0..20).for_each(|_| host.step(dut));
    assert_eq!(host.beats, 201);
}

#[test]
fn records_fill_the_ring_of_their_page_lap_after_lap() {
    on_both_back_ends::<CompletionWriter>(rings_are_filled);
}

fn host_memory_refuses(dut: &mut dyn Dut) {
    dut.reset();
    // Responses of AXI: OKAY, EXOKAY, SLVERR, DECERR.
    for (response, lost) in [(0u64, false), (1, false), (2, true), (3, true)] {
        for valid in [false, true] {
            dut.set("axi$bvalid", valid);
            dut.set("axi$bresp", response);
            assert_eq!(dut.get_bool("ev_lost"), valid && lost, "response {response}");
            dut.cycle();
        }
    }
}

#[test]
fn a_record_that_host_memory_refuses_is_told() {
    on_both_back_ends::<CompletionWriter>(host_memory_refuses);
}

fn the_host_is_dead(dut: &mut dyn Dut) {
    dut.reset();
    start(dut, 0, 0, 5);
    dut.set("record_valid", true);
    let mut taken = 0;
    for _ in 0..100 {
        taken += u32::from(dut.get_bool("record_ready"));
        dut.cycle();
    }
    assert!((64..=66).contains(&taken), "{taken}");
    dut.set("quiesce", true);
    assert!(dut.get_bool("record_ready"));
}

#[test]
fn a_dead_host_does_not_stop_a_save() {
    on_both_back_ends::<CompletionWriter>(the_host_is_dead);
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a ring has no end",
        edits: &[Edit::Each("wrap", "1'b0", 1)],
        scenario: rings_are_filled,
        seen: "of the ring",
    },
    UnitFault {
        module: "",
        what: "the lap does not rise",
        edits: &[Edit::Text("lap$1$d = lap_now$q + one16;", "lap$1$d = FAULT ? lap_now$q : lap_now$q + one16;", 1)],
        scenario: rings_are_filled,
        seen: "of the ring",
    },
    UnitFault {
        module: "",
        what: "a record is written over its neighbours",
        edits: &[Edit::Last("axi$wstrb", "~64'd0")],
        scenario: rings_are_filled,
        seen: "left: 64",
    },
    UnitFault {
        module: "",
        what: "a record of a page without a ring is written",
        edits: &[Edit::Text("if (enabled_now$q) begin", "if (enabled_now$q | FAULT) begin", 1)],
        scenario: rings_are_filled,
        seen: "records written",
    },
    UnitFault {
        module: "",
        what: "data that is taken before its address is sent again",
        edits: &[Edit::Last("axi$wvalid", "phase$q == Phase$Send")],
        scenario: rings_are_filled,
        seen: "of the ring",
    },
    UnitFault {
        module: "",
        what: "a record that host memory refuses is told nobody",
        edits: &[Edit::Last("ev_lost", "1'b0")],
        scenario: host_memory_refuses,
        seen: "response 2",
    },
    UnitFault {
        module: "",
        what: "a dead host stops a save",
        edits: &[Edit::Last("record_ready", "~queue$full")],
        scenario: the_host_is_dead,
        seen: "record_ready",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<CompletionWriter>("CompletionWriter", FAULTS);
}
