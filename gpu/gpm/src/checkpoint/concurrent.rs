//! Concurrent checkpoints: several are in flight while the program goes on (PCcheck's idea, without
//! a copy in the processor's memory).
//!
//! A checkpoint begins with a snapshot in the device's memory, which takes a fraction of the time
//! of the link. The copy engine brings that to PM beside the kernels that follow. Each of N that
//! are in flight at once has a group of slots of its own, so that each group has a checkpoint that
//! counts meanwhile; numbers go through all of them, and the newest whole one is restored.

use std::cell::{Cell, RefCell};

use nearpm_gpu::{Aside, Buffer, PmRegion};
use nearpm_interface::region::CheckpointElement;

use super::copy::words_of;
use super::{Checkpoint, Element, Taken, data_offset, layout};
use crate::error::{Error, Result};

/// Checkpoints that are taken while the program goes on.
pub struct Concurrent {
    checkpoint: Checkpoint,
    next: Cell<u64>,
    /// Groups in flight.
    busy: RefCell<Vec<bool>>,
}

/// A checkpoint in flight. One that is dropped is not taken; its place is free again when the
/// checkpoints are opened anew.
#[must_use = "a checkpoint counts when it is finished"]
pub struct Flight {
    group: u32,
    slot: u64,
    sequence: u64,
    bytes: u64,
    table: Vec<CheckpointElement>,
    digest: Buffer,
    copy: Aside,
    /// What is copied: it must stay until the copy has ended.
    snapshot: Buffer,
}

impl Flight {
    /// Its number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes of the device's memory that its snapshot takes.
    pub fn snapshot_bytes(&self) -> u64 {
        self.snapshot.bytes()
    }
}

impl Concurrent {
    /// Creates checkpoints of up to `elements` elements of together up to `bytes` bytes, of which
    /// `flights` may be in flight at once.
    ///
    /// # Errors
    /// As for [`Checkpoint::create`].
    pub fn create(region: &PmRegion, name: &str, bytes: u64, elements: u32, flights: u32) -> Result<Concurrent> {
        Concurrent::of(Checkpoint::create(region, name, bytes, elements, flights)?)
    }

    /// Opens checkpoints. The program registers its elements again.
    ///
    /// # Errors
    /// As for [`Checkpoint::open`].
    pub fn open(region: &PmRegion, name: &str) -> Result<Concurrent> {
        Concurrent::of(Checkpoint::open(region, name)?)
    }

    fn of(checkpoint: Checkpoint) -> Result<Concurrent> {
        let groups = checkpoint.head.blocks;
        let mut newest = 0;
        for group in 0..groups {
            newest = checkpoint.slots(group)?.first().map_or(newest, |slot| newest.max(slot.head.sequence));
        }
        let busy = RefCell::new(vec![false; groups as usize]);
        Ok(Concurrent { checkpoint, next: Cell::new(newest + 1), busy })
    }

    /// Adds device memory.
    ///
    /// # Errors
    /// As for [`Checkpoint::register`].
    pub fn register(&self, element: Element) -> Result<()> {
        (0..self.checkpoint.head.blocks).try_for_each(|group| self.checkpoint.register(group, element.clone()))
    }

    /// Begins a checkpoint of the memory as the work given so far leaves it. The program may go on
    /// at once.
    ///
    /// # Errors
    /// As many are in flight as may be; no memory for the snapshot; what the device refuses.
    pub fn begin(&self) -> Result<Flight> {
        let sequence = self.next.get();
        let groups = u64::from(self.checkpoint.head.blocks);
        let mut all = (sequence..sequence + groups).map(|at| (at % groups) as u32);
        let Some(group) = all.find(|&group| !self.busy.borrow()[group as usize]) else {
            return self.checkpoint.refuse(format!("{groups} checkpoints are in flight: finish one"));
        };
        let elements = self.checkpoint.elements(group)?;
        let (slot, _) = self.checkpoint.next(group)?;
        let table = layout(&elements);
        let device = self.checkpoint.region.device();
        let bytes = table.last().map_or(0, |last| last.offset + last.bytes);
        let (snapshot, digest) = (Buffer::new(device, bytes)?, Buffer::zeroed(device, 8)?);
        self.checkpoint.blank(group, slot)?;
        for (element, stored) in elements.iter().zip(&table) {
            let place = snapshot.address() + stored.offset;
            device.copy(place, element.address, element.bytes)?;
            self.checkpoint.digest_of(place, stored, &digest)?;
        }
        let place = self.checkpoint.place(group, slot) + data_offset(self.checkpoint.head.threads);
        let copy = device.copy_aside(self.checkpoint.region.address(place), snapshot.address(), bytes)?;
        self.busy.borrow_mut()[group as usize] = true;
        self.next.set(sequence + 1);
        let bytes = super::bytes_of(&elements);
        Ok(Flight { group, slot, sequence, bytes, table, digest, copy, snapshot })
    }

    /// Waits for a checkpoint, which is durable when this returns.
    ///
    /// # Errors
    /// What the device refuses; the one before it counts then.
    pub fn finish(&self, flight: Flight) -> Result<Taken> {
        let Some(busy) = self.busy.borrow().get(flight.group as usize).copied() else {
            return Err(Error::Invalid("a checkpoint in flight of other checkpoints".to_owned()));
        };
        debug_assert!(busy, "a flight has a group of its own");
        self.checkpoint.region.device().wait_aside(flight.copy)?;
        let digest = words_of(&flight.digest)?[0];
        self.checkpoint.seal(flight.group, flight.slot, flight.sequence, digest, &flight.table)?;
        self.busy.borrow_mut()[flight.group as usize] = false;
        Ok(Taken { sequence: flight.sequence, bytes: flight.bytes, moved: flight.bytes })
    }

    /// Gives the memory the contents of the newest checkpoint; `None`, and nothing is changed,
    /// where there is none.
    ///
    /// # Errors
    /// As for [`Checkpoint::restore`].
    pub fn restore(&self) -> Result<Option<Taken>> {
        let elements = self.checkpoint.elements(0)?;
        let mut slots = Vec::new();
        for group in 0..self.checkpoint.head.blocks {
            slots.extend(self.checkpoint.slots(group)?);
        }
        slots.sort_by_key(|slot| std::cmp::Reverse(slot.head.sequence));
        self.checkpoint.restore_newest(&elements, slots)
    }
}
