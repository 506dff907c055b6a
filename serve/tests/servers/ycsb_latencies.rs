//! The latencies that the YCSB client tells are those that its operations had: somebody between it
//! and a server holds requests up for times that are known.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nearpm_serve::start_redis;
use serde_json::Value as Json;

use crate::process::{Folder, options};
use crate::ycsb::report;

/// Gives a server with some records to a test.
fn with_server(test: impl FnOnce(SocketAddr)) {
    let folder = Folder::new();
    let server =
        start_redis(options(&folder.path("pool"), &["--survives", "process-crash"])).expect("the server starts");
    report("redis", server.address(), "--workload load --records 100");
    test(server.address());
}

/// Hands on what clients ask a server, each request after a time that depends on its number,
/// counted from 0 over all clients: they wait for each answer, so that what comes together is one
/// request.
fn held_up(server: SocketAddr, hold: fn(u64) -> Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("it has one");
    let number = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut from, mut to) =
                (client.expect("a client"), TcpStream::connect(server).expect("the server listens"));
            from.set_nodelay(true).and_then(|()| to.set_nodelay(true)).expect("a socket");
            let (mut answers, mut back) = (to.try_clone().expect("a socket"), from.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            let number = number.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 1 << 16];
                while let Ok(read @ 1..) = from.read(&mut bytes) {
                    std::thread::sleep(hold(number.fetch_add(1, Ordering::Relaxed)));
                    if to.write_all(&bytes[..read]).is_err() {
                        return;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    address
}

/// Milliseconds of reads, by the names of what is told.
fn reads(report: &Json) -> impl Fn(&str) -> f64 + use<> {
    let latency = report["phases"][0]["kinds"][0]["latency_us"].clone();
    move |name| latency[name].as_f64().unwrap_or_else(|| panic!("no {name} in {latency}")) / 1000.0
}

#[test]
fn percentiles_are_those_of_known_delays() {
    // Of a hundred 80 take 10 ms, 17 take 80 ms, 3 take 400 ms.
    let hold = |number: u64| {
        Duration::from_millis(match number * 37 % 100 {
            0..80 => 10,
            80..97 => 80,
            _ => 400,
        })
    };
    with_server(|server| {
        let address = held_up(server, hold);
        let report = report("redis", address, "--workload c --records 100 --operations 100 --threads 1");
        let of = reads(&report);
        // Whatever else the machine does, nothing is faster than that, and most of it is not as
        // slow as the next step.
        for (name, least, below) in [
            ("min", 10.0, 80.0),
            ("p50", 10.0, 80.0),
            ("p95", 80.0, 400.0),
            ("p99", 400.0, 800.0),
            ("mean", 33.6, 80.0),
        ] {
            let found = of(name);
            // The histogram has three digits.
            assert!(found >= least * 0.998 && found < below, "{name}: {found} ms, {least} ms were held up");
        }
    });
}

#[test]
fn who_waits_while_a_server_stalls_is_charged_for_it() {
    let stalls = |number: u64| Duration::from_millis(if number == 50 { 1000 } else { 0 });
    with_server(|server| {
        let run = |more: &str| {
            let address = held_up(server, stalls);
            reads(&report("redis", address, &format!("--workload c --records 100 --operations 200 --threads 1{more}")))
        };
        // A hundred operations were to begin in the second of the stall, the first of them a second
        // before they could.
        let paced = run(" --target 100");
        assert!(paced("p95") > 700.0 && paced("max") >= 998.0, "{} {}", paced("p95"), paced("max"));
        assert!(paced("p50") < 700.0, "{}", paced("p50"));
        // One that begins when the last one has been answered waits once.
        let unpaced = run("");
        assert!(unpaced("p95") < 700.0 && unpaced("max") >= 998.0, "{} {}", unpaced("p95"), unpaced("max"));
    });
}
