//! Power cuts at events that are spread over a whole run.

use std::sync::{Arc, Mutex, PoisonError};

use nearpm::memory::{Image, TestMemory};
use nearpm_workloads::run::Progress;

/// What survives a cut, and how far the run had got.
pub struct Survivor {
    pub image: Image,
    pub acknowledged: usize,
    pub started: usize,
}

/// Cuts the power at `cuts` events of what `run` does in a memory of `bytes` that `fresh` has
/// prepared.
pub fn survivors<P>(
    seed: u64,
    cuts: u64,
    bytes: usize,
    fresh: impl Fn(&TestMemory) -> P,
    run: impl Fn(&P, &Progress),
) -> Vec<Survivor> {
    let once = |step: Option<u64>| {
        let memory = TestMemory::new(bytes).evict(7, seed);
        let prepared = fresh(&memory);
        let first = memory.events();
        let progress = Arc::new(Progress::default());
        let made = Arc::new(Mutex::new(Vec::new()));
        let (seen, kept) = (progress.clone(), made.clone());
        memory.probe(move |number, _, surviving| {
            // A phase by seed, so that other seeds hit other events.
            if step.is_some_and(|step| (number - first) % step == seed * 7 % step) {
                let (acknowledged, started) = (seen.acknowledged(), seen.started());
                let image = surviving(seed ^ number);
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(Survivor { image, acknowledged, started });
            }
        });
        run(&prepared, &progress);
        memory.stop_probe();
        let made = std::mem::take(&mut *made.lock().unwrap_or_else(PoisonError::into_inner));
        (memory.events() - first, made)
    };
    let (events, _) = once(None);
    let (_, made) = once(Some((events / cuts).max(1)));
    assert!(made.len() as u64 >= cuts.min(events), "{} cuts of {events} events", made.len());
    made
}
