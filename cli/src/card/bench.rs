//! `nearpm card bench`: how long single accesses take, on the transport's clock.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use nearpm_driver::Card;
use nearpm_driver::card::PoolMapping;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::registers as reg;
use nearpm_statistics::quantile;

use super::transport::Opened;
use nearpm_text::Table;

/// Page that commands are posted on.
const PAGE: usize = 1;

/// Bytes of a mapping whose commands write nothing.
const MAPPED_BYTES: u64 = 64 << 10;

/// A mapping whose commands write nothing. It lies where pools come last: on a card that is shared,
/// none of it may be another process's.
pub fn mapping(card: &Card) -> PoolMapping {
    let (base, bytes) = (POOLS_BASE.max(card.pm_bytes().saturating_sub(MAPPED_BYTES)), MAPPED_BYTES);
    PoolMapping { pool: u32::MAX - 1, thread: 0, base, bytes, ring: 0, ring_bytes: 4096, committed: 0 }
}

/// The command that does nothing but wait for those before it.
pub fn fence(mapping: &PoolMapping) -> Command {
    Command { opcode: Opcode::Fence as u8, pool: mapping.pool, thread: mapping.thread, ..Command::default() }
}

/// Median and 99th percentile of some times, in nanoseconds.
fn summary(mut times: Vec<u64>) -> (u64, u64) {
    (quantile(&mut times, 0.5), quantile(&mut times, 0.99))
}

/// Measures.
///
/// # Errors
/// If the card fails.
pub fn run(opened: &Opened, count: u32) -> Result<String> {
    ensure!(count > 0, "measure something");
    let card = &opened.card;
    let mapping = mapping(card);
    card.map_pool(mapping)?;
    let function = card.function();
    let number = card.registers().read(reg::DEVICE_NUMBER);
    let fence = fence(&mapping);
    let measure = |what: &mut dyn FnMut() -> Result<()>| -> Result<(u64, u64)> {
        let mut times = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let start = function.now_ns();
            what()?;
            times.push(function.now_ns() - start);
        }
        Ok(summary(times))
    };
    let mut table = Table::new(&["access", "median ns", "99 % ns"]);
    let mut row = |name: &str, (median, high): (u64, u64)| {
        table.row([name.to_owned(), median.to_string(), high.to_string()]);
    };
    row(
        "register read",
        measure(&mut || {
            card.registers().read(reg::ID);
            Ok(())
        })?,
    );
    row(
        "register write",
        measure(&mut || {
            card.registers().write(reg::DEVICE_NUMBER, number);
            Ok(())
        })?,
    );
    row("doorbell: a command posted, with its fence", measure(&mut || Ok(card.post(PAGE, fence, false).map(drop)?))?);
    row("status line", measure(&mut || Ok(card.push(PAGE).map(drop)?))?);
    let mut accepted = || {
        let ticket = card.post(PAGE, fence, false)?;
        Ok(card.read_back(ticket).map(drop)?)
    };
    row("a command posted and accepted", measure(&mut accepted)?);
    let mut completed = || {
        let ticket = card.post(PAGE, fence, true)?;
        Ok(card.wait(ticket)?)
    };
    row("a command posted and completed", measure(&mut completed)?);
    card.drain(PAGE)?;
    card.unmap_pool(mapping.pool, mapping.thread)?;
    let mut text = String::new();
    writeln!(text, "{}, {count} of each; {}\n\n{table}", opened.what, opened.clock)?;
    Ok(text)
}
