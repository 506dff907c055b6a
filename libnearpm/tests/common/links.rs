//! Memories behind links, for pools that are striped over several.
//!
//! **Fault model.** Each member has a cache and a link of its own. A line leaves the cache when it
//! was written back, at the latest with the next fence, or at a moment of the cache's choosing, as
//! it is then. On the link lines keep their order, and a fence orders them and no more: they arrive
//! at their leisure, and all of them only before a drain returns. A power cut leaves of each link
//! what had arrived: any part from its start, on each link another one. Choices come from a seed,
//! so that a run repeats to the byte.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm::Error;
use nearpm::memory::Memory;

const LINE: usize = 64;
const PAGE: usize = 4096;

/// Contents of a memory; copies share the pages that they have in common.
#[derive(Clone)]
pub struct Image(Vec<Arc<[u8; PAGE]>>);

impl Image {
    pub fn blank(bytes: usize) -> Image {
        assert_eq!(bytes % PAGE, 0);
        let page = Arc::new([0; PAGE]);
        Image(std::iter::repeat_n(page, bytes / PAGE).collect())
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        let (mut at, mut done) = (offset as usize, 0);
        while done < data.len() {
            let bytes = (PAGE - at % PAGE).min(data.len() - done);
            data[done..done + bytes].copy_from_slice(&self.0[at / PAGE][at % PAGE..][..bytes]);
            (at, done) = (at + bytes, done + bytes);
        }
    }

    pub fn store(&mut self, offset: u64, data: &[u8]) {
        let (mut at, mut done) = (offset as usize, 0);
        while done < data.len() {
            let bytes = (PAGE - at % PAGE).min(data.len() - done);
            Arc::make_mut(&mut self.0[at / PAGE])[at % PAGE..][..bytes].copy_from_slice(&data[done..done + bytes]);
            (at, done) = (at + bytes, done + bytes);
        }
    }

    pub fn line(&self, line: u64) -> [u8; LINE] {
        let mut bytes = [0; LINE];
        self.load(line * LINE as u64, &mut bytes);
        bytes
    }
}

/// SplitMix64.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

struct Link {
    /// What loads see.
    current: Image,
    /// What has arrived for certain.
    arrived: Image,
    /// Lines under way, in their order.
    sent: Vec<(u64, [u8; LINE])>,
    /// Lines that were written back and not fenced, as they were then.
    leaving: BTreeMap<u64, [u8; LINE]>,
    /// Lines that were stored to and not written back.
    dirty: BTreeMap<u64, ()>,
}

impl Link {
    fn fence(&mut self, random: &mut Random) {
        // In no order.
        while !self.leaving.is_empty() {
            self.send_one(random);
        }
    }

    fn send_one(&mut self, random: &mut Random) {
        let at = random.below(self.leaving.len() as u64) as usize;
        let line = *self.leaving.keys().nth(at).expect("below the length");
        let bytes = self.leaving.remove(&line).expect("it is there");
        self.sent.push((line, bytes));
    }

    fn evict_one(&mut self, random: &mut Random) {
        let at = random.below(self.dirty.len() as u64) as usize;
        let line = *self.dirty.keys().nth(at).expect("below the length");
        self.dirty.remove(&line);
        // What was written back of it before goes first.
        let earlier = self.leaving.remove(&line).map(|bytes| (line, bytes));
        self.sent.extend(earlier);
        self.sent.push((line, self.current.line(line)));
    }

    fn arrive(&mut self) {
        for (line, bytes) in self.sent.drain(..) {
            self.arrived.store(line * LINE as u64, &bytes);
        }
    }

    /// What a power cut leaves.
    fn surviving(&self, random: &mut Random) -> Image {
        let mut image = self.arrived.clone();
        let mut sent = self.sent.clone();
        for (&line, bytes) in &self.leaving {
            if random.below(2) == 0 {
                sent.push((line, *bytes));
            }
        }
        for &line in self.dirty.keys() {
            if random.below(4) == 0 {
                sent.push((line, self.current.line(line)));
            }
        }
        // All, nothing, or some.
        let kept = match random.below(3) {
            0 => sent.len(),
            1 => 0,
            _ => random.below(sent.len() as u64 + 1) as usize,
        };
        for (line, bytes) in &sent[..kept] {
            image.store(line * LINE as u64, bytes);
        }
        image
    }
}

/// Called before each event with its number and a way to ask what survives a cut by a seed.
pub type Probe = Box<dyn FnMut(u64, &dyn Fn(u64) -> Vec<Image>) + Send>;

struct State {
    links: Vec<Link>,
    random: Random,
    events: u64,
    probe: Option<Probe>,
}

/// The memories of a computer; copies are handles of the same.
#[derive(Clone)]
pub struct Links(Arc<Mutex<State>>);

impl Links {
    pub fn new(members: usize, bytes: usize, seed: u64) -> Links {
        Links::from_images(vec![Image::blank(bytes); members], seed)
    }

    /// Memories that hold what survived, with nothing in caches and links.
    pub fn from_images(images: Vec<Image>, seed: u64) -> Links {
        let link = |image: Image| Link {
            current: image.clone(),
            arrived: image,
            sent: Vec::new(),
            leaving: BTreeMap::new(),
            dirty: BTreeMap::new(),
        };
        let links = images.into_iter().map(link).collect();
        Links(Arc::new(Mutex::new(State { links, random: Random(seed), events: 0, probe: None })))
    }

    /// The memory of each member.
    pub fn memories(&self) -> Vec<Box<dyn Memory>> {
        let members = self.lock().links.len();
        (0..members).map(|member| self.memory(member)).collect()
    }

    pub fn memory(&self, member: usize) -> Box<dyn Memory> {
        Box::new(LinkMemory { links: self.clone(), member })
    }

    pub fn surviving(&self, seed: u64) -> Vec<Image> {
        let (state, mut random) = (self.lock(), Random(seed));
        state.links.iter().map(|link| link.surviving(&mut random)).collect()
    }

    pub fn probe(&self, probe: impl FnMut(u64, &dyn Fn(u64) -> Vec<Image>) + Send + 'static) {
        self.lock().probe = Some(Box::new(probe));
    }

    pub fn stop_probe(&self) {
        self.lock().probe = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A moment at which the power may fail, and lines move by themselves.
    fn event(&self) {
        let mut state = self.lock();
        state.events += 1;
        let number = state.events;
        let State { links, random, .. } = &mut *state;
        let member = random.below(links.len() as u64) as usize;
        let link = &mut links[member];
        match random.below(8) {
            0 if !link.dirty.is_empty() => link.evict_one(random),
            1 if !link.leaving.is_empty() => link.send_one(random),
            2 => link.arrive(),
            _ => {}
        }
        // The probe asks this for what survives.
        let probe = state.probe.take();
        drop(state);
        if let Some(mut probe) = probe {
            probe(number, &|seed| self.surviving(seed));
            self.lock().probe.get_or_insert(probe);
        }
    }
}

struct LinkMemory {
    links: Links,
    member: usize,
}

fn lines(offset: u64, bytes: u64) -> std::ops::Range<u64> {
    offset / LINE as u64..(offset + bytes).div_ceil(LINE as u64)
}

impl Memory for LinkMemory {
    fn bytes(&self) -> u64 {
        (self.links.lock().links[self.member].current.0.len() * PAGE) as u64
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        self.links.lock().links[self.member].current.load(offset, data);
    }

    fn store(&self, offset: u64, data: &[u8]) {
        self.links.event();
        let mut state = self.links.lock();
        let link = &mut state.links[self.member];
        link.current.store(offset, data);
        for line in lines(offset, data.len() as u64) {
            link.dirty.insert(line, ());
        }
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        self.links.event();
        let mut state = self.links.lock();
        let link = &mut state.links[self.member];
        for line in lines(offset, bytes) {
            if link.dirty.remove(&line).is_some() {
                link.leaving.insert(line, link.current.line(line));
            }
        }
    }

    fn fence(&self) -> Result<(), Error> {
        self.links.event();
        let mut state = self.links.lock();
        let State { links, random, .. } = &mut *state;
        links[self.member].fence(random);
        Ok(())
    }

    fn drain(&self) -> Result<(), Error> {
        self.fence()?;
        self.links.lock().links[self.member].arrive();
        Ok(())
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        self.write_back(offset, bytes);
    }
}
