//! The memory of a striped pool: as a whole, and of each member.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Backing, Memory, Work};
use crate::error::Error;
use crate::stripes::Stripes;

/// The memory of a member, and what has been done to it. Its pool is used by one thread at a time.
pub(crate) struct Member {
    memory: Backing,
    /// Something was begun that a fence ends.
    unfenced: AtomicBool,
    /// Something was stored since that was last asked.
    stored: AtomicBool,
}

impl Member {
    pub fn new(memory: Backing) -> Arc<Member> {
        Arc::new(Member { memory, unfenced: AtomicBool::new(false), stored: AtomicBool::new(false) })
    }

    /// Whether something was begun that a fence ends.
    pub fn awaits_fence(&self) -> bool {
        self.unfenced.load(Ordering::Relaxed)
    }

    /// Commands were sent to the card of this member, and no fence has followed.
    pub fn sent(&self) {
        self.touch(false);
    }

    /// Whether something was stored since the last call.
    pub fn take_stored(&self) -> bool {
        self.stored.swap(false, Ordering::Relaxed)
    }

    fn touch(&self, stores: bool) {
        self.unfenced.store(true, Ordering::Relaxed);
        if stores {
            self.stored.store(true, Ordering::Relaxed);
        }
    }
}

impl Memory for Arc<Member> {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.memory.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.touch(true);
        self.memory.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        self.touch(false);
        self.memory.write_back(offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        self.unfenced.store(false, Ordering::Relaxed);
        self.memory.fence()
    }
    fn drain(&self) -> Result<(), Error> {
        self.unfenced.store(false, Ordering::Relaxed);
        self.memory.drain()
    }
    fn drains_for_all(&self) -> bool {
        self.memory.drains_for_all()
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        self.touch(false);
        self.memory.invalidate(offset, bytes);
    }
    fn stream(&self, offset: u64, lines: &[u8]) {
        self.touch(true);
        self.memory.stream(offset, lines);
    }
    fn is_behind_a_link(&self) -> bool {
        self.memory.is_behind_a_link()
    }
    fn prefetch(&self, offset: u64, bytes: u64) {
        self.memory.prefetch(offset, bytes);
    }
    fn contended(&self) -> bool {
        self.memory.contended()
    }
    fn charge(&self, work: Work) {
        self.memory.charge(work);
    }
    fn alive(&self) -> Result<(), Error> {
        self.memory.alive()
    }
}

/// All members as one memory, of which the head and the rings are left out.
pub(crate) struct Striped {
    pub members: Vec<Arc<Member>>,
    pub stripes: Stripes,
}

impl Memory for Striped {
    fn bytes(&self) -> u64 {
        self.stripes.whole().end()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        for (piece, part) in self.stripes.pieces(offset, data.len() as u64) {
            self.members[piece.member].load(piece.offset, &mut data[part]);
        }
    }
    fn store(&self, offset: u64, data: &[u8]) {
        for (piece, part) in self.stripes.pieces(offset, data.len() as u64) {
            self.members[piece.member].store(piece.offset, &data[part]);
        }
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        for (piece, _) in self.stripes.pieces(offset, bytes) {
            self.members[piece.member].write_back(piece.offset, piece.bytes);
        }
    }
    /// A member of which nothing awaits a fence has none.
    fn fence(&self) -> Result<(), Error> {
        self.members.iter().filter(|member| member.awaits_fence()).try_for_each(Memory::fence)
    }
    fn drain(&self) -> Result<(), Error> {
        self.members.iter().try_for_each(Memory::drain)
    }
    fn drains_for_all(&self) -> bool {
        self.members.iter().all(Memory::drains_for_all)
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        for (piece, _) in self.stripes.pieces(offset, bytes) {
            self.members[piece.member].invalidate(piece.offset, piece.bytes);
        }
    }
    fn stream(&self, offset: u64, lines: &[u8]) {
        for (piece, part) in self.stripes.pieces(offset, lines.len() as u64) {
            self.members[piece.member].stream(piece.offset, &lines[part]);
        }
    }
    fn is_behind_a_link(&self) -> bool {
        self.members.iter().any(Memory::is_behind_a_link)
    }
    /// Threads that go on by turns do so on all members.
    fn contended(&self) -> bool {
        self.members[0].contended()
    }
    fn prefetch(&self, offset: u64, bytes: u64) {
        for (piece, _) in self.stripes.pieces(offset, bytes) {
            self.members[piece.member].prefetch(piece.offset, piece.bytes);
        }
    }
    /// Work beside the memory is the processor's, whichever member it is for.
    fn charge(&self, work: Work) {
        self.members[0].charge(work);
    }
    fn alive(&self) -> Result<(), Error> {
        self.members.iter().try_for_each(Memory::alive)
    }
}
