use super::super::command::Store;
use super::super::parse_put::{CHUNK, TOO_LARGE};
use super::*;
use proptest::prelude::*;

fn parsed(input: &[u8], max_value: usize) -> Parsed {
    parse(input, Limits { max_value, names: &Renamed::default() })
}

proptest! {
    /// Whatever part has come, the parser waits; with the whole it gives what was sent, and leaves
    /// what follows.
    #[test]
    fn split_at_every_byte(key in "[!-~]{1,40}", value in prop::collection::vec(any::<u8>(), 0..60), flags: u32, quiet: bool) {
        let noreply = if quiet { " noreply" } else { "" };
        let mut bytes = format!("set {key} {flags} 0 {}{noreply}\r\n", value.len()).into_bytes();
        bytes.extend_from_slice(&value);
        bytes.extend_from_slice(b"\r\n");
        let length = bytes.len();
        for end in 0..length {
            prop_assert_eq!(parsed(&bytes[..end], 1024), Parsed::Incomplete);
        }
        bytes.extend_from_slice(b"get ");
        let command = Command::Put { store: Store::Set, key: key.into_bytes(), flags, expires: 0, cas: None, value };
        prop_assert_eq!(parsed(&bytes, 1024), Parsed::Request(Request { command, quiet }, length));
    }

    /// No input makes it panic, and it always goes forward.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"get set ms mg 019\r\n".to_vec())], 0..80)) {
        match parsed(&bytes, 16) {
            Parsed::Request(_, taken) => prop_assert!(taken > 0),
            Parsed::Keys(_, taken) => prop_assert!(taken > 0 && taken <= bytes.len()),
            _ => {}
        }
    }
}

#[test]
fn refusals() {
    let long = [b"get ".to_vec(), vec![b'k'; 251], b"\r\n".to_vec()].concat();
    let refused = |why: &'static str, quiet, taken| Parsed::Request(Request::refused(why, quiet), taken);
    for (input, why, taken) in [
        (&b"nonsense\r\n"[..], ERROR, 10),
        (b"nonsense noreply\r\n", ERROR, 18),
        (b"noreply\r\n", ERROR, 9),
        (b"\r\n", ERROR, 2),
        (b"get\r\n", ERROR, 5),
        (&long, FORMAT, long.len()),
        (b"incr k x\r\n", "CLIENT_ERROR invalid numeric delta argument", 10),
        (b"touch k x\r\n", EXPTIME, 11),
        (b"mg k ?\r\n", "CLIENT_ERROR invalid flag", 8),
        (b"md k ?\r\n", "CLIENT_ERROR invalid or duplicate flag", 8),
    ] {
        assert_eq!(parsed(input, 16), refused(why, false, taken), "{:?}", String::from_utf8_lossy(input));
    }
    assert_eq!(parsed(b"incr k x noreply\r\n", 16), refused("CLIENT_ERROR invalid numeric delta argument", true, 18));
    assert!(matches!(parsed(&[0x80, 1], 16), Parsed::Last(_)));
    assert!(matches!(parsed(&vec![b'x'; LINE_BYTES], 16), Parsed::Last(_)));
    assert_eq!(parsed(b"quit\r\n", 16), Parsed::Last(Request::nothing()));
}

#[test]
fn a_refused_value_is_passed_over_or_ends_the_connection() {
    let long = "k".repeat(251);
    // The old value goes where the new one was to stand in its place.
    for (input, why, forgotten, length) in [
        ("set k 0 0 17", TOO_LARGE, true, 17),
        ("add k 0 0 17", TOO_LARGE, false, 17),
        ("cas k 0 0 17 1", TOO_LARGE, false, 17),
        ("ms k 17", TOO_LARGE, true, 17),
        ("ms k 17 MA", TOO_LARGE, false, 17),
        ("ms k 3 MX", "CLIENT_ERROR invalid mode for ms M token", false, 3),
        ("ms k 3 ?", "CLIENT_ERROR invalid flag", false, 3),
        (&format!("set {long} 0 0 3"), FORMAT, false, 3),
        (&format!("ms {long} 3"), FORMAT, false, 3),
    ] {
        let line = format!("{input}\r\n");
        let command = Command::Refuse(why.into(), forgotten.then(|| b"k".to_vec()));
        let request = Request { command, quiet: false };
        assert_eq!(parsed(line.as_bytes(), 16), Parsed::Request(request, line.len() + length + 2), "{input}");
    }
    for (input, why) in [
        ("set k x 0 1\r\n", FORMAT),
        ("set k 0 x 1\r\n", FORMAT),
        ("set k 0 0 -1\r\n", FORMAT),
        ("set k 0 0 x\r\n", FORMAT),
        ("set k 0 0 4294967295\r\n", FORMAT),
        ("set k 0 0\r\n", ERROR),
        ("set a key 0 0 1\r\n", FORMAT),
        ("set k 0 0 1 1\r\n", ERROR),
        ("cas k 0 0 1\r\n", ERROR),
        ("ms k\r\n", FORMAT),
        ("ms a key 1\r\n", FORMAT),
        ("set k 0 0 1\r\nabc\r\nget", CHUNK),
    ] {
        assert_eq!(parsed(input.as_bytes(), 16), Parsed::Last(Request::refused(why, false)), "{input}");
    }
}

#[test]
fn noreply_is_a_word_where_no_command_looks_for_it() {
    let command = |line: &str| match parsed(line.as_bytes(), 16) {
        Parsed::Request(request, _) => (request.command, request.quiet),
        other => panic!("{line:?} is {other:?}"),
    };
    let key = || b"noreply".to_vec();
    let read = Read { cas: false, touch: None };
    assert_eq!(command("get noreply\r\n"), (Command::Get(read, vec![key()], true), false));
    assert_eq!(command("delete noreply\r\n"), (Command::Delete(key()), false));
    assert_eq!(command("delete noreply noreply\r\n"), (Command::Delete(key()), true));
    assert_eq!(command("delete k 0 noreply\r\n"), (Command::Delete(b"k".to_vec()), true));
    assert_eq!(command("incr noreply 1\r\n"), (Command::Arithmetic(true, key(), 1), false));
    assert_eq!(command("flush_all noreply\r\n"), (Command::Flush(0), true));
    assert_eq!(command("flush_all 5 noreply\r\n"), (Command::Flush(5), true));
    let (put, quiet) = command("set noreply 0 0 1\r\nx\r\n");
    assert!(matches!(put, Command::Put { key, .. } if key == b"noreply") && !quiet);
}

#[test]
fn lines_of_many_keys_are_taken_key_by_key() {
    let read = Read { cas: true, touch: Some(5) };
    let line = format!("gats 5 {}\r\n", "k ".repeat(100));
    assert_eq!(parsed(line.as_bytes(), 16), Parsed::Keys(read, 7));
    let endless = format!("gats  5 {}", "k ".repeat(LINE_BYTES));
    assert_eq!(parsed(endless.as_bytes(), 16), Parsed::Keys(read, 8));
    let wrong = format!("gats 5 {}{}\r\n", "k ".repeat(100), "k".repeat(251));
    assert_eq!(parsed(wrong.as_bytes(), 16), Parsed::refused(FORMAT, wrong.len()));
}

#[test]
fn disabled_commands_are_refused_with_their_values() {
    let renamed = [("flush_all", ""), ("set", "put"), ("get", "")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    let names = crate::options::AccessOptions { renamed, ..Default::default() }.names();
    let parsed = |input: &str| parse(input.as_bytes(), Limits { max_value: 16, names: &names });
    let refused = |why: &'static str, taken| Parsed::Request(Request::refused(why, false), taken);
    assert_eq!(parsed("flush_all\r\n"), refused("CLIENT_ERROR flush_all not allowed", 11));
    assert_eq!(parsed("get k\r\n"), refused("CLIENT_ERROR get not allowed", 7));
    assert_eq!(parsed("set k 0 0 9\r\nflush_all\r\n"), refused("CLIENT_ERROR set not allowed", 24));
    assert!(matches!(
        parsed("put k 0 0 1\r\nx\r\n"),
        Parsed::Request(Request { command: Command::Put { .. }, .. }, 16)
    ));
}
