//! What a medium may be by now: one, but for a card that a command has reached before or after what it reads.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;

use crate::choices::Choices;
use crate::lines::Medium;
use crate::trace::Step;

/// A medium, and what was decided on the way to it.
#[derive(Clone)]
pub struct World {
    /// The medium.
    pub medium: Medium,
    /// What [`Choices`] chose; [`Choices::repeat`] repeats it.
    pub chosen: Vec<usize>,
}

/// Every medium that a run may have made by now, up to a bound.
pub struct Worlds {
    worlds: Vec<World>,
    most: usize,
    /// Some were left out.
    pub is_cut_short: bool,
    /// Most that there were at once.
    pub width: usize,
}

impl World {
    fn has_commands(&self) -> bool {
        self.medium.has_commands()
    }

    /// Every way that something may go.
    fn ways<'a>(&'a self, run: impl Fn(&mut Medium, &mut Choices) + 'a) -> impl Iterator<Item = World> + 'a {
        let after = move |choices: &mut Choices| {
            let mut medium = self.medium.clone();
            run(&mut medium, choices);
            medium
        };
        Choices::all(after)
            .map(|(medium, more)| World { medium, chosen: self.chosen.iter().copied().chain(more).collect() })
    }
}

impl Worlds {
    /// One medium; at most so many are gone on with.
    pub fn new(medium: Medium, most: usize) -> Worlds {
        Worlds { worlds: vec![World { medium, chosen: Vec::new() }], most, is_cut_short: false, width: 1 }
    }

    /// Whether fewer states are possible after a step than before it.
    pub fn are_narrowed_by(&self, step: &Step) -> bool {
        self.worlds.iter().any(|world| world.medium.is_narrowed_by(step))
    }

    /// Takes a step in all of them.
    pub fn take(&mut self, step: &Step) {
        if !self.worlds.iter().any(|world| world.medium.is_decided_by(step)) {
            self.worlds.iter_mut().for_each(|world| world.medium.take(step, &mut Choices::default()));
            return;
        }
        let taken = |world: &World| world.ways(|medium, choices| medium.take(step, choices)).collect::<Vec<_>>();
        let mut next: Vec<World> = different(self.worlds.iter().flat_map(taken)).take(self.most + 1).collect();
        self.is_cut_short |= next.len() > self.most;
        next.truncate(self.most);
        self.width = self.width.max(next.len());
        self.worlds = next;
    }

    /// Every medium that a crash finds now, and what was decided on the way to it.
    pub fn crashed(&self) -> impl Iterator<Item = Cow<'_, World>> {
        let crashed = |world| match World::has_commands(world) {
            true => Box::new(world.ways(Medium::crash).map(Cow::Owned)) as Box<dyn Iterator<Item = Cow<'_, World>>>,
            false => Box::new(std::iter::once(Cow::Borrowed(world))),
        };
        different(self.worlds.iter().flat_map(crashed))
    }
}

/// One of those that are the same.
fn different<W: Borrow<World>>(worlds: impl Iterator<Item = W>) -> impl Iterator<Item = W> {
    let mut seen = HashSet::new();
    worlds.filter(move |world| seen.insert(world.borrow().medium.identity()))
}
