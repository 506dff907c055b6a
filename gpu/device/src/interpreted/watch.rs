//! What crashes would leave at many moments of one run, which goes on: a run for each of them would
//! do the same work again and again.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use nearpm_ptx::{Choice, Counts, Ended, Entry, Gpu, Launch, Persistence, PmRange, Run, Stop};

use super::launch::add;
use super::tear::tear_at;
use super::{CrashPlan, Moment, State};
use crate::error::Error;

/// Which moments are looked at. They are numbered from 1 through all launches (each of their
/// persist events is one) and the processor's stores.
#[derive(Clone, Debug)]
pub enum Watch {
    /// Some of all.
    Every {
        /// Every so many moments: 1 for all.
        every: u64,
        /// Moments before the first of them.
        skip: u64,
        /// What survives of the stores that were pending.
        choices: Vec<Choice>,
        /// Whether each moment has all of the choices, or one of them by turns.
        all_choices: bool,
    },
    /// These moments, rising, each with what survives.
    At(Vec<(u64, Choice)>),
}

impl Watch {
    /// The first moment behind `moment` that is looked at.
    fn next_after(&self, moment: u64) -> Option<u64> {
        match self {
            Watch::Every { every, skip, .. } => Some(match moment.checked_sub(skip + 1) {
                None => skip + 1,
                Some(behind) => skip + 1 + (behind / every.max(&1) + 1) * every.max(&1),
            }),
            Watch::At(moments) => moments.get(moments.partition_point(|&(at, _)| at <= moment)).map(|&(at, _)| at),
        }
    }
}

/// Persistent memory as what it has that another image has not: numbers of words of 8 bytes, and
/// the words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Changes(Vec<(u32, u64)>);

/// Bytes that are compared at a time.
const PIECE: usize = 4096;

impl Changes {
    /// What `image` has that `base` has not; both are as long.
    pub fn between(base: &[u8], image: &[u8]) -> Changes {
        let mut changes = Vec::new();
        let pieces = base.chunks(PIECE).zip(image.chunks(PIECE)).enumerate();
        for (piece, (old, new)) in pieces.filter(|(_, (old, new))| old != new) {
            let words = old.chunks(8).zip(new.chunks(8)).enumerate();
            let changed = words.filter(|(_, (old, new))| old != new);
            changes.extend(changed.map(|(word, (_, new))| {
                let mut bytes = [0; 8];
                bytes[..new.len()].copy_from_slice(new);
                ((piece * (PIECE / 8) + word) as u32, u64::from_le_bytes(bytes))
            }));
        }
        Changes(changes)
    }

    /// Those that are not in these bytes.
    #[must_use]
    pub fn without(&self, bytes: &Range<u64>) -> Changes {
        let lies_outside = |&&(word, _): &&(u32, u64)| !bytes.contains(&(8 * u64::from(word)));
        Changes(self.0.iter().filter(lies_outside).copied().collect())
    }

    /// The image that `base` is with them.
    pub fn on(&self, base: &[u8]) -> Vec<u8> {
        let mut image = base.to_vec();
        for &(word, value) in &self.0 {
            let place = &mut image[8 * word as usize..];
            let bytes = place.len().min(8);
            place[..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        image
    }
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Crashes, each with what replays it, and the number of the image that it leaves.
    pub crashes: Vec<(CrashPlan, usize)>,
    /// Images, no two of them the same: many crashes leave one.
    pub images: Vec<Rc<Changes>>,
    /// Moments that passed, looked at or not.
    pub moments: u64,
}

/// A watch that is set.
pub(super) struct Watching {
    watch: Watch,
    base: Rc<[u8]>,
    seen: Watched,
    known: HashMap<Rc<Changes>, usize>,
    turns: usize,
}

impl Watching {
    pub fn new(watch: Watch, base: Rc<[u8]>) -> Watching {
        Watching { watch, base, seen: Watched::default(), known: HashMap::new(), turns: 0 }
    }

    pub fn ended(self) -> Watched {
        self.seen
    }

    /// Persist events from now to the next that is looked at.
    fn distance(&self, now: u64) -> Option<u64> {
        self.watch.next_after(now).map(|next| next - self.seen.moments)
    }

    /// The choices of a moment that is looked at.
    fn choices(&mut self, moment: u64) -> Vec<Choice> {
        match &self.watch {
            Watch::Every { choices, all_choices: false, .. } if !choices.is_empty() => {
                self.turns += 1;
                vec![choices[(self.turns - 1) % choices.len()]]
            }
            Watch::Every { choices, .. } => choices.clone(),
            Watch::At(moments) => moments.iter().filter(|&&(at, _)| at == moment).map(|&(_, choice)| choice).collect(),
        }
    }

    fn keep(&mut self, plan: CrashPlan, image: &[u8]) {
        let changes = Rc::new(Changes::between(&self.base, image));
        let number = *self.known.entry(changes).or_insert_with_key(|changes| {
            self.seen.images.push(changes.clone());
            self.seen.images.len() - 1
        });
        self.seen.crashes.push((plan, number));
    }
}

impl State {
    /// A launch that is looked at as it goes on.
    pub(super) fn launch_watched(
        &mut self,
        mut watching: Watching,
        entry: &Entry,
        shape: &Launch,
        number: u64,
    ) -> Result<Watching, Error> {
        let before = watching.seen.moments;
        let counts = self.launch_with_stops(entry, shape, watching.distance(before), |state, event| {
            for choice in watching.choices(before + event) {
                let image = state.image_after(choice)?;
                let moment = Moment::Launch { after: number, stop: Stop::PersistEvent(event) };
                watching.keep(CrashPlan { moment, choice }, &image);
            }
            Ok(watching.distance(before + event))
        })?;
        watching.seen.moments += counts.persist_events;
        Ok(watching)
    }

    /// Runs a launch to its end, and stops on its way at one of its stores and fences, then where
    /// `look` says, which is called at each.
    fn launch_with_stops(
        &mut self,
        entry: &Entry,
        shape: &Launch,
        first: Option<u64>,
        mut look: impl FnMut(&mut State, u64) -> Result<Option<u64>, Error>,
    ) -> Result<Counts, Error> {
        let failed = |error: nearpm_ptx::LaunchError| Error::Kernel(error.to_string());
        let persistence = Persistence::Tracked;
        let mut run = Run { schedule: self.schedule.clone(), persistence, ..Run::default() };
        let mut stop = first;
        run.stop_at = stop.map_or(Stop::Never, Stop::PersistEvent);
        let mut outcome = self.gpu.launch(entry, shape, &mut run).map_err(failed)?;
        while let (Ended::Stopped, Some(event)) = (outcome.ended, stop) {
            stop = look(self, event)?;
            run.stop_at = stop.map_or(Stop::Never, Stop::PersistEvent);
            outcome = self.gpu.resume(&mut run).map_err(failed)?;
        }
        self.schedule = run.schedule;
        add(&mut self.counts, &outcome.counts);
        Ok(outcome.counts)
    }

    /// A store of the processor to a range is about to happen.
    pub(super) fn watch_store(&self, watching: &mut Watching, range: PmRange, offset: u64, bytes: &[u8]) {
        let looked_at = watching.distance(watching.seen.moments) == Some(1);
        watching.seen.moments += 1;
        if !looked_at || Some(&range) != self.ranges.first() {
            return;
        }
        for choice in watching.choices(watching.seen.moments) {
            let mut image = self.gpu.persistent(&range).to_vec();
            tear_at(&mut image, bytes, offset, choice);
            self.tear_copies(&mut image, choice);
            watching.keep(CrashPlan { moment: Moment::Store { after: self.stores }, choice }, &image);
        }
    }

    /// What a crash in a launch now would leave in the first range.
    fn image_after(&self, choice: Choice) -> Result<Vec<u8>, Error> {
        let mut image = first_image(&self.gpu, choice)?;
        self.tear_copies(&mut image, choice);
        Ok(image)
    }

    /// Some of the copies to the first range that go on.
    fn tear_copies(&self, image: &mut [u8], choice: Choice) {
        for (range, offset, copied) in self.copies() {
            if Some(&range) == self.ranges.first() {
                tear_at(image, &copied, offset, choice);
            }
        }
    }
}

/// What a crash now would leave in the first range.
pub(super) fn first_image(gpu: &Gpu, choice: Choice) -> Result<Vec<u8>, Error> {
    let images = gpu.crash_image(choice).map_err(|error| Error::Kernel(error.to_string()))?;
    Ok(images.into_iter().next().unwrap_or_default())
}
