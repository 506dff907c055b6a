//! Batches of a table, and epochs of programs that use it inside of their kernels.

use nearpm_gpm::Sorter;
use nearpm_gpu::Buffer;

use crate::error::{Error, Result};
use crate::key::Key;
use crate::layout::Design;
use crate::operation::{Answer, Op, Operations, Outcome, Request};
use crate::table::Table;

/// Batches from so many operations on are sorted by window.
const SORTED_FROM: u32 = 1 << 15;

impl Table {
    /// Begins an epoch for kernels of a program that call `gph_run`, with up to `cells` inserts and
    /// updates: the number that goes into the `epoch` of their copy of the table. It ends when the
    /// next one begins.
    ///
    /// # Errors
    /// Fewer cells than that.
    pub fn begin_epoch(&self, cells: u64) -> Result<u32> {
        let epoch = self.epoch.get().wrapping_add(1);
        match self.layout().design {
            // A batch prepares the next epoch: a launch less.
            Design::Tags if self.prepared.get() == epoch => {}
            Design::Tags => self.device().fill(self.taken.address(), 0, self.taken.bytes())?,
            Design::Levels => self.reserve(cells)?,
        }
        self.epoch.set(epoch);
        Ok(epoch)
    }

    /// Sets cells of design P's ring aside.
    fn reserve(&self, cells: u64) -> Result<()> {
        if self.available.get() < cells {
            let counts = self.counts.download()?;
            let [taken, given] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| counts[at + byte])));
            self.available.set(given - taken);
        }
        match self.available.get().checked_sub(cells) {
            Some(rest) => self.available.set(rest),
            None => {
                return Err(Error::Invalid(format!(
                    "{} cells are spare, a batch that may need {cells} was to begin",
                    self.available.get()
                )));
            }
        }
        Ok(())
    }

    /// Runs a batch, whose operations all happen at the same time, in any order. It does not wait,
    /// but for what design N's cache answers of it; its outcomes count when the device has done it.
    ///
    /// # Errors
    /// No values where some are put; what the device refuses.
    pub fn run(&self, batch: &Operations) -> Result<()> {
        if batch.puts > 0 && batch.values.is_none() {
            return Err(Error::Invalid("a batch that puts values has none".to_owned()));
        }
        let epoch = self.begin_epoch(batch.puts.into())?;
        let (order, count) = match self.serve(batch, epoch)? {
            // The next epoch zeroes what it counts in.
            Some((_, 0)) => return Ok(()),
            Some(left) => left,
            None => (self.order_of(batch)?, batch.count),
        };
        let address = |buffer: &Option<Buffer>| buffer.as_ref().map_or(0, Buffer::address).into();
        let how = [epoch.into(), count.into(), (batch.op as u32).into(), order.into(), address(&batch.ops)];
        let data = [
            batch.keys.address().into(),
            address(&batch.values),
            address(&batch.found),
            batch.outcomes.address().into(),
        ];
        self.launch("gph_run_batch", count.into(), &[&how[..], &data].concat())?;
        self.prepared.set(epoch.wrapping_add(1));
        Ok(())
    }

    /// Bits of the hash, and all bits, of what batches are sorted by: the window, and as many more
    /// as two passes of the sort take.
    pub(crate) fn sorted_by(&self) -> (u32, u32) {
        let bits = u32::BITS - (self.windows_in_use() - 1).leading_zeros();
        let more = 16_u32.saturating_sub(bits);
        (more, more + bits)
    }

    /// Whether so many operations are worth it to be sorted by window.
    pub(crate) fn is_sorted(&self, operations: u32) -> bool {
        self.windows_in_use() > 1 && operations >= SORTED_FROM
    }

    /// Numbers of a batch's operations by window, if it is worth it; 0 as they come.
    fn order_of(&self, batch: &Operations) -> Result<u64> {
        let fits = |sorter: &&Sorter| self.is_sorted(batch.count) && batch.count <= sorter.capacity();
        let Some(sorter) = self.sorter.as_ref().filter(fits) else { return Ok(0) };
        let (to, numbers) = sorter.input();
        let (more, bits) = self.sorted_by();
        self.launch(
            "gph_windows",
            batch.count.into(),
            &[batch.count.into(), more.into(), batch.keys.address().into(), to.into(), numbers.into()],
        )?;
        Ok(sorter.sort(batch.count, 0, bits)?.1)
    }

    /// Runs a batch of the processor's and waits. What finds no slot or cell because operations of
    /// the same batch have just given it up is tried again in another batch.
    ///
    /// # Errors
    /// [`Error::Reserved`] before anything is done; [`Error::Full`], [`Error::NoCells`] behind
    /// everything else.
    pub fn batch(&self, requests: &[Request]) -> Result<Vec<Answer>> {
        refused(requests, self.batch_with_outcomes(requests)?)
    }

    /// The same, but that what found no slot or cell, or another key of the same 64 bits, is told
    /// by its outcome alone.
    ///
    /// # Errors
    /// [`Error::Reserved`], [`Error::Invalid`] before anything is done; what the device refuses.
    pub fn batch_with_outcomes(&self, requests: &[Request]) -> Result<Vec<Answer>> {
        let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
        let mut left: Vec<usize> = (0..requests.len()).collect();
        loop {
            let some: Vec<&Request> = left.iter().map(|&at| &requests[at]).collect();
            let done = self.batch_once(&some)?;
            let before = left.len();
            let found_none = |answer: &Answer| matches!(answer.outcome, Outcome::Full | Outcome::NoCell);
            let again: Vec<usize> =
                left.iter().zip(&done).filter(|(_, answer)| found_none(answer)).map(|(&at, _)| at).collect();
            left.into_iter().zip(done).for_each(|(at, answer)| answers[at] = Some(answer));
            // The second time nothing of theirs was given up any more.
            if again.is_empty() || again.len() == before && !self.make_room(&answers, &again)? {
                return Ok(answers.into_iter().flatten().collect());
            }
            left = again;
        }
    }

    /// Lets the table grow for operations that found no slot. Whether it did.
    fn make_room(&self, answers: &[Option<Answer>], failed: &[usize]) -> Result<bool> {
        let full = |&at: &usize| answers[at].as_ref().is_some_and(|answer| answer.outcome == Outcome::Full);
        if !failed.iter().any(full) || !self.can_grow() {
            return Ok(false);
        }
        match self.grow(self.windows_in_use().div_ceil(8)) {
            Err(Error::Unmoved { .. }) => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }

    /// The same once: what found no slot or cell is told by its outcome.
    ///
    /// # Errors
    /// [`Error::Reserved`], [`Error::Invalid`] before anything is done.
    pub fn batch_once(&self, requests: &[&Request]) -> Result<Vec<Answer>> {
        let bytes = self.layout().value_bytes as usize;
        let mut keys = Vec::new();
        for Request { key, .. } in requests {
            if let &Key::Word(word) = key
                && self.is_reserved(word)
            {
                return Err(Error::Reserved { key: key.clone(), why: self.layout().design.reserved() });
            }
            keys.extend(key.stored(self.layout().keys)?);
        }
        let mut values = vec![0; bytes * requests.len()];
        for (place, request) in values.chunks_exact_mut(bytes).zip(requests) {
            if request.value.len() != if request.op.puts() { bytes } else { 0 } {
                return Err(Error::Invalid(format!(
                    "{:?} of the key {} comes with {} bytes, a value has {bytes}",
                    request.op,
                    request.key,
                    request.value.len()
                )));
            }
            place[..request.value.len()].copy_from_slice(&request.value);
        }
        let device = self.device();
        let ops: Vec<Op> = requests.iter().map(|request| request.op).collect();
        let room = || Buffer::zeroed(device, values.len().max(1) as u64);
        let (given, found) = (room()?, room()?);
        given.upload(&values)?;
        let batch = Operations::of_stored(device, Op::Get, ops.len() as u32, &keys)?.each(device, &ops)?;
        let batch = batch.with_values(given).with_found(found);
        self.run(&batch)?;
        let (outcomes, read) = (self.outcomes(&batch)?, batch.found.as_ref().map_or(Ok(Vec::new()), Buffer::download)?);
        Ok(ops
            .iter()
            .zip(outcomes)
            .enumerate()
            .map(|(at, (&op, outcome))| {
                let reads = matches!(op, Op::Get | Op::Rmw) && outcome == Outcome::Done;
                Answer { outcome, value: reads.then(|| read[at * bytes..][..bytes].to_vec()) }
            })
            .collect())
    }

    /// The outcomes of a batch, when the device has done it.
    ///
    /// # Errors
    /// What a kernel did wrong.
    pub fn outcomes(&self, batch: &Operations) -> Result<Vec<Outcome>> {
        let codes = batch.outcomes.download_words()?;
        let outcome = |&code: &u32| {
            Outcome::from_code(code)
                .ok_or_else(|| Error::Invalid(format!("a kernel left the outcome {code}, which there is not")))
        };
        codes[..batch.count as usize].iter().map(outcome).collect()
    }
}

/// The answers, or the error of the first operation for which nothing was done.
fn refused(requests: &[Request], answers: Vec<Answer>) -> Result<Vec<Answer>> {
    for outcome in [Outcome::Full, Outcome::NoCell, Outcome::Collides] {
        let mut failed = requests.iter().zip(&answers).filter(|(_, answer)| answer.outcome == outcome);
        if let Some((Request { key, .. }, _)) = failed.next() {
            let (key, failed) = (key.clone(), failed.count() + 1);
            return Err(match outcome {
                Outcome::Full => Error::Full { key, failed },
                Outcome::NoCell => Error::NoCells { key, failed },
                _ => Error::Collides { key, failed },
            });
        }
    }
    Ok(answers)
}
