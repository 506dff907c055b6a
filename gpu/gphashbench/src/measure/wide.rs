//! Keys of 16 to 128 bytes (figure 12).

use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gphash::{Keys, Op, Operations, Outcome, Table};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::Buffer;

use super::{Bench, SUBJECTS, Subject, VALUE, region};

/// Insert and search, by bytes of a key.
pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for key_bytes in [16, 32, 64, 128] {
        SUBJECTS.iter().try_for_each(|subject| of_bytes(bench, subject, key_bytes, report))?;
    }
    Ok(())
}

/// The words of a record's key.
pub(super) fn words_of(record: u32, key_bytes: u32) -> impl Iterator<Item = u64> {
    let word = move |word: u64| (u64::from(record) << 8 | word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1..=u64::from(key_bytes) / 8).map(word)
}

fn of_bytes(bench: &Bench, subject: &Subject, key_bytes: u32, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(300, 1 << 22);
    let layout = subject.layout(bench, u64::from(pairs) * 10 / 8, VALUE).with_keys(Keys::Fixed(key_bytes));
    let region = region(bench, &layout)?;
    let mut table = Table::create(&region, "table", &layout, 1)?;
    table.sort_batches(pairs)?;
    let group = format!("keys of {key_bytes} B, {}: {pairs} pairs, values of {VALUE} B, load 0.8", subject.name);
    let most = subject.most_updates(&layout).min(1 << 20);
    let (mut inserting, mut searching) = (Duration::ZERO, Duration::ZERO);
    for first in (0..pairs).step_by(most as usize) {
        let count = most.min(pairs - first);
        let bytes: Vec<u8> =
            (first..first + count).flat_map(|record| words_of(record, key_bytes)).flat_map(u64::to_le_bytes).collect();
        let values = Buffer::new(&bench.device, u64::from(count) * u64::from(VALUE))?;
        // The value is the key, as often as it fits.
        let expected: Vec<u8> =
            bytes.chunks(key_bytes as usize).flat_map(|key| key.iter().copied().cycle().take(VALUE as usize)).collect();
        values.upload(&expected)?;
        let batch = Operations::of_stored(&bench.device, Op::Insert, count, &bytes)?.with_values(values);
        inserting += bench.time(&table, std::slice::from_ref(&batch))?;
        let done = table.outcomes(&batch)?.into_iter().all(|outcome| outcome == Outcome::Done);
        ensure!(done, "an insert was not done: no figure is printed");
        let found = Buffer::zeroed(&bench.device, u64::from(count) * u64::from(VALUE))?;
        let batch = batch.all(Op::Get).with_found(found);
        searching += bench.time(&table, std::slice::from_ref(&batch))?;
        let read = batch.found.as_ref().map_or(Ok(Vec::new()), Buffer::download)?;
        ensure!(read == expected, "a search read another value: no figure is printed");
    }
    let millions = f64::from(pairs) / 1e6;
    report.rate(&group, "insert with value, durable", millions, "M/s", &[inserting], None);
    report.rate(&group, "search with value, behind its insert", millions, "M/s", &[searching], None);
    Ok(())
}
