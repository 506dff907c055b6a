//! Runs of a program on a library.

use std::io::{BufRead, BufReader, Seek, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{CARD, Followed, Library, Program, follow, library, pmdk};

/// Bytes of a card, unless a run's variables say otherwise.
const CARD_BYTES: &str = "100663296";
/// Name of what callgrind writes of a run.
const PROFILE: &str = "profile";
/// What a run is told by itself alone, whatever the environment of this process says.
const OWN: [&str; 12] = [
    "NEARPM_SURVIVES",
    "NEARPM_MECHANISM",
    "NEARPM_EXECUTOR",
    "NEARPM_DURABILITY",
    "NEARPM_STATISTICS",
    "NEARPM_LINT",
    "NEARPM_POWER_CUT",
    "PMEMOBJ_CONF",
    "PMEMOBJ_CONF_FILE",
    "NEARPM_CARD",
    "NEARPM_CARD_BYTES",
    "NEARPM_CARD_CUT",
];

/// A run of a program.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// What it runs on.
    pub library: Library,
    /// Where the memory of a simulated card is, its clock and the run's profile.
    pub folder: &'a Path,
    /// The program's arguments.
    pub arguments: &'a [&'a str],
    /// Variables of the environment beside those that the library is told by.
    pub variables: &'a [(&'a str, &'a str)],
    /// What the program reads from its standard input.
    pub input: &'a str,
}

impl Run<'_> {
    /// The run, by itself or as the last arguments of another program.
    fn command(&self, program: &Path, through: &[&str]) -> Command {
        let path = if self.library == Library::Pmdk { pmdk() } else { Some(library()) };
        let folder = path.as_ref().and_then(|path| path.parent()).expect("the library is there");
        let mut command = match through {
            [] => Command::new(program),
            [other, arguments @ ..] => {
                let mut command = Command::new(other);
                command.args(arguments).arg(program);
                command
            }
        };
        for name in OWN {
            command.env_remove(name);
        }
        command
            .args(self.arguments)
            .env("LD_LIBRARY_PATH", folder)
            .env("PMEM_IS_PMEM_FORCE", if self.library == Library::OrdinaryFile { "0" } else { "1" })
            .env("NEARPM_MODE", if self.library == Library::InPlace { "in-place" } else { "working-copy" });
        if self.library == Library::SimulatedCard {
            command.env("NEARPM_CARD", self.folder.join(CARD)).env("NEARPM_CARD_BYTES", CARD_BYTES);
        }
        if !self.input.is_empty() {
            let mut file = tempfile::tempfile().expect("a file for what it reads");
            file.write_all(self.input.as_bytes()).and_then(|()| file.rewind()).expect("it can be written");
            command.stdin(file);
        }
        command.envs(self.variables.iter().copied());
        command
    }
}

impl Program {
    /// Runs the program on a library and a pool, with more arguments and variables of the
    /// environment.
    pub fn start(&self, library: Library, pool: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let folder = pool.parent().expect("a pool lies in a folder");
        let pool = pool.to_str().expect("its name is text");
        let name = if library == Library::Pmdk { "pmdk" } else { "nearpm" };
        let arguments = [&[pool, name], arguments].concat();
        self.output_of(&Run { library, folder, arguments: &arguments, variables, input: "" })
    }

    /// How a run ends, and what it prints.
    pub fn output_of(&self, run: &Run) -> Output {
        run.command(&self.binary, &[]).output().expect("the program runs")
    }

    /// The same, and what it prints arrives line by line, whatever its end is.
    pub fn output_by_lines_of(&self, run: &Run) -> Output {
        run.command(&self.binary, &["stdbuf", "--output=L"]).output().expect("coreutils are installed")
    }

    /// Runs it, and asks the card's clock where its timed part begins and ends.
    pub fn followed(&self, run: &Run) -> Followed {
        let clock = run.folder.join("clock");
        let mut command = run.command(&self.binary, &[]);
        command.arg("--counted").env("NEARPM_CARD_CLOCK", &clock);
        follow::follow(command, || now_ps(&clock))
    }

    /// Gives a run one part of its input after the other, and waits for a line that it answers each
    /// with: how it ends, and the card's clock behind each answer.
    ///
    /// # Panics
    /// If it does not start, or ends without having answered.
    pub fn asked(&self, run: &Run, parts: &[&str]) -> Followed {
        let clock = run.folder.join("clock");
        let mut command = run.command(&self.binary, &["stdbuf", "--output=L"]);
        command.env("NEARPM_CARD_CLOCK", &clock).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("coreutils are installed");
        let mut input = child.stdin.take().expect("it is piped");
        let mut answers = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let asked = parts.iter().map_while(|part| {
            // Who has ended reads nothing more, and says below why.
            input.write_all(part.as_bytes()).ok().and_then(|()| answers.next()).map(|_| now_ps(&clock))
        });
        let marks_ps: Vec<u64> = asked.collect();
        drop(input);
        let output = child.wait_with_output().expect("it prints and ends");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(marks_ps.len(), parts.len(), "{} {:?}: {}\n{text}", self.name, run.arguments, output.status);
        Followed { output, marks_ps, end_ps: now_ps(&clock) }
    }

    /// What callgrind writes of a run that must succeed, without what is executed inside of
    /// functions of such names.
    pub fn profiled(&self, run: &Run, outside: &[String]) -> String {
        self.callgrind(run, outside, &[]);
        read(&run.folder.join(PROFILE))
    }

    /// The same of that part of a run which is between the first two calls of a function.
    pub fn profiled_between(&self, run: &Run, outside: &[String], function: &str) -> String {
        self.callgrind(run, outside, &[format!("--dump-before={function}")]);
        read(&run.folder.join(PROFILE).with_extension("2"))
    }

    fn callgrind(&self, run: &Run, outside: &[String], options: &[String]) {
        let file = format!("--callgrind-out-file={}", run.folder.join(PROFILE).display());
        let mut valgrind = vec!["valgrind".to_owned(), "--tool=callgrind".to_owned(), file];
        valgrind.extend_from_slice(options);
        // Each toggle says that nothing is collected at the start.
        valgrind.extend(outside.iter().map(|name| format!("--toggle-collect={name}")));
        valgrind.push("--collect-atstart=yes".to_owned());
        let valgrind: Vec<&str> = valgrind.iter().map(String::as_str).collect();
        let output = run.command(&self.binary, &valgrind).output().expect("valgrind runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {:?}: {}\n{text}", self.name, run.arguments, output.status);
    }
}

fn read(profile: &Path) -> String {
    std::fs::read_to_string(profile).expect("callgrind writes what it counted")
}

/// What a card's clock says.
fn now_ps(clock: &Path) -> u64 {
    let now = std::fs::read(clock).expect("the card's clock has a file");
    u64::from_le_bytes(now.try_into().expect("it has eight bytes"))
}
