//! Long runs of the model: all commands retire, and the speed on this machine is printed.

use std::time::Instant;

use crate::support::*;
use nearpm_interface::command::Command;
use nearpm_interface::geometry::{LINE_U64, POOLS_BASE};
use nearpm_interface::registers::state;
use nearpm_sim::core::{Access, CardCore};
use nearpm_sim::model::{Config, Kind, ModelCard};

const COUNT: u64 = 200_000;

fn rig(memory: Kind) -> Rig {
    let config = Config { memory, ..Config::default() };
    let mut rig = Rig::of(ModelCard::new(config, provisioned()));
    rig.until(state::OPEN);
    rig.rings();
    rig.map(POOL, 0, POOLS_BASE);
    rig
}

fn report(what: &str, memory: Kind, start: Instant, cycles: u64) {
    let rate = COUNT as f64 / start.elapsed().as_secs_f64();
    let each = cycles as f64 / COUNT as f64;
    println!("{what}, {memory:?}: {:.2} M/s of wall-clock, {each:.1} cycles each", rate / 1e6);
}

#[test]
fn long_runs_retire_every_command() {
    for memory in [Kind::Transaction, Kind::Cycle] {
        // Undo logs of 64 bytes without waiting.
        let mut r = rig(memory);
        let start = (Instant::now(), r.card.cycle());
        for i in 0..COUNT {
            let source = i % 4096 * LINE_U64;
            r.post(Command { flags: 0, ..undo(5, source, 64, SLOTS + i % 1024 * 128) });
            if i % 32 == 31 {
                r.status(0);
                r.collect();
                r.records.clear();
            }
        }
        r.settle();
        assert_eq!(r.status(0).retired as u64, COUNT + 1, "all of them, and the map");
        report("undo logs of 64 B, posted", memory, start.0, r.card.cycle() - start.1);

        // Each waited for.
        let mut r = rig(memory);
        let start = (Instant::now(), r.card.cycle());
        for i in 0..COUNT {
            let source = i % 4096 * LINE_U64;
            r.post(undo(5, source, 64, SLOTS + i % 1024 * 128));
            r.status(0);
            let next = r.card.cycle() + 300;
            r.card.advance_to(next);
            r.collect();
            r.records.clear();
        }
        assert_eq!(r.status(0).retired as u64, COUNT + 1);
        report("undo logs of 64 B, one in 1 us", memory, start.0, r.card.cycle() - start.1);

        let mut r = rig(memory);
        let start = (Instant::now(), r.card.cycle());
        for i in 0..COUNT {
            let address = POOLS_BASE + i * 7919 % 4096 * LINE_U64;
            r.card.submit(Access::PmWrite { address, data: [i as u8; 64], strobes: u64::MAX });
            if i % 32 == 31 {
                r.load(i % 4096 * LINE_U64);
            }
        }
        r.settle();
        report("host stores", memory, start.0, r.card.cycle() - start.1);
    }
}
