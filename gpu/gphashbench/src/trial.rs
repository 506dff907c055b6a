//! Histories on the interpreter: a table, operations of many threads on few keys, some order of
//! instructions, and perhaps a crash at any of them, and another one in the recovery.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use nearpm_gphash::{CacheOptions, Op, Outcome, Policy, Request, Table};
use nearpm_gpu::{
    Changes, Choice, CrashPlan, Device, Interpreted, Launch, Medium, Moment, ObjectKind, PmRegion, Schedule, States,
    Stop, Visited, Watch, Watched,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::given::Given;
use crate::linear::State;
use crate::subject::Subject;
use crate::values::{MEMORY, NOBODY, key_of, number_of, value_of};

/// The shape of a history.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Warps, a block each.
    pub warps: u32,
    /// Lanes of each that do something.
    pub lanes: u32,
    /// Operations of each, one after the other.
    pub rounds: u32,
    /// Keys that they share.
    pub keys: u64,
}

impl Shape {
    fn count(&self) -> u32 {
        self.warps * self.lanes * self.rounds
    }
}

/// A history to be run, from a seed.
#[derive(Clone)]
pub struct Trial<'s> {
    pub(crate) subject: &'s Subject,
    pub(crate) shape: Shape,
    pub(crate) ops: Vec<(Op, u64)>,
    /// Keys that are there before, with the value 0.
    pub(crate) before: Vec<u64>,
    image: Vec<u8>,
    /// Where the answers are in it.
    pub(crate) answers_at: u64,
}

/// What a run left.
pub(crate) struct Left {
    pub image: Vec<u8>,
    /// Stores to PM and fences of the launch: between two of them a crash leaves the same.
    pub events_made: u64,
    /// Outcomes and values of a batch that came to its end.
    pub answers: Option<(Vec<Outcome>, Vec<u8>)>,
    /// What the table with its cache says of each key in the end.
    pub cached: Option<Vec<State>>,
}

impl Left {
    fn crashed(image: Vec<u8>) -> Left {
        Left { image, events_made: 0, answers: None, cached: None }
    }
}

/// A history that is about to begin.
struct Ready {
    device: Rc<Interpreted>,
    region: PmRegion,
    table: Table,
    given: Given,
    launch: Launch,
}

/// A crash of a history.
#[derive(Clone, Copy, Debug)]
pub struct CrashOf {
    /// The store or fence at which it comes.
    pub event: u64,
    /// What of the stores that are on their way persists.
    pub choice: Choice,
    /// A crash of the recovery: store or fence, and what persists.
    pub again: Option<(u64, Choice)>,
}

/// Crashes that happened.
#[derive(Clone, Copy, Debug)]
pub struct Crashed {
    /// Those of the history that came before its end.
    pub reached: u64,
    /// Those of them whose recovery was crashed, too.
    pub twice: u64,
}

/// What tells tables before a history apart: layout, keys that are there, operations.
type Before = (String, Vec<u64>, usize);

/// Tables that are kept.
const MOST_PREPARED: usize = 256;

thread_local! {
    static PREPARED: RefCell<HashMap<Before, (Vec<u8>, u64)>> = RefCell::default();
}

impl<'s> Trial<'s> {
    /// A history of a seed.
    ///
    /// # Errors
    /// What the table refuses.
    pub fn new(subject: &'s Subject, shape: Shape, seed: u64) -> Result<Trial<'s>> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let kinds = [Op::Get, Op::Get, Op::Insert, Op::Insert, Op::Update, Op::Put, Op::Delete];
        let mut draw = || (kinds[random.random_range(0..kinds.len())], random.random_range(1..=shape.keys));
        let ops = (0..shape.count()).map(|_| draw()).collect();
        let before = (1..=shape.keys).filter(|_| random.random()).collect();
        let mut trial = Trial { subject, shape, ops, before, image: Vec::new(), answers_at: 0 };
        (trial.image, trial.answers_at) = trial.prepared()?;
        Ok(trial)
    }

    /// The same with these operations, on a table that is empty.
    ///
    /// # Errors
    /// What the table refuses.
    pub fn of(subject: &'s Subject, shape: Shape, ops: Vec<(Op, u64)>, before: Vec<u64>) -> Result<Trial<'s>> {
        ensure!(ops.len() == shape.count() as usize, "{} operations for {shape:?}", ops.len());
        let mut trial = Trial { subject, shape, ops, before, image: Vec::new(), answers_at: 0 };
        (trial.image, trial.answers_at) = trial.prepared()?;
        Ok(trial)
    }

    /// The table before the history, with room for its answers. Few of them differ: those that were
    /// made are kept.
    fn prepared(&self) -> Result<(Vec<u8>, u64)> {
        let key = (format!("{:?}", self.subject.layout), self.before.clone(), self.ops.len());
        if let Some(image) = PREPARED.with_borrow(|made| made.get(&key).cloned()) {
            return Ok(image);
        }
        let image = self.prepare()?;
        PREPARED.with_borrow_mut(|made| {
            if made.len() >= MOST_PREPARED {
                made.clear();
            }
            made.insert(key, image.clone());
        });
        Ok(image)
    }

    fn prepare(&self) -> Result<(Vec<u8>, u64)> {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let layout = &self.subject.layout;
        let bytes = (layout.bytes() + 0xc000 + 16 * self.ops.len() as u64).next_multiple_of(4096);
        let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; bytes as usize]))?;
        let table = Table::create(&region, "table", layout, 3)?;
        let insert = |&key: &u64| Request { op: Op::Insert, key: key_of(layout.keys, key), value: value_of(0) };
        let requests: Vec<Request> = self.before.iter().map(insert).collect();
        table.batch(&requests)?;
        drop(table);
        region.add("answers", ObjectKind::Data, 16 * self.ops.len() as u64, |_| Ok(()))?;
        let answers_at = region.find("answers", ObjectKind::Data)?.offset;
        Ok((region.close()?.bytes().to_vec(), answers_at))
    }

    /// Runs it to its end. Gives the stores and fences it made.
    ///
    /// # Errors
    /// A history that is not linearizable, or a table that is not sound.
    pub fn run(&self, schedule: &Schedule) -> Result<u64> {
        let left = self.act(schedule.clone(), Vec::new(), &mut |_| {})?;
        self.judge(&left)?;
        Ok(left.events_made)
    }

    /// Runs it, crashed at each of these stores or fences, and recovers; where there is another
    /// crash, it is of the recovery. Gives how many of them, by their events, the run has come to:
    /// it may take its turns otherwise than one that is not looked at, and end with fewer events.
    ///
    /// # Errors
    /// A history that is not durably linearizable, or a table that is not sound, with its crash.
    pub fn crash(&self, schedule: &Schedule, crashes: &mut [CrashOf]) -> Result<Crashed> {
        crashes.sort_by_key(|crash| crash.event);
        let looks = crashes.iter().map(|crash| (crash.event, crash.choice)).collect();
        let seen = self.looked_at(schedule, looks)?;
        let mut crashed = Crashed { reached: seen.crashes.len() as u64, twice: 0 };
        for (crash, &(_, image)) in crashes.iter().zip(&seen.crashes) {
            let image = seen.images[image].on(&self.image);
            let (image, again) = match crash.again {
                Some((event, choice)) => self.crash_recovery(&image, event, choice)?,
                None => (image, false),
            };
            crashed.twice += u64::from(again);
            self.judge(&Left::crashed(image)).with_context(|| format!("{crash:?}"))?;
        }
        Ok(crashed)
    }

    /// Runs it, crashed at each of its first `events` stores and fences with each of these choices.
    /// Gives how many crashes were different. What they leave is judged where `judged` does not
    /// have it, from another schedule of this trial.
    ///
    /// # Errors
    /// As for [`Trial::crash`].
    pub fn crash_everywhere(
        &self,
        schedule: &Schedule,
        events: u64,
        choices: &[Choice],
        judged: &mut HashSet<Rc<Changes>>,
    ) -> Result<u64> {
        let looks = (1..=events).flat_map(|event| choices.iter().map(move |&choice| (event, choice))).collect();
        let seen = self.looked_at(schedule, looks)?;
        for (at, changes) in seen.images.iter().enumerate().filter(|(_, changes)| !judged.contains(*changes)) {
            self.judge(&Left::crashed(changes.on(&self.image))).with_context(|| {
                let crash = seen.crashes.iter().find(|&&(_, image)| image == at);
                format!("{}, crash {:?}", self.told(schedule), crash.map(|(plan, _)| plan))
            })?;
        }
        judged.extend(seen.images.iter().cloned());
        Ok(seen.images.len() as u64)
    }

    /// What crashes at some stores and fences would leave.
    fn looked_at(&self, schedule: &Schedule, looks: Vec<(u64, Choice)>) -> Result<Watched> {
        let mut seen = Watched::default();
        self.act(schedule.clone(), looks, &mut |device| seen = device.watched())?;
        Ok(seen)
    }

    /// Runs it with a schedule that is written back, for all interleavings. Gives the stores and
    /// fences it made, and what it has left.
    ///
    /// # Errors
    /// As for [`Trial::run`].
    pub fn replay(&self, schedule: &mut Schedule) -> Result<(u64, Changes)> {
        let left = self.act(schedule.clone(), Vec::new(), &mut |device| *schedule = device.schedule())?;
        self.judge(&left)?;
        Ok((left.events_made, Changes::between(&self.image, &left.image)))
    }

    /// Goes through every state that it can come to, whatever the order, and judges each image that
    /// it, or a crash of it, may leave. Gives them.
    ///
    /// # Errors
    /// A history that is not (durably) linearizable, with its order and crash.
    pub fn every_state(&self, states: &States) -> Result<(Visited, Vec<Rc<Changes>>)> {
        ensure!(!self.subject.batched && self.subject.turns == 0, "answers of batches and caches are not in the image");
        let ready = self.ready()?;
        let (mut images, mut recovered) = (Vec::new(), HashMap::new());
        let kernel = self.subject.module.kernel(self.kernel());
        let answers = self.answers_at..self.answers_at + 16 * self.ops.len() as u64;
        let visited = ready.device.every_state(kernel, &ready.launch, states, &self.image, |leaves| {
            let left = Left::crashed(leaves.changes.on(&self.image));
            // Many images have the same table, and differ in the answers.
            let ends = match recovered.entry(leaves.changes.without(&answers)) {
                Entry::Occupied(known) => Ok(known.into_mut()),
                Entry::Vacant(place) => self.recovered(&left.image).map(|ends| place.insert(ends)),
            };
            images.push(leaves.changes.clone());
            ends.and_then(|ends| self.explained(&left, ends)).with_context(|| {
                let told = self.told(&leaves.schedule);
                match (leaves.event, leaves.choice) {
                    (Some(event), Some(choice)) => format!("{told}, crash at event {event}, {choice:?}"),
                    (Some(event), None) => format!("{told}, crash at event {event}, some of what pends survives"),
                    (None, _) => told,
                }
            })
        })?;
        Ok((visited, images))
    }

    /// A table that is open, and the launch of the operations.
    fn ready(&self) -> Result<Ready> {
        let device = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(self.image.clone()))?;
        let mut table = Table::open_with(&region, "table", &self.subject.module)?;
        table.plant(self.subject.holes)?;
        self.warm(&mut table)?;
        let given = Given::new(&region, self.subject.layout.keys, &self.given())?;
        let epoch = table.begin_epoch(self.ops.len() as u64)?;
        let launch = self.launch(&table, &given, epoch, &region)?;
        Ok(Ready { device, region, table, given, launch })
    }

    fn kernel(&self) -> &'static str {
        if self.subject.batched { "gph_run_batch" } else { "gph_run_audited" }
    }

    fn act(&self, schedule: Schedule, looks: Vec<(u64, Choice)>, after: &mut dyn FnMut(&Interpreted)) -> Result<Left> {
        let Ready { device, region, table, given, launch } = self.ready()?;
        let before = device.counts().map_or(0, |counts| counts.persist_events);
        device.set_schedule(schedule);
        let crashed = !looks.is_empty();
        if crashed {
            device.watch(Watch::At(looks), Rc::from(&self.image[..]));
        }
        let outcome = device.launch(self.subject.module.kernel(self.kernel()), &launch);
        after(&device);
        device.set_schedule(Schedule::RoundRobin);
        outcome?;
        let events_made = device.counts().map_or(0, |counts| counts.persist_events) - before;
        let answers = if self.subject.batched { Some(given.answers()?) } else { None };
        let cached = if !crashed && self.subject.turns > 0 {
            table.turn_cache()?;
            Some(self.states(&table)?)
        } else {
            None
        };
        drop((table, given));
        Ok(Left { image: region.close()?.bytes().to_vec(), events_made, answers, cached })
    }

    /// The operations of the launch, with the number of the value that each puts. A batch's warps
    /// are filled up with operations on a key that nobody has.
    fn given(&self) -> Vec<(Op, u64, u32)> {
        let count = if self.subject.batched { 32 * self.shape.warps as usize } else { self.ops.len() };
        let mut given = vec![(Op::Get, NOBODY, 0); count];
        for (at, &(op, key)) in self.ops.iter().enumerate() {
            given[self.place(at)] = (op, key, at as u32 + 1);
        }
        given
    }

    /// Gives the table its cache, and something to cache.
    fn warm(&self, table: &mut Table) -> Result<()> {
        if self.subject.turns == 0 {
            return Ok(());
        }
        table.add_cache(CacheOptions { entries: 8, policy: Policy::Lfu, sampled: 0 })?;
        for _ in 0..self.subject.turns {
            self.states(table)?;
            table.turn_cache()?;
        }
        Ok(())
    }

    /// What is there of each key.
    pub(crate) fn states(&self, table: &Table) -> Result<Vec<State>> {
        let keys = self.subject.layout.keys;
        let get = |key: u64| Request { op: Op::Get, key: key_of(keys, key), value: Vec::new() };
        let answers = table.batch(&(1..=self.shape.keys).map(get).collect::<Vec<_>>())?;
        Ok(answers.into_iter().map(|answer| answer.value.map(|value| number_of(&value))).collect())
    }

    fn launch(&self, table: &Table, given: &Given, epoch: u32, region: &PmRegion) -> Result<Launch> {
        let count = if self.subject.batched { 32 * self.shape.warps } else { self.ops.len() as u32 };
        let data = [given.keys.address().into(), given.values.address().into(), given.found.address().into()];
        let ops = given.ops.address();
        Ok(if self.subject.batched {
            let how = [table.address().into(), epoch.into(), count.into(), 0u32.into(), 0u64.into(), ops.into()];
            let arguments = [&how[..], &data, &[given.outcomes.address().into()]].concat();
            Launch { blocks: self.shape.warps, threads: 32, arguments }
        } else {
            let (lanes, rounds) = (self.shape.lanes, self.shape.rounds);
            let how = [table.address().into(), epoch.into(), count.into(), lanes.into(), rounds.into(), ops.into()];
            let begun = region.address(self.answers_at);
            let last = [given.clock.address().into(), begun.into(), (begun + 8 * u64::from(count)).into()];
            // A warp more fills the cache meanwhile.
            let blocks = self.shape.warps + u32::from(self.subject.turns > 0);
            Launch { blocks, threads: 32, arguments: [&how[..], &data, &last].concat() }
        })
    }

    /// Crashes the recovery of an image, if it comes as far; gives what is there then, and whether
    /// it did.
    fn crash_recovery(&self, image: &[u8], event: u64, choice: Choice) -> Result<(Vec<u8>, bool)> {
        let device = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(image.to_vec()))?;
        device.plan_crash(Some(CrashPlan {
            moment: Moment::Launch { after: 0, stop: Stop::PersistEvent(event) },
            choice,
        }));
        let outcome = Table::open_with(&region, "table", &self.subject.module).map(drop);
        device.plan_crash(None);
        let crashed = match outcome {
            Ok(()) => false,
            Err(nearpm_gphash::Error::Device(nearpm_gpu::Error::Crashed(_))) => true,
            Err(error) => return Err(error.into()),
        };
        Ok((region.close()?.bytes().to_vec(), crashed))
    }

    /// The trial and an order of it, for messages.
    pub(crate) fn told(&self, schedule: &Schedule) -> String {
        format!("{:?}, {:?} before, {schedule}", self.ops, self.before)
    }

    /// The number in the launch of an operation: each warp of a batch has 32.
    pub(crate) fn place(&self, at: usize) -> usize {
        let each = (self.shape.lanes * self.shape.rounds) as usize;
        if self.subject.batched { at / each * 32 + at % each } else { at }
    }
}
