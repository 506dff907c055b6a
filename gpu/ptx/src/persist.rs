//! What of persistent memory has persisted, and who has observed what.
//!
//! Each store to persistent memory is split into one [`Store`] for each aligned word of 8 bytes. It
//! is visible at once and pends until a thread that did or observed it executes a fence of system
//! scope. What a thread has observed is a graph: a [`Node`] holds stores, and names the nodes that
//! were observed with it. A thread adds to a node of its own; when it releases, that node is closed
//! and others may name it. A system fence walks the graph from the thread's node and persists what
//! it finds; a node that was walked is empty ever after, so the work is linear in the stores.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::code::{Order, Scope};
use crate::fingerprint::Fingerprint;
use crate::word::{Store, Word};

/// A hasher for addresses: one multiplication.
#[derive(Clone, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

pub(crate) type AddressMap<T> = HashMap<u64, T, BuildHasherDefault<AddressHasher>>;

#[derive(Clone, Debug, Default)]
struct Node {
    /// Word (address / 8) and sequence of each store.
    stores: Vec<(u64, u64)>,
    before: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Released {
    node: u32,
    scope: Scope,
    block: u64,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    /// Its own node; 0 until it has one.
    node: u32,
    /// What its last fence of each scope covered: what a strong store hands on.
    fenced: Vec<(u32, Scope)>,
    /// What strong loads have read, to be observed at the next fence.
    read: Vec<Released>,
}

/// How something was observed (scope, block), and the stores that it leads to.
type Observed = ((u64, u64), Vec<(u64, u64)>);

/// In an order of their own: that in which they were observed does not matter.
fn take_observed(by: u64, mut observed: Vec<Observed>, all: &mut Fingerprint) {
    observed.retain(|(_, stores)| !stores.is_empty());
    observed.sort_unstable();
    observed.dedup();
    if observed.is_empty() {
        return;
    }
    all.words([by, observed.len() as u64].into_iter());
    for ((how, block), stores) in observed {
        all.words([how, block, stores.len() as u64].into_iter());
        stores.into_iter().for_each(|(word, place)| all.words([word, place].into_iter()));
    }
}

/// Where a strong access synchronises: global memory, or one block's shared memory.
pub(crate) type Place = (u64, u64);

/// The state of what persists, of one launch.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    threads: Vec<Thread>,
    threads_a_block: u64,
    nodes: Vec<Node>,
    pub words: AddressMap<Word>,
    released: HashMap<Place, Vec<Released>, BuildHasherDefault<AddressHasher>>,
    sequence: u64,
    walk: Vec<u32>,
    /// Room for the stores of the node that is walked.
    walked: Vec<(u64, u64)>,
    /// Nodes after the last collection: the next is due at twice as many.
    live_nodes: usize,
}

impl Tracker {
    pub fn new(threads: u64, threads_a_block: u64) -> Self {
        Self {
            threads: vec![Thread::default(); threads as usize],
            threads_a_block,
            nodes: vec![Node::default()],
            words: AddressMap::default(),
            released: HashMap::default(),
            sequence: 0,
            walk: Vec::new(),
            walked: Vec::new(),
            live_nodes: 1 << 16,
        }
    }

    fn block(&self, thread: u64) -> u64 {
        thread / self.threads_a_block
    }

    fn node(&mut self, thread: u64) -> &mut Node {
        let slot = &mut self.threads[thread as usize].node;
        if *slot == 0 {
            *slot = self.nodes.len() as u32;
            self.nodes.push(Node::default());
        }
        &mut self.nodes[*slot as usize]
    }

    /// A store of `bytes` of one word by `thread`; `before` is the word's visible content until
    /// now.
    pub fn store(&mut self, word: u64, before: u64, mut store: Store) {
        self.sequence += 1;
        store.sequence = self.sequence;
        let entry = self.words.entry(word).and_modify(|word| word.later.push(store));
        entry.or_insert_with(|| Word { durable: before, oldest: store, later: Vec::new() });
        let sequence = self.sequence;
        self.node(store.thread).stores.push((word, sequence));
    }

    /// `thread` reads `bytes` of a word: it observes the stores that they came from.
    pub fn load(&mut self, word: u64, mut bytes: u8, thread: u64) {
        let Some(found) = self.words.get(&word) else { return };
        let mut observed = [0; 8];
        let mut count = 0;
        for store in found.stores().rev() {
            if store.bytes & bytes != 0 {
                bytes &= !store.bytes;
                if store.thread != thread {
                    observed[count] = store.sequence;
                    count += 1;
                }
            }
        }
        for &sequence in &observed[..count] {
            let node = self.node(thread);
            if node.stores.last() != Some(&(word, sequence)) {
                node.stores.push((word, sequence));
            }
        }
    }

    /// Closes the thread's node and gives it, for others to observe; None where nothing pends.
    fn close(&mut self, thread: u64) -> Option<u32> {
        let current = self.threads[thread as usize].node;
        let node = self.nodes.get(current as usize).filter(|_| current != 0)?;
        match (node.stores.is_empty(), node.before.len()) {
            (true, 0) => None,
            (true, 1) => Some(node.before[0]),
            _ => {
                let next = self.nodes.len() as u32;
                self.nodes.push(Node { stores: Vec::new(), before: vec![current] });
                self.threads[thread as usize].node = next;
                Some(current)
            }
        }
    }

    fn observe(&mut self, thread: u64, node: u32) {
        if self.nodes[node as usize].stores.is_empty() && self.nodes[node as usize].before.is_empty() {
            return;
        }
        let before = &mut self.node(thread).before;
        if !before.contains(&node) {
            before.push(node);
        }
    }

    /// Whether what `released` handed on reaches a thread of `block` that acquires at `scope`.
    fn reaches(released: &Released, scope: Scope, block: u64) -> bool {
        released.block == block || (released.scope >= Scope::Device && scope >= Scope::Device)
    }

    /// A fence by one thread.
    pub fn fence(&mut self, thread: u64, scope: Scope) {
        let block = self.block(thread);
        for released in std::mem::take(&mut self.threads[thread as usize].read) {
            if Self::reaches(&released, scope, block) {
                self.observe(thread, released.node);
            } else {
                // A later, wider fence may still make it observed.
                self.threads[thread as usize].read.push(released);
            }
        }
        if scope == Scope::System {
            self.persist(thread);
            self.threads[thread as usize].fenced.clear();
        } else if let Some(node) = self.close(thread) {
            // A narrower fence covers more, but for fewer.
            let fenced = &mut self.threads[thread as usize].fenced;
            fenced.retain(|&(_, wider)| wider > scope);
            fenced.push((node, scope));
        }
        self.collect();
    }

    /// A strong load, or the load of an atomic.
    pub fn acquire(&mut self, thread: u64, place: Place, order: Order) {
        let Some(found) = self.released.get(&place) else { return };
        let block = self.block(thread);
        for released in found.clone() {
            if !Self::reaches(&released, order.scope, block) {
                continue;
            }
            let node = &self.nodes[released.node as usize];
            if node.stores.is_empty() && node.before.is_empty() {
                continue;
            }
            if order.acquire {
                self.observe(thread, released.node);
            } else if !self.threads[thread as usize].read.iter().any(|read| read.node == released.node) {
                self.threads[thread as usize].read.push(released);
            }
        }
    }

    /// A store to a place where threads may synchronise: a strong one hands on what the thread's
    /// last fence covered (or, if it releases, all), a weak one ends what was handed on there. An
    /// atomic's store keeps what was there.
    pub fn release(&mut self, thread: u64, place: Place, order: Order, atomic: bool) {
        let mut handed = Vec::new();
        if order.release && order.scope == Scope::System {
            self.persist(thread);
        } else if order.release {
            handed.extend(self.close(thread).map(|node| (node, order.scope)));
        } else if order.strong {
            let fenced = &self.threads[thread as usize].fenced;
            handed.extend(fenced.iter().map(|&(node, scope)| (node, scope.min(order.scope))));
        }
        if !atomic {
            self.released.remove(&place);
        }
        let block = self.block(thread);
        for (node, scope) in handed {
            let nodes = &self.nodes;
            let list = self.released.entry(place).or_default();
            list.retain(|old| {
                !nodes[old.node as usize].stores.is_empty() || !nodes[old.node as usize].before.is_empty()
            });
            list.retain(|old| old.node != node || old.scope > scope);
            list.push(Released { node, scope, block });
        }
    }

    /// Whether any place has something handed on.
    pub fn hands_on(&self) -> bool {
        !self.released.is_empty()
    }

    /// A barrier: each of `waiting` observes what any of `arrived` (those who wait, and those who
    /// only came) did or observed.
    pub fn barrier(&mut self, arrived: &[u64], waiting: &[u64]) {
        let mut closed: Vec<u32> = arrived.iter().filter_map(|&thread| self.close(thread)).collect();
        closed.sort_unstable();
        closed.dedup();
        if closed.is_empty() {
            return;
        }
        let joint = if closed.len() == 1 {
            closed[0]
        } else {
            self.nodes.push(Node { stores: Vec::new(), before: closed });
            self.nodes.len() as u32 - 1
        };
        for &thread in waiting {
            let node = self.node(thread);
            node.before.clear();
            node.before.push(joint);
        }
        self.collect();
    }

    /// All that the thread did or observed persists.
    fn persist(&mut self, thread: u64) {
        let start = self.threads[thread as usize].node;
        if start == 0 {
            return;
        }
        self.walk.push(start);
        let mut stores = std::mem::take(&mut self.walked);
        while let Some(index) = self.walk.pop() {
            let node = &mut self.nodes[index as usize];
            self.walk.append(&mut node.before);
            std::mem::swap(&mut stores, &mut node.stores);
            for &(word, sequence) in &stores {
                self.persist_store(word, sequence);
            }
            stores.clear();
        }
        self.walked = stores;
    }

    fn persist_store(&mut self, address: u64, sequence: u64) {
        use std::collections::hash_map::Entry;
        let Entry::Occupied(mut entry) = self.words.entry(address) else { return };
        let word = entry.get();
        if word.later.is_empty() {
            if word.oldest.sequence == sequence {
                entry.remove();
            }
            return;
        }
        let mut chosen: Vec<bool> = word.stores().map(|store| store.sequence == sequence).collect();
        if !chosen.contains(&true) {
            return;
        }
        word.close(&mut chosen);
        match word.keep_others(&chosen) {
            Some(rest) => *entry.get_mut() = rest,
            None => {
                entry.remove();
            }
        }
    }

    /// What crashes and later fences depend on, into a fingerprint: the pending stores, and for
    /// each thread and place which of them were observed there. Nodes are told by the stores that
    /// they lead to, as a fence persists all of these.
    pub fn take_into(&self, all: &mut Fingerprint) {
        self.take_pending_into(all);
        if self.words.is_empty() {
            // Nobody has observed anything that matters.
            return;
        }
        for (number, thread) in self.threads.iter().enumerate() {
            let mut observed = vec![self.leads_to(thread.node, 0, 0)];
            observed.extend(thread.fenced.iter().map(|&(node, scope)| self.leads_to(node, 1 + scope as u64, 0)));
            observed.extend(thread.read.iter().map(|read| self.leads_to(read.node, 4 + read.scope as u64, read.block)));
            take_observed(number as u64, observed, all);
        }
        let mut places: Vec<_> = self.released.iter().collect();
        places.sort_unstable_by_key(|(place, _)| **place);
        for (&(space, address), released) in places {
            let of = |released: &Released| self.leads_to(released.node, released.scope as u64, released.block);
            let observed: Vec<_> = released.iter().map(of).collect();
            if observed.iter().any(|(_, stores)| !stores.is_empty()) {
                all.words([space, address].into_iter());
                take_observed(u64::MAX, observed, all);
            }
        }
    }

    /// The pending stores, into a fingerprint.
    pub fn take_pending_into(&self, all: &mut Fingerprint) {
        let mut words: Vec<_> = self.words.iter().collect();
        words.sort_unstable_by_key(|(address, _)| **address);
        all.word(words.len() as u64);
        for (&address, word) in words {
            all.words([address, word.durable, word.later.len() as u64].into_iter());
            word.stores().for_each(|store| all.words([store.thread, store.bytes.into(), store.value].into_iter()));
        }
    }

    /// The pending stores that a node leads to, each by its word and its place there, with what
    /// else tells how it was observed.
    fn leads_to(&self, node: u32, how: u64, block: u64) -> Observed {
        let (mut walk, mut walked, mut stores) = (vec![node], vec![node], Vec::new());
        while let Some(index) = walk.pop() {
            let node = &self.nodes[index as usize];
            for &before in &node.before {
                if !walked.contains(&before) {
                    walked.push(before);
                    walk.push(before);
                }
            }
            stores.extend(node.stores.iter().filter_map(|&(word, sequence)| {
                let place = self.words.get(&word)?.stores().position(|store| store.sequence == sequence)?;
                Some((word, place as u64))
            }));
        }
        stores.sort_unstable();
        stores.dedup();
        ((how, block), stores)
    }

    /// Drops nodes that nobody can reach, when there are many more than after the last time.
    fn collect(&mut self) {
        if self.nodes.len() < 2 * self.live_nodes {
            return;
        }
        let mut place = vec![0u32; self.nodes.len()];
        let roots = self.threads.iter().flat_map(|thread| {
            let fenced = thread.fenced.iter().map(|(node, _)| *node);
            thread.read.iter().map(|read| read.node).chain(fenced).chain([thread.node])
        });
        let mut walk: Vec<u32> = roots.chain(self.released.values().flatten().map(|released| released.node)).collect();
        let mut kept = vec![Node::default()];
        while let Some(index) = walk.pop() {
            if index != 0 && place[index as usize] == 0 {
                place[index as usize] = kept.len() as u32;
                kept.push(std::mem::take(&mut self.nodes[index as usize]));
                walk.extend(&kept[kept.len() - 1].before);
            }
        }
        for node in &mut kept {
            node.before.iter_mut().for_each(|before| *before = place[*before as usize]);
        }
        for thread in &mut self.threads {
            thread.node = place[thread.node as usize];
            thread.fenced.iter_mut().for_each(|(node, _)| *node = place[*node as usize]);
            thread.read.iter_mut().for_each(|read| read.node = place[read.node as usize]);
        }
        self.released.values_mut().flatten().for_each(|released| released.node = place[released.node as usize]);
        self.live_nodes = kept.len().max(1 << 16);
        self.nodes = kept;
    }
}
