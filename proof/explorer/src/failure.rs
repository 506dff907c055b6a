//! A failure as a file: written, made small, and repeated.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::arena::Arena;
use crate::choices::Choices;
use crate::crash::{CrashMemory, Start};
use crate::explore::{Failure, Limits, checked, explore};
use crate::image::Image;
use crate::program::{Operation, Program};

/// A program, and the crashes after which its pool holds what it may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What ran.
    pub program: Program,
    /// What went wrong.
    pub failure: Failure,
}

/// Numbers of a write-back or fence that a smaller program is tried with, below the one that was
/// left out.
const SHIFTS: usize = 12;

/// Runs of a program of two threads that a replay makes before it says that nothing is wrong.
const THREADED_ATTEMPTS: u32 = 16;

impl Case {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not there, or is no case.
    pub fn read(path: &Path) -> anyhow::Result<Case> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no case of the explorer", path.display()))
    }

    /// Writes a file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }

    /// Repeats it: what is wrong, or nothing if nothing is wrong any more.
    ///
    /// # Errors
    /// The program does something else than when it failed, so that its crashes mean nothing.
    pub fn replay(&self) -> anyhow::Result<Option<String>> {
        // After a wait for a lock of the library two threads may go on in either order.
        let attempts = if self.program.is_scheduled() { THREADED_ATTEMPTS } else { 1 };
        let mut outcomes = (0..attempts).map(|_| self.replay_once());
        outcomes.find(|outcome| matches!(outcome, Ok(Some(_)))).unwrap_or_else(|| self.replay_once())
    }

    fn replay_once(&self) -> anyhow::Result<Option<String>> {
        let recorded = self.program.record().map_err(anyhow::Error::msg)?;
        let Some(first) = self.failure.crashes.first() else { bail!("the case has no crash") };
        let trace = &recorded.trace;
        let Some(bounds) = trace.allowed(first.step) else { bail!("the first crash is before crashes begin") };
        let mut medium = trace.after_power_up(vec![0; recorded.words]);
        let mut steps = trace.steps.clone();
        let mut outcome = Ok(());
        for crash in &self.failure.crashes {
            let Some(done) = steps.get(..crash.step) else {
                bail!("there are no {} steps before the crash", crash.step)
            };
            let mut commands = Choices::repeat(crash.commands.clone());
            done.iter().for_each(|step| medium.take(step, &mut commands));
            medium.crash(&mut commands);
            let start = Start {
                durable: medium.durable(),
                open: medium.possible(),
                choices: Choices::default(),
                tears: u32::MAX,
                unknown: Arc::default(),
                one_domain: trace.one_domain,
            };
            let memory = CrashMemory::new(Arena::new(recorded.words), start);
            memory.put(&crash.kept).map_err(anyhow::Error::msg)?;
            let (image, _) = memory.image(&Image::new(medium.durable().to_vec()));
            outcome = checked(&*recorded.checker, &memory, &bounds, true);
            medium = trace.after_power_up(image.words());
            steps = memory.end().0.steps;
        }
        Ok(outcome.err())
    }

    /// Makes it small: fewer transactions, operations, switches and words that survive, as long as
    /// something fails.
    pub fn minimise(mut self, limits: Limits) -> Case {
        while let Some(smaller) = self.smaller_programs().into_iter().find_map(|program| fails(program, limits)) {
            self = smaller;
        }
        self.drop_words();
        self.keep_commands();
        self
    }

    fn smaller_programs(&self) -> Vec<Program> {
        let mut smaller = Vec::new();
        let mut add = |change: &dyn Fn(&mut Program)| {
            let mut program = self.program.clone();
            change(&mut program);
            if program != self.program {
                smaller.push(program);
            }
        };
        for at in 0..self.program.before.len() {
            add(&|p| _ = p.before.remove(at));
        }
        for at in (0..self.program.transactions.len()).rev() {
            add(&|p| _ = p.transactions.remove(at));
        }
        for at in 0..self.program.schedule.len() {
            add(&|p| _ = p.schedule.remove(at));
        }
        for (at, transaction) in self.program.transactions.iter().enumerate() {
            for operation in 0..transaction.operations.len() {
                add(&|p| _ = p.transactions[at].operations.remove(operation));
                add(&|p| plain(&mut p.transactions[at].operations[operation]));
            }
        }
        smaller
    }

    /// Takes words away that need not have survived.
    fn drop_words(&mut self) {
        for crash in 0..self.failure.crashes.len() {
            for at in (0..self.failure.crashes[crash].kept.len()).rev() {
                self.change_if_it_fails(|failure| _ = failure.crashes[crash].kept.remove(at));
            }
        }
    }

    /// Takes back what need not have been decided of commands.
    fn keep_commands(&mut self) {
        for crash in 0..self.failure.crashes.len() {
            for at in (0..self.failure.crashes[crash].commands.len()).rev() {
                self.change_if_it_fails(|failure| failure.crashes[crash].commands[at] = 0);
            }
            let commands = &mut self.failure.crashes[crash].commands;
            let used = commands.iter().rposition(|&chosen| chosen != 0).map_or(0, |last| last + 1);
            commands.truncate(used);
        }
    }

    fn change_if_it_fails(&mut self, change: impl FnOnce(&mut Failure)) {
        let mut changed = self.clone();
        change(&mut changed.failure);
        if let Ok(Some(message)) = changed.replay() {
            changed.failure.message = message;
            *self = changed;
        }
    }
}

/// The same operation with the smallest numbers.
fn plain(operation: &mut Operation) {
    (operation.key, operation.value) = (0, 256);
}

/// A smaller program that still fails. The step that is left out may have another number in it.
fn fails(program: Program, limits: Limits) -> Option<Case> {
    let numbers: Vec<Option<usize>> = match program.leave_out {
        None => vec![None],
        Some(number) => (number.saturating_sub(SHIFTS)..=number).rev().map(Some).collect(),
    };
    let with = |leave_out| Program { leave_out, ..program.clone() };
    numbers.into_iter().map(with).find_map(|program| find(program, limits))
}

/// Explores a program for a failure that can be repeated.
pub fn find(program: Program, limits: Limits) -> Option<Case> {
    let failure = explore(&program, limits).ok()?.1?;
    let case = Case { program, failure };
    matches!(case.replay(), Ok(Some(_))).then_some(case)
}
