//! Histories on the interpreter: a table, operations of many threads on few keys, some order of instructions, and perhaps a crash at any of them, and
//! another one in the recovery.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use nearpm_gphash::{
    CacheOptions, Design, Layout, Op, Outcome, Policy, Request, Table, level_kernels, level_kernels_cached,
    level_kernels_with_holes, tag_kernels, tag_kernels_cached, tag_kernels_with_holes,
};
use nearpm_gpu::{
    Buffer, Choice, CrashPlan, Device, Interpreted, Launch, Medium, Module, Moment, ObjectKind, PmRegion, Schedule,
    Stop,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::linear::{Answered, Event, State, is_linearizable};

/// Volatile memory of the interpreted devices.
pub(crate) const MEMORY: u64 = 8 << 20;
/// Bytes of a value: one unit, which a reader can tell from a part of it.
pub(crate) const VALUE: u32 = 16;

/// What is tried.
#[derive(Clone)]
pub struct Subject {
    /// The table.
    pub layout: Layout,
    /// Its kernels.
    pub module: Module,
    /// Holes that are planted in them.
    pub holes: u32,
    /// Whether all operations are one batch, of which answers count at its end; else each answer is out at once.
    pub batched: bool,
    /// Turns of a cache before the operations: behind the first one it is being filled meanwhile, behind others it is in use, too. 0: no cache.
    pub turns: u32,
}

impl Subject {
    /// A small table of a design: a few buckets that all keys share.
    pub fn small(design: Design) -> Subject {
        let (layout, module) = match design {
            Design::Levels => (Layout { buckets: 2, spares: 256, ..Layout::levels(1, VALUE) }, level_kernels()),
            Design::Tags => {
                let spares = 64;
                (
                    Layout { width: 8, hashes: 2, buckets: 2, windows: 1, stash: 1, spares, ..Layout::tags(1, VALUE) },
                    tag_kernels(),
                )
            }
        };
        Subject { layout, module: module.clone(), holes: 0, batched: false, turns: 0 }
    }

    /// The same with holes.
    #[must_use]
    pub fn with_holes(mut self, holes: u32) -> Subject {
        let module = match self.layout.design {
            Design::Levels => level_kernels_with_holes(),
            Design::Tags => tag_kernels_with_holes(),
        };
        (self.module, self.holes) = (module.clone(), holes);
        self
    }

    /// The same with a bucket alone that all keys share, and nothing besides: what exhaustive schedules go through.
    #[must_use]
    pub fn one_bucket(mut self) -> Subject {
        self.layout = Layout { levels: 1, hashes: 1, width: 8, buckets: 1, stash: 0, ..self.layout };
        self
    }

    /// The same with room to double twice; of design P with a slot a bucket, so that keys may find no place.
    #[must_use]
    pub fn growing(mut self) -> Subject {
        self.layout = self.layout.growing(2);
        if self.layout.design == Design::Levels {
            self.layout = Layout { width: 1, buckets: 8, ..self.layout };
        }
        self
    }

    /// The same with a cache, behind so many turns of it.
    #[must_use]
    pub fn cached(mut self, turns: u32) -> Subject {
        if self.holes == 0 {
            self.module = match self.layout.design {
                Design::Levels => level_kernels_cached().clone(),
                Design::Tags => tag_kernels_cached().clone(),
            };
        }
        self.turns = turns;
        self
    }

    /// The same with all operations as one batch.
    #[must_use]
    pub fn batched(mut self) -> Subject {
        self.batched = true;
        self
    }
}

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
    subject: &'s Subject,
    shape: Shape,
    ops: Vec<(Op, u64)>,
    /// Keys that are there before, with the value 0.
    before: Vec<u64>,
    image: Vec<u8>,
}

/// What a run left.
struct Left {
    image: Vec<u8>,
    /// Whether it came to its end.
    finished: bool,
    /// Stores to PM and fences of the launch: between two of them a crash leaves the same.
    events_made: u64,
    /// Outcomes and values of a batch that came to its end.
    answers: Option<(Vec<Outcome>, Vec<u8>)>,
    /// What the table with its cache says of each key in the end.
    cached: Option<Vec<State>>,
}

/// The key of operations that fill up a batch's warps.
const NOBODY: u64 = 0x7777;

fn value_of(number: u32) -> Vec<u8> {
    [number, !number, number.wrapping_mul(0x9e37_79b1), 0x6870_676e].into_iter().flat_map(u32::to_le_bytes).collect()
}

fn number_of(value: &[u8]) -> u32 {
    let number = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
    if value_of(number) == value { number } else { u32::MAX }
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
        let mut trial = Trial { subject, shape, ops, before, image: Vec::new() };
        trial.image = trial.prepared()?;
        Ok(trial)
    }

    /// The same with these operations, on a table that is empty.
    ///
    /// # Errors
    /// What the table refuses.
    pub fn of(subject: &'s Subject, shape: Shape, ops: Vec<(Op, u64)>, before: Vec<u64>) -> Result<Trial<'s>> {
        ensure!(ops.len() == shape.count() as usize, "{} operations for {shape:?}", ops.len());
        let mut trial = Trial { subject, shape, ops, before, image: Vec::new() };
        trial.image = trial.prepared()?;
        Ok(trial)
    }

    fn prepared(&self) -> Result<Vec<u8>> {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let layout = &self.subject.layout;
        let bytes = (layout.bytes() + (1 << 16) + 16 * self.ops.len() as u64).next_multiple_of(4096);
        let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; bytes as usize]))?;
        let table = Table::create(&region, "table", layout, 3)?;
        let requests: Vec<Request> =
            self.before.iter().map(|&key| Request { op: Op::Insert, key: key.into(), value: value_of(0) }).collect();
        table.batch(&requests)?;
        drop(table);
        region.add("answers", ObjectKind::Data, 16 * self.ops.len() as u64, |_| Ok(()))?;
        Ok(region.close()?.bytes().to_vec())
    }

    /// Runs it to its end. Gives the stores and fences it made.
    ///
    /// # Errors
    /// A history that is not linearizable, or a table that is not sound.
    pub fn run(&self, schedule: &Schedule) -> Result<u64> {
        let left = self.act(schedule.clone(), None, &mut |_| {})?;
        ensure!(left.finished, "it crashed without a plan");
        self.judge(&left)?;
        Ok(left.events_made)
    }

    /// Runs it until a store to PM or a fence, crashes it, and recovers; with `again` the recovery is crashed, too.
    ///
    /// # Errors
    /// A history that is not durably linearizable, or a table that is not sound.
    pub fn crash(&self, schedule: &Schedule, event: u64, choice: Choice, again: Option<(u64, Choice)>) -> Result<()> {
        let plan = CrashPlan { moment: Moment::Launch { after: 0, stop: Stop::PersistEvent(event) }, choice };
        let mut left = self.act(schedule.clone(), Some(plan), &mut |_| {})?;
        if let Some((event, choice)) = again {
            left.image = self.crash_recovery(&left.image, event, choice)?;
        }
        self.judge(&left)
    }

    /// Runs it with a schedule that is written back, for all interleavings.
    ///
    /// # Errors
    /// As for [`Trial::run`] and [`Trial::crash`].
    pub fn replay(&self, schedule: &mut Schedule, crash: Option<(u64, Choice)>) -> Result<u64> {
        let plan = crash.map(|(event, choice)| CrashPlan {
            moment: Moment::Launch { after: 0, stop: Stop::PersistEvent(event) },
            choice,
        });
        let left = self.act(schedule.clone(), plan, &mut |after| *schedule = after)?;
        self.judge(&left)?;
        Ok(left.events_made)
    }

    fn act(&self, schedule: Schedule, plan: Option<CrashPlan>, after: &mut dyn FnMut(Schedule)) -> Result<Left> {
        let device = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(self.image.clone()))?;
        let mut table = Table::open_with(&region, "table", &self.subject.module)?;
        table.plant(self.subject.holes)?;
        self.warm(&mut table)?;
        let given = Given::new(&region, self)?;
        let epoch = table.begin_epoch(self.ops.len() as u64)?;
        let launch = self.launch(&table, &given, epoch, &region)?;
        let kernel = if self.subject.batched { "gph_run_batch" } else { "gph_run_audited" };
        let before = device.counts().map_or(0, |counts| counts.persist_events);
        device.set_schedule(schedule);
        device.plan_crash(plan);
        let outcome = device.launch(self.subject.module.kernel(kernel), &launch);
        after(device.schedule());
        device.set_schedule(Schedule::RoundRobin);
        device.plan_crash(None);
        let finished = match outcome {
            Ok(()) => true,
            Err(nearpm_gpu::Error::Crashed(_)) => false,
            Err(error) => return Err(error.into()),
        };
        let events_made = device.counts().map_or(0, |counts| counts.persist_events) - before;
        let answers = if finished && self.subject.batched { Some(given.answers()?) } else { None };
        let cached = if finished && self.subject.turns > 0 {
            table.turn_cache()?;
            Some(self.states(&table)?)
        } else {
            None
        };
        drop((table, given));
        Ok(Left { image: region.close()?.bytes().to_vec(), finished, events_made, answers, cached })
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
    fn states(&self, table: &Table) -> Result<Vec<State>> {
        let get = |key: u64| Request { op: Op::Get, key: key.into(), value: Vec::new() };
        let answers = table.batch(&(1..=self.shape.keys).map(get).collect::<Vec<_>>())?;
        Ok(answers.into_iter().map(|answer| answer.value.map(|value| number_of(&value))).collect())
    }

    fn launch(&self, table: &Table, given: &Given, epoch: u32, region: &PmRegion) -> Result<Launch> {
        let answers = region.find("answers", ObjectKind::Data)?.offset;
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
            let begun = region.address(answers);
            let last = [given.clock.address().into(), begun.into(), (begun + 8 * u64::from(count)).into()];
            // A warp more fills the cache meanwhile.
            let blocks = self.shape.warps + u32::from(self.subject.turns > 0);
            Launch { blocks, threads: 32, arguments: [&how[..], &data, &last].concat() }
        })
    }

    /// Crashes the recovery of an image; gives what is there then.
    fn crash_recovery(&self, image: &[u8], event: u64, choice: Choice) -> Result<Vec<u8>> {
        let device = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(image.to_vec()))?;
        device.plan_crash(Some(CrashPlan {
            moment: Moment::Launch { after: 0, stop: Stop::PersistEvent(event) },
            choice,
        }));
        let outcome = Table::open_with(&region, "table", &self.subject.module).map(drop);
        device.plan_crash(None);
        match outcome {
            Ok(()) => {}
            Err(nearpm_gphash::Error::Device(nearpm_gpu::Error::Crashed(_))) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(region.close()?.bytes().to_vec())
    }

    /// Recovers what is there, and compares it with the answers.
    fn judge(&self, left: &Left) -> Result<()> {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device, Medium::of_bytes(left.image.clone()))?;
        let table = Table::open_with(&region, "table", &self.subject.module)?;
        let found = table.check()?;
        ensure!(found.is_sound(), "the table is not sound: {found}");
        let events = self.events(left, &region)?;
        let ends = self.states(&table)?;
        if let Some(cached) = &left.cached {
            ensure!(*cached == ends, "the cache has {cached:?}, the table {ends:?}");
        }
        for (key, end) in (1..).zip(ends) {
            let before = self.before.contains(&key).then_some(0);
            let of_key: Vec<Event> = events.iter().filter(|event| event.key == key).copied().collect();
            ensure!(
                is_linearizable(&of_key, before, Some(end)),
                "key {key}, {before:?} before and {end:?} at the end: no order explains\n{}",
                of_key.iter().map(|event| format!("  {event:?}\n")).collect::<String>()
            );
        }
        Ok(())
    }

    /// The trial and an order of it, for messages.
    pub(crate) fn told(&self, schedule: &Schedule) -> String {
        format!("{:?}, {:?} before, {schedule}", self.ops, self.before)
    }

    /// The number in the launch of an operation: each warp of a batch has 32.
    fn place(&self, at: usize) -> usize {
        let each = (self.shape.lanes * self.shape.rounds) as usize;
        if self.subject.batched { at / each * 32 + at % each } else { at }
    }

    fn events(&self, left: &Left, region: &PmRegion) -> Result<Vec<Event>> {
        let offset = region.find("answers", ObjectKind::Data)?.offset;
        let bytes = region.read_vec(offset, 16 * self.ops.len())?;
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let (begun, answers) = words.split_at(self.ops.len());
        self.ops
            .iter()
            .enumerate()
            .map(|(at, &(op, key))| {
                let answer = match &left.answers {
                    // A batch's operations are all at the same time.
                    Some((outcomes, found)) => {
                        let place = self.place(at);
                        let value = number_of(&found[place * VALUE as usize..][..VALUE as usize]);
                        Some(Answered { at: 1, outcome: outcomes[place], value })
                    }
                    None if answers[at] == 0 => None,
                    None => {
                        let outcome = Outcome::from_code((answers[at] >> 32) as u32 & 0xff);
                        let outcome =
                            outcome.with_context(|| format!("operation {at} left the answer {:#x}", answers[at]))?;
                        Some(Answered { at: answers[at] >> 40, outcome, value: answers[at] as u32 })
                    }
                };
                Ok(Event { op, key, value: at as u32 + 1, begun: begun[at], answer })
            })
            .collect()
    }
}

/// A history's operations in the device's memory.
struct Given {
    ops: Buffer,
    keys: Buffer,
    values: Buffer,
    found: Buffer,
    outcomes: Buffer,
    clock: Buffer,
}

impl Given {
    fn new(region: &PmRegion, trial: &Trial<'_>) -> Result<Given> {
        let device = region.device();
        let count = match trial.subject.batched {
            true => 32 * trial.shape.warps as usize,
            false => trial.ops.len(),
        };
        // A batch's warps are filled up with operations on a key that nobody has.
        let mut ops = vec![(Op::Get, NOBODY, 0); count];
        for (at, &(op, key)) in trial.ops.iter().enumerate() {
            ops[trial.place(at)] = (op, key, at as u32 + 1);
        }
        let bytes = |all: Vec<u8>| -> Result<Buffer> {
            let buffer = Buffer::new(device, all.len() as u64)?;
            buffer.upload(&all)?;
            Ok(buffer)
        };
        Ok(Given {
            ops: Buffer::of_words(device, &ops.iter().map(|&(op, ..)| op as u32).collect::<Vec<_>>())?,
            keys: bytes(ops.iter().flat_map(|&(_, key, _)| key.to_le_bytes()).collect())?,
            values: bytes(ops.iter().flat_map(|&(.., value)| value_of(value)).collect())?,
            found: Buffer::zeroed(device, count as u64 * u64::from(VALUE))?,
            outcomes: Buffer::zeroed(device, 4 * count as u64)?,
            clock: Buffer::zeroed(device, 4)?,
        })
    }

    fn answers(&self) -> Result<(Vec<Outcome>, Vec<u8>)> {
        let codes = self.outcomes.download_words()?;
        let outcomes =
            codes.into_iter().map(|code| Outcome::from_code(code).with_context(|| format!("the outcome {code}")));
        Ok((outcomes.collect::<Result<_>>()?, self.found.download()?))
    }
}
