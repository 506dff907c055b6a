//! How fast kernels persist: streams, figure 3, latency.

use anyhow::Result;
use nearpm_gpu::{Launch, ObjectKind};

use super::{Bench, verify, words};
use crate::kernels::micro;
use crate::pattern::pattern;
use crate::report::Report;

const GROUP: &str = "Stream";

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let bytes: u64 = bench.scale.pick(1 << 16, 1 << 30);
    let region = bench.region(bytes + (4 << 20))?;
    let data = region.add("stream", ObjectKind::Data, bytes, |_| Ok(()))?;
    let address = region.address(data.offset);
    let check = |what: &str| {
        let stored = region.read_vec(data.offset, bytes as usize)?;
        verify(what, words(&stored), (0..(bytes / 4) as u32).map(|place| pattern(place, bench.last())))
    };
    for (blocks, threads) in bench.scale.pick(vec![(4, 64)], vec![(132, 1024), (1056, 256), (4096, 256)]) {
        let launch = |seed: u32| Launch::new(blocks, threads, [address.into(), bytes.into(), seed.into()]);
        let times =
            bench.times(|_| Ok(()), |seed| bench.device.launch(micro().kernel("stream_persist"), &launch(seed)))?;
        check("stream persist")?;
        let name = format!("persist, {blocks} x {threads} threads, 16 B each");
        report.rate(GROUP, name, bytes as f64 / 1e9, "GB/s", &times, Some(">= 47 (link 52.6)"));
    }
    // Figure 3: a fence behind every 8 bytes, by the number of threads.
    for threads in bench.scale.pick(vec![64u32], vec![1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18]) {
        let part = bench.scale.pick(bytes / 4, (u64::from(threads) * 8 * 512).min(bytes));
        let launch = |seed: u32| Launch::over(threads.into(), 256, [address.into(), part.into(), seed.into()]);
        let times =
            bench.times(|_| Ok(()), |seed| bench.device.launch(micro().kernel("persist_words"), &launch(seed)))?;
        let stored = region.read_vec(data.offset, part as usize)?;
        let expected = (0..(part / 4) as u32).map(|place| pattern(place, bench.last()));
        verify("persist of 8 bytes", words(&stored), expected)?;
        report.rate(GROUP, format!("8 B persists, {threads} threads"), part as f64 / 1e9, "GB/s", &times, None);
    }
    let sink = bench.buffer(4)?;
    for (arrived, name, aim) in [(0u32, "ordered", "<= 0.6 us"), (1, "arrived", "<= 1.4 us")] {
        let rounds = bench.scale.pick(32u32, 4096);
        let launch = Launch::new(1, 1, [address.into(), rounds.into(), arrived.into(), sink.address().into()]);
        let times = bench.times(|_| Ok(()), |_| bench.device.launch(micro().kernel("latency"), &launch))?;
        report.step(GROUP, format!("persist by one thread, {name}"), &times, rounds, Some(aim));
    }
    Ok(())
}
