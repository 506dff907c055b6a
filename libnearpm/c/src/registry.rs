//! Open pools by what names them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, PoisonError, RwLock};

/// Things that C has open. Calls share them; who closes one gets it alone.
pub(super) struct Registry<K, T>(RwLock<BTreeMap<K, Arc<T>>>);

/// What became of the wish to have a thing alone.
pub(super) enum Taken<T> {
    /// It is out of the registry.
    Alone(T),
    /// Somebody else has it; it stays.
    Shared,
    /// There is no such thing.
    Unknown,
}

impl<K: Ord, T> Registry<K, T> {
    pub const fn new() -> Self {
        Registry(RwLock::new(BTreeMap::new()))
    }

    pub fn get(&self, key: &K) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Enters a thing; gives it back where the key is taken.
    pub fn insert(&self, key: K, thing: T) -> Result<(), T> {
        match self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key) {
            Entry::Vacant(place) => {
                place.insert(Arc::new(thing));
                Ok(())
            }
            Entry::Occupied(_) => Err(thing),
        }
    }

    /// Takes a thing out that nobody uses.
    pub fn take(&self, key: K) -> Taken<T> {
        // Nobody gets another share while the lock is held.
        match self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key) {
            Entry::Vacant(_) => Taken::Unknown,
            Entry::Occupied(place) if Arc::strong_count(place.get()) > 1 => Taken::Shared,
            Entry::Occupied(place) => Arc::into_inner(place.remove()).map_or(Taken::Unknown, Taken::Alone),
        }
    }
}
