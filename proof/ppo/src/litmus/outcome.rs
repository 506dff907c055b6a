//! What is observed.

use super::Observable;
use super::error::ParseError;
use super::lines::Text;
use super::tables::{Tables, device};

/// The observables of an `observe` line, with their names.
pub fn observables(tables: &Tables, line: Text) -> Result<(Vec<Observable>, Vec<String>), ParseError> {
    let names = line.words();
    if names.is_empty() {
        return Err(line.error("nothing is observed"));
    }
    let found = names.iter().map(|name| observable(tables, line, name)).collect::<Result<_, _>>()?;
    Ok((found, names.into_iter().map(str::to_string).collect()))
}

fn observable(tables: &Tables, line: Text, name: &str) -> Result<Observable, ParseError> {
    if name == "loss" {
        return Ok(Observable::Loss);
    }
    if let Some((transaction, card)) = name.split_once('@') {
        let (transaction, card) = (tables.find_transaction(line, transaction)?, device(line, card)?);
        if !tables.transactions[transaction].devices.contains(&card) {
            return Err(line.error(format!("`{name}`: the transaction does not take place there")));
        }
        return Ok(Observable::Epoch(transaction, card));
    }
    if let Some(entry) = tables.entries.iter().position(|e| e.name == name) {
        return Ok(Observable::Entry(entry));
    }
    if let Some(mark) = tables.marks.iter().position(|m| m == name) {
        return Ok(Observable::Mark(mark));
    }
    if let Some(register) = tables.registers.iter().position(|r| r == name) {
        return Ok(Observable::Register(register));
    }
    tables
        .word(line, name)
        .map(Observable::Word)
        .map_err(|_| line.error(format!("`{name}` cannot be observed: it is unknown")))
}
