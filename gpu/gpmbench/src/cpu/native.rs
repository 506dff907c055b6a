//! PS, SRAD and BFS on a processor: what is done is noted behind what was stored.

use std::sync::atomic::{AtomicU32, Ordering};

use nearpm_gpu::{persist, persist_with_threads};

use super::{part_of, store_word};
use crate::programs::Graph;

/// Inclusive sums of each array of `length` numbers into memory that persists; a word an array in
/// `done` becomes `run` behind its sums. Arrays that are done are left.
pub fn sums(input: &[u32], length: usize, to: &mut [u8], done: &mut [u8], run: u64, threads: usize) {
    let arrays = input.len() / length;
    let share = part_of(arrays, threads);
    std::thread::scope(|scope| {
        let parts = input.chunks(share * length).zip(to.chunks_mut(share * length * 4)).zip(done.chunks_mut(share * 8));
        for ((input, to), done) in parts {
            scope.spawn(move || {
                let arrays = input.chunks(length).zip(to.chunks_mut(4 * length)).zip(done.chunks_mut(8));
                for ((input, to), done) in arrays {
                    if super::word(done, 0) == run {
                        continue;
                    }
                    let mut sum = 0u32;
                    for (number, place) in input.iter().zip(to.as_chunks_mut::<4>().0) {
                        sum = sum.wrapping_add(*number);
                        *place = sum.to_le_bytes();
                    }
                    persist(to);
                    store_word(done, run);
                }
            });
        }
    });
}

/// SRAD: an image that is made less noisy step by step, each step persisted.
pub struct Image {
    columns: usize,
    now: Vec<f32>,
    coefficients: Vec<f32>,
}

/// As `srad.rs`.
const LAMBDA: f32 = 0.5;

impl Image {
    /// An image by rows.
    pub fn new(pixels: Vec<f32>, columns: usize) -> Image {
        let coefficients = vec![0.0; pixels.len()];
        Image { columns, now: pixels, coefficients }
    }

    /// Differences to the four neighbours: north, south, west, east.
    fn differences(&self, i: usize) -> [f32; 4] {
        let (column, here) = (i % self.columns, self.now[i]);
        let to = |inside: bool, at: usize| if inside { self.now[at] - here } else { 0.0 };
        let south = i + self.columns;
        [
            to(i >= self.columns, i.wrapping_sub(self.columns)),
            to(south < self.now.len(), south),
            to(column > 0, i.wrapping_sub(1)),
            to(column + 1 < self.columns, i + 1),
        ]
    }

    fn coefficient(&self, i: usize, scale: f32) -> f32 {
        let (all, here) = (self.differences(i), self.now[i]);
        let gradient = all.iter().map(|difference| difference * difference).sum::<f32>() / (here * here);
        let laplace = all.iter().sum::<f32>() / here;
        let below = 1.0 + 0.25 * laplace;
        let q = (0.5 * gradient - 0.0625 * laplace * laplace) / (below * below);
        (1.0 / (1.0 + (q - scale) / (scale * (1.0 + scale)))).clamp(0.0, 1.0)
    }

    fn next(&self, i: usize) -> f32 {
        let ([north, south, west, east], c) = (self.differences(i), self.coefficients[i]);
        let c_south = self.coefficients.get(i + self.columns).copied().unwrap_or(c);
        let c_east = if i % self.columns + 1 < self.columns { self.coefficients[i + 1] } else { c };
        self.now[i] + 0.25 * LAMBDA * (c * north + c_south * south + c * west + c_east * east)
    }

    /// A step into `to`, persisted; `done` has the number of steps behind it.
    pub fn step(&mut self, to: &mut [u8], done: &mut [u8], number: u64, threads: usize) {
        self.advance(threads);
        let share = part_of(self.now.len(), threads);
        std::thread::scope(|scope| {
            for (to, from) in to.chunks_mut(4 * share).zip(self.now.chunks(share)) {
                scope.spawn(move || {
                    to.as_chunks_mut::<4>().0.iter_mut().zip(from).for_each(|(to, from)| *to = from.to_le_bytes());
                    persist(to);
                });
            }
        });
        store_word(done, number);
    }

    /// A step that is stored nowhere.
    pub fn advance(&mut self, threads: usize) {
        let share = part_of(self.now.len(), threads);
        let count = self.now.len() as f64;
        let of_parts = |value: fn(f32) -> f64| -> f64 {
            std::thread::scope(|scope| {
                let sum = |part: &[f32]| part.iter().map(|&pixel| value(pixel)).sum::<f64>();
                let workers: Vec<_> = self.now.chunks(share).map(|part| scope.spawn(move || sum(part))).collect();
                workers.into_iter().map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).sum()
            })
        };
        let mean = of_parts(f64::from) / count;
        let squares = of_parts(|pixel| f64::from(pixel) * f64::from(pixel)) / count;
        let scale = ((squares - mean * mean) / (mean * mean)) as f32;
        let mut coefficients = std::mem::take(&mut self.coefficients);
        fill_parts(&mut coefficients, share, |i| self.coefficient(i, scale));
        self.coefficients = coefficients;
        let mut next = vec![0.0; self.now.len()];
        fill_parts(&mut next, share, |i| self.next(i));
        self.now = next;
    }

    /// The pixels.
    pub fn pixels(&self) -> &[f32] {
        &self.now
    }
}

/// Gives each element the value of its number, by a thread a part.
fn fill_parts(to: &mut [f32], share: usize, value: impl Fn(usize) -> f32 + Sync) {
    std::thread::scope(|scope| {
        for (number, part) in to.chunks_mut(share).enumerate() {
            let value = &value;
            scope.spawn(move || part.iter_mut().zip(number * share..).for_each(|(to, i)| *to = value(i)));
        }
    });
}

/// BFS: levels from node 0, each level persisted.
pub struct GraphLevels<'g> {
    graph: &'g Graph,
    levels: Vec<AtomicU32>,
}

/// Nodes of a level from which on several threads are worth it.
const SEVERAL: usize = 4096;

impl<'g> GraphLevels<'g> {
    /// Nothing is known but that node 0 has level 0.
    pub fn new(graph: &'g Graph) -> GraphLevels<'g> {
        let level = |node: u32| AtomicU32::new(if node == 0 { 0 } else { u32::MAX });
        GraphLevels { graph, levels: (0..graph.nodes()).map(level).collect() }
    }

    /// Neighbours of some nodes that had no level get one; gives them.
    fn found_by(&self, nodes: &[u32], level: u32) -> Vec<u32> {
        let edges =
            |&node: &u32| self.graph.starts[node as usize] as usize..self.graph.starts[node as usize + 1] as usize;
        let targets = nodes.iter().flat_map(|node| &self.graph.targets[edges(node)]).copied();
        let claims = |&target: &u32| {
            let place = &self.levels[target as usize];
            place.compare_exchange(u32::MAX, level, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        targets.filter(claims).collect()
    }

    /// Goes through all levels; `to` has the level of each node, `done` the last whole one behind
    /// it. Gives the last level that has nodes.
    pub fn run(&self, to: &mut [u8], done: &mut [u8], threads: usize) -> u32 {
        let (mut frontier, mut level) = (vec![0], 0);
        while !frontier.is_empty() {
            let share = if frontier.len() < SEVERAL { frontier.len() } else { part_of(frontier.len(), threads) };
            let parts: Vec<Vec<u32>> = match frontier.len() <= share {
                true => vec![self.found_by(&frontier, level + 1)],
                false => std::thread::scope(|scope| {
                    let of = |part| scope.spawn(move || self.found_by(part, level + 1));
                    let workers: Vec<_> = frontier.chunks(share).map(of).collect();
                    workers
                        .into_iter()
                        .map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
                        .collect()
                }),
            };
            frontier = parts.concat();
            for &node in &frontier {
                to[4 * node as usize..][..4].copy_from_slice(&(level + 1).to_le_bytes());
            }
            // Nodes of a level lie scattered: each one's line is written back, all of them are
            // waited for at once.
            nearpm_gpu::persist_scattered(to, frontier.iter().map(|&node| 4 * node as usize));
            store_word(done, u64::from(level));
            level += 1;
        }
        level.saturating_sub(1)
    }

    /// The levels.
    pub fn levels(&self) -> Vec<u32> {
        self.levels.iter().map(|level| level.load(Ordering::Relaxed)).collect()
    }

    /// Memory for levels before a run: node 0 has its own.
    pub fn prepare(to: &mut [u8], threads: usize) {
        to.fill(0xff);
        to[..4].fill(0);
        persist_with_threads(to, threads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::{Sizes, input_of, sums_of};
    use crate::programs::{image_of, levels_of, start_of_image};

    #[test]
    fn sums_are_those_of_the_oracle_and_are_not_made_twice() {
        let sizes = Sizes { arrays: 5, blocks: 2, threads: 32 };
        let input = input_of(1, sizes.count());
        for threads in [1, 2, 7] {
            let (mut to, mut done) = (vec![0; 4 * input.len()], vec![0; 8 * 5]);
            sums(&input, 64, &mut to, &mut done, 1, threads);
            let expected: Vec<u8> = sums_of(&input, sizes).into_iter().flat_map(u32::to_le_bytes).collect();
            assert_eq!(to, expected);
            to[..256].fill(9);
            sums(&input, 64, &mut to, &mut done, 1, threads);
            assert!(to[..256].iter().all(|&byte| byte == 9) && to[256..] == expected[256..]);
        }
    }

    #[test]
    fn images_are_those_of_the_oracle() {
        for threads in [1, 3] {
            let mut image = Image::new(start_of_image(10, 16), 16);
            let (mut to, mut done) = (vec![0; 640], [0; 8]);
            (1..=4).for_each(|number| image.step(&mut to, &mut done, number, threads));
            for (&found, expected) in image.pixels().iter().zip(image_of(10, 16, 4)) {
                assert!((f64::from(found) - expected).abs() <= 0.001 * expected, "{found} for {expected}");
            }
            assert_eq!(done, 4u64.to_le_bytes());
        }
    }

    #[test]
    fn levels_are_those_of_the_oracle() {
        let graph = Graph::roads(30, 8, 1);
        for threads in [1, 3] {
            let mut to = vec![0; 4 * graph.nodes() as usize];
            GraphLevels::prepare(&mut to, threads);
            let run = GraphLevels::new(&graph);
            run.run(&mut to, &mut [0; 8], threads);
            let expected = levels_of(&graph);
            assert_eq!(run.levels(), expected);
            assert_eq!(to, expected.iter().flat_map(|level| level.to_le_bytes()).collect::<Vec<_>>());
        }
    }
}
