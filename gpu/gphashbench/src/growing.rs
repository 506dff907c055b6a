//! Tables that grow, crashed at any store and fence of it, and of the recovery: nothing that was
//! there is lost, nothing is there twice.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use nearpm_gphash::{Answer, Design, Error, Key, Op, Outcome, Request, Table};
use nearpm_gpu::{CrashPlan, Device, Error as DeviceError, Interpreted, Medium, Moment, PmRegion, Stop};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::campaign::{Tally, choice};
use crate::subject::Subject;
use crate::values::{MEMORY, VALUE};

/// The pairs of a table, by key.
type Pairs = BTreeMap<u64, u8>;

fn value_of(number: u8) -> Vec<u8> {
    vec![number; VALUE as usize]
}

fn put(op: Op, key: u64, number: u8) -> Request {
    Request { op, key: key.into(), value: if op.puts() { value_of(number) } else { Vec::new() } }
}

/// A table of a seed that is filled, grows between batches of readers and writers, and is crashed
/// in each step, `crashes` times.
///
/// # Errors
/// The first crash behind which the table is not what it must be, with its seed.
pub fn history(subject: &Subject, seed: u64, crashes: u64, tally: &mut Tally) -> Result<()> {
    let mut run = Run { subject, random: ChaCha8Rng::seed_from_u64(seed ^ 0x6772_6f77) };
    let (mut image, mut pairs) = run.filled().with_context(|| format!("seed {seed}"))?;
    tally.histories += 1;
    let mut step = 0;
    while run.can_grow(&image)? {
        step += 1;
        let said = || format!("seed {seed}, step {step}");
        for _ in 0..crashes {
            let (left, crashed) = run.crashed(&image, |table| table.grow(1)).with_context(said)?;
            tally.crashes += u64::from(crashed);
            let (left, again) = if run.random.random() { run.crashed_recovery(left)? } else { (left, false) };
            tally.twice += u64::from(crashed && again);
            run.judge(&left, |key, found| found == pairs.get(&key).copied()).with_context(said)?;
        }
        let before = pairs.clone();
        let (grown, _) = run.run(&image, None, |table| table.grow(1)).with_context(said)?;
        let stays = run.in_use(&grown)? == run.in_use(&image)?;
        image = grown;
        if stays {
            run.judge(&image, |key, found| found == pairs.get(&key).copied()).with_context(said)?;
            return Ok(());
        }
        let requests = run.requests();
        let left = match run.crashed(&image, |table| table.batch(&requests).map(drop)) {
            Ok((left, _)) => left,
            // A table that has grown as far as it can may be full again: what follows would depend
            // on which key found no slot.
            Err(error) if is_full(&error) => return Ok(()),
            Err(error) => return Err(error).with_context(said),
        };
        image = match run.batch(&image, &requests, &mut pairs) {
            Err(error) if is_full(&error) => return Ok(()),
            outcome => outcome.with_context(said)?,
        };
        // Nothing of a batch that was cut off was answered: each operation has happened or not.
        let either = |key, found| found == before.get(&key).copied() || found == pairs.get(&key).copied();
        run.judge(&left, either).with_context(said)?;
    }
    ensure!(step > 0, "a table that cannot grow shows nothing");
    Ok(())
}

fn is_full(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Full { .. }))
}

struct Run<'s> {
    subject: &'s Subject,
    random: ChaCha8Rng,
}

/// Keys that a table is asked for.
const KEYS: u64 = 40;

impl Run<'_> {
    /// A table that is as full as it gets.
    fn filled(&mut self) -> Result<(Vec<u8>, Pairs)> {
        let layout = &self.subject.layout;
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let bytes = (layout.bytes() + (1 << 16)).next_multiple_of(4096);
        let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; bytes as usize]))?;
        let table = Table::create(&region, "table", layout, self.random.random())?;
        let mut pairs = Pairs::new();
        for key in 1..=KEYS / 2 {
            let number = self.random.random_range(1..=200);
            match table.batch_once(&[&put(Op::Insert, key, number)])?[0].outcome {
                Outcome::Done => drop(pairs.insert(key, number)),
                outcome => ensure!(outcome == Outcome::Full, "an insert ended with {outcome:?}"),
            }
        }
        drop(table);
        Ok((region.close()?.bytes().to_vec(), pairs))
    }

    fn in_use(&mut self, image: &[u8]) -> Result<u64> {
        let mut slots = 0;
        self.run(image, None, |table| {
            slots = table.slots_in_use();
            Ok(())
        })?;
        Ok(slots)
    }

    fn can_grow(&mut self, image: &[u8]) -> Result<bool> {
        let mut can = false;
        self.run(image, None, |table| {
            can = table.can_grow();
            Ok(())
        })?;
        Ok(can)
    }

    /// Does something with a table, to its end or a crash. Gives what is left, and whether it was
    /// crashed. A table that finds no room to grow is left as it was, which is looked at.
    fn run(
        &mut self,
        image: &[u8],
        plan: Option<CrashPlan>,
        act: impl FnOnce(&Table) -> nearpm_gphash::Result<()>,
    ) -> Result<(Vec<u8>, bool)> {
        let device = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(image.to_vec()))?;
        let table = Table::open_with(&region, "table", &self.subject.module)?;
        table.plant(self.subject.holes)?;
        device.plan_crash(plan);
        let outcome = act(&table);
        device.plan_crash(None);
        let crashed = match outcome {
            // A table that found no room is what it was.
            Ok(()) | Err(Error::Unmoved { .. }) => false,
            Err(Error::Device(DeviceError::Crashed(_))) => true,
            Err(error) => return Err(error.into()),
        };
        drop(table);
        Ok((region.close()?.bytes().to_vec(), crashed))
    }

    fn plan(&mut self) -> CrashPlan {
        let choice = choice(&mut self.random);
        let most = match self.subject.layout.design {
            Design::Levels => 1,
            Design::Tags => 3,
        };
        let stop = Stop::PersistEvent(self.random.random_range(1..14));
        let moment = match self.random.random_range(0..4) {
            0 => Moment::Store { after: self.random.random_range(0..most) },
            _ => Moment::Launch { after: self.random.random_range(0..most), stop },
        };
        CrashPlan { moment, choice }
    }

    fn crashed(
        &mut self,
        image: &[u8],
        act: impl FnOnce(&Table) -> nearpm_gphash::Result<()>,
    ) -> Result<(Vec<u8>, bool)> {
        let plan = self.plan();
        self.run(image, Some(plan), act)
    }

    fn crashed_recovery(&mut self, image: Vec<u8>) -> Result<(Vec<u8>, bool)> {
        let device = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(image))?;
        device.plan_crash(Some(self.plan()));
        let outcome = Table::open_with(&region, "table", &self.subject.module).map(drop);
        device.plan_crash(None);
        match outcome {
            Ok(()) => Ok((region.close()?.bytes().to_vec(), false)),
            Err(Error::Device(DeviceError::Crashed(_))) => Ok((region.close()?.bytes().to_vec(), true)),
            Err(error) => Err(error.into()),
        }
    }

    /// An operation on each of some keys.
    fn requests(&mut self) -> Vec<Request> {
        let kinds = [Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete];
        let mut requests = Vec::new();
        for key in 1..=KEYS / 2 {
            if self.random.random_range(0..3) == 0 {
                let op = kinds[self.random.random_range(0..kinds.len())];
                requests.push(put(op, key, self.random.random_range(1..=200)));
            }
        }
        requests
    }

    /// Runs a batch to its end, and looks at each answer.
    fn batch(&mut self, image: &[u8], requests: &[Request], pairs: &mut Pairs) -> Result<Vec<u8>> {
        let mut answers: Vec<Answer> = Vec::new();
        let (image, _) = self.run(image, None, |table| table.batch(requests).map(|all| answers = all))?;
        for (request, answer) in requests.iter().zip(answers) {
            let &Key::Word(key) = &request.key else { continue };
            let there = pairs.get(&key).copied();
            let expected = match (request.op, there) {
                (Op::Insert, Some(_)) => Outcome::Exists,
                (Op::Insert | Op::Put, _) | (_, Some(_)) => Outcome::Done,
                _ => Outcome::Absent,
            };
            ensure!(answer.outcome == expected, "{:?} of {key} ended with {:?}", request.op, answer.outcome);
            match request.op {
                Op::Get => ensure!(answer.value == there.map(value_of), "key {key} has another value than {there:?}"),
                Op::Delete => drop(pairs.remove(&key)),
                _ if expected == Outcome::Done => drop(pairs.insert(key, request.value[0])),
                _ => {}
            }
        }
        self.judge(&image, |key, found| found == pairs.get(&key).copied())?;
        Ok(image)
    }

    /// Opens what is left, and looks at every key.
    fn judge(&mut self, image: &[u8], accept: impl Fn(u64, Option<u8>) -> bool) -> Result<()> {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::open_in(device, Medium::of_bytes(image.to_vec()))?;
        let table = Table::open_with(&region, "table", &self.subject.module)?;
        let found = table.check()?;
        ensure!(found.is_sound(), "the table is not sound: {found}");
        let gets: Vec<Request> = (1..=KEYS).map(|key| put(Op::Get, key, 0)).collect();
        for (key, answer) in (1..).zip(table.batch(&gets)?) {
            let number = answer.value.map(|value| if value == value_of(value[0]) { value[0] } else { 0 });
            ensure!(accept(key, number), "key {key} has {number:?}");
        }
        Ok(())
    }
}
