//! Addresses, clients, TLS.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

use nearpm::Error;

use crate::fault::system;

/// Where a server listens, and how it treats connections.
#[derive(Clone, Debug, clap::Args)]
pub struct NetworkOptions {
    /// Address and port to listen at, or a port of 127.0.0.1 alone; port 0 takes a free one
    /// [default: 127.0.0.1, port 6379 for redis, 11211 for memcached]
    #[arg(long)]
    pub listen: Option<String>,
    /// Clients at a time; more are turned away with an error. Fewer where the process may not open
    /// so many descriptors
    #[arg(long, default_value_t = 1024, value_parser = at_least_one)]
    pub max_clients: usize,
    /// Seconds after which a client that asks for nothing is turned away; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub timeout: u64,
    /// Seconds without a packet after which the system asks whether a client is still there; 0 for
    /// never
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub tcp_keepalive: u64,
    /// Certificates of the server, as PEM, its own first: all clients speak TLS then
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<String>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<String>,
    /// Certificates of authorities, as PEM: clients need a certificate of one of them
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<String>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&clients| clients > 0).ok_or_else(|| "a number from 1 on".to_owned())
}

impl NetworkOptions {
    /// The address to listen at, where the protocol has a port of its own.
    ///
    /// # Errors
    /// There is no such host.
    pub fn address(&self, port: u16) -> Result<SocketAddr, Error> {
        self.listen.as_deref().map_or_else(|| Ok((Ipv4Addr::LOCALHOST, port).into()), resolve)
    }
}

/// An address, `host:port`, or a port of this machine alone.
///
/// # Errors
/// There is no such host.
pub fn resolve(listen: &str) -> Result<SocketAddr, Error> {
    if let Ok(port) = listen.trim_start_matches(':').parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let cannot = |error| system(&format!("listen at {listen}"), error);
    let address = listen.to_socket_addrs().map_err(cannot)?.next();
    address.ok_or_else(|| cannot(io::ErrorKind::AddrNotAvailable.into()))
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        for (text, address) in
            [("6379", "127.0.0.1:6379"), (":0", "127.0.0.1:0"), ("0.0.0.0:1", "0.0.0.0:1"), ("[::1]:2", "[::1]:2")]
        {
            assert_eq!(resolve(text).map(|a| a.to_string()).ok().as_deref(), Some(address), "{text}");
        }
        assert!(resolve("99999").is_err() && resolve("").is_err());
    }
}
