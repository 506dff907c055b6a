//! Logs of several GPUs under one commit record, against those of one.

use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, ensure};
use nearpm_gpm::{Batch, Form, Log, Shape};
use nearpm_gpu::{Device, Launch, Measured, Medium, PmRegion};
use nearpm_statistics::median_time;

use crate::kernels::micro;
use crate::pattern::pattern;
use crate::report::Report;

const GROUP: &str = "Several GPUs under one commit record";
const BLOCK: u32 = 256;

/// Measures batches of inserts: on the first GPU alone, and on all of them.
///
/// # Errors
/// What a device refuses; entries that are not there.
pub fn measure(devices: &[Rc<dyn Device>], full: bool, repeats: usize, report: &mut Report) -> Result<()> {
    let (threads, rounds) = if full { (1u32 << 18, 256u32) } else { (512, 4) };
    let measured = devices[0].time(&mut || Ok(()))?.source == Measured::Device;
    let mut rates = Vec::new();
    for count in [1, devices.len()] {
        let rate = batches(&devices[..count], threads, rounds, repeats)?;
        rates.push(rate);
        if measured {
            report.value(GROUP, format!("HCL one fence (12 B + seal 4 B), {count} GPUs"), rate, "M/s", None);
        } else {
            // How long an interpreter takes says nothing: what is told is that the entries were
            // there.
            let entries = f64::from(threads) * f64::from(rounds) * count as f64;
            report.value(GROUP, format!("entries looked at, {count} GPUs"), entries, "", None);
        }
    }
    if !measured {
        return Ok(());
    }
    let aim = if devices.len() == 2 { Some(">= 1.8") } else { None };
    report.value(GROUP, format!("{} GPUs over one", devices.len()), rates[1] / rates[0], "x", aim);
    Ok(())
}

/// Millions of inserts a second of whole batches: begun, inserted by all GPUs, committed.
fn batches(devices: &[Rc<dyn Device>], threads: u32, rounds: u32, repeats: usize) -> Result<f64> {
    let each = u64::from(threads) * u64::from(rounds);
    let shape = Shape { blocks: threads / BLOCK, threads: BLOCK };
    let mut regions = Vec::new();
    for device in devices {
        let medium = Medium::memfd((each * 16 + (4 << 20)).next_multiple_of(1 << 21))?;
        let region = PmRegion::create_in(device.clone(), medium)?;
        Log::create_hcl(&region, "log", shape, 12, rounds, Form::Sealed)?;
        regions.push(region);
    }
    let batch = Batch::create_over(&regions.iter().collect::<Vec<_>>(), "batch")?;
    let logs = regions.iter().map(|region| Log::open(region, "log")).collect::<Result<Vec<_>, _>>()?;
    let logs: Vec<&Log> = logs.iter().collect();
    let insert = |seed: u32| -> Result<()> {
        for log in &logs {
            let arguments = [log.address().into(), rounds.into(), seed.into()];
            let launch = Launch::new(shape.blocks, shape.threads, arguments);
            log.region().device().launch(micro().kernel("hcl_sealed"), &launch)?;
        }
        Ok(())
    };
    let mut times = Vec::new();
    for repeat in 0..=repeats as u32 {
        devices.iter().try_for_each(|device| device.synchronize())?;
        let started = Instant::now();
        let active = batch.begin(&logs)?;
        insert(repeat)?;
        active.commit()?;
        times.push(started.elapsed());
    }
    times.remove(0);
    // What was inserted is looked at before its commit clears it.
    let active = batch.begin(&logs)?;
    insert(77)?;
    for log in &logs {
        log.region().device().synchronize()?;
        let (mut count, mut wrong) = (0, 0u64);
        log.visit(&mut |thread, slot, words| {
            let place = thread.wrapping_mul(rounds).wrapping_add(slot).wrapping_mul(3);
            count += 1;
            wrong += u64::from(!(place..).zip(words).all(|(place, &word)| word == pattern(place, 77)));
        })?;
        ensure!(count == each && wrong == 0, "{count} of {each} entries are there, {wrong} of them wrong");
    }
    active.commit()?;
    Ok(each as f64 * devices.len() as f64 / 1e6 / median_time(&times).as_secs_f64())
}
