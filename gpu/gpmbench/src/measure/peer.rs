//! Another library's hierarchical log beside ours, in one run: its kernels as PTX, built elsewhere.
//!
//! | kernel | arguments | does |
//! |---|---|---|
//! | `peer_create` | PM, its bytes, 1 KiB of device memory | makes an empty log for this launch's shape |
//! | `peer_insert` | the device memory, entries a thread, seed | inserts entries of four words `seed * 0x9e3779b9 + 4 * (thread * entries + number) + word`, each durable |
//! | `peer_check` | the same, a word | adds to the word the entries of this thread that are not there, or are wrong |

use anyhow::{Result, ensure};
use nearpm_gpm::Form;
use nearpm_gpu::{Launch, Module, ObjectKind};

use super::Bench;
use super::logs::hierarchical;
use crate::report::Report;

const GROUP: &str = "Logs of 16 B entries, another library's beside ours";
/// Threads a block.
const BLOCK: u32 = 256;

/// Measures both for several numbers of threads, one after the other for each.
pub fn measure(bench: &Bench, ptx: String, report: &mut Report) -> Result<()> {
    let module = Module::new("peer", ptx);
    for threads in bench.scale.pick(vec![512u32], vec![1 << 14, 1 << 16, 1 << 18]) {
        // Their logs hold less than 4 GiB in an integer's offsets.
        let rounds = bench.scale.pick(4, (1 << 24) / threads);
        let theirs = peer(bench, &module, report, threads, rounds)?;
        let ours = hierarchical(bench, report, GROUP, threads, Form::Tail)?;
        report.value(GROUP, format!("ours over the other, {threads} threads"), ours / theirs, "x", None);
    }
    Ok(())
}

fn name_of(what: &str, threads: u32) -> String {
    format!("{what}, {threads} threads")
}

fn peer(bench: &Bench, module: &Module, report: &mut Report, threads: u32, rounds: u32) -> Result<f64> {
    let inserts = u64::from(threads) * u64::from(rounds);
    let room = 16 * inserts + 16 * u64::from(threads) + (1 << 20);
    let region = bench.region(room + (4 << 20))?;
    let place = region.address(region.add("peer", ObjectKind::Data, room, |_| Ok(()))?.offset);
    let (state, wrong) = (bench.buffer(1024)?, bench.buffer(4)?);
    let launch = |kernel, arguments: [nearpm_gpu::Argument; 3]| {
        bench.device.launch(module.kernel(kernel), &Launch::new(threads / BLOCK, BLOCK, arguments))
    };
    let times = bench.times(
        |_| Ok(launch("peer_create", [place.into(), room.into(), state.address().into()])?),
        |seed| launch("peer_insert", [state.address().into(), rounds.into(), seed.into()]),
    )?;
    wrong.fill(0)?;
    let check = [state.address().into(), rounds.into(), bench.last().into(), wrong.address().into()];
    bench.device.launch(module.kernel("peer_check"), &Launch::new(threads / BLOCK, BLOCK, check))?;
    let wrong = wrong.download_words()?[0];
    ensure!(wrong == 0, "{wrong} of {inserts} entries of the other library's log are not what was inserted");
    report.rate(
        GROUP,
        name_of("the other library's (head and tail in PM)", threads),
        inserts as f64 / 1e6,
        "M/s",
        &times,
        None,
    );
    Ok(median_rate(inserts, &times))
}

fn median_rate(inserts: u64, times: &[std::time::Duration]) -> f64 {
    inserts as f64 / 1e6 / nearpm_statistics::median_time(times).as_secs_f64()
}
