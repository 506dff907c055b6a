//! A thread that serves clients: an event loop.
//!
//! A turn reads what has come from all of its clients, runs it in one transaction, waits until that is durable, and only then writes the
//! replies. What comes meanwhile waits in the sockets and shares the next transaction.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use nearpm::Error;

use crate::batch::{self, Lane};
use crate::connection::{Connection, READ_BYTES};
use crate::server::{Shared, now_ms};
use crate::service::Service;
use crate::stream::Stream;

const WAKER: Token = Token(0);
/// How long a worker sleeps when nothing happens.
const SLEEP: Duration = Duration::from_millis(500);
/// How long clients may take for their last replies when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Where new clients of a worker arrive.
pub struct Inbox {
    arrived: Mutex<Vec<TcpStream>>,
    waker: Waker,
}

impl Inbox {
    /// Hands a client over.
    pub fn put(&self, socket: TcpStream) -> io::Result<()> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
        self.waker.wake()
    }

    /// Makes the worker look whether it is to stop.
    pub fn wake(&self) -> io::Result<()> {
        self.waker.wake()
    }
}

/// A worker.
pub struct Worker<S: Service> {
    poll: Poll,
    inbox: Arc<Inbox>,
    shared: Arc<Shared<S>>,
    clients: HashMap<usize, Connection<S>>,
    next_token: usize,
    /// When idle clients were last looked for.
    looked: Instant,
    /// What is read goes through it.
    buffer: Box<[u8]>,
}

impl<S: Service> Worker<S> {
    /// A worker without clients.
    pub fn new(shared: Arc<Shared<S>>) -> io::Result<Worker<S>> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let inbox = Arc::new(Inbox { arrived: Mutex::default(), waker });
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Ok(Worker { poll, inbox, shared, clients: HashMap::new(), next_token: 1, looked: Instant::now(), buffer })
    }

    /// Where its clients arrive.
    pub fn inbox(&self) -> Arc<Inbox> {
        self.inbox.clone()
    }

    /// Serves until the server stops.
    ///
    /// # Errors
    /// Those after which nothing can be claimed about the pool, and the system's.
    pub fn run(mut self) -> Result<(), Error> {
        let mut events = Events::with_capacity(1024);
        let mut busy = Vec::new();
        while !self.shared.stopping.load(Ordering::Acquire) {
            let sleep = if busy.is_empty() { SLEEP } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(sleep)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => done.map_err(|error| system("wait for clients", error))?,
            }
            for event in &events {
                let Some(client) = self.clients.get_mut(&event.token().0) else { continue };
                let gone = event.is_error() || event.is_read_closed();
                client.wake(event.is_readable() || gone, event.is_writable() || event.is_error());
                busy.push(event.token().0);
            }
            self.welcome(&mut busy);
            busy.sort_unstable();
            busy.dedup();
            self.turn(&mut busy)?;
            self.turn_idle_away();
        }
        self.finish()
    }

    /// Answers what has come, and gives clients a while to take their replies.
    fn finish(mut self) -> Result<(), Error> {
        let mut busy: Vec<_> = self.clients.keys().copied().collect();
        self.turn(&mut busy)?;
        let start = Instant::now();
        while start.elapsed() < LAST_WORDS && self.clients.values().any(Connection::has_unsent) {
            std::thread::sleep(Duration::from_millis(5));
            self.clients.values_mut().for_each(|client| {
                client.wake(false, true);
                client.send();
            });
        }
        self.clients.values_mut().for_each(|client| client.socket().say_end());
        Ok(())
    }

    /// Ends the connections of clients that have asked for nothing for too long.
    fn turn_idle_away(&mut self) {
        let Some(most) = self.shared.options.network.idle() else { return };
        if self.looked.elapsed() < SLEEP {
            return;
        }
        self.looked = Instant::now();
        let (poll, totals) = (&self.poll, &self.shared.totals);
        self.clients.retain(|_, client| {
            let idle = client.is_idle(most);
            if idle {
                client.socket().say_end();
                let _ = poll.registry().deregister(client.socket().socket());
                totals.clients.fetch_sub(1, Ordering::Relaxed);
                totals.idle.fetch_add(1, Ordering::Relaxed);
            }
            !idle
        });
    }

    fn welcome(&mut self, busy: &mut Vec<usize>) {
        let arrived = std::mem::take(&mut *self.inbox.arrived.lock().unwrap_or_else(PoisonError::into_inner));
        for mut socket in arrived {
            let token = self.next_token;
            self.next_token += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut socket, Token(token), interest).is_err() {
                self.shared.totals.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let Ok(socket) = Stream::new(socket, self.shared.tls.as_ref()) else {
                self.shared.totals.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            };
            let number = self.shared.totals.accepted.load(Ordering::Relaxed);
            self.clients.insert(token, Connection::new(socket, self.shared.service.session(number)));
            busy.push(token);
        }
    }

    /// Serves clients, and leaves those in `busy` that have more to do.
    fn turn(&mut self, busy: &mut Vec<usize>) -> Result<(), Error> {
        let mut ready = Vec::with_capacity(busy.len());
        for token in busy.drain(..) {
            if let Some((token, mut client)) = self.clients.remove_entry(&token) {
                client.receive(&self.shared.service, &mut self.buffer);
                ready.push((token, client));
            }
        }
        let mut running: Vec<_> = ready.iter_mut().map(|(_, client)| client).filter(|c| c.may_run()).collect();
        if !running.is_empty() {
            let mut lanes: Vec<_> =
                running.iter().map(|client| Lane { requests: &client.waiting, done: 0, reply: Vec::new() }).collect();
            batch::execute(&self.shared, &mut lanes, now_ms())?;
            let answers: Vec<_> = lanes.into_iter().map(|lane| (lane.done, lane.reply)).collect();
            for (client, (done, reply)) in running.iter_mut().zip(answers) {
                client.answer(done, &reply);
            }
        }
        for (token, mut client) in ready {
            client.send();
            if client.is_over() {
                client.socket().say_end();
                let _ = self.poll.registry().deregister(client.socket().socket());
                self.shared.totals.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            if client.is_busy() {
                busy.push(token);
            }
            self.clients.insert(token, client);
        }
        Ok(())
    }
}

/// An error of the system as one of the library, which says what was tried.
pub fn system(what: &str, source: io::Error) -> Error {
    Error::System { what: what.to_owned(), source }
}
