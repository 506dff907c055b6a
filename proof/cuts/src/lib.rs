//! Power cuts of workloads on simulated computers: each run is cut, recovered, and compared with a
//! model.
//!
//! [`cut`] says when the power fails, [`job`] is one run with its cuts and what was found behind
//! them (`nearpm run`), and [`campaign`] is many short runs (`nearpm cuts`). Results depend on
//! nothing but the arguments.

pub mod campaign;
pub mod cut;
pub mod job;
