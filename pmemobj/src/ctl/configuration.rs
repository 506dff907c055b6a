//! Queries from the environment: `name=value;name=value`.

use std::env::var_os;
use std::ffi::c_void;
use std::sync::OnceLock;

use super::class::Description;
use super::entry::{Entry, Width};
use super::{Query, find};
use crate::error::{Errno, fail};
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

/// Applies the configuration: without a pool the entries of the process, once; with one those of the pool.
pub fn apply(pool: Option<&Pool>) -> Result<(), Errno> {
    static APPLIED: OnceLock<()> = OnceLock::new();
    if pool.is_none() && APPLIED.set(()).is_err() {
        return Ok(());
    }
    for (name, value) in queries()? {
        let is_global = Entry::global(name).is_some();
        if is_global == pool.is_none() {
            set(pool, name, value)?;
        }
    }
    Ok(())
}

fn set(pool: Option<&Pool>, name: &str, value: &str) -> Result<(), Errno> {
    let entry = find(pool, name)?;
    let invalid = || fail(libc::EINVAL, format_args!("the value {value:?} does not fit {name}"));
    if !entry.takes(Query::Set) {
        return Err(invalid());
    }
    let mut description;
    let mut number;
    let argument: *mut c_void = match entry {
        Entry::Class(_) => {
            description = class(value).ok_or_else(invalid)?;
            (&raw mut description).cast()
        }
        Entry::Kept(_, Width::Eight, _) => {
            number = integer(value).ok_or_else(invalid)?;
            (&raw mut number).cast()
        }
        _ => {
            number = word(name, value).ok_or_else(invalid)?;
            (&raw mut number).cast()
        }
    };
    // SAFETY: numbers are stored in eight bytes, the low ones first; a class has its description.
    unsafe { entry.set(pool, argument) }
}

/// A number, or a name for one.
fn word(name: &str, value: &str) -> Option<i64> {
    let named: &[&str] = match name {
        "stats.enabled" => &["transient", "both", "persistent", "disabled"],
        "heap.arenas_assignment_type" => &["thread", "global"],
        _ => &[],
    };
    let by_name = named.iter().position(|&known| known == value).map(|at| at as i64);
    by_name.or_else(|| match value {
        "y" | "Y" | "yes" | "true" => Some(1),
        "n" | "N" | "no" | "false" => Some(0),
        _ => integer(value),
    })
}

fn integer(value: &str) -> Option<i64> {
    match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
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
    fn values_are_numbers_or_names() {
        assert_eq!(word("stats.enabled", "disabled"), Some(3));
        assert_eq!(word("prefault.at_open", "y"), Some(1));
        assert_eq!(word("tx.cache.size", "0x10"), Some(16));
        assert_eq!(word("prefault.at_open", "maybe"), None);
        let class = class("500,0,1000,compact").unwrap();
        assert_eq!((class.unit_size, class.units_per_block, class.header_type), (500, 1000, 1));
        assert!(super::class("500,0,1000").is_none() && super::class("500,0,1000,compact,1").is_none());
    }
}
