//! A thread that serves clients: an event loop.
//!
//! A turn reads what has come from all of its clients, runs it in one transaction, waits until that
//! is durable, and only then writes the replies. What comes meanwhile waits in the sockets and
//! shares the next transaction.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, Waker};
use nearpm::Error;

use crate::batch::{self, Lane};
use crate::connection::{Connection, READ_BYTES};
use crate::effects::{Inbox, Mailbox};
use crate::fault::system;
use crate::service::{Peer, Service};
use crate::shared::{Shared, now_ms};
use crate::stream::Stream;

const WAKER: Token = Token(0);
/// How long a worker sleeps when nothing happens.
const SLEEP: Duration = Duration::from_millis(500);
/// How long clients may take for their last replies when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A worker.
pub struct Worker<S: Service> {
    poll: Poll,
    inbox: Arc<Inbox>,
    shared: Arc<Shared<S>>,
    clients: HashMap<usize, Connection<S>>,
    next_token: usize,
    /// Clients whose first request waits for others.
    blocked: HashSet<usize>,
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
        let inbox = Arc::new(Inbox::new(waker));
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        let (clients, blocked, looked) = (HashMap::new(), HashSet::new(), Instant::now());
        Ok(Worker { poll, inbox, shared, clients, next_token: 1, blocked, looked, buffer })
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
            let sleep = if busy.is_empty() { self.patience() } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(sleep)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => done.map_err(|error| system("wait for clients", error))?,
            }
            for event in &events {
                let Some(client) = self.clients.get_mut(&event.token().0) else { continue };
                let gone = event.is_error() || event.is_read_closed();
                client.wake(event.is_readable(), event.is_writable() || event.is_error(), gone);
                busy.push(event.token().0);
            }
            self.welcome(&mut busy);
            self.take_mail(&mut busy);
            self.time_out(&mut busy);
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
                client.wake(false, true, false);
                client.send();
            });
        }
        self.clients.values_mut().for_each(|client| client.socket().say_end());
        Ok(())
    }

    /// Ends the connections of clients that have asked for nothing for too long.
    fn turn_idle_away(&mut self) {
        let Some(most) = self.shared.service.clients().idle else { return };
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
        for (number, mut socket) in self.inbox.arrived() {
            let token = self.next_token;
            self.next_token += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut socket, Token(token), interest).is_err() {
                self.shared.totals.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let text = |address: io::Result<SocketAddr>| address.map_or_else(|_| "?:0".to_owned(), |a| a.to_string());
            let (address, local) = (text(socket.peer_addr()), text(socket.local_addr()));
            let Ok(socket) = Stream::new(socket, self.shared.tls.as_ref()) else {
                self.shared.totals.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            };
            let mailbox = Mailbox::new(self.inbox.clone(), token);
            let peer = Peer { number, address, local, mailbox: mailbox.clone() };
            self.clients.insert(token, Connection::new(socket, self.shared.service.session(peer), mailbox));
            busy.push(token);
        }
    }

    /// How long it may sleep: until the first client has waited long enough.
    fn patience(&self) -> Duration {
        let ends = self.blocked.iter().filter_map(|token| self.clients.get(token)?.blocked?.until);
        let first = ends.min().map(|until| until.saturating_duration_since(Instant::now()));
        // Never nothing: one whose answer is under way has waited long enough, and is looked for
        // again.
        first.map_or(SLEEP, |wait| wait.clamp(Duration::from_millis(1), SLEEP))
    }

    /// Takes what other clients have sent to those here.
    fn take_mail(&mut self, busy: &mut Vec<usize>) {
        for (token, mail) in self.inbox.mail() {
            if let Some(client) = self.clients.get_mut(&token) {
                client.receive_mail(mail);
                busy.push(token);
            }
        }
    }

    /// Answers those who have waited in vain.
    fn time_out(&mut self, busy: &mut Vec<usize>) {
        let (clients, service, now) = (&mut self.clients, &self.shared.service, Instant::now());
        self.blocked.retain(|token| {
            let Some(client) = clients.get_mut(token) else { return false };
            let Some(blocked) = client.blocked else { return false };
            if blocked.until.is_some_and(|until| until <= now) && service.give_up(blocked.ticket) {
                let mut reply = Vec::new();
                client.waiting.front().iter().for_each(|request| service.timed_out(request, &mut reply));
                client.answer_blocked(&reply);
                busy.push(*token);
                return false;
            }
            true
        });
    }

    /// Serves clients, in the order in which they are named first: that in which the system reports
    /// what they have sent. Leaves those in `busy` that have more to do, and those in front that
    /// have had no turn.
    fn turn(&mut self, busy: &mut Vec<usize>) -> Result<(), Error> {
        let mut ready = Vec::with_capacity(busy.len());
        for token in busy.drain(..) {
            if let Some((token, mut client)) = self.clients.remove_entry(&token) {
                client.receive(&self.shared.service, &mut self.buffer);
                ready.push((token, client, false));
            }
        }
        let mut running: Vec<_> = ready.iter_mut().filter(|(_, client, _)| client.may_run()).collect();
        if !running.is_empty() {
            let mut lanes: Vec<_> = running
                .iter()
                .map(|(_, client, _)| Lane { requests: &client.waiting, done: 0, reply: Vec::new(), blocked: None })
                .collect();
            batch::execute(&self.shared, &mut lanes, now_ms())?;
            let answers: Vec<_> = lanes.into_iter().map(|lane| (lane.done, lane.reply, lane.blocked)).collect();
            for ((_, client, starved), (done, reply, blocked)) in running.iter_mut().zip(answers) {
                *starved = done == 0 && blocked.is_none();
                client.answer(done, &reply);
                client.blocked = blocked;
            }
        }
        // A transaction takes so many requests: whoever has sent more than that is not in front of
        // others again.
        ready.sort_by_key(|(_, _, starved)| !starved);
        for (token, mut client, _) in ready {
            client.send();
            if client.is_over() {
                if let Some(blocked) = client.blocked {
                    self.shared.service.give_up(blocked.ticket);
                }
                client.socket().say_end();
                let _ = self.poll.registry().deregister(client.socket().socket());
                self.shared.totals.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            if client.is_busy() {
                busy.push(token);
            }
            if client.blocked.is_some() {
                self.blocked.insert(token);
            }
            self.clients.insert(token, client);
        }
        Ok(())
    }
}
