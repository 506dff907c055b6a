//! A copy of the workspace with all faults in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::Mutant;

/// Stands for the condition in [`Mutant::with`].
const CONDITION: &str = "FAULT";

/// What each crate with a fault gets at the end of its `lib.rs`, and each test that has files of
/// the library as its own.
const CHOICE: &str = r#"
pub(crate) fn planted_mutant(number: usize) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("NEARPM_MUTANT").ok()?.parse().ok()) == Some(number)
}
"#;

/// Folder of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in the workspace").to_owned()
}

/// The crate that a file belongs to: what is in front of its folder `src`.
fn crate_of(file: &str) -> Result<&str> {
    Ok(file.split_once("/src/").with_context(|| format!("{file} is no file of a crate's sources"))?.0)
}

/// How a test takes a file of the library for its own.
const OWN_FILE: &str = "#[path = \"../src/";

/// Plants faults, numbered from 1: gives the changed files with their new texts.
///
/// # Errors
/// A fault whose text is not there, or not once, by its number.
pub fn plant(root: &Path, mutants: &[Mutant]) -> Result<BTreeMap<String, String>> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut roots = BTreeSet::new();
    for (number, mutant) in (1..).zip(mutants) {
        let constant = ["const ", "static "].iter().any(|item| mutant.find.contains(item));
        ensure!(!constant, "fault {number} ({}) is in a constant, which is no place for a condition", mutant.breaks);
        let original = fs::read_to_string(root.join(mutant.file)).with_context(|| format!("read {}", mutant.file))?;
        let found = original.matches(mutant.find).count();
        ensure!(found == 1, "fault {number} ({}): its text is {found} times in {}", mutant.breaks, mutant.file);
        let text = texts.entry(mutant.file.to_owned()).or_insert(original);
        if text.matches(mutant.find).count() != 1 {
            bail!("fault {number} ({}) and an earlier one change the same text of {}", mutant.breaks, mutant.file);
        }
        let with = mutant.with.replace(CONDITION, &format!("crate::planted_mutant({number})"));
        ensure!(with != mutant.with, "fault {number} ({}) has no condition", mutant.breaks);
        *text = text.replacen(mutant.find, &with, 1);
        let of = crate_of(mutant.file)?;
        let test = format!("{of}/tests/{}.rs", mutant.tests.target);
        let has_own_files = fs::read_to_string(root.join(&test)).is_ok_and(|text| text.contains(OWN_FILE));
        roots.extend([Some(format!("{of}/src/lib.rs")), has_own_files.then_some(test)].into_iter().flatten());
    }
    for file in roots {
        let text = match texts.remove(&file) {
            Some(text) => text,
            None => fs::read_to_string(root.join(&file)).with_context(|| format!("read {file}"))?,
        };
        texts.insert(file, text + CHOICE);
    }
    Ok(texts)
}

/// Brings a copy of the workspace up to date. Files that are as they should be keep their times, so
/// that little is built anew.
pub(crate) fn copy(root: &Path, to: &Path, changed: &BTreeMap<String, String>) -> Result<()> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(list).current_dir(root).output().context("run git ls-files")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    let mut wanted = BTreeSet::new();
    for file in text.split_terminator('\0') {
        let (from, target) = (root.join(file), to.join(file));
        if !from.is_file() {
            continue;
        }
        wanted.insert(target.clone());
        let bytes = match changed.get(file) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(&from).with_context(|| format!("read {file}"))?,
        };
        if fs::read(&target).is_ok_and(|there| there == bytes) {
            continue;
        }
        fs::create_dir_all(target.parent().expect("a file has a folder"))?;
        fs::write(&target, bytes).with_context(|| format!("write {}", target.display()))?;
        fs::set_permissions(&target, fs::metadata(&from)?.permissions())?;
    }
    remove_others(to, &wanted)
}

/// Removes what is in a folder and not wanted: a file that has gone from the workspace would still
/// be a test.
fn remove_others(folder: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, wanted)?;
        } else if !wanted.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
