//! Which places of a sorted set a range names: by place, by score, or by text where all scores are
//! the same. All take time in proportion to the logarithm of its members.

use std::ops::Range;

use nearpm::prelude::*;

use crate::redis::db::{Outcome, ZSet, refuse};
use crate::redis::rank::ScoreKey;
use crate::redis::words::{float, integer, part};

/// What the ends of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Places.
    Rank,
    /// Scores.
    Score,
    /// Texts.
    Lex,
}

/// A range of members, its lower end first.
#[derive(Clone, Debug)]
pub enum Window {
    /// By places, which may count from the end.
    Rank(i64, i64),
    /// By scores, each with whether it is left out itself.
    Score((f64, bool), (f64, bool)),
    /// By texts.
    Lex(Text, Text),
}

/// An end of a range of texts.
#[derive(Clone, Debug)]
pub enum Text {
    /// In front of all.
    First,
    /// Behind all.
    Last,
    /// A text, and whether it is left out itself.
    At(Vec<u8>, bool),
}

fn score_end(word: &[u8]) -> Outcome<(f64, bool)> {
    let (text, outside) = word.strip_prefix(b"(").map_or((word, false), |rest| (rest, true));
    float(text).map_or_else(|| refuse("ERR min or max is not a float"), |score| Ok((score, outside)))
}

fn text_end(word: &[u8]) -> Outcome<Text> {
    Ok(match word {
        b"-" => Text::First,
        b"+" => Text::Last,
        [b'[', text @ ..] => Text::At(text.to_vec(), false),
        [b'(', text @ ..] => Text::At(text.to_vec(), true),
        _ => return refuse("ERR min or max not valid string range item"),
    })
}

impl Window {
    /// Of two words; those of scores and texts stand the other way round if `reverse`.
    pub fn parse(by: By, reverse: bool, first: &[u8], second: &[u8]) -> Outcome<Window> {
        let (low, high) = if reverse { (second, first) } else { (first, second) };
        Ok(match by {
            By::Rank => Window::Rank(integer(first)?, integer(second)?),
            By::Score => Window::Score(score_end(low)?, score_end(high)?),
            By::Lex => Window::Lex(text_end(low)?, text_end(high)?),
        })
    }

    /// The places that it names, from the lowest member on; `reverse` is for places that count from
    /// the highest.
    pub fn places(&self, from: &impl Load, body: Ptr<ZSet>, reverse: bool) -> Result<Range<u64>, Error> {
        let length = body.order().len(from)?;
        let range = match self {
            Window::Rank(start, stop) => {
                let part = part(*start, *stop, length);
                if reverse { length - part.end..length - part.start } else { part }
            }
            Window::Score(low, high) => {
                let start = below(from, body, low.0, low.1, length)?;
                start..below(from, body, high.0, !high.1, length)?
            }
            Window::Lex(low, high) => {
                let place = |text: &Text, inside: bool| match text {
                    Text::First => Ok(0),
                    Text::Last => Ok(length),
                    Text::At(member, outside) => {
                        // No number stands in no order to any, so that texts alone are compared.
                        let place = ScoreKey { score: f64::NAN, member: member.clone() };
                        let (rank, found) = body.order().rank(from, &place)?;
                        Ok::<_, Error>(rank + u64::from(found && *outside != inside))
                    }
                };
                place(low, false)?..place(high, true)?
            }
        };
        Ok(range.start..range.end.max(range.start))
    }
}

/// How many members have a score below this one, or, if `with`, not above it.
fn below(from: &impl Load, body: Ptr<ZSet>, score: f64, with: bool, length: u64) -> Result<u64, Error> {
    if with && score == f64::INFINITY {
        return Ok(length);
    }
    // Between a number and the next one there are no others.
    let score = if with { score.next_up() } else { score };
    Ok(body.order().rank(from, &ScoreKey { score, member: Vec::new() })?.0)
}
