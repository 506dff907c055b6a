//! Power cuts at every clock cycle of the RTL, by saved states of the simulator.
//!
//! | module | holds |
//! |---|---|
//! | [`copies`] | copies of the process: the saved states |
//! | [`scenario`] | bounded traffic, and what memory may be after each part of it |
//! | [`catalogue`] | the scenarios |
//! | [`run`] | a scenario that runs, one cycle after the other |
//! | [`subject`] | what can be cut, and how far that goes |
//! | [`explore`] | the cuts and what each is compared with |
//! | [`fingerprint`] | numbers that name what a memory holds |
//! | [`striped`] | the same over several cards, with host and library |
//! | [`power`] | a card's power: up to an open card, and down through its save |
//! | [`tally`] | counters and violations |

pub mod catalogue;
pub mod copies;
pub mod explore;
pub mod fingerprint;
pub mod power;
pub mod run;
pub mod scenario;
pub mod striped;
pub mod subject;
pub mod tally;
