//! What can be wrong with a pool: one definition, for the loaders that refuse it and for the check
//! that lists it.

use crate::error::Error;

macro_rules! classes {
    ($( $(#[doc = $doc:literal])* $class:ident, $name:literal, $what:literal; )*) => {
        /// A class of damage.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Class { $( $(#[doc = $doc])* $class ),* }

        impl Class {
            /// Every class.
            pub const ALL: &[Class] = &[ $( Class::$class ),* ];

            /// The stable name.
            pub const fn name(self) -> &'static str {
                match self { $( Class::$class => $name ),* }
            }

            /// What is wrong, as errors say it.
            pub const fn what(self) -> &'static str {
                match self { $( Class::$class => $what ),* }
            }
        }
    };
}

classes! {
    /// The first line is zeros: a creation was interrupted, or the head is gone.
    HeadBlank, "head-blank", "the head is blank";
    /// The magic number is another one.
    HeadMagic, "head-magic", "the magic number is not that of a pool";
    /// The format is newer than this library.
    HeadVersion, "head-version", "the format is newer than this library";
    /// The head's checksum.
    HeadSeal, "head-seal", "the checksum of the head does not hold";
    /// The head is sealed and makes no sense.
    HeadShape, "head-shape", "the head describes an impossible pool";
    /// The file is shorter than the head says.
    FileShort, "file-short", "the file is shorter than its head says";
    /// The word that says how far the pool has grown.
    GrownWord, "grown-word", "the word for how far the pool has grown is not valid";
    /// A repair was interrupted.
    RepairInterrupted, "repair-interrupted", "a repair was interrupted";
    /// The word that says on which boot a pool on a card was opened.
    OpenedWord, "opened-word", "the word for the boot on which the pool was opened is not valid";
    /// The epoch, committed or applied word of a log ring.
    RingWord, "ring-word", "a word of a log ring is not valid";
    /// The word for the part of a log ring that was used.
    RingExtent, "ring-extent", "the extent word of a log ring is not valid";
    /// A redo log that was committed misses entries.
    RingRedo, "ring-redo", "a committed redo log is not whole";
    /// A log entry that counts names bytes outside of the heap.
    RingEntry, "ring-entry", "a log entry covers what no transaction may change";
    /// The word for the records that are dead.
    AppliedWord, "applied-word", "the applied word of the log is not valid";
    /// The word for the records that were durable once.
    ConfirmedWord, "confirmed-word", "the confirmed word of the log is not valid";
    /// The head of a log segment.
    SegmentHead, "segment-head", "the head of a log segment is not valid";
    /// A segment where the pool has no log.
    SegmentLeft, "segment-left", "a log segment is left after the recovery";
    /// A record does not hold although records that were made later do: a torn one would be the
    /// last.
    RecordSum, "record-sum", "a record of the log does not hold, and later ones do";
    /// A new object does not have the bytes that a record says it has, although records that were
    /// made later hold.
    RecordHome, "record-home", "an object that a record names does not match its checksum, and later records hold";
    /// A record whose checksum holds and whose contents make no sense.
    RecordOperation, "record-operation", "a record holds no valid operation";
    /// A record that names bytes outside of the heap.
    RecordRange, "record-range", "a record names what no transaction may change";
    /// A word of the page table.
    TableWord, "table-word", "a word of the page table is not valid";
    /// Two logical pages at one place.
    TableTwice, "table-twice", "the page table names a page twice";
    /// The word of a chunk.
    ChunkWord, "chunk-word", "the state of a chunk is not valid";
    /// A run of objects of a size that there is not.
    ChunkSize, "chunk-size", "a chunk has objects of a size that no class has";
    /// An object that goes on behind the heap.
    ChunkSpan, "chunk-span", "an object leaves the heap";
    /// An object over chunks that are in use.
    ChunkOverlap, "chunk-overlap", "an object lies over chunks that others use";
    /// A word of the bitmap of a chunk.
    BitmapWord, "bitmap-word", "a word of the bitmap of a chunk is not valid";
    /// Bits behind the last object of a run.
    BitmapBeyond, "bitmap-beyond", "the bitmap of a chunk contradicts its state";
    /// Bits for a chunk that is no run.
    BitmapStray, "bitmap-stray", "a chunk without small objects has bits in its bitmap";
    /// The word of the root.
    RootWord, "root-word", "the word of the root is not valid";
    /// The root lies in no object.
    Root, "root", "the root is no object";
    /// A copy of the directory of a region.
    RegionDirectory, "region-directory", "a copy of the region's directory of objects is not valid";
    /// The head of an object of a region.
    ObjectHead, "object-head", "the head of an object of the region is not valid";
    /// The word of a log or batch of a region.
    ObjectWord, "object-word", "the word of an object of the region is not valid";
    /// A slot of checkpoints of a region.
    CheckpointSlot, "checkpoint-slot", "a slot of checkpoints is not valid";
    /// A slot of a hash table of a region: its pointer's check fails.
    HashPointer, "hash-pointer", "a slot of a hash table has a pointer to no cell of it";
    /// A slot of a hash table of a region, and another one with the same cell.
    HashCell, "hash-cell", "a slot of a hash table has a cell that another slot has, too";
    /// A key in a bucket that is none of its.
    HashKey, "hash-key", "a slot of a hash table has a key that belongs elsewhere";
    /// A key that is there twice.
    HashTwice, "hash-twice", "a slot of a hash table has a key that another slot has, too";
    /// A wide key whose word is another's.
    HashUnlike, "hash-unlike", "a cell of a hash table has another key than its slot";
}

impl Class {
    /// The error of a loader that meets it.
    pub(crate) fn at(self, offset: u64) -> Error {
        Error::Corrupt { what: self.what(), offset }
    }

    /// The class whose error says this.
    pub(crate) fn of(what: &str) -> Option<Class> {
        Class::ALL.iter().copied().find(|class| class.what() == what)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Class {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_tell_classes_apart() {
        for &class in Class::ALL {
            assert_eq!(Class::of(class.what()), Some(class));
            assert_eq!(Class::ALL.iter().filter(|other| other.name() == class.name()).count(), 1);
        }
    }
}
