//! What a file has declared so far, and the names in it.

use nearpm_ppo::litmus::ParseError;
use nearpm_ppo::litmus::lines::{Section, Text, check_name, value};

use super::{MOST_INSTRUCTIONS, MOST_STORES, Thread, Word};

/// Declarations in the order of the file.
#[derive(Default)]
pub struct Tables {
    pub words: Vec<Word>,
    pub threads: Vec<Thread>,
    pub registers: Vec<String>,
    pub marks: Vec<String>,
    pub stores: usize,
    /// The first register of the thread that is read now.
    pub first_register: usize,
    lines: usize,
}

impl Tables {
    /// `pm x=0 y=0 | z=0` or `gpu f=0`: lines, separated by bars.
    pub fn memory(&mut self, line: Text) -> Result<(), ParseError> {
        let words = line.words();
        let persistent = match words.first() {
            Some(&"pm") => true,
            Some(&"gpu") => false,
            _ => return Err(line.error("memory is `pm` or `gpu`, with words `x=0`")),
        };
        for group in words[1..].split(|word| *word == "|") {
            if group.is_empty() {
                return Err(line.error("a line of memory has words"));
            }
            for pair in group {
                let (name, number) =
                    pair.split_once('=').ok_or_else(|| line.error(format!("`{pair}` is no word `name=value`")))?;
                self.check_new(line, name)?;
                let (name, initial) = (name.to_string(), value(line, number)?);
                self.words.push(Word { name, persistent, line: self.lines, initial });
            }
            self.lines += 1;
        }
        match self.words.len() {
            0..=16 => Ok(()),
            _ => Err(line.error("a test has at most 16 words")),
        }
    }

    /// Refuses a name that is taken or could be read as something else.
    pub fn check_new(&self, line: Text, name: &str) -> Result<(), ParseError> {
        check_name(line, name, "end")?;
        let taken = self.words.iter().any(|word| word.name == name)
            || self.threads.iter().any(|thread| thread.name == name)
            || self.registers.iter().any(|register| register == name)
            || self.marks.iter().any(|mark| mark == name);
        if taken { Err(line.error(format!("`{name}` is declared twice"))) } else { Ok(()) }
    }

    pub fn word(&self, line: Text, name: &str) -> Result<usize, ParseError> {
        let found = self.words.iter().position(|word| word.name == name);
        found.ok_or_else(|| line.error(format!("no word is called `{name}`")))
    }

    /// A register is loaded once.
    pub fn register(&mut self, line: Text, name: &str) -> Result<usize, ParseError> {
        self.check_new(line, name)?;
        self.registers.push(name.to_string());
        Ok(self.registers.len() - 1)
    }

    pub fn mark(&mut self, line: Text, name: &str) -> Result<usize, ParseError> {
        self.check_new(line, name)?;
        if self.marks.len() == 16 {
            return Err(line.error("a test has at most 16 marks"));
        }
        self.marks.push(name.to_string());
        Ok(self.marks.len() - 1)
    }

    /// Refuses a test that is too large to be explored.
    pub fn check_size(&self, section: &Section) -> Result<(), ParseError> {
        let instructions: usize = self.threads.iter().map(|thread| thread.program.len()).sum();
        let last = section.body.last().copied().unwrap_or(section.value);
        match (self.stores > MOST_STORES, instructions > MOST_INSTRUCTIONS, self.threads.len() > 8) {
            (false, false, false) => Ok(()),
            _ => Err(last.error(format!(
                "the test is too large here: at most {MOST_STORES} stores, {MOST_INSTRUCTIONS} instructions and 8 threads"
            ))),
        }
    }
}
