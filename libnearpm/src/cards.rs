//! Cards by name: what `card:NAME/POOL` resolves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use nearpm_driver::Card;

static CARDS: Mutex<BTreeMap<String, Arc<Card>>> = Mutex::new(BTreeMap::new());

/// Makes a card known under a name to the whole process; a card that had the name is forgotten.
///
/// Pools that are open on the former card stay open on it.
pub fn register(name: &str, card: Arc<Card>) {
    CARDS.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), card);
}

/// Forgets a card. Open pools keep it alive until they are closed.
pub fn unregister(name: &str) -> Option<Arc<Card>> {
    CARDS.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
}

/// The card of a name.
pub fn find(name: &str) -> Option<Arc<Card>> {
    CARDS.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// Names of the known cards, sorted.
pub fn names() -> Vec<String> {
    CARDS.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
