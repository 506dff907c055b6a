//! Striped pools on cards: `card:A+B/POOL` has a member named POOL on each of the cards.

use std::collections::BTreeSet;
use std::sync::Arc;

use nearpm_driver::Card;
use nearpm_interface::media::PoolHead;

use super::on_card::{CARDS_JOINED_BY, Name, OnCard, Reach};
use super::set::{Members, Memories, check_count, heads};
use crate::error::{Error, Problem};
use crate::memory::Medium;
use crate::options::Options;

/// `card:A+B/POOL`, taken apart.
pub(crate) struct Names {
    cards: Vec<String>,
    pool: String,
    /// `card:A/POOL` of each member.
    locations: Vec<String>,
}

impl Names {
    /// The names of the members of a striped pool; `None` for a pool on one card.
    pub fn of(cards: &str, pool: &str, location: &str) -> Result<Option<Names>, Error> {
        let cards: Vec<String> = cards.split(CARDS_JOINED_BY).map(str::to_owned).collect();
        if cards.len() == 1 {
            return Ok(None);
        }
        check_count(cards.len()).map_err(|problem| problem.at(location))?;
        if cards.iter().collect::<BTreeSet<_>>().len() < cards.len() {
            let rule = "a striped pool names each of its cards once";
            return Err(Problem::BadName { rule }.at(location));
        }
        let locations = cards.iter().map(|card| format!("card:{card}/{pool}")).collect();
        Ok(Some(Names { cards, pool: pool.to_owned(), locations }))
    }

    fn iter(&self) -> impl Iterator<Item = Name<'_>> {
        self.cards.iter().zip(&self.locations).map(|(card, location)| Name { card, pool: &self.pool, location })
    }

    /// Makes the members of a new pool, of which so many `first` gives the head of the first.
    /// Nothing is left behind when that or `start` fails.
    pub fn create<P>(
        &self,
        options: &Options,
        first: impl FnOnce(usize) -> Result<PoolHead, Problem>,
        reach: Reach,
        start: impl FnOnce(Medium, Members) -> Result<P, Error>,
    ) -> Result<P, Error> {
        let mut first = first(self.cards.len()).map_err(|problem| problem.at(&self.locations[0]))?;
        self.alive()?;
        if options.id.is_none() {
            first.pool = self.free_id(first.pool)?;
        }
        let mut heads = heads(first);
        let (mut made, mut found) = (0, Memories::named(&self.locations));
        let placed = self.iter().zip(&mut heads).try_for_each(|(name, head)| {
            found.push(OnCard::create_member(&name, head, reach)?);
            made += 1;
            Ok(())
        });
        let cards = self.cards(&found.on_cards);
        let started = placed.and_then(|()| found.create(heads)).and_then(|(whole, members)| start(whole, members));
        started.map_err(|error| {
            for (name, card) in self.iter().zip(&cards).take(made) {
                // The error that led here is the one to report.
                let _ = super::on_card::forget(card, &name);
            }
            self.blame(error, &cards)
        })
    }

    /// Finds the members and starts their pool. Nothing is changed before all of them are there,
    /// answer, and belong together.
    pub fn open<P>(&self, reach: Reach, start: impl FnOnce(Medium, Members) -> Result<P, Error>) -> Result<P, Error> {
        self.alive()?;
        let mut found = Memories::named(&self.locations);
        for name in self.iter() {
            let (memory, on_card) = OnCard::find(&name, reach)?;
            memory.invalidate(0, nearpm_interface::media::PAGE_BYTES);
            memory.fence()?;
            found.push((memory, on_card));
        }
        let cards = self.cards(&found.on_cards);
        let started = found.open().and_then(|(whole, members)| start(whole, members));
        started.map_err(|error| self.blame(error, &cards))
    }

    /// Removes every member that is there.
    ///
    /// # Errors
    /// [`Problem::NotFound`] where none is; [`Problem::OtherMember`] where something else has the
    /// name: then nothing is removed.
    pub fn remove(&self, reach: Reach, location: &str) -> Result<(), Error> {
        self.alive()?;
        let mut found = Vec::new();
        for (number, name) in self.iter().enumerate() {
            match OnCard::find(&name, reach) {
                Ok((memory, on_card)) => {
                    super::set::check_removable(memory, number, self.cards.len(), name.location)?;
                    found.push((name, on_card));
                }
                Err(Error::Pool { problem: Problem::NotFound, .. }) => {}
                Err(other) => return Err(other),
            }
        }
        if found.is_empty() {
            return Err(Problem::NotFound.at(location));
        }
        found.into_iter().try_for_each(|(name, on_card)| super::on_card::forget(&on_card.card, &name))
    }

    /// An identifier that no pool of any of the cards has.
    fn free_id(&self, wanted: u32) -> Result<u32, Error> {
        let mut taken = BTreeSet::from([0]);
        for card in &self.cards {
            taken.extend(super::list(card)?.iter().map(|pool| pool.id));
        }
        let mut id = wanted;
        while taken.contains(&id) {
            id = id.wrapping_add(1);
        }
        Ok(id)
    }

    fn cards(&self, on_cards: &[OnCard]) -> Vec<Arc<Card>> {
        on_cards.iter().map(|on| on.card.clone()).collect()
    }

    /// Makes sure that every card is there, answers, and is this process's alone: what a broker
    /// hides are the commands that wait for other cards, which say what is committed.
    fn alive(&self) -> Result<(), Error> {
        for name in self.iter() {
            let card = name.card()?;
            if card.seat().is_some() {
                let what = "a pool over several cards needs each of them for itself, and this one is shared: end `nearpm card share` first";
                return Err(Problem::BadOption { what }.at(name.location));
            }
            card.push(0).map_err(|error| Problem::NoAnswer { error: error.to_string() }.at(name.location))?;
        }
        Ok(())
    }

    /// A card that has gone reads all ones, which looks like damage, or gives an error without its
    /// name: it is named.
    fn blame(&self, error: Error, cards: &[Arc<Card>]) -> Error {
        if !matches!(error, Error::Pool { .. } | Error::Card(_)) {
            return error;
        }
        let silent =
            self.locations.iter().zip(cards).find_map(|(location, card)| Some((location, card.push(0).err()?)));
        silent.map_or(error, |(location, silent)| Problem::NoAnswer { error: silent.to_string() }.at(location))
    }
}
