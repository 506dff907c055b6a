//! What a medium may be by now: one, but for a card that a command has reached before or after what
//! it reads.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;

use crate::choices::Choices;
use crate::lines::Medium;
use crate::trace::Step;

/// A medium, and what was decided on the way to it.
#[derive(Clone)]
pub struct PossibleMedium {
    /// The medium.
    pub medium: Medium,
    /// What [`Choices`] chose; [`Choices::repeat`] repeats it.
    pub chosen: Vec<usize>,
}

/// Every medium that a run may have made by now, up to a bound.
pub struct PossibleMedia {
    media: Vec<PossibleMedium>,
    most: usize,
    /// Some were left out.
    pub is_cut_short: bool,
    /// Most that there were at once.
    pub width: usize,
}

impl PossibleMedium {
    fn has_commands(&self) -> bool {
        self.medium.has_commands()
    }

    /// Every way that something may go.
    fn ways<'a>(&'a self, run: impl Fn(&mut Medium, &mut Choices) + 'a) -> impl Iterator<Item = PossibleMedium> + 'a {
        let after = move |choices: &mut Choices| {
            let mut medium = self.medium.clone();
            run(&mut medium, choices);
            medium
        };
        Choices::all(after)
            .map(|(medium, more)| PossibleMedium { medium, chosen: self.chosen.iter().copied().chain(more).collect() })
    }
}

impl PossibleMedia {
    /// One medium; at most so many are gone on with.
    pub fn new(medium: Medium, most: usize) -> PossibleMedia {
        PossibleMedia {
            media: vec![PossibleMedium { medium, chosen: Vec::new() }],
            most,
            is_cut_short: false,
            width: 1,
        }
    }

    /// Whether fewer states are possible after a step than before it.
    pub fn are_narrowed_by(&self, step: &Step) -> bool {
        self.media.iter().any(|possible| possible.medium.is_narrowed_by(step))
    }

    /// Takes a step in all of them.
    pub fn take(&mut self, step: &Step) {
        if !self.media.iter().any(|possible| possible.medium.is_decided_by(step)) {
            self.media.iter_mut().for_each(|possible| possible.medium.take(step, &mut Choices::default()));
            return;
        }
        let taken =
            |possible: &PossibleMedium| possible.ways(|medium, choices| medium.take(step, choices)).collect::<Vec<_>>();
        let mut next: Vec<PossibleMedium> = different(self.media.iter().flat_map(taken)).take(self.most + 1).collect();
        self.is_cut_short |= next.len() > self.most;
        next.truncate(self.most);
        self.width = self.width.max(next.len());
        self.media = next;
    }

    /// Every medium that a crash finds now, and what was decided on the way to it.
    pub fn crashed(&self) -> impl Iterator<Item = Cow<'_, PossibleMedium>> {
        let crashed = |possible| match PossibleMedium::has_commands(possible) {
            true => Box::new(possible.ways(Medium::crash).map(Cow::Owned))
                as Box<dyn Iterator<Item = Cow<'_, PossibleMedium>>>,
            false => Box::new(std::iter::once(Cow::Borrowed(possible))),
        };
        different(self.media.iter().flat_map(crashed))
    }
}

/// One of those that are the same.
fn different<W: Borrow<PossibleMedium>>(media: impl Iterator<Item = W>) -> impl Iterator<Item = W> {
    let mut seen = HashSet::new();
    media.filter(move |possible| seen.insert(possible.borrow().medium.identity()))
}
