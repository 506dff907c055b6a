//! The paper's evaluation on simulated computers, on a card that is there, and on this processor.
//!
//! | module | holds |
//! |---|---|
//! | [`bench`] | runs cases that have no result yet |
//! | [`case`] | what is run: program, inputs, mechanism, configuration, profile |
//! | [`device`] | what plays the card: the transaction-level model or the RTL |
//! | [`copies`] | the paper's micro-benchmark (Fig. 17) on the model and on the RTL |
//! | [`compute`] | what a program computes for, measured natively and stored |
//! | `computer`, [`meter`] | a computer of a profile, and where its time goes |
//! | [`served`] | a program in a pool or on bare memory, and when its epochs end |
//! | [`run`] | runs a case on a simulated computer and checks what it left |
//! | [`recorded`] | what arrives at a card while a program runs |
//! | [`recovery`] | times of recoveries |
//! | [`place`] | runs a case by the clock of a card that is there, or of this processor |
//! | [`on_card`] | programs on a card that is there, in its transport's time |
//! | [`on_host`] | programs on this processor, in files, in wall-clock time |
//! | [`working_copy`] | a working copy of a direct pool as cases have it |
//! | [`plan`] | the cases of the quick and of the full form |
//! | [`results`] | a folder of results, CSV and JSON |
//! | [`stored`] | the results that are stored, and all of them made anew |
//! | [`published`] | what the paper says in its text |
//! | [`summary`] | ratios, averages, deviations |
//! | [`report`] | the page |
//!
//! Every time that [`run`] gives is **simulated**: the transaction-level card or the Verilated RTL,
//! and the host model, with a profile's parameters. What a program computes for is measured
//! natively once, and stored with the machine that measured it ([`compute`]).

pub mod bench;
pub mod case;
pub mod compute;
mod computer;
pub mod copies;
pub mod device;
pub mod meter;
pub mod on_card;
pub mod on_host;
pub mod place;
pub mod plan;
pub mod published;
pub mod recorded;
pub mod recovery;
pub mod report;
pub mod results;
pub mod run;
pub mod served;
pub mod stored;
pub mod summary;
pub mod working_copy;
