//! Allocation classes that programs describe. Of a class, sizes, alignment and whether objects have
//! type numbers are kept; objects of all classes lie in the pool's own size classes, so that units
//! per block have no effect and objects of a class need not be adjacent.

use crate::abi::MAX_ALLOC;
use crate::error::{Errno, fail};

/// Most units of an object that has a header.
const MAX_UNITS: u64 = 64;
const MAX_ALIGNMENT: u64 = 2 << 20;
/// Bytes in front of the units of PMDK's blocks, which are multiples of a chunk.
const RUN_HEADER: u64 = 16;
const CHUNK_BYTES: u64 = 256 << 10;

/// `enum pobj_header_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderKind {
    Legacy,
    Compact,
    None,
}

/// `struct pobj_alloc_class_desc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub unit_size: usize,
    pub alignment: usize,
    pub units_per_block: u32,
    pub header_type: u32,
    pub class_id: u32,
}

/// An allocation class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocClass {
    unit: u64,
    alignment: u64,
    units_per_block: u32,
    header: HeaderKind,
}

impl AllocClass {
    /// The last identifier.
    pub const LAST: i64 = 254;

    /// Checks a description.
    pub fn new(description: &Description) -> Result<AllocClass, Errno> {
        let invalid = |text: &str| Err(fail(libc::EINVAL, format_args!("{text}")));
        let (unit, alignment) = (description.unit_size as u64, description.alignment as u64);
        if unit == 0 || unit > MAX_ALLOC {
            return invalid("unit size must be larger than 0 and smaller than the largest allocation");
        }
        if alignment != 0
            && (!alignment.is_power_of_two() || !unit.is_multiple_of(alignment) || alignment > MAX_ALIGNMENT)
        {
            return invalid("unit size must be evenly divisible by the alignment, a power of two of at most 2 MiB");
        }
        let header = match description.header_type {
            0 => HeaderKind::Legacy,
            1 => HeaderKind::Compact,
            2 => HeaderKind::None,
            _ => return invalid("invalid header type"),
        };
        Ok(AllocClass { unit, alignment, units_per_block: description.units_per_block, header })
    }

    /// Whether PMDK takes both for the same class, of which there may be one: unit, header and
    /// bytes of a block are the same.
    pub fn is_like(&self, other: &AllocClass) -> bool {
        let key = |class: &AllocClass| {
            let bytes = class.unit * u64::from(class.units_per_block) + RUN_HEADER + class.alignment;
            (class.unit.div_ceil(16), class.header, class.alignment != 0, bytes.div_ceil(CHUNK_BYTES))
        };
        key(self) == key(other)
    }

    /// The description of the class.
    pub fn describe(&self, id: i64) -> Description {
        Description {
            unit_size: self.unit as usize,
            alignment: self.alignment as usize,
            units_per_block: self.units_per_block,
            header_type: self.header as u32,
            class_id: id as u32,
        }
    }

    fn header_bytes(&self) -> u64 {
        match self.header {
            HeaderKind::Legacy => 64,
            HeaderKind::Compact => 16,
            HeaderKind::None => 0,
        }
    }

    /// Bytes that a program may use of an object that has at least so many; `None` if it would have
    /// too many units.
    pub fn usable(&self, bytes: u64) -> Option<u64> {
        let units = (bytes + self.header_bytes()).div_ceil(self.unit);
        let most = if self.header == HeaderKind::None { 1 } else { MAX_UNITS };
        (units <= most).then(|| units * self.unit - self.header_bytes())
    }

    /// Alignment of the data.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Whether objects have type numbers.
    pub fn has_type(&self) -> bool {
        self.header != HeaderKind::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(unit_size: usize, alignment: usize, header_type: u32) -> Description {
        Description { unit_size, alignment, units_per_block: 1000, header_type, class_id: 0 }
    }

    #[test]
    fn objects_have_whole_units_without_their_header() {
        let compact = AllocClass::new(&description(128, 0, 1)).unwrap();
        assert_eq!(compact.usable(112), Some(112));
        assert_eq!(compact.usable(113), Some(240));
        assert_eq!(compact.usable(64 * 128 - 16), Some(64 * 128 - 16));
        assert_eq!(compact.usable(64 * 128), None);
        let none = AllocClass::new(&description(128, 64, 2)).unwrap();
        assert_eq!((none.usable(1), none.usable(128), none.usable(129)), (Some(128), Some(128), None));
        assert!(!none.has_type() && compact.has_type());
    }

    #[test]
    fn senseless_descriptions_are_refused() {
        for bad in [description(0, 0, 1), description(100, 64, 1), description(96, 48, 1), description(128, 0, 3)] {
            assert_eq!(AllocClass::new(&bad).unwrap_err(), libc::EINVAL, "{bad:?}");
        }
    }
}
