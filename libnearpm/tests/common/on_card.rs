//! Test cards that pools lie on.

use std::sync::Arc;

use nearpm::{Error, cards};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions, Posting};

/// A card and its name.
pub struct Registered {
    pub name: cards::Registered,
    pub mock: MockCard,
}

impl Registered {
    pub fn new(mock: MockCard, posting: Posting) -> Result<Registered, Error> {
        let card = Card::open(Arc::new(mock.clone()), CardOptions { posting, ..CardOptions::default() })?;
        Ok(Registered { name: cards::Registered::new(Arc::new(card)), mock })
    }

    pub fn pool(&self, pool: &str) -> String {
        self.name.pool(pool)
    }
}

pub fn mock(seed: u64) -> MockOptions {
    MockOptions { pm_bytes: 2 << 20, seed, ..MockOptions::default() }
}

pub fn posting(seed: u64) -> Posting {
    [Posting::Line, Posting::WriteCombining, Posting::Uncached][seed as usize % 3]
}
