//! Entries of the persist buffer.

use crate::journal::StoreId;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// It has left out of order.
    Gone,
    Persist,
    /// An order of a warp's own persists: oFence, a release of block scope.
    Fence,
    Release,
    /// An order after other warps' persists.
    Acquire,
    /// Its warps wait until all before it is durable.
    Device,
}

/// The stores of a persist.
#[derive(Clone, Debug)]
pub(crate) struct Dirty {
    pub line: u64,
    pub bytes: u128,
    /// What was stored, where crashes are asked for.
    pub data: Option<Box<[u8; 128]>>,
    pub stores: Vec<StoreId>,
    /// The place in L1 of an older version.
    pub pinned: Option<u32>,
}

impl Dirty {
    /// Later stores to the same line.
    pub fn merge(&mut self, later: Dirty) {
        self.bytes |= later.bytes;
        self.stores.extend(later.stores);
        if let (Some(data), Some(from)) = (&mut self.data, later.data) {
            for (index, (to, from)) in data.iter_mut().zip(from.iter()).enumerate() {
                if later.bytes >> index & 1 == 1 {
                    *to = *from;
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub kind: Kind,
    pub warps: u32,
    pub dirty: Option<Dirty>,
}

/// A persist that leaves.
pub(crate) struct Leaving {
    pub entry: u64,
    pub warps: u32,
    pub dirty: Dirty,
}

/// What the head of the buffer lets happen.
pub(crate) enum Head {
    /// Nothing now.
    Waits,
    /// An order has left.
    Ordered,
    Persist(Leaving),
}

/// Who waits for the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Demand {
    /// Somebody waits for something to leave.
    pub any: bool,
    /// For room in the buffer.
    pub room: bool,
    /// For a line to be evicted.
    pub eviction: bool,
}
