//! A command page: posting, credits, completions.
//!
//! Invariants:
//! - command `n` of a page goes into slot `n mod 16`, and its tag is `n` modulo 2^32;
//! - a slot is written again only when the command that was in it is known to have been taken
//!   ([`CREDITS`] is below the number of slots);
//! - between two drains at most [`HISTORY`] commands are posted, and the completion ring has more
//!   records than that, so that the card never overwrites a record that was not read;
//! - posting ends with a fence, also that of several commands together: they are in the link before
//!   anything that the caller stores later. [`CommandPage::post_unfenced`] leaves the last fence to
//!   its caller.

use std::collections::BTreeSet;
use std::ops::DerefMut;
use std::sync::Arc;

use nearpm_interface::command::{Command, FLAG_COMPLETE};
use nearpm_interface::completion::{Completion, PageStatus};
use nearpm_interface::geometry::{COMMAND_BAR, COMMAND_PAGE_BYTES, COMMAND_PAGES, LINE, SLOTS_PER_PAGE};

use crate::error::{CardError, CommandError, CommandFailure};
use crate::options::{CardOptions, Posting, Waiting};
use crate::pci::{DmaBuffer, Mapping, PciError, PciFunction, Work};
use crate::registers::Registers;

mod shared_read;

pub(crate) use shared_read::SharedRead;

/// Commands that may be posted beyond what is known to have left its slot: two slots are margin.
pub const CREDITS: u64 = SLOTS_PER_PAGE as u64 - 2;
/// Commands of a call that lie in the processor's buffers between two fences: fewer than the slots,
/// so that no slot is written again before its command has left.
const UNFENCED: usize = 8;
const _: () = assert!(UNFENCED < SLOTS_PER_PAGE);
/// Commands whose bytes are remembered, so that a failure can name what failed.
pub const HISTORY: u64 = 1024;
/// Log2 of the records of a completion ring.
const RING_LOG2: u32 = 11;
const _: () = assert!(HISTORY < 1 << RING_LOG2);
/// Nanoseconds that pass between two looks at a completion ring, which lies in the cache until a
/// record comes: a loop without `pause`, which on today's processors would take two to five times
/// as long.
const POLL_NS: u64 = 10;
/// Nanoseconds of sleep after which a waiter looks at the ring although nothing was signalled.
const LOST_NS: u64 = 1_000_000;
/// Looks at the ring after which a waiter asks whether the card is still there: the answer takes as
/// long as a small command does.
const POLLS_PER_LIVENESS_CHECK: u32 = 512;

/// How a command of a page has ended, for who posts commands of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Number of the command on its page.
    pub number: u64,
    /// Why it was not carried out; `None` for success.
    pub error: Option<CommandError>,
    /// Number that the card gave it, 0 where it gave none.
    pub order: u64,
}

/// Names a posted command until it has been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Command page.
    pub page: usize,
    /// Number of the command on its page, from 0.
    pub number: u64,
}

/// What a status line says of failed logs and lost stores. Zeros say that no log of the card had
/// failed and no store was lost when the line was read, and that nothing that came before was held
/// back for a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latched {
    /// Mapping entries whose (pool, thread) is latched, one bit each.
    pub entries: u16,
    /// Stores that memory refused after the card had accepted them.
    pub stores_lost: u32,
}

impl From<&PageStatus> for Latched {
    fn from(status: &PageStatus) -> Latched {
        Latched { entries: status.latched, stores_lost: status.stores_lost }
    }
}

/// What a page knew before its status line was read without it: [`CommandPage::accepted`] judges
/// the line by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    base: u64,
    bad_seen: u64,
}

/// What is known of a command in the history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Unknown,
    Done,
    Failed(CommandError),
}

/// Counters of a page status line, as differences from the last drain.
#[derive(Clone, Copy)]
struct Progress {
    accepted: u64,
    retired: u64,
    refused: u64,
    failed: u64,
    dropped: u64,
}

impl Progress {
    /// Commands that have ended, one way or another.
    fn settled(self) -> u64 {
        self.retired + self.refused + self.failed + self.dropped
    }
    /// Commands that have certainly left their slots.
    fn taken(self) -> u64 {
        (self.accepted + self.dropped).max(self.settled())
    }
    /// Commands that did not succeed.
    fn bad(self) -> u64 {
        self.refused + self.failed + self.dropped
    }
}

/// What is said of a command that has ended, and told nobody.
const NO_RECORD: &str = "write the completion record of a command that has ended (is it bus master, and is the memory still mapped for it?)";

/// The vector that is signalled when a record of a page has come: its own, or the only one. Of
/// pages that share one, who wakes takes the signal of all: another one then looks after
/// [`LOST_NS`]. Where some pages would have none, no page has, so that the first one is refused.
fn vector_of(function: &dyn PciFunction, page: usize) -> Result<usize, PciError> {
    match function.interrupt_vectors() {
        1 => Ok(0),
        vectors if vectors >= COMMAND_PAGES => Ok(page),
        _ => Err(PciError::Unsupported { what: "an interrupt for each command page" }),
    }
}

/// Reads a page's status line through its window: everything that this thread posted before is
/// accepted when it answers.
pub(crate) fn status(window: &dyn Mapping) -> Result<PageStatus, CardError> {
    let mut bytes = [0; PageStatus::SIZE];
    window.load(0, &mut bytes);
    if bytes.iter().all(|&b| b == 0xff) {
        return Err(CardError::Gone);
    }
    Ok(PageStatus::from_bytes(&bytes))
}

/// Waits until a command of a page is durable, as [`crate::Card::read_back`] does. `page` gives the
/// page alone to the caller, and `status` reads its status line: between the two looks at the page,
/// and meanwhile, other threads post and read back.
pub(crate) fn read_back<P: DerefMut<Target = CommandPage>>(
    function: &dyn PciFunction,
    ticket: Ticket,
    page: impl Fn() -> Result<P, CardError>,
    status: impl Fn() -> Result<PageStatus, CardError>,
) -> Result<Latched, CardError> {
    let start = function.now_ns();
    loop {
        let known = page()?.known();
        let status = status()?;
        if let Some(latched) = page()?.accepted(function, ticket, &status, known, start)? {
            return Ok(latched);
        }
    }
}

/// What threads share beside the page itself.
mod sync {
    pub use std::sync::{Condvar, Mutex, MutexGuard};
}

/// One command page. The card gives it one owner at a time.
pub struct CommandPage {
    number: usize,
    posting: Posting,
    window: Arc<dyn Mapping>,
    /// `None` on a card without completion records.
    ring: Option<Box<dyn DmaBuffer>>,
    /// The vector that tells of records, where waiters sleep until then.
    vector: Option<usize>,
    /// Records that were read.
    consumed: u64,
    /// Commands that were posted since the page was opened.
    posted: u64,
    /// Commands below this number have left their slots.
    taken: u64,
    /// Commands below this number have ended, and their failures are in `failures`.
    drained: u64,
    /// Status line at the moment when `drained` was reached.
    base: PageStatus,
    /// How often `base` was set: a status line that was read before counts from another one.
    bases: u64,
    /// Failures that were seen since then.
    bad_seen: u64,
    history: Vec<(Command, Outcome)>,
    failures: Vec<(u64, CommandFailure)>,
    /// Pools and threads that had one, whether somebody has been told of it or not.
    failed: BTreeSet<(u32, u16)>,
    /// Those that tell of a failed log and that [`CommandPage::take_log_failures`] has not taken.
    log_failures: Vec<CommandFailure>,
    /// How commands have ended, where somebody takes that instead of the lists of failures.
    ended: Option<Vec<Ended>>,
    timeout_ns: u64,
}

impl CommandPage {
    /// Opens page `number`, on which nothing is in flight, and enables its completion ring.
    ///
    /// # Errors
    /// [`PciError::Unsupported`] where waiters are to sleep, and nothing would wake them.
    pub fn open(
        function: &dyn PciFunction,
        registers: &Registers,
        number: usize,
        records: bool,
        options: &CardOptions,
    ) -> Result<CommandPage, CardError> {
        let &CardOptions { posting, timeout_ns, waiting, .. } = options;
        assert!(number < COMMAND_PAGES, "a card has {COMMAND_PAGES} command pages");
        let start = (number * COMMAND_PAGE_BYTES) as u64;
        let window =
            Arc::from(function.map(COMMAND_BAR, start..start + COMMAND_PAGE_BYTES as u64, posting.caching())?);
        let vector = match waiting {
            Waiting::Polling => None,
            Waiting::Interrupts if records => Some(vector_of(function, number)?),
            Waiting::Interrupts => {
                Err(PciError::Unsupported { what: "interrupts, on a card without completion records" })?
            }
        };
        let ring = if records {
            let ring = function.allocate_dma(Completion::SIZE << RING_LOG2)?;
            registers.set_completion_ring(number, ring.bus_address(), RING_LOG2);
            Some(ring)
        } else {
            None
        };
        let mut page = CommandPage {
            number,
            posting,
            window,
            ring,
            vector,
            consumed: 0,
            posted: 0,
            taken: 0,
            drained: 0,
            base: PageStatus::default(),
            bases: 0,
            bad_seen: 0,
            history: vec![(Command::default(), Outcome::Unknown); HISTORY as usize],
            failures: Vec::new(),
            failed: BTreeSet::new(),
            log_failures: Vec::new(),
            ended: None,
            timeout_ns,
        };
        page.count_from(page.status()?);
        Ok(page)
    }

    /// Whether memory had refused stores when the page was opened.
    pub fn began_with_lost_stores(&self) -> bool {
        self.base.stores_lost != 0
    }

    /// Reads the status line: everything that this thread posted before is accepted when it
    /// answers.
    pub fn status(&self) -> Result<PageStatus, CardError> {
        status(&*self.window)
    }

    /// Commands that were posted on this page.
    pub fn posted(&self) -> u64 {
        self.posted
    }

    /// Posts a command; its tag and flags are the page's to set. With `notify` the card answers
    /// with a completion record also on success, so that [`CommandPage::wait`] is cheap.
    ///
    /// Waits while the page has no credit. On return the command is in the link, ahead of
    /// everything that this thread stores later; it is durable after [`crate::Card::read_back`].
    pub fn post(&mut self, function: &dyn PciFunction, command: Command, notify: bool) -> Result<Ticket, CardError> {
        self.poll();
        let ticket = self.enqueue(function, command, notify)?;
        self.window.fence();
        Ok(ticket)
    }

    /// Posts several commands under one fence and gives the ticket of the last one, `None` where
    /// there are none. With `notify` the card answers the last one with a completion record.
    ///
    /// On return all of them are in the link, ahead of everything that this thread stores later.
    /// Among themselves they may arrive in any order, so that none may depend on another one of the
    /// same call.
    pub fn post_all(
        &mut self,
        function: &dyn PciFunction,
        commands: &[Command],
        notify: bool,
    ) -> Result<Option<Ticket>, CardError> {
        let ticket = self.post_unfenced(function, commands, notify)?;
        self.window.fence();
        Ok(ticket)
    }

    /// The same without the last fence: the commands may lie in the processor's buffers. The thread
    /// has to fence, through any mapping, before it waits for anything, gives up a lock, or stores
    /// to what they cover.
    pub fn post_unfenced(
        &mut self,
        function: &dyn PciFunction,
        commands: &[Command],
        notify: bool,
    ) -> Result<Option<Ticket>, CardError> {
        self.poll();
        let mut ticket = None;
        for (n, &command) in commands.iter().enumerate() {
            if n > 0 && n.is_multiple_of(UNFENCED) {
                self.window.fence();
            }
            let last = n + 1 == commands.len();
            ticket = Some(self.enqueue(function, command, notify && last)?);
        }
        Ok(ticket)
    }

    /// Stores a command into its slot, unfenced.
    fn enqueue(&mut self, function: &dyn PciFunction, command: Command, notify: bool) -> Result<Ticket, CardError> {
        if self.posted - self.drained >= HISTORY {
            // What lies in a write-combining buffer is never taken.
            self.window.fence();
            self.drain(function)?;
        }
        self.wait_for_credit(function)?;
        let number = self.posted;
        let flags = if notify && self.ring.is_some() { FLAG_COMPLETE } else { 0 };
        let command = Command { tag: number as u32, flags, ..command };
        let bytes = command.encode();
        self.window.charge(Work::Checksum(bytes.len() as u64));
        let slot = (number % SLOTS_PER_PAGE as u64) * LINE as u64;
        match self.posting {
            Posting::Line => self.window.store_line(slot, &bytes),
            Posting::WriteCombining => self.window.store(slot, &bytes),
            Posting::Uncached => {
                for (i, word) in bytes.chunks_exact(8).enumerate() {
                    self.window.store(slot + 8 * i as u64, word);
                }
            }
        }
        self.history[(number % HISTORY) as usize] = (command, Outcome::Unknown);
        self.posted += 1;
        Ok(Ticket { page: self.number, number })
    }

    /// Whether a status line, read after the page knew what is `known`, shows that the command is
    /// durable: accepted by the persistence domain, or already done. Gives what the line says of
    /// failed logs. A little time passes where it does not show that; none where the page has begun
    /// to count anew since, so that the line says nothing any more.
    ///
    /// # Errors
    /// Its failure, as [`CardError::Command`]. Failures of other commands that came to light on the
    /// way wait for [`CommandPage::take_failure`].
    fn accepted(
        &mut self,
        function: &dyn PciFunction,
        ticket: Ticket,
        status: &PageStatus,
        known: Known,
        start: u64,
    ) -> Result<Option<Latched>, CardError> {
        const WHAT: &str = "accept a command";
        if known.base != self.bases {
            self.waited_ns(function, start, WHAT)?;
            return Ok(None);
        }
        let progress = self.since_base(status);
        self.has_taken(progress);
        // Failures that were seen after the line was read are not among its own: they would stand
        // for commands that were dropped, which have no record. What was refused is not counted as
        // accepted: the count falls short of what came behind it.
        if progress.bad() > known.bad_seen || progress.bad() > 0 && !self.is_accepted(ticket.number, progress) {
            self.drain(function)?;
        }
        if let Some(failure) = self.failure_of(ticket.number) {
            return Err(failure.into());
        }
        if self.is_accepted(ticket.number, progress) {
            return Ok(Some(status.into()));
        }
        self.pause(function, start, WHAT)?;
        Ok(None)
    }

    /// What is known now, for a look at the status line while somebody else may have the page.
    fn known(&self) -> Known {
        Known { base: self.bases, bad_seen: self.bad_seen }
    }

    /// The window on the page, through which its status line may be read while somebody else has
    /// the page.
    pub(crate) fn window(&self) -> Arc<dyn Mapping> {
        self.window.clone()
    }

    /// Waits until the command has retired, which makes all that it wrote durable and visible.
    ///
    /// # Errors
    /// Its failure, as [`CardError::Command`].
    pub fn wait(&mut self, function: &dyn PciFunction, ticket: Ticket) -> Result<(), CardError> {
        // Of what was drained before, all is known: asking the card again would drain what was
        // posted since, and so each wait the next one's ticket.
        let drained = ticket.number < self.drained;
        if !drained && self.history[(ticket.number % HISTORY) as usize].0.flags & FLAG_COMPLETE == 0 {
            self.drain(function)?;
        }
        let start = function.now_ns();
        let mut polls = 0;
        loop {
            self.poll();
            if let Some(failure) = self.failure_of(ticket.number) {
                return Err(failure.into());
            }
            if ticket.number < self.drained || self.outcome(ticket.number) == Outcome::Done {
                return Ok(());
            }
            polls += 1;
            if polls % POLLS_PER_LIVENESS_CHECK == 0 {
                self.status()?;
            }
            if let Err(late) = self.await_record(function, start) {
                let ended = self.progress()?.settled() >= self.posted - self.drained;
                return Err(match late {
                    CardError::Timeout { waited_ns, .. } if ended => CardError::Timeout { what: NO_RECORD, waited_ns },
                    late => late,
                });
            }
        }
    }

    /// Waits until every command that was posted on this page has ended. Failures stay in the list
    /// that [`CommandPage::take_failure`] reads.
    pub fn drain(&mut self, function: &dyn PciFunction) -> Result<(), CardError> {
        let start = function.now_ns();
        loop {
            self.poll();
            let status = self.status()?;
            let progress = self.since_base(&status);
            if progress.settled() >= self.posted - self.drained {
                if progress.dropped > 0 {
                    self.blame_dropped(progress.dropped);
                }
                // Records travel after the counters rise: each failure is waited for by its record.
                if self.ring.is_none() {
                    self.blame_last_bad(&status, progress);
                }
                if self.bad_seen >= progress.bad() {
                    self.drained = self.posted;
                    self.taken = self.posted;
                    self.count_from(status);
                    return Ok(());
                }
            }
            self.pause(function, start, "finish its commands")?;
        }
    }

    /// Takes the oldest failure of (pool, thread) that nobody has been told of.
    pub fn take_failure(&mut self, pool: u32, thread: u16) -> Option<CommandFailure> {
        self.poll();
        let found = self.failures.iter().position(|(_, f)| f.command.pool == pool && f.command.thread == thread)?;
        Some(self.failures.remove(found).1)
    }

    /// Whether a command of (pool, thread) has failed since its mapping was made, also where
    /// somebody has been told of it.
    pub fn has_failed(&mut self, pool: u32, thread: u16) -> bool {
        self.poll();
        self.failed.contains(&(pool, thread))
    }

    /// Takes what has come to light of failed logs.
    pub fn take_log_failures(&mut self) -> Vec<CommandFailure> {
        self.poll();
        std::mem::take(&mut self.log_failures)
    }

    /// Forgets the failures of (pool, thread): its mapping has gone, and whoever maps it again has
    /// nothing to do with them.
    pub fn forget_failures(&mut self, pool: u32, thread: u16) {
        self.poll();
        let others = |f: &CommandFailure| (f.command.pool, f.command.thread) != (pool, thread);
        self.failed.remove(&(pool, thread));
        self.failures.retain(|(_, failure)| others(failure));
        self.log_failures.retain(others);
    }

    /// Takes how commands have ended since the last call, in the order in which it became known.
    /// From the first call on failures are told here and nowhere else. Each command that was posted
    /// to be notified of ends here once, also one that succeeded.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        self.ended.get_or_insert_default();
        self.poll();
        self.ended.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The next completion record, if it has come.
    fn next_record(&mut self) -> Option<Completion> {
        let records = 1u64 << RING_LOG2;
        let mut bytes = [0; Completion::SIZE];
        self.ring.as_ref()?.load((self.consumed % records) as usize * Completion::SIZE, &mut bytes);
        let record = Completion::from_bytes(&bytes);
        if record.lap != (self.consumed / records + 1) as u16 {
            return None;
        }
        self.consumed += 1;
        Some(record)
    }

    /// Reads the records of commands that are not this page's own, and gives how many of them have
    /// ended since the last drain: their records have come, too, where there are any.
    pub(crate) fn foreign(&mut self, read: &mut u64) -> Result<u64, CardError> {
        while self.next_record().is_some() {
            *read += 1;
        }
        let ended = self.progress()?.settled();
        Ok(if self.ring.is_some() { ended.min(*read) } else { ended })
    }

    /// Counts from here: what has ended before is not this page's own. Nothing is under way.
    pub(crate) fn restart(&mut self) -> Result<(), CardError> {
        assert_eq!(self.drained, self.posted, "the page was drained");
        self.count_from(self.status()?);
        Ok(())
    }

    fn count_from(&mut self, base: PageStatus) {
        self.base = base;
        self.bases += 1;
        self.bad_seen = 0;
    }

    /// Reads the completion records that have come.
    fn poll(&mut self) {
        while let Some(record) = self.next_record() {
            // The tag is the low half of a number below `posted`.
            let behind = (self.posted as u32).wrapping_sub(record.tag);
            let Some(number) = self.posted.checked_sub(behind.into()).filter(|&n| n < self.posted) else {
                continue;
            };
            self.taken = self.taken.max(number + 1);
            match CommandError::from_code(record.status) {
                None => {
                    self.settle(number, Outcome::Done);
                    self.tell(Ended { number, error: None, order: record.order });
                }
                Some(error) => self.fail(number, error, record.order),
            }
        }
    }

    fn settle(&mut self, number: u64, outcome: Outcome) {
        if number + HISTORY >= self.posted {
            self.history[(number % HISTORY) as usize].1 = outcome;
        }
    }

    fn tell(&mut self, end: Ended) {
        if let Some(ended) = &mut self.ended {
            ended.push(end);
        }
    }

    fn fail(&mut self, number: u64, error: CommandError, order: u64) {
        let command = self.history[(number % HISTORY) as usize].0;
        self.settle(number, Outcome::Failed(error));
        self.bad_seen += 1;
        if self.ended.is_some() {
            return self.tell(Ended { number, error: Some(error), order });
        }
        let failure = CommandFailure { command, error };
        if failure.tells_of_a_failed_log() {
            self.log_failures.push(failure);
        }
        self.failed.insert((failure.command.pool, failure.command.thread));
        self.failures.push((number, failure));
    }

    /// A dropped command has no tag: the oldest ones without an outcome are blamed.
    fn blame_dropped(&mut self, dropped: u64) {
        let mut known = (self.drained..self.posted)
            .filter(|&n| self.outcome(n) == Outcome::Failed(CommandError::Dropped))
            .count() as u64;
        for number in self.drained..self.posted {
            if known < dropped && self.outcome(number) == Outcome::Unknown {
                self.fail(number, CommandError::Dropped, 0);
                known += 1;
            }
        }
    }

    /// Without completion records only the last bad command is known by name; the others that
    /// failed between two drains are counted under it.
    fn blame_last_bad(&mut self, status: &PageStatus, progress: Progress) {
        if self.bad_seen < progress.bad() {
            let behind = (self.posted as u32).wrapping_sub(status.last_bad_tag);
            let number = self.posted.saturating_sub(behind.into()).max(self.drained).min(self.posted - 1);
            let error = CommandError::from_code(status.last_bad_status).unwrap_or(CommandError::Dropped);
            self.fail(number, error, 0);
            self.bad_seen = progress.bad();
        }
    }

    fn outcome(&self, number: u64) -> Outcome {
        if number + HISTORY < self.posted {
            return Outcome::Done;
        }
        self.history[(number % HISTORY) as usize].1
    }

    /// Takes the failure of one command.
    fn failure_of(&mut self, number: u64) -> Option<CommandFailure> {
        let found = self.failures.iter().position(|&(n, _)| n == number)?;
        Some(self.failures.remove(found).1)
    }

    fn since_base(&self, status: &PageStatus) -> Progress {
        let since = |now: u32, base: u32| u64::from(now.wrapping_sub(base));
        Progress {
            accepted: since(status.accepted, self.base.accepted),
            retired: since(status.retired, self.base.retired),
            refused: since(status.refused, self.base.refused),
            failed: since(status.failed, self.base.failed),
            dropped: since(status.dropped, self.base.dropped),
        }
    }

    /// Whether these counters, or the last drain, show a command as accepted.
    fn is_accepted(&self, number: u64, progress: Progress) -> bool {
        number < self.drained || progress.accepted > number - self.drained
    }

    /// Notes what counters since `base` say of the slots.
    fn has_taken(&mut self, progress: Progress) {
        self.taken = self.taken.max(self.drained + progress.taken());
        debug_assert!(self.taken <= self.posted, "{} of {} commands have left their slots", self.taken, self.posted);
    }

    fn progress(&self) -> Result<Progress, CardError> {
        Ok(self.since_base(&self.status()?))
    }

    fn wait_for_credit(&mut self, function: &dyn PciFunction) -> Result<(), CardError> {
        if self.posted - self.taken < CREDITS {
            return Ok(());
        }
        // What lies in a write-combining buffer is never taken.
        self.window.fence();
        let start = function.now_ns();
        loop {
            self.poll();
            if self.posted - self.taken >= CREDITS {
                self.has_taken(self.progress()?);
            }
            if self.posted - self.taken < CREDITS {
                return Ok(());
            }
            self.pause(function, start, "take a command")?;
        }
    }

    /// Lets time pass in which a completion record may come.
    fn await_record(&self, function: &dyn PciFunction, start: u64) -> Result<(), CardError> {
        const WHAT: &str = "complete a command";
        let Some(vector) = self.vector else { return self.pause(function, start, WHAT) };
        let left_ns = self.timeout_ns - self.waited_ns(function, start, WHAT)?;
        if !function.wait_interrupt(vector, left_ns.min(LOST_NS))? {
            // Nobody signals for a card that has gone.
            self.status()?;
        }
        Ok(())
    }

    fn pause(&self, function: &dyn PciFunction, start: u64, what: &'static str) -> Result<(), CardError> {
        self.waited_ns(function, start, what)?;
        function.relax(POLL_NS);
        Ok(())
    }

    /// How long a wait has lasted, if it may go on.
    fn waited_ns(&self, function: &dyn PciFunction, start: u64, what: &'static str) -> Result<u64, CardError> {
        let waited_ns = function.now_ns().saturating_sub(start);
        if waited_ns > self.timeout_ns { Err(CardError::Timeout { what, waited_ns }) } else { Ok(waited_ns) }
    }
}

#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
