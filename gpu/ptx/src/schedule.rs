//! Which warp runs when.

/// The order in which warps (and the parts of a diverged warp) run. Each is deterministic, so that a failure is
/// replayed by its schedule and its step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Each warp in turn for a fixed number of steps: the fastest.
    #[default]
    RoundRobin,
    /// Turns of random length by a random warp.
    Seeded(u64),
    /// The choices of an earlier run, then the first possible one; records what was possible.
    /// Made by [`every_schedule`]; may be stored and given again.
    Replay(Vec<u32>),
}

/// What [`every_schedule`] went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Schedules run.
    pub schedules: u64,
    /// Whether all within the bound were run (false: `limit` was reached).
    pub complete: bool,
}

/// Calls `body` with every schedule that preempts a running warp at most `preemptions` times (depth first, each
/// replayed from the start), until `limit` schedules were run. Warps are only preempted before instructions that other
/// threads can notice: accesses to global and shared memory, fences, barriers. `body` must launch exactly once with
/// the [`crate::Run`] it is given (it may crash and recover with runs of its own).
///
/// # Errors
/// The first error of `body`, with the choices that lead to it in the schedule it was given.
pub fn every_schedule<E>(
    preemptions: u32,
    limit: u64,
    body: impl FnMut(&mut crate::Run) -> Result<(), E>,
) -> Result<Explored, E> {
    let _ = (preemptions, limit, body);
    todo!()
}
