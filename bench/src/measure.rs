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
}

/// Runs a case with PMDK, ours and, if wanted, the floor, one after the other, `rounds` times, after a round that warms up.
pub fn in_turn(rig: &Rig, libraries: &Libraries, case: &Case, rounds: usize, with_floor: bool) -> Result<Measured> {
    let (mut pmdk, mut ours, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let sample = |library: &Library, samples: &mut Vec<Timing>| -> Result<()> {
            let timing = rig.time(library, case)?;
            if round > 0 {
                samples.push(timing);
            }
            Ok(())
        };
        sample(&libraries.pmdk, &mut pmdk)?;
        if let Some(library) = &libraries.ours {
            sample(library, &mut ours)?;
        }
        if with_floor {
            sample(&libraries.floor, &mut floor)?;
        }
    }
    let ours = libraries.ours.is_some().then_some(ours);
    Ok(Measured { case: case.clone(), pmdk, ours, floor: with_floor.then_some(floor) })
}
