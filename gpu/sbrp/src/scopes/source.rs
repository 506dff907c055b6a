//! Lines of the CUDA source, from the `.loc` directives of PTX (NVRTC: `--generate-line-info`).

use std::collections::BTreeMap;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// Which line of the source each line of a PTX text is of.
#[derive(Clone, Debug, Default)]
pub struct Source {
    files: BTreeMap<u32, String>,
    /// Of each line of the text: file and line.
    lines: Vec<Option<(u32, u32)>>,
}

impl Source {
    /// Reads the directives of a PTX text. What is inlined counts as of the line that it is inlined
    /// at.
    pub fn of(ptx: &str) -> Source {
        let mut source = Source::default();
        let mut now = None;
        for line in ptx.lines() {
            let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
            match words.as_slice() {
                [".file", number, name, ..] => {
                    if let Ok(number) = number.parse() {
                        source.files.insert(number, name.trim_matches('"').to_string());
                    }
                }
                [".loc", rest @ ..] => {
                    let at = rest.iter().rposition(|word| *word == "inlined_at").map_or(0, |place| place + 1);
                    let number = |place: usize| rest.get(place).and_then(|word| word.parse().ok());
                    // Line 0 is the compiler's own.
                    now = number(at).zip(number(at + 1)).filter(|(_, line)| *line != 0).or(now);
                }
                [] => {}
                _ if line.trim_start().starts_with(".visible") => now = None,
                _ => {}
            }
            source.lines.push(now);
        }
        source
    }

    /// The place in the source of a line of the text, from 1; none without line information.
    pub fn place(&self, line: u32) -> Option<SourceLine> {
        let (file, line) = self.lines.get((line as usize).checked_sub(1)?).copied()??;
        Some(SourceLine { file: self.files.get(&file)?.clone(), line })
    }

    /// The place in words: of the source where it is known, else of the PTX text.
    pub fn in_words(&self, line: u32) -> String {
        match self.place(line) {
            Some(place) => format!("{} line {}", place.file, place.line),
            None => format!("PTX line {line}"),
        }
    }
}
