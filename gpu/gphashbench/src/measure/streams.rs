//! Streams like those of the paper's applications (figure 10), whose data are not to be had:
//! look-ups of embeddings by a recommendation model, and an iteration of PageRank.

use std::time::Duration;

use anyhow::Result;
use nearpm_gphash::{CacheOptions, Design, Op, Outcome, Table};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::Buffer;
use nearpm_statistics::median_time;
use nearpm_workloads::programs::ycsb::Zipfian;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Bench, Records, SUBJECTS, Subject, VALUE, all, insert, region};
use crate::skew::drawn;

/// Different values in each of the 26 columns of the Criteo Kaggle data, as DLRM's repository tells
/// them: 33.8 million in all.
const COLUMNS: [u32; 26] = [
    1460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5683, 8_351_593, 3194, 27, 14_992, 5_461_306,
    10, 5652, 2173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];

/// A stream of batches: how many records there are, and those that are asked for or given another
/// value.
struct Stream<'s> {
    name: &'static str,
    records: u32,
    /// The records of a batch by seed, with what is done with each.
    batch: &'s dyn Fn(usize, u64) -> (Vec<u32>, Vec<Op>),
}

/// Look-ups of embeddings of 128 bytes: a column, and a value of it by Zipf's law with theta 0.99.
pub fn dlrm(bench: &Bench, report: &mut Report) -> Result<()> {
    let columns = COLUMNS.map(|values| bench.pick(values.div_ceil(1 << 18), values));
    let starts: Vec<u32> = columns.iter().scan(0, |sum, &values| Some(std::mem::replace(sum, *sum + values))).collect();
    let zipfians: Vec<Zipfian> = columns.iter().map(|&values| Zipfian::new(values as usize)).collect();
    let one = |random: &mut ChaCha8Rng| {
        let column = random.random_range(0..columns.len());
        let rank = zipfians[column].at(random.random()) as u64;
        starts[column] + (rank.wrapping_mul(0x9e37_79b1) % u64::from(columns[column])) as u32
    };
    let batch = |count: usize, seed: u64| (drawn(count, seed, one), vec![Op::Get; count]);
    run(bench, &Stream { name: "DLRM-like", records: columns.iter().sum(), batch: &batch }, report)
}

/// An iteration over a graph like a social one (R-MAT, a = 0.57, b = c = 0.19; 150 million edges):
/// the rank of each edge's source is read, each vertex gets another rank.
pub fn pagerank(bench: &Bench, report: &mut Report) -> Result<()> {
    let bits: u32 = bench.pick(8, 22);
    let vertices = 1u32 << bits;
    let edges_of_a_vertex = 150_000_000 >> 22;
    let batch = |count: usize, seed: u64| {
        let source = |random: &mut ChaCha8Rng| {
            let number = (0..bits).fold(0u32, |number, _| number << 1 | u32::from(random.random_bool(0.24)));
            number.wrapping_mul(0x9e37_79b1) & (vertices - 1)
        };
        let mut records = drawn(count, seed, source);
        let mut ops = vec![Op::Get; count];
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut vertex = random.random_range(0..vertices);
        for at in (0..count).step_by(edges_of_a_vertex as usize + 1) {
            (records[at], ops[at]) = (vertex, Op::Update);
            vertex = (vertex + 1) % vertices;
        }
        (records, ops)
    };
    run(bench, &Stream { name: "PageRank-like", records: vertices, batch: &batch }, report)
}

fn run(bench: &Bench, stream: &Stream<'_>, report: &mut Report) -> Result<()> {
    let group = format!("{}: {} records, values of {VALUE} B", stream.name, stream.records);
    let mut medians = Vec::new();
    for subject in &SUBJECTS {
        let records = Records::new(&bench.device, VALUE);
        let layout = subject.layout(bench, u64::from(stream.records) * 10 / 8, VALUE);
        let region = region(bench, &layout)?;
        let piece: usize = bench.pick(200, 1 << 20);
        let mut table = Table::create(&region, "table", &layout, 1)?;
        table.sort_batches(piece as u32)?;
        insert(bench, &table, &records, 0, stream.records, subject.most_updates(&layout).min(piece as u32))?;
        drop(table);
        for share in [0.0, 0.2] {
            let mut table = match share > 0.0 {
                true => Table::open_cached(&region, "table", options(subject, stream, &layout, share, bench))?,
                false => Table::open(&region, "table")?,
            };
            table.sort_batches(piece as u32)?;
            let warming = if share > 0.0 { bench.pick(1, 24) } else { 1 };
            let times = batches(bench, &table, &records, stream, piece, (warming, bench.pick(1, 5)))?;
            let what = format!("{}, a cache of {:.0} %, batches of {piece}", subject.name, 100.0 * share);
            report.rate(&group, what, piece as f64 / 1e6, "M/s", &times, None);
            medians.push(median_time(&times));
        }
    }
    if let [ours, ours_cached, theirs, theirs_cached] = medians[..] {
        let best = |a: Duration, b: Duration| a.min(b).as_secs_f64();
        let gain = best(theirs, theirs_cached) / best(ours, ours_cached);
        report.value(&group, "N over P, each at its best", gain, "x", Some(">= 3"));
    }
    Ok(())
}

fn options(
    subject: &Subject,
    stream: &Stream<'_>,
    layout: &nearpm_gphash::Layout,
    share: f64,
    bench: &Bench,
) -> CacheOptions {
    let options = CacheOptions::share(layout, share);
    let sampled = bench.pick(0, options.sampled);
    match subject.design {
        Design::Tags => {
            CacheOptions { entries: ((f64::from(stream.records) * share) as u32).max(4), sampled, ..options }
        }
        Design::Levels => CacheOptions { sampled, ..options },
    }
}

/// Times of batches, a turn of the cache before each, when it has what is popular.
fn batches(
    bench: &Bench,
    table: &Table,
    records: &Records,
    stream: &Stream<'_>,
    piece: usize,
    (warming, counting): (usize, usize),
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for number in 0..warming + counting {
        let (chosen, ops) = (stream.batch)(piece, number as u64);
        let codes = Buffer::of_words(&bench.device, &ops.iter().map(|&op| op as u32).collect::<Vec<_>>())?;
        let batch = records.chosen(Op::Get, &chosen)?;
        let batch = match ops.iter().all(|&op| op == Op::Get) {
            true => batch,
            false => records.fill(batch.each(&bench.device, &ops)?, 2)?,
        };
        let room = records.room(&batch)?;
        let batch = batch.with_found(room);
        bench.device.synchronize()?;
        let mut failed = Ok(());
        let elapsed = bench.device.time(&mut || {
            failed = table.turn_cache().and_then(|()| table.run(&batch));
            Ok(())
        })?;
        failed?;
        all(stream.name, records.wrong(&batch, Some(&codes), Outcome::Done, 2, true)?, piece as u32)?;
        if number >= warming {
            times.push(elapsed.time.max(Duration::from_nanos(1)));
        }
    }
    Ok(times)
}
