//! Results for people and for programs.

use serde_json::{Value, json};

use crate::property::{Property, Tier};
use crate::run::{Outcome, Verdict};

/// A verdict in a few words.
fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Proved => "proved".into(),
        Verdict::Refuted(by) => format!("REFUTED by {by}"),
        Verdict::NotInductive(by) => format!("NOT INDUCTIVE: {by}"),
        Verdict::NotCovered(by) => format!("NOT COVERED: {by}"),
        Verdict::Undecided(question) => format!("UNDECIDED ({question:?}, out of time)"),
    }
}

/// A tier as a property's head says it.
fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Fast => "fast",
        Tier::Thorough => "thorough",
        Tier::Open => "open",
    }
}

/// Mutants that were refuted, of those that were tried.
fn mutants(outcome: &Outcome) -> String {
    let lives: Vec<&str> = outcome.mutants.iter().filter(|m| m.by.is_none()).map(|m| m.what.as_str()).collect();
    match (outcome.mutants.len(), lives.is_empty()) {
        (0, _) => "not tried".into(),
        (n, true) => format!("{n} of {n}"),
        (n, false) => format!("{} of {n}; LIVES: {}", n - lives.len(), lives.join("; ")),
    }
}

/// A table in Markdown.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| property | unit | assertions | covers | depth | verdict | mutants refuted | time |\n|---|---|---:|---:|---:|---|---|---:|\n",
    );
    for outcome in outcomes {
        let property = &outcome.property;
        text += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {:.0} s |\n",
            property.name,
            property.unit.name(),
            outcome.asserts,
            outcome.covers,
            property.depth,
            verdict(&outcome.verdict),
            mutants(outcome),
            outcome.time.as_secs_f64(),
        );
    }
    text
}

/// What the properties say, as a table in Markdown; `docs/proofs.md` holds it.
pub fn claims(properties: &[Property]) -> String {
    let mut text = String::from(
        "| property | unit | tier | claim | source | assumes | mutants |\n|---|---|---|---|---|---|---|\n",
    );
    for property in properties {
        let mutants: Vec<&str> = property.mutants.iter().map(|m| m.what.as_str()).collect();
        text += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} |\n",
            property.name,
            property.unit.name(),
            tier(property.tier),
            property.claim,
            property.source,
            property.assumes,
            mutants.join("; "),
        );
    }
    text
}

/// Totals, in one line for programs.
pub fn counts(outcomes: &[Outcome]) -> Value {
    let mutants = || outcomes.iter().flat_map(|outcome| &outcome.mutants);
    json!({ "counts": {
        "properties": outcomes.len(),
        "proved": outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Proved).count(),
        "assertions": outcomes.iter().map(|outcome| outcome.asserts).sum::<usize>(),
        "mutants": mutants().count(),
        "mutants refuted": mutants().filter(|mutant| mutant.by.is_some()).count(),
        "violations": outcomes.iter().filter(|outcome| !outcome.holds()).count(),
    } })
}

/// The same for programs.
pub fn json(outcomes: &[Outcome]) -> Value {
    let rows = outcomes.iter().map(|outcome| {
        let property = &outcome.property;
        let mutants: Vec<Value> =
            outcome.mutants.iter().map(|m| json!({ "what": m.what, "refuted_by": m.by })).collect();
        json!({
            "property": property.name,
            "unit": property.unit.name(),
            "claim": property.claim,
            "source": property.source,
            "assumes": property.assumes,
            "tier": tier(property.tier),
            "assertions": outcome.asserts,
            "covers": outcome.covers,
            "depth": property.depth,
            "verdict": verdict(&outcome.verdict),
            "proved": outcome.verdict == Verdict::Proved,
            "mutants": mutants,
            "seconds": outcome.time.as_secs_f64(),
        })
    });
    Value::Array(rows.collect())
}
