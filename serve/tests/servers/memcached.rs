//! memcached's protocol.

use nearpm_serve::{Server, start_memcached};

use crate::client::Client;
use crate::process::{Folder, options};

type Memcached = Server<nearpm_serve::memcached::Memcached>;

fn server(folder: &Folder, more: &[&str]) -> Memcached {
    start_memcached(options(&folder.path("pool"), more)).expect("the server starts")
}

/// Sends text and checks the lines that come back.
fn talk(client: &mut Client, text: &str, replies: &[&str]) {
    client.send(text.as_bytes()).unwrap();
    for reply in replies {
        assert_eq!(client.line().unwrap(), *reply, "{text:?}");
    }
}

#[test]
fn classic_commands() {
    let folder = Folder::new();
    let memcached = server(&folder, &[]);
    let c = &mut Client::connect(memcached.address());
    talk(c, "set k 5 0 3\r\nabc\r\n", &["STORED"]);
    talk(c, "get k nothing\r\n", &["VALUE k 5 3", "abc", "END"]);
    talk(c, "add k 0 0 1\r\nx\r\n", &["NOT_STORED"]);
    talk(c, "replace nothing 0 0 1\r\nx\r\n", &["NOT_STORED"]);
    talk(
        c,
        "append k 9 0 2\r\nde\r\nprepend k 9 0 1\r\n_\r\nget k\r\n",
        &["STORED", "STORED", "VALUE k 5 6", "_abcde", "END"],
    );
    talk(c, "gets k\r\n", &["VALUE k 5 6 3", "_abcde", "END"]);
    talk(
        c,
        "cas k 0 0 1 2\r\nx\r\ncas k 0 0 1 3\r\ny\r\ncas none 0 0 1 3\r\nz\r\n",
        &["EXISTS", "STORED", "NOT_FOUND"],
    );
    talk(
        c,
        "set n 0 0 2\r\n10\r\nincr n 5\r\ndecr n 6\r\nget n\r\n",
        &["STORED", "15", "9", "VALUE n 0 2", "9 ", "END"],
    );
    talk(
        c,
        "decr n 50\r\nincr k 1\r\nincr none 1\r\n",
        &["0", "CLIENT_ERROR cannot increment or decrement non-numeric value", "NOT_FOUND"],
    );
    talk(c, "set q 0 0 1 noreply\r\nq\r\ndelete q noreply\r\nget q\r\n", &["END"]);
    talk(c, "delete n\r\ndelete n\r\nverbosity 1\r\nversion\r\n", &["DELETED", "NOT_FOUND", "OK", "VERSION 1.6.18"]);
    talk(c, "set big 0 0 2000000\r\n", &["SERVER_ERROR object too large for cache"]);
    c.send(&vec![b'x'; 2_000_002]).unwrap();
    talk(c, "nonsense\r\nmn\r\n", &["ERROR", "MN"]);
    talk(c, "flush_all\r\nget k\r\nquit\r\n", &["OK", "END"]);
    assert!(c.rest().unwrap().is_empty());
}

#[test]
fn times() {
    let folder = Folder::new();
    let memcached = server(&folder, &[]);
    let c = &mut Client::connect(memcached.address());
    talk(c, "set past 0 -1 1\r\nx\r\nget past\r\n", &["STORED", "END"]);
    talk(c, "set k 0 1 1\r\nx\r\ntouch k 100\r\ntouch none 1\r\n", &["STORED", "TOUCHED", "NOT_FOUND"]);
    talk(c, "set soon 0 1 1\r\nx\r\nset later 0 0 1\r\ny\r\n", &["STORED", "STORED"]);
    talk(c, "gat 1 later\r\n", &["VALUE later 0 1", "y", "END"]);
    talk(c, "set stays 0 0 1\r\nx\r\n", &["STORED"]);
    memcached.stop().expect("an orderly end");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let memcached = server(&folder, &[]);
    let c = &mut Client::connect(memcached.address());
    talk(c, "get k soon later stays\r\n", &["VALUE k 0 1", "x", "VALUE stays 0 1", "x", "END"]);
    talk(c, "flush_all 1\r\nget stays\r\n", &["OK", "VALUE stays 0 1", "x", "END"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    talk(c, "get stays k\r\nset new 0 0 1\r\nx\r\nget new\r\n", &["END", "STORED", "VALUE new 0 1", "x", "END"]);
}

#[test]
fn meta_commands() {
    let folder = Folder::new();
    let memcached = server(&folder, &[]);
    let c = &mut Client::connect(memcached.address());
    talk(c, "ms k 3 F7 T90 c\r\nabc\r\n", &["HD c1"]);
    talk(c, "mg k v f t s c k Oxyz\r\n", &["VA 3 f7 t90 s3 c1 kk Oxyz", "abc"]);
    talk(c, "mg none v\r\nmg none v q\r\nmn\r\nmg k\r\n", &["EN", "MN", "HD"]);
    talk(c, "ms k 1 ME\r\nx\r\nms k 1 C9\r\nx\r\nms none 1 C1\r\nx\r\n", &["NS", "EX", "NF"]);
    talk(c, "ms k 2 MA\r\nde\r\nms k 1 MP\r\n_\r\nmg k v\r\n", &["HD", "HD", "VA 6", "_abcde"]);
    talk(
        c,
        "ms a2V5 1 b\r\nv\r\nmg a2V5 b k v\r\nget key\r\n",
        &["HD", "VA 1 ka2V5 b", "v", "VALUE key 0 1", "v", "END"],
    );
    talk(
        c,
        "ma n\r\nma n N0 J13 v\r\nma n v D2\r\nma n MD D20 v\r\n",
        &["NF", "VA 2", "13", "VA 2", "15", "VA 1", "0"],
    );
    // A value that is made anew by one client, while others get the old one.
    talk(c, "mg vivid N30 v t\r\nmg vivid N30 v\r\n", &["VA 0 t30 W", "", "VA 0 Z", ""]);
    talk(c, "ms s 1\r\nx\r\nmd s I T30\r\nmg s v\r\nmg s v\r\n", &["HD", "HD", "VA 1 X W", "x", "VA 1 Z X", "x"]);
    talk(c, "md k q\r\nmd k q\r\nmd k\r\nmg k ?\r\nmg\r\n", &["NF", "NF", "CLIENT_ERROR invalid flag", "ERROR"]);
}

#[test]
fn memory_is_found_by_eviction_or_refused() {
    let value = "x".repeat(3000);
    for more in [&["--memory-limit", "400K"][..], &["--bytes", "1M"]] {
        let folder = Folder::new();
        let memcached = server(&folder, more);
        let c = &mut Client::connect(memcached.address());
        for i in 0..600 {
            talk(c, &format!("set k{i} 0 0 3000\r\n{value}\r\n"), &["STORED"]);
            // A key that is used all the time stays.
            talk(c, "add used 0 0 1\r\nx\r\n", &[if i == 0 { "STORED" } else { "NOT_STORED" }]);
            talk(c, "get used\r\n", &["VALUE used 0 1", "x", "END"]);
        }
    }
    let folder = Folder::new();
    let memcached = server(&folder, &["--bytes", "1M", "--eviction", "none"]);
    let c = &mut Client::connect(memcached.address());
    let full = (0..600).find(|i| {
        c.send(format!("set k{i} 0 0 3000\r\n{value}\r\n").as_bytes()).unwrap();
        c.line().unwrap() == "SERVER_ERROR out of memory storing object"
    });
    talk(
        c,
        &format!("delete k{}\r\nset k 0 0 3000\r\n{value}\r\n", full.expect("it is full") - 1),
        &["DELETED", "STORED"],
    );
}

#[test]
fn the_binary_protocol_and_other_pools_are_refused() {
    let folder = Folder::new();
    let memcached = server(&folder, &[]);
    let mut c = Client::connect(memcached.address());
    c.send(&[0x80, 0x0b, 0, 0, 0, 0, 0, 0]).unwrap();
    assert!(c.line().unwrap().contains("binary protocol"));
    memcached.stop().expect("an orderly end");
    let error = nearpm_serve::start_redis(options(&folder.path("pool"), &[])).err().expect("a pool of memcached's");
    assert!(error.to_string().contains("MemcachedRoot"), "{error}");
}
