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

/// A card under a name that no other card has in this process, for as long as this lives.
#[derive(Debug)]
pub struct Registered {
    name: String,
    card: Arc<Card>,
}

impl Registered {
    /// Registers a card under a new name.
    pub fn new(card: Arc<Card>) -> Registered {
        let mut cards = CARDS.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (0u64..).map(|number| format!("card{number}")).find(|name| !cards.contains_key(name));
        let name = name.expect("fewer cards than numbers");
        cards.insert(name.clone(), card.clone());
        Registered { name, card }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The card.
    pub fn card(&self) -> &Arc<Card> {
        &self.card
    }

    /// Location of a pool on it.
    pub fn pool(&self, pool: &str) -> String {
        format!("card:{}/{pool}", self.name)
    }
}

impl Drop for Registered {
    /// Forgets the name. Open pools keep the card alive until they are closed.
    fn drop(&mut self) {
        unregister(&self.name);
    }
}
