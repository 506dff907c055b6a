//! Every state of a launch, and what crashes in each would leave.

use std::collections::HashSet;
use std::rc::Rc;

use nearpm_ptx::{Choice, LaunchError, Reached, Schedule, Visited, every_state};

use super::watch::first_image;
use super::{Changes, Interpreted, State};
use crate::error::Error;
use crate::kernel::{Kernel, Launch};

/// What is gone through of a launch's states.
#[derive(Clone, Debug)]
pub struct States {
    /// Times that a thread that could go on is made to wait.
    pub preemptions: u32,
    /// Most states.
    pub limit: u64,
    /// What survives of the stores that pend at a crash.
    pub survives: Survives,
}

/// What survives of the stores that pend at a crash.
#[derive(Clone, Debug)]
pub enum Survives {
    /// Each of these; where there is none, nothing is crashed.
    These(Vec<Choice>),
    /// Every set of them that coherence allows, which at most so many images may come from.
    Any {
        /// Most images of one crash.
        limit: u128,
    },
}

/// An image of the first region that a launch, or a crash of it, may leave.
#[derive(Clone, Debug)]
pub struct Leaves {
    /// What it has that the region had not before.
    pub changes: Rc<Changes>,
    /// The persist event of the crash; None at the end.
    pub event: Option<u64>,
    /// What survived, where that was chosen.
    pub choice: Option<Choice>,
    /// The order in which warps ran.
    pub schedule: Schedule,
}

/// How a search ends.
enum Failed<E> {
    Launch(LaunchError),
    Device(Error),
    Caller(E),
}

impl<E> From<LaunchError> for Failed<E> {
    fn from(error: LaunchError) -> Self {
        Failed::Launch(error)
    }
}

impl Interpreted {
    /// Goes through every state of a launch ([`every_state`]) and calls `look` with each image of
    /// the first region, which holds `base` now, that it may leave: at its end, and at a crash at
    /// each of its persist events. No image comes twice. What the device holds afterwards does not
    /// matter.
    ///
    /// # Errors
    /// The first of `look`, or what is wrong with the launch.
    pub fn every_state<E: From<Error>>(
        &self,
        kernel: Kernel<'_>,
        launch: &Launch,
        states: &States,
        base: &[u8],
        mut look: impl FnMut(Leaves) -> Result<(), E>,
    ) -> Result<Visited, E> {
        let (entry, shape) = State::shape(kernel, launch)?;
        let mut state = self.state.borrow_mut();
        let mut seen: HashSet<Rc<Changes>> = HashSet::new();
        let bounds = (states.preemptions, states.limit);
        let visited = every_state(&mut state.gpu, &entry, &shape, bounds, |gpu, reached, schedule| {
            let mut keep = |image: &[u8], event, choice| {
                let changes = Rc::new(Changes::between(base, image));
                if !seen.insert(changes.clone()) {
                    return Ok(());
                }
                look(Leaves { changes, event, choice, schedule: schedule.clone() }).map_err(Failed::Caller)
            };
            match (reached, &states.survives) {
                // At the end all has persisted.
                (Reached::End(_), _) => {
                    keep(&first_image(gpu, Choice::All).map_err(Failed::Device)?, None, Some(Choice::All))
                }
                (Reached::Event(event), Survives::These(choices)) => choices.iter().try_for_each(|&choice| {
                    keep(&first_image(gpu, choice).map_err(Failed::Device)?, Some(event), Some(choice))
                }),
                (Reached::Event(event), Survives::Any { limit }) => {
                    let failed = |error: nearpm_ptx::CrashError| Failed::Device(Error::Kernel(error.to_string()));
                    let mut images = gpu.images(*limit).map_err(failed)?;
                    images.try_for_each(|ranges| keep(ranges.first().map_or(&[], |image| image), Some(event), None))
                }
            }
        });
        visited.map_err(|failed| match failed {
            Failed::Launch(error) => Error::Kernel(error.to_string()).into(),
            Failed::Device(error) => error.into(),
            Failed::Caller(error) => error,
        })
    }
}
