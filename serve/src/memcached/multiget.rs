//! Multi-gets: their lines may be of any length, and their replies too, so that keys are taken and
//! answered a few at a time.

use super::line::{KEY_BYTES, is_key};

/// Keys that are taken at a time.
pub const FEW: usize = 16;

/// Some keys of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The keys.
    pub keys: Vec<Vec<u8>>,
    /// Bytes that they had.
    pub taken: usize,
    /// What ends the keys, if something does.
    pub end: Option<End>,
}

/// What ends the keys of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The line's end.
    Line,
    /// A NUL: what follows on the line does not count.
    Nul,
    /// A word that is too long for a key.
    NoKey,
}

/// Takes keys from the rest of a line.
pub fn piece(input: &[u8]) -> Piece {
    let mut piece = Piece::default();
    while piece.keys.len() < FEW && piece.end.is_none() {
        piece.taken += input[piece.taken..].iter().take_while(|&&byte| byte == b' ').count();
        let rest = &input[piece.taken..];
        let Some(length) = rest.iter().take(KEY_BYTES + 2).position(|byte| b" \n\0".contains(byte)) else {
            piece.end = (rest.len() > KEY_BYTES + 1).then_some(End::NoKey);
            break;
        };
        let word = match rest[length] {
            b'\n' => rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]),
            _ => &rest[..length],
        };
        if !word.is_empty() && !is_key(word) {
            piece.end = Some(End::NoKey);
            break;
        }
        if !word.is_empty() {
            piece.keys.push(word.to_vec());
        }
        piece.taken += length + 1;
        piece.end = match rest[length] {
            b'\n' => Some(End::Line),
            b'\0' => Some(End::Nul),
            _ => None,
        };
    }
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_line() {
        let keys = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let long = "k".repeat(KEY_BYTES);
        let longer = "k".repeat(KEY_BYTES + 1);
        for (input, words, taken, end) in [
            ("a  b\r\nget", &["a", "b"][..], 6, Some(End::Line)),
            ("a b", &["a"], 2, None),
            ("a\0b c\r\n", &["a"], 2, Some(End::Nul)),
            ("\n", &[], 1, Some(End::Line)),
            (&format!("a {long}\r\n"), &["a", &long], 254, Some(End::Line)),
            (&format!("{long}\r"), &[], 0, None),
            (&format!("a {longer} b\n"), &["a"], 2, Some(End::NoKey)),
            (&format!("{longer}kk"), &[], 0, Some(End::NoKey)),
        ] {
            assert_eq!(piece(input.as_bytes()), Piece { keys: keys(words), taken, end }, "{input}");
        }
        assert_eq!(piece(" k".repeat(99).as_bytes()).keys.len(), FEW);
    }
}
