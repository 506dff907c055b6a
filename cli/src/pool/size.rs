//! Sizes on the command line.

/// Reads a number of bytes, with K, M, G or T for powers of 1024, as in `64M` or `64MiB`.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.strip_suffix("iB").unwrap_or(unit) {
        "" | "B" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("{unit:?} is no unit: use K, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no size: give a number, as in 64M"))?;
    number.checked_shl(shift).filter(|bytes| bytes >> shift == number).ok_or_else(|| format!("{text} is too large"))
}

/// Reads a number, also in hexadecimal after `0x`, or a size.
pub fn parse_offset(text: &str) -> Result<u64, String> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is no offset")),
        None => parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("64M"), Ok(64 << 20));
        assert_eq!(parse("2GiB"), Ok(2 << 30));
        assert_eq!(parse_offset("0x1000"), Ok(4096));
        for bad in ["", "M", "64X", "-1", "1.5G", "99999999999T", "18446744073709551616"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
