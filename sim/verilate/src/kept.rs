//! Texts that a program generates, kept for its other processes and later runs.

use crate::Error;
use crate::cache;
use crate::error::IoContext;
use std::fs;
use std::path::Path;

/// What stands for the code that makes a text: when it changes, the text is made anew.
#[derive(Clone, Copy, Debug)]
pub enum Maker {
    /// The running program, by a checksum of its file: always right, and each program makes its
    /// texts itself.
    Program,
    /// The sources of the library that makes the text and of all that this depends on, by a
    /// checksum that the library's build has taken: programs with the same library share the text.
    Sources(&'static str),
}

/// The files that `make` gives for `name`, as (name, text): made once by this maker, whatever
/// number of processes ask for them.
///
/// They lie in the cache of models under the maker's checksum. So `name` has to say all that `make`
/// depends on besides its code.
///
/// # Errors
/// The cache, or the program's own file, cannot be read or written.
pub fn kept<const N: usize>(
    maker: Maker,
    name: &str,
    files: [&str; N],
    make: impl FnOnce() -> [String; N],
) -> Result<[String; N], Error> {
    let checksum = match maker {
        Maker::Sources(checksum) => format!("sources {checksum}"),
        Maker::Program => {
            let program = std::env::current_exe().context("find", Path::new("the program's own file"))?;
            checksum_of(&program)?
        }
    };
    kept_of(&checksum, name, files, make)
}

fn checksum_of(program: &Path) -> Result<String, Error> {
    let code = fs::read(program).context("read", program)?;
    Ok(format!("{:08x}-{}", crc32c::crc32c(&code), code.len()))
}

fn kept_of<const N: usize>(
    checksum: &str,
    name: &str,
    files: [&str; N],
    make: impl FnOnce() -> [String; N],
) -> Result<[String; N], Error> {
    let key = cache::key([checksum, name].into_iter().chain(files));
    let folder = cache::entry(&format!("text-{key}"), |scratch| {
        files.iter().zip(make()).try_for_each(|(file, text)| {
            let path = scratch.join(file);
            fs::write(&path, text).context("write", &path)
        })
    })?;
    let mut texts = [const { String::new() }; N];
    for (text, file) in texts.iter_mut().zip(files) {
        let path = folder.join(file);
        *text = fs::read_to_string(&path).context("read", &path)?;
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::{Maker, checksum_of, kept, kept_of};
    use std::path::{Path, PathBuf};

    fn program(code: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("nearpm-kept-{}-{}", std::process::id(), code));
        std::fs::write(&path, code).expect("written");
        path
    }

    #[test]
    fn a_text_is_made_once_for_each_program_and_each_name() {
        let (one, other) = (program("one"), program("other"));
        let unique = format!("test of process {}", std::process::id());
        let get = |program: &Path, name: &str, text: &str| {
            let checksum = checksum_of(program).expect("the program is read");
            let [text] =
                kept_of(&checksum, &format!("{unique}, {name}"), ["text"], || [text.to_owned()]).expect("kept");
            text
        };
        assert_eq!(get(&one, "a", "first"), "first");
        assert_eq!(get(&one, "a", "second"), "first");
        assert_eq!(get(&one, "b", "third"), "third");
        assert_eq!(get(&other, "a", "fourth"), "fourth");
        for path in [one, other] {
            std::fs::remove_file(path).expect("removed");
        }
    }

    #[test]
    fn programs_share_what_the_same_sources_make() {
        let name = format!("shared by process {}", std::process::id());
        let get = |maker, text: &str| {
            let [text] = kept(maker, &name, ["text"], || [text.to_owned()]).expect("kept");
            text
        };
        assert_eq!(get(Maker::Sources("1"), "first"), "first");
        assert_eq!(get(Maker::Sources("1"), "second"), "first");
        assert_eq!(get(Maker::Sources("2"), "third"), "third");
        assert_eq!(get(Maker::Program, "fourth"), "fourth");
    }
}
