//! From the text of a file to a test.

use super::error::ParseError;
use super::lines::{Section, Text, check_heads, end, find, required, sections};
use super::tables::{Tables, assignment};
use super::{Moment, Options, Test, expected, outcome, program};
use crate::rules::Rule;

/// Sections that give one value and may stand once.
const SINGLE: &[&str] = &[
    "title",
    "family",
    "source",
    "model only",
    "needs",
    "at",
    "observe",
    "fifo",
    "link",
    "save",
    "image",
    "host order",
    "release",
];
/// Sections that have a body and may stand once.
const BODIES: &[&str] = &["memory", "transactions", "allowed", "forbidden"];

/// Reads a litmus test.
///
/// # Errors
/// The first thing that is wrong with the text.
pub fn parse(file: &str) -> Result<Test, ParseError> {
    let sections = sections(file)?;
    check_heads(&sections, SINGLE, BODIES, |key| key.contains('@'))?;
    let mut tables = Tables::default();
    if let Some(memory) = find(&sections, "memory") {
        memory.body.iter().try_for_each(|line| tables.memory(*line))?;
    }
    if let Some(transactions) = find(&sections, "transactions") {
        transactions.body.iter().try_for_each(|line| tables.transaction(*line))?;
    }
    let programs: Vec<&Section> = sections.iter().filter(|s| s.key.contains('@')).collect();
    for section in programs.iter().filter(|s| !s.key.contains("@cpu")) {
        program::procedure(&mut tables, section)?;
    }
    for section in programs.iter().filter(|s| s.key.contains("@cpu")) {
        program::thread(&mut tables, section)?;
    }
    program::check(&tables, end(file))?;
    let (observables, observed) = outcome::observables(&tables, required(&sections, "observe", file)?.value)?;
    let mut test = Test {
        title: required(&sections, "title", file)?.value.text.to_string(),
        family: required(&sections, "family", file)?.value.text.to_string(),
        source: required(&sections, "source", file)?.value.text.to_string(),
        needs: needs(&sections)?,
        model_only: model_only(&sections)?,
        moment: moment(&sections)?,
        devices: tables.devices(),
        options: options(&tables, &sections)?,
        words: tables.words,
        lines: tables.lines,
        transactions: tables.transactions,
        entries: tables.entries,
        epochs: tables.epochs,
        procedures: tables.procedures,
        threads: tables.threads,
        marks: tables.marks,
        registers: tables.registers,
        observables,
        observed,
        allowed: Vec::new(),
        forbidden: Vec::new(),
    };
    for line in &required(&sections, "allowed", file)?.body {
        test.allowed.push(expected::allowed(&test.observed, *line)?);
    }
    for line in find(&sections, "forbidden").map(|s| s.body.as_slice()).unwrap_or_default() {
        test.forbidden.push(expected::forbidden(&test.observed, *line)?);
    }
    expected::check(&test.allowed, &test.forbidden, end(file))?;
    Ok(test)
}

fn needs(sections: &[Section]) -> Result<Vec<Rule>, ParseError> {
    let Some(section) = find(sections, "needs") else { return Ok(Vec::new()) };
    let rule =
        |name: &str| Rule::from_name(name).ok_or_else(|| section.value.error(format!("no rule is called `{name}`")));
    section.value.words().into_iter().map(rule).collect()
}

fn model_only(sections: &[Section]) -> Result<Option<String>, ParseError> {
    match find(sections, "model only").map(|s| s.value) {
        None => Ok(None),
        Some(value) if value.text.is_empty() => Err(value.error("`model only` says why no card runs the test")),
        Some(value) => Ok(Some(value.text.to_string())),
    }
}

fn moment(sections: &[Section]) -> Result<Moment, ParseError> {
    match find(sections, "at").map(|s| s.value) {
        None => Ok(Moment::Recovery),
        Some(Text { text: "failure", .. }) => Ok(Moment::Failure),
        Some(Text { text: "replay", .. }) => Ok(Moment::Replay),
        Some(Text { text: "recovery", .. }) => Ok(Moment::Recovery),
        Some(other) => Err(other.error(format!("`{}` is no moment: failure, replay or recovery", other.text))),
    }
}

fn options(tables: &Tables, sections: &[Section]) -> Result<Options, ParseError> {
    let number = |key| {
        let value = find(sections, key).map(|s| s.value);
        let parse = |v: Text| {
            v.text.parse().ok().filter(|n| *n > 0).ok_or_else(|| v.error(format!("`{key}` is a number from 1")))
        };
        value.map(parse).transpose()
    };
    let flag = |key, word: &str| match find(sections, key).map(|s| s.value) {
        None => Ok(false),
        Some(value) if value.text == word => Ok(true),
        Some(value) => Err(value.error(format!("`{key}` is `{word}` or absent"))),
    };
    let mut old_image = Vec::new();
    if let Some(section) = find(sections, "image") {
        for pair in section.value.words() {
            let (name, value) = assignment(section.value, pair)?;
            old_image.push((tables.word(section.value, name)?, value));
        }
    }
    Ok(Options {
        fifo: number("fifo")?,
        link: number("link")?,
        save_may_tear: flag("save", "may tear")?,
        old_image,
        host_unordered: flag("host order", "no")?,
        early_release: flag("release", "after reading")?,
    })
}
