//! PTX text to tokens.

use super::{Number, error};
use crate::ParseError;

/// A place in the text, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: u32,
    pub column: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind<'a> {
    /// A name, `%r1`, `$L__BB0_1`.
    Word(&'a str),
    /// `.global`, without the dot.
    Dot(&'a str),
    Number(Number),
    Text(&'a str),
    Mark(char),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: Kind<'a>,
    pub at: Position,
}

impl Kind<'_> {
    pub fn describe(&self) -> String {
        match self {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Dot(word) => format!("`.{word}`"),
            Kind::Number(_) => "a number".into(),
            Kind::Text(_) => "a string".into(),
            Kind::Mark(mark) => format!("`{mark}`"),
            Kind::End => "the end of the text".into(),
        }
    }
}

pub(crate) struct Lexer<'a> {
    text: &'a str,
    position: usize,
    line: u32,
    line_start: usize,
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, position: 0, line: 1, line_start: 0 }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.position + ahead).copied().unwrap_or(0)
    }

    fn at(&self) -> Position {
        Position { line: self.line, column: (self.position - self.line_start) as u32 + 1 }
    }

    fn advance(&mut self) {
        if self.peek(0) == b'\n' {
            self.line += 1;
            self.line_start = self.position + 1;
        }
        self.position += 1;
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        while self.position < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'/') => {
                    while self.position < self.text.len() && self.peek(0) != b'\n' {
                        self.position += 1;
                    }
                }
                (b'/', b'*') => {
                    let at = self.at();
                    while (self.peek(0), self.peek(1)) != (b'*', b'/') {
                        if self.position >= self.text.len() {
                            return error(at, "a comment that does not end: expected `*/`");
                        }
                        self.advance();
                    }
                    self.position += 2;
                }
                (byte, _) if byte.is_ascii_whitespace() => self.advance(),
                _ => break,
            }
        }
        Ok(())
    }

    fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let start = self.position;
        while self.position < self.text.len() && accept(self.peek(0)) {
            self.position += 1;
        }
        // Only ASCII bytes are accepted, so both ends are character boundaries.
        self.text.get(start..self.position).unwrap_or("")
    }

    pub fn token(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip_blank()?;
        let at = self.at();
        let kind = match self.peek(0) {
            0 if self.position >= self.text.len() => Kind::End,
            b'.' if word_byte(self.peek(1)) => {
                self.position += 1;
                let word = self.take_while(|byte| word_byte(byte) || byte == b':');
                // `.L2::128B` is one modifier; the colon of a label is not part of a word.
                Kind::Dot(self.give_back_colon(word))
            }
            b'"' => self.text_literal(at)?,
            byte if byte.is_ascii_digit() => Kind::Number(self.number(at)?),
            byte if byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%') => {
                let start = self.position;
                self.position += 1;
                self.take_while(word_byte);
                Kind::Word(&self.text[start..self.position])
            }
            byte if b",;{}()[]|!@:+-=<>.".contains(&byte) => {
                self.position += 1;
                Kind::Mark(byte as char)
            }
            _ => {
                let found = self.text.get(self.position..).and_then(|rest| rest.chars().next()).unwrap_or('\u{fffd}');
                return error(at, format!("expected PTX, found the character {found:?}"));
            }
        };
        Ok(Token { kind, at })
    }

    fn give_back_colon(&mut self, word: &'a str) -> &'a str {
        let trimmed = word.trim_end_matches(':');
        self.position -= word.len() - trimmed.len();
        trimmed
    }

    fn text_literal(&mut self, at: Position) -> Result<Kind<'a>, ParseError> {
        let start = self.position + 1;
        self.position = start;
        while self.peek(0) != b'"' {
            if self.position >= self.text.len() || self.peek(0) == b'\n' {
                return error(at, "a string that does not end: expected `\"`");
            }
            self.position += 1;
        }
        self.position += 1;
        Ok(Kind::Text(self.text.get(start..self.position - 1).unwrap_or("")))
    }

    fn number(&mut self, at: Position) -> Result<Number, ParseError> {
        let word = self.take_while(|byte| byte.is_ascii_alphanumeric());
        let bad = || error(at, format!("`{word}` is not a number"));
        let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let prefix = word.get(..2).unwrap_or("").to_ascii_lowercase();
        let rest = word.get(2..).unwrap_or("");
        let unsigned = |digits: &'a str| digits.trim_end_matches(['U', 'u']);
        let found = match prefix.as_str() {
            "0f" if rest.len() == 8 => u32::from_str_radix(rest, 16).ok().map(Number::Single),
            "0d" if rest.len() == 16 => hex(rest).map(Number::Double),
            "0f" | "0d" => None,
            "0x" => hex(unsigned(rest)).map(|value| Number::Integer(value as i64)),
            "0b" => u64::from_str_radix(unsigned(rest), 2).ok().map(|value| Number::Integer(value as i64)),
            _ if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() => {
                self.position += 1;
                let fraction = self.take_while(|byte| byte.is_ascii_digit());
                format!("{word}.{fraction}").parse::<f64>().ok().map(|value| Number::Double(value.to_bits()))
            }
            _ => integer(unsigned(word)).map(|value| Number::Integer(value as i64)),
        };
        found.map_or_else(bad, Ok)
    }
}

fn integer(digits: &str) -> Option<u64> {
    match digits.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u64::from_str_radix(octal, 8).ok(),
        _ => digits.parse().ok(),
    }
}
