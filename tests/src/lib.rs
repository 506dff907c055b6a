//! What crosses crates: co-simulation, crash cuts, dependency direction.
//!
//! | module | holds |
//! |---|---|
//! | [`agreement`] | whether two cards have done the same, and how their times compare |
//! | [`replay`] | plays what was recorded at a card's ports to another one |
//! | [`trace`] | random card traffic, at least half of it in conflict |
//! | [`oracle`] | what that traffic must do: every access executed at once, in order |
//! | [`cuts`] | power cuts at every clock cycle of the RTL |
//! | [`drive`] | runs a trace on any simulated card and notes what came back |
//! | [`litmus`] | the litmus tests of the ordering model on simulated cards |
//! | [`pins`] | the RTL at its pins, with random traffic over the whole space of addresses |
//! | [`programs`] | firmware other than the standard one, also of random programs |
//! | [`rig`] | a provisioned medium, the generated card, and what two media are compared by |
//! | [`fuzzing`] | the bodies of the fuzz targets: arbitrary bytes for the pool opener, the command port and the units' programs |

pub mod agreement;
pub mod cuts;
pub mod drive;
pub mod fit;
pub mod fuzzing;
pub mod litmus;
pub mod micro;
pub mod oracle;
pub mod pins;
pub mod programs;
pub mod replay;
pub mod rig;
pub mod trace;
