//! LCS: what two strings have in common.

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, SYNTAX, refuse};
use super::reply::Reply;
use super::strings::value;
use super::words::integer;
use crate::store::Name;

/// Cells of the table of LCS at most.
const MOST_CELLS: usize = 1 << 24;

/// LCS key key [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]
pub fn lcs(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let text = |word: &[u8]| match db.item(from, &Name::of(word))? {
        Some((_, head)) if head.tag != Kind::String as u32 => {
            refuse("ERR The specified keys must contain string values")
        }
        found => Ok(found.map_or(Ok(Vec::new()), |found| value(from, found))?),
    };
    let (a, b) = (text(&words[1])?, text(&words[2])?);
    let (mut length, mut places, mut least, mut with, mut rest) = (false, false, 0, false, words[3..].iter());
    while let Some(option) = rest.next() {
        match option.to_ascii_lowercase().as_slice() {
            b"len" => length = true,
            b"idx" => places = true,
            b"withmatchlen" => with = true,
            b"minmatchlen" => least = integer(rest.next().map_or_else(|| refuse(SYNTAX), Ok)?)?.max(0) as usize,
            _ => return refuse(SYNTAX),
        }
    }
    if length && places {
        return refuse("ERR If you want both the length and indexes, please just use IDX.");
    }
    if (a.len() + 1).saturating_mul(b.len() + 1) > MOST_CELLS {
        return refuse("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    }
    let width = b.len() + 1;
    let mut table = vec![0u32; (a.len() + 1) * width];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            table[i * width + j] = if a[i - 1] == b[j - 1] {
                table[(i - 1) * width + j - 1] + 1
            } else {
                table[(i - 1) * width + j].max(table[i * width + j - 1])
            };
        }
    }
    let total = table[a.len() * width + b.len()];
    if length {
        reply.integer(i64::from(total));
        return Ok(());
    }
    // Backwards through the table: bytes in common, and runs of them.
    let (mut i, mut j, mut common, mut runs) = (a.len(), b.len(), Vec::new(), Vec::<[usize; 3]>::new());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            common.push(a[i]);
            match runs.last_mut() {
                Some(run) if run[0] == i + 1 && run[1] == j + 1 => *run = [i, j, run[2] + 1],
                _ => runs.push([i, j, 1]),
            }
        } else if table[(i - 1) * width + j] > table[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    if !places {
        common.reverse();
        reply.bulk(&common);
        return Ok(());
    }
    runs.retain(|run| run[2] >= least);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(runs.len());
    for [i, j, run] in runs {
        reply.array(if with { 3 } else { 2 });
        for begin in [i, j] {
            reply.array(2);
            reply.integer(begin as i64);
            reply.integer((begin + run - 1) as i64);
        }
        if with {
            reply.integer(run as i64);
        }
    }
    reply.bulk(b"len");
    reply.integer(i64::from(total));
    Ok(())
}
