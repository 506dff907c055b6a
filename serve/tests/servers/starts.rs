//! Servers that cannot start.

use std::net::TcpListener;

use nearpm_serve::{start_memcached, start_redis};

use crate::process::{Folder, options};

#[test]
fn a_server_that_cannot_start_leaves_no_pool() {
    let folder = Folder::new();
    let path = folder.path("pool");
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = taken.local_addr().expect("it has an address").to_string();
    let listen = || options(&path, &["--listen", &address]);
    for refused in [start_redis(listen()).err(), start_memcached(listen()).err()] {
        assert!(refused.expect("the port is taken").to_string().contains("listen at"));
        assert!(!path.exists());
    }
    // At a port of its own: the one that was taken may be another's as soon as it is free.
    start_redis(options(&path, &[])).expect("the server starts").stop().expect("it ends");
    // A pool that was there stays, whoever refuses it.
    assert!(start_memcached(options(&path, &[])).is_err());
    assert!(path.exists());
}

#[test]
fn what_names_nothing_is_refused_and_leaves_no_pool() {
    let folder = Folder::new();
    let path = folder.path("pool");
    let misspelt = || options(&path, &["--rename-command", "flushal="]);
    for refused in [start_redis(misspelt()).err(), start_memcached(misspelt()).err()] {
        let why = refused.expect("there is no such command").to_string();
        assert!(why.contains("\"flushal\": there is no such command"), "{why}");
    }
    assert!(!path.exists());
    let why = start_redis(options(&folder.path("nowhere/pool"), &[])).err().expect("there is no folder").to_string();
    assert!(why.contains("nowhere: there is no such folder"), "{why}");
}
