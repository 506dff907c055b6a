//! RESP, as it comes from clients: arrays of bulk strings, or a line of words.

/// Bytes of a line at most.
const LINE_BYTES: usize = 64 << 10;
/// Arguments of a command at most.
const MOST_ARGUMENTS: usize = 64 << 10;
/// Bytes of a command at most, besides its largest value.
const COMMAND_BYTES: usize = 32 << 20;

/// What the start of an input is.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not a whole command yet.
    Incomplete,
    /// The words of a command (none for an empty line), and how many bytes it had.
    Command(Vec<Vec<u8>>, usize),
    /// No command, and nothing behind it can be understood.
    Broken(&'static str),
}

/// The line at the start, without its end, and where the next one begins.
fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, ()> {
    match input.iter().take(LINE_BYTES).position(|&byte| byte == b'\n') {
        Some(end) => Ok(Some((input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]), end + 1))),
        None if input.len() >= LINE_BYTES => Err(()),
        None => Ok(None),
    }
}

/// A decimal number, as strict as Redis: no plus, no spaces, no zero in front.
pub fn number(digits: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(digits).ok()?;
    let plain = text.strip_prefix('-').unwrap_or(text);
    let strict = plain == "0" && plain == text || plain.starts_with(|c: char| ('1'..='9').contains(&c));
    text.parse().ok().filter(|_| strict)
}

/// Takes a command from the start of an input. A value may have `max_value` bytes.
pub fn parse(input: &[u8], max_value: usize) -> Parsed {
    match input.first() {
        None => Parsed::Incomplete,
        Some(b'*') => array(input, max_value).unwrap_or_else(|end| end),
        Some(_) => match line(input) {
            Err(()) => Parsed::Broken("too big inline request"),
            Ok(None) => Parsed::Incomplete,
            Ok(Some((line, end))) => match words(line) {
                Some(words) => Parsed::Command(words, end),
                None => Parsed::Broken("unbalanced quotes in request"),
            },
        },
    }
}

fn array(input: &[u8], max_value: usize) -> Result<Parsed, Parsed> {
    let Some((head, mut at)) = line(input).map_err(|()| Parsed::Broken("too big mbulk count string"))? else {
        return Ok(Parsed::Incomplete);
    };
    let count = number(&head[1..]).filter(|&count| count <= MOST_ARGUMENTS as i64);
    let count = count.ok_or(Parsed::Broken("invalid multibulk length"))?.max(0) as usize;
    let mut places = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        let rest = &input[at..];
        let Some((head, begin)) = line(rest).map_err(|()| Parsed::Broken("too big bulk count string"))? else {
            // The first byte tells at once that something else comes.
            return if rest.first().is_none_or(|&b| b == b'$') { Ok(Parsed::Incomplete) } else { Err(EXPECTED) };
        };
        let digits = head.strip_prefix(b"$").ok_or(EXPECTED)?;
        let length = number(digits).and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= max_value);
        let length = length.ok_or(Parsed::Broken("invalid bulk length"))?;
        let begin = at + begin;
        if begin + length > COMMAND_BYTES + max_value {
            return Err(Parsed::Broken("too big request"));
        }
        places.push(begin..begin + length);
        at = begin + length + 2;
        if input.len() < at {
            return Ok(Parsed::Incomplete);
        }
        if &input[at - 2..at] != b"\r\n" {
            return Err(Parsed::Broken("a bulk string has another length than it says"));
        }
    }
    Ok(Parsed::Command(places.into_iter().map(|place| input[place].to_vec()).collect(), at))
}

const EXPECTED: Parsed = Parsed::Broken("expected '$'");

/// The words of a line, some of them quoted; `None` if a quote is left open.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut bytes) = (Vec::new(), line.iter().copied().peekable());
    loop {
        while bytes.next_if(|b| b.is_ascii_whitespace()).is_some() {}
        let Some(&first) = bytes.peek() else { return Some(words) };
        let mut word = Vec::new();
        if first == b'"' || first == b'\'' {
            bytes.next();
            loop {
                match bytes.next()? {
                    b'\\' if first == b'"' => word.push(unescape(&mut bytes)?),
                    byte if byte == first => break,
                    byte => word.push(byte),
                }
            }
            if bytes.peek().is_some_and(|b| !b.is_ascii_whitespace()) {
                return None;
            }
        } else {
            while let Some(byte) = bytes.next_if(|b| !b.is_ascii_whitespace()) {
                word.push(byte);
            }
        }
        words.push(word);
    }
}

fn unescape(bytes: &mut impl Iterator<Item = u8>) -> Option<u8> {
    Some(match bytes.next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let digits = [bytes.next()?, bytes.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        }
        byte => byte,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        /// Whatever part has come, the parser waits; with the whole it gives what was sent, and leaves what follows.
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
            (&b"*1\r\n:3\r\n"[..], "expected '$'"),
            (b"*1\r\nx", "expected '$'"),
            (b"*x\r\n", "invalid multibulk length"),
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
}
