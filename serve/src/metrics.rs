//! Metrics, in the form of Prometheus, by HTTP.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nearpm::Error;

use crate::fault::system;
use crate::options::resolve;
use crate::service::Service;
use crate::shared::Shared;
use crate::tally::of;

/// Time between two looks for somebody who asks.
const LOOK: Duration = Duration::from_millis(50);
/// How long somebody may take to ask, and to read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request at most.
const REQUEST_BYTES: usize = 8192;

/// Takes the address, `host:port` or a port of this machine.
///
/// # Errors
/// Those of the system: it is taken.
pub fn bind(listen: &str) -> Result<TcpListener, Error> {
    let cannot = |error| system(&format!("listen for metrics at {listen}"), error);
    let listener = TcpListener::bind(resolve(listen)?).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    Ok(listener)
}

/// Answers until the server stops.
pub fn serve<S: Service>(shared: &Arc<Shared<S>>, listener: &TcpListener) {
    while !shared.stopping.load(Ordering::Acquire) {
        match listener.accept() {
            Ok((socket, _)) => {
                if let Err(error) = answer(shared, socket) {
                    log::debug!("metrics were not told: {error}");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            Err(error) => {
                log::warn!("cannot accept a request for metrics: {error}");
                std::thread::sleep(LOOK);
            }
        }
    }
}

fn answer<S: Service>(shared: &Shared<S>, mut socket: TcpStream) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let (start, mut request, mut buffer) = (Instant::now(), Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let bytes = socket.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..bytes]);
        if bytes == 0 || request.len() > REQUEST_BYTES || start.elapsed() > PATIENCE {
            return Ok(());
        }
    }
    let asks = |path: &str| request.starts_with(format!("GET {path} HTTP/").as_bytes());
    let (status, body) = match asks("/metrics") || asks("/") {
        true => ("200 OK", text(shared)),
        false => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes())?;
    socket.write_all(body.as_bytes())
}

/// All metrics.
fn text<S: Service>(shared: &Shared<S>) -> String {
    let (totals, mut out) = (&shared.totals, String::new());
    let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
        // A string takes everything.
        let _ = write!(out, "# HELP nearpm_{name} {help}\n# TYPE nearpm_{name} {kind}\nnearpm_{name} {value}\n");
    };
    metric("connected_clients", "gauge", "Clients that are connected.", of(&totals.clients));
    metric("max_clients", "gauge", "Clients that may be connected.", shared.service.clients().most as u64);
    metric("connections_total", "counter", "Clients that came.", of(&totals.accepted));
    metric("rejected_connections_total", "counter", "Clients that were turned away.", of(&totals.refused));
    metric("idle_disconnects_total", "counter", "Clients that asked for nothing for too long.", of(&totals.idle));
    metric("requests_total", "counter", "Requests.", of(&totals.requests));
    metric("gets_total", "counter", "Keys that were asked for.", of(&totals.gets));
    metric("hits_total", "counter", "Keys that were asked for and found.", of(&totals.hits));
    metric("sets_total", "counter", "Values that were stored.", of(&totals.sets));
    metric("evicted_keys_total", "counter", "Keys that were evicted.", of(&totals.evictions));
    metric("expired_keys_total", "counter", "Keys that were removed because they had expired.", of(&totals.expired));
    metric("expiring_keys", "gauge", "Keys of which it is known that they expire.", shared.expiries.len() as u64);
    metric(
        "limit_bytes",
        "gauge",
        "Bytes that keys and values may take.",
        shared.options.memory_limit.unwrap_or(shared.options.bytes),
    );
    if let Ok((keys, bytes)) = shared.pool.read(|from| shared.service.size(from)) {
        metric("keys", "gauge", "Keys, the expired ones that nobody has removed yet included.", keys);
        metric("bytes", "gauge", "Bytes that keys and values take.", bytes);
    }
    out
}
