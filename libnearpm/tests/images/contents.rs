//! What the pools of the images hold: one of each collection, changed by numbered transactions.

use nearpm::prelude::*;

/// The root of such a pool.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Root {
    /// The last transaction that it has seen.
    number: u64,
    numbers: PVec<u32>,
    text: PString,
    table: PHashMap<u64, u32>,
    ordered: PBTreeMap<u32, u64>,
    queue: PQueue<u64>,
}

/// Transaction `number`, from 1 on: objects are made, changed and freed, small ones and such as
/// need many log entries.
pub fn change(tx: &mut impl Store, number: u64) -> Result<(), Error> {
    let root = tx.root_or_zeroed::<Root>()?;
    tx.set(root.number(), number)?;
    root.table().insert(tx, &(7 * number), number as u32)?;
    root.table().remove(tx, &(7 * number.saturating_sub(4)))?;
    root.ordered().insert(tx, &(37 * number as u32 % 101), number)?;
    root.text().push_str(tx, &format!("ä{number}"))?;
    root.queue().push(tx, number)?;
    if number.is_multiple_of(3) {
        root.queue().pop(tx)?;
        root.ordered().remove(tx, &(37 * (number as u32 - 2) % 101))?;
    }
    match number % 5 {
        0 => root.numbers().clear(tx),
        3 => root.numbers().extend(tx, &[number as u32; 300]),
        _ => root.numbers().push(tx, number as u32),
    }
}

/// Everything that a pool holds, in a line.
pub fn read(from: &impl Load) -> Result<String, Error> {
    let Some(root) = from.root::<Root>()? else { return Ok("nothing".to_owned()) };
    let numbers = root.numbers().to_vec(from)?;
    let mut table = root.table().iter(from)?.collect::<Result<Vec<_>, _>>()?;
    table.sort_unstable();
    let ordered = root.ordered().iter(from)?.collect::<Result<Vec<_>, _>>()?;
    let queue = root.queue().iter(from)?.collect::<Result<Vec<_>, _>>()?;
    let runs: Vec<String> = numbers.chunk_by(|a, b| a == b).map(|run| format!("{} x {}", run.len(), run[0])).collect();
    Ok(format!(
        "{}; numbers {runs:?}; text {:?}; table {table:?}; ordered {ordered:?}; queue {queue:?}",
        from.get(root.number())?,
        root.text().read(from)?
    ))
}
