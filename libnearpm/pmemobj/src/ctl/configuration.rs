//! Queries from the environment: `name=value;name=value`.

use std::env::var_os;
use std::ffi::c_void;
use std::sync::OnceLock;

use super::entry::{Entry, Text, integer};
use super::{Query, find};
use crate::control::{Description, STATISTICS_BOTH};
use crate::error::{Errno, fail, message};
use crate::registry::Pool;

/// Name and value.
type Setting = (String, String);
/// What an error is known by, and its text.
type Refusal = (Errno, String);

/// All queries, in the order of the variable and then the file.
fn queries() -> Result<&'static [Setting], Errno> {
    static QUERIES: OnceLock<Result<Vec<Setting>, Refusal>> = OnceLock::new();
    match QUERIES.get_or_init(read) {
        Ok(queries) => Ok(queries),
        Err((errno, text)) => Err(fail(*errno, format_args!("{text}"))),
    }
}

fn read() -> Result<Vec<Setting>, Refusal> {
    let mut queries = Vec::new();
    if let Some(text) = var_os("PMEMOBJ_CONF") {
        queries.extend(parse(&text.to_string_lossy()).map_err(|text| (libc::EINVAL, text))?);
    }
    if let Some(path) = var_os("PMEMOBJ_CONF_FILE").filter(|path| !path.is_empty()) {
        let text = std::fs::read_to_string(&path).map_err(|error| {
            (error.raw_os_error().unwrap_or(libc::EIO), format!("PMEMOBJ_CONF_FILE {}: {error}", path.display()))
        })?;
        queries.extend(parse(&text).map_err(|text| (libc::EINVAL, text))?);
    }
    Ok(queries)
}

/// Splits queries; blanks do not count, comments reach from `#` to the end of the line.
fn parse(text: &str) -> Result<Vec<Setting>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
    let text: String = lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
    let split = |query: &str| match query.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("the query {query:?} of the configuration is not name=value")),
    };
    text.split(';').filter(|query| !query.is_empty()).map(split).collect()
}

/// Applies the configuration: without a pool the entries of the process, the first time; with one
/// those of the pool. A wrong value is an error each time, so that no pool is made or opened with
/// it.
pub fn apply(pool: Option<&Pool>) -> Result<(), Errno> {
    static GLOBAL: OnceLock<Result<(), Refusal>> = OnceLock::new();
    let Some(pool) = pool else {
        let known = |name: &str| Entry::global(name).is_some();
        let applied = GLOBAL.get_or_init(|| set_all(None, known).map_err(|errno| (errno, message())));
        return applied.clone().map_err(|(errno, text)| fail(errno, format_args!("{text}")));
    };
    set_all(Some(pool), |name| Entry::global(name).is_none())
}

/// Sets the entries whose names are `wanted`.
fn set_all(pool: Option<&Pool>, wanted: impl Fn(&str) -> bool) -> Result<(), Errno> {
    let mut wanted = queries()?.iter().filter(|(name, _)| wanted(name));
    wanted.try_for_each(|(name, value)| set(pool, name, value))
}

fn set(pool: Option<&Pool>, name: &str, value: &str) -> Result<(), Errno> {
    let entry = find(pool, name)?;
    let invalid = || fail(libc::EINVAL, format_args!("the value {value:?} does not fit {name}"));
    if !entry.takes(Query::Set) {
        return Err(fail(libc::EINVAL, format_args!("invalid query entry point {name}")));
    }
    let mut description;
    let mut number;
    let argument: *mut c_void = match entry.text() {
        Text::Class => {
            description = class(value).ok_or_else(invalid)?;
            (&raw mut description).cast()
        }
        text => {
            number = word(text, value).ok_or_else(invalid)?;
            (&raw mut number).cast()
        }
    };
    // SAFETY: numbers are stored in eight bytes, the low ones first; a class has its description.
    unsafe { entry.set(pool, argument) }
}

/// The number that a value stands for.
fn word(text: Text, value: &str) -> Option<i64> {
    const DISABLED: i64 = 3;
    let named = |names: &[&str]| names.iter().position(|&known| known == value).map(|at| at as i64);
    match text {
        Text::Boolean => boolean(value),
        Text::Integer | Text::Class => integer(value),
        Text::Assignment => named(&["thread", "global"]),
        Text::Statistics => match boolean(value) {
            Some(on) => Some(if on == 1 { STATISTICS_BOTH } else { DISABLED }),
            // In the order of `enum pobj_stats_enabled`.
            None => named(&["transient", "both", "persistent", "disabled"]),
        },
    }
}

/// As with PMDK, the first character decides.
fn boolean(value: &str) -> Option<i64> {
    match value.as_bytes().first()? {
        b'y' | b'Y' | b'1' => Some(1),
        b'n' | b'N' | b'0' => Some(0),
        _ => None,
    }
}

/// `unit size,alignment,units per block,header`.
fn class(value: &str) -> Option<Description> {
    let mut parts = value.split(',');
    let mut number = || integer(parts.next()?);
    let (unit_size, alignment, units) = (number()?, number()?, number()?);
    let header_type = ["legacy", "compact", "none"].iter().position(|&kind| Some(kind) == parts.clone().next())?;
    parts.next();
    parts.next().is_none().then_some(Description {
        unit_size: usize::try_from(unit_size).ok()?,
        alignment: usize::try_from(alignment).ok()?,
        units_per_block: u32::try_from(units).ok()?,
        header_type: header_type as u32,
        class_id: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_split_without_blanks_and_comments() {
        let queries = parse("prefault.at_open = 1; # all\n tx.cache.size=0x10;\n\n").unwrap();
        let expected = [("prefault.at_open", "1"), ("tx.cache.size", "0x10")];
        assert!(queries.iter().map(|(n, v)| (n.as_str(), v.as_str())).eq(expected));
        assert!(parse("prefault.at_open").is_err() && parse("=1").is_err() && parse("a=").is_err());
    }

    #[test]
    fn values_are_what_pmdk_reads() {
        let statistics = ["transient", "both", "persistent", "disabled", "1", "n", "2", "true"];
        let read = statistics.map(|value| word(Text::Statistics, value));
        assert_eq!(read, [Some(0), Some(1), Some(2), Some(3), Some(1), Some(3), None, None]);
        let booleans = ["y", "Yes", "1", "0", "no", "maybe", "2", ""].map(|value| word(Text::Boolean, value));
        assert_eq!(booleans, [Some(1), Some(1), Some(1), Some(0), Some(0), None, None, None]);
        let numbers = ["16", "0x10", "020", "-5", "+7", "0", "64K", "0x", "-", "", "9223372036854775808"];
        let read = numbers.map(|value| word(Text::Integer, value));
        let expected = [Some(16), Some(16), Some(16), Some(-5), Some(7), Some(0), None, None, None, None, None];
        assert_eq!(read, expected);
        assert_eq!(["thread", "global", "1"].map(|value| word(Text::Assignment, value)), [Some(0), Some(1), None]);
        let class = class("500,0,1000,compact").unwrap();
        assert_eq!((class.unit_size, class.units_per_block, class.header_type), (500, 1000, 1));
        assert!(super::class("500,0,1000").is_none() && super::class("500,0,1000,compact,1").is_none());
    }
}
