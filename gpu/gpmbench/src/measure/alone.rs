//! Figure 1: the programs on a processor alone, by its best number of threads, beside what a GPU
//! did in the same run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nearpm_gpu::{Measured, Medium};
use nearpm_statistics::median_time;

use super::Bench;
use super::assisted::THREADS;
use crate::cpu::{GraphLevels, Image, Store, Table, sums};
use crate::db::{self, value_of};
use crate::kvs::{Model, batch_of};
use crate::prefix::{input_of, sums_of};
use crate::programs::{Graph, image_of, levels_of, start_of_image};
use crate::report::Report;

const GROUP: &str = "Processor alone (figure 1)";

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let alone = Alone { bench, measured: bench.device.time(&mut || Ok(()))?.source == Measured::Device };
    alone.store(report)?;
    alone.table(report)?;
    alone.sums(report)?;
    alone.image(report)?;
    alone.graph(report)
}

struct Alone<'b> {
    bench: &'b Bench,
    /// Whether times are told: beside predictions of the interpreter those of a processor say
    /// nothing.
    measured: bool,
}

impl Alone<'_> {
    /// The best time of several numbers of threads, by what gives the times of one.
    fn best(
        &self,
        report: &mut Report,
        what: &str,
        beside: (&str, &str),
        mut times_of: impl FnMut(usize) -> Result<Vec<Duration>>,
    ) -> Result<()> {
        let mut best = Duration::MAX;
        for threads in self.bench.scale.pick(&THREADS[1..2], &THREADS[..]) {
            let times = times_of(*threads)?;
            if self.measured {
                report.time(GROUP, format!("{what}, {threads} threads"), &times, None);
            }
            best = best.min(median_time(&times));
        }
        let (group, prefix) = beside;
        let gpu = report.rows.iter().find(|row| row.group == group && row.unit == "ms" && row.name.starts_with(prefix));
        if let (Some(gpu), true) = (gpu.map(|row| row.value), self.measured) {
            let over = best.as_secs_f64() * 1e3 / gpu;
            report.value(GROUP, format!("{what}: GPM over the best"), over, "x", None);
        }
        Ok(())
    }

    fn store(&self, report: &mut Report) -> Result<()> {
        let (set_bits, count) = self.bench.scale.pick((6, 300), (25, 1 << 21));
        self.best(report, "gpKVS, a batch", ("gpKVS", "the same, a batch"), |threads| {
            let mut medium = Medium::memfd(Store::bytes(set_bits, threads, count) as u64)?;
            let mut store = Store::open(medium.bytes_mut(), set_bits, threads, count);
            let mut model = Model::new(set_bits);
            let mut times = Vec::new();
            for number in 0..4 {
                let pairs = batch_of(number, count, 1 << 40);
                let started = Instant::now();
                store.set(&pairs);
                times.push(started.elapsed());
                model.apply(&pairs);
            }
            ensure!(model.equals(store.table()), "gpKVS on a processor: the table is not what was put");
            // The first touches the memory.
            times.remove(0);
            Ok(times)
        })
    }

    fn table(&self, report: &mut Report) -> Result<()> {
        let (rows, groups) = self.bench.scale.pick((2000, 20u32), (50_000_000, 20));
        let words = (0..rows).flat_map(|row| (0..db::WORDS).map(move |column| value_of(row, column, groups)));
        let incoming: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let mut insertions = Vec::new();
        let mut model = db::Model::new(groups);
        model.insert(rows);
        self.best(report, "gpDB, an update (U)", ("gpDB", "a twentieth of the rows updated"), |threads| {
            let mut medium = Medium::memfd(Table::bytes(rows, threads, groups.into()) as u64)?;
            let mut table = Table::open(medium.bytes_mut(), rows, threads, groups.into());
            let started = Instant::now();
            table.insert(&incoming);
            insertions.push(started.elapsed());
            let (mut model, mut times) = (model.clone(), Vec::new());
            for number in 0..3 {
                let started = Instant::now();
                let found = table.update(number, number);
                times.push(started.elapsed());
                ensure!(found == model.update(number, number), "gpDB on a processor: {found} rows were updated");
            }
            ensure!(model.equals(table.len(), table.rows()), "gpDB on a processor: the table is wrong");
            Ok(times)
        })?;
        let best = insertions.into_iter().min().unwrap_or_default();
        if self.measured {
            report.time(
                GROUP,
                "gpDB, the insertion (I), the best (its memory is touched for the first time)",
                &[best],
                None,
            );
        }
        Ok(())
    }

    fn sums(&self, report: &mut Report) -> Result<()> {
        let sizes = super::native::sums_sizes(self.bench.scale);
        let (input, length) = (input_of(1, sizes.count()), (sizes.blocks * sizes.threads) as usize);
        let expected = sums_of(&input, sizes);
        self.best(report, "PS", ("Programs", "PS, the run"), |threads| {
            let mut medium = Medium::memfd(4 * sizes.count() as u64)?;
            let (mut times, mut done) = (Vec::new(), vec![0; 8 * sizes.arrays as usize]);
            for run in 1..4 {
                let started = Instant::now();
                sums(&input, length, medium.bytes_mut(), &mut done, run, threads);
                times.push(started.elapsed());
            }
            let found = medium.bytes().as_chunks::<4>().0.iter().map(|&sum| u32::from_le_bytes(sum));
            ensure!(found.eq(expected.iter().copied()), "PS on a processor: the sums are wrong");
            times.remove(0);
            Ok(times)
        })
    }

    fn image(&self, report: &mut Report) -> Result<()> {
        let (rows, columns) = self.bench.scale.pick((12u32, 16u32), (131_072, 1024));
        let steps = self.bench.scale.pick(3, 10);
        self.best(report, &format!("SRAD, {steps} iterations"), ("Programs", "SRAD"), |threads| {
            let bytes = 4 * u64::from(rows) * u64::from(columns);
            let mut medium = Medium::memfd(2 * bytes)?;
            let mut image = Image::new(start_of_image(rows, columns), columns as usize);
            let mut done = [0; 64];
            let started = Instant::now();
            for number in 1..=steps {
                let to = &mut medium.bytes_mut()[(number % 2 * bytes) as usize..][..bytes as usize];
                image.step(to, &mut done, number, threads);
            }
            let time = started.elapsed();
            // The oracle of all of it takes too long at the paper's size.
            let small = image.pixels().len() < 10_000;
            let expected = if small { image_of(rows, columns, steps) } else { Vec::new() };
            let close = image.pixels().iter().zip(expected).all(|(&p, e)| (f64::from(p) - e).abs() <= 0.001 * e);
            ensure!(
                close && image.pixels().iter().all(|pixel| pixel.is_finite()),
                "SRAD on a processor: a pixel is wrong"
            );
            Ok(vec![time])
        })
    }

    fn graph(&self, report: &mut Report) -> Result<()> {
        let (length, width) = self.bench.scale.pick((20, 6), (6000, 4000));
        let graph = Graph::roads(length, width, 1);
        let expected = levels_of(&graph);
        self.best(report, "BFS", ("Programs", "BFS"), |threads| {
            let mut medium = Medium::memfd(4 * u64::from(graph.nodes()))?;
            GraphLevels::prepare(medium.bytes_mut(), threads);
            let run = GraphLevels::new(&graph);
            let started = Instant::now();
            run.run(medium.bytes_mut(), &mut [0; 64], threads);
            let time = started.elapsed();
            let found = medium.bytes().as_chunks::<4>().0.iter().map(|&level| u32::from_le_bytes(level));
            ensure!(found.eq(expected.iter().copied()), "BFS on a processor: levels are wrong");
            Ok(vec![time])
        })
    }
}
