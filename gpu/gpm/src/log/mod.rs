//! Logs in PM that kernels insert to.
//!
//! | form | an insert costs | for |
//! |---|---|---|
//! | [`Form::Sealed`] | the entry and a seal of 4 bytes, one fence | undo of many threads |
//! | [`Form::Tail`] | the entry and a tail of 4 bytes, two fences | the same, as in the paper; entries whose checks must not rest on a hash |
//! | conventional | a lock, the entry and a tail of 8 bytes, two fences | few entries of any size |
//!
//! Every log has a generation, a sealed word in PM: an entry of another one does not count, so that
//! a log is cleared by one store of 8 bytes.

mod entries;
mod layout;

use std::cell::Cell;

use nearpm_gpu::{Buffer, Launch, Object, ObjectKind, PmRegion};
use nearpm_interface::region::{OBJECT_WORD, ObjectHead};

use crate::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::kernels::library;
pub use entries::{Entry, Order};
use layout::GENERATIONS_OF_A_TAIL;
pub use layout::{Form, Shape};
pub use layout::{read_head, write_head};

/// Threads a block of the kernels that look at logs.
const THREADS: u32 = 256;

/// A log that is open.
pub struct Log {
    region: PmRegion,
    object: Object,
    head: ObjectHead,
    kind: ObjectKind,
    flags: u32,
    generation: Cell<u32>,
    descriptor: Buffer,
    counts: Buffer,
    locks: Buffer,
    status: Buffer,
}

impl Log {
    /// Creates a hierarchical log of entries of `entry_bytes` bytes, `depth` of them a thread, for
    /// launches of one shape.
    ///
    /// # Errors
    /// A shape or size that no log has; no room in the region.
    pub fn create_hcl(
        region: &PmRegion,
        name: &str,
        shape: Shape,
        entry_bytes: u64,
        depth: u32,
        form: Form,
    ) -> Result<Log> {
        let head = layout::hierarchical(shape, entry_bytes, depth, form)?;
        Log::create(region, name, head)
    }

    /// Creates a conventional log of `partitions` partitions with room for `bytes` bytes in all.
    ///
    /// # Errors
    /// No partition, or none with room; no room in the region.
    pub fn create_conventional(region: &PmRegion, name: &str, partitions: u32, bytes: u64) -> Result<Log> {
        let head = layout::conventional(partitions, bytes)?;
        Log::create(region, name, head)
    }

    fn create(region: &PmRegion, name: &str, head: ObjectHead) -> Result<Log> {
        let kind = ObjectKind::from_code(head.kind.into()).expect("a layout is of a kind");
        let bytes = head.data + head.data_bytes;
        region.add(name, kind, bytes, |object| {
            layout::write_head(region, object, &head)?;
            region.write_sealed_word(object.offset + OBJECT_WORD, 1)?;
            // What an earlier attempt left there could count.
            region.zero(
                object.offset + nearpm_interface::region::OBJECT_ALIGNMENT,
                bytes - nearpm_interface::region::OBJECT_ALIGNMENT,
            )
        })?;
        Log::open(region, name)
    }

    /// Opens a log. What is in it counts.
    ///
    /// # Errors
    /// There is none of that name; its head or generation is damaged.
    pub fn open(region: &PmRegion, name: &str) -> Result<Log> {
        let kinds = [ObjectKind::SealedLog, ObjectKind::TailLog, ObjectKind::ConventionalLog];
        let found = region.objects().into_iter().find(|object| object.name == name && kinds.contains(&object.kind));
        let object = match found {
            Some(object) => object,
            // For its error.
            None => region.find(name, ObjectKind::SealedLog)?,
        };
        let head = layout::read_head(region, &object)?;
        let generation = region.read_sealed_word(object.offset + OBJECT_WORD)? as u32;
        let device = region.device();
        let places = u64::from(layout::places(&head));
        let log = Log {
            region: region.clone(),
            kind: object.kind,
            object,
            head,
            flags: 0,
            generation: Cell::new(generation),
            descriptor: Buffer::new(device, Descriptor::BYTES)?,
            counts: Buffer::zeroed(device, 4 * places)?,
            locks: Buffer::zeroed(device, 4 * places)?,
            status: Buffer::zeroed(device, 4)?,
        };
        log.describe()?;
        let arguments = [log.descriptor.address().into(), (places as u32).into()];
        device.launch(library().kernel("log_mount"), &Launch::over(places, THREADS, arguments))?;
        Ok(log)
    }

    /// The same with flags for kernels: [`crate::UNSTRICT`], [`crate::MIRROR`].
    ///
    /// # Errors
    /// What the device refuses.
    pub fn with_flags(mut self, flags: u32) -> Result<Log> {
        self.flags = flags;
        self.describe()?;
        Ok(self)
    }

    /// Writes the descriptor that kernels read.
    fn describe(&self) -> Result<()> {
        let head = &self.head;
        let descriptor = Descriptor {
            kind: layout::device_kind(self.kind),
            flags: self.flags,
            blocks: head.blocks,
            threads: head.threads,
            words: head.words,
            depth: head.depth,
            generation: self.generation.get(),
            data: self.region.address(self.object.offset + head.data),
            tails: self.region.address(self.object.offset + head.tails),
            counts: self.counts.address(),
            locks: self.locks.address(),
            status: self.status.address(),
            stride: head.stride,
        };
        Ok(self.descriptor.upload(&descriptor.to_bytes())?)
    }

    /// Address of the log's description, the argument for kernels (`const gpmlog *`).
    pub fn address(&self) -> u64 {
        self.descriptor.address()
    }

    /// The region that it lies in.
    pub fn region(&self) -> &PmRegion {
        &self.region
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.object.name
    }

    /// Shape of the launches of a hierarchical log; partitions, and 1, of a conventional one.
    pub fn shape(&self) -> Shape {
        Shape { blocks: self.head.blocks, threads: self.head.threads }
    }

    /// Its generation: entries of others do not count.
    pub fn generation(&self) -> u32 {
        self.generation.get()
    }

    /// Bytes of an entry of a hierarchical log.
    pub fn entry_bytes(&self) -> u64 {
        4 * u64::from(self.head.words)
    }

    /// Says what kernels had to complain about since the last call.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::EntrySize`], [`Error::LaunchShape`], [`Error::Partition`].
    pub fn check(&self) -> Result<()> {
        let status = self.status.download_words()?[0];
        if status == 0 {
            return Ok(());
        }
        self.status.fill(0)?;
        let log = self.object.name.clone();
        let head = &self.head;
        Err(match status {
            1 if self.kind == ObjectKind::ConventionalLog => {
                Error::Full { log, room: format!("{} bytes a partition", 4 * u64::from(head.depth)) }
            }
            1 => Error::Full { log, room: format!("{} entries a thread", head.depth) },
            2 => Error::EntrySize { log, bytes: self.entry_bytes() },
            3 => Error::LaunchShape { log, blocks: head.blocks, threads: head.threads },
            _ => Error::Partition { log, partitions: head.blocks },
        })
    }

    /// Removes all entries at once, durably: the log gets the next generation.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn clear(&self) -> Result<()> {
        let next = match (self.kind, self.generation.get()) {
            (_, u32::MAX) => {
                self.wipe()?;
                1
            }
            // A tail has 16 bits of it: what is older must not come back.
            (ObjectKind::TailLog, generation) if (generation + 1).is_multiple_of(GENERATIONS_OF_A_TAIL) => {
                self.wipe()?;
                generation + 2
            }
            (_, generation) => generation + 1,
        };
        self.region.write_sealed_word(self.object.offset + OBJECT_WORD, next.into())?;
        self.generation.set(next);
        self.describe()?;
        self.counts.fill(0)?;
        Ok(())
    }

    /// Zeroes everything, so that nothing of any generation is left.
    fn wipe(&self) -> Result<()> {
        let start = self.object.offset + self.head.data.min(self.head.tails);
        Ok(self.region.zero(start, self.object.offset + self.object.bytes - start)?)
    }

    /// The entries that count, as PM has them.
    ///
    /// # Errors
    /// What a kernel did wrong.
    pub fn entries(&self, order: Order) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        self.visit(&mut |thread, slot, words| entries.push(Entry { thread, slot, words: words.to_vec() }))?;
        order.sort(&mut entries);
        Ok(entries)
    }

    /// Goes through the entries that count, by thread and slot, without a copy of each: called with
    /// thread, slot and words.
    ///
    /// # Errors
    /// What a kernel did wrong.
    pub fn visit(&self, visit: &mut dyn FnMut(u32, u32, &[u32])) -> Result<()> {
        let head = &self.head;
        let data = self.region.read_vec(self.object.offset + head.data, head.data_bytes as usize)?;
        let tails = match self.kind {
            ObjectKind::TailLog => {
                self.region.read_vec(self.object.offset + head.tails, 4 * layout::places(head) as usize)?
            }
            _ => Vec::new(),
        };
        let stored = entries::Stored { head, generation: self.generation.get(), data: &data, tails: &tails };
        stored.visit(self.kind, visit);
        Ok(())
    }
}
