//! From the text of a file to a test.

use nearpm_ppo::litmus::lines::{Section, Text, check_heads, end, find, required, sections};
use nearpm_ppo::litmus::{Named, ParseError, expected};

use super::tables::Tables;
use super::{Observable, Test, program};
use crate::Model;
use crate::rules::Rule;

/// Sections that give one value and may stand once.
const SINGLE: &[&str] = &["title", "family", "source", "needs", "observe"];

/// Reads a litmus test.
///
/// # Errors
/// The first thing that is wrong with the text.
pub fn parse(file: &str) -> Result<Test, ParseError> {
    let sections = sections(file)?;
    let bodies = ["memory", "allowed", "forbidden"];
    let other = |key: &str| key.contains('@') || allowed_model(key).is_some();
    check_heads(&sections, SINGLE, &bodies, other)?;
    let mut tables = Tables::default();
    required(&sections, "memory", file)?.body.iter().try_for_each(|line| tables.memory(*line))?;
    for section in sections.iter().filter(|section| section.key.contains('@')) {
        program::thread(&mut tables, section)?;
        tables.check_size(section)?;
    }
    if tables.threads.is_empty() {
        return Err(ParseError { line: end(file), message: "a test has a thread".into() });
    }
    program::check(&tables)?;
    let (observables, observed) = observables(&tables, required(&sections, "observe", file)?.value)?;
    let mut forbidden = Vec::new();
    for line in find(&sections, "forbidden").map(|s| s.body.as_slice()).unwrap_or_default() {
        forbidden.push(expected::forbidden(&observed, *line)?);
    }
    let allowed = allowed(&sections, &observed, &forbidden)?;
    let text = |key| Ok::<_, ParseError>(required(&sections, key, file)?.value.text.to_string());
    Ok(Test {
        title: text("title")?,
        family: text("family")?,
        source: text("source")?,
        needs: needs(&sections)?,
        words: tables.words,
        threads: tables.threads,
        registers: tables.registers,
        marks: tables.marks,
        observables,
        observed,
        allowed,
        forbidden,
    })
}

/// `allowed` is what SBRP allows, `allowed epoch` what that model does.
fn allowed_model(key: &str) -> Option<Model> {
    match key.strip_prefix("allowed")? {
        "" => Some(Model::Sbrp),
        name => Model::from_name(name.trim()),
    }
}

fn allowed(
    sections: &[Section],
    observed: &[String],
    forbidden: &[Named],
) -> Result<Vec<(Model, Vec<Named>)>, ParseError> {
    let mut found = Vec::new();
    for section in sections {
        let Some(model) = allowed_model(section.key) else { continue };
        let states =
            section.body.iter().map(|line| expected::allowed(observed, *line)).collect::<Result<Vec<_>, _>>()?;
        let last = section.body.last().map_or(section.value.number, |line| line.number);
        let forbidden = if model == Model::Sbrp { forbidden } else { &[] };
        expected::check(&states, forbidden, last)?;
        found.push((model, states));
    }
    Ok(found)
}

fn needs(sections: &[Section]) -> Result<Vec<Rule>, ParseError> {
    let Some(section) = find(sections, "needs") else { return Ok(Vec::new()) };
    let rule =
        |name: &str| Rule::from_name(name).ok_or_else(|| section.value.error(format!("no rule is called `{name}`")));
    section.value.words().into_iter().map(rule).collect()
}

fn observables(tables: &Tables, line: Text) -> Result<(Vec<Observable>, Vec<String>), ParseError> {
    let observable = |name: &str| {
        if name == "end" {
            return Ok(Observable::End);
        }
        if let Some(word) = tables.words.iter().position(|word| word.name == name) {
            return match tables.words[word].persistent {
                true => Ok(Observable::Word(word)),
                false => Err(line.error(format!("`{name}` is volatile: nobody sees it when the power has failed"))),
            };
        }
        let register = tables.registers.iter().position(|register| register == name).map(Observable::Register);
        let mark = tables.marks.iter().position(|mark| mark == name).map(Observable::Mark);
        register.or(mark).ok_or_else(|| line.error(format!("`{name}` cannot be observed: it is unknown")))
    };
    let names = line.words();
    if names.is_empty() {
        return Err(line.error("nothing is observed"));
    }
    let found = names.iter().map(|name| observable(name)).collect::<Result<_, _>>()?;
    Ok((found, names.into_iter().map(str::to_string).collect()))
}
