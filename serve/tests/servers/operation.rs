//! What whoever runs a server asks of it: who is let in, what is told, how it ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearpm_serve::{start_memcached, start_redis};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Client, Value};
use crate::differential::lines;
use crate::process::{Folder, Process, options};

const FAST: [&str; 2] = ["--survives", "process-crash"];

/// The address of this machine by which others reach it, if it has one.
fn outside() -> Option<SocketAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().filter(|address| !address.ip().is_loopback() && !address.ip().is_unspecified())
}

#[test]
fn clients_of_other_machines_need_a_password() {
    let Some(outside) = outside() else {
        eprintln!("SKIPPED: this machine has no address but its own");
        return;
    };
    let folder = Folder::new();
    let pool = folder.path("pool");
    let file = folder.path("users");
    std::fs::write(&file, "me:secret\n").expect("it can be written");
    let users = file.to_str().expect("a path of this test");
    for (more, refused) in [
        (&[][..], true),
        (&["--protected-mode", "no"], false),
        (&["--auth-file", users], false),
        (&["--requirepass", "secret"], false),
    ] {
        let arguments = [&FAST[..], &["--listen", "0.0.0.0:0"], more].concat();
        let server = start_memcached(options(&pool, &arguments)).expect("the server starts");
        let port = server.address().port();
        let near = &mut Client::connect(([127, 0, 0, 1], port).into());
        assert!(!lines(near, "version\r\n")[0].contains("protected"), "{more:?}");
        let far = Client::connect((outside.ip(), port).into()).line().unwrap_or_default();
        assert_eq!(far.contains("protected mode"), refused, "{more:?}: {far}");
    }
}

/// Lines up to the end, where none comes.
trait Ask {
    fn told(&mut self, request: &str) -> Vec<String>;
}

impl Ask for Client {
    fn told(&mut self, request: &str) -> Vec<String> {
        lines(self, request)
    }
}

#[test]
fn memcached_asks_who_a_client_is() {
    let folder = Folder::new();
    let users = folder.path("users");
    std::fs::write(&users, "me:secret word\nyou:other\n").expect("it can be written");
    let arguments = [&FAST[..], &["--auth-file", users.to_str().expect("a path")]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let send = |client: &mut Client, request: &str| {
        client.send(request.as_bytes()).expect("the server listens");
        client.line().expect("it answers")
    };
    let login = |who: &str| format!("set ignored 0 0 {}\r\n{who}\r\n", who.len());
    let client = &mut Client::connect(server.address());
    for request in [
        "get k\r\n",
        "flush_all\r\n",
        "set k 0 0 9\r\nflush_all\r\n",
        &login("me wrong"),
        &login("me other"),
        &login("me"),
    ] {
        assert!(send(client, request).starts_with("CLIENT_ERROR"), "{request}");
    }
    assert!(send(client, &format!("set k 0 0 100000\r\n{}\r\n", "x".repeat(100_000))).starts_with("CLIENT_ERROR"));
    assert_eq!(send(client, &login("me secret word")), "STORED");
    assert_eq!(client.told("set k 0 0 1\r\nx\r\nget k\r\n"), ["STORED", "VALUE k 0 1", "x", "END"]);
}

#[test]
fn users_may_do_what_their_rules_say() {
    let folder = Folder::new();
    let users = folder.path("users");
    let rules =
        "# comment\nuser default off\nuser reader on >r ~a* ~the-end +@read\nuser writer on >w ~* +@all -@dangerous\n";
    std::fs::write(&users, rules).expect("it can be written");
    let arguments = [&FAST[..], &["--acl-file", users.to_str().expect("a path")]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let login = |who: &str| {
        let mut client = Client::connect(server.address());
        client.send(format!("set ignored 0 0 {}\r\n{who}\r\n", who.len()).as_bytes()).expect("the server listens");
        assert_eq!(client.line().expect("it answers"), "STORED");
        client
    };
    let (mut reader, mut writer) = (login("reader r"), login("writer w"));
    assert_eq!(writer.told("set a1 0 0 1\r\nx\r\nset b1 0 0 1\r\nx\r\n"), ["STORED", "STORED"]);
    let told = |client: &mut Client, request: &str| client.told(request).remove(0);
    assert_eq!(told(&mut reader, "get a1\r\n"), "VALUE a1 0 1");
    for refused in ["get b1\r\n", "get a1 b1\r\n", "delete a1\r\n", "gat 0 a1\r\n", "mg a1 T0\r\n", "stats\r\n"] {
        assert!(told(&mut reader, refused).contains("no permission"), "{refused}");
    }
    let large = format!("set a1 0 0 2000000\r\n{}\r\n", "x".repeat(2_000_000));
    assert!(told(&mut reader, &large).contains("no permission"));
    assert!(told(&mut writer, "flush_all\r\n").contains("no permission"));
    assert_eq!(told(&mut reader, "get a1\r\n"), "VALUE a1 0 1");
}

#[test]
fn commands_can_be_disabled() {
    let folder = Folder::new();
    let arguments = [&FAST[..], &["--rename-command", "flush_all=", "--rename-command", "stats=tell"]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let client = &mut Client::connect(server.address());
    assert_eq!(client.told("flush_all\r\n"), ["CLIENT_ERROR flush_all not allowed"]);
    assert_eq!(client.told("stats\r\n"), ["CLIENT_ERROR stats not allowed"]);
    assert!(client.told("tell\r\n").len() > 10);
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
fn redis_asks_who_a_client_is() {
    let folder = Folder::new();
    let users = folder.path("users");
    std::fs::write(&users, "user default on >pass ~* +@all\nuser reader on >r ~a* +@read\n")
        .expect("it can be written");
    let more = [
        "--acl-file",
        users.to_str().expect("a path"),
        "--rename-command",
        "flushall=",
        "--rename-command",
        "get=fetch",
    ];
    let server = start_redis(options(&folder.path("pool"), &[&FAST[..], &more].concat())).expect("the server starts");
    let ok = || Value::Simple("OK".to_owned());
    let error = |value: Value| matches!(&value, Value::Error(_)).then(|| format!("{value:?}")).unwrap_or_default();
    let client = &mut Client::connect(server.address());
    for refused in ["SET a1 x", "FETCH a1", "MULTI", "CONFIG GET maxclients", "HELLO 3"] {
        assert!(error(client.say(refused)).contains("NOAUTH"), "{refused}");
    }
    assert!(error(client.say("AUTH wrong")).contains("WRONGPASS"));
    assert!(error(client.say("HELLO 3 AUTH reader pass")).contains("WRONGPASS"));
    assert_eq!(client.say("AUTH pass"), ok());
    assert_eq!(client.say("SET a1 x"), ok());
    assert!(error(client.say("FLUSHALL")).contains("unknown command"));
    assert!(error(client.say("GET a1")).contains("unknown command"));
    assert_eq!(client.say("FETCH a1"), Value::Bulk(b"x".to_vec()));
    let reader = &mut Client::connect(server.address());
    assert!(matches!(reader.say("HELLO 3 AUTH reader r"), Value::Map(_)));
    assert_eq!(reader.say("FETCH a1"), Value::Bulk(b"x".to_vec()));
    for refused in ["SET a1 y", "FETCH b1", "MGET a1 b1", "CONFIG GET port", "FLUSHDB"] {
        assert!(error(reader.say(refused)).contains("NOPERM"), "{refused}");
    }
}
