//! A program on what it is run on, whatever tells the time: a pool of the library, or bare memory.

use std::fs::File;

use anyhow::{Context, Result, ensure};
use nearpm::{Durability, Engine, Error, Location, Mechanism, Options, Pool, Statistics, Survives};
use nearpm_workloads::check;
use nearpm_workloads::programs::{Inputs, Workload};
use nearpm_workloads::store::Store;

use crate::case::{Case, Configuration};

/// Transactions of an epoch, and between two calls that make asynchronous commits durable.
pub const EPOCH: usize = 64;
/// With released inputs a checkpoint or shadow epoch is cut at so many first touches, as in the
/// authors' code. On a simulated computer each is found by a write-protection fault, for which the
/// profile has a time.
pub const RELEASED_TOUCHES: u64 = 5;

/// Makes a pool with what a program works on, and closes it. What is in a file has reached its
/// medium then.
///
/// # Errors
/// If the pool cannot be made or filled.
pub fn fill(options: &Options, location: &str, bytes: u64, program: &dyn Workload) -> Result<()> {
    let filling = options.clone().mechanism(Mechanism::Undo).engine(Engine::Cpu);
    // Nobody waits for single transactions of this.
    let filling = filling.survives(Survives::ProcessCrash).prefault(false);
    let pool = filling.create(location, bytes).context("the pool cannot be made")?;
    program.create(&pool).context("the pool cannot be filled")?;
    pool.close()?;
    synchronise(location)
}

/// Lets what was stored to a file reach its medium, so that the system does not write it while time
/// is taken.
pub fn synchronise(location: &str) -> Result<()> {
    if let Location::File(path) = Location::parse(location)? {
        let written = File::open(&path).and_then(|file| file.sync_all());
        written.with_context(|| format!("{} cannot be written to its medium", path.display()))?;
    }
    Ok(())
}

/// What commits wait for.
fn durability(case: &Case) -> Durability {
    match (case.inputs, case.configuration) {
        // The paper's baseline waits, whatever its card does.
        (Inputs::Released, Configuration::PaperCpu) | (Inputs::Corrected, _) => Durability::Durable,
        (Inputs::Released, _) => Durability::Asynchronous,
    }
}

/// A pool with a program in it.
pub struct Served {
    /// The program.
    pub program: Box<dyn Workload>,
    /// The pool.
    pub pool: Pool,
    /// How and where it was opened.
    options: Options,
    location: String,
    /// Counters behind that.
    before: Statistics,
    root: u64,
    /// Transactions that it has done.
    done: usize,
    /// The mechanism, where its epochs end by first touches.
    by_touches: Option<Mechanism>,
    /// Pages that the last transaction has touched first, where epochs end by these.
    touched: u64,
    /// Transactions, or where epochs end by first touches those, since the last end.
    since: u64,
}

/// Pages that were touched first in their epoch, by the counters of a pool; none where no epoch
/// ends by these.
fn touched(mechanism: Option<Mechanism>, pool: &Pool) -> u64 {
    match mechanism {
        None => 0,
        Some(Mechanism::Checkpoint) => pool.statistics().log_entries,
        Some(_) => pool.statistics().shadow_pages,
    }
}

impl Served {
    /// Makes and fills a pool, and opens it as a case has it; so many bytes of its log are made
    /// usable at once.
    ///
    /// # Errors
    /// If it cannot be made, filled or opened.
    pub fn prepare(
        case: &Case,
        program: Box<dyn Workload>,
        options: &Options,
        location: &str,
        bytes: u64,
        log_bytes: u64,
    ) -> Result<Served> {
        // Transactions are one thread's, and epochs end by the inputs' rules.
        let options = options.clone().lanes(1).epoch_ops(0);
        fill(&options, location, bytes, &*program)?;
        let options =
            options.mechanism(case.mechanism).engine(case.configuration.engine()).durability(durability(case));
        let by_touches = (case.mechanism.has_epochs() && case.inputs == Inputs::Released).then_some(case.mechanism);
        Served::open(program, options, location, log_bytes, by_touches)
    }

    fn open(
        program: Box<dyn Workload>,
        options: Options,
        location: &str,
        log_bytes: u64,
        by_touches: Option<Mechanism>,
    ) -> Result<Served> {
        let pool = options.open(location)?;
        if log_bytes > 0 {
            pool.reserve_log(log_bytes)?;
        }
        // The root is loaded last: on a simulated computer what is in the cache then is the same
        // for each case.
        let (root, before, location) = (pool.root()?, pool.statistics(), location.to_owned());
        Ok(Served { program, pool, options, location, before, root, done: 0, by_touches, touched: 0, since: 0 })
    }

    /// Whether transactions are left.
    pub fn is_due(&self) -> bool {
        self.done < self.program.count()
    }

    /// Transactions that it has done.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Does the next transaction.
    ///
    /// # Errors
    /// If it fails.
    pub fn apply(&mut self) -> Result<(), Error> {
        let Served { program, pool, root, done, by_touches, touched: last, .. } = self;
        let before = touched(*by_touches, pool);
        pool.tx(|tx| program.apply(tx, *root, *done))?;
        *done += 1;
        *last = touched(*by_touches, pool) - before;
        Ok(())
    }

    /// Pages that the last transaction has touched first; `None` where no epoch ends by these.
    pub fn touches(&self) -> Option<u64> {
        self.by_touches.map(|_| self.touched)
    }

    /// Takes a transaction into account, with what [`Served::touches`] says behind it: whether the
    /// epoch is to be cut now, or asynchronous commits are to be made durable. Then the next one
    /// begins.
    pub fn ends_an_epoch(&mut self, touches: Option<u64>) -> bool {
        let most = if touches.is_some() { RELEASED_TOUCHES } else { EPOCH as u64 };
        self.since += touches.unwrap_or(1);
        let ends = self.since >= most;
        if ends {
            self.since = 0;
        }
        ends
    }

    /// Does the next transaction, and what is due behind it.
    ///
    /// # Errors
    /// If one of them fails.
    pub fn step(&mut self) -> Result<(), Error> {
        self.apply()?;
        let touches = self.touches();
        if self.ends_an_epoch(touches) { self.pool.cut() } else { Ok(()) }
    }

    /// What the library has counted since the pool was opened.
    pub fn counts(&self) -> Statistics {
        self.pool.statistics().since(&self.before)
    }

    /// Closes the pool and opens it anew, as the next process would. Its counters begin anew.
    ///
    /// # Errors
    /// If it cannot be closed or opened.
    pub fn reopen(self) -> Result<Served> {
        let Served { program, pool, options, location, done, by_touches, .. } = self;
        pool.close()?;
        let served = Served::open(program, options, &location, 0, by_touches).context("it cannot be opened again")?;
        Ok(Served { done, ..served })
    }

    /// Compares what is there with the program's model.
    ///
    /// # Errors
    /// If they differ, or the pool is damaged.
    pub fn check(&self) -> Result<()> {
        let found = check::rows(&self.pool, &*self.program)?.context("the pool has a root")?;
        ensure!(found == self.program.after(self.done), "the pool does not hold what the model says");
        Ok(())
    }
}

/// A program on a store that is its own: bare memory, or a baseline without epochs whose commits
/// are durable when they return.
pub struct Alone<S> {
    program: Box<dyn Workload>,
    store: S,
    done: usize,
}

impl<S: Store> Alone<S> {
    /// Makes what the program works on.
    ///
    /// # Errors
    /// If there is no room.
    pub fn prepare(program: Box<dyn Workload>, store: S) -> Result<Alone<S>> {
        program.create(&store).context("the memory cannot be filled")?;
        Ok(Alone { program, store, done: 0 })
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Whether transactions are left.
    pub fn is_due(&self) -> bool {
        self.done < self.program.count()
    }

    /// Does the next transaction.
    ///
    /// # Errors
    /// If it fails.
    pub fn apply(&mut self) -> Result<(), Error> {
        let Alone { program, store, done } = self;
        store.transaction(&mut |tx| {
            let root = tx.root()?;
            program.apply(tx, root, *done)
        })?;
        *done += 1;
        Ok(())
    }

    /// Goes on, on what another process would find: the store is closed and opened anew.
    ///
    /// # Errors
    /// That of `anew`.
    pub fn reopen<T>(self, anew: impl FnOnce(S) -> Result<T>) -> Result<Alone<T>> {
        let Alone { program, store, done } = self;
        Ok(Alone { program, store: anew(store).context("it cannot be opened again")?, done })
    }

    /// Compares what is there with the program's model.
    ///
    /// # Errors
    /// If they differ.
    pub fn check(&self) -> Result<()> {
        let mut found = None;
        self.store.transaction(&mut |tx| {
            let root = tx.root()?;
            found = Some(self.program.contents(tx, root));
            Ok(())
        })?;
        let found = found.context("the program was read")??;
        ensure!(found == self.program.after(self.done), "the memory does not hold what the model says");
        Ok(())
    }
}
