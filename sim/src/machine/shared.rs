//! The machine between the threads that use it.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::turns::Turns;
use super::{CORE, PowerCut};
use crate::host::{Blocked, HANG_CYCLES, Host};

/// A machine that threads share.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Inside>>);

struct Inside {
    host: Host,
    /// While cores take turns.
    turns: Option<Turns>,
}

type Guard<'s> = MutexGuard<'s, Inside>;

impl Shared {
    pub fn new(host: Host) -> Shared {
        Shared(Arc::new(Mutex::new(Inside { host, turns: None })))
    }

    fn lock(&self) -> Guard<'_> {
        // A panic inside an access is a simulator's bug; what is looked at afterwards is for its
        // message.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the machine without being a part of it.
    pub fn look<R>(&self, f: impl FnOnce(&mut Host, usize) -> R) -> R {
        let core = CORE.get();
        let mut inside = self.lock();
        inside.host.use_core(core);
        f(&mut inside.host, core)
    }

    /// An access by this thread's core, which waits for nothing but its turn: the first one without
    /// power unwinds.
    pub fn access<R>(&self, f: impl FnOnce(&mut Host, usize) -> R) -> R {
        let mut f = Some(f);
        self.access_resumable(|host, core| Ok(f.take().expect("it does not stop")(host, core)))
    }

    /// An access that goes on where it has stopped, when the card has answered.
    pub fn access_resumable<R>(&self, mut step: impl FnMut(&mut Host, usize) -> Result<R, Blocked>) -> R {
        let core = CORE.get();
        let mut inside = self.lock();
        inside.host.use_core(core);
        inside = self.turn_of(inside, core);
        let result = loop {
            match step(&mut inside.host, core) {
                Ok(result) => break result,
                Err(blocked) => {
                    let turns = inside.turns.as_mut().expect("an access stops only where cores take turns");
                    turns.wait_for(core, blocked);
                    inside = self.turn_of(inside, core);
                }
            }
        };
        let stops = inside.host.stops(core);
        drop(inside);
        if stops && !std::thread::panicking() {
            resume_unwind(Box::new(PowerCut));
        }
        result
    }

    /// Waits until it is a core's turn.
    fn turn_of<'s>(&'s self, mut inside: Guard<'s>, core: usize) -> Guard<'s> {
        let Inside { host, turns: Some(turns) } = &mut *inside else { return inside };
        if !turns.includes(core) || turns.choose(host) == Some(core) {
            return inside;
        }
        turns.wake(turns.turn).notify_one();
        self.sleep(inside, core)
    }

    /// Sleeps until somebody gives a core the turn.
    ///
    /// # Panics
    /// If nobody ever will.
    fn sleep<'s>(&'s self, mut inside: Guard<'s>, core: usize) -> Guard<'s> {
        while let Some(turns) = &inside.turns {
            assert!(!turns.hangs, "no card answered any core within {HANG_CYCLES} cycles: one hangs");
            if turns.turn == core {
                break;
            }
            let wake = turns.wake(core);
            inside = wake.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        inside
    }

    /// Cores from 0 on take turns from now on.
    ///
    /// # Panics
    /// If some do.
    pub fn begin_turns(&self, cores: usize) {
        let mut inside = self.lock();
        assert!(inside.turns.is_none(), "cores that take turns cannot begin others");
        inside.host.use_core(cores.saturating_sub(1));
        let mut turns = Turns::new(cores);
        turns.choose(&mut inside.host);
        inside.host.takes_turns = cores > 1;
        inside.turns = Some(turns);
    }

    /// All have ended.
    pub fn end_turns(&self) {
        let mut inside = self.lock();
        inside.host.takes_turns = false;
        inside.turns = None;
    }

    /// Waits for the first turn of this thread's core, which takes part until what is returned is
    /// dropped.
    pub fn take_part(&self, core: usize) -> Part<'_> {
        drop(self.sleep(self.lock(), core));
        Part { shared: self, core }
    }

    /// Whether cores take turns, so that what one waits for comes only when it lets time pass.
    pub fn takes_turns(&self) -> bool {
        self.lock().host.takes_turns
    }
}

/// A core's part in the turns; it passes the turn on when it ends, also by a panic.
pub(super) struct Part<'s> {
    shared: &'s Shared,
    core: usize,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let mut inside = self.shared.lock();
        let Inside { host, turns: Some(turns) } = &mut *inside else { return };
        turns.end(self.core);
        if let Some(next) = turns.choose(host) {
            turns.wake(next).notify_one();
        }
    }
}
