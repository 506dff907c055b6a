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

    /// Runs the case once with each library.
    fn round(&mut self, rig: &Rig, libraries: &Libraries) -> Result<()> {
        self.pmdk.push(rig.time(&libraries.pmdk, &self.case)?);
        let replaced = [(&mut self.ours, &libraries.ours), (&mut self.in_place, &libraries.in_place)];
        for (samples, library) in replaced {
            if let (Some(samples), Some(library)) = (samples, library) {
                samples.push(rig.time(library, &self.case)?);
            }
        }
        if let Some(samples) = &mut self.floor {
            samples.push(rig.time(&libraries.floor, &self.case)?);
        }
        Ok(())
    }
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
    begin().iter_mut().try_for_each(|warm_up| warm_up.round(rig, libraries))?;
    let mut measured = begin();
    for _ in 0..rounds {
        measured.iter_mut().try_for_each(|measured| measured.round(rig, libraries))?;
    }
    Ok(measured)
}
