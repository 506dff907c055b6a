//! Many seeds, in a record that a later run continues.

use super::{Counts, Shape, side_by_side};
use nearpm_hdl::dut::{VerilatedDut, verilog_of};
use nearpm_hdl::persist_buffer::{PaperBuffer, SmallBuffer};
use std::path::Path;

/// Cycles of a seed, before the buffer runs empty.
const CYCLES: u64 = 20_000;
/// Seeds between two writings of the record.
const PART: u64 = 20;

/// What was compared: seeds 0 to `seeds`, exclusive, of them the even ones on the paper's size and
/// the odd ones on the small one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// How many seeds.
    pub seeds: u64,
    /// What happened.
    pub counts: Counts,
}

impl Record {
    /// Reads a record; an empty one where there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is no `name = number` of a record: told with its
    /// number.
    pub fn read(path: &Path) -> Result<Record, String> {
        let place = |line: usize| format!("{}, line {line}", path.display());
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Record::default()),
            text => text.map_err(|error| format!("{}: {error}", path.display()))?,
        };
        let mut record = Record::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let (name, value) =
                line.split_once(" = ").ok_or_else(|| format!("{}: no `name = number`", place(index + 1)))?;
            let value = value.parse().map_err(|_| format!("{}: `{value}` is no number", place(index + 1)))?;
            let mut fields = record.fields();
            let field = fields.iter_mut().find(|(known, _)| *known == name);
            *field.ok_or_else(|| format!("{}: `{name}` is not known", place(index + 1)))?.1 = value;
        }
        Ok(record)
    }

    fn fields(&mut self) -> [(&'static str, &mut u64); 7] {
        let Record { seeds, counts: Counts { events, accepted, held, refused, flushed, left } } = self;
        [
            ("seeds", seeds),
            ("events", events),
            ("accepted", accepted),
            ("held", held),
            ("refused", refused),
            ("flushed", flushed),
            ("left", left),
        ]
    }

    /// Writes it whole, or not at all.
    fn write(mut self, path: &Path) -> Result<(), String> {
        let mut text = String::from(
            "# The Verilated persist buffer beside the machine that defines it, the same in every cycle:\n\
             # cargo run --release -p nearpm-hdl --example persist_buffer_campaign\n",
        );
        self.fields().iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
        let new = path.with_extension("new");
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Goes on with a record until it has so many events.
///
/// # Errors
/// A record that cannot be read or written.
///
/// # Panics
/// When unit and machine differ, with the cycle.
pub fn run(path: &Path, events: u64, tell: impl Fn(Record)) -> Result<Record, String> {
    let mut record = Record::read(path)?;
    let mut paper = VerilatedDut::new(verilog_of(Box::<PaperBuffer>::default()), None);
    let mut small = VerilatedDut::new(verilog_of(Box::<SmallBuffer>::default()), None);
    while record.counts.events < events {
        for seed in record.seeds..record.seeds + PART {
            record.counts += match seed % 2 {
                0 => side_by_side(&mut paper, Shape::PAPER, seed, CYCLES),
                _ => side_by_side(&mut small, Shape::SMALL, seed, CYCLES),
            };
        }
        record.seeds += PART;
        record.write(path)?;
        tell(record);
    }
    Ok(record)
}
