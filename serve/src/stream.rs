//! A client's connection, in the clear or by TLS, without waiting.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;
use nearpm::Error;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::fault::system;
use crate::options::NetworkOptions;

/// A connection.
pub struct Stream {
    socket: TcpStream,
    tls: Option<Box<ServerConnection>>,
}

fn bad(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

impl Stream {
    /// Of a socket, by TLS if there is something to speak it with.
    ///
    /// # Errors
    /// Those of TLS.
    pub fn new(socket: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<Stream> {
        let tls = tls.map(|config| ServerConnection::new(config.clone()).map(Box::new).map_err(bad)).transpose()?;
        Ok(Stream { socket, tls })
    }

    /// The socket.
    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Whether what is read is what the socket has, so that a read that gives less than it could
    /// has given all.
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Whether there are bytes that the socket has not taken yet, besides those that were not
    /// written.
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Says that nothing more comes.
    pub fn say_end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        // The connection ends in any case.
        let _ = self.flush();
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let processed = tls.process_new_packets().map_err(bad);
            // Answers of the handshake, and alarms, which go out later where the socket takes none
            // now.
            while tls.wants_write() && tls.write_tls(&mut self.socket).is_ok_and(|bytes| bytes > 0) {}
            processed?;
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        loop {
            // None, when what was written before has not gone out yet.
            let taken = tls.writer().write(bytes)?;
            while tls.wants_write() {
                match tls.write_tls(&mut self.socket) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Err(error) if error.kind() == ErrorKind::WouldBlock && taken > 0 => return Ok(taken),
                    done => done?,
                };
            }
            if taken > 0 || bytes.is_empty() {
                return Ok(taken);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            if tls.write_tls(&mut self.socket)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// What clients speak TLS with, if they are to.
///
/// # Errors
/// A file cannot be read, or is not what it is said to be.
pub fn tls(options: &NetworkOptions) -> Result<Option<Arc<ServerConfig>>, Error> {
    let (Some(cert), Some(key)) = (&options.tls_cert, &options.tls_key) else { return Ok(None) };
    let cannot = |file: &str, error: String| system(&format!("read {file}"), io::Error::other(error));
    let read = |file: &str| {
        let parsed = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        match parsed.map_err(|error| cannot(file, error.to_string()))? {
            none if none.is_empty() => Err(cannot(file, "it has no certificate".to_owned())),
            some => Ok(some),
        }
    };
    let chain = read(cert)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| cannot(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| cannot(cert, error.to_string()))?;
    let builder = match &options.tls_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for authority in read(file)? {
                roots.add(authority).map_err(|error| cannot(file, error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| cannot(file, error.to_string()))?)
        }
    };
    let config = builder.with_single_cert(chain, secret).map_err(|error| cannot(key, error.to_string()))?;
    Ok(Some(Arc::new(config)))
}
