//! Who is let in.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use nearpm::Error;
use socket2::{SockRef, TcpKeepalive};

use crate::effects::Inbox;
use crate::fault::system;
use crate::service::Service;
use crate::shared::Shared;

const LISTENER: Token = Token(0);

/// An address that a server has taken, before it opens anything.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address.
    ///
    /// # Errors
    /// Those of the system: it is taken.
    pub fn bind(address: SocketAddr) -> Result<Listener, Error> {
        let cannot = |error| system(&format!("listen at {address}"), error);
        let socket = TcpListener::bind(address).map_err(cannot)?;
        let address = socket.local_addr().map_err(cannot)?;
        Ok(Listener { socket, address })
    }

    /// What was taken, with a port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts clients until the server stops, and hands them round.
    ///
    /// # Errors
    /// Those of the system.
    pub fn accept<S: Service>(mut self, shared: &Shared<S>, mut poll: Poll, inboxes: &[Arc<Inbox>]) -> io::Result<()> {
        poll.registry().register(&mut self.socket, LISTENER, Interest::READABLE)?;
        let (mut events, mut next) = (Events::with_capacity(8), 0);
        while !shared.stopping.load(Ordering::Acquire) {
            match poll.poll(&mut events, Some(Duration::from_millis(200))) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => done?,
            }
            // Until nobody is left. When the system has no more descriptors, whoever waits is
            // looked for at the next turn.
            loop {
                let (mut socket, peer) = match self.socket.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => {
                        log::warn!("cannot accept a client: {error}");
                        break;
                    }
                };
                if let Some(why) = refusal(shared, peer) {
                    shared.totals.refused.fetch_add(1, Ordering::Relaxed);
                    // One that does not even take this learns it by the end of the connection.
                    let _ = socket.write(why);
                    continue;
                }
                shared.totals.clients.fetch_add(1, Ordering::Relaxed);
                let number = shared.totals.accepted.fetch_add(1, Ordering::Relaxed) + 1;
                prepare(&socket, shared.service.clients().keepalive);
                log::debug!("client {peer} comes");
                inboxes[next % inboxes.len()].put(number, socket)?;
                next += 1;
            }
        }
        Ok(())
    }
}

/// What a client is told that is not let in.
fn refusal<S: Service>(shared: &Shared<S>, peer: SocketAddr) -> Option<&'static [u8]> {
    let most = shared.service.clients().most;
    if shared.totals.clients.load(Ordering::Relaxed) >= most as u64 {
        log::warn!("client {peer} is turned away: there are {most} already");
        return Some(S::TOO_MANY);
    }
    let is_near = peer.ip().to_canonical().is_loopback();
    if !is_near && shared.options.access.protected_mode && shared.access.is_open() {
        log::warn!("client {peer} is turned away: it is of another machine, and nobody needs a password");
        return Some(S::PROTECTED);
    }
    None
}

/// Sets what holds for every connection. A system that refuses it serves the client all the same.
fn prepare(socket: &TcpStream, keepalive: u64) {
    // A reply that waits for another one to be acknowledged would cost more than the packet.
    let _ = socket.set_nodelay(true);
    if keepalive > 0 {
        let (idle, between) = (Duration::from_secs(keepalive), Duration::from_secs((keepalive / 3).max(1)));
        let _ = SockRef::from(socket)
            .set_tcp_keepalive(&TcpKeepalive::new().with_time(idle).with_interval(between).with_retries(3));
    }
}
