//! A running server: who listens, who serves, who keeps house, and how it ends.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::{Poll, Token, Waker};
use nearpm::prelude::*;
use rustls::ServerConfig;

use crate::access::Access;
use crate::effects::Inbox;
use crate::fault::system;
use crate::house::house;
use crate::listener::Listener;
use crate::options::Options;
use crate::service::Service;
use crate::shared::Shared;
use crate::store::{Expiries, Recency};
use crate::tally::Totals;
use crate::worker::Worker;

/// A running server. Dropping it stops it, and keeps errors to itself.
pub struct Server<S: Service> {
    shared: Option<Arc<Shared<S>>>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
    wakers: Vec<Box<dyn Fn() -> io::Result<()> + Send>>,
    ended: Receiver<Error>,
    house: Option<(Sender<()>, JoinHandle<()>)>,
}

/// What a server is made of.
pub struct Start<S> {
    /// The protocol.
    pub service: S,
    /// The pool.
    pub pool: DirectPool,
    /// How it is started.
    pub options: Options,
    /// What happened.
    pub totals: Arc<Totals>,
    /// Who may do what.
    pub access: Arc<Access>,
    /// What clients speak TLS with, if they do.
    pub tls: Option<Arc<ServerConfig>>,
}

const WAKER: Token = Token(1);

impl<S: Service> Server<S> {
    /// Starts serving a pool.
    ///
    /// # Errors
    /// Those of the system: there are no more threads.
    pub fn start(start: Start<S>, listener: Listener, metrics: Option<TcpListener>) -> Result<Server<S>, Error> {
        let Start { service, pool, options, totals, access, tls } = start;
        let (stopping, recency, address) = (AtomicBool::new(false), Recency::default(), listener.address());
        let chunk = pool.parts_with_objects(&(0..u64::MAX)).next().unwrap_or_default();
        let expiries = Expiries::default();
        let shared =
            Arc::new(Shared { service, pool, options, recency, expiries, chunk, totals, access, tls, stopping });
        let (tell, ended) = channel();
        let mut server = Server {
            shared: Some(shared.clone()),
            address,
            threads: Vec::new(),
            wakers: Vec::new(),
            ended,
            house: None,
        };
        let mut inboxes = Vec::new();
        for number in 0..shared.options.threads {
            let worker = Worker::new(shared.clone()).map_err(|error| system("start a worker", error))?;
            let (inbox, tell) = (worker.inbox(), tell.clone());
            inboxes.push(inbox.clone());
            server.wakers.push(Box::new(move || inbox.wake()));
            server.spawn(format!("serve-{number}"), move || {
                watched(&tell, || worker.run());
            })?;
        }
        server.listen(listener, inboxes, tell.clone())?;
        server.keep_house(tell)?;
        if let Some(metrics) = metrics {
            let shared = server.shared().clone();
            server.spawn("metrics".to_owned(), move || crate::metrics::serve(&shared, &metrics))?;
        }
        Ok(server)
    }

    fn shared(&self) -> &Arc<Shared<S>> {
        self.shared.as_ref().expect("it is there until the end")
    }

    fn spawn(&mut self, name: String, body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = std::thread::Builder::new().name(name).spawn(body);
        self.threads.push(thread.map_err(|error| system("start a thread", error))?);
        Ok(())
    }

    /// Accepts clients and hands them round.
    fn listen(&mut self, listener: Listener, inboxes: Vec<Arc<Inbox>>, tell: Sender<Error>) -> Result<(), Error> {
        let poll = Poll::new().map_err(|error| system("start the listener", error))?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(|error| system("start the listener", error))?;
        self.wakers.push(Box::new(move || waker.wake()));
        let shared = self.shared().clone();
        self.spawn("listen".to_owned(), move || {
            watched(&tell, || {
                listener.accept(&shared, poll, &inboxes).map_err(|error| system("accept clients", error))
            });
        })
    }

    /// Removes what has expired, and synchronises where nobody waits for that.
    fn keep_house(&mut self, tell: Sender<Error>) -> Result<(), Error> {
        let shared = self.shared().clone();
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name("house".to_owned()).spawn(move || {
            watched(&tell, || house(&shared, &stopped));
        });
        self.house = Some((stop, thread.map_err(|error| system("start a thread", error))?));
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits, for a while or for ever, until the server can go on no more; `None` if it still can.
    pub fn failed(&self, wait: Duration) -> Option<Error> {
        self.ended.recv_timeout(wait).ok()
    }

    /// Ends all threads, and closes the pool.
    ///
    /// # Errors
    /// What ended a thread before; those of the close.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end_threads();
        if let Ok(error) = self.ended.try_recv() {
            return Err(error);
        }
        match self.shared.take().map(Arc::try_unwrap) {
            Some(Ok(shared)) => shared.pool.close(),
            _ => Ok(()),
        }
    }

    fn end_threads(&mut self) {
        self.shared().stopping.store(true, Ordering::Release);
        self.house.take().into_iter().for_each(|(stop, thread)| {
            drop(stop);
            let _ = thread.join();
        });
        for wake in self.wakers.drain(..) {
            // A thread that cannot be woken looks by itself, later.
            let _ = wake();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<S: Service> Drop for Server<S> {
    fn drop(&mut self) {
        if self.shared.is_some() {
            self.end_threads();
        }
    }
}

/// Runs a thread's body, and tells how it failed: by an error, or by a panic, after which its
/// clients would wait for ever.
fn watched(tell: &Sender<Error>, body: impl FnOnce() -> Result<(), Error>) {
    let panicked = |_| Err(system("serve clients", io::Error::other("a thread has panicked")));
    // What the body has held is not used any more: a transaction was taken back, and the server
    // ends.
    if let Err(error) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or_else(panicked) {
        let _ = tell.send(error);
    }
}
