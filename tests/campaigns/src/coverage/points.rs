//! Points of coverage, as models that count them leave them (`nearpm_verilate::Library::build`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What a point counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverPoint {
    /// Executions of a block of lines or of a branch.
    Line,
    /// Changes of a bit in one direction.
    Toggle,
}

impl CoverPoint {
    /// All kinds.
    pub const ALL: [CoverPoint; 2] = [CoverPoint::Line, CoverPoint::Toggle];

    /// Name in the file of waivers and in the report.
    pub fn name(self) -> &'static str {
        match self {
            CoverPoint::Line => "line",
            CoverPoint::Toggle => "toggle",
        }
    }
}

/// A point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Module of the Verilog.
    pub module: String,
    /// What it counts.
    pub kind: CoverPoint,
    /// A bit and its direction (`state[1]:0->1`), or the number of a line with the kind of block
    /// and what stands there (`12 if: if (full) begin`).
    pub name: String,
}

/// A bit of a signal, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit<'a> {
    /// Signal.
    pub signal: &'a str,
    /// Number of the bit; 0 of a signal of one.
    pub bit: u32,
    /// Whether it rose.
    pub rises: bool,
}

impl Point {
    /// What a toggle is about.
    pub fn bit(&self) -> Option<Bit<'_>> {
        let (of, direction) = self.name.rsplit_once(':').filter(|_| self.kind == CoverPoint::Toggle)?;
        let indexed = of.strip_suffix(']').and_then(|of| of.rsplit_once('['));
        let (signal, bit) = indexed.map_or((of, Ok(0)), |(signal, bit)| (signal, bit.parse()));
        Some(Bit { signal, bit: bit.ok()?, rises: direction == "0->1" })
    }
}

/// Points with how often each was hit.
pub type Counts = BTreeMap<Point, u64>;

/// Reads a line of a file of points: number of the counter, line, page (`v_toggle/MODULE`) and
/// comment, apart by tabulators.
fn parse(line: &str, verilog: &[&str]) -> Option<(usize, Point)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [counter, line, page, comment] = fields[..] else { return None };
    let (page, module) = page.split_once('/')?;
    let (kind, name) = match page {
        // How Verilator writes the character of generated names.
        "v_toggle" => (CoverPoint::Toggle, comment.replace("__024", "$")),
        "v_line" | "v_branch" => {
            let text = verilog.get(line.parse::<usize>().ok()?.checked_sub(1)?)?.trim();
            (CoverPoint::Line, format!("{line} {comment}: {text}"))
        }
        _ => return None,
    };
    Some((counter.parse().ok()?, Point { module: module.to_owned(), kind, name }))
}

/// The points of a file with how often each of their counters was hit; `verilog` is the text that
/// they are about.
///
/// # Errors
/// A line that is no point, or a counter that is not there.
pub fn counted(points: &str, hits: &[u64], verilog: &str) -> Result<Counts> {
    let (mut counts, verilog) = (Counts::new(), verilog.lines().collect::<Vec<_>>());
    for line in points.lines() {
        let (counter, point) = parse(line, &verilog).with_context(|| format!("no point of coverage: {line:?}"))?;
        let hits = hits.get(counter).with_context(|| format!("no counter {counter}"))?;
        *counts.entry(point).or_default() += hits;
    }
    Ok(counts)
}

/// Adds the counters of a process, 32 bits each.
fn add(sum: &mut Vec<u64>, file: &Path) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("read {}", file.display()))?;
    let own: Vec<u64> = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]).into()).collect();
    sum.resize(own.len().max(sum.len()), 0);
    sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    Ok(())
}

/// A measurement: the points with their counts, and the Verilog that they are about.
pub struct Merged {
    /// The points.
    pub counts: Counts,
    /// Its file.
    pub verilog: PathBuf,
}

/// Merges what the processes have counted on one design, in a folder: in files whose names begin
/// with `TOP-` and the key that most of them have. Under that key the folder of built models has
/// its Verilog.
///
/// # Errors
/// Where there is none.
pub fn merge(folder: &Path, models: &Path, top: &str) -> Result<Merged> {
    let mut designs: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let hits = name.strip_prefix(&format!("{top}-")).and_then(|rest| rest.strip_suffix(".hits"));
        if let Some((key, _)) = hits.and_then(|rest| rest.split_once('-')) {
            designs.entry(key.to_owned()).or_default().push(path);
        }
    }
    let Some((key, files)) = designs.into_iter().max_by_key(|(_, files)| files.len()) else {
        bail!("no coverage of {top} in {}", folder.display());
    };
    let mut hits = Vec::new();
    files.iter().try_for_each(|file| add(&mut hits, file))?;
    let path = folder.join(format!("{top}-{key}.points"));
    let points = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let verilog = models.join(&key).join("top.v");
    let text = fs::read_to_string(&verilog).with_context(|| format!("read {}", verilog.display()))?;
    let counts = counted(&points, &hits, &text).with_context(|| path.display().to_string())?;
    Ok(Merged { counts, verilog })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: &str =
        "5\t7\tv_toggle/unit$a\tcount[1]:0->1\n2\t2\tv_branch/unit$a\tif\n5\t11\tv_toggle/unit$b\tcount:1->0\n";

    const VERILOG: &str = "module a;\n  if (full)\nendmodule\n";

    #[test]
    fn what_processes_have_counted_adds_up() {
        let folder = std::env::temp_dir().join(format!("nearpm-points-{}", std::process::id()));
        fs::create_dir_all(folder.join("key")).unwrap();
        fs::write(folder.join("key/top.v"), VERILOG).unwrap();
        fs::write(folder.join("top-key.points"), POINTS).unwrap();
        for (process, hits) in [(1, [0_u32, 0, 0, 0, 0, 3]), (2, [9, 0, 0, 0, 0, 1])] {
            let bytes: Vec<u8> = hits.iter().flat_map(|hit| hit.to_le_bytes()).collect();
            fs::write(folder.join(format!("top-key-{process}.hits")), bytes).unwrap();
        }
        let counts = merge(&folder, &folder, "top").unwrap().counts;
        let found: Vec<_> = counts.iter().map(|(p, n)| (p.module.as_str(), p.name.as_str(), *n)).collect();
        let expected = [("unit$a", "2 if: if (full)", 0), ("unit$a", "count[1]:0->1", 4), ("unit$b", "count:1->0", 4)];
        assert_eq!(found, expected);
        let bits: Vec<_> = counts.keys().filter_map(Point::bit).map(|b| (b.signal, b.bit, b.rises)).collect();
        assert_eq!(bits, [("count", 1, true), ("count", 0, false)]);
        assert!(merge(&folder, &folder, "other").is_err());
        fs::remove_dir_all(folder).unwrap();
        assert!(counted("nothing\n", &[1], VERILOG).is_err() && counted(POINTS, &[1], VERILOG).is_err());
        assert!(counted(POINTS, &[1; 6], "").is_err());
    }
}
