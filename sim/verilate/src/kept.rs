//! Texts that a program generates, kept for its other processes and later runs.

use crate::Error;
use crate::cache;
use crate::error::IoContext;
use std::fs;
use std::path::Path;

/// The files that `make` gives for `name`, as (name, text): made once by this program, whatever number of its processes ask for them.
///
/// They lie in the cache of models under a checksum of the program itself, which is what makes them: a program that was built anew makes them anew.
/// So `name` has to say all that `make` depends on besides its code.
///
/// # Errors
/// The cache, or the program's own file, cannot be read or written.
pub fn kept<const N: usize>(
    name: &str,
    files: [&str; N],
    make: impl FnOnce() -> [String; N],
) -> Result<[String; N], Error> {
    kept_of(&std::env::current_exe().context("find", Path::new("the program's own file"))?, name, files, make)
}

fn kept_of<const N: usize>(
    program: &Path,
    name: &str,
    files: [&str; N],
    make: impl FnOnce() -> [String; N],
) -> Result<[String; N], Error> {
    let code = fs::read(program).context("read", program)?;
    let checksum = format!("{:08x}-{}", crc32c::crc32c(&code), code.len());
    let key = cache::key([checksum.as_str(), name].into_iter().chain(files));
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
    use super::kept_of;
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
            let [text] = kept_of(program, &format!("{unique}, {name}"), ["text"], || [text.to_owned()]).expect("kept");
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
}
