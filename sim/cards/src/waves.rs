//! Waveforms of a card in the FST format, and the signals of interest in groups.
//!
//! The simulator writes VCD, a text of which each change takes a line; FST holds the same in a
//! small part of the room, and viewers open it at once. Beside it goes a save file of GTKWave: the
//! card's ports and states, in groups.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fst_writer::{
    FstBodyWriter, FstFileType, FstHeaderWriter, FstInfo, FstScopeType, FstSignalId, FstSignalType, FstVarDirection,
    FstVarType,
};
use vcd::{Command, IdCode, Parser, ScopeItem, Value, Var};

/// Groups of signals: a title, and how their names begin. Those with dots are paths below the
/// card's core.
const GROUPS: &[(&str, &[&str])] = &[
    ("clock, reset, power", &["clk", "rst_n", "power_fail", "save_done"]),
    ("state", &["persistence.state", "persistence.phase$q"]),
    ("commands", &["s_axi_cmd_"]),
    ("loads and stores of the host", &["s_axi_host_"]),
    ("memory", &["m_axi_mem"]),
    ("completion records", &["m_axi_cpl_"]),
    ("registers", &["s_axil_ctrl_"]),
    ("other cards", &["peer_"]),
];
/// Bytes of changes that are kept before they are written as a section.
const SECTION_BYTES: usize = 64 << 20;

/// Whether a waveform of this name is to be FST: by its ending.
pub fn is_fst(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("fst"))
}

/// Where the simulator is to write the waveform that is asked for. FST is made of a VCD with a name
/// of its own, so that no file of others is written over; what a run that was stopped has left of
/// those goes.
///
/// # Errors
/// What is left cannot be removed.
pub fn written_to(asked: &Path) -> Result<PathBuf> {
    if !is_fst(asked) {
        return Ok(asked.to_owned());
    }
    for (_, left) in intermediate(asked) {
        remove(&left)?;
    }
    Ok(asked.with_extension(INTERMEDIATE))
}

/// The waveforms that a run has written where [`written_to`] said become `NAME.fst`, `NAME.1.fst`
/// and so on, with a `.gtkw` each, and go.
///
/// # Errors
/// A file that cannot be read or written, or is no VCD. Waveforms that are not done yet stay as
/// they are.
pub fn to_fst(asked: &Path) -> Result<()> {
    for (number, vcd) in intermediate(asked) {
        let fst = numbered(asked, number);
        convert(&vcd, &fst).with_context(|| format!("cannot make {} of {}", fst.display(), vcd.display()))?;
        remove(&vcd)?;
    }
    Ok(())
}

/// The ending of what an FST file is made of.
const INTERMEDIATE: &str = "fst.vcd";

/// What is there of these, with the number of the power-up.
fn intermediate(asked: &Path) -> impl Iterator<Item = (usize, PathBuf)> {
    let first = asked.with_extension(INTERMEDIATE);
    (0..).map(move |number| (number, numbered(&first, number))).take_while(|(_, path)| path.is_file())
}

/// The waveform of a power-up, as the simulator names it: `NAME.ENDING`, then `NAME.1.ENDING` and
/// so on.
fn numbered(first: &Path, number: usize) -> PathBuf {
    match (number, first.extension()) {
        (0, _) | (_, None) => first.to_owned(),
        (number, Some(ending)) => first.with_extension(format!("{number}.{}", ending.to_string_lossy())),
    }
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// A signal as the viewer names it.
struct Signal {
    /// Scopes from the root on.
    path: Vec<String>,
    name: String,
    bits: u32,
}

/// The declarations, as they are written to the FST file.
struct Declared<'w> {
    header: FstHeaderWriter<BufWriter<File>>,
    path: Vec<String>,
    signals: Vec<Signal>,
    of: &'w mut HashMap<IdCode, (FstSignalId, usize)>,
}

impl Declared<'_> {
    fn items(&mut self, items: &[ScopeItem]) -> Result<()> {
        for item in items {
            match item {
                ScopeItem::Scope(scope) => {
                    self.header.scope(&scope.identifier, "", FstScopeType::Module)?;
                    self.path.push(scope.identifier.clone());
                    self.items(&scope.children)?;
                    self.path.pop();
                    self.header.up_scope()?;
                }
                ScopeItem::Var(var) => self.var(var)?,
            }
        }
        Ok(())
    }

    fn var(&mut self, var: &Var) -> Result<()> {
        let index = var.index.map_or(String::new(), |index| format!(" {index}"));
        let name = format!("{}{index}", var.reference);
        let alias = self.of.get(&var.code).map(|(id, _)| *id);
        let kind = FstSignalType::bit_vec(var.size);
        let id = self.header.var(&name, kind, FstVarType::Wire, FstVarDirection::Implicit, alias)?;
        self.of.entry(var.code).or_insert((id, var.size as usize));
        self.signals.push(Signal { path: self.path.clone(), name, bits: var.size });
        Ok(())
    }
}

fn convert(vcd: &Path, fst: &Path) -> Result<()> {
    let mut changes = Parser::new(BufReader::new(File::open(vcd)?));
    let header = changes.parse_header()?;
    let (number, unit) = header.timescale.unwrap_or((1, vcd::TimescaleUnit::PS));
    let exponent = |value: u64| value.ilog10() as i8;
    let info = FstInfo {
        start_time: 0,
        timescale_exponent: exponent(u64::from(number.max(1))) - exponent(unit.divisor()),
        version: concat!("nearpm ", env!("CARGO_PKG_VERSION")).to_owned(),
        date: String::new(),
        file_type: FstFileType::Verilog,
    };
    let mut of = HashMap::new();
    let mut declared = Declared {
        header: FstHeaderWriter::new(BufWriter::new(File::create(fst)?), &info)?,
        path: Vec::new(),
        signals: Vec::new(),
        of: &mut of,
    };
    declared.items(&header.items)?;
    let Declared { header, signals, .. } = declared;
    write_changes(header.finish()?, changes, &of)?;
    let groups = gtkwave(fst, &signals);
    fs::write(fst.with_extension("gtkw"), groups)?;
    Ok(())
}

fn write_changes(
    mut body: FstBodyWriter<BufWriter<File>>,
    changes: Parser<BufReader<File>>,
    of: &HashMap<IdCode, (FstSignalId, usize)>,
) -> Result<()> {
    let mut text = Vec::new();
    for change in changes {
        let change = change?;
        let (code, bits): (IdCode, &[Value]) = match &change {
            Command::Timestamp(time) => {
                if body.size() > SECTION_BYTES {
                    body.flush()?;
                }
                body.time_change(*time)?;
                continue;
            }
            Command::ChangeScalar(code, bit) => (*code, std::slice::from_ref(bit)),
            Command::ChangeVector(code, bits) => (*code, bits),
            _ => continue,
        };
        let (id, width) = of.get(&code).context("a change of a signal that is not declared")?;
        text.clear();
        // VCD leaves out what stands in front of the first bit: zeros, or more of an x or z.
        let front = match bits.first() {
            Some(Value::X) => b'x',
            Some(Value::Z) => b'z',
            _ => b'0',
        };
        text.resize(width.saturating_sub(bits.len()), front);
        text.extend(bits.iter().map(|bit| match bit {
            Value::V0 => b'0',
            Value::V1 => b'1',
            Value::X => b'x',
            Value::Z => b'z',
        }));
        body.signal_change(*id, &text)?;
    }
    body.finish()?;
    Ok(())
}

/// A save file of GTKWave with the groups; a group without signals is left out.
fn gtkwave(fst: &Path, signals: &[Signal]) -> String {
    /// How a row is shown: a heading, a bit, a number in hexadecimal (`TraceFlags` of GTKWave).
    const HEADING: &str = "@200";
    const BIT: &str = "@28";
    const NUMBER: &str = "@22";
    let file = fst.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("[dumpfile] \"{file}\"\n[timestart] 0\n");
    for (title, beginnings) in GROUPS {
        let is_in = |signal: &&Signal| beginnings.iter().any(|beginning| matches(signal, beginning));
        let mut rows = signals.iter().filter(is_in).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "{HEADING}\n-{title}");
        for signal in rows {
            let flags = if signal.bits == 1 { BIT } else { NUMBER };
            let _ = writeln!(text, "{flags}\n{}.{}", signal.path.join("."), signal.name.replace(' ', ""));
        }
    }
    text
}

/// Whether a signal is one of the card's ports of this name, which stand at the root, or a path
/// below its core.
fn matches(signal: &Signal, beginning: &str) -> bool {
    match beginning.rsplit_once('.') {
        None => signal.path.len() == 1 && signal.name.starts_with(beginning),
        Some((scope, name)) => {
            let plain = signal.name.split(' ').next();
            signal.path.len() > 1 && signal.path.last().is_some_and(|last| last == scope) && plain == Some(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fst_reader::{FstFilter, FstReader, FstSignalValue};

    const VCD: &str = "$timescale 1ps $end
$scope module TOP $end
$var wire 1 ! clk $end
$var wire 8 # s_axi_cmd_awaddr [7:0] $end
$scope module card $end
$var wire 1 ! clk $end
$scope module persistence $end
$var wire 3 % state [2:0] $end
$upscope $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
0!
b101 #
bx %
#5
1!
b100 %
#10
0!
b11111111 #
";

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder is read");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }

    #[test]
    fn every_waveform_of_a_run_is_there_as_fst_with_the_same_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let asked = folder.path().join("card.fst");
        // Somebody's own waveform, and what is left of a longer run that was stopped.
        for name in ["card.vcd", "card.fst.vcd", "card.fst.1.vcd", "card.fst.2.vcd"] {
            fs::write(folder.path().join(name), "$scope nonsense").expect("written");
        }
        let first = written_to(&asked).expect("what is left goes");
        fs::write(&first, VCD).expect("written");
        fs::write(first.with_extension("1.vcd"), VCD).expect("written");
        to_fst(&asked).expect("converted");
        assert_eq!(files(folder.path()), ["card.1.fst", "card.1.gtkw", "card.fst", "card.gtkw", "card.vcd"]);
        let file = File::open(folder.path().join("card.1.fst")).expect("opened");
        let mut reader = FstReader::open(BufReader::new(file)).expect("it is FST");
        assert_eq!((reader.get_header().timescale_exponent, reader.get_header().end_time), (-12, 10));
        let mut changes = Vec::new();
        let note = |time, signal: fst_reader::FstSignalHandle, value: FstSignalValue<'_>| {
            let FstSignalValue::String(bits) = value else { panic!("no bits") };
            changes.push((time, signal.get_index(), String::from_utf8(bits.to_vec()).expect("text")));
            Ok::<(), std::convert::Infallible>(())
        };
        reader.read_signals(&FstFilter::all(), note).expect("read");
        let of = |signal: usize| -> Vec<(u64, &str)> {
            changes.iter().filter(|change| change.1 == signal).map(|change| (change.0, &*change.2)).collect()
        };
        assert_eq!(of(0), [(0, "0"), (5, "1"), (10, "0")]);
        assert_eq!(of(1), [(0, "00000101"), (10, "11111111")]);
        assert_eq!(of(2), [(0, "xxx"), (5, "100")]);
    }

    #[test]
    fn signals_of_interest_stand_in_groups() {
        let folder = tempfile::tempdir().expect("a folder");
        let asked = folder.path().join("card.fst");
        fs::write(written_to(&asked).expect("nothing is left"), VCD).expect("written");
        to_fst(&asked).expect("converted");
        let groups = fs::read_to_string(folder.path().join("card.gtkw")).expect("it is there");
        let wanted = "[dumpfile] \"card.fst\"\n[timestart] 0\n@200\n-clock, reset, power\n@28\nTOP.clk\n\
            @200\n-state\n@22\nTOP.card.persistence.state[2:0]\n@200\n-commands\n@22\nTOP.s_axi_cmd_awaddr[7:0]\n";
        assert_eq!(groups, wanted);
    }

    #[test]
    fn what_is_no_waveform_is_told_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let asked = folder.path().join("card.fst");
        let vcd = written_to(&asked).expect("nothing is left");
        fs::write(&vcd, "$scope nonsense").expect("written");
        let error = format!("{:#}", to_fst(&asked).expect_err("it is no VCD"));
        assert!(error.contains("card.fst of") && vcd.exists(), "{error}");
    }
}
