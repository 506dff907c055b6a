//! Steps that a test leaves out, to show that each is needed.
//!
//! A step is known by the place that asks for it, so that a new one is found without a list.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::Location;

/// What makes bytes durable, or lets others see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The write-back that a streaming store begins.
    Stream,
    WriteBack,
    Fence,
    Drain,
    Invalidate,
}

/// A step and the place that asks for it.
pub(crate) type Site = (Step, &'static str, u32);

thread_local! {
    static LEFT_OUT: Cell<Option<Site>> = const { Cell::new(None) };
    static OMISSIONS: Cell<u64> = const { Cell::new(0) };
    static SEEN: RefCell<BTreeSet<Site>> = const { RefCell::new(BTreeSet::new()) };
}

/// Whether the step that the caller asks for is to be left out.
#[track_caller]
pub(crate) fn left_out(step: Step) -> bool {
    let place = Location::caller();
    let site = (step, place.file(), place.line());
    SEEN.with_borrow_mut(|seen| seen.insert(site));
    let omitted = LEFT_OUT.get() == Some(site);
    OMISSIONS.set(OMISSIONS.get() + u64::from(omitted));
    omitted
}

/// How often a step was left out on this thread.
pub(crate) fn omissions() -> u64 {
    OMISSIONS.get()
}

/// Leaves a step out on this thread, from now on.
pub(crate) fn leave_out(site: Option<Site>) {
    LEFT_OUT.set(site);
}

/// The steps that this thread has asked for since the last call.
pub(crate) fn seen() -> BTreeSet<Site> {
    SEEN.take()
}
