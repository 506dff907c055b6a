//! Pool sets: text files that say in which parts a pool lies (poolset(5)). A pool of this library
//! has one part; what a set says beyond that is refused, and by name.

use std::fs::Metadata;
use std::io::{BufRead, BufReader, Read};

use nearpm_place::ordinary_file;

use crate::error::{Errno, fail};

/// What the first line is.
const SIGNATURE: &str = "PMEMPOOLSET";
/// Longest set that is read; one of one part is a few lines.
const MAX_BYTES: u64 = 1 << 20;

/// The one part of a set.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Its file.
    pub path: String,
    /// Bytes that it is to have.
    pub bytes: u64,
}

/// Why a set is not taken: the error, and what to tell.
type Refusal = (Errno, String);

impl Part {
    /// The part of the set at a path; `None` where the file is no set, or there is none.
    ///
    /// # Errors
    /// EINVAL for a set that is malformed, and ENOTSUP (for remote replicas ELIBACC, as PMDK
    /// without its library) for one that is more than one part.
    pub fn of(path: &str) -> Result<Option<Part>, Errno> {
        let Some(text) = text_of(path) else { return Ok(None) };
        parse(&text).map(Some).map_err(|(errno, text)| fail(errno, format_args!("{path} {text}")))
    }

    /// What `pmemobj_create` makes of the part: 0 bytes where a file is there, which it fills.
    ///
    /// # Errors
    /// EINVAL where that file has another size.
    pub fn to_create(&self) -> Result<u64, Errno> {
        let found = std::fs::metadata(&self.path).ok().filter(Metadata::is_file).map(|file| file.len());
        match found {
            None | Some(0) => Ok(self.bytes),
            Some(bytes) if bytes == self.bytes => Ok(0),
            Some(bytes) => {
                let text = "file size does not match config";
                Err(fail(libc::EINVAL, format_args!("{text}: {}, {bytes} != {}", self.path, self.bytes)))
            }
        }
    }
}

/// The text of a file that is a set.
fn text_of(path: &str) -> Option<String> {
    let mut reader = BufReader::new(ordinary_file(path)?.take(MAX_BYTES));
    let start = reader.fill_buf().ok()?;
    if !start.starts_with(SIGNATURE.as_bytes()) {
        return None;
    }
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse(text: &str) -> Result<Part, Refusal> {
    let malformed = |line: usize, what: &str| (libc::EINVAL, format!("[{what}:{line}]"));
    let Some(lines) = text.strip_prefix(SIGNATURE).and_then(|rest| rest.strip_prefix('\n')) else {
        return Err(malformed(1, "the first line must be exactly 'PMEMPOOLSET'"));
    };
    let mut part = None;
    let mut line_number = 1;
    for line in lines.lines() {
        line_number += 1;
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
        match words.clone().next() {
            None => {}
            Some("OPTION") => check_options(words.skip(1)).map_err(|refusal| at_line(refusal, line_number))?,
            Some("REPLICA") => return Err(refuse_replica(words.nth(1), line_number)),
            Some(size) => {
                let path =
                    words.nth(1).ok_or_else(|| malformed(line_number, "invalid token found in the current line"))?;
                if words.next().is_some() {
                    return Err(malformed(line_number, "invalid token found in the current line"));
                }
                if !path.starts_with('/') {
                    return Err(malformed(line_number, "incorrect path (must be an absolute one)"));
                }
                let bytes = bytes_of(size, path).map_err(|refusal| at_line(refusal, line_number))?;
                if part.replace(Part { path: path.to_owned(), bytes }).is_some() {
                    return Err(unsupported(line_number, "a pool of several parts", "name one part, as large as all"));
                }
            }
        }
    }
    part.ok_or_else(|| malformed(line_number, "no pool set parts"))
}

fn at_line((errno, what): Refusal, line: usize) -> Refusal {
    (errno, format!("[{what}:{line}]"))
}

fn unsupported(line: usize, what: &str, remedy: &str) -> Refusal {
    (libc::ENOTSUP, format!("[{what} is not supported; {remedy}:{line}]"))
}

fn refuse_replica(host: Option<&str>, line: usize) -> Refusal {
    let remedy = "take the replica out of the set, and copy the closed pool instead";
    match host {
        None => unsupported(line, "a replica", remedy),
        Some(_) => (libc::ELIBACC, unsupported(line, "a remote replica", remedy).1),
    }
}

fn check_options<'a>(options: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let mut some = false;
    for option in options {
        some = true;
        match option {
            // With one part it says nothing.
            "SINGLEHDR" => {}
            "NOHDRS" => {
                let text = "the NOHDRS poolset option is not supported for local poolsets";
                return Err((libc::EINVAL, text.to_owned()));
            }
            _ => return Err((libc::EINVAL, "unknown option".to_owned())),
        }
    }
    if some { Ok(()) } else { Err((libc::EINVAL, "missing option name".to_owned())) }
}

/// Bytes of a size: a number, with a unit of powers of 1000 (kB, MB ...) or of 1024 (K, KiB ...).
fn bytes_of(size: &str, path: &str) -> Result<u64, Refusal> {
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        let text = "a directory as a part (a pool that grows) is not supported; name a file";
        return Err((libc::ENOTSUP, text.to_owned()));
    }
    if size == "AUTO" {
        let text = "the size AUTO is for device DAX, which is not supported; give the size in bytes";
        return Err((libc::ENOTSUP, text.to_owned()));
    }
    let end = size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len());
    let (number, unit) = size.split_at(end);
    let factor = match unit {
        "" | "B" => Some(1),
        unit => {
            let mut letters = unit.chars();
            let power = letters.next().and_then(|letter| "KMGTP".find(letter.to_ascii_uppercase()));
            let base: Option<u64> = match letters.as_str() {
                "" | "iB" => Some(1024),
                "B" => Some(1000),
                _ => None,
            };
            power.zip(base).map(|(power, base)| base.pow(power as u32 + 1))
        }
    };
    let bytes = number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    bytes.filter(|&bytes| bytes != 0).ok_or_else(|| (libc::EINVAL, "incorrect format of size".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_is_no_set_and_nobody_waits_for_its_writer() {
        let path = std::env::temp_dir().join(format!("nearpm-fifo-{}", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().expect("text")).expect("no zero");
        // SAFETY: the name ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let found = text_of(path.to_str().expect("text"));
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(found, None);
    }

    #[test]
    fn one_part_is_read_as_pmdk_reads_it() {
        let sizes =
            [("16M", 16 << 20), ("16MiB", 16 << 20), ("16MB", 16_000_000), ("8388608", 8 << 20), ("1g", 1 << 30)];
        for (size, bytes) in sizes {
            let text = format!("PMEMPOOLSET\n# c\n\nOPTION SINGLEHDR\n  {size}\t/no/such # x\n");
            assert_eq!(parse(&text), Ok(Part { path: "/no/such".into(), bytes }), "{size}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let cases = [
            ("PMEMPOOLSET", libc::EINVAL, "[the first line must be exactly 'PMEMPOOLSET':1]"),
            ("PMEMPOOLSETX\n16M /a\n", libc::EINVAL, "[the first line must be exactly 'PMEMPOOLSET':1]"),
            ("PMEMPOOLSET\n", libc::EINVAL, "[no pool set parts:1]"),
            ("PMEMPOOLSET\n16M a\n", libc::EINVAL, "[incorrect path (must be an absolute one):2]"),
            ("PMEMPOOLSET\n16M\n", libc::EINVAL, "[invalid token found in the current line:2]"),
            ("PMEMPOOLSET\n16M /a /b\n", libc::EINVAL, "[invalid token found in the current line:2]"),
            ("PMEMPOOLSET\n16X /a\n", libc::EINVAL, "[incorrect format of size:2]"),
            ("PMEMPOOLSET\n0 /a\n", libc::EINVAL, "[incorrect format of size:2]"),
            ("PMEMPOOLSET\n99999999999999P /a\n", libc::EINVAL, "[incorrect format of size:2]"),
            ("PMEMPOOLSET\né /a\n", libc::EINVAL, "[incorrect format of size:2]"),
            ("PMEMPOOLSET\nOPTION WHAT\n16M /a\n", libc::EINVAL, "[unknown option:2]"),
            ("PMEMPOOLSET\nOPTION\n16M /a\n", libc::EINVAL, "[missing option name:2]"),
        ];
        for (text, errno, message) in cases {
            assert_eq!(parse(text).unwrap_err(), (errno, message.to_owned()), "{text:?}");
        }
        let unsupported = [
            ("16M /a\n16M /b\n", libc::ENOTSUP, "several parts"),
            ("16M /a\nREPLICA\n16M /b\n", libc::ENOTSUP, "a replica"),
            ("16M /a\nREPLICA host b.set\n", libc::ELIBACC, "a remote replica"),
            ("16M /\n", libc::ENOTSUP, "a directory"),
            ("AUTO /dev/dax0.0\n", libc::ENOTSUP, "device DAX"),
            ("OPTION NOHDRS\n16M /a\n", libc::EINVAL, "NOHDRS"),
        ];
        for (text, errno, named) in unsupported {
            let (found, message) = parse(&format!("PMEMPOOLSET\n{text}")).unwrap_err();
            assert!(found == errno && message.contains(named), "{text:?}: {found} {message}");
        }
    }
}
