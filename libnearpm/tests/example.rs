//! The example program, run as its users do: a process for each command, a pool for all.

#[path = "../examples/address_book.rs"]
mod address_book;

#[test]
fn the_address_book_keeps_what_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.pool");
    let path = path.to_str().unwrap();
    let run = |command: &[&str]| {
        let mut out = Vec::new();
        let arguments: Vec<&str> = [path].iter().chain(command).copied().collect();
        address_book::run(&arguments, &mut out).map(|()| String::from_utf8(out).unwrap()).map_err(|e| e.to_string())
    };
    for (name, address) in [("Grace", "g@x"), ("Ada", "old"), ("Alan", "alan@x"), ("Ada", "ada@x")] {
        run(&["add", name, address]).unwrap();
    }
    assert_eq!(run(&["list"]).unwrap(), "Ada <ada@x>\nAlan <alan@x>\nGrace <g@x>\n");
    assert_eq!(run(&["list", "A"]).unwrap(), "Ada <ada@x>\nAlan <alan@x>\n");
    assert_eq!(run(&["find", "Ada"]).unwrap(), "ada@x\n");
    run(&["remove", "Ada"]).unwrap();
    assert!(run(&["find", "Ada"]).unwrap_err().contains("nobody is called \"Ada\""));
    assert!(run(&["remove", "Ada"]).unwrap_err().contains("nobody"));
    for _ in 0..9 {
        run(&["find", "Grace"]).unwrap();
    }
    assert_eq!(run(&["recent"]).unwrap(), "Grace\n".repeat(5));
    assert!(run(&["write"]).unwrap_err().contains("POOL add NAME"));
}
