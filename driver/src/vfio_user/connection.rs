//! The connection: messages and their answers, each within a time.
//!
//! A connection that has failed once stays failed: an answer that came late would be taken for
//! another one's.

use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

use super::wire::{self, Command, HEADER_BYTES};

/// Descriptors that may come with an answer.
const MOST_DESCRIPTORS: usize = 8;

struct State {
    stream: UnixStream,
    next: u16,
    /// Why nothing more is asked.
    failed: Option<(ErrorKind, String)>,
}

/// A connection to a server.
pub struct Connection {
    path: PathBuf,
    timeout: Duration,
    state: Mutex<State>,
}

/// An answer.
pub struct Reply {
    pub payload: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

/// What went wrong with one message.
enum Trouble {
    /// The server refused it, and can be asked further.
    Refused(Error),
    /// The connection is of no use any more.
    Lost(Error),
}

fn lost(error: impl Into<Error>) -> Trouble {
    Trouble::Lost(error.into())
}

fn truncated() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the server ended in the middle of an answer, or before it")
}

impl Connection {
    /// Connects. Each answer has to come within `timeout`.
    pub fn new(path: &Path, timeout: Duration) -> Result<Connection, Error> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let state = Mutex::new(State { stream, next: 0, failed: None });
        Ok(Connection { path: path.to_owned(), timeout, state })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why nothing more is asked, if that is so.
    pub fn failure(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.as_ref().map(|(_, why)| why.clone())
    }

    /// Sends a message with descriptors and waits for the answer.
    pub fn call(&self, command: Command, payload: &[u8], descriptors: &[RawFd]) -> Result<Reply, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((kind, why)) = &state.failed {
            return Err(Error::new(*kind, why.clone()));
        }
        let id = state.next;
        state.next = id.wrapping_add(1);
        let start = Instant::now();
        match exchange(&mut state.stream, id, command, payload, descriptors, start + self.timeout) {
            Ok(reply) => Ok(reply),
            Err(Trouble::Refused(error)) => Err(error),
            Err(Trouble::Lost(error)) => {
                let (kind, why) = explain(command, self.timeout, &error);
                // Nobody is told of a failure of this: the connection is given up anyway.
                let _ = state.stream.shutdown(Shutdown::Both);
                state.failed = Some((kind, why.clone()));
                Err(Error::new(kind, why))
            }
        }
    }

    /// Reads part of a region.
    pub fn read(&self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        for (at, piece) in (offset..).step_by(wire::MOST_DATA).zip(data.chunks_mut(wire::MOST_DATA)) {
            let reply = self.call(Command::RegionRead, &wire::access(region, at, piece.len() as u32), &[])?;
            let found = reply.payload.get(wire::ACCESS_BYTES..).filter(|found| found.len() == piece.len());
            piece.copy_from_slice(found.ok_or_else(|| self.give_up("an answer with other data than was asked for"))?);
        }
        Ok(())
    }

    /// Writes part of a region.
    pub fn write(&self, region: u32, offset: u64, data: &[u8]) -> Result<(), Error> {
        for (at, piece) in (offset..).step_by(wire::MOST_DATA).zip(data.chunks(wire::MOST_DATA)) {
            let mut payload = wire::access(region, at, piece.len() as u32);
            payload.extend(piece);
            // The processor that stores is told nothing: a store that was refused must not be the
            // only one that is missing.
            self.call(Command::RegionWrite, &payload, &[]).map_err(|error| self.give_up(&error.to_string()))?;
        }
        Ok(())
    }

    /// Ends the connection because of what the server said, unless it has ended before.
    fn give_up(&self, why: &str) -> Error {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = state.stream.shutdown(Shutdown::Both);
        let new = || (ErrorKind::InvalidData, format!("the server does not do its part: {why}"));
        let (kind, why) = state.failed.get_or_insert_with(new);
        Error::new(*kind, why.clone())
    }
}

/// What to tell of a connection that was lost.
fn explain(command: Command, timeout: Duration, error: &Error) -> (ErrorKind, String) {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            (ErrorKind::TimedOut, format!("the server did not answer {command:?} within {timeout:?}"))
        }
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            (ErrorKind::UnexpectedEof, format!("the server has ended ({command:?}: {error})"))
        }
        kind => (kind, format!("{command:?}: {error}")),
    }
}

fn exchange(
    stream: &mut UnixStream,
    id: u16,
    command: Command,
    payload: &[u8],
    descriptors: &[RawFd],
    end: Instant,
) -> Result<Reply, Trouble> {
    send(stream, &wire::message(id, command, payload), descriptors).map_err(lost)?;
    let mut header = [0; HEADER_BYTES];
    let descriptors = receive_header(stream, &mut header, end).map_err(lost)?;
    let broken = |what| lost(Error::new(ErrorKind::InvalidData, what));
    let (bytes, refusal) = wire::reply(&header, id, command).map_err(broken)?;
    let mut payload = vec![0; bytes];
    receive(stream, &mut payload, end).map_err(lost)?;
    match refusal {
        None => Ok(Reply { payload, descriptors }),
        Some(0) => Err(Trouble::Refused(Error::other(format!("the server refused {command:?} and gives no reason")))),
        Some(errno) => Err(Trouble::Refused(Error::from_raw_os_error(errno))),
    }
}

fn send(stream: &mut UnixStream, message: &[u8], descriptors: &[RawFd]) -> Result<(), Error> {
    let rights = [ControlMessage::ScmRights(descriptors)];
    let control = if descriptors.is_empty() { &[][..] } else { &rights };
    let flags = MsgFlags::MSG_NOSIGNAL;
    let sent = loop {
        match sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(message)], control, flags, None) {
            Err(nix::errno::Errno::EINTR) => {}
            other => break other?,
        }
    };
    stream.write_all(&message[sent..])
}

/// Receives a header, with whose first byte the descriptors come.
fn receive_header(
    stream: &mut UnixStream,
    header: &mut [u8; HEADER_BYTES],
    end: Instant,
) -> Result<Vec<OwnedFd>, Error> {
    let mut control = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let mut descriptors = Vec::new();
    let bytes = loop {
        let mut buffers = [IoSliceMut::new(header)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(stream.as_raw_fd(), &mut buffers, Some(&mut control), flags) {
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(message) => {
                for control in message.cmsgs()? {
                    if let ControlMessageOwned::ScmRights(found) = control {
                        descriptors.extend(found.into_iter().map(own));
                    }
                }
                break message.bytes;
            }
        }
    };
    if bytes == 0 {
        return Err(truncated());
    }
    receive(stream, &mut header[bytes..], end)?;
    Ok(descriptors)
}

#[allow(unsafe_code)]
fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made the descriptor for this process, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn receive(stream: &mut UnixStream, mut data: &mut [u8], end: Instant) -> Result<(), Error> {
    while !data.is_empty() {
        match stream.read(data) {
            Ok(0) => return Err(truncated()),
            Ok(bytes) => data = &mut data[bytes..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // A server that sends a byte now and then does not make a client wait for ever.
        if !data.is_empty() && Instant::now() > end {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}
