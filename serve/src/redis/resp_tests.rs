use super::*;
use proptest::prelude::*;

fn parse(input: &[u8], max_value: usize) -> Parsed {
    Parser::default().parse(input, max_value)
}

fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

proptest! {
    /// Whatever part has come, the parser waits; with the whole it gives what was sent, and leaves
    /// what follows.
    #[test]
    fn split_at_every_byte(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6)) {
        let mut bytes = encode(&words);
        let length = bytes.len();
        for end in 0..length {
            prop_assert_eq!(parse(&bytes[..end], 1024), Parsed::Incomplete);
        }
        bytes.extend_from_slice(b"*1\r\n$4\r\nPI");
        prop_assert_eq!(parse(&bytes, 1024), Parsed::Command(words, length));
    }

    /// The same words come out of the same bytes, in whatever pieces these come; none is looked at
    /// twice but the current line's.
    #[test]
    fn in_pieces_as_at_once(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"*$12\r\n\r\n\"a ".to_vec())], 0..60),
        cuts in prop::collection::vec(0usize..60, 0..6),
    ) {
        let mut parser = Parser::default();
        let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        ends.sort_unstable();
        ends.push(bytes.len());
        let whole = parse(&bytes, 16);
        for end in ends {
            match parser.parse(&bytes[..end], 16) {
                Parsed::Incomplete => {}
                early => {
                    prop_assert_eq!(early, whole);
                    return Ok(());
                }
            }
        }
        prop_assert_eq!(whole, Parsed::Incomplete);
    }

    /// No input makes it panic, and it never takes more than there is.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"*$0129-\r\n\"'\\x ".to_vec())], 0..80)) {
        if let Parsed::Command(_, taken) = parse(&bytes, 16) {
            prop_assert!(taken <= bytes.len() && taken > 0);
        }
    }
}

#[test]
fn broken_inputs() {
    let long = vec![b'x'; LINE_BYTES];
    for (input, why) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*99999999\r\n", "invalid multibulk length"),
        (b"*1\r\n$-5\r\n", "invalid bulk length"),
        (b"*1\r\n$17\r\n", "invalid bulk length"),
        (b"*1\r\n$18446744073709551616\r\n", "invalid bulk length"),
        (b"*1\r\n$1\r\nabc", "a bulk string has another length than it says"),
        (b"say \"hello\r\n", "unbalanced quotes in request"),
        (&long, "too big inline request"),
    ] {
        assert_eq!(
            parse(input, 16),
            Parsed::Broken(why),
            "{:?}",
            String::from_utf8_lossy(&input[..input.len().min(40)])
        );
    }
}

/// Words that come byte by byte: how far the parser has come is remembered, so that no word is read
/// a second time.
#[test]
fn a_trickled_command_is_read_once() {
    let words = vec![b"w".to_vec(); 3000];
    let (bytes, mut parser, mut steps) = (encode(&words), Parser::default(), 0);
    for end in 0..bytes.len() {
        let before = parser.places.len();
        assert_eq!(parser.parse(&bytes[..end], 16), Parsed::Incomplete);
        steps += parser.places.len() - before;
        assert!(parser.at + parser.searched <= end);
    }
    assert_eq!(steps, words.len() - 1);
    assert_eq!(parser.parse(&bytes, 16), Parsed::Command(words, bytes.len()));
}

#[test]
fn something_else_than_a_word() {
    assert_eq!(parse(b"*1\r\n:3\r\n", 16), Parsed::Unexpected(b':'));
    assert_eq!(parse(b"*1\r\nx", 16), Parsed::Unexpected(b'x'));
}

#[test]
fn lines_of_words() {
    let words = |words: &[&[u8]], taken| Parsed::Command(words.iter().map(|w| w.to_vec()).collect(), taken);
    assert_eq!(parse(b"PING\r\nrest", 16), words(&[b"PING"], 6));
    assert_eq!(parse(b"\n", 16), words(&[], 1));
    assert_eq!(parse(b"set k \"a \\x41\\n\"\n", 16), words(&[b"set", b"k", b"a A\n"], 17));
    assert_eq!(parse(b"*0\r\n", 16), words(&[], 4));
    assert_eq!(parse(b"*-1\r\n", 16), words(&[], 5));
}

#[test]
fn numbers_are_strict() {
    assert_eq!([number(b"0"), number(b"-7"), number(b"12")], [Some(0), Some(-7), Some(12)]);
    for bad in [&b""[..], b"-", b"+1", b"01", b" 1", b"1 ", b"-0", b"9223372036854775808", b"1.0"] {
        assert_eq!(number(bad), None, "{bad:?}");
    }
}
