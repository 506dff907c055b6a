//! Figures 5, 6 and 7: operations of one rank on the part of another, and `version_inc`.

use super::table::{Table, micros, ratio};
use super::{Contender, by_messages, contenders, on_net};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::rma::net::Profile;
use crate::world::World;

/// Words of a part.
const PART: u64 = 1 << 17;
/// Bytes of a block (table II).
const BLOCK: u64 = 128;
/// Operations that a time is the mean of.
const COUNT: u64 = 8;
const SIZES: [u64; 5] = [8, 128, 1024, 8192, 65536];

/// Nanoseconds of an operation, by the states of IV-A2.
#[derive(Clone, Copy, Default)]
struct States {
    get_miss: f64,
    get_hit: f64,
    first: f64,
    overwrite_miss: f64,
    overwrite_hit: f64,
}

/// Measures each state. With `each`, every put is waited for; otherwise all together.
fn states(world: &World, array: &Array<u64>, bytes: u64, each: bool) -> Result<States> {
    let words = bytes / 8;
    let stride = words.max(BLOCK / 8);
    let place = |group: u64, at: u64| {
        let start = PART + (group * COUNT + at) % (PART / stride) * stride;
        start..start + words
    };
    let data: Vec<u64> = (1..=words).collect();
    let owner = world.rank() == 1;
    let group = |group: u64| (0..COUNT).try_for_each(|at| array.put(place(group, at), &data));
    if owner {
        array.put(PART..2 * PART, &vec![7; PART as usize])?;
    }
    array.version_inc("")?;
    let mut seen = vec![0; words as usize];
    let mut gets = |which| timed(world, || (0..COUNT).try_for_each(|at| array.get(place(which, at), &mut seen)));
    let puts = |which| {
        timed(world, || {
            for at in 0..COUNT {
                array.put(place(which, at), &data)?;
                if each {
                    array.wait()?;
                }
            }
            array.wait()
        })
    };
    let get_miss = gets(0)?;
    let first = puts(0)?;
    let overwrite_hit = puts(0)?;
    let get_hit = gets(0)?;
    if world.rank() == 0 && seen != data {
        return Err(Error::option("a get does not bring what was put: no figure is printed"));
    }
    if owner {
        group(1)?;
        array.wait()?;
    }
    world.barrier()?;
    Ok(States { get_miss, get_hit, first, overwrite_miss: puts(1)?, overwrite_hit })
}

/// Time of the first rank, in nanoseconds for each of `COUNT`; the others wait.
fn timed(world: &World, act: impl FnOnce() -> Result<()>) -> Result<f64> {
    world.barrier()?;
    let start = world.rma().now();
    if world.rank() == 0 {
        act()?;
    }
    let spent = world.rma().now() - start;
    world.barrier()?;
    Ok(spent as f64 / COUNT as f64)
}

fn measure(profile: Profile, contender: Contender, bytes: u64, each: bool) -> Result<States> {
    let (given, _) = on_net(2, 64 << 20, profile, |world| {
        let array = world.array(&[2 * PART], contender.options)?;
        let states = states(world, &array, bytes, each)?;
        array.free()?;
        Ok(states)
    })?;
    Ok(given[0])
}

/// All arrays that figures 5 and 6 compare.
fn all() -> [Contender; 5] {
    let [flat, paper, ours] = contenders(BLOCK, 2, 6 * PART * 8 / BLOCK);
    [flat, paper, ours, by_messages(flat), by_messages(paper)]
}

/// A state by name.
type State = (&'static str, fn(&States) -> f64);

const STATES: [State; 5] = [
    ("get miss", |states| states.get_miss),
    ("get hit", |states| states.get_hit),
    ("put first", |states| states.first),
    ("put ow-miss", |states| states.overwrite_miss),
    ("put ow-hit", |states| states.overwrite_hit),
];

fn table(profile: Profile, each: bool, mut table: Table, cell: fn(f64, u64) -> String) -> Result<Table> {
    for bytes in SIZES {
        let measured = all().map(|contender| measure(profile, contender, bytes, each));
        let measured: Vec<States> = measured.into_iter().collect::<Result<_>>()?;
        for (name, of) in STATES {
            let [flat, paper, ours, ..] = measured[..] else { continue };
            let shares = [paper, ours].map(|log| ratio(of(&flat) / of(&log)));
            let cells = measured.iter().map(|states| cell(of(states), bytes));
            table.row(format!("{name}, {bytes} B"), cells.chain(shares));
        }
    }
    Ok(table)
}

const HEAD: [&str; 8] =
    ["", "flat", "paper's log", "ours", "flat, messages", "log, messages", "paper's/flat", "ours/flat"];

/// Figure 5: latency, each operation by itself.
pub(super) fn latencies(profile: Profile) -> Result<Table> {
    let paper =
        "get hit as flat, a miss one round trip more; a first put grows beyond 128 B, ow-miss as it; messages are slow";
    table(profile, true, Table::new("Figure 5, latency in us, 2 ranks", paper, &HEAD), |time, _| micros(time))
}

/// Figure 6: bandwidth; puts on their way together, gets one after the other.
pub(super) fn bandwidths(profile: Profile) -> Result<Table> {
    let paper = "get hit at least 74 % of flat, miss about 50 %; put 93 % at best; first put of 8192 B 1 % of flat";
    let title = "Figure 6, bandwidth in MB/s, 2 ranks (puts together, gets one by one)";
    table(profile, false, Table::new(title, paper, &HEAD), |time, bytes| format!("{:.0}", bytes as f64 / time * 1e3))
}

/// Figure 7: `version_inc` of 1 MB a process behind one that filled it; and with one block changed,
/// which the paper does not show.
pub(super) fn versions(profile: Profile, full: bool) -> Result<Table> {
    let paper = "log up to 10 times faster than flat, at one process";
    let title = "Figure 7, version_inc of 1 MiB a process, us: nothing changed since the last, and one block";
    let head = ["ranks", "flat", "paper's log", "ours", "paper's/flat", "ours/flat", "ours, one block", "to flat"];
    let mut table = Table::new(title, paper, &head);
    let ranks: &[usize] = if full { &[1, 2, 4, 8, 16, 32, 64] } else { &[1, 2, 8, 32] };
    for &ranks in ranks {
        let times = contenders(BLOCK, 2, 3 * PART * 8 / BLOCK).map(|contender| version(profile, contender, ranks));
        let [flat, paper, ours] = times;
        let ([flat, _], [paper, _], [ours, one]) = (flat?, paper?, ours?);
        let cells = [flat, paper, ours].map(micros).into_iter();
        let shares = [ratio(flat / paper), ratio(flat / ours), micros(one), ratio(flat / one)];
        table.row(ranks.to_string(), cells.chain(shares));
    }
    Ok(table)
}

fn version(profile: Profile, contender: Contender, ranks: usize) -> Result<[f64; 2]> {
    let (given, _) = on_net(ranks, 32 << 20, profile, |world| {
        let array = world.array::<u64>(&[PART * ranks as u64], contender.options)?;
        let mine = array.part(world.rank());
        array.put(mine.clone(), &vec![3; PART as usize])?;
        array.version_inc("filled")?;
        let close = |label: &str| {
            array.wait()?;
            world.barrier()?;
            let start = world.rma().now();
            array.version_inc(label)?;
            Ok::<f64, Error>((world.rma().now() - start) as f64)
        };
        let none = close("nothing")?;
        array.put(mine.start..mine.start + 1, &[4])?;
        let one = close("one block")?;
        let mut seen = [0; 2];
        array.at(array.version() - 1)?.get(mine.start..mine.start + 2, &mut seen)?;
        if seen != [4, 3] {
            return Err(Error::option(format!("a version holds {seen:?}: no figure is printed")));
        }
        array.free()?;
        Ok([none, one])
    })?;
    Ok(given[0])
}
