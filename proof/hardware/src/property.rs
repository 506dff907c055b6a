//! A property file, read.

use anyhow::{Context, Result, bail};

use crate::units::Unit;

/// When a property is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// In every run of the tests.
    Fast,
    /// In the thorough tier.
    Thorough,
    /// By name only: stated, and not decided yet.
    Open,
}

/// A change of the unit that breaks the property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mutant {
    /// What is wrong then.
    pub what: String,
    /// Text of the unit's Verilog; it stands there exactly once.
    pub find: String,
    /// What is put there.
    pub put: String,
    /// Cycles from reset within which an assertion fails.
    pub depth: u32,
}

/// A property of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Name: the file's, without its ending.
    pub name: String,
    /// The unit.
    pub unit: Unit,
    /// What is claimed, for people.
    pub claim: String,
    /// Where the claim comes from.
    pub source: String,
    /// What is assumed of the unit's inputs, for people.
    pub assumes: String,
    /// When it is proved.
    pub tier: Tier,
    /// Depth of the induction, in cycles.
    pub depth: u32,
    /// Cycles within which every cover statement is reached.
    pub cover_depth: u32,
    /// Assertions that the file attaches.
    pub asserts: usize,
    /// Cover statements that the file attaches.
    pub covers: usize,
    /// The assertions are shown one after the other, as the file states them:
    /// [`crate::tools::Tools::step_in_order`].
    pub in_order: bool,
    /// Instances of memories that are seen through one arbitrary word; see [`crate::edit::watch`].
    pub watch: Vec<String>,
    /// Arrays are taken apart into registers, `\\array[0] ` and so on, as suits one that is written
    /// at many places at once.
    pub apart: bool,
    /// Instances whose outputs are arbitrary; see [`crate::edit::cut`].
    pub cut: Vec<String>,
    /// Changes that break it.
    pub mutants: Vec<Mutant>,
    /// The SystemVerilog.
    pub body: String,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../properties/", $name, ".sv")))),*];
    };
}

files! {
    "command_port_axi",
    "completion_writer_axi",
    "decoder_ranges",
    "dependency_matrix",
    "dispatcher_slots",
    "dispatcher_time",
    "dma_read_request",
    "dma_write_request",
    "fifo",
    "host_port_axi",
    "host_queue_lines",
    "mapping_saved",
    "memory_port_axi",
    "memory_port_bursts",
    "memory_port_time",
    "memory_split_bursts",
    "multi_device",
    "ordering_point_queries",
    "ordering_point_time",
    "parked_places",
    "persist_buffer_lines",
    "persist_buffer_order",
    "persist_buffer_progress",
    "range_table",
    "request_slots_saved",
    "round_robin",
}

/// All properties.
///
/// # Errors
/// A file whose head is not understood.
pub fn all() -> Result<Vec<Property>> {
    FILES.iter().map(|(name, text)| Property::parse(name, text)).collect()
}

impl Property {
    /// Reads a file.
    ///
    /// # Errors
    /// An unknown or a missing key, a value that is none, no mutant: each named.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut head = Head::default();
        for (number, line) in text.lines().enumerate() {
            let Some(line) = line.strip_prefix("//@ ") else { continue };
            head.take(line).with_context(|| format!("{name}.sv, line {}", number + 1))?;
        }
        head.property(name, text).with_context(|| format!("{name}.sv"))
    }
}

/// Names of the assertions of a property, in the order in which it states them.
pub fn labels(body: &str) -> Vec<String> {
    let joined = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let before = joined.split(": assert (").collect::<Vec<_>>();
    let last = |text: &&str| {
        let start = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        text[start..].to_string()
    };
    before[..before.len() - 1].iter().map(last).collect()
}

/// What the head says, as it is read.
#[derive(Default)]
struct Head {
    values: Vec<(String, String)>,
    mutants: Vec<Mutant>,
}

/// Keys that may come once, before the mutants. A line that begins with blanks goes on with the
/// line before.
const KEYS: &[&str] = &[
    "unit",
    "claim",
    "source",
    "assumes",
    "tier",
    "depth",
    "cover-depth",
    "asserts",
    "covers",
    "step",
    "watch",
    "arrays",
    "cut",
];

impl Head {
    fn take(&mut self, line: &str) -> Result<()> {
        if let Some(more) = line.strip_prefix("  ") {
            let (_, value) = self.values.last_mut().context("a continuation of nothing")?;
            value.push(' ');
            value.push_str(more.trim());
            return Ok(());
        }
        let (key, value) = line.split_once(": ").context("a line without `key: value`")?;
        let value = value.trim_end().to_string();
        let known = self.value(key).is_some();
        match (key, self.mutants.last_mut()) {
            ("mutant", _) => self.mutants.push(Mutant { what: value, ..Mutant::default() }),
            ("find", Some(mutant)) => mutant.find = value,
            ("put", Some(mutant)) => mutant.put = value,
            ("within", Some(mutant)) => mutant.depth = value.parse()?,
            (key, None) if KEYS.contains(&key) && !known => self.values.push((key.into(), value)),
            _ => bail!("`{key}` is not known, or stands in a wrong place"),
        }
        Ok(())
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    fn needed(&self, key: &str) -> Result<&str> {
        self.value(key).with_context(|| format!("the head lacks `{key}`"))
    }

    fn list(&self, key: &str) -> Vec<String> {
        self.value(key).map_or_else(Vec::new, |list| list.split_whitespace().map(str::to_string).collect())
    }

    fn property(self, name: &str, text: &str) -> Result<Property> {
        let unit = self.needed("unit")?;
        let unit = *Unit::ALL.iter().find(|u| u.name() == unit).with_context(|| format!("there is no unit {unit}"))?;
        if self.mutants.is_empty() {
            bail!("the property has no mutant");
        }
        if let Some(mutant) = self.mutants.iter().find(|m| m.find.is_empty() || m.put.is_empty() || m.depth == 0) {
            bail!("the mutant `{}` lacks `find`, `put` or `within`", mutant.what);
        }
        Ok(Property {
            name: name.into(),
            unit,
            claim: self.needed("claim")?.into(),
            source: self.needed("source")?.into(),
            assumes: self.needed("assumes")?.into(),
            tier: match self.needed("tier")? {
                "fast" => Tier::Fast,
                "thorough" => Tier::Thorough,
                "open" => Tier::Open,
                other => bail!("`{other}` is no tier"),
            },
            depth: self.needed("depth")?.parse()?,
            cover_depth: self.needed("cover-depth")?.parse()?,
            asserts: self.needed("asserts")?.parse()?,
            covers: self.needed("covers")?.parse()?,
            in_order: match self.value("step") {
                None => false,
                Some("in order") => true,
                Some(other) => bail!("`{other}` is no way to take the step"),
            },
            watch: self.list("watch"),
            apart: self.value("arrays") == Some("apart"),
            cut: self.list("cut"),
            mutants: self.mutants,
            body: text.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "//@ unit: Fifo\n//@ claim: it\n//@   holds\n//@ source: C1\n//@ assumes: nothing\n//@ tier: fast\n\
        //@ depth: 2\n//@ cover-depth: 3\n//@ asserts: 1\n//@ covers: 1\n\
        //@ mutant: broken\n//@ find: a\n//@ put: b\n//@ within: 4\n";

    #[test]
    fn a_head_is_read_and_what_it_lacks_is_named() {
        let property = Property::parse("t", HEAD).unwrap();
        assert_eq!((property.claim.as_str(), property.depth, property.mutants[0].depth), ("it holds", 2, 4));
        for (line, wanted) in
            [("//@ claim: it\n//@   holds\n", "`claim`"), ("//@ find: a\n", "lacks"), ("//@ depth: 2\n", "`depth`")]
        {
            let error = format!("{:#}", Property::parse("t", &HEAD.replace(line, "")).unwrap_err());
            assert!(error.contains(wanted) && error.contains("t.sv"), "{error}");
        }
        let error = format!("{:#}", Property::parse("t", &HEAD.replace("//@ asserts", "//@ assert")).unwrap_err());
        assert!(error.contains("`assert` is not known"), "{error}");
    }

    #[test]
    fn every_assertion_of_a_property_that_is_shown_in_order_has_a_name_of_its_own() {
        assert_eq!(labels("if (a) first: assert (b);\nsecond:\n  assert (c);"), ["first", "second"]);
        for property in all().unwrap().iter().filter(|property| property.in_order) {
            let mut names = labels(&property.body);
            names.sort();
            names.dedup();
            assert_eq!(names.len(), property.asserts, "{}", property.name);
        }
    }

    #[test]
    fn every_file_is_listed_and_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/properties");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".sv", ""))
            .collect();
        files.sort();
        let mut listed: Vec<String> = all().unwrap().into_iter().map(|property| property.name).collect();
        listed.sort();
        assert_eq!(files, listed);
    }
}
