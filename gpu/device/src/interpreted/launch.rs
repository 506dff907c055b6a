//! Launches: with the planned crash, watched, or as they are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map;

use nearpm_ptx::{Arguments, Counts, Ended, Entry, Run, Stop};

use super::{Moment, State};
use crate::error::Error;
use crate::kernel::{Argument, Kernel, Launch, Module};

thread_local! {
    /// Modules that were parsed: crash tests make many devices for the same few.
    static PARSED: RefCell<HashMap<u64, nearpm_ptx::Module>> = RefCell::default();
}

fn parsed(text: &Module) -> Result<nearpm_ptx::Module, nearpm_ptx::ParseError> {
    PARSED.with_borrow_mut(|parsed| match parsed.entry(text.identity()) {
        hash_map::Entry::Occupied(loaded) => Ok(loaded.get().clone()),
        hash_map::Entry::Vacant(place) => Ok(place.insert(nearpm_ptx::Module::parse(text.ptx())?).clone()),
    })
}

impl State {
    fn arguments(launch: &Launch) -> Arguments {
        launch.arguments.iter().fold(Arguments::new(), |so_far, argument| match *argument {
            Argument::U32(value) => so_far.u32(value),
            Argument::U64(value) => so_far.u64(value),
            Argument::F32(value) => so_far.f32(value),
        })
    }

    /// The interpreter's form of a launch.
    pub(super) fn shape(kernel: Kernel<'_>, launch: &Launch) -> Result<(Entry, nearpm_ptx::Launch), Error> {
        let text = kernel.module;
        let refuse = |why: String| Error::Module { module: text.name().to_owned(), why };
        let module = parsed(text).map_err(|error| refuse(error.to_string()))?;
        let entry = module.entry(kernel.entry).map_err(|error| refuse(error.to_string()))?.clone();
        Ok((entry, nearpm_ptx::Launch::linear(launch.blocks, launch.threads, State::arguments(launch))))
    }

    pub(super) fn launch(&mut self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        let (entry, shape) = State::shape(kernel, launch)?;
        let now = self.launches;
        let plan = self.plan.and_then(|plan| match plan.moment {
            Moment::Launch { after, stop } if after == now => Some((stop, plan.choice)),
            _ => None,
        });
        self.launches += 1;
        if let Some(watching) = self.watching.take() {
            self.watching = Some(self.launch_watched(watching, &entry, &shape, now)?);
            return Ok(());
        }
        let mut run = Run {
            schedule: self.schedule.clone(),
            stop_at: plan.map_or(Stop::Never, |(stop, _)| stop),
            persistence: self.persistence,
            ..Run::default()
        };
        let outcome = self.gpu.launch(&entry, &shape, &mut run);
        self.schedule = run.schedule;
        let outcome = outcome.map_err(|error| Error::Kernel(error.to_string()))?;
        add(&mut self.counts, &outcome.counts);
        match (outcome.ended, plan) {
            (Ended::Stopped, Some((_, choice))) => {
                let replay = self.crash(choice)?;
                self.plan = None;
                Err(Error::Crashed(replay))
            }
            _ => Ok(()),
        }
    }
}

/// Adds what was counted in a launch.
pub(super) fn add(sum: &mut Counts, more: &Counts) {
    sum.warp_instructions += more.warp_instructions;
    sum.lane_instructions += more.lane_instructions;
    sum.pm_loads.add(&more.pm_loads);
    sum.pm_stores.add(&more.pm_stores);
    sum.pm_atomics += more.pm_atomics;
    sum.pm_bytes_stored += more.pm_bytes_stored;
    sum.pm_bytes_loaded += more.pm_bytes_loaded;
    sum.translation_misses += more.translation_misses;
    sum.walk_misses += more.walk_misses;
    sum.fences.block += more.fences.block;
    sum.fences.device += more.fences.device;
    sum.fences.system += more.fences.system;
    sum.barriers += more.barriers;
    sum.persist_events += more.persist_events;
}
