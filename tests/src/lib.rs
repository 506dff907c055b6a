//! What crosses crates: co-simulation, crash cuts, dependency direction.
//!
//! | module | holds |
//! |---|---|
//! | [`trace`] | random card traffic, at least half of it in conflict |
//! | [`oracle`] | what that traffic must do: every access executed at once, in order |
//! | [`drive`] | runs a trace on any simulated card and notes what came back |
//! | [`rig`] | a provisioned medium, the generated card, and what two media are compared by |
//! | [`fuzzing`] | the bodies of the fuzz targets: arbitrary bytes for the pool opener and the command port |

pub mod drive;
pub mod fit;
pub mod fuzzing;
pub mod micro;
pub mod oracle;
pub mod rig;
pub mod trace;
