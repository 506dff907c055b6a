//! What the words of commands say: numbers, options, how many keys follow.

use std::ops::Range;

use super::db::{Outcome, SYNTAX, Words, refuse, refuse_with};
use super::reply::Reply;
use super::resp::number;

/// Some text of the protocol that several commands use.
pub const NOT_INTEGER: &str = "ERR value is not an integer or out of range";

/// A number with a fraction, as strict as Redis: no spaces and no NaN.
pub fn float(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    // What Rust takes and C does not: the words are spelled out in either.
    let number: f64 = text.parse().ok().or_else(|| hexadecimal(text))?;
    Some(number).filter(|number| !number.is_nan())
}

/// A hexadecimal number of C, without a fraction.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    Some(sign * u64::from_str_radix(digits, 16).ok()? as f64)
}

/// As [`float`], or a refusal.
pub fn float_or(word: &[u8], refusal: &'static str) -> Outcome<f64> {
    float(word).map_or_else(|| refuse(refusal), Ok)
}

/// What is said when an optional word is one too many.
pub fn wrong_count<T>(word: &[u8]) -> Outcome<T> {
    let name = String::from_utf8_lossy(word).to_ascii_lowercase();
    refuse_with(format!("ERR wrong number of arguments for '{name}' command"))
}

/// How many seconds a command may wait, which is looked at before anything else.
pub fn patience(word: &[u8]) -> Outcome {
    let seconds = float(word).filter(|seconds| seconds.is_finite());
    let Some(seconds) = seconds else { return refuse("ERR timeout is not a float or out of range") };
    if seconds < 0.0 {
        return refuse("ERR timeout is negative");
    }
    if seconds > (i64::MAX / 1000) as f64 {
        return refuse("ERR timeout is out of range");
    }
    Ok(())
}

/// How many keys a command has, and the keys: `words` begin with the number.
pub fn counted_keys<'w>(words: &'w [Vec<u8>], none: &'static str) -> Outcome<(Words<'w>, Words<'w>)> {
    let count = words.first().map_or_else(|| refuse(SYNTAX), |word| integer(word).or_else(|_| refuse(none)))?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0).map_or_else(|| refuse(none), Ok)?;
    if words.len() - 1 < count {
        return refuse(SYNTAX);
    }
    Ok(words[1..].split_at(count))
}

/// A number of a command.
pub fn integer(word: &[u8]) -> Outcome<i64> {
    number(word).map_or_else(|| refuse(NOT_INTEGER), Ok)
}

/// How many elements a command takes that may say so, not less than none.
pub fn count_of(word: Option<&Vec<u8>>) -> Outcome<Option<u64>> {
    let Some(word) = word else { return Ok(None) };
    match integer(word).map(u64::try_from) {
        Ok(Ok(count)) => Ok(Some(count)),
        _ => refuse("ERR value is out of range, must be positive"),
    }
}

/// Whether a word is this option, in any case.
pub fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

/// The part of a row of `length` that `start` and `stop` name, where numbers below 0 count from the
/// end.
pub fn part(start: i64, stop: i64, length: u64) -> Range<u64> {
    let length = length as i64;
    let from_front = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let stop = if stop < 0 { stop.saturating_add(length) } else { stop.min(length - 1) };
    let start = from_front(start);
    if start > stop || start >= length { 0..0 } else { start as u64..stop as u64 + 1 }
}

/// What LMPOP, ZMPOP and their kin ask for.
pub struct Pops<'w> {
    /// The first of these that has something gives it.
    pub keys: Words<'w>,
    /// From the first of the two ends.
    pub first: bool,
    /// So many elements at most.
    pub count: u64,
}

/// `numkeys key ... END [COUNT n]`
pub fn pops<'w>(words: Words<'w>, ends: [&str; 2]) -> Outcome<Pops<'w>> {
    let (keys, rest) = counted_keys(words, "ERR numkeys should be greater than 0")?;
    let [end, rest @ ..] = rest else { return refuse(SYNTAX) };
    let Some(end) = ends.iter().position(|name| is(end, name)) else { return refuse(SYNTAX) };
    let count = match rest {
        [] => 1,
        [option, count] if is(option, "count") => {
            let count = integer(count).ok().filter(|count| *count > 0);
            count.map_or_else(|| refuse("ERR count should be greater than 0"), Ok)? as u64
        }
        _ => return refuse(SYNTAX),
    };
    Ok(Pops { keys, first: end == 0, count })
}

/// The keys that a command that waits looks at: one of them alone, if that is given.
pub fn looked_at<'w>(keys: Words<'w>, one: Option<&'w [u8]>) -> impl Iterator<Item = &'w [u8]> {
    keys.iter().map(Vec::as_slice).filter(move |key| one.is_none_or(|one| one == *key))
}

/// The keys of a command whose last word says how long it waits.
pub fn keys_and_patience<'w>(words: Words<'w>, one: Option<&'w [u8]>) -> Outcome<impl Iterator<Item = &'w [u8]>> {
    let last = words.len() - 1;
    patience(&words[last])?;
    Ok(looked_at(&words[1..last], one))
}

/// No array, where a command that does not wait has found nothing.
pub fn or_nothing(found: bool, reply: &mut Reply<'_>) {
    if !found {
        reply.null_array();
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_of_rows() {
        assert_eq!(part(0, -1, 3), 0..3);
        assert_eq!(part(-2, 99, 3), 1..3);
        assert_eq!(part(-99, 0, 3), 0..1);
        for (start, stop, length) in [(3, 9, 3), (2, 1, 3), (0, -4, 3), (0, -1, 0), (i64::MIN, i64::MIN, 3)] {
            assert!(part(start, stop, length).is_empty(), "{start} {stop} {length}");
        }
    }
}
