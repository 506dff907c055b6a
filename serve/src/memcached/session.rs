//! What is known of a client: who it is, and what of its last line is still to come.

use std::sync::Arc;

use super::Memcached;
use super::command::{Command, Read, Request};
use super::line::{FORMAT, Parsed};
use super::multiget::{self, End};
use super::parse::{self, Limits};
use crate::access::{Access, User};
use crate::service::Admission;

/// Bytes of a value that a client may send before it has said who it is.
const MOST_UNKNOWN: usize = 2048;

/// What is expected in front of the next line.
#[derive(Debug, Default)]
enum Rest {
    /// Nothing.
    #[default]
    None,
    /// So many bytes of a refused value.
    Value(usize),
    /// Keys of a multi-get, up to the end of the line.
    Keys(Read),
    /// The rest of a line that does not count.
    Line,
}

/// A client.
#[derive(Debug)]
pub struct Session {
    rest: Rest,
    user: Option<Arc<User>>,
}

impl Session {
    /// Of a client that has just come.
    pub fn new(access: &Access) -> Session {
        Session { rest: Rest::None, user: access.nobody() }
    }

    /// Takes a request from an input.
    pub fn admit(&mut self, server: &Memcached, input: &[u8]) -> Admission<Request> {
        match std::mem::take(&mut self.rest) {
            Rest::None => self.begin(server, input),
            Rest::Value(length) => self.pass_over(length, Request::nothing(), input),
            Rest::Keys(read) => self.keys(read, input),
            Rest::Line => self.line(Request::nothing(), input),
        }
    }

    fn begin(&mut self, server: &Memcached, input: &[u8]) -> Admission<Request> {
        // Nobody in particular may not send much.
        let max_value = if self.user.is_some() { server.options.max_value as usize } else { MOST_UNKNOWN };
        let parsed = parse::parse(input, Limits { max_value, names: &server.names });
        let Some(user) = self.user.clone() else { return self.authenticate(server, parsed, input) };
        match parsed {
            Parsed::Incomplete => Admission::Incomplete,
            Parsed::Last(request) => Admission::Last(request),
            Parsed::Request(request, taken) => {
                let request = server.permit(&user, request);
                self.pass_over(taken, request, input)
            }
            Parsed::Keys(read, taken) => {
                self.rest = Rest::Keys(read);
                Admission::Request(Request::nothing(), taken)
            }
        }
    }

    /// Passes over the bytes of a request, of which some may still be to come.
    fn pass_over(&mut self, length: usize, request: Request, input: &[u8]) -> Admission<Request> {
        let here = length.min(input.len());
        if length > here {
            self.rest = Rest::Value(length - here);
        }
        Admission::Request(request, here)
    }

    /// Passes over the rest of a line.
    fn line(&mut self, request: Request, input: &[u8]) -> Admission<Request> {
        let end = input.iter().position(|&byte| byte == b'\n');
        if end.is_none() {
            self.rest = Rest::Line;
        }
        Admission::Request(request, end.map_or(input.len(), |end| end + 1))
    }

    /// Takes some keys of a multi-get.
    fn keys(&mut self, read: Read, input: &[u8]) -> Admission<Request> {
        let piece = multiget::piece(input);
        match piece.end {
            None if piece.taken == 0 => {
                self.rest = Rest::Keys(read);
                return Admission::Incomplete;
            }
            None => self.rest = Rest::Keys(read),
            Some(End::Line) => {}
            Some(End::Nul) => self.rest = Rest::Line,
            Some(End::NoKey) => return self.line(Request::refused(FORMAT, false), input),
        }
        Admission::Request(Request::answered(Command::Get(read, piece.keys, piece.end.is_some())), piece.taken)
    }

    /// The first request of a client that must say who it is: as in memcached, a `set` whose value
    /// is name and password.
    fn authenticate(&mut self, server: &Memcached, parsed: Parsed, input: &[u8]) -> Admission<Request> {
        const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated";
        match parsed {
            Parsed::Incomplete => Admission::Incomplete,
            Parsed::Request(Request { command: Command::Put { value, .. }, quiet }, taken) => {
                let words = value.iter().position(|&byte| byte == b' ').map(|at| (&value[..at], &value[at + 1..]));
                self.user = words.and_then(|(name, password)| server.access.authenticate(name, password));
                let request = match self.user {
                    Some(_) => Request { command: Command::Say(b"STORED\r\n".to_vec()), quiet },
                    None => Request::refused("CLIENT_ERROR authentication failure", quiet),
                };
                Admission::Request(request, taken)
            }
            Parsed::Request(_, taken) => self.pass_over(taken, Request::refused(UNAUTHENTICATED, false), input),
            Parsed::Keys(..) => self.line(Request::refused(UNAUTHENTICATED, false), input),
            Parsed::Last(request) => Admission::Last(request),
        }
    }
}
