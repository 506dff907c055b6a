//! A running server: who listens, who serves, who keeps house, and how it ends.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use nearpm::prelude::*;

use crate::batch::is_fatal;
use crate::effects::Effects;
use crate::effects::Inbox;
use crate::options::{Level, Options};
use crate::service::{Service, Turn};
use crate::store::Recency;
use crate::tally::{Tally, Totals};
use crate::worker::{Worker, system};

/// Time between two looks for expired keys.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// How long a look may take when there are many.
const SWEEPING: Duration = Duration::from_millis(20);

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// What all threads of a server share.
pub struct Shared<S> {
    /// The protocol.
    pub service: S,
    /// The pool.
    pub pool: DirectPool,
    /// How it was started.
    pub options: Options,
    /// What was used last.
    pub recency: Recency,
    /// What happened.
    pub totals: Arc<Totals>,
    /// It is to end.
    pub stopping: AtomicBool,
}

/// A running server. Dropping it stops it, and keeps errors to itself.
pub struct Server<S: Service> {
    shared: Option<Arc<Shared<S>>>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
    wakers: Vec<Box<dyn Fn() -> io::Result<()> + Send>>,
    ended: Receiver<Error>,
    house: Option<(Sender<()>, JoinHandle<()>)>,
}

/// An address that a server has taken, before it opens anything.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address, `host:port`.
    ///
    /// # Errors
    /// Those of the system: it is taken.
    pub fn bind(listen: &str) -> Result<Listener, Error> {
        let cannot = |error| system(&format!("listen at {listen}"), error);
        let address = listen.to_socket_addrs().map_err(cannot)?.next();
        let address = address.ok_or_else(|| cannot(io::ErrorKind::AddrNotAvailable.into()))?;
        let socket = TcpListener::bind(address).map_err(cannot)?;
        let address = socket.local_addr().map_err(cannot)?;
        Ok(Listener { socket, address })
    }
}

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);

impl<S: Service> Server<S> {
    /// Starts serving a pool.
    ///
    /// # Errors
    /// Those of the system: there are no more threads.
    pub fn start(
        service: S,
        pool: DirectPool,
        options: Options,
        totals: Arc<Totals>,
        listener: Listener,
    ) -> Result<Server<S>, Error> {
        let Listener { socket: listener, address } = listener;
        let stopping = AtomicBool::new(false);
        let shared = Arc::new(Shared { service, pool, options, recency: Recency::default(), totals, stopping });
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
    fn listen(&mut self, listener: TcpListener, inboxes: Vec<Arc<Inbox>>, tell: Sender<Error>) -> Result<(), Error> {
        let poll = Poll::new().map_err(|error| system("start the listener", error))?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(|error| system("start the listener", error))?;
        self.wakers.push(Box::new(move || waker.wake()));
        let shared = self.shared().clone();
        self.spawn("listen".to_owned(), move || {
            watched(&tell, || {
                accept(&shared, poll, listener, &inboxes).map_err(|error| system("accept clients", error))
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

/// Runs a thread's body, and tells how it failed: by an error, or by a panic, after which its clients would wait for ever.
fn watched(tell: &Sender<Error>, body: impl FnOnce() -> Result<(), Error>) {
    let panicked = |_| Err(system("serve clients", io::Error::other("a thread has panicked")));
    // What the body has held is not used any more: a transaction was taken back, and the server ends.
    if let Err(error) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or_else(panicked) {
        let _ = tell.send(error);
    }
}

/// Accepts clients until the server stops.
fn accept<S: Service>(
    shared: &Shared<S>,
    mut poll: Poll,
    mut listener: TcpListener,
    inboxes: &[Arc<Inbox>],
) -> io::Result<()> {
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let (mut events, mut next) = (Events::with_capacity(8), 0);
    while !shared.stopping.load(Ordering::Acquire) {
        match poll.poll(&mut events, Some(Duration::from_millis(200))) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => done?,
        }
        // Until nobody is left. When the system has no more descriptors, whoever waits is looked for at the next turn.
        while let Ok((mut socket, _)) = listener.accept() {
            let clients = shared.totals.clients.fetch_add(1, Ordering::Relaxed);
            if clients >= shared.options.max_clients as u64 {
                shared.totals.clients.fetch_sub(1, Ordering::Relaxed);
                shared.totals.refused.fetch_add(1, Ordering::Relaxed);
                // One that does not even take this learns it by the end of the connection.
                let _ = socket.write(S::TOO_MANY);
                continue;
            }
            let number = shared.totals.accepted.fetch_add(1, Ordering::Relaxed) + 1;
            inboxes[next % inboxes.len()].put(number, socket)?;
            next += 1;
        }
    }
    Ok(())
}

/// Keeps house until the server stops.
fn house<S: Service>(shared: &Shared<S>, stopped: &Receiver<()>) -> Result<(), Error> {
    let every = Duration::from_millis(shared.options.sync_ms);
    let (mut swept, mut synchronised) = (Instant::now(), Instant::now());
    let is_async = shared.options.durability == Level::Async;
    let wait = if is_async { HOUSEKEEPING.min(every) } else { HOUSEKEEPING };
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        if is_async && synchronised.elapsed() >= every {
            synchronised = Instant::now();
            shared.pool.wait_durable()?;
        }
        if swept.elapsed() < HOUSEKEEPING {
            continue;
        }
        let start = Instant::now();
        loop {
            let turn = Turn {
                now_ms: now_ms(),
                recency: &shared.recency,
                tally: Tally::default(),
                effects: Effects::default(),
            };
            let more = match shared.service.sweep(&shared.pool, &turn) {
                Err(error) if is_fatal(&error) => return Err(error),
                // What could not be removed now is dead all the same, and is looked for again.
                swept => swept.unwrap_or(false),
            };
            shared.totals.add(&turn.tally);
            if !more || start.elapsed() > SWEEPING {
                break;
            }
        }
        swept = Instant::now();
    }
    Ok(())
}
