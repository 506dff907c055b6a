//! Images that the model allows after a crash, whether or not this hardware would leave them: what
//! an order forbids seldom happens on hardware that keeps nearly to the order of execution anyhow.

use std::collections::HashMap;

use crate::order::Order;

/// What was stored while a simulator recorded, and the order in which it has to become durable.
#[derive(Debug)]
pub struct Allowed {
    order: Order,
}

impl Allowed {
    pub(crate) fn new(order: Order) -> Self {
        Self { order }
    }

    /// Stores by lanes, numbered in the order in which they were executed.
    pub fn stores(&self) -> usize {
        self.order.stores.len()
    }

    /// The smallest durable set that has a store: itself, and all that comes before it.
    pub fn least_with(&self, store: usize) -> Vec<bool> {
        let mut set = vec![false; self.stores()];
        let mut first: HashMap<u32, u32> = HashMap::new();
        let mut launches_before = 0;
        set[store] = true;
        // What comes before a store was executed before it.
        for (number, stored) in self.order.stores.iter().enumerate().take(store + 1).rev() {
            let of_thread = first.get(&stored.thread).is_some_and(|&count| stored.position < count);
            if !(set[number] || of_thread || number < launches_before) {
                continue;
            }
            set[number] = true;
            launches_before = launches_before.max(stored.launches_before as usize);
            if let Some(same) = stored.same {
                set[same as usize] = true;
            }
            for (&thread, &count) in stored.before.iter().chain(stored.waited.iter()) {
                let known = first.entry(thread).or_default();
                *known = count.max(*known);
            }
        }
        set
    }

    /// The largest durable set that lacks a store: all but itself and what comes after it.
    pub fn most_without(&self, store: usize) -> Vec<bool> {
        let mut set = vec![true; self.stores()];
        let mut lacking: HashMap<u32, u32> = HashMap::new();
        for (number, stored) in self.order.stores.iter().enumerate().skip(store) {
            let lacks = number == store
                || stored.launches_before as usize > store
                || stored.same.is_some_and(|same| !set[same as usize])
                || lacking.iter().any(|(thread, at)| {
                    [&stored.before, &stored.waited]
                        .iter()
                        .any(|clock| clock.get(thread).is_some_and(|count| count > at))
                });
            if lacks {
                set[number] = false;
                lacking.entry(stored.thread).or_insert(stored.position);
            }
        }
        set
    }

    /// Writes a set into an image of the range that begins at `base`.
    pub fn apply(&self, set: &[bool], base: u64, image: &mut [u8]) {
        for stored in self.order.stores.iter().zip(set).filter(|(_, durable)| **durable).map(|(stored, _)| stored) {
            let Some(start) = stored.address.checked_sub(base).and_then(|start| usize::try_from(start).ok()) else {
                continue;
            };
            if let Some(to) = image.get_mut(start..start.saturating_add(stored.data.len())) {
                to.copy_from_slice(&stored.data);
            }
        }
    }
}
