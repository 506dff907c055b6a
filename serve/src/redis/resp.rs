//! RESP, as it comes from clients: arrays of bulk strings, or a line of words.
//!
//! Hand-written, since crates for the protocol (`redis-protocol`, `resp-rs`) read frames: they know
//! no lines of words, begin anew with each piece that comes, and refuse what is too long in other
//! words than Redis's, which clients compare.

use std::ops::Range;

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
    /// As above: this byte came in place of a `$`.
    Unexpected(u8),
}

/// A decimal number, as strict as Redis: no plus, no spaces, no zero in front.
pub fn number(digits: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(digits).ok()?;
    let plain = text.strip_prefix('-').unwrap_or(text);
    let strict = plain == "0" && plain == text || plain.starts_with(|c: char| ('1'..='9').contains(&c));
    text.parse().ok().filter(|_| strict)
}

/// Takes commands from the start of what a client has sent, and remembers how far it looked into
/// one that is not whole yet: time is in proportion to what was sent, in whatever pieces it comes.
#[derive(Debug, Default)]
pub struct Parser {
    /// Where the next line of the unfinished command begins.
    at: usize,
    /// Bytes of that line that have no end in them.
    searched: usize,
    /// Words that the unfinished command has in all; `None` before its head was read.
    wanted: Option<usize>,
    /// Its words so far.
    places: Vec<Range<usize>>,
    /// Where the word ends that is coming.
    coming: Option<Range<usize>>,
}

impl Parser {
    /// Looks at an input, which begins with the same command as at the last call unless that was
    /// taken. A value may have `max_value` bytes.
    pub fn parse(&mut self, input: &[u8], max_value: usize) -> Parsed {
        let parsed = match input.first() {
            None => Parsed::Incomplete,
            Some(b'*') => self.array(input, max_value).unwrap_or_else(|end| end),
            Some(_) => match self.line(input) {
                Err(()) => Parsed::Broken("too big inline request"),
                Ok(None) => Parsed::Incomplete,
                Ok(Some((line, end))) => match words(&input[line]) {
                    Some(words) => Parsed::Command(words, end),
                    None => Parsed::Broken("unbalanced quotes in request"),
                },
            },
        };
        if parsed != Parsed::Incomplete {
            *self = Parser::default();
        }
        parsed
    }

    /// The line that begins here, without its end, and where the next one begins.
    fn line(&mut self, input: &[u8]) -> Result<Option<(Range<usize>, usize)>, ()> {
        let rest = &input[self.at..];
        let limit = rest.len().min(LINE_BYTES);
        let found = rest[self.searched.min(limit)..limit].iter().position(|&byte| byte == b'\n');
        let Some(found) = found else {
            self.searched = limit;
            return if rest.len() >= LINE_BYTES { Err(()) } else { Ok(None) };
        };
        let end = self.at + self.searched.min(limit) + found;
        self.searched = 0;
        let cut = usize::from(input[self.at..end].last() == Some(&b'\r'));
        Ok(Some((self.at..end - cut, end + 1)))
    }

    /// Reads how many words there are, then word by word.
    fn array(&mut self, input: &[u8], max_value: usize) -> Result<Parsed, Parsed> {
        let wanted = match self.wanted {
            Some(wanted) => wanted,
            None => {
                let found = self.line(input).map_err(|()| Parsed::Broken("too big mbulk count string"))?;
                let Some((head, behind)) = found else { return Ok(Parsed::Incomplete) };
                let count = number(&input[head.start + 1..head.end]).filter(|&count| count <= MOST_ARGUMENTS as i64);
                let count = count.ok_or(Parsed::Broken("invalid multibulk length"))?.max(0) as usize;
                (self.wanted, self.at) = (Some(count), behind);
                count
            }
        };
        while self.places.len() < wanted {
            let Some(place) = self.word(input, max_value)? else { return Ok(Parsed::Incomplete) };
            self.at = place.end + 2;
            self.places.push(place);
        }
        Ok(Parsed::Command(self.places.iter().map(|place| input[place.clone()].to_vec()).collect(), self.at))
    }

    /// Where the next word lies, if it is there.
    fn word(&mut self, input: &[u8], max_value: usize) -> Result<Option<Range<usize>>, Parsed> {
        let place = match self.coming.take() {
            Some(place) => place,
            None => {
                // The first byte tells at once that something else comes.
                if let Some(&other) = input.get(self.at).filter(|&&byte| byte != b'$') {
                    return Err(Parsed::Unexpected(other));
                }
                let found = self.line(input).map_err(|()| Parsed::Broken("too big bulk count string"))?;
                let Some((head, begin)) = found else { return Ok(None) };
                let length = number(&input[head.start + 1..head.end]).and_then(|n| usize::try_from(n).ok());
                let length = length.filter(|&n| n <= max_value).ok_or(Parsed::Broken("invalid bulk length"))?;
                if begin + length > COMMAND_BYTES + max_value {
                    return Err(Parsed::Broken("too big request"));
                }
                begin..begin + length
            }
        };
        if input.len() < place.end + 2 {
            self.coming = Some(place);
            return Ok(None);
        }
        if &input[place.end..place.end + 2] != b"\r\n" {
            return Err(Parsed::Broken("a bulk string has another length than it says"));
        }
        Ok(Some(place))
    }
}

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
#[path = "resp_tests.rs"]
mod tests;
