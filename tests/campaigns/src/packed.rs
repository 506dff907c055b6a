//! A folder with what campaigns run, for a machine that has neither Rust nor the tools of the
//! hardware.
//!
//! The sources lie there as they lay where the programs were built, for tests read files of theirs.
//! Models of the hardware are not packed: `NEARPM_VERILATE_CACHE` names a folder with those that
//! were built.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::built::{commit, program};
use crate::campaigns::Campaign;
use crate::workspace;

/// The file that says what is in the folder.
const LIST: &str = "packed.json";

/// What is in such a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packed {
    /// Commit that the programs were built from, with a `+` where files differed from it.
    pub commit: String,
    /// What each campaign runs.
    programs: BTreeMap<String, Vec<Program>>,
    /// Where it lies.
    #[serde(skip)]
    folder: PathBuf,
}

/// A program of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    /// Its file in the folder.
    file: String,
    /// Folder of its package below that of the workspace, in which cargo would run it; none for a
    /// program that no test is.
    package: Option<PathBuf>,
}

/// A test program that cargo has built.
struct Built {
    executable: PathBuf,
    package: PathBuf,
}

/// The words of a command before and behind the `--` that ends cargo's own.
fn split(words: &[String]) -> (&[String], &[String]) {
    let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
    (&words[..at], words.get(at + 1..).unwrap_or(&[]))
}

/// The test programs in what `cargo test --no-run --message-format json` prints.
fn built(messages: &str) -> Result<Vec<Built>> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        executable: Option<PathBuf>,
        manifest_path: Option<PathBuf>,
        profile: Option<Profile>,
        target: Option<Target>,
    }
    #[derive(Deserialize)]
    struct Target {
        kind: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let mut all = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("a message of cargo")?;
        // The tests of a macro's crate need the compiler's libraries; no campaign has any there.
        let is_macro = message.target.is_some_and(|target| target.kind.iter().any(|kind| kind == "proc-macro"));
        let is_test =
            message.profile.is_some_and(|profile| profile.test) && message.reason == "compiler-artifact" && !is_macro;
        if let (true, Some(executable), Some(manifest)) = (is_test, message.executable, message.manifest_path) {
            let folder = manifest.parent().context("a manifest lies in a folder")?;
            let package = folder.strip_prefix(workspace()).context("a package of the workspace")?.to_owned();
            all.push(Built { executable, package });
        }
    }
    Ok(all)
}

/// Whether a test program has a test that these arguments choose.
fn has_tests(built: &Built, arguments: &[String]) -> Result<bool> {
    let output = Command::new(&built.executable).args(arguments).arg("--list").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("start {}", built.executable.display()))?;
    ensure!(output.status.success(), "{} lists no tests", built.executable.display());
    Ok(String::from_utf8_lossy(&output.stdout).lines().any(|line| line.ends_with(": test")))
}

/// What a command of cargo would run: the test programs that have such a test.
fn tests_of(words: &[String]) -> Result<Vec<Built>> {
    let (own, arguments) = split(words);
    let mut command = program(own)?;
    command.args(["--no-run", "--message-format", "json"]).current_dir(workspace());
    let output = command.stderr(Stdio::inherit()).stdin(Stdio::null()).output().context("start cargo")?;
    ensure!(output.status.success(), "{} does not build", own.join(" "));
    let mut chosen = Vec::new();
    for built in built(&String::from_utf8_lossy(&output.stdout))? {
        if has_tests(&built, arguments)? {
            chosen.push(built);
        }
    }
    ensure!(!chosen.is_empty(), "{} has no test", words.join(" "));
    Ok(chosen)
}

impl Packed {
    /// Builds what these campaigns run, and copies it into a folder, with this program.
    ///
    /// # Errors
    /// If something does not build, the folder cannot be written, or a campaign cannot be packed.
    pub fn pack(folder: &Path, campaigns: &[&Campaign]) -> Result<Packed> {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        let mut programs = BTreeMap::new();
        for campaign in campaigns {
            ensure!(campaign.is_packed, "the campaign {} builds what it runs, and cannot be packed", campaign.name);
            let words = campaign.words(1);
            let sources = match &*words[0] {
                "cargo" => tests_of(&words)?.into_iter().map(|built| (built.executable, Some(built.package))).collect(),
                _ => vec![(PathBuf::from(program(&words)?.get_program()), None)],
            };
            let mut own = Vec::new();
            for (source, package) in sources {
                own.push(Program { file: copy(&source, folder)?, package });
            }
            programs.insert(campaign.name.to_owned(), own);
        }
        copy(&std::env::current_exe().context("find this program")?, folder)?;
        let packed = Packed { commit: commit()?, programs, folder: folder.to_owned() };
        let path = folder.join(LIST);
        let file = File::create(&path).with_context(|| format!("make {}", path.display()))?;
        serde_json::to_writer_pretty(file, &packed).with_context(|| format!("write {}", path.display()))?;
        Ok(packed)
    }

    /// What [`Packed::pack`] has left in a folder.
    ///
    /// # Errors
    /// If it is no such folder, or the sources here are a checkout of another commit.
    pub fn read(folder: &Path) -> Result<Packed> {
        let packed = Packed::list(folder)?;
        // Sources that came without their history do not say which they are.
        if workspace().join(".git").exists() {
            match commit() {
                Ok(here) => packed.check_commit(&here)?,
                Err(why) => eprintln!("WARNING: that the sources are of {} was not checked: {why:#}", packed.commit),
            }
        }
        Ok(packed)
    }

    /// Refuses sources of another commit than the programs: tests read files of theirs.
    fn check_commit(&self, here: &str) -> Result<()> {
        ensure!(
            here == self.commit,
            "{} was packed from commit {}, and the sources in {} are of {here} (with a + files differ from it)",
            self.folder.display(),
            self.commit,
            workspace().display()
        );
        Ok(())
    }

    /// Whether a campaign was packed.
    pub fn has(&self, campaign: &Campaign) -> bool {
        self.programs.contains_key(campaign.name)
    }

    /// Looks that each of these was packed, before the first runs.
    ///
    /// # Errors
    /// If one was not.
    pub fn check_has(&self, campaigns: &[&Campaign]) -> Result<()> {
        for campaign in campaigns {
            ensure!(self.has(campaign), "{} was not packed into {}", campaign.name, self.folder.display());
        }
        Ok(())
    }

    /// What is in a folder, whatever the sources here are.
    fn list(folder: &Path) -> Result<Packed> {
        let path = folder.join(LIST);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let packed: Packed = serde_json::from_str(&text).with_context(|| format!("read {}", path.display()))?;
        let folder = fs::canonicalize(folder).with_context(|| format!("find {}", folder.display()))?;
        Ok(Packed { folder, ..packed })
    }

    /// What runs instead of a campaign's command, in this order.
    pub(crate) fn commands(&self, campaign: &Campaign, words: &[String]) -> Result<Vec<Command>> {
        let Some(programs) = self.programs.get(campaign.name) else {
            bail!("{} was not packed into {}", campaign.name, self.folder.display());
        };
        let command = |program: &Program| {
            let mut command = Command::new(self.folder.join(&program.file));
            match &program.package {
                Some(package) => {
                    let package = workspace().join(package);
                    command.args(split(words).1).current_dir(&package).env("CARGO_MANIFEST_DIR", package)
                }
                None => command.args(&words[1..]).current_dir(workspace()),
            };
            command
        };
        Ok(programs.iter().map(command).collect())
    }
}

/// Copies a program into a folder, and gives its name there.
fn copy(program: &Path, folder: &Path) -> Result<String> {
    let name = program.file_name().and_then(|name| name.to_str()).context("a program has a name")?;
    fs::copy(program, folder.join(name)).with_context(|| format!("copy {}", program.display()))?;
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaigns::named;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn cargos_words_end_where_those_of_the_tests_begin() {
        let command = words("cargo test --workspace --test litmus -- --nocapture every_test");
        let (own, arguments) = split(&command);
        assert_eq!(
            (own.join(" "), arguments.join(" ")),
            ("cargo test --workspace --test litmus".into(), "--nocapture every_test".into())
        );
        assert_eq!(split(&words("every-cycle --minutes 3")).1, [""; 0]);
    }

    #[test]
    fn test_programs_are_found_among_what_cargo_says() {
        let of = |test: bool, executable: &str| {
            let manifest = workspace().join("tests/Cargo.toml");
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{}","profile":{{"test":{test}}},"executable":{executable},"fresh":true}}"#,
                manifest.display()
            )
        };
        let of_macro =
            of(true, r#""/t/derive-1""#).replace(r#""profile""#, r#""target":{"kind":["proc-macro"]},"profile""#);
        let messages =
            [of_macro, of(false, r#""/t/every-cycle""#), of(true, "null"), of(true, r#""/t/litmus-1""#), "note".into()];
        let found = built(&(messages.join("\n") + "\n{\"reason\":\"build-finished\",\"success\":true}\n")).unwrap();
        let found: Vec<_> = found.iter().map(|built| (&*built.executable, &*built.package)).collect();
        assert_eq!(found, [(Path::new("/t/litmus-1"), Path::new("tests"))]);
        assert!(built("{").is_err());
    }

    #[test]
    fn what_is_packed_runs_where_cargo_would_run_it_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let program =
            |file: &str, package: Option<&str>| Program { file: file.into(), package: package.map(PathBuf::from) };
        let programs = [("model", program("litmus-1", Some("tests"))), ("every-cycle", program("every-cycle", None))];
        let programs = programs.map(|(campaign, program)| (campaign.to_owned(), vec![program]));
        let list = Packed { commit: "0123456789".into(), programs: programs.into(), folder: PathBuf::new() };
        fs::write(folder.path().join(LIST), serde_json::to_string(&list).unwrap()).unwrap();
        let packed = Packed::list(folder.path()).unwrap();
        let place = fs::canonicalize(folder.path()).unwrap();
        let runs = |name: &str| {
            let campaign = named(name).unwrap();
            let mut commands = packed.commands(campaign, &campaign.words(3)).unwrap();
            assert_eq!(commands.len(), 1);
            commands.remove(0)
        };
        let (model, every_cycle) = (runs("model"), runs("every-cycle"));
        assert_eq!(model.get_program(), place.join("litmus-1"));
        assert_eq!(model.get_args().collect::<Vec<_>>(), ["--nocapture", "every_test_reaches"]);
        assert_eq!(model.get_current_dir(), Some(&*workspace().join("tests")));
        assert_eq!(every_cycle.get_args().collect::<Vec<_>>(), ["--minutes", "3"]);
        assert_eq!(every_cycle.get_current_dir(), Some(&*workspace()));
        let fuzz = named("fuzz").unwrap();
        assert!(packed.commands(fuzz, &fuzz.words(1)).unwrap_err().to_string().contains("fuzz was not packed"));
        let model = named("model").unwrap();
        assert!(packed.has(model) && !packed.has(fuzz));
        packed.check_has(&[model]).unwrap();
        assert!(packed.check_has(&[model, fuzz]).unwrap_err().to_string().contains("fuzz was not packed"));
        packed.check_commit("0123456789").unwrap();
        for other in ["0123456789+", "9876543210"] {
            let refused = packed.check_commit(other).unwrap_err().to_string();
            assert!(refused.contains("from commit 0123456789,") && refused.contains(other), "{refused}");
        }
        let proofs = Packed::pack(folder.path(), &[named("proofs").unwrap()]).unwrap_err();
        assert!(proofs.to_string().contains("cannot be packed"), "{proofs}");
        assert!(Packed::read(&folder.path().join("none")).is_err());
    }
}
