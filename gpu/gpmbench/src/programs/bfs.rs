//! BFS: levels of the nodes of a graph like a map of roads.

use anyhow::{Result, ensure};
use nearpm_gpu::{Buffer, Launch, Module, Object, ObjectKind, PmRegion};

use super::THREADS;
use crate::kernels::bfs;

const UNSEEN: u32 = u32::MAX;
/// Blocks that search at most: every GPU runs so many at the same time, and a level of a map of
/// roads has a node for each of their threads.
const MOST_BLOCKS: u32 = 16;
/// Nodes of a graph for each block.
const NODES_A_BLOCK: u32 = 1 << 10;

/// A graph by rows: the edges of node n are `targets[starts[n]..starts[n + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Where each node's edges start, and where the last one's end.
    pub starts: Vec<u32>,
    /// Their other ends.
    pub targets: Vec<u32>,
}

impl Graph {
    /// A graph that looks like a map of roads: a long strip of a grid, of which many edges are
    /// missing, so that it is planar, has a degree of about 2.4, and a breadth-first search goes
    /// through at least `length` levels. It depends on nothing but its arguments.
    pub fn roads(length: u32, width: u32, seed: u32) -> Graph {
        let nodes = length * width;
        let number = |x: u32, y: u32| x * width + y;
        let is_there = |place: u32, share: u32| crate::pattern::pattern(place, seed) % 100 < share;
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for x in 0..length {
            for y in 0..width {
                // One street goes through all of it, so that the graph is whole.
                if x + 1 < length && (y == 0 || is_there(2 * number(x, y), 20)) {
                    edges.push((number(x, y), number(x + 1, y)));
                }
                if y + 1 < width {
                    edges.push((number(x, y), number(x, y + 1)));
                }
            }
        }
        let both = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        let mut starts = vec![0; nodes as usize + 1];
        both.clone().for_each(|(from, _)| starts[from as usize + 1] += 1);
        (0..nodes as usize).for_each(|node| starts[node + 1] += starts[node]);
        let (mut next, mut targets) = (starts.clone(), vec![0; 2 * edges.len()]);
        for (from, to) in both {
            targets[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Graph { starts, targets }
    }

    /// Nodes.
    pub fn nodes(&self) -> u32 {
        self.starts.len() as u32 - 1
    }
}

/// The program: levels from node 0.
pub struct Bfs {
    region: PmRegion,
    nodes: u32,
    persistent: Object,
    /// Sealed: the level whose nodes are all known, and whether there is a next one.
    done: Object,
    starts: Buffer,
    targets: Buffer,
    levels: Buffer,
    frontiers: [Buffer; 2],
    /// `bfs_counters`: nodes of a level by its number modulo 3, and blocks that came to a meeting.
    counters: Buffer,
    in_frontier: u32,
    blocks: u32,
    kernels: Module,
}

impl Bfs {
    /// Bytes of a region for it.
    pub fn region_bytes(graph: &Graph) -> u64 {
        (4 * u64::from(graph.nodes()) + (64 << 10)).next_multiple_of(4096)
    }

    /// Makes it in a region, or goes on with the one that is there.
    ///
    /// # Errors
    /// No room or memory; one of another size is there.
    pub fn open(region: &PmRegion, graph: &Graph) -> Result<Bfs> {
        Bfs::open_with(region, graph, bfs())
    }

    /// The same, with these kernels.
    ///
    /// # Errors
    /// As for [`Bfs::open`].
    pub fn open_with(region: &PmRegion, graph: &Graph, kernels: &Module) -> Result<Bfs> {
        let nodes = graph.nodes();
        let bytes = 4 * u64::from(nodes);
        if region.objects().iter().all(|object| object.name != "done") {
            if region.objects().is_empty() {
                let mut levels = vec![0xff; bytes as usize];
                levels[..4].fill(0);
                region.add("levels", ObjectKind::Data, bytes, |object| region.write(object.offset, &levels))?;
            }
            region.add("done", ObjectKind::Data, 8, |object| region.write_sealed_word(object.offset, 0))?;
        }
        let persistent = region.find("levels", ObjectKind::Data)?;
        ensure!(persistent.bytes == bytes, "the region has levels of {} nodes, not {nodes}", persistent.bytes / 4);
        let device = region.device();
        let buffer = || Buffer::new(device, bytes);
        let mut program = Bfs {
            region: region.clone(),
            nodes,
            persistent,
            done: region.find("done", ObjectKind::Data)?,
            starts: Buffer::of_words(device, &graph.starts)?,
            targets: Buffer::of_words(device, &graph.targets)?,
            levels: buffer()?,
            frontiers: [buffer()?, buffer()?],
            counters: Buffer::zeroed(device, 16)?,
            in_frontier: 0,
            blocks: (nodes / NODES_A_BLOCK).clamp(1, MOST_BLOCKS),
            kernels: kernels.clone(),
        };
        let level = program.level()?;
        let arguments = [
            region.address(program.persistent.offset).into(),
            nodes.into(),
            (level as u32).into(),
            program.levels.address().into(),
            program.frontiers[level as usize % 2].address().into(),
            program.counters.address().into(),
        ];
        device.launch(program.kernels.kernel("bfs_resume"), &Launch::over(nodes.into(), THREADS, arguments))?;
        program.in_frontier = program.counters.download_words()?[0];
        Ok(program)
    }

    /// The last level whose nodes are all known.
    ///
    /// # Errors
    /// The word is damaged.
    pub fn level(&self) -> Result<u64> {
        Ok(self.region.read_sealed_word(self.done.offset)?)
    }

    /// Searches by so many blocks, which the device runs at the same time.
    #[must_use]
    pub fn with_blocks(mut self, blocks: u32) -> Bfs {
        self.blocks = blocks.max(1);
        self
    }

    /// Goes on to the end. Gives the last level that has nodes.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn run(&mut self) -> Result<u64> {
        let level = self.level()?;
        if self.in_frontier > 0 {
            let mut counters = [0; 4];
            counters[level as usize % 3] = self.in_frontier;
            self.counters.upload(&counters.map(u32::to_le_bytes).concat())?;
            let [even, odd] = &self.frontiers;
            let arguments = [
                self.starts.address().into(),
                self.targets.address().into(),
                (level as u32).into(),
                self.levels.address().into(),
                self.region.address(self.persistent.offset).into(),
                self.region.address(self.done.offset).into(),
                even.address().into(),
                odd.address().into(),
                self.counters.address().into(),
            ];
            let device = self.region.device();
            device.launch(self.kernels.kernel("bfs_search"), &Launch::new(self.blocks, THREADS, arguments))?;
            device.synchronize()?;
            self.in_frontier = 0;
        }
        Ok(self.level()?.saturating_sub(1))
    }

    /// The levels, as PM has them; [`u32::MAX`] for nodes that are not reached.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn levels(&self) -> Result<Vec<u32>> {
        let bytes = self.region.read_vec(self.persistent.offset, 4 * self.nodes as usize)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|&level| u32::from_le_bytes(level)).collect())
    }
}

/// The levels as a processor has them: the oracle.
pub fn levels_of(graph: &Graph) -> Vec<u32> {
    let mut levels = vec![UNSEEN; graph.nodes() as usize];
    levels[0] = 0;
    let mut queue = std::collections::VecDeque::from([0]);
    while let Some(node) = queue.pop_front() {
        let edges = graph.starts[node as usize] as usize..graph.starts[node as usize + 1] as usize;
        for &target in &graph.targets[edges] {
            if levels[target as usize] == UNSEEN {
                levels[target as usize] = levels[node as usize] + 1;
                queue.push_back(target);
            }
        }
    }
    levels
}
