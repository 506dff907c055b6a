//! Pools over several memories: which members belong together, and what a pool is opened on.

use std::sync::Arc;

use nearpm_driver::Card;
use nearpm_interface::geometry::MAX_DEVICES;
use nearpm_interface::media::PoolHead;

use super::format;
use super::on_card::OnCard;
use super::waiting;
use crate::error::{Error, Problem};
use crate::executor::{CardExecutor, CpuExecutor, Executor, StripedExecutor};
use crate::heap::HeapLayout;
use crate::lane::{Lane, LaneState};
use crate::memory::{Backing, Medium, Member, Memory, Striped};
use crate::options::{Engine, Options, Synchronisation};
use crate::pages::Pages;
use crate::part::Part;
use crate::recovery::{Recovery, pages, recover, recover_lanes};
use crate::statistics::count;
use crate::stripes::Stripes;

/// The members of an open pool.
pub(crate) struct Members {
    pub stripes: Stripes,
    heads: Vec<PoolHead>,
    /// Empty in an ordinary pool, whose one medium is that of the whole.
    media: Arc<[Medium]>,
    memories: Vec<Arc<Member>>,
    locations: Vec<String>,
    /// One for each where they are on cards.
    on_cards: Vec<OnCard>,
    /// The cards have numbers, and commits wait on them for each other.
    delayed: bool,
}

impl Members {
    /// The only one, of an ordinary pool.
    pub fn single(head: PoolHead, on_card: Option<OnCard>) -> Members {
        Members {
            stripes: Stripes::of(&head),
            heads: vec![head],
            media: Arc::new([]),
            memories: Vec::new(),
            locations: Vec::new(),
            on_cards: on_card.into_iter().collect(),
            delayed: false,
        }
    }

    /// The members of a striped pool, and the medium of the whole.
    fn striped(
        stripes: Stripes,
        heads: Vec<PoolHead>,
        memories: Vec<Arc<Member>>,
        locations: Vec<String>,
        on_cards: Vec<OnCard>,
    ) -> (Medium, Members) {
        let whole = Medium::new(Backing::Other(Box::new(Striped { members: memories.clone(), stripes })));
        let media = memories.iter().map(|member| medium_of(member, &whole)).collect();
        (whole, Members { stripes, heads, media, memories, locations, on_cards, delayed: false })
    }

    /// Whether they are on cards.
    pub fn are_on_cards(&self) -> bool {
        !self.on_cards.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// The members; `whole` is the medium of the pool.
    pub fn parts<'a>(&'a self, whole: &'a Medium) -> Vec<Part<'a>> {
        let part = |(number, head)| Part {
            medium: self.media.get(number).unwrap_or(whole),
            head,
            location: self.locations.get(number).map(String::as_str),
        };
        self.heads.iter().enumerate().map(part).collect()
    }

    /// The one recovery of all members: what it did, the state of each lane on each member, and the
    /// page table.
    pub fn recover(&self, whole: &Medium, location: &str) -> Result<(Recovery, Vec<Vec<LaneState>>, Pages), Error> {
        if self.len() == 1 {
            let (report, lanes) = recover(whole, &self.heads[0])?;
            let lanes = lanes.into_iter().map(|state| vec![state]).collect();
            return Ok((report, lanes, self.pages(whole)?));
        }
        let (report, lanes) = self.recover_several(whole, location)?;
        Ok((report, lanes, self.pages(whole)?))
    }

    fn recover_several(&self, whole: &Medium, location: &str) -> Result<(Recovery, Vec<Vec<LaneState>>), Error> {
        let (parts, mut report) = (self.parts(whole), Recovery::default());
        waiting::settle(&parts, &self.cards(), location, &mut report)?;
        let lanes = recover_lanes(&parts, &mut report)?;
        Ok((report, lanes))
    }

    /// As [`Members::recover`], of a pool that is reached by pointer: every page comes home. The
    /// states are in the order of lanes, and of members in each.
    pub fn recover_home(&self, whole: &Medium, location: &str) -> Result<(Recovery, Vec<LaneState>), Error> {
        if self.len() == 1 {
            let (mut report, lanes) = recover(whole, &self.heads[0])?;
            pages::bring_home(whole, &self.heads[0], &mut report)?;
            return Ok((report, lanes));
        }
        let (mut report, lanes) = self.recover_several(whole, location)?;
        for part in self.parts(whole) {
            // Its pages, and the words that name them, are those of a pool of its own.
            let own = PoolHead { member: 0, members: 0, stripe: 0, ..*part.head };
            pages::bring_home(part.medium, &own, &mut report).map_err(|error| part.named(error))?;
        }
        Ok((report, lanes.into_iter().flatten().collect()))
    }

    /// Where the pages of a recovered pool are.
    pub fn pages(&self, whole: &Medium) -> Result<Pages, Error> {
        match &self.heads[..] {
            [only] => Pages::load(whole, *only),
            _ => Pages::load_striped(self.stripes, &self.parts(whole)),
        }
    }

    fn cards(&self) -> Vec<Arc<Card>> {
        self.on_cards.iter().map(|on| on.card.clone()).collect()
    }

    /// Numbers the cards where they are to wait for each other by themselves. Where they cannot the
    /// processor waits, which is counted.
    pub fn synchronise(&mut self, options: &Options, whole: &Medium) -> Result<(), Error> {
        let wanted = options.synchronisation == Synchronisation::Delayed && options.engine != Engine::Cpu;
        if !wanted || self.len() == 1 || self.on_cards.is_empty() {
            return Ok(());
        }
        self.delayed = waiting::number(&self.cards(), self.heads[0].pool)?;
        if !self.delayed {
            count(&whole.counters.fallbacks, 1);
        }
        Ok(())
    }

    /// Drops what a process that died left in the processor's caches, and notes that the pool is
    /// open.
    pub fn drop_left_lines(&self, whole: &Medium) -> Result<(), Error> {
        let on = self.on_cards.iter().zip(self.parts(whole));
        on.into_iter().try_for_each(|(on_card, part)| on_card.drop_left_lines(part.medium, part.head))
    }

    /// The pool is closed, and no line of it is dirty.
    pub fn note_closed(&self, whole: &Medium) {
        self.on_cards.iter().zip(self.parts(whole)).for_each(|(on_card, part)| on_card.note_closed(part.medium));
    }

    /// The medium of who posts commands, where that is to be another one than that of who posts
    /// none: see [`OnCard::for_commands`].
    pub fn for_commands(&self, whole: &Arc<Medium>) -> Result<Arc<Medium>, Error> {
        match &self.on_cards[..] {
            [on_card] => {
                let backing = on_card.for_commands(&self.heads[0])?;
                Ok(Arc::new(Medium::counted_with(backing, whole)))
            }
            _ => Ok(whole.clone()),
        }
    }

    /// Opens the log of a thread number, on the cards where that is asked for.
    pub fn open_lane(&self, engine: Engine, whole: &Medium, thread: u16, states: &[LaneState]) -> Result<Lane, Error> {
        let cpu = Box::new(CpuExecutor::default());
        let mut lane = Lane::new(&self.heads, self.stripes, self.media.clone(), thread, states, cpu);
        lane.format(whole)?;
        let on_cards = match engine {
            Engine::Cpu => None,
            Engine::Auto | Engine::Card => self.map_lane(thread, lane.last_txid())?,
        };
        if on_cards.is_none() && engine != Engine::Cpu && !self.on_cards.is_empty() {
            count(&whole.counters.fallbacks, 1);
        }
        let cpu = || Box::new(CpuExecutor::default()) as Box<dyn Executor>;
        let mut parts = on_cards.unwrap_or_else(|| self.heads.iter().map(|_| cpu()).collect());
        lane.executor = match parts.pop() {
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                let (media, memories) = (self.media.clone(), self.memories.clone());
                let delayed = self.delayed && parts[0].writes_around_the_cache();
                Box::new(StripedExecutor::new(parts, media, memories, self.stripes, delayed))
            }
        };
        Ok(lane)
    }

    /// Maps a lane into every card. `None` where there are none, or where the table of one is full:
    /// then the others have none of it either.
    fn map_lane(&self, thread: u16, committed: u64) -> Result<Option<Vec<Box<dyn Executor>>>, Error> {
        let mut parts: Vec<Box<dyn Executor>> = Vec::new();
        for (on, head) in self.on_cards.iter().zip(&self.heads) {
            match CardExecutor::map(on.card.clone(), head, on.base, thread, committed)? {
                Some(part) => parts.push(Box::new(part)),
                None => return Ok(None),
            }
        }
        Ok((!parts.is_empty()).then_some(parts))
    }
}

/// The medium of a member, whose counters are those of the whole.
fn medium_of(member: &Arc<Member>, whole: &Medium) -> Medium {
    Medium::counted_with(Backing::Other(Box::new(member.clone())), whole)
}

/// A memory for each member, and where it is.
pub(crate) struct Memories {
    pub memories: Vec<Backing>,
    pub locations: Vec<String>,
    pub on_cards: Vec<OnCard>,
}

impl Memories {
    /// Memories that will be found at these places.
    pub fn named(locations: &[String]) -> Memories {
        Memories { memories: Vec::new(), locations: locations.to_vec(), on_cards: Vec::new() }
    }

    /// The memory of the next place.
    pub fn push(&mut self, (memory, on_card): (Backing, OnCard)) {
        self.memories.push(memory);
        self.on_cards.push(on_card);
    }

    /// Memories that have no names.
    pub fn unnamed(memories: Vec<Box<dyn Memory>>, location: &str) -> Memories {
        let locations = (0..memories.len()).map(|number| format!("{location}, member {number}")).collect();
        Memories { memories: memories.into_iter().map(Backing::Other).collect(), locations, on_cards: Vec::new() }
    }

    /// Writes the members of a new pool. The heads come last: until then every member is an
    /// unfinished one.
    pub fn create(self, heads: Vec<PoolHead>) -> Result<(Medium, Members), Error> {
        let stripes = Stripes::of(&heads[0]);
        let memories = self.memories.into_iter().map(Member::new).collect();
        let (whole, mut members) = Members::striped(stripes, heads, memories, self.locations, self.on_cards);
        let media = members.media.clone();
        media.iter().try_for_each(format::blank)?;
        media.iter().zip(&members.heads).for_each(|(medium, head)| format::clear(medium, head));
        let heap = *stripes.whole();
        whole.put_zeros(heap.heap(), HeapLayout::of(&heap).first - heap.heap());
        whole.drain()?;
        for (medium, head) in media.iter().zip(&mut members.heads) {
            *head = format::put_head(medium, *head)?;
        }
        Ok((whole, members))
    }

    /// Reads the heads, and refuses what does not belong together before anything is changed.
    pub fn open(self) -> Result<(Medium, Members), Error> {
        let memories: Vec<Arc<Member>> = self.memories.into_iter().map(Member::new).collect();
        let mut heads: Vec<PoolHead> = Vec::new();
        for (number, (memory, location)) in memories.iter().zip(&self.locations).enumerate() {
            let medium = Medium::new(Backing::Other(Box::new(memory.clone())));
            let head = format::read_any(&medium).map_err(|problem| problem.at(location))?;
            check_member(&head, number, memories.len(), heads.first()).map_err(|problem| problem.at(location))?;
            heads.push(head);
        }
        let stripes = Stripes::of(&heads[0]);
        Ok(Members::striped(stripes, heads, memories, self.locations, self.on_cards))
    }
}

/// The heads of the members of a new pool, from that of the first.
pub(crate) fn heads(first: PoolHead) -> Vec<PoolHead> {
    (0..first.members).map(|member| PoolHead { member, ..first }).collect()
}

/// Refuses a pool that is not the member of this number.
fn check_member(head: &PoolHead, number: usize, members: usize, first: Option<&PoolHead>) -> Result<(), Problem> {
    let shape = |head: &PoolHead| {
        (head.pool, head.members, head.stripe, head.ring_bytes, head.lanes, head.pages, head.spare, head.bytes)
    };
    let fits = usize::from(head.members) == members && usize::from(head.member) == number;
    if fits && first.is_none_or(|first| shape(first) == shape(head)) {
        return Ok(());
    }
    let set = first.map_or(String::new(), |first| format!(" of the striped pool {:#010x}", first.pool));
    Err(Problem::OtherMember { found: format::describe(head), wanted: format!("member {number} of {members}{set}") })
}

/// Refuses to remove what is not the member of this number, or an unfinished one.
pub(crate) fn check_removable(memory: Backing, number: usize, members: usize, location: &str) -> Result<(), Error> {
    let medium = Medium::new(memory);
    match format::read_any(&medium) {
        Ok(head) => check_member(&head, number, members, None).map_err(|problem| problem.at(location)),
        // What was damaged is removed, too, by whoever asks for it.
        Err(Problem::Unfinished | Problem::Truncated { .. } | Problem::Corrupt { .. }) => Ok(()),
        Err(other) => Err(other.at(location)),
    }
}

/// Refuses numbers of members that no pool has.
pub(crate) fn check_count(members: usize) -> Result<(), Problem> {
    if (1..=MAX_DEVICES).contains(&members) {
        return Ok(());
    }
    Err(Problem::BadOption { what: "a pool has 1 to 8 members" })
}
