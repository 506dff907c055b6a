//! Stands between client and simulator, descriptors included, and breaks off the answers at a byte.

use std::io::{IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// What comes behind the last byte of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The connection ends.
    Closed,
    /// Nothing.
    Silent,
}

/// Carries bytes and descriptors over until `budget` bytes have passed or one side ends.
fn carry(from: &UnixStream, to: &UnixStream, budget: usize) {
    let mut left = budget;
    let mut buffer = [0; 8192];
    while left > 0 {
        let mut control = nix::cmsg_space!([RawFd; 16]);
        let most = left.min(buffer.len());
        let mut descriptors = Vec::new();
        let bytes = {
            let mut parts = [IoSliceMut::new(&mut buffer[..most])];
            let received = recvmsg::<()>(from.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC);
            let Ok(message) = received else { return };
            for control in message.cmsgs().unwrap() {
                if let ControlMessageOwned::ScmRights(found) = control {
                    descriptors.extend(found);
                }
            }
            message.bytes
        };
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let control = if descriptors.is_empty() { &[][..] } else { &rights };
        let sent =
            sendmsg::<()>(to.as_raw_fd(), &[IoSlice::new(&buffer[..bytes])], control, MsgFlags::MSG_NOSIGNAL, None);
        for descriptor in &descriptors {
            nix::unistd::close(*descriptor).unwrap();
        }
        if bytes == 0 || sent != Ok(bytes) {
            return;
        }
        left -= bytes;
    }
}

/// Serves clients on a socket beside `server`; lets `budget` bytes of answers pass for each.
pub fn start(server: &Path, budget: usize, end: End) -> PathBuf {
    let path = server.with_extension(format!("proxy{budget}{end:?}"));
    let listener = UnixListener::bind(&path).unwrap();
    let server = server.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&server) else { return };
            std::thread::spawn(move || join(&client, &server, budget, end));
        }
    });
    path
}

fn join(client: &UnixStream, server: &UnixStream, budget: usize, end: End) {
    let (client_there, server_there) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let requests = std::thread::spawn(move || {
        carry(&client_there, &server_there, usize::MAX);
        let _ = server_there.shutdown(Shutdown::Both);
    });
    carry(server, client, budget);
    if end == End::Closed {
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    }
    requests.join().unwrap();
}
