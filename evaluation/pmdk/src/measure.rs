//! Measuring libraries in turn.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::library::{Library, Rig, Timing};

/// The libraries that are compared.
pub struct Libraries {
    /// PMDK's, as it is installed.
    pub pmdk: Library,
    /// The one that is to replace it, if there is one.
    pub ours: Option<Library>,
    /// That one without a working copy, if it is measured beside.
    pub in_place: Option<Library>,
    /// The same interface without persistence.
    pub floor: Library,
}

/// What a case took, one sample a round; the rounds of the libraries belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What was run.
    pub case: Case,
    /// With PMDK.
    pub pmdk: Vec<Timing>,
    /// With the library that is to replace it.
    pub ours: Option<Vec<Timing>>,
    /// With the floor, where it was run.
    pub floor: Option<Vec<Timing>>,
    /// With the library that is to replace it, in place, where that was run.
    #[serde(default)]
    pub in_place: Option<Vec<Timing>>,
}

impl Measured {
    fn nothing_yet(case: &Case, libraries: &Libraries, with_floor: bool) -> Self {
        let samples_of = |library: &Option<Library>| library.as_ref().map(|_| Vec::new());
        let (ours, in_place) = (samples_of(&libraries.ours), samples_of(&libraries.in_place));
        let floor = (with_floor && case.program.has_floor()).then(Vec::new);
        Measured { case: case.clone(), pmdk: Vec::new(), ours, floor, in_place }
    }
}

/// Runs cases of one process once with each library.
fn round(run: &mut [Measured], rig: &Rig, libraries: &Libraries) -> Result<()> {
    type Samples = fn(&mut Measured) -> Option<&mut Vec<Timing>>;
    let cases: Vec<Case> = run.iter().map(|measured| measured.case.clone()).collect();
    let turns: [(Option<&Library>, Samples); 4] = [
        (Some(&libraries.pmdk), |measured| Some(&mut measured.pmdk)),
        (libraries.ours.as_ref(), |measured| measured.ours.as_mut()),
        (libraries.in_place.as_ref(), |measured| measured.in_place.as_mut()),
        (Some(&libraries.floor), |measured| measured.floor.as_mut()),
    ];
    for (library, samples) in turns {
        let wanted = run.iter_mut().any(|measured| samples(measured).is_some());
        let Some(library) = library.filter(|_| wanted) else { continue };
        let timings = rig.time_run(library, &cases)?;
        for (measured, timing) in run.iter_mut().zip(timings) {
            samples(measured).into_iter().for_each(|samples| samples.push(timing));
        }
    }
    Ok(())
}

/// Runs cases that belong together: each with PMDK, ours in its modes and, if wanted and there, the
/// floor, one after the other, and so again for `rounds`, after a round that warms up.
pub fn in_turn(
    rig: &Rig,
    libraries: &Libraries,
    cases: &[Case],
    rounds: usize,
    with_floor: bool,
) -> Result<Vec<Measured>> {
    let begin =
        || -> Vec<Measured> { cases.iter().map(|case| Measured::nothing_yet(case, libraries, with_floor)).collect() };
    let all = |measured: &mut [Measured]| -> Result<()> {
        let mut runs = measured.chunk_by_mut(|one, next| one.case.is_one_run_with(&next.case));
        runs.try_for_each(|run| round(run, rig, libraries))
    };
    all(&mut begin())?;
    let mut measured = begin();
    for _ in 0..rounds {
        all(&mut measured)?;
    }
    Ok(measured)
}
