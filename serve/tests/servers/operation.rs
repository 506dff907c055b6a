//! What whoever runs a server asks of it: TLS, who is idle, what is told, how it ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearpm_serve::{start_memcached, start_redis};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Client, Value, bulk};
use crate::differential::lines;
use crate::process::{Folder, Process, options};

pub const FAST: [&str; 2] = ["--survives", "process-crash"];

/// Lines up to the end, where none comes.
pub trait Ask {
    fn told(&mut self, request: &str) -> Vec<String>;
}

impl Ask for Client {
    fn told(&mut self, request: &str) -> Vec<String> {
        lines(self, request)
    }
}

#[test]
fn idle_clients_are_turned_away() {
    let folder = Folder::new();
    let arguments = [&FAST[..], &["--timeout", "1"]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let (mut idle, mut busy) = (Client::connect(server.address()), Client::connect(server.address()));
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2500) {
        assert_eq!(busy.told("mn\r\n"), ["MN"]);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(idle.rest().expect("it is ended in order").is_empty());
    assert_eq!(busy.told("mn\r\n"), ["MN"]);
}

#[test]
fn limits_of_clients_change_while_the_server_runs() {
    let folder = Folder::new();
    let server = start_redis(options(&folder.path("pool"), &FAST)).expect("the server starts");
    let connect = || Client::connect(server.address());
    let ok = Value::Simple("OK".to_owned());
    let mut first = connect();
    assert_eq!(first.say("config set maxclients 1 tcp-keepalive 7"), ok);
    assert_eq!(connect().line().expect("it is told"), "-ERR max number of clients reached");
    assert_eq!(first.say("config get maxclients"), Value::Array(vec![bulk("maxclients"), bulk("1")]));
    for line in ["config set maxclients 0", "config set timeout -1", "config set maxclients 4000000000"] {
        assert!(matches!(first.say(line), Value::Error(_)), "{line}");
    }
    assert_eq!(first.say("config set maxclients 100 timeout 1"), ok);
    // A client that asks for nothing is turned away from here on.
    let mut idle = connect();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2500) {
        assert_eq!(first.say("ping"), Value::Simple("PONG".to_owned()));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(idle.rest().expect("it is ended in order").is_empty());
}

/// A certificate and a key, as files and for a client.
fn certificate(folder: &Folder, name: &str) -> (String, String, CertificateDer<'static>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (cert, key) = (folder.path(&format!("{name}.crt")), folder.path(&format!("{name}.key")));
    std::fs::write(&cert, made.cert.pem()).expect("it can be written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("it can be written");
    let secret = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let text = |path: std::path::PathBuf| path.to_str().expect("a path of this test").to_owned();
    (text(cert), text(key), made.cert.der().clone(), secret)
}

/// A connection by TLS to a server with this certificate.
fn by_tls(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    own: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match own {
        Some((cert, key)) => builder.with_client_auth_cert(vec![cert], key).expect("a certificate with its key"),
        None => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = TcpStream::connect(address).expect("the server listens");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    StreamOwned::new(client, socket)
}

#[test]
fn tls() {
    let folder = Folder::new();
    let (cert, key, der, _) = certificate(&folder, "server");
    let arguments = [&FAST[..], &["--tls-cert", &cert, "--tls-key", &key]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let mut client = by_tls(server.address(), &der, None);
    // More than a record of TLS, and than the buffers between.
    let value = "x".repeat(1 << 20);
    write!(client, "set k 0 0 {}\r\n{value}\r\nget k k k k\r\nquit\r\n", value.len()).expect("the server listens");
    let mut told = String::new();
    client.read_to_string(&mut told).expect("the server answers, and says that it ends");
    assert!(told.starts_with("STORED\r\nVALUE k 0 1048576\r\nxxx") && told.ends_with("END\r\n"));
    assert_eq!(told.matches('x').count(), 4 << 20);
    // In the clear nothing is answered.
    let mut clear = Client::connect(server.address());
    clear.send(b"get k\r\n").expect("the server listens");
    assert!(!String::from_utf8_lossy(&clear.rest().unwrap_or_default()).contains("END"));
}

#[test]
fn tls_with_certificates_of_clients() {
    let folder = Folder::new();
    let (cert, key, der, _) = certificate(&folder, "server");
    let (authority, _, own, secret) = certificate(&folder, "client");
    let arguments = [&FAST[..], &["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", &authority]].concat();
    let server = start_redis(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let mut friend = by_tls(server.address(), &der, Some((own, secret)));
    friend.write_all(b"PING\r\n").expect("the server listens");
    let mut told = [0; 7];
    friend.read_exact(&mut told).expect("the server answers");
    assert_eq!(&told, b"+PONG\r\n");
    let mut stranger = by_tls(server.address(), &der, None);
    let refused = stranger.write_all(b"PING\r\n").and_then(|()| stranger.read_exact(&mut told));
    assert!(refused.is_err());
    for wrong in [["--tls-cert", &key, "--tls-key", &key], ["--tls-cert", &cert, "--tls-key", &cert]] {
        let path = folder.path("other");
        assert!(start_redis(options(&path, &wrong)).is_err());
        assert!(!path.exists());
    }
}

#[test]
fn metrics_are_told() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it has one").port().to_string();
    drop(taken);
    let arguments = [&FAST[..], &["--metrics", &port]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let client = &mut Client::connect(server.address());
    assert_eq!(client.told("set a 0 0 1\r\nx\r\nset b 0 100 1\r\nx\r\nget a\r\nget c\r\n").len(), 6);
    let get = |path: &str| {
        let mut http = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
        write!(http, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").expect("it listens");
        let mut told = String::new();
        http.read_to_string(&mut told).expect("it answers");
        told
    };
    let told = get("/metrics");
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"));
    // The client's own test of the end asks for a key as well.
    for line in [
        "nearpm_keys 2",
        "nearpm_expiring_keys 1",
        "nearpm_sets_total 2",
        "nearpm_hits_total 1",
        "nearpm_connected_clients 1",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    for line in told.split("\r\n\r\n").nth(1).expect("a body").lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once(' ').expect("a name and a value");
        assert!(name.starts_with("nearpm_") && value.parse::<u64>().is_ok(), "{line}");
    }
    assert!(get("/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn the_end_is_told_and_loses_no_answer() {
    let folder = Folder::new();
    let told = folder.path("notify");
    let socket = UnixDatagram::bind(&told).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    let mut server = Process::start_with(
        "memcached",
        &folder.path("pool"),
        &FAST,
        &[("NOTIFY_SOCKET", told.to_str().expect("a path"))],
    );
    let mut buffer = [0; 256];
    let mut hear = || {
        let bytes = socket.recv(&mut buffer).expect("the server tells");
        String::from_utf8_lossy(&buffer[..bytes]).trim().to_owned()
    };
    assert_eq!(hear(), "READY=1");
    // A reply that is larger than what the system keeps for a client that does not read.
    let client = &mut Client::connect(server.address);
    let value = "x".repeat(1 << 20);
    assert_eq!(client.told(&format!("set k 0 0 {}\r\n{value}\r\n", 1 << 20)), ["STORED"]);
    client.send(format!("get {}\r\n", "k ".repeat(12)).as_bytes()).expect("the server listens");
    std::thread::sleep(Duration::from_millis(300));
    server.signal(libc::SIGTERM);
    assert_eq!(hear(), "STOPPING=1");
    let told = client.rest().expect("the connection ends in order");
    assert!(told.ends_with(b"\r\nEND\r\n") && told.len() > 12 << 20, "{} bytes", told.len());
    assert!(server.wait().success());
}

#[test]
fn more_clients_than_the_process_may_have_files_are_turned_away() {
    let folder = Folder::new();
    let pool = folder.path("pool");
    let shell = format!(
        "ulimit -n 100; exec {} memcached --listen 0 --survives process-crash --log-level warn --pool {}",
        env!("CARGO_BIN_EXE_nearpm-serve"),
        pool.display()
    );
    let server = Process::of(std::process::Command::new("sh").args(["-c", &shell]));
    let mut clients: Vec<_> = (0..36).map(|_| Client::connect(server.address)).collect();
    for client in &mut clients {
        assert_eq!(client.told("mn\r\n"), ["MN"]);
    }
    assert_eq!(Client::connect(server.address).line().expect("it is told so"), "ERROR Too many open connections");
    assert_eq!(clients[0].told("set k 0 0 1\r\nx\r\n"), ["STORED"]);
}

#[test]
fn redis_clients_that_wait_or_listen_are_not_idle() {
    let folder = Folder::new();
    let arguments = [&FAST[..], &["--timeout", "1"]].concat();
    let server = start_redis(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let connect = || Client::connect(server.address());
    let (mut idle, mut waiting, mut listening, mut busy) = (connect(), connect(), connect(), connect());
    waiting.command(&["BLPOP", "list", "0"]).expect("the server listens");
    listening.command(&["SUBSCRIBE", "news"]).expect("the server listens");
    listening.value().expect("it answers");
    // Until the idle one has been turned away, and as long again.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2500) {
        assert_eq!(busy.say("PING"), Value::Simple("PONG".to_owned()));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(idle.rest().expect("it is ended in order").is_empty());
    assert_eq!(busy.say("RPUSH list x"), Value::Integer(1));
    assert_eq!(waiting.value().expect("it is answered"), Value::Array(vec![bulk("list"), bulk("x")]));
    assert_eq!(waiting.say("PING"), Value::Simple("PONG".to_owned()));
    assert_eq!(busy.say("PUBLISH news here"), Value::Integer(1));
    assert_eq!(listening.value().expect("it is told"), Value::Array(vec![bulk("message"), bulk("news"), bulk("here")]));
}
