//! The programs of threads.

use nearpm_ppo::litmus::ParseError;
use nearpm_ppo::litmus::lines::{Section, Text, value};

use super::tables::Tables;
use super::{Action, Instruction, Thread, Wanted};
use crate::Scope;

/// Words with which a loop would begin.
const LOOPS: &[&str] = &["loop", "while", "for", "repeat", "goto", "do"];

/// `T0@block0` or `T0@block0 launch 1`.
pub fn thread(tables: &mut Tables, section: &Section) -> Result<(), ParseError> {
    let head = section.head();
    let words = head.words();
    let (place, launch) = match words.as_slice() {
        [place] => (place, 0),
        [place, "launch", number] => {
            let number = number.parse().ok().filter(|n| *n < 4);
            (place, number.ok_or_else(|| head.error("a launch is a number from 0 to 3"))?)
        }
        _ => return Err(head.error("a thread is `NAME@blockN`, and `launch N` for a later kernel")),
    };
    let (name, block) = place.split_once('@').ok_or_else(|| head.error("a thread is `NAME@blockN`"))?;
    let block = block.strip_prefix("block").and_then(|n| n.parse().ok()).filter(|n| *n < 8);
    let block = block.ok_or_else(|| head.error("a block is block0 to block7"))?;
    tables.check_new(head, name)?;
    tables.first_register = tables.registers.len();
    let program = section.instructions().into_iter().map(|line| instruction(tables, line)).collect::<Result<_, _>>()?;
    tables.threads.push(Thread { name: name.to_string(), block, launch, program });
    Ok(())
}

/// `store x 1` or `if r=1: store x 1`.
fn instruction(tables: &mut Tables, line: Text) -> Result<Instruction, ParseError> {
    let Some(rest) = line.text.strip_prefix("if ") else {
        return Ok(Instruction { guard: None, action: action(tables, line)?, line: line.number });
    };
    let wrong = || line.error("a condition is `if r=1: store x 1`");
    let (condition, body) = rest.split_once(':').ok_or_else(wrong)?;
    let (register, wanted) = condition.trim().split_once('=').ok_or_else(wrong)?;
    let own = tables.first_register;
    let register = tables.registers.iter().skip(own).position(|r| r == register).map(|index| index + own);
    let register =
        register.ok_or_else(|| line.error("the condition names no register that this thread has loaded before"))?;
    let guard = Some((register, value(line, wanted)?));
    let body = Text { number: line.number, text: body.trim() };
    Ok(Instruction { guard, action: action(tables, body)?, line: line.number })
}

fn action(tables: &mut Tables, line: Text) -> Result<Action, ParseError> {
    let words = line.words();
    Ok(match words.as_slice() {
        ["store", word, number] => store(tables, line, word, number, None)?,
        ["pRel_block", word, number] => store(tables, line, word, number, Some(Scope::Block))?,
        ["pRel_dev", word, number] => store(tables, line, word, number, Some(Scope::Device))?,
        ["load", word, register] => load(tables, line, word, register, None)?,
        ["await", word, number] => {
            Action::Load { word: tables.word(line, word)?, wanted: Wanted::Until(value(line, number)?), acquire: None }
        }
        ["pAcq_block", word, register] => load(tables, line, word, register, Some(Scope::Block))?,
        ["pAcq_dev", word, register] => load(tables, line, word, register, Some(Scope::Device))?,
        ["oFence"] => Action::OFence,
        ["dFence"] => Action::DFence,
        ["fence.block"] => Action::Fence(Scope::Block),
        ["fence.dev"] => Action::Fence(Scope::Device),
        ["fence.sys"] => Action::Fence(Scope::System),
        ["bar"] => Action::Barrier,
        ["mark", name] => Action::Mark(tables.mark(line, name)?),
        [first, ..] if LOOPS.contains(first) => {
            return Err(line.error(
                "a loop has no bound, and a litmus test is finite: write `await x 1` or `pAcq_block x =1` for a loop that \
                 waits, and the turns of another one by one",
            ));
        }
        _ => return Err(line.error(format!("`{}` is no instruction", line.text))),
    })
}

fn store(
    tables: &mut Tables,
    line: Text,
    word: &str,
    number: &str,
    release: Option<Scope>,
) -> Result<Action, ParseError> {
    let (word, value) = (tables.word(line, word)?, value(line, number)?);
    tables.stores += 1;
    Ok(Action::Store { id: tables.stores - 1, word, value, release })
}

/// `x r` or `x =1`.
fn load(tables: &mut Tables, line: Text, word: &str, to: &str, acquire: Option<Scope>) -> Result<Action, ParseError> {
    let word = tables.word(line, word)?;
    let wanted = match to.strip_prefix('=') {
        Some(number) => Wanted::Until(value(line, number)?),
        None => Wanted::Register(tables.register(line, to)?),
    };
    Ok(Action::Load { word, wanted, acquire })
}

/// What only all threads together show.
pub fn check(tables: &Tables) -> Result<(), ParseError> {
    let error = |line: usize, message: String| Err(ParseError { line, message });
    let all = || tables.threads.iter().flat_map(|thread| &thread.program);
    for instruction in all() {
        match instruction.action {
            Action::Load { word, wanted: Wanted::Until(wanted), .. } => {
                let stored = |i: &Instruction| matches!(i.action, Action::Store { word: w, value, .. } if (w, value) == (word, wanted));
                if tables.words[word].initial != wanted && !all().any(stored) {
                    let message =
                        format!("nobody stores {wanted} to `{}`: this waits for ever", tables.words[word].name);
                    return error(instruction.line, message);
                }
            }
            Action::Barrier if instruction.guard.is_some() => {
                return error(
                    instruction.line,
                    "all threads of a block come to its barrier: `bar` has no condition".into(),
                );
            }
            _ => {}
        }
    }
    let barriers = |thread: &Thread| thread.program.iter().filter(|i| i.action == Action::Barrier).count();
    for thread in &tables.threads {
        let of_block = |other: &&Thread| (other.block, other.launch) == (thread.block, thread.launch);
        let uneven = tables.threads.iter().filter(of_block).find(|other| barriers(other) < barriers(thread));
        if let Some(other) = uneven {
            let last = thread.program.iter().rfind(|i| i.action == Action::Barrier).map_or(0, |i| i.line);
            return error(last, format!("`{}` does not come to this barrier of its block", other.name));
        }
    }
    Ok(())
}
