//! Strings and fields that are numbers.

use nearpm::prelude::*;

use super::db::{Db, OVERFLOW, Outcome, refuse};
use super::reply::Reply;
use super::resp::number;
use super::strings::{put, value};
use super::words::{NOT_INTEGER, float, integer};
use crate::store::Name;

/// INCR, DECR, INCRBY, DECRBY
pub fn increment(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let by = words.get(2).map_or(Ok(1), |word| integer(word))?;
    let down = words[0].first().is_some_and(|first| first.eq_ignore_ascii_case(&b'd'));
    if down && by == i64::MIN {
        return refuse("ERR decrement would overflow");
    }
    let name = Name::of(&words[1]);
    let found = db.string(tx, &name)?;
    let had = match found {
        None => 0,
        Some(found) => number(&value(tx, found)?).map_or_else(|| refuse(NOT_INTEGER), Ok)?,
    };
    let Some(sum) = had.checked_add(if down { -by } else { by }) else { return refuse(OVERFLOW) };
    put(db, tx, &name, sum.to_string().as_bytes(), found.map_or(0, |(_, head)| head.expires))?;
    reply.integer(sum);
    Ok(())
}

/// INCRBYFLOAT key number
pub fn incrbyfloat(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let found = db.string(tx, &name)?;
    let had = found.map_or(Ok(b"0".to_vec()), |found| value(tx, found))?;
    let sum = add(&had, &words[2], "ERR value is not a valid float")?;
    put(db, tx, &name, sum.as_bytes(), found.map_or(0, |(_, head)| head.expires))?;
    reply.bulk(sum.as_bytes());
    Ok(())
}

/// Digits behind the point that sums are printed with at most, as Redis prints them.
const DIGITS: u32 = 17;

/// A decimal number in units of the last digit; `None` if it does not fit.
fn decimal(text: &str) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}").parse::<i128>().ok()?;
    let shift = (DIGITS as i32).checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    // Twenty-one digits in front of the point leave room for a sum.
    let scaled = all.checked_mul(10i128.checked_pow(u32::try_from(shift).ok()?)?)?;
    Some(sign * scaled).filter(|scaled| scaled.abs() < i128::MAX / 2)
}

/// The sum of two numbers with fractions as text, without an exponent. Decimal digits are added as
/// such, where Redis has 80 bits.
pub fn add(had: &[u8], by: &[u8], refusal: &'static str) -> Outcome<String> {
    let (Some(a), Some(b)) = (float(had), float(by)) else { return refuse(refusal) };
    if !(a + b).is_finite() {
        return refuse("ERR increment would produce NaN or Infinity");
    }
    let exact = |word| std::str::from_utf8(word).ok().and_then(decimal);
    let (Some(a_units), Some(b_units)) = (exact(had), exact(by)) else { return Ok(format!("{}", a + b)) };
    let sum = a_units + b_units;
    let (whole, fraction) = (sum.unsigned_abs() / 10u128.pow(DIGITS), sum.unsigned_abs() % 10u128.pow(DIGITS));
    let fraction = format!("{fraction:0width$}", width = DIGITS as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{}{whole}{point}{fraction}", if sum < 0 { "-" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::add;

    #[test]
    fn sums_of_decimals_are_exact() {
        for (a, b, sum) in [
            ("0.1", "0.2", "0.3"),
            ("3.0", "1.1", "4.1"),
            ("5.0e3", "200", "5200"),
            ("1", "-1.10", "-0.1"),
            ("17179869184", "1.5", "17179869185.5"),
            ("-3", "3", "0"),
        ] {
            assert_eq!(add(a.as_bytes(), b.as_bytes(), "no").unwrap(), sum);
        }
        assert_eq!(add(b"1e300", b"1e300", "no").unwrap().len(), 301);
        for (a, b) in [("inf", "1"), ("x", "1"), ("1", " 1"), ("1e308", "1e308"), ("nan", "0")] {
            assert!(add(a.as_bytes(), b.as_bytes(), "no").is_err(), "{a} {b}");
        }
    }
}
