//! One property: attach, count, prove, cover, refute its mutants.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::edit;
use crate::property::{Mutant, Property, labels};
use crate::tools::{Answer, Question, Tools};

/// What became of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds in every reachable state.
    Proved,
    /// It does not: by these assertions, from the start.
    Refuted(String),
    /// It holds from the start for some cycles; these assertions are not inductive.
    NotInductive(String),
    /// These cover statements are not reached: the assumptions may contradict each other.
    NotCovered(String),
    /// The solver ran out of time at this question.
    Undecided(Question),
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    /// What was wrong.
    pub what: String,
    /// The assertions that failed; none if the mutant lives.
    pub by: Option<String>,
}

/// Result of a property.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What it was.
    pub property: Property,
    /// Assertions that were attached, counted in what the solver got.
    pub asserts: usize,
    /// Cover statements, likewise.
    pub covers: usize,
    /// The verdict.
    pub verdict: Verdict,
    /// Mutants that were tried.
    pub mutants: Vec<Killed>,
    /// How long it took.
    pub time: Duration,
}

impl Outcome {
    /// Proved, and every mutant that was tried was refuted.
    pub fn holds(&self) -> bool {
        self.verdict == Verdict::Proved && self.mutants.iter().all(|mutant| mutant.by.is_some())
    }
}

/// How properties are run.
pub struct Runner {
    /// The tools.
    pub tools: Tools,
    /// Folder for what yosys and the solver leave.
    pub work: PathBuf,
    /// Seconds for one question to the solver.
    pub seconds: u64,
    /// Try the mutants, too.
    pub mutants: bool,
    /// Told of each step.
    pub progress: fn(&str),
}

impl Runner {
    /// Proves a property, and refutes its mutants where that was asked for.
    ///
    /// # Errors
    /// An edit that finds nothing, a count that differs from what the property declares, tools that
    /// fail.
    pub fn run(&self, property: &Property) -> Result<Outcome> {
        let start = Instant::now();
        let verilog = property.unit.verilog();
        let mut parts = vec![Part::new("model", &verilog, false), Part::new("directed", &verilog, true)];
        if self.mutants {
            for (number, mutant) in property.mutants.iter().enumerate() {
                parts.push(Part::new(&part_of(number), &edit::mutate(&verilog, mutant)?, true));
            }
        }
        let (asserts, covers) = self.attach(property, &parts)?;
        let verdict = self.verdict(property)?;
        let mut mutants = Vec::new();
        if self.mutants && verdict == Verdict::Proved {
            for (number, mutant) in property.mutants.iter().enumerate() {
                mutants.push(self.kill(property, mutant, number)?);
            }
        }
        Ok(Outcome { property: property.clone(), asserts, covers, verdict, mutants, time: start.elapsed() })
    }

    fn folder(&self, property: &Property, part: &str) -> PathBuf {
        self.work.join(&property.name).join(part)
    }

    fn say(&self, property: &Property, what: &str) {
        (self.progress)(&format!("{}: {what}", property.name));
    }

    /// Makes `model.smt2` of each part with the property in it, and counts what is attached: the
    /// same in each.
    ///
    /// yosys takes longer to start than to make a model, so that one process makes all of them.
    fn attach(&self, property: &Property, parts: &[Part]) -> Result<(usize, usize)> {
        for part in parts {
            let folder = self.folder(property, &part.name);
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            write(&folder, "unit.v", &prepared(property, &part.verilog)?)?;
        }
        let folder = self.work.join(&property.name);
        let script = |of: fn(&Property, &Part) -> String| -> String { parts.iter().map(|p| of(property, p)).collect() };
        self.tools.yosys(&folder, &script(flattened))?;
        for part in parts {
            let folder = self.folder(property, &part.name);
            let flat = std::fs::read_to_string(folder.join("flat.v")).context("yosys left no Verilog")?;
            write(&folder, "attached.v", &edit::inject(&flat, &property.body)?)?;
        }
        self.tools.yosys(&folder, &script(encoded))?;
        for part in parts {
            self.check_counts(property, part)?;
        }
        Ok((property.asserts, property.covers))
    }

    /// What yosys has attached is what the property declares.
    fn check_counts(&self, property: &Property, part: &Part) -> Result<()> {
        let model = self.folder(property, &part.name).join("model.smt2");
        let model = std::fs::read_to_string(model).context("yosys left no model")?;
        let count =
            |kind: &str| model.lines().filter(|line| line.starts_with(&format!("; yosys-smt2-{kind} "))).count();
        let counts = (count("assert"), count("cover"));
        if counts != (property.asserts, property.covers) {
            bail!(
                "{}: {} assertions and {} cover statements are attached, {} and {} are declared",
                property.name,
                counts.0,
                counts.1,
                property.asserts,
                property.covers
            );
        }
        if property.in_order && labels(&property.body).len() != counts.0 {
            bail!("{}: an assertion without a name", property.name);
        }
        Ok(())
    }

    fn verdict(&self, property: &Property) -> Result<Verdict> {
        let model = self.folder(property, "model");
        self.say(property, "from the start");
        match self.tools.solve(&model, Question::Base, property.depth, self.seconds)? {
            Answer::Passed => {}
            Answer::Failed(by) => return Ok(Verdict::Refuted(by)),
            Answer::Timeout => return Ok(Verdict::Undecided(Question::Base)),
        }
        self.say(property, "inductive step");
        let step = match property.in_order {
            true => {
                let order = labels(&property.body);
                self.tools.step_in_order(&model, &order, property.depth, self.seconds)?
            }
            false => self.tools.solve(&model, Question::Step, property.depth, self.seconds)?,
        };
        match step {
            Answer::Passed => {}
            Answer::Failed(by) => return Ok(Verdict::NotInductive(by)),
            Answer::Timeout => return Ok(Verdict::Undecided(Question::Step)),
        }
        self.say(property, "cover");
        let directed = self.folder(property, "directed");
        Ok(match self.tools.solve(&directed, Question::Cover, property.cover_depth, self.seconds)? {
            Answer::Passed => Verdict::Proved,
            Answer::Failed(by) => Verdict::NotCovered(by),
            Answer::Timeout => Verdict::Undecided(Question::Cover),
        })
    }

    /// A mutant is refuted by a trace from the start in which an assertion fails. It may take the
    /// directed assumptions, which permit fewer traces.
    fn kill(&self, property: &Property, mutant: &Mutant, number: usize) -> Result<Killed> {
        self.say(property, &format!("mutant: {}", mutant.what));
        let folder = self.folder(property, &part_of(number));
        let answer = self.tools.solve(&folder, Question::Base, mutant.depth, self.seconds)?;
        let by = if let Answer::Failed(by) = answer { Some(by) } else { None };
        Ok(Killed { what: mutant.what.clone(), by })
    }
}

/// A model of a property: of the unit, or of a mutant.
struct Part {
    /// Its folder below the property's.
    name: String,
    verilog: String,
    /// With the assumptions that lead to what is to be covered.
    directed: bool,
}

impl Part {
    fn new(name: &str, verilog: &str, directed: bool) -> Self {
        Self { name: name.to_owned(), verilog: verilog.to_owned(), directed }
    }
}

fn part_of(mutant: usize) -> String {
    format!("mutant-{mutant}")
}

/// The Verilog as yosys gets it: instances cut out, memories seen through one word.
fn prepared(property: &Property, verilog: &str) -> Result<String> {
    let mut text = verilog.to_string();
    for instance in &property.cut {
        text = edit::cut(&text, instance)?;
    }
    for instance in &property.watch {
        text = edit::watch(&text, instance)?;
    }
    Ok(text)
}

/// yosys's script that makes `flat.v` of a part, and forgets it.
fn flattened(property: &Property, part: &Part) -> String {
    let arrays = if !property.apart { "" } else { "-mem2reg" };
    let name = &part.name;
    format!(
        "read_verilog {arrays} -sv -formal {name}/unit.v; hierarchy -check -top top; proc; flatten; \
         write_verilog -noattr {name}/flat.v; {FORGET}"
    )
}

/// The one that makes `model.smt2` of `attached.v`.
fn encoded(_: &Property, part: &Part) -> String {
    let (name, directed) = (&part.name, if part.directed { "-D DIRECTED" } else { "" });
    format!(
        "read_verilog {directed} -icells -sv -formal {name}/attached.v; prep -top top; delete -output o:*; memory_map; \
         opt_clean -purge; chformal -lower; opt_clean -purge; dffunmap; setundef -undriven -anyseq; \
         write_smt2 -wires {name}/model.smt2; {FORGET}"
    )
}

/// Neither modules nor macros of a part are there for the next.
const FORGET: &str = "design -reset; design -reset-vlog; ";

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::write(folder.join(name), text).with_context(|| format!("cannot write {name} in {}", folder.display()))
}
