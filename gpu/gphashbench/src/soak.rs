//! A soak: a process that runs batches on a GPU's table is killed, again and again; what is there
//! is compared with what it had answered.
//!
//! It shows that recovery works on hardware. It cannot show that a fence is missing: what a killed
//! process has stored is not lost. That is what the interpreter is for.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nearpm_gphash::{Design, Layout, Op, Outcome, Request, Table};
use nearpm_gpu::{Access, Device, PmRegion};

use crate::linear::State;
use crate::values::{VALUE, number_of, value_of};

/// Keys, operations of a batch: each key once, so that what a batch makes of the table does not
/// depend on its order. Powers of two.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Keys.
    pub keys: u32,
    /// Operations of a batch.
    pub batch: u32,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Soaked {
    /// Processes killed.
    pub kills: u32,
    /// Batches that were answered.
    pub batches: u32,
}

/// The operations of a batch, by its number.
fn batch_of(sizes: Sizes, number: u32) -> impl Iterator<Item = (Op, u64, u32)> {
    (0..sizes.batch).map(move |at| {
        let key = (at.wrapping_mul(0x9e37_79b1).wrapping_add(number.wrapping_mul(0x85eb_ca6b))) & (sizes.keys - 1);
        let value = number.wrapping_mul(sizes.batch).wrapping_add(at);
        let op = match value.wrapping_mul(0xc2b2_ae35) >> 30 {
            0 => Op::Delete,
            1 => Op::Update,
            _ => Op::Put,
        };
        (op, u64::from(key) + 1, value)
    })
}

fn apply(states: &mut [State], batch: impl Iterator<Item = (Op, u64, u32)>) {
    for (op, key, value) in batch {
        let state = &mut states[key as usize - 1];
        *state = match op {
            Op::Delete => None,
            Op::Update => state.map(|_| value),
            _ => Some(value),
        };
    }
}

/// Whether each key of a table is what batches up to number `answered` make, or with the next one.
///
/// # Errors
/// The first that is not; what the table refuses.
pub fn verify(table: &Table, sizes: Sizes, answered: u32) -> Result<()> {
    let mut states: Vec<State> = vec![None; sizes.keys as usize];
    (1..=answered).for_each(|number| apply(&mut states, batch_of(sizes, number)));
    let mut next = states.clone();
    apply(&mut next, batch_of(sizes, answered + 1));
    let keys: Vec<u64> = (1..=u64::from(sizes.keys)).collect();
    for piece in keys.chunks(sizes.batch as usize) {
        let gets: Vec<Request> =
            piece.iter().map(|&key| Request { op: Op::Get, key: key.into(), value: Vec::new() }).collect();
        for (&key, answer) in piece.iter().zip(table.batch(&gets)?) {
            let (found, at) = (answer.value.map(|value| number_of(&value)), key as usize - 1);
            let explained = found == states[at] || found == next[at];
            ensure!(explained, "key {key} has {found:?}: {:?} was answered, {:?} was next", states[at], next[at]);
        }
    }
    let found = table.check()?;
    ensure!(found.is_sound(), "behind batch {answered}: {found}");
    Ok(())
}

/// The process that is killed: opens or makes the table at `path`, compares it with what was
/// answered, says so, and runs batches, at most `most`; it says when each is done.
///
/// # Errors
/// A difference; what the device or the region refuses.
pub fn child(
    device: Rc<dyn Device>,
    path: &Path,
    design: Design,
    sizes: Sizes,
    answered: u32,
    most: u32,
) -> Result<()> {
    let layout = match design {
        Design::Levels => Layout::levels(u64::from(sizes.keys) * 3 / 2, VALUE),
        Design::Tags => Layout::tags(u64::from(sizes.keys) * 3 / 2, VALUE),
    };
    let layout = Layout { spares: layout.spares.max(sizes.batch), ..layout };
    let region = if path.exists() {
        PmRegion::map(device, path, 0, Access::Open)?
    } else {
        let bytes = (layout.bytes() + (1 << 20)).next_multiple_of(1 << 21);
        PmRegion::map(device, path, bytes, Access::Create)?
    };
    let there = region.objects().iter().any(|object| object.name == "table");
    let mut table = if there { Table::open(&region, "table")? } else { Table::create(&region, "table", &layout, 1)? };
    table.sort_batches(sizes.batch)?;
    verify(&table, sizes, answered)?;
    println!("verified");
    for number in (answered + 1..).take(most as usize) {
        let request = |(op, key, value): (Op, u64, u32)| {
            let value = if op.puts() { value_of(value) } else { Vec::new() };
            Request { op, key: key.into(), value }
        };
        let requests: Vec<Request> = batch_of(sizes, number).map(request).collect();
        let answers = table.batch(&requests)?;
        let wrong = requests.iter().zip(&answers).find(|(request, answer)| {
            answer.outcome != Outcome::Done && (request.op == Op::Put || answer.outcome != Outcome::Absent)
        });
        if let Some((request, answer)) = wrong {
            bail!("batch {number}: {request:?} ended with {answer:?}");
        }
        println!("{number}");
        std::io::stdout().flush()?;
    }
    drop(table);
    region.close()?;
    Ok(())
}

/// Kills `kills` processes that `command` makes, each of which runs [`child`] behind so many
/// batches that were answered.
///
/// # Errors
/// The first difference.
pub fn soak(command: &dyn Fn(u32) -> Command, kills: u32) -> Result<Soaked> {
    let mut soaked = Soaked::default();
    let mut state = 0x1234_5678_9abc_def1u64;
    for kill in 0..=kills {
        let mut process = command(soaked.batches).stdout(Stdio::piped()).spawn().context("cannot start a process")?;
        let output = process.stdout.take().context("the process has no output")?;
        let mut lines = BufReader::new(output).lines();
        let first = lines.next().transpose()?;
        let verified = first.as_deref() == Some("verified");
        if verified && kill < kills {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            std::thread::sleep(Duration::from_micros(500 + state % 60_000));
            soaked.kills += 1;
        }
        // Its own process alone, by its handle.
        let _ = process.kill();
        // What it had said before.
        for line in lines {
            soaked.batches = line?.trim().parse().unwrap_or(soaked.batches).max(soaked.batches);
        }
        let ended = process.wait().context("cannot wait for the process")?;
        ensure!(verified, "after kill {kill}, behind {} batches: the process did not verify", soaked.batches);
        // It ends by itself where an answer is wrong.
        ensure!(
            ended.signal().is_some(),
            "after kill {kill}, behind {} batches: it ended by itself, {ended}",
            soaked.batches
        );
        // Kernels go on for some milliseconds.
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(soaked)
}

#[cfg(test)]
mod tests {
    use nearpm_gpu::Interpreted;

    use super::*;

    fn soaked(script: &'static str) -> Result<Soaked> {
        let command = move |_| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        soak(&command, 1)
    }

    /// A process ends by itself where it finds an answer that is wrong: nothing was shown then.
    #[test]
    fn a_process_that_ends_by_itself_is_an_error() {
        let said = |script| format!("{:#}", soaked(script).unwrap_err());
        // A child of it says so when it has ended: it is not killed before.
        assert!(said("(sleep 0.1; echo verified) & exit 1").contains("ended by itself, exit status: 1"));
        let done = said("(sleep 0.1; echo verified; echo 7) & exit 0");
        assert!(done.contains("behind 7 batches: it ended by itself, exit status: 0"), "{done}");
        assert!(said("echo 'key 3 has another value'; exec sleep 60").contains("did not verify"));
        let killed = soaked("echo verified; echo 3; exec sleep 60").unwrap();
        assert_eq!(killed, Soaked { kills: 1, batches: 3 });
    }

    /// What a process does, in several lives: each verifies what the one before has left. The
    /// interpreter keeps what is closed alone.
    #[test]
    fn lives_verify_what_the_ones_before_have_left() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = Sizes { keys: 64, batch: 32 };
        for design in [Design::Levels, Design::Tags] {
            let path = folder.path().join(format!("{design:?}"));
            let device = || -> Rc<dyn Device> { Rc::new(Interpreted::new(16 << 20)) };
            for life in 0..3 {
                child(device(), &path, design, sizes, 2 * life, 2).unwrap_or_else(|error| panic!("{error:#}"));
            }
            // Of six batches the fourth, with or without the fifth, is no explanation.
            let shown = child(device(), &path, design, sizes, 4, 0).expect_err("the sixth batch is there");
            assert!(format!("{shown:#}").contains("was answered"), "{shown:#}");
        }
    }
}
