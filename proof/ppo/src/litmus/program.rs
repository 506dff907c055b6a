//! Programs: of the processor's threads and of the cards' procedures.

use std::collections::BTreeSet;

use super::error::ParseError;
use super::lines::{Section, Text, value};
use super::tables::{Tables, device, intern};
use super::{Instruction, Posting, Procedure, Step, Thread};

/// `P1@ndp0 T1` or `P1@ndp0 T1 fails`.
pub fn procedure(tables: &mut Tables, section: &Section) -> Result<(), ParseError> {
    let head = section.head();
    let words = head.words();
    let (place, transaction, fails) = match words.as_slice() {
        [place, transaction] => (place, transaction, false),
        [place, transaction, "fails"] => (place, transaction, true),
        _ => return Err(head.error("a procedure is `NAME@ndpN TRANSACTION`, and `fails` where its log fails")),
    };
    let (name, card) = place.split_once('@').ok_or_else(|| head.error("a procedure is `NAME@ndpN TRANSACTION`"))?;
    tables.check_new(head, name)?;
    let card = device(head, card)?;
    let transaction = tables.find_transaction(head, transaction)?;
    if !tables.transactions[transaction].devices.contains(&card) {
        return Err(head.error(format!("{} does not take place on ndp{card}", tables.transactions[transaction].name)));
    }
    let mut made = Procedure {
        name: name.to_string(),
        device: card,
        transaction,
        steps: Vec::new(),
        reads: BTreeSet::new(),
        writes: BTreeSet::new(),
        ordered: false,
        fails,
    };
    for line in section.instructions() {
        step(tables, &mut made, line)?;
    }
    check_procedure(&made, head)?;
    for line in &made.writes {
        tables.lines[*line].written_by_card = true;
    }
    tables.procedures.push(made);
    Ok(())
}

fn check_procedure(made: &Procedure, head: Text) -> Result<(), ParseError> {
    if made.steps.is_empty() {
        return Err(head.error("a procedure has steps"));
    }
    if made.steps.iter().skip(1).any(|s| *s == Step::Sync) {
        return Err(head.error("`sync` is the first step: the card parks the whole command"));
    }
    if made.synchronises() && made.steps.last() != Some(&Step::Commit) {
        return Err(head.error(
            "a procedure that waits for its peers ends with `commit`: by the epoch it reports after a failure",
        ));
    }
    if made.fails && !made.steps.iter().any(|s| matches!(s, Step::Log(_))) {
        return Err(head.error("only a log fails"));
    }
    Ok(())
}

fn step(tables: &mut Tables, made: &mut Procedure, line: Text) -> Result<(), ParseError> {
    let words = line.words();
    let step = match words.as_slice() {
        ["wait"] => Step::Wait,
        ["sync"] => Step::Sync,
        ["commit"] => Step::Commit,
        ["set", word, number] => Step::Set(tables.word(line, word)?, value(line, number)?),
        ["log", sources @ .., "->", name] if !sources.is_empty() => {
            let exact = sources.iter().map(|w| tables.word(line, w)).collect::<Result<Vec<_>, _>>()?;
            check_card(tables, made, line, &exact)?;
            tables.check_new(line, name)?;
            Step::Log(tables.add_entry(name, made.transaction, made.device, exact))
        }
        ["copy", rest @ ..] => Step::Copy(copies(tables, line, rest)?),
        _ => return Err(line.error(format!("`{}` is no step of a procedure", line.text))),
    };
    let line_of = |word: &usize| tables.words[*word].line;
    match &step {
        Step::Copy(pairs) => {
            let all: Vec<usize> = pairs.iter().flat_map(|(from, to)| [*from, *to]).collect();
            check_card(tables, made, line, &all)?;
            made.reads.extend(pairs.iter().map(|(from, _)| line_of(from)));
            made.writes.extend(pairs.iter().map(|(_, to)| line_of(to)));
        }
        Step::Log(entry) => {
            made.reads.extend(tables.entries[*entry].exact.iter().map(line_of));
            made.writes.insert(line_of(&tables.entries[*entry].head));
        }
        Step::Set(word, _) => {
            check_card(tables, made, line, &[*word])?;
            made.writes.insert(line_of(word));
            made.ordered = true;
        }
        Step::Commit => made.ordered = true,
        Step::Wait | Step::Sync => {}
    }
    if made.writes.iter().any(|line| tables.lines[*line].refused) {
        return Err(line.error("a command that writes where memory refuses it is not of this model"));
    }
    made.steps.push(step);
    Ok(())
}

/// `a b -> c d`.
fn copies(tables: &Tables, line: Text, words: &[&str]) -> Result<Vec<(usize, usize)>, ParseError> {
    let mut sides = words.split(|word| *word == "->");
    let (Some(from), Some(to), None) = (sides.next(), sides.next(), sides.next()) else {
        return Err(line.error("a copy is `copy a b -> c d`"));
    };
    if from.len() != to.len() || from.is_empty() {
        return Err(line.error("a copy has as many sources as destinations"));
    }
    from.iter().zip(to).map(|(from, to)| Ok((tables.word(line, from)?, tables.word(line, to)?))).collect()
}

fn check_card(tables: &Tables, made: &Procedure, line: Text, words: &[usize]) -> Result<(), ParseError> {
    let foreign = words.iter().find(|w| tables.lines[tables.words[**w].line].device != made.device);
    match foreign {
        Some(word) => Err(line.error(format!("`{}` does not lie on ndp{}", tables.words[*word].name, made.device))),
        None => Ok(()),
    }
}

/// `P0@cpu`.
pub fn thread(tables: &mut Tables, section: &Section) -> Result<(), ParseError> {
    let head = section.head();
    let Some(name) = section.key.strip_suffix("@cpu") else {
        return Err(head.error("a thread of the processor is `NAME@cpu`"));
    };
    tables.check_new(head, name)?;
    let program = section.instructions().into_iter().map(|line| instruction(tables, line)).collect::<Result<_, _>>()?;
    tables.threads.push(Thread { name: name.to_string(), program });
    Ok(())
}

fn instruction(tables: &mut Tables, line: Text) -> Result<Instruction, ParseError> {
    let words = line.words();
    Ok(match words.as_slice() {
        ["store", word, number] => Instruction::Store(tables.shared_word(line, word)?, value(line, number)?),
        ["nt", word, number] => Instruction::NonTemporal(tables.shared_word(line, word)?, value(line, number)?),
        ["load", word, register] => {
            tables.check_new(line, register)?;
            Instruction::Load(tables.shared_word(line, word)?, intern(&mut tables.registers, register))
        }
        ["clwb", word] => Instruction::WriteBack(tables.words[tables.shared_word(line, word)?].line),
        ["flush", word] => Instruction::Invalidate(tables.words[tables.shared_word(line, word)?].line),
        ["sfence"] => Instruction::Fence,
        ["post", name] => Instruction::Post(tables.procedure(line, name)?, Posting::Whole),
        ["post.wc", name] => Instruction::Post(tables.procedure(line, name)?, Posting::Combining),
        ["post.uc", name] => Instruction::Post(tables.procedure(line, name)?, Posting::Uncached),
        ["finish", name] => Instruction::Finish(tables.procedure(line, name)?),
        ["readback", card] => Instruction::ReadBack(device(line, card)?),
        ["reset", card] => Instruction::Reset(device(line, card)?),
        ["mark", name] => {
            tables.check_new(line, name)?;
            Instruction::Mark(intern(&mut tables.marks, name))
        }
        ["await", name] => {
            tables.check_new(line, name)?;
            Instruction::Await(intern(&mut tables.marks, name))
        }
        _ => return Err(line.error(format!("`{}` is no instruction of the processor", line.text))),
    })
}

/// What only the whole file shows.
pub fn check(tables: &Tables, end: usize) -> Result<(), ParseError> {
    let error = |message: String| Err(ParseError { line: end, message });
    let all = || tables.threads.iter().flat_map(|t| &t.program);
    for (index, procedure) in tables.procedures.iter().enumerate() {
        let posts = all().filter(|i| matches!(i, Instruction::Post(p, _) if *p == index)).count();
        if posts != 1 {
            return error(format!("`{}` is posted {posts} times and not once", procedure.name));
        }
        let peers = tables.procedures.iter().filter(|p| p.synchronises() && p.transaction == procedure.transaction);
        if procedure.synchronises() && peers.filter(|p| p.device == procedure.device).count() > 1 {
            return error(format!("a second procedure beside `{}` waits for the same peers", procedure.name));
        }
    }
    for (index, name) in tables.marks.iter().enumerate() {
        let set = all().any(|i| *i == Instruction::Mark(index));
        if !set {
            return error(format!("nobody sets the mark `{name}`"));
        }
    }
    let cards = tables.devices();
    let named = all().filter_map(|i| match i {
        Instruction::ReadBack(card) | Instruction::Reset(card) => Some(*card),
        _ => None,
    });
    match named.max() {
        Some(card) if card >= cards => error(format!("nothing lies on ndp{card}")),
        _ if tables.threads.is_empty() => error("a test has a thread of the processor".into()),
        _ if tables.lines.len() > 32 || tables.procedures.len() > 16 || tables.marks.len() > 8 => {
            error("at most 32 lines, with those of logs and epochs, 16 procedures and 8 marks".into())
        }
        _ => Ok(()),
    }
}
