//! Explores what crashes leave of a pool.
//!
//! A program runs on memory that writes down its stores, write-backs and fences ([`trace`]), or on
//! a card that also writes down its commands ([`card`]). From that follows what a crash at any
//! moment may leave of each cache line ([`lines`]), and of what commands do ([`commands`]). The
//! explorer recovers from all of it, or from one state of each kind that recovery can tell apart,
//! compares what it finds with a model, and cuts the recovery, too ([`explore`]). What fails is
//! made small and written to a file that repeats it ([`failure`]). `docs/explorer.md` says what is
//! covered.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod arena;
pub mod body;
mod c;
pub mod card;
pub mod choices;
pub mod commands;
pub mod crash;
pub mod explore;
mod explored;
pub mod failure;
pub mod image;
pub mod lines;
pub mod media;
pub mod pools;
pub mod program;
mod programs;
mod quiet;
pub mod schedule;
mod slots;
mod structures;
pub mod trace;
