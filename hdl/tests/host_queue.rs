//! The host queue against a memory that answers late and out of order.

use nearpm_hdl::dut::{Dut, Value, on_both_back_ends};
use nearpm_hdl::units::host_queue::HostQueue;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::geometry::HELD_STORES;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// What a line of the queue holds.
#[derive(Clone, Debug, PartialEq)]
struct Access {
    write: bool,
    line: u64,
    data: Vec<u8>,
    strobes: u64,
    id: u64,
    order: u64,
}

/// A line between its retirement and its answer.
#[derive(Debug)]
struct Answer {
    id: u64,
    data: Vec<u8>,
    error: bool,
}

struct Bench {
    rng: ChaCha8Rng,
    /// Chance that the memory takes a request, takes data, or answers.
    pace: f64,
    /// Chance that the host takes an answer.
    host_pace: f64,
    /// Chance that the memory fails.
    failing: f64,
    lines: Vec<Option<Access>>,
    issued: u64,
    ready: u64,
    /// Lines that only a later access of the host can make ready.
    held: u64,
    order: u64,
    reads: Vec<(u64, usize)>,
    granted: VecDeque<(u64, usize)>,
    writes: Vec<(u64, usize)>,
    answers: VecDeque<Answer>,
    answered: usize,
    retired: usize,
    errors: usize,
    /// Line of the store that memory refused in the cycle before.
    lost: Option<u64>,
    /// Cycles for which a free line was not offered.
    unoffered: usize,
    /// Held loads that were answered with an error, held stores that were dropped, and what was
    /// told of both.
    refused: usize,
    dropped: usize,
    told: usize,
}

impl Bench {
    fn new(dut: &mut dyn Dut, seed: u64) -> Self {
        dut.reset();
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            pace: 0.6,
            host_pace: 0.6,
            failing: 0.0,
            lines: vec![None; 64],
            issued: 0,
            ready: 0,
            held: 0,
            order: 0,
            reads: Vec::new(),
            granted: VecDeque::new(),
            writes: Vec::new(),
            answers: VecDeque::new(),
            answered: 0,
            unoffered: 0,
            retired: 0,
            errors: 0,
            lost: None,
            refused: 0,
            dropped: 0,
            told: 0,
        }
    }

    fn access(&mut self, write: bool) -> Access {
        self.order += 1;
        let mut data = vec![0; 64];
        self.rng.fill_bytes(&mut data);
        let line = self.rng.random_range(0..1u64 << 34);
        let strobes = if write { self.rng.random() } else { 0 };
        Access { write, line, data, strobes, id: self.rng.random_range(0..64), order: self.order }
    }

    fn live(&self) -> u64 {
        (0..64).filter(|&i| self.lines[i].is_some()).map(|i| 1 << i).sum()
    }

    /// The line with this address whose request is due.
    fn find(&self, write: bool, line: u64) -> usize {
        let due = |i: &usize| self.lines[*i].as_ref().is_some_and(|a| a.write == write && a.line == line);
        let index = (0..64).find(due).expect("a request belongs to a live line");
        assert_eq!(self.issued >> index & 1, 0, "line {index} is requested once");
        assert_eq!(self.ready >> index & 1, 1, "line {index} is requested when it is ready");
        index
    }

    /// One cycle; `enter` is put into the line that is offered, if one is, and its index given.
    fn step(&mut self, dut: &mut dyn Dut, enter: Option<Access>) -> Option<usize> {
        let live = self.live();
        assert_eq!(dut.get_u64("live"), live);
        assert_eq!(dut.get_bool("empty"), live == 0);
        // A free line is offered two cycles after it became free at the latest.
        let free = dut.get_bool("free_any");
        self.unoffered = if free || live == u64::MAX { 0 } else { self.unoffered + 1 };
        assert!(self.unoffered <= 2 && !(free && live == u64::MAX));
        dut.set("ready", self.ready);
        dut.set("held", self.held);
        dut.set("ins_valid", false);
        let entered = enter.filter(|_| free).map(|a| {
            let index = dut.get_u64("free_index");
            assert_eq!(live >> index & 1, 0, "a line that is offered is free");
            dut.set("ins_valid", true);
            dut.set("ins_write", a.write);
            dut.set("ins_line", a.line);
            dut.set("ins_data", Value::from_bytes(&a.data));
            dut.set("ins_strb", a.strobes);
            dut.set("ins_id", a.id);
            dut.set("ins_order", a.order);
            (index as usize, a)
        });

        // The memory's side.
        let (pace, failing) = (self.pace, self.failing);
        for port in ["mem$rd_ready", "mem$wr_ready"] {
            dut.set(port, self.rng.random_bool(pace));
        }
        let takes_data = !self.granted.is_empty() && self.rng.random_bool(pace);
        dut.set("mem$wdata_ready", takes_data);
        let read = self.reads.choose(&mut self.rng).copied().filter(|_| self.rng.random_bool(pace));
        let error = self.rng.random_bool(failing);
        let mut data = vec![0; 64];
        self.rng.fill_bytes(&mut data);
        dut.set("mem$rdata_valid", read.is_some());
        dut.set("mem$rdata_tag", read.map_or(0, |r| r.0));
        dut.set("mem$rdata_last", read.is_some());
        dut.set("mem$rdata", Value::from_bytes(&data));
        dut.set("mem$rdata_error", error);
        let written = self.writes.choose(&mut self.rng).copied().filter(|_| self.rng.random_bool(pace));
        dut.set("mem$b_valid", written.is_some());
        dut.set("mem$b_tag", written.map_or(0, |w| w.0));
        dut.set("mem$b_error", error);
        let host_takes = self.rng.random_bool(self.host_pace);
        dut.set("rsp_ready", host_takes);
        assert_eq!(dut.get_bool("quiet"), self.outstanding() == (0, 0));

        // Answers to the host, of what the memory answered before.
        assert_eq!(dut.get_bool("rsp_valid"), !self.answers.is_empty());
        if host_takes && let Some(answer) = self.answers.pop_front() {
            assert_eq!(dut.get_u64("rsp_id"), answer.id);
            assert_eq!(dut.get_bool("rsp_error"), answer.error);
            assert_eq!(dut.get("rsp_data").to_bytes(64), answer.data);
            self.answered += 1;
        }

        // Requests and data of stores.
        if takes_data {
            let (tag, index) = self.granted.pop_front().unwrap();
            let access = self.lines[index].as_ref().expect("a store is live until it is answered");
            assert_eq!(dut.get("mem$wdata").to_bytes(64), access.data);
            assert_eq!(dut.get_u64("mem$wstrb"), access.strobes);
            self.writes.push((tag, index));
        }
        if dut.get_bool("mem$wr_valid") && dut.get_bool("mem$wr_ready") {
            assert_eq!(dut.get_u64("mem$wr_beats"), 0);
            let tag = dut.get_u64("mem$wr_tag");
            assert!(self.granted.iter().chain(&self.writes).all(|w| w.0 != tag), "tag {tag} is free");
            let index = self.find(true, dut.get_u64("mem$wr_line"));
            self.issued |= 1 << index;
            self.granted.push_back((tag, index));
        }
        if dut.get_bool("mem$rd_valid") && dut.get_bool("mem$rd_ready") {
            assert_eq!(dut.get_u64("mem$rd_beats"), 0);
            let tag = dut.get_u64("mem$rd_tag");
            assert!(self.reads.iter().all(|r| r.0 != tag), "tag {tag} is free");
            let index = self.find(false, dut.get_u64("mem$rd_line"));
            self.issued |= 1 << index;
            self.reads.push((tag, index));
            assert!(self.reads.len() + self.answers.len() <= 8, "every load has room for its data");
        }

        // Retirements.
        self.told += usize::from(dut.get_bool("ev_latched"));
        if read.is_none() && dut.get_bool("retr_valid") {
            let id = self.give_up(dut.get_u64("retr_index"), false).id;
            self.answers.push_back(Answer { id, data: vec![0; 64], error: true });
            self.refused += 1;
        } else {
            assert_eq!(dut.get_bool("retr_valid"), read.is_some());
        }
        if written.is_none() && dut.get_bool("retw_valid") {
            self.give_up(dut.get_u64("retw_index"), true);
            self.dropped += 1;
        } else {
            assert_eq!(dut.get_bool("retw_valid"), written.is_some());
        }
        let lost = self.lost.take();
        assert_eq!(dut.get_bool("lost"), lost.is_some(), "a store that memory refused is told");
        if let Some(line) = lost {
            assert_eq!(dut.get_u64("lost_line"), line);
        }
        if let Some((tag, index)) = read {
            assert_eq!(dut.get_u64("retr_index"), index as u64);
            self.reads.retain(|r| r.0 != tag);
            let id = self.retire(index).id;
            self.answers.push_back(Answer { id, data, error });
        }
        if let Some((tag, index)) = written {
            assert_eq!(dut.get_u64("retw_index"), index as u64);
            self.writes.retain(|w| w.0 != tag);
            let line = self.retire(index).line;
            self.errors += usize::from(error);
            self.lost = error.then_some(line);
        }
        dut.cycle();
        entered.map(|(index, access)| {
            self.lines[index] = Some(access);
            index
        })
    }

    /// A line retires that memory has not answered: it is held.
    fn give_up(&mut self, index: u64, write: bool) -> Access {
        assert_eq!((self.held >> index & 1, self.issued >> index & 1), (1, 0), "line {index} retires unanswered");
        let access = self.retire(index as usize);
        assert_eq!(access.write, write);
        access
    }

    fn retire(&mut self, index: usize) -> Access {
        self.ready &= !(1 << index);
        self.held &= !(1 << index);
        self.issued &= !(1 << index);
        self.retired += 1;
        self.lines[index].take().expect("a line retires once")
    }

    /// Loads and stores at the memory.
    fn outstanding(&self) -> (usize, usize) {
        (self.reads.len(), self.granted.len() + self.writes.len())
    }

    /// Enters an access of a line.
    fn enter(&mut self, dut: &mut dyn Dut, write: bool) -> usize {
        let access = self.access(write);
        (0..3).find_map(|_| self.step(dut, Some(access.clone()))).expect("a line is free")
    }

    /// Enters an access of a line as soon as one is offered.
    fn enter_when_free(&mut self, dut: &mut dyn Dut, write: bool) -> usize {
        let access = self.access(write);
        loop {
            if let Some(index) = self.step(dut, Some(access.clone())) {
                return index;
            }
        }
    }

    /// Cycles without a new access.
    fn idle(&mut self, dut: &mut dyn Dut, cycles: usize) {
        for _ in 0..cycles {
            self.step(dut, None);
        }
    }
}

#[test]
fn random_accesses_reach_memory_once_and_are_answered() {
    on_both_back_ends::<HostQueue>(scenarios::random_accesses_reach_memory_once_and_are_answered);
}

#[test]
fn eight_loads_and_eight_stores_are_outstanding_and_answers_keep_their_room() {
    on_both_back_ends::<HostQueue>(|dut| {
        let mut b = Bench::new(dut, 2);
        b.pace = 0.0;
        for i in 0..64 {
            b.enter(dut, i % 2 == 0);
        }
        assert!(!dut.get_bool("free_any"));
        b.ready = u64::MAX;
        // The memory takes requests and answers nothing.
        dut.set("ready", b.ready);
        dut.set("ins_valid", false);
        for _ in 0..40 {
            for port in ["mem$rd_ready", "mem$wr_ready"] {
                dut.set(port, true);
            }
            for (write, valid, line, tag) in [
                (true, "mem$wr_valid", "mem$wr_line", "mem$wr_tag"),
                (false, "mem$rd_valid", "mem$rd_line", "mem$rd_tag"),
            ] {
                if dut.get_bool(valid) {
                    let index = b.find(write, dut.get_u64(line));
                    b.issued |= 1 << index;
                    let request = (dut.get_u64(tag), index);
                    if write { b.granted.push_back(request) } else { b.reads.push(request) }
                }
            }
            dut.cycle();
        }
        assert_eq!(b.outstanding(), (8, 8));
        // The host takes nothing: all stores leave, and no more loads than there is room for.
        (b.pace, b.host_pace) = (1.0, 0.0);
        b.idle(dut, 120);
        assert_eq!((b.outstanding(), b.answers.len(), b.retired), ((0, 0), 8, 32 + 8));
        b.host_pace = 1.0;
        b.idle(dut, 80);
        assert_eq!((b.live(), b.answered), (0, 32));
    });
}

#[test]
fn a_lone_direction_runs_at_one_line_every_two_cycles() {
    on_both_back_ends::<HostQueue>(|dut| {
        for write in [true, false] {
            let mut b = Bench::new(dut, 3);
            (b.pace, b.host_pace) = (1.0, 1.0);
            for _ in 0..64 {
                b.enter(dut, write);
            }
            b.ready = u64::MAX;
            b.idle(dut, 2 * 64 + 6);
            assert_eq!((b.live(), b.retired), (0, 64), "stores: {write}");
        }
    });
}

#[test]
fn no_ready_line_waits_for_more_than_the_others() {
    on_both_back_ends::<HostQueue>(|dut| {
        let mut b = Bench::new(dut, 4);
        b.pace = 0.0;
        for _ in 0..64 {
            b.enter(dut, true);
        }
        b.pace = 1.0;
        b.ready = u64::MAX;
        // Whatever leaves is followed by another that is ready at once: each line still gets its
        // turn.
        let first: Vec<u64> = b.lines.iter().flatten().map(|a| a.order).collect();
        for _ in 0..280 {
            let access = b.access(true);
            if let Some(index) = b.step(dut, Some(access)) {
                b.ready |= 1 << index;
            }
        }
        let held = b.lines.iter().flatten().filter(|a| first.contains(&a.order)).count();
        assert_eq!(held, 0, "lines from the start that still wait");
    });
}

#[test]
fn held_loads_are_answered_and_held_stores_leave_room() {
    on_both_back_ends::<HostQueue>(|dut| {
        let mut b = Bench::new(dut, 8);
        for round in 1..4 {
            // More stores than are kept, and some loads behind them, while others flow.
            let mut loads = 0u64;
            for i in 0..HELD_STORES + 30 {
                let is_load = i % 5 == 4;
                let index = b.enter_when_free(dut, !is_load);
                b.held |= 1 << index;
                loads += u64::from(is_load);
                let other = b.access(i % 2 == 0);
                if let Some(index) = b.step(dut, Some(other)) {
                    b.ready |= 1 << index;
                }
            }
            let refused = b.refused;
            b.idle(dut, 400);
            let (held, stores) = (b.held.count_ones() as usize, b.live().count_ones() as usize);
            assert_eq!((held, stores), (HELD_STORES, HELD_STORES), "round {round}");
            assert_eq!(b.refused as u64, loads * round, "{refused} loads were answered while stores came");
            assert_eq!(b.told, b.refused + b.dropped);
            // A load that is held now is answered at once.
            let index = b.enter_when_free(dut, false);
            b.held |= 1 << index;
            let start = dut.cycles();
            let before = b.refused;
            while b.refused == before {
                b.step(dut, None);
                assert!(dut.cycles() - start < 10, "a held load waits");
            }
            b.refused -= 1;
            b.told -= 1;
            // What is kept is stored when it is let go.
            b.ready |= b.held;
            b.held = 0;
            b.idle(dut, 400);
            assert_eq!(b.live(), 0);
        }
        assert!(b.dropped > 0);
    });
}

#[test]
fn quiesce_stops_requests_and_quiet_waits_for_all_of_memory() {
    on_both_back_ends::<HostQueue>(|dut| {
        let mut b = Bench::new(dut, 5);
        b.pace = 0.0;
        for i in 0..32 {
            b.enter(dut, i % 2 == 0);
        }
        b.ready = b.live();
        // Loads whose answers wait for the host are not at memory; loads without an answer are.
        (b.pace, b.host_pace) = (0.5, 0.0);
        b.idle(dut, 12);
        dut.set("quiesce", true);
        b.idle(dut, 1);
        let issued = b.issued | !b.live();
        b.idle(dut, 60);
        assert!(dut.get_bool("quiet"));
        assert_eq!(b.issued | !b.live(), issued | !b.live(), "nothing was requested");
        assert_eq!(b.outstanding(), (0, 0));
        assert!(b.live() != 0 && !b.answers.is_empty(), "some are left, and the host took nothing");
        // It goes on where it stopped.
        dut.set("quiesce", false);
        (b.pace, b.host_pace) = (1.0, 1.0);
        b.idle(dut, 80);
        assert_eq!((b.live(), b.retired, b.answered), (0, 32, 16));
    });
}

#[test]
fn the_save_reads_out_every_live_store() {
    on_both_back_ends::<HostQueue>(|dut| {
        let mut b = Bench::new(dut, 6);
        b.pace = 0.0;
        for _ in 0..60 {
            let write = b.rng.random_bool(0.5);
            b.enter(dut, write);
        }
        // Some have retired, some are at memory when the power goes.
        b.ready = b.live() & b.rng.random::<u64>();
        b.pace = 0.7;
        b.idle(dut, 20);
        dut.set("quiesce", true);
        b.idle(dut, 40);
        assert!(dut.get_bool("quiet") && b.retired > 5);
        let mut stores = 0;
        for index in 0..64 {
            dut.set("save_index", index as u64);
            b.idle(dut, 1);
            let saved = b.lines[index].clone().filter(|a| a.write);
            assert_eq!(dut.get_bool("save_valid"), saved.is_some(), "line {index}");
            let Some(saved) = saved else { continue };
            assert_eq!(dut.get_u64("save_line"), saved.line);
            assert_eq!(dut.get("save_data").to_bytes(64), saved.data);
            assert_eq!(dut.get_u64("save_strb"), saved.strobes);
            assert_eq!(dut.get_u64("save_order"), saved.order);
            stores += 1;
        }
        assert!(stores > 10);
    });
}

#[test]
fn a_reset_forgets_every_line() {
    on_both_back_ends::<HostQueue>(|dut| {
        let mut b = Bench::new(dut, 7);
        b.pace = 0.0;
        for i in 0..20 {
            b.enter(dut, i % 2 == 0);
        }
        b.ready = b.live();
        b.idle(dut, 4);
        let mut b = Bench::new(dut, 8);
        b.idle(dut, 4);
        assert!(dut.get_bool("quiet") && dut.get_bool("empty"));
        b.enter(dut, true);
        b.ready = b.live();
        b.pace = 1.0;
        b.idle(dut, 8);
        assert_eq!(b.retired, 1);
    });
}

/// What planted faults are seen by, too.
mod scenarios {
    use super::*;

    pub fn random_accesses_reach_memory_once_and_are_answered(dut: &mut dyn Dut) {
        let mut b = Bench::new(dut, 1);
        b.failing = 0.1;
        let mut entered = 0;
        for cycle in 0..6000 {
            // Full and empty in turn; dependencies go away at random.
            if cycle % 500 == 0 {
                (b.pace, b.host_pace) = (b.rng.random_range(0.2..1.0), b.rng.random_range(0.2..1.0));
            }
            let access = (cycle < 5000 && b.rng.random_bool(if cycle % 1000 < 500 { 0.9 } else { 0.1 }))
                .then(|| b.rng.random_bool(0.5))
                .map(|write| b.access(write));
            entered += usize::from(b.step(dut, access).is_some());
            let frees = b.rng.random::<u64>() & b.rng.random::<u64>() & b.rng.random::<u64>();
            b.ready |= b.live() & frees;
        }
        assert_eq!(b.live(), 0);
        assert_eq!(b.retired, entered);
        assert!(entered > 1000 && b.errors > 10, "{entered} accesses, {} errors", b.errors);
        assert!(b.answers.is_empty() && b.answered > 500);
    }
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a store that memory refuses is told nobody",
        edits: &[Edit::Last("lost", "1'b0")],
        scenario: scenarios::random_accesses_reach_memory_once_and_are_answered,
        seen: "a store that memory refused is told",
    },
    UnitFault {
        module: "",
        what: "the line of a lost store is that of another one",
        edits: &[Edit::Last("lost_line", "lost_line ^ 34'd1")],
        scenario: scenarios::random_accesses_reach_memory_once_and_are_answered,
        seen: "left: ",
    },
    UnitFault {
        module: "",
        what: "an error of a load is not passed on",
        edits: &[Edit::Last("rsp_error", "1'b0")],
        scenario: scenarios::random_accesses_reach_memory_once_and_are_answered,
        seen: "left: ",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<HostQueue>("HostQueue", FAULTS);
}
