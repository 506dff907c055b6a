//! RESP, as it goes to clients: version 2, or 3 after `HELLO 3`.

use std::fmt::Display;
use std::io::Write;

/// Writes replies.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    /// The client speaks version 3.
    resp3: bool,
    /// The buffer may have so many bytes.
    limit: usize,
}

impl<'a> Reply<'a> {
    /// Replies at the end of a buffer.
    pub fn new(out: &'a mut Vec<u8>, resp3: bool) -> Reply<'a> {
        Reply { out, resp3, limit: usize::MAX }
    }

    /// The same reply, which may have so many bytes more. What is behind them is left out, and
    /// [`Reply::is_too_long`] says so.
    pub fn again(&mut self, bytes: usize) -> Reply<'_> {
        let limit = self.out.len().saturating_add(bytes);
        Reply { out: self.out, resp3: self.resp3, limit }
    }

    /// Whether something was left out.
    pub fn is_too_long(&self) -> bool {
        self.out.len() > self.limit
    }

    /// Where the next byte goes.
    pub fn place(&self) -> usize {
        self.out.len()
    }

    /// Takes back what was written behind a place.
    pub fn truncate(&mut self, place: usize) {
        self.out.truncate(place);
    }

    /// The client speaks version 3.
    pub fn resp3(&self) -> bool {
        self.resp3
    }

    fn head(&mut self, kind: char, what: impl Display) {
        if self.is_too_long() {
            return;
        }
        // A vector takes everything.
        let _ = write!(self.out, "{kind}{what}\r\n");
    }

    /// A short text.
    pub fn simple(&mut self, text: &str) {
        self.head('+', text);
    }

    /// A refusal, its class in front.
    pub fn error(&mut self, text: &str) {
        // A line has to remain one.
        self.head('-', text.replace(['\r', '\n'], " "));
    }

    /// A number.
    pub fn integer(&mut self, number: i64) {
        self.head(':', number);
    }

    /// Bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.bulk_with(bytes.len(), |out| {
            out.extend_from_slice(bytes);
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap_or_else(|never| match never {});
    }

    /// So many bytes, which a function appends.
    pub fn bulk_with<E>(&mut self, length: usize, append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        if self.is_too_long() {
            return Ok(());
        }
        self.head('$', length);
        append(self.out)?;
        self.out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// No array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// So many replies follow.
    pub fn array(&mut self, length: usize) {
        self.head('*', length);
    }

    /// So many pairs of replies follow.
    pub fn map(&mut self, pairs: usize) {
        if self.resp3 { self.head('%', pairs) } else { self.head('*', 2 * pairs) }
    }

    /// So many replies follow, in no order.
    pub fn set(&mut self, length: usize) {
        self.head(if self.resp3 { '~' } else { '*' }, length);
    }

    /// The head of a message that answers nothing.
    pub fn push(&mut self, length: usize) {
        self.head(if self.resp3 { '>' } else { '*' }, length);
    }

    /// A text that says what it is.
    pub fn verbatim(&mut self, text: &str) {
        if self.resp3 {
            self.head('=', text.len() + 4);
            self.out.extend_from_slice(b"txt:");
            self.out.extend_from_slice(text.as_bytes());
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// Bytes, or nothing.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Several of them.
    pub fn bulks<'b>(&mut self, rows: impl ExactSizeIterator<Item = &'b [u8]>) {
        self.array(rows.len());
        rows.for_each(|row| self.bulk(row));
    }

    /// A number with a fraction.
    pub fn double(&mut self, number: f64) {
        let text = score_text(number);
        if self.resp3 { self.head(',', text) } else { self.bulk(text.as_bytes()) }
    }
}

/// A score as Redis prints it: 17 digits at most, as `%.17g` does.
pub fn score_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if number == number.trunc() && number.abs() < 1e17 {
        return if number == 0.0 && number.is_sign_negative() { "-0".to_owned() } else { format!("{number:.0}") };
    }
    let scientific = format!("{number:.16e}");
    let (digits, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
    };
    if (-5..17).contains(&exponent) && exponent >= -4 {
        trim(&format!("{number:.*}", (16 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_printed_as_c_does() {
        // The texts are those of printf("%.17g").
        for (number, text) in [
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1, "0.10000000000000001"),
            (1e20, "1e+20"),
            (1.5e-7, "1.4999999999999999e-07"),
            (3.0e15, "3000000000000000"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(score_text(number), text);
        }
    }

    #[test]
    fn both_versions() {
        let say = |resp3| {
            let mut out = Vec::new();
            let mut reply = Reply::new(&mut out, resp3);
            reply.null();
            reply.map(1);
            reply.set(2);
            reply.double(1.5);
            reply.error("ERR a\r\nb");
            String::from_utf8(out).unwrap()
        };
        assert_eq!(say(false), "$-1\r\n*2\r\n*2\r\n$3\r\n1.5\r\n-ERR a  b\r\n");
        assert_eq!(say(true), "_\r\n%1\r\n~2\r\n,1.5\r\n-ERR a  b\r\n");
    }
}
