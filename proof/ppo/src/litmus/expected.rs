//! What is expected of the observables: exact sets of allowed states, and patterns that are
//! forbidden for a reason.

use std::collections::BTreeSet;

use super::error::ParseError;
use super::lines::Text;

/// A line of `allowed` or `forbidden`.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The states: values in the order of the observables; `None` where a pattern leaves one open.
    pub states: Vec<Vec<Option<String>>>,
    /// Why, for what is forbidden.
    pub reason: String,
}

/// `name: x=1 L=1,2|-`: every observable has its values.
///
/// # Errors
/// It has not that form.
pub fn allowed(observed: &[String], line: Text) -> Result<Named, ParseError> {
    let named = named(observed, line, line.text)?;
    for state in &named.states {
        if let Some(open) = state.iter().position(Option::is_none) {
            return Err(line.error(format!("`{}` has no value here, and an allowed state is complete", observed[open])));
        }
    }
    Ok(named)
}

/// `name: x=1 -- reason`: what is not named may have any value.
///
/// # Errors
/// It has not that form.
pub fn forbidden(observed: &[String], line: Text) -> Result<Named, ParseError> {
    let Some((pattern, reason)) = line.text.split_once(" -- ") else {
        return Err(line.error("what is forbidden has a reason: `name: x=1 -- why`"));
    };
    let named = named(observed, line, pattern)?;
    Ok(Named { reason: reason.trim().to_string(), ..named })
}

fn named(observed: &[String], line: Text, text: &str) -> Result<Named, ParseError> {
    let (name, pattern) = text.split_once(':').ok_or_else(|| line.error("a state has a name: `name: x=1`"))?;
    let mut states = vec![vec![None; observed.len()]];
    let pairs: Vec<&str> = pattern.split_whitespace().collect();
    if pairs.is_empty() {
        return Err(line.error("a state says what is observed"));
    }
    for pair in pairs {
        let (variable, values) =
            pair.split_once('=').ok_or_else(|| line.error(format!("`{pair}` is no `name=value`")))?;
        let place = observed.iter().position(|o| o == variable);
        let place = place.ok_or_else(|| line.error(format!("`{variable}` is not observed")))?;
        if states[0][place].is_some() {
            return Err(line.error(format!("`{variable}` has two values; write `{variable}=1|2`")));
        }
        let each = |state: &Vec<Option<String>>| {
            let fill = |value: &str| {
                let mut filled = state.clone();
                filled[place] = Some(value.to_string());
                filled
            };
            values.split('|').map(fill).collect::<Vec<_>>()
        };
        states = states.iter().flat_map(each).collect();
    }
    Ok(Named { name: name.trim().to_string(), states, reason: String::new() })
}

/// Whether a state fits a pattern.
pub fn fits(pattern: &[Option<String>], state: &[Option<String>]) -> bool {
    pattern.iter().zip(state).all(|(want, have)| want.is_none() || want == have)
}

/// The expectations must not contradict themselves.
///
/// # Errors
/// A state is allowed twice, allowed and forbidden, or none is allowed; at the file's line `end`.
pub fn check(allowed: &[Named], forbidden: &[Named], end: usize) -> Result<(), ParseError> {
    let error = |message: String| Err(ParseError { line: end, message });
    let mut seen = BTreeSet::new();
    for named in allowed {
        for state in &named.states {
            if !seen.insert(state) {
                return error(format!("`{}` allows a state a second time", named.name));
            }
            let denied = forbidden.iter().find(|f| f.states.iter().any(|pattern| fits(pattern, state)));
            if let Some(denied) = denied {
                return error(format!("`{}` allows what `{}` forbids", named.name, denied.name));
            }
        }
    }
    if seen.is_empty() { error("no state is allowed".into()) } else { Ok(()) }
}
