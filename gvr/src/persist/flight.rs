//! A cut that is sealed while the program goes on, by a thread beside the rank's own.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::cut::{Cut, Outcome, Sealed};
use crate::array::Core;
use crate::error::{Error, Result};
use crate::rma::Rma;

/// What a thread leaves.
#[derive(Default)]
struct Landing {
    outcome: Mutex<Option<Outcome>>,
    /// Set when the thread does nothing more, whatever ended it.
    done: AtomicBool,
}

/// Says that a thread does nothing more, when it goes.
struct Last(Arc<Landing>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::Release);
    }
}

/// A cut on its way to the pools.
pub(super) struct Flight {
    pub cut: Arc<Cut>,
    /// The arrays of it, in its order.
    pub cores: Vec<Rc<Core>>,
    rma: Rc<dyn Rma>,
    landing: Arc<Landing>,
    thread: RefCell<Option<JoinHandle<()>>>,
}

impl Flight {
    /// Starts the thread. Where there can be none, the cut is sealed here and now.
    pub fn start(rma: &Rc<dyn Rma>, cut: Cut, cores: Vec<Rc<Core>>) -> Flight {
        let (cut, landing) = (Arc::new(cut), Arc::<Landing>::default());
        let flight = Flight { cut, cores, rma: Rc::clone(rma), landing, thread: RefCell::new(None) };
        match flight.spawn() {
            Ok(thread) => *flight.thread.borrow_mut() = Some(thread),
            Err(_) => flight.seal_here(),
        }
        flight
    }

    fn spawn(&self) -> Result<JoinHandle<()>> {
        let helper = self.rma.helper()?;
        let (cut, landing) = (Arc::clone(&self.cut), Arc::clone(&self.landing));
        let body = move || {
            // Goes last: until then others of a simulated world do not run.
            let rma = helper;
            let last = Last(landing);
            // The first step: in a simulated world it waits for the thread's turn.
            let outcome = rma.flush(rma.rank()).and_then(|()| cut.seal(&*rma));
            *last.0.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            drop(cut);
            drop(last);
        };
        let builder = std::thread::Builder::new().name("gvr-flush".to_owned());
        builder.spawn(body).map_err(Error::io("start the thread that seals versions"))
    }

    fn seal_here(&self) {
        *self.landing.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.cut.seal(&*self.rma));
        self.landing.done.store(true, Ordering::Release);
    }

    fn is_done(&self) -> bool {
        self.landing.done.load(Ordering::Acquire)
    }

    /// Waits until the thread has ended. Only a simulated rank that was stopped does not wait: its
    /// thread is stopped, too.
    pub fn land(&self) -> Result<()> {
        if self.thread.borrow().is_none() {
            return Ok(());
        }
        while !self.is_done() {
            // A rank that is gone does not keep this one from sealing.
            if let Err(stopped @ Error::Stopped { .. }) = self.rma.pause() {
                return Err(stopped);
            }
        }
        // A panic shows in the outcome that is not there.
        let _ = self.thread.borrow_mut().take().map(JoinHandle::join);
        Ok(())
    }

    /// Waits until the cut is sealed on this rank. Where that has failed the next call tries once
    /// more.
    pub fn arrived(&self) -> Result<()> {
        self.land()?;
        if self.landing.outcome.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            self.seal_here();
        }
        let mut outcome = self.landing.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome.take() {
            Some(Err(error)) => Err(error),
            sealed => {
                *outcome = sealed;
                Ok(())
            }
        }
    }

    /// What sealing gave, once.
    pub fn sealed(&self) -> Option<Sealed> {
        self.landing.outcome.lock().unwrap_or_else(PoisonError::into_inner).take()?.ok()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let _ = self.land();
    }
}
