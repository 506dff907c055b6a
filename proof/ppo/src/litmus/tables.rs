//! What a file declares, with the names by which it is found.

use super::error::ParseError;
use super::lines::{Text, check_name, value};
use super::{EMPTY, Entry, Line, Procedure, Thread, Transaction, Value, Word};

/// Declarations in the order of the file.
#[derive(Debug, Default)]
pub struct Tables {
    pub words: Vec<Word>,
    pub lines: Vec<Line>,
    pub transactions: Vec<Transaction>,
    pub entries: Vec<Entry>,
    pub epochs: Vec<(usize, usize, usize)>,
    pub procedures: Vec<Procedure>,
    pub threads: Vec<Thread>,
    pub marks: Vec<String>,
    pub registers: Vec<String>,
}

impl Tables {
    /// `ndp0 [managed|refused] x=1 y=1 | z=0`: lines of a card, separated by bars.
    pub fn memory(&mut self, line: Text) -> Result<(), ParseError> {
        let mut words = line.words();
        let device = device(line, words.remove(0))?;
        let kind = words.first().copied().filter(|word| ["managed", "refused"].contains(word));
        if kind.is_some() {
            words.remove(0);
        }
        for group in words.split(|word| *word == "|") {
            if group.is_empty() {
                return Err(line.error("a line of memory has words"));
            }
            let index = self.add_line(device, kind == Some("managed"));
            self.lines[index].refused = kind == Some("refused");
            for pair in group {
                let (name, value) = assignment(line, pair)?;
                self.check_new(line, name)?;
                self.add_word(index, name, value);
            }
            if self.lines[index].words.len() > 8 {
                return Err(line.error("a line of memory has at most eight words"));
            }
        }
        Ok(())
    }

    /// `T1 thread 0 on ndp0 ndp1`.
    pub fn transaction(&mut self, line: Text) -> Result<(), ParseError> {
        let words = line.words();
        let [name, "thread", thread, "on", devices @ ..] = words.as_slice() else {
            return Err(line.error("a transaction is `NAME thread NUMBER on ndp0 ...`"));
        };
        self.check_new(line, name)?;
        let thread: usize = thread.parse().map_err(|_| line.error(format!("`{thread}` is no number of a thread")))?;
        let devices = devices.iter().map(|d| device(line, d)).collect::<Result<Vec<_>, _>>()?;
        if devices.is_empty() {
            return Err(line.error("a transaction takes place on at least one card"));
        }
        let number = 1 + self.transactions.iter().filter(|t| t.thread == thread).count() as u8;
        for device in &devices {
            if !self.epochs.iter().any(|(t, d, _)| (t, d) == (&thread, device)) {
                let index = self.add_line(*device, true);
                let word = self.add_word(index, "", 0);
                self.epochs.push((thread, *device, word));
            }
        }
        self.transactions.push(Transaction { name: name.to_string(), thread, number, devices });
        Ok(())
    }

    /// A log slot for some words, with room for all words of their lines.
    pub fn add_entry(&mut self, name: &str, transaction: usize, device: usize, exact: Vec<usize>) -> usize {
        let mut covered: Vec<usize> = exact.iter().map(|w| self.words[*w].line).collect();
        covered.dedup();
        let index = self.add_line(device, true);
        let head = self.add_word(index, "", EMPTY);
        let all: Vec<usize> = covered.iter().flat_map(|line| self.lines[*line].words.clone()).collect();
        let data = all.into_iter().map(|word| (word, self.add_word(index, "", EMPTY))).collect();
        self.entries.push(Entry { name: name.to_string(), transaction, device, exact, data, head });
        self.entries.len() - 1
    }

    fn add_line(&mut self, device: usize, managed: bool) -> usize {
        self.lines.push(Line { device, managed, refused: false, words: Vec::new(), written_by_card: false });
        self.lines.len() - 1
    }

    fn add_word(&mut self, line: usize, name: &str, initial: u8) -> usize {
        self.words.push(Word { name: name.to_string(), line, initial });
        let word = self.words.len() - 1;
        self.lines[line].words.push(word);
        word
    }

    /// Number of cards.
    pub fn devices(&self) -> usize {
        let lines = self.lines.iter().map(|l| l.device + 1);
        lines.chain(self.procedures.iter().map(|p| p.device + 1)).max().unwrap_or(1)
    }

    /// Refuses a name that is taken or could be read as something else.
    pub fn check_new(&self, line: Text, name: &str) -> Result<(), ParseError> {
        check_name(line, name, "loss")?;
        let taken = self.words.iter().any(|w| w.name == name)
            || self.transactions.iter().any(|t| t.name == name)
            || self.entries.iter().any(|e| e.name == name)
            || self.procedures.iter().any(|p| p.name == name)
            || self.threads.iter().any(|t| t.name == name);
        if taken { Err(line.error(format!("`{name}` is declared twice"))) } else { Ok(()) }
    }

    pub fn word(&self, line: Text, name: &str) -> Result<usize, ParseError> {
        let found = self.words.iter().position(|w| !w.name.is_empty() && w.name == name);
        found.ok_or_else(|| line.error(format!("no word is called `{name}`")))
    }

    /// A word that the processor may touch.
    pub fn shared_word(&self, line: Text, name: &str) -> Result<usize, ParseError> {
        let word = self.word(line, name)?;
        match self.lines[self.words[word].line].managed {
            true => Err(line.error(format!("`{name}` is managed by the card, the processor may not touch it"))),
            false => Ok(word),
        }
    }

    pub fn find_transaction(&self, line: Text, name: &str) -> Result<usize, ParseError> {
        let found = self.transactions.iter().position(|t| t.name == name);
        found.ok_or_else(|| line.error(format!("no transaction is called `{name}`")))
    }

    pub fn procedure(&self, line: Text, name: &str) -> Result<usize, ParseError> {
        let found = self.procedures.iter().position(|p| p.name == name);
        found.ok_or_else(|| line.error(format!("no procedure is called `{name}`")))
    }
}

/// Number of a name, which is added if it is new.
pub fn intern(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|n| n == name).unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    })
}

/// `ndp0`, `ndp1`, ...
pub fn device(line: Text, name: &str) -> Result<usize, ParseError> {
    let number = name.strip_prefix("ndp").and_then(|n| n.parse().ok()).filter(|n| *n < 4);
    number.ok_or_else(|| line.error(format!("`{name}` is no card: ndp0 to ndp3")))
}

/// `name=value`.
pub fn assignment<'a>(line: Text, pair: &'a str) -> Result<(&'a str, Value), ParseError> {
    let (name, text) =
        pair.split_once('=').ok_or_else(|| line.error(format!("`{pair}` is no assignment `name=value`")))?;
    Ok((name, value(line, text)?))
}
