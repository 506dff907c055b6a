//! One client: its socket, what it has sent, what it is to be told.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::batch::ENOUGH_REPLY;
use crate::effects::{Blocked, Mail, Mailbox};
use crate::service::{Admission, Service};
use crate::stream::Stream;

/// Bytes that are read from a client by one call.
pub const READ_BYTES: usize = 64 << 10;
/// Calls after which a client has had its turn: what it has sent by then shares a transaction.
const READS: usize = 16;
/// Bytes of an input that keep their memory while the client is there: what a value of usual length
/// takes.
const KEPT_BYTES: usize = 4 * READ_BYTES;
/// Requests of a client that may wait.
const MOST_WAITING: usize = 512;
/// Bytes of messages that may wait for a client.
const MOST_MESSAGES: usize = 32 << 20;

/// A client.
pub struct Connection<S: Service> {
    socket: Stream,
    session: S::Session,
    mailbox: Mailbox,
    input: Vec<u8>,
    /// Bytes at the start of the input that were taken.
    taken: usize,
    /// Requests that wait to be run.
    pub waiting: VecDeque<S::Request>,
    output: Vec<u8>,
    /// Bytes of the output that were written.
    written: usize,
    /// The socket may have more to read.
    readable: bool,
    /// It may take more.
    writable: bool,
    /// The client has closed its side: what is read ends with nothing.
    hung_up: bool,
    /// Nothing more is read: the last request is waiting, or the client has closed its side.
    ending: bool,
    /// There may be whole requests in the input that had to wait.
    stalled: bool,
    /// The first of the waiting requests waits for others to do something.
    pub blocked: Option<Blocked>,
    /// The socket failed.
    broken: bool,
    /// When the client last sent something, or was told what it had waited for.
    heard: Instant,
}

impl<S: Service> Connection<S> {
    /// A client that has just come.
    pub fn new(socket: Stream, session: S::Session, mailbox: Mailbox) -> Connection<S> {
        Connection {
            socket,
            session,
            mailbox,
            input: Vec::new(),
            taken: 0,
            waiting: VecDeque::new(),
            output: Vec::new(),
            written: 0,
            readable: true,
            writable: true,
            hung_up: false,
            ending: false,
            stalled: false,
            blocked: None,
            broken: false,
            heard: Instant::now(),
        }
    }

    /// The socket.
    pub fn socket(&mut self) -> &mut Stream {
        &mut self.socket
    }

    /// Whether the client asks for nothing, and has not for so long. One that waits for others, or
    /// listens to them, is not idle.
    pub fn is_idle(&self, most: Duration) -> bool {
        let waits = !self.waiting.is_empty() || S::listens(&self.session);
        !waits && !self.has_unsent() && self.heard.elapsed() >= most
    }

    /// Whether there is something that the client has not been told yet.
    pub fn has_unsent(&self) -> bool {
        !self.broken && (self.written < self.output.len() || self.socket.has_unsent())
    }

    /// The system says that the socket can go on, or that the client has closed its side.
    pub fn wake(&mut self, readable: bool, writable: bool, hung_up: bool) {
        self.readable |= readable || hung_up;
        self.writable |= writable;
        self.hung_up |= hung_up;
    }

    /// A client that does not read its replies is not listened to.
    fn is_slow(&self) -> bool {
        self.output.len() - self.written >= ENOUGH_REPLY
    }

    /// Whether there is something to do without waiting for the system.
    pub fn is_busy(&self) -> bool {
        let reads = self.stalled || (self.readable && !self.ending && self.waiting.len() < MOST_WAITING);
        !self.broken && !self.is_slow() && (reads || self.blocked.is_none() && !self.waiting.is_empty())
    }

    /// Whether its requests may be run now. Those of a client that was told to go are not, also
    /// where the mail that says so is still unread.
    pub fn may_run(&self) -> bool {
        !self.broken
            && !self.mailbox.is_closed()
            && self.blocked.is_none()
            && !self.waiting.is_empty()
            && !self.is_slow()
    }

    /// Whether nothing is left to do for it.
    pub fn is_over(&self) -> bool {
        self.broken
            || (self.ending && self.blocked.is_some())
            || (self.ending && !self.stalled && self.waiting.is_empty() && !self.has_unsent())
    }

    /// Reads what has come, up to a limit, and takes the requests from it.
    pub fn receive(&mut self, service: &S, buffer: &mut [u8]) {
        self.admit(service);
        for _ in 0..READS {
            let enough = self.is_slow() || self.waiting.len() >= MOST_WAITING;
            if !self.readable || self.ending || self.broken || enough {
                return;
            }
            let read = self.socket.read(buffer);
            match read {
                Ok(0) => self.ending = true,
                Ok(bytes) => {
                    self.heard = Instant::now();
                    // There was no more: the system says when there is (epoll(7)).
                    self.readable = bytes == buffer.len() || self.hung_up || !self.socket.is_plain();
                    self.input.extend_from_slice(&buffer[..bytes]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.broken = true,
            }
            self.admit(service);
        }
    }

    fn admit(&mut self, service: &S) {
        while self.taken < self.input.len() && self.waiting.len() < MOST_WAITING {
            match service.admit(&mut self.session, &self.input[self.taken..]) {
                Admission::Incomplete => break,
                Admission::Request(request, bytes) => {
                    self.taken += bytes;
                    self.waiting.push_back(request);
                }
                Admission::Last(request) => {
                    self.taken = self.input.len();
                    self.waiting.push_back(request);
                    self.ending = true;
                }
            }
        }
        self.stalled = self.taken < self.input.len() && self.waiting.len() >= MOST_WAITING;
        if self.taken == self.input.len() {
            self.input.clear();
            self.input.shrink_to(KEPT_BYTES);
            self.taken = 0;
        } else if self.taken >= READ_BYTES {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// So many requests were run, with these replies.
    pub fn answer(&mut self, done: usize, reply: &[u8]) {
        self.waiting.drain(..done);
        self.output.extend_from_slice(reply);
    }

    /// The request that waits is answered.
    pub fn answer_blocked(&mut self, reply: &[u8]) {
        self.blocked = None;
        self.heard = Instant::now();
        self.answer(1, reply);
    }

    /// Something came from another client.
    pub fn receive_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Message(bytes) if self.output.len() - self.written + bytes.len() > MOST_MESSAGES => {
                self.broken = true
            }
            Mail::Message(bytes) => self.output.extend_from_slice(&bytes),
            Mail::Answer { ticket, reply } if self.blocked.is_some_and(|blocked| blocked.ticket == ticket) => {
                self.answer_blocked(&reply);
            }
            // Of a request that is answered already.
            Mail::Answer { .. } => {}
            Mail::Close => self.broken = true,
        }
    }

    /// Writes what the socket takes.
    pub fn send(&mut self) {
        while self.writable && !self.broken && self.written < self.output.len() {
            match self.socket.write(&self.output[self.written..]) {
                Ok(0) => self.broken = true,
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.broken = true,
            }
        }
        if self.writable && !self.broken {
            match self.socket.flush() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                done => self.broken = done.is_err(),
            }
        }
        if self.written == self.output.len() {
            self.output.clear();
            self.output.shrink_to(READ_BYTES);
            self.written = 0;
        } else if self.written >= ENOUGH_REPLY {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }
}
