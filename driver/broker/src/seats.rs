//! The socket of a shared card: who comes gets a seat, and the function of a client.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use nearpm_endpoint::server::{self, Host};
use nix::errno::Errno;

use crate::client::Client;
use crate::share::Share;

impl Share {
    /// Serves processes on a socket.
    ///
    /// # Errors
    /// If the socket cannot be made, or the card has gone or failed.
    pub fn serve(self: &Arc<Self>, path: &Path) -> Result<()> {
        server::serve(&Seats(self.clone()), path)
    }
}

/// Gives functions to those who come.
struct Seats(Arc<Share>);

impl Host for Seats {
    type Device = Client;

    fn name(&self) -> &'static str {
        "nearpm card share"
    }

    fn admit(&self) -> Result<Client, Errno> {
        let seat = self.0.take_seat().ok_or(Errno::EUSERS)?;
        let refused = match Client::new(self.0.clone(), seat) {
            Ok(Some(client)) => return Ok(client),
            Ok(None) => Errno::EAGAIN,
            Err(error) => {
                self.0.fail(&error);
                Errno::EIO
            }
        };
        self.0.leave_seat(seat);
        Err(refused)
    }

    fn check(&self) -> Result<()> {
        if self.0.works()
            && let Err(error) = self.0.card.registers().state()
        {
            self.0.fail(&error);
        }
        self.0.check()
    }
}
