//! gpDB: insertions and updates, against CPU-assisted persistence, conventional logging, and a
//! processor alone.

use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gpm::Outcome;
use nearpm_gpu::{Buffer, PmRegion};
use nearpm_statistics::median_time;

use super::assisted::Assisted;
use super::{Bench, Scale};
use crate::db::{Model, ROW, Sizes, Table};
use crate::kernels::db;
use crate::report::Report;

const GROUP: &str = "gpDB";
/// A twentieth of the rows is in a group: of 50 M rows 2.5 M are updated, as in the paper.
const GROUPS: u32 = 20;

fn sizes(bench: &Bench, partitions: u32) -> Sizes {
    let (rows, updated) = bench.scale.pick((2000, 200), (50_000_000, 2_600_000));
    Sizes { rows, updated, groups: GROUPS, partitions }
}

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let sizes = sizes(bench, 0);
    let region = bench.region(sizes.region_bytes())?;
    let table = Table::create(&region, sizes, db())?;
    let mut model = Model::new(GROUPS);
    let rows = table.incoming(sizes.rows)?;
    bench.device.synchronize()?;
    let undo = undone_insertion(bench, &table, &rows)?;
    check(&table, &region, &model, "undo of an insertion")?;
    let insertion = bench.wall(&mut || table.insert(&rows))?;
    model.insert(sizes.rows);
    check(&table, &region, &model, "an insertion")?;
    let name = format!("{} rows of {ROW} B inserted (I)", sizes.rows);
    report.rate(GROUP, &name, sizes.rows as f64 / 1e6, "M rows/s", &[insertion], None);
    report.time(GROUP, "the same, the transaction", &[insertion], None);
    report.time(GROUP, "recovery: undo of an insertion", &[undo], None);
    let share = undo.as_secs_f64() / insertion.as_secs_f64().max(1e-9) * 100.0;
    report.value(GROUP, "undo of an insertion, of the time of the insertion", share, "%", Some("paper 0.01"));
    let updates = updates(bench, &table, &mut model)?;
    check(&table, &region, &model, "updates")?;
    let updated = f64::from(model.update(0, 1)) / 1e6;
    table.update(0, 1)?;
    report.rate(GROUP, "a twentieth of the rows updated (U)", updated, "M rows/s", &updates, None);
    report.time(GROUP, "a twentieth of the rows updated, the transaction", &updates, None);
    if bench.scale == Scale::Full {
        assisted(bench, report, &rows, insertion, median_time(&updates))?;
    }
    drop(rows);
    conventional(bench, report, median_time(&updates))?;
    recovery(bench, report, table, &region, model, median_time(&updates))
}

/// An insertion whose commit never comes, undone: the time of that.
fn undone_insertion(bench: &Bench, table: &Table, rows: &Buffer) -> Result<Duration> {
    table.insert_without_commit(rows)?;
    bench.device.synchronize()?;
    let undo = bench.wall(&mut || {
        ensure!(matches!(table.recover()?, Outcome::Undone { .. }), "nothing was undone");
        Ok(())
    })?;
    ensure!(table.len()? == 0, "{} rows are there behind the undo of an insertion", table.len()?);
    Ok(undo)
}

fn updates(bench: &Bench, table: &Table, model: &mut Model) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for repeat in 0..=bench.repeats as u32 {
        let (group, mut changed) = (repeat % GROUPS, 0);
        let time = bench.wall(&mut || {
            changed = table.update(group, repeat)?;
            Ok(())
        })?;
        let expected = model.update(group, repeat);
        ensure!(changed == expected, "{changed} rows were updated, {expected} are in the group");
        // The first loads the kernels.
        if repeat > 0 {
            times.push(time);
        }
    }
    Ok(times)
}

fn check(table: &Table, region: &PmRegion, model: &Model, what: &str) -> Result<()> {
    let (offset, bytes) = table.place();
    let same = model.equals(table.len()?, &region.read_vec(offset, bytes as usize)?);
    ensure!(same, "{what}: the table in PM is not what it should be: no figure is printed");
    Ok(())
}

/// CAP of the whole table, which the device has in its memory, as the paper's does: for an
/// insertion and for an update.
fn assisted(bench: &Bench, report: &mut Report, rows: &Buffer, insertion: Duration, update: Duration) -> Result<()> {
    let ways = Assisted::new(bench, GROUP, "the whole table", vec![rows])?;
    let mapping = ways.by_mapping(report)?;
    let mut ratio = |name: &str, ours: Duration, theirs: Duration, paper: &str| {
        let over = theirs.as_secs_f64() / ours.as_secs_f64();
        report.value(GROUP, name, over, "x", Some(paper));
    };
    ratio("insertion: GPM over the best CAP-mm", insertion, mapping, "paper 3.6");
    ratio("update: GPM over the best CAP-mm", update, mapping, "paper 2.6");
    if let Some(file) = ways.by_file(report)? {
        report.value(GROUP, "update: GPM over CAP-fs", file.as_secs_f64() / update.as_secs_f64(), "x", None);
    }
    ways.near(report)?;
    ways.saved_by_power(report)?;
    // What GPM moves for an update: an entry with its seal and 8 bytes a row.
    let moved = f64::from(GROUPS) * ROW as f64 / (16.0 + 8.0);
    report.value(GROUP, "update: bytes of CAP over those of GPM (table 4)", moved, "x", Some("paper 19.88"));
    Ok(())
}

/// Figure 11a: the same update with a conventional log, with the number of partitions that is best.
fn conventional(bench: &Bench, report: &mut Report, ours: Duration) -> Result<()> {
    let mut best: Option<(Duration, u32)> = None;
    for partitions in bench.scale.pick(vec![16u32], vec![1024, 4096, 16384, 65536]) {
        let sizes = sizes(bench, partitions);
        let region = bench.region(sizes.region_bytes())?;
        let table = Table::create(&region, sizes, db())?;
        let mut model = Model::new(GROUPS);
        table.insert(&table.incoming(sizes.rows)?)?;
        model.insert(sizes.rows);
        let time = median_time(&updates(bench, &table, &mut model)?);
        check(&table, &region, &model, "updates with a conventional log")?;
        if best.is_none_or(|(best, _)| time < best) {
            best = Some((time, partitions));
        }
    }
    let Some((time, partitions)) = best else { return Ok(()) };
    report.time(GROUP, format!("update with the best conventional log ({partitions} partitions)"), &[time], None);
    let over = time.as_secs_f64() / ours.as_secs_f64().max(1e-9);
    report.value(GROUP, "update: HCL over conventional (figure 11a)", over, "x", Some("paper 6.1"));
    Ok(())
}

/// An update whose commit never comes, undone.
fn recovery(
    bench: &Bench,
    report: &mut Report,
    table: Table,
    region: &PmRegion,
    model: Model,
    update: Duration,
) -> Result<()> {
    table.update_without_commit(3, 77)?;
    bench.device.synchronize()?;
    drop(table);
    let (table, outcome) = Table::open(region, sizes(bench, 0), db())?;
    ensure!(matches!(outcome, Outcome::Undone { .. }), "the update that was left active was not undone: {outcome:?}");
    check(&table, region, &model, "undo of an update")?;
    if bench.scale == Scale::Small {
        return Ok(());
    }
    // Once more, timed, of a table that is open.
    table.update_without_commit(4, 78)?;
    let undo = bench.wall(&mut || {
        ensure!(matches!(table.recover()?, Outcome::Undone { .. }), "nothing was undone");
        Ok(())
    })?;
    check(&table, region, &model, "undo of an update")?;
    report.time(GROUP, "recovery: undo of an update", &[undo], None);
    let share = undo.as_secs_f64() / update.as_secs_f64() * 100.0;
    report.value(GROUP, "undo, of the time of the update", share, "%", Some("paper 10.43"));
    Ok(())
}
