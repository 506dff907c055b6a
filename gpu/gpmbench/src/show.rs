//! A store that is crashed and recovered, told step by step.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use nearpm_gpm::Outcome;
use nearpm_gpu::{Access, Choice, CrashPlan, Device, Interpreted, Moment, PmRegion, Stop};

use crate::crash::crashed;
use crate::kernels::kvs as kvs_kernels;
use crate::kvs::{Kvs, Model, Sets, batch_of, region_bytes};

/// Sets of the table, as a power of two; SETs of a batch; batches that are committed before the
/// crash.
const SET_BITS: u32 = 7;
const BATCH: usize = 250;
const COMMITTED: u32 = 3;
/// Keys come again, in a batch, too.
const KEYS: u64 = 600;
/// Launches of a batch before that of the kernel that stores: the log's mount, sets, three of the
/// sort.
const BEFORE: u64 = 5;
const MEMORY: u64 = 64 << 20;

fn interpreter() -> Rc<Interpreted> {
    Rc::new(Interpreted::new(MEMORY))
}

fn pairs_of(seed: u64, batch: u32) -> Vec<(u64, u64)> {
    batch_of(seed.wrapping_mul(1000) + u64::from(batch), BATCH, KEYS)
}

/// Opens the region at `path` on a fresh device, as after a reboot, and does something with it, up
/// to the planned crash: says what that was.
fn after_a_reboot(
    path: &Path,
    plan: Option<CrashPlan>,
    act: impl FnOnce(&PmRegion) -> Result<()>,
) -> Result<Option<String>> {
    let device = interpreter();
    let region = PmRegion::map(device.clone() as Rc<dyn Device>, path, 0, Access::Open)?;
    device.plan_crash(plan);
    let outcome = act(&region);
    device.plan_crash(None);
    region.close()?;
    match outcome {
        Ok(()) => Ok(None),
        Err(error) if crashed(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

fn is(region: &PmRegion, kvs: &Kvs, model: &Model) -> Result<bool> {
    let (offset, bytes) = kvs.table();
    Ok(model.equals(&region.read_vec(offset, bytes as usize)?))
}

/// Makes a store in a new file at `path`, crashes it in a batch and in the recovery, and shows that
/// what is there is what was committed.
///
/// # Errors
/// What must not be there, or what the library refuses.
pub fn show(path: &Path, seed: u64, say: &mut dyn FnMut(String)) -> Result<()> {
    let device = interpreter();
    say(format!("device: {}; PM: {}", device.name(), path.display()));
    let bytes = region_bytes(SET_BITS, BATCH as u32).next_multiple_of(4096);
    let region = PmRegion::map(device as Rc<dyn Device>, path, bytes, Access::Create)?;
    let kvs = Kvs::create(&region, SET_BITS, BATCH as u32, kvs_kernels())?;
    let mut model = Model::new(SET_BITS);
    for batch in 1..=COMMITTED {
        kvs.set(&Sets::new(region.device(), &pairs_of(seed, batch))?)?;
        model.apply(&pairs_of(seed, batch));
    }
    ensure!(is(&region, &kvs, &model)?, "the table is not what {COMMITTED} batches make");
    drop(kvs);
    region.close()?;
    say(format!("{COMMITTED} batches of {BATCH} SETs are committed; the table is the oracle's"));

    let next = pairs_of(seed, COMMITTED + 1);
    let set = |region: &PmRegion| -> Result<()> {
        let (kvs, _) = Kvs::open(region, kvs_kernels())?;
        kvs.set(&Sets::new(region.device(), &next)?)?;
        Ok(())
    };
    let moment = Moment::Launch { after: BEFORE, stop: Stop::PersistEvent(20 + seed % 40) };
    let crash = after_a_reboot(path, Some(CrashPlan { moment, choice: Choice::Seeded(seed) }), set)?;
    say(format!("batch {}: {}", COMMITTED + 1, crash.context("the batch ended before its crash")?));

    let recover = |region: &PmRegion| Kvs::open(region, kvs_kernels()).map(drop);
    // The log's mount comes first, the undo second.
    let moment = Moment::Launch { after: 1, stop: Stop::PersistEvent(1 + seed % 3) };
    let crash = after_a_reboot(path, Some(CrashPlan { moment, choice: Choice::Seeded(seed + 1) }), recover)?;
    say(format!("its recovery: {}", crash.context("the recovery ended before its crash")?));

    let mut told = String::new();
    after_a_reboot(path, None, |region| {
        let (kvs, outcome) = Kvs::open(region, kvs_kernels())?;
        ensure!(matches!(outcome, Outcome::Undone { .. }), "nothing was undone: {outcome:?}");
        ensure!(is(region, &kvs, &model)?, "the table is not what was committed");
        told = format!("opened again: batch {} is undone; the table is the oracle's, byte by byte", COMMITTED + 1);
        Ok(())
    })?;
    say(told);
    after_a_reboot(path, None, set)?;
    model.apply(&next);
    after_a_reboot(path, None, |region| {
        let (kvs, _) = Kvs::open(region, kvs_kernels())?;
        ensure!(is(region, &kvs, &model)?, "the table is not what was committed");
        Ok(())
    })?;
    say(format!("batch {} again: it is committed, and there after a reboot", COMMITTED + 1));
    Ok(())
}
