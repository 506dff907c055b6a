//! Which options cannot be had together, or not at a place or on a medium: one table, each of its
//! lines a sentence with what to do instead.

use nearpm_interface::media::PoolHead;

use super::{Caching, Engine, Mechanism, Mode, Options};
use crate::error::{Error, Problem};
use crate::lint::Lint;
use crate::memory::Medium;

/// Where a pool is, or is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediumKind {
    File,
    /// The memories that the program gave.
    Memory,
    Card,
    /// Several of them.
    Cards,
}

/// What the medium of a pool has turned out to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MediumProperties {
    /// Lines reach it in the order of write-backs and fences.
    pub keeps_order: bool,
    /// Programs can store to it.
    pub is_mapped: bool,
    /// Shadow paging has pages to move to.
    pub has_spare_pages: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'o> {
    pub options: &'o Options,
    /// The kind of pool works by offsets, and not by pointer.
    pub by_offsets: bool,
    pub medium_kind: MediumKind,
    /// The pool is being created.
    pub is_new: bool,
    /// As soon as it is known.
    pub medium: Option<MediumProperties>,
}

impl Request<'_> {
    /// The same of a pool whose medium is known.
    pub fn with_medium(mut self, medium: &Medium, head: &PoolHead) -> Self {
        let backing = medium.backing();
        self.medium = Some(MediumProperties {
            keeps_order: backing.keeps_order(),
            is_mapped: backing.is_mapped(),
            has_spare_pages: head.spare > 0,
        });
        self
    }

    /// What the program's loads and stores go to.
    pub fn mode(&self) -> Mode {
        match self.options.mode {
            _ if self.by_offsets => Mode::Offsets,
            _ if self.options.copy_on_write => Mode::InPlace,
            mode => mode.unwrap_or_default(),
        }
    }

    /// Refuses what cannot be had.
    ///
    /// # Errors
    /// [`Problem::BadOption`].
    pub fn check(&self, location: &str) -> Result<(), Error> {
        let refused = REFUSALS.iter().find(|(is_refused, _)| is_refused(self));
        refused.map_or(Ok(()), |&(_, what)| Err(Problem::BadOption { what }.at(location)))
    }

    fn is_on_a_card(&self) -> bool {
        matches!(self.medium_kind, MediumKind::Card | MediumKind::Cards)
    }

    fn is_shared(&self) -> bool {
        self.options.read_only || self.options.copy_on_write
    }

    /// The mechanism that commits will go by; pools that are not written have none.
    fn mechanism(&self) -> Option<Mechanism> {
        self.options.mechanism.filter(|_| !self.options.copy_on_write)
    }

    /// Whether somebody makes copies in this pool.
    fn has_mechanism(&self) -> bool {
        self.by_offsets || self.mechanism().is_some()
    }

    fn medium_has(&self, what: impl FnOnce(MediumProperties) -> bool) -> bool {
        self.medium.is_some_and(what)
    }
}

/// What is refused, and the sentence that says why and what to do instead.
type Refusal = (fn(&Request<'_>) -> bool, &'static str);

/// All of them. The first that fits is told.
const REFUSALS: &[Refusal] = &[
    // Modes.
    (
        |request| request.by_offsets && request.options.mode.is_some_and(|mode| mode != Mode::Offsets),
        "a Pool is read and written by offsets; use DirectPool for Mode::WorkingCopy and Mode::InPlace",
    ),
    (
        |request| !request.by_offsets && request.options.mode == Some(Mode::Offsets),
        "a DirectPool is reached by pointer; use Options::create and Options::open for Mode::Offsets",
    ),
    // Pools that are read, or whose changes are forgotten.
    (
        |request| request.is_new && request.is_shared(),
        "a pool that is created is written (read_only, copy_on_write); create it without them, and open it again",
    ),
    (
        |request| request.medium_kind != MediumKind::File && request.is_shared(),
        "only a pool in a file is opened for reading, or for changes that are forgotten (read_only, copy_on_write); \
               copy it into a file (nearpm pool copy)",
    ),
    (
        |request| request.options.read_only && request.options.power_cut.is_some(),
        "a pool that is only read has no stores that a power cut could take; leave out Options::power_cut",
    ),
    (
        |request| request.options.copy_on_write && (request.options.read_only || request.options.power_cut.is_some()),
        "changes that are forgotten (Options::copy_on_write) go neither with read_only nor with power_cut; use one",
    ),
    (
        |request| request.by_offsets && request.options.copy_on_write,
        "changes that are forgotten (Options::copy_on_write) are made by pointer; use DirectPool",
    ),
    // Mechanisms.
    (
        |request| request.mode() == Mode::InPlace && request.mechanism().is_some(),
        "a mechanism brings commits of a working copy home, and Mode::InPlace has none; use Mode::WorkingCopy",
    ),
    (
        |request| request.medium_kind == MediumKind::Cards && !request.has_mechanism(),
        "records lie in the pool's own chunks, of which several cards have parts that no commit keeps together; use a \
               mechanism (Options::mechanism), as Mechanism::Undo",
    ),
    (
        |request| {
            request.mechanism() == Some(Mechanism::Shadow) && request.medium_has(|medium| !medium.has_spare_pages)
        },
        "it was created without spare pages, which shadow paging needs; use another mechanism, or create it anew \
               with Options::spare_pages",
    ),
    // Who makes the copies.
    (
        |request| request.options.engine == Engine::Card && !request.is_on_a_card() && request.has_mechanism(),
        "the card can work only on a pool that is on it: name it card:NAME/POOL, or use Engine::Cpu",
    ),
    // Places and media.
    (
        |request| request.mode() == Mode::InPlace && request.is_on_a_card(),
        "a card's memory is reached by copies over the link, and Mode::InPlace needs memory that is mapped; use \
               Mode::WorkingCopy",
    ),
    (
        |request| request.mode() == Mode::WorkingCopy && request.options.caching != Caching::WriteBack,
        "a working copy is written home through the processor's cache; use Caching::WriteBack, or Mode::Offsets",
    ),
    (
        |request| request.medium_kind != MediumKind::File && request.options.power_cut.is_some(),
        "Options::power_cut is for pools in files; cut the power of the card itself, or use a TestMemory",
    ),
    (
        |request| request.by_offsets && !matches!(request.options.lint, Lint::Off),
        "the lint looks at stores by pointer, and Mode::Offsets has none; use DirectPool",
    ),
    (
        |request| request.by_offsets && request.options.growth.is_some(),
        "a pool that is reached by offsets keeps its size while it is open; use DirectPool, or nearpm pool resize",
    ),
    (
        |request| request.mode() == Mode::InPlace && request.medium_has(|medium| !medium.keeps_order),
        "on an ordinary file the system writes pages when it likes, so that Mode::InPlace cannot survive a power cut; \
               use Mode::WorkingCopy, or Survives::ProcessCrash",
    ),
    (
        |request| request.mode() == Mode::InPlace && request.medium_has(|medium| !medium.is_mapped),
        "this memory cannot be mapped, which Mode::InPlace needs; use Mode::WorkingCopy",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::memory::PowerCut;
    use crate::options::Growth;

    const POINTERS: [Option<Mode>; 3] = [None, Some(Mode::WorkingCopy), Some(Mode::InPlace)];
    const ENGINES: [Engine; 3] = [Engine::Auto, Engine::Cpu, Engine::Card];
    const MEDIA: [MediumKind; 4] = [MediumKind::File, MediumKind::Memory, MediumKind::Card, MediumKind::Cards];
    const BOTH: [bool; 2] = [false, true];

    fn refused(request: &Request<'_>) -> Option<&'static str> {
        match request.check("here") {
            Ok(()) => None,
            Err(Error::Pool { problem: Problem::BadOption { what }, .. }) => Some(what),
            Err(other) => panic!("{other}"),
        }
    }

    fn mechanisms() -> impl Iterator<Item = Option<Mechanism>> {
        Mechanism::ALL.into_iter().map(Some).chain([None])
    }

    /// Options that differ from the defaults in what the table looks at, one by one and in pairs.
    fn varied() -> Vec<Options> {
        let changes: [fn(Options) -> Options; 7] = [
            |options| options,
            |options| options.read_only(true),
            |options| options.copy_on_write(true),
            |options| options.power_cut(PowerCut::default()),
            |options| options.lint(Lint::Print),
            |options| options.caching(Caching::Uncached),
            |options| options.growth(Growth { by: 0, most: 1 << 30 }),
        ];
        let pairs = changes.into_iter().flat_map(|one| changes.map(|other| other(one(Options::new()))));
        pairs.collect()
    }

    fn media() -> Vec<Option<MediumProperties>> {
        let all = |keeps_order, is_mapped, has_spare_pages| {
            Some(MediumProperties { keeps_order, is_mapped, has_spare_pages })
        };
        vec![None, all(true, true, true), all(false, true, true), all(true, false, true), all(true, true, false)]
    }

    /// No line is hidden by those above it, and each says what to do instead.
    #[test]
    fn every_line_is_told_and_names_a_remedy() {
        let mut told = BTreeSet::new();
        for options in varied() {
            for (mode, mechanism) in POINTERS
                .into_iter()
                .chain([Some(Mode::Offsets)])
                .flat_map(|mode| mechanisms().map(move |by| (mode, by)))
            {
                for engine in ENGINES {
                    let options = Options { mode, mechanism, engine, ..options.clone() };
                    for (medium_kind, by_offsets) in MEDIA.into_iter().flat_map(|kind| BOTH.map(|by| (kind, by))) {
                        for (medium, is_new) in media().into_iter().flat_map(|medium| BOTH.map(|new| (medium, new))) {
                            let request = Request { options: &options, by_offsets, medium_kind, is_new, medium };
                            told.extend(refused(&request));
                        }
                    }
                }
            }
        }
        let all: BTreeSet<_> = REFUSALS.iter().map(|&(_, what)| what).collect();
        assert_eq!(told, all);
        for what in all {
            let remedy = what.split_once("; ").or_else(|| what.split_once(": ")).expect("a reason, and a remedy").1;
            let verbs = ["use ", "copy it", "create it", "leave out ", "cut the power", "name it"];
            assert!(verbs.iter().any(|verb| remedy.contains(verb)), "{what}");
        }
    }

    /// The table of `docs/choosing.md`: which mechanism can be had in which mode, on which medium.
    #[test]
    fn a_mode_a_mechanism_and_a_place_go_together_or_not() {
        for (mode, mechanism) in POINTERS.into_iter().flat_map(|mode| mechanisms().map(move |by| (mode, by))) {
            for (engine, medium_kind) in
                ENGINES.into_iter().flat_map(|engine| MEDIA.map(|medium_kind| (engine, medium_kind)))
            {
                let options = Options { mode, mechanism, engine, ..Options::new() };
                let request = Request { options: &options, by_offsets: false, medium_kind, is_new: true, medium: None };
                let is_in_place = mode == Some(Mode::InPlace);
                let is_on_a_card = matches!(medium_kind, MediumKind::Card | MediumKind::Cards);
                let has_medium = !is_in_place || !is_on_a_card;
                let has_mechanism = if medium_kind == MediumKind::Cards {
                    mechanism.is_some()
                } else {
                    mechanism.is_none() || !is_in_place
                };
                let has_engine = mechanism.is_none() || engine != Engine::Card || is_on_a_card;
                let can_be_had = has_medium && has_mechanism && has_engine;
                assert_eq!(
                    refused(&request).is_none(),
                    can_be_had,
                    "{mode:?}, {mechanism:?}, {engine:?}, {medium_kind:?}"
                );

                let options = Options { mode: None, ..options.clone() };
                let request = Request { options: &options, by_offsets: true, ..request };
                let can_be_had = engine != Engine::Card || is_on_a_card;
                assert_eq!(
                    refused(&request).is_none(),
                    can_be_had,
                    "offsets, {mechanism:?}, {engine:?}, {medium_kind:?}"
                );
            }
        }
    }
}
