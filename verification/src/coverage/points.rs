//! Points of coverage, as Verilator writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// What a point counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Executions of a block of lines or of a branch.
    Line,
    /// Changes of a bit in one direction.
    Toggle,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Line, Kind::Toggle];

    /// Name in the file of waivers and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Line => "line",
            Kind::Toggle => "toggle",
        }
    }
}

/// A point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Module of the Verilog.
    pub module: String,
    /// What it counts.
    pub kind: Kind,
    /// A bit and its direction (`state[1]:0->1`), or a line of the module's text with the kind of block (`12 if`).
    pub name: String,
}

/// Points with how often each was hit.
pub type Counts = BTreeMap<Point, u64>;

/// Reads a line `C 'KEY' COUNT` of a file. Its key holds fields, each `\x01NAME\x02VALUE`.
fn parse(line: &str) -> Option<(Point, u64)> {
    let (key, count) = line.strip_prefix("C '")?.rsplit_once("' ")?;
    let field = |name: &str| key.split('\x01').find_map(|f| f.strip_prefix(name)?.strip_prefix('\x02'));
    let (page, comment, line) = (field("page")?, field("o")?, field("l")?);
    let (page, module) = page.split_once('/')?;
    let (kind, name) = match page {
        "v_toggle" => (Kind::Toggle, comment.to_owned()),
        "v_line" | "v_branch" => (Kind::Line, format!("{line} {comment}")),
        _ => return None,
    };
    Some((Point { module: module.to_owned(), kind, name }, count.parse().ok()?))
}

/// Adds the points of a text.
///
/// # Errors
/// A line that is none.
pub fn add(counts: &mut Counts, text: &str) -> Result<()> {
    for line in text.lines().filter(|line| line.starts_with("C ")) {
        let Some((point, count)) = parse(line) else { bail!("no point of coverage: {line:?}") };
        *counts.entry(point).or_default() += count;
    }
    Ok(())
}

/// Merges the files of one design in a folder: those whose names begin with `TOP-` and the key that most of them have.
///
/// # Errors
/// Where there is none.
pub fn merge(folder: &Path, top: &str) -> Result<Counts> {
    let mut designs: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((key, _)) = name.strip_prefix(&format!("{top}-")).and_then(|rest| rest.split_once('-')) {
            designs.entry(key.to_owned()).or_default().push(path);
        }
    }
    let files = designs.into_values().max_by_key(Vec::len).unwrap_or_default();
    ensure!(!files.is_empty(), "no coverage of {top} in {}", folder.display());
    let mut counts = Counts::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        add(&mut counts, &text).with_context(|| file.display().to_string())?;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# SystemC::Coverage-3\n\
        C '\x01f\x02top.v\x01l\x027\x01n\x025\x01t\x02toggle\x01page\x02v_toggle/unit$a\x01o\x02count[1]:0->1\x01h\x02top.unit' 3\n\
        C '\x01f\x02top.v\x01l\x029\x01n\x022\x01t\x02branch\x01page\x02v_branch/unit$a\x01o\x02if\x01S\x029-10\x01h\x02top.unit' 0\n";

    #[test]
    fn files_of_verilator_are_read_and_add_up() {
        let mut counts = Counts::new();
        add(&mut counts, TEXT).unwrap();
        add(&mut counts, TEXT).unwrap();
        let found: Vec<_> = counts.iter().map(|(p, n)| (p.module.as_str(), p.kind, p.name.as_str(), *n)).collect();
        assert_eq!(found, [("unit$a", Kind::Line, "9 if", 0), ("unit$a", Kind::Toggle, "count[1]:0->1", 6)]);
        assert!(add(&mut counts, "C 'nothing' 1\n").is_err());
    }
}
