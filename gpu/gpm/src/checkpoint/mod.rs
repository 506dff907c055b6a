//! Checkpoints of device memory in PM: two sealed copies a group, of which the newest valid one
//! counts.
//!
//! A slot is a head, a table of elements by name, and their data. A checkpoint takes the slot that
//! does not count: its head is blanked, the data is copied by a kernel and persisted, then table
//! and head are written. A crash leaves the other slot as it was.
//!
//! | file | holds |
//! |---|---|
//! | `copy.rs` | the copies between device memory and slots, with their digests |
//! | `changed.rs` | incremental checkpoints: the pages that changed |
//! | `concurrent.rs` | checkpoints that are taken while the program goes on |

mod changed;
mod concurrent;
mod copy;

use std::cell::RefCell;

use nearpm_gpu::{Buffer, Object, ObjectKind, PmRegion};
use nearpm_interface::geometry::LINE;
use nearpm_interface::region::{
    CHECKPOINT_MAGIC, CHECKPOINT_SLOTS, CheckpointElement, CheckpointHead, OBJECT_ALIGNMENT, ObjectHead,
};
use nearpm_interface::seal;

use crate::error::{Error, Result};
use crate::log::{read_head, write_head};
use changed::Pages;
pub use concurrent::{Concurrent, Flight};
use copy::{Direction, Items};

/// Copies begin at multiples of this: the line of a warp's stores.
const ALIGNMENT: u64 = 128;

/// Device memory that belongs to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Name, 1 to 32 bytes, by which it is found again.
    pub name: String,
    /// Where it is, a multiple of 16.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A checkpoint that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its number in the group, from 1.
    pub sequence: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Bytes of them that were copied: fewer where only what changed was.
    pub moved: u64,
}

/// Checkpoints that are open.
pub struct Checkpoint {
    region: PmRegion,
    object: Object,
    head: ObjectHead,
    groups: RefCell<Vec<Vec<Element>>>,
    /// Of each group whose changes are followed.
    pages: RefCell<Vec<Option<Pages>>>,
    /// Digest, and bytes that were copied.
    digest: Buffer,
    /// What the last copy was of.
    items: RefCell<Items>,
}

/// A slot as PM has it.
struct Slot {
    number: u64,
    head: CheckpointHead,
    table: Vec<CheckpointElement>,
}

impl Checkpoint {
    /// Creates checkpoints of `groups` groups, each of up to `elements` elements of together up to
    /// `bytes` bytes.
    ///
    /// # Errors
    /// No group or element; no room in the region.
    pub fn create(region: &PmRegion, name: &str, bytes: u64, elements: u32, groups: u32) -> Result<Checkpoint> {
        if groups == 0 || !(1..=1 << 16).contains(&elements) {
            return Err(Error::Invalid(format!(
                "checkpoints have groups, of 1 to 65536 elements, not {groups} of {elements}"
            )));
        }
        let room = bytes.next_multiple_of(ALIGNMENT) + ALIGNMENT * u64::from(elements);
        let stride = (data_offset(elements) + room).next_multiple_of(OBJECT_ALIGNMENT);
        let data_bytes = u64::from(groups) * CHECKPOINT_SLOTS * stride;
        let head = ObjectHead {
            kind: ObjectKind::Checkpoint as u16,
            blocks: groups,
            threads: elements,
            data: OBJECT_ALIGNMENT,
            data_bytes,
            stride,
            ..ObjectHead::default()
        };
        region.add(name, ObjectKind::Checkpoint, head.data + data_bytes, |object| {
            // What an earlier attempt left there could count.
            for slot in 0..u64::from(groups) * CHECKPOINT_SLOTS {
                region.zero(object.offset + head.data + slot * stride, LINE as u64)?;
            }
            write_head(region, object, &head)
        })?;
        Checkpoint::open(region, name)
    }

    /// Opens checkpoints. The program registers its elements again; they are found by name.
    ///
    /// # Errors
    /// There are none of that name; their head is damaged.
    pub fn open(region: &PmRegion, name: &str) -> Result<Checkpoint> {
        let object = region.find(name, ObjectKind::Checkpoint)?;
        let head = read_head(region, &object)?;
        let groups = RefCell::new(vec![Vec::new(); head.blocks as usize]);
        let pages = RefCell::new((0..head.blocks).map(|_| None).collect());
        Ok(Checkpoint {
            region: region.clone(),
            object,
            head,
            groups,
            pages,
            digest: Buffer::new(region.device(), 16)?,
            items: RefCell::default(),
        })
    }

    fn refuse<T>(&self, why: String) -> Result<T> {
        Err(Error::Checkpoint { checkpoint: self.object.name.clone(), why })
    }

    /// Adds device memory to a group.
    ///
    /// # Errors
    /// A group that there is not; too many elements or bytes; a name that is none or taken; an
    /// address that is no multiple of 16.
    pub fn register(&self, group: u32, element: Element) -> Result<()> {
        let groups = self.groups.borrow();
        let Some(elements) = groups.get(group as usize) else {
            return self.refuse(format!("it has {} groups, numbered from 0; {group} is none", self.head.blocks));
        };
        if elements.len() >= self.head.threads as usize {
            return self.refuse(format!("group {group} has its {} elements already", self.head.threads));
        }
        let name = &element.name;
        if !(1..=32).contains(&name.len()) || name.contains('\0') || elements.iter().any(|other| other.name == *name) {
            return self
                .refuse(format!("{name:?} is no name of 1 to 32 bytes without zero, or is taken in group {group}"));
        }
        if element.bytes == 0 || !element.address.is_multiple_of(16) {
            return self.refuse(format!("{name:?} has no bytes, or begins at no multiple of 16"));
        }
        let mut all = elements.clone();
        all.push(element);
        let room = self.head.stride - data_offset(self.head.threads);
        let needed = layout(&all).last().map_or(0, |last| last.offset + last.bytes);
        if needed > room {
            return self
                .refuse(format!("group {group} has room for {room} bytes, {needed} are needed: create it larger"));
        }
        drop(groups);
        self.groups.borrow_mut()[group as usize] = all;
        // Pages are numbered through a group's elements.
        self.pages.borrow_mut()[group as usize] = None;
        Ok(())
    }

    /// Says that an element of a group is elsewhere in the device's memory from now on.
    ///
    /// # Errors
    /// An element that there is not; an address that is no multiple of 16.
    pub fn relocate(&self, group: u32, name: &str, address: u64) -> Result<()> {
        let mut groups = self.groups.borrow_mut();
        let mut elements = groups.get_mut(group as usize).into_iter().flatten();
        match elements.find(|element| element.name == name) {
            Some(element) if address.is_multiple_of(16) => {
                element.address = address;
                Ok(())
            }
            Some(_) => self.refuse(format!("{name:?} begins at no multiple of 16")),
            None => self.refuse(format!("group {group} has no element {name:?}")),
        }
    }

    /// Elements that a group has so far.
    pub fn registered(&self, group: u32) -> usize {
        self.groups.borrow().get(group as usize).map_or(0, Vec::len)
    }

    /// Offset in the region of a slot.
    fn place(&self, group: u32, slot: u64) -> u64 {
        self.object.offset + self.head.data + (u64::from(group) * CHECKPOINT_SLOTS + slot) * self.head.stride
    }

    /// The slots of a group whose heads hold, the newest first.
    fn slots(&self, group: u32) -> Result<Vec<Slot>> {
        let mut slots = Vec::new();
        for number in 0..CHECKPOINT_SLOTS {
            let place = self.place(group, number);
            let mut line = [0; LINE];
            self.region.read(place, &mut line)?;
            let head = CheckpointHead::from_bytes(&line);
            if head.magic != CHECKPOINT_MAGIC || head.group != group || head.elements > self.head.threads {
                continue;
            }
            let body = self.region.read_vec(place + LINE as u64, head.elements as usize * LINE)?;
            if seal::is_sealed(&body, &line) {
                let table = body.as_chunks::<LINE>().0.iter().map(CheckpointElement::from_bytes).collect();
                slots.push(Slot { number, head, table });
            }
        }
        slots.sort_by_key(|slot| std::cmp::Reverse(slot.head.sequence));
        Ok(slots)
    }

    /// The slot that the next checkpoint of a group takes, and its number in the group.
    fn next(&self, group: u32) -> Result<(u64, u64)> {
        let newest = self.slots(group)?.into_iter().next();
        Ok(newest.map_or((0, 1), |slot| (1 - slot.number, slot.head.sequence + 1)))
    }

    /// What is in a slot does not count from now on.
    fn blank(&self, group: u32, slot: u64) -> Result<()> {
        Ok(self.region.write(self.place(group, slot), &[0; 8])?)
    }

    /// The data of a slot is there: it counts from now on.
    fn seal(&self, group: u32, slot: u64, sequence: u64, digest: u64, table: &[CheckpointElement]) -> Result<()> {
        let place = self.place(group, slot);
        let body: Vec<u8> = table.iter().flat_map(|element| element.to_bytes()).collect();
        let elements = table.len() as u32;
        let head = CheckpointHead { magic: CHECKPOINT_MAGIC, group, sequence, digest, elements, ..Default::default() };
        let mut line = head.to_bytes();
        seal::seal(&body, &mut line);
        self.region.write(place + LINE as u64, &body)?;
        self.region.write(place + 8, &line[8..])?;
        Ok(self.region.write(place, &line[..8])?)
    }

    /// Takes a checkpoint of a group. It is durable when this returns; until then the one before it
    /// is.
    ///
    /// # Errors
    /// A group that there is not, or that has no element; what the device refuses.
    pub fn checkpoint(&self, group: u32) -> Result<Taken> {
        let elements = self.elements(group)?;
        let (slot, sequence) = self.next(group)?;
        self.forget_pages(group, slot);
        self.blank(group, slot)?;
        let table = layout(&elements);
        let place = self.region.address(self.place(group, slot));
        let digest = self.copy(&elements, &table, place, Direction::ToPm)?;
        self.seal(group, slot, sequence, digest, &table)?;
        let bytes = bytes_of(&elements);
        Ok(Taken { sequence, bytes, moved: bytes })
    }

    /// Gives a group's memory the contents of its newest checkpoint; `None`, and nothing is
    /// changed, where there is none.
    ///
    /// # Errors
    /// The checkpoint has other elements than are registered; neither slot's data has its digest
    /// ([`nearpm_gpu::Error::Corrupt`]).
    pub fn restore(&self, group: u32) -> Result<Option<Taken>> {
        let elements = self.elements(group)?;
        self.restore_newest(&elements, self.slots(group)?)
    }

    /// The same from the first of some slots whose data is whole.
    fn restore_newest(&self, elements: &[Element], slots: Vec<Slot>) -> Result<Option<Taken>> {
        let mut damaged = None;
        for slot in slots {
            self.check_table(slot.head.group, elements, &slot.table)?;
            let place = self.place(slot.head.group, slot.number);
            let table = in_order(elements, &slot.table);
            let digest = self.copy(elements, &table, self.region.address(place), Direction::FromPm)?;
            if digest == slot.head.digest {
                let bytes = bytes_of(elements);
                return Ok(Some(Taken { sequence: slot.head.sequence, bytes, moved: bytes }));
            }
            damaged = Some((slot.head.sequence, place));
        }
        match damaged {
            None => Ok(None),
            Some((sequence, place)) => {
                let what =
                    format!("the data of checkpoint {sequence} of {:?} do not have its digest", self.object.name);
                Err(self.region.corrupt(what, place).into())
            }
        }
    }

    fn elements(&self, group: u32) -> Result<Vec<Element>> {
        match self.groups.borrow().get(group as usize) {
            Some(elements) if !elements.is_empty() => Ok(elements.clone()),
            Some(_) => self.refuse(format!("group {group} has no elements: register them")),
            None => self.refuse(format!("it has {} groups, numbered from 0; {group} is none", self.head.blocks)),
        }
    }

    fn check_table(&self, group: u32, elements: &[Element], table: &[CheckpointElement]) -> Result<()> {
        let described = |name: &str, bytes: u64| format!("{name} ({bytes} bytes)");
        let mut stored: Vec<String> = table.iter().map(|element| described(&name_of(element), element.bytes)).collect();
        let mut registered: Vec<String> =
            elements.iter().map(|element| described(&element.name, element.bytes)).collect();
        stored.sort();
        registered.sort();
        if stored == registered {
            return Ok(());
        }
        let (stored, registered) = (stored.join(", "), registered.join(", "));
        self.refuse(format!("group {group} was taken of {stored}; registered are {registered}"))
    }
}

fn bytes_of(elements: &[Element]) -> u64 {
    elements.iter().map(|element| element.bytes).sum()
}

/// Offset in a slot of the data.
fn data_offset(elements: u32) -> u64 {
    (LINE as u64 * (1 + u64::from(elements))).next_multiple_of(ALIGNMENT)
}

/// Where elements lie, one behind the other.
fn layout(elements: &[Element]) -> Vec<CheckpointElement> {
    let mut offset = 0;
    let place = |element: &Element| {
        let mut stored = CheckpointElement { bytes: element.bytes, offset, ..CheckpointElement::default() };
        stored.name[..element.name.len()].copy_from_slice(element.name.as_bytes());
        offset = (offset + element.bytes).next_multiple_of(ALIGNMENT);
        stored
    };
    elements.iter().map(place).collect()
}

fn name_of(element: &CheckpointElement) -> String {
    let length = element.name.iter().position(|&byte| byte == 0).unwrap_or(element.name.len());
    String::from_utf8_lossy(&element.name[..length]).into_owned()
}

/// The table in the order of the registered elements, all of which are in it.
fn in_order(elements: &[Element], table: &[CheckpointElement]) -> Vec<CheckpointElement> {
    elements.iter().filter_map(|element| table.iter().find(|stored| name_of(stored) == element.name).copied()).collect()
}
