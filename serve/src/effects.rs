//! What requests do besides changing the pool: they answer clients that wait, send to others, and
//! wait themselves. All of it happens only when the transaction that it belongs to is durable.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mio::Waker;
use mio::net::TcpStream;

/// A request that waits for others to do something.
#[derive(Clone, Copy, Debug)]
pub struct Blocked {
    /// What the service knows it by.
    pub ticket: u64,
    /// How long it waits; for ever, if there is no end.
    pub until: Option<Instant>,
}

/// What comes to a client from others.
#[derive(Debug)]
pub enum Mail {
    /// Bytes that belong to no request of its own.
    Message(Arc<[u8]>),
    /// The answer to its request that waits.
    Answer {
        /// The request.
        ticket: u64,
        /// Its reply.
        reply: Vec<u8>,
    },
    /// It is to go.
    Close,
}

/// Where new clients of a worker arrive, and what comes to those that it has.
pub struct Inbox {
    arrived: Mutex<Vec<(u64, TcpStream)>>,
    mail: Mutex<Vec<(usize, Mail)>>,
    waker: Waker,
}

fn take<T>(from: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut *from.lock().unwrap_or_else(PoisonError::into_inner))
}

fn put<T>(to: &Mutex<Vec<T>>, item: T) {
    to.lock().unwrap_or_else(PoisonError::into_inner).push(item);
}

impl Inbox {
    /// An empty one, whose worker is woken by this.
    pub fn new(waker: Waker) -> Inbox {
        Inbox { arrived: Mutex::default(), mail: Mutex::default(), waker }
    }

    /// Hands a client over, by its number.
    pub fn put(&self, number: u64, socket: TcpStream) -> io::Result<()> {
        put(&self.arrived, (number, socket));
        self.waker.wake()
    }

    /// Clients that have arrived.
    pub fn arrived(&self) -> Vec<(u64, TcpStream)> {
        take(&self.arrived)
    }

    /// What came to clients, by their tokens.
    pub fn mail(&self) -> Vec<(usize, Mail)> {
        take(&self.mail)
    }

    /// Makes the worker look whether it is to stop.
    pub fn wake(&self) -> io::Result<()> {
        self.waker.wake()
    }
}

/// Where what is sent to one client arrives.
#[derive(Clone)]
pub struct Mailbox {
    inbox: Arc<Inbox>,
    token: usize,
    /// The client was told to go. All see it at once, although its worker comes to it later.
    closed: Arc<AtomicBool>,
}

impl Mailbox {
    /// Of a client that a worker knows by a token.
    pub fn new(inbox: Arc<Inbox>, token: usize) -> Mailbox {
        Mailbox { inbox, token, closed: Arc::default() }
    }

    /// Whether its client was told to go: nothing that it asks for is done any more.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Sends at once.
    pub fn send(&self, mail: Mail) {
        if matches!(mail, Mail::Close) {
            self.closed.store(true, Ordering::Release);
        }
        put(&self.inbox.mail, (self.token, mail));
        // A worker that cannot be woken looks by itself, later.
        let _ = self.inbox.wake();
    }
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Mailbox({})", self.token)
    }
}

/// What a run through requests does besides.
#[derive(Default)]
pub struct Effects {
    /// The request that was run last waits.
    pub blocked: Cell<Option<Blocked>>,
    /// Requests that have begun to wait.
    pub waiting: RefCell<Vec<u64>>,
    /// Requests that waited and were answered.
    pub answered: RefCell<Vec<u64>>,
    /// Keys that somebody waits for and that have something to give.
    pub ready: RefCell<Vec<Vec<u8>>>,
    mail: RefCell<Vec<(Mailbox, Mail)>>,
}

impl Effects {
    /// Something is to be sent.
    pub fn send(&self, to: &Mailbox, mail: Mail) {
        self.mail.borrow_mut().push((to.clone(), mail));
    }

    /// Sends what is to be sent.
    pub fn deliver(&self) {
        self.mail.take().into_iter().for_each(|(to, mail)| to.send(mail));
    }

    /// What another run is to send is sent with this.
    pub fn append(&self, other: &Effects) {
        self.mail.borrow_mut().append(&mut other.mail.borrow_mut());
    }

    /// Nothing of it happens.
    pub fn clear(&self) {
        *self.mail.borrow_mut() = Vec::new();
        self.blocked.take();
        self.ready.borrow_mut().clear();
    }
}
