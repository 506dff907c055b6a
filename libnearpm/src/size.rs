//! Sizes as people write them: `64M`, `1.5GiB`, `4k`.
//!
//! | behind the number | bytes |
//! |---|---|
//! | nothing, `B` | 1 |
//! | `K`, `M`, `G`, `T`, also with `iB` | powers of 1024 |
//! | `KB`, `MB`, `GB`, `TB` | powers of 1000 |
//!
//! Upper or lower case. These are the units of `pmempool` and of the GNU tools.

use std::fmt;

/// Why a text is no size.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no size: {why}")]
#[non_exhaustive]
pub struct SizeError {
    /// What was given.
    pub text: String,
    /// What is wrong with it, and what to write.
    pub why: &'static str,
}

nearpm_interface::debug_as_display!(SizeError);

const NO_NUMBER: &str = "write a number and a unit, as in 64M or 1.5G";
const NEGATIVE: &str = "it is negative";
const ZERO: &str = "it is less than one byte";
const TOO_LARGE: &str = "it is larger than any medium";
const NO_UNIT: &str = "the unit is one of K, M, G, T (powers of 1024, as KiB) and KB, MB, GB, TB (powers of 1000)";

/// Bytes of a unit.
fn unit(text: &str) -> Option<u128> {
    let text = text.to_ascii_lowercase();
    let mut letters = text.chars();
    let Some(exponent) = letters.next().and_then(|letter| "bkmgt".find(letter)) else {
        return text.is_empty().then_some(1);
    };
    match letters.as_str() {
        "" => Some(1 << (10 * exponent)),
        "ib" if exponent > 0 => Some(1 << (10 * exponent)),
        "b" if exponent > 0 => Some(1000u128.pow(exponent as u32)),
        _ => None,
    }
}

/// The digits of a number, without the point, and how many of them are behind it.
fn digits(text: &str) -> Option<(u128, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // More decimals than these say less than a byte of any unit.
    let fraction = &fraction[..fraction.len().min(15)];
    if whole.is_empty() || fraction.is_empty() {
        return None;
    }
    Some((format!("{whole}{fraction}").parse().ok()?, fraction.len() as u32))
}

/// Reads a number of bytes, at least one. What is behind the last whole byte is dropped.
///
/// # Errors
/// The text says no number, a negative one, zero, or more than 64 bits hold; its unit is unknown.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let refuse = |why| Err(SizeError { text: text.to_owned(), why });
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return refuse(NEGATIVE);
    }
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, behind) = trimmed.split_at(end);
    if number.is_empty() || number.matches('.').count() > 1 || number.starts_with('.') || number.ends_with('.') {
        return refuse(NO_NUMBER);
    }
    let Some(unit) = unit(behind.trim_start()) else { return refuse(NO_UNIT) };
    let Some((digits, decimals)) = digits(number) else { return refuse(TOO_LARGE) };
    let Some(bytes) = digits.checked_mul(unit).map(|product| product / 10u128.pow(decimals)) else {
        return refuse(TOO_LARGE);
    };
    match u64::try_from(bytes) {
        Ok(0) => refuse(ZERO),
        Ok(bytes) => Ok(bytes),
        Err(_) => refuse(TOO_LARGE),
    }
}

/// Reads an offset: a number that may be zero, also in hexadecimal after `0x`, or with a unit.
///
/// # Errors
/// As [`parse`].
pub fn parse_offset(text: &str) -> Result<u64, SizeError> {
    let refuse = |why| SizeError { text: text.to_owned(), why };
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // A sign is a digit to nobody but the standard library.
        Some(digits) if digits.starts_with('+') => Err(refuse("behind 0x stand hexadecimal digits")),
        Some(digits) => {
            u64::from_str_radix(digits, 16).map_err(|_| refuse("behind 0x stand up to 16 hexadecimal digits"))
        }
        None if text.trim().bytes().all(|byte| byte == b'0') && !text.trim().is_empty() => Ok(0),
        None => parse(text),
    }
}

/// A number of bytes as [`parse`] reads it: the largest unit of which it is a whole number.
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
        match unit.iter().find(|(shift, _)| self.0 != 0 && self.0.trailing_zeros() >= *shift) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => self.0.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let cases = [
            ("1", 1),
            ("4096", 4096),
            ("4096B", 4096),
            ("4k", 4 << 10),
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("64MB", 64_000_000),
            ("64 MB", 64_000_000),
            (" 2G ", 2 << 30),
            ("1.5G", 3 << 29),
            ("1.5GB", 1_500_000_000),
            ("0.5K", 512),
            ("1.0000000000000000000009K", 1024),
            ("1.1", 1),
            ("16777215T", 16_777_215 << 40),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_reason() {
        let cases = [
            (NO_NUMBER, &["", " ", "M", "k", ".5G", "1.G", "1.2.3G", "..", "+1", "é", "NaN", "inf"][..]),
            (NEGATIVE, &["-1", "-64M", " -0"]),
            (ZERO, &["0", "0M", "0.0G", "0.0009K", "0.9"]),
            (NO_UNIT, &["64X", "64MM", "64iB", "1e6", "1Bi", "64M64", "1bb", "1,5G", "64é", "1_000"]),
            (TOO_LARGE, &["16777216T", "18446744073709551616", "99999999999999999999999999999999999999999999G"]),
        ];
        for (why, texts) in cases {
            for text in texts {
                let error = parse(text).unwrap_err();
                assert_eq!(error.why, why, "{text}");
                assert_eq!(format!("{error:?}"), error.to_string());
            }
        }
    }

    #[test]
    fn offsets_may_be_zero_and_hexadecimal() {
        assert_eq!(parse_offset("0"), Ok(0));
        assert_eq!(parse_offset("0x1000"), Ok(4096));
        assert_eq!(parse_offset("0XfF"), Ok(255));
        assert_eq!(parse_offset("4K"), Ok(4096));
        for bad in ["", " ", "0x", "0x-1", "0x+1", "0x10000000000000000", "-1", "4Q"] {
            assert!(parse_offset(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_written_as_they_are_read() {
        for (bytes, text) in [(0, "0"), (1, "1"), (1000, "1000"), (4096, "4K"), (64 << 20, "64M"), (3 << 29, "1536M")] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
