//! Elements in the pool. Each has a number, which rises from the front to the end; between two
//! there is room for others, and when there is none left, all are numbered anew.

use nearpm::prelude::*;

use super::release;
use crate::redis::db::{ELEMENT, List};
use crate::store::Blob;

/// From one number to the next, so that two billion elements can come at one end.
const STEP: i64 = 1 << 32;

/// Bytes that an element counts for.
fn weight(element: &[u8]) -> u64 {
    ELEMENT + element.len() as u64
}

/// Numbers all elements anew.
fn renumber(tx: &mut impl Store, body: Ptr<List>) -> Result<(), Error> {
    let rows = body.iter(tx)?.collect::<Result<Vec<_>, _>>()?;
    for (number, _) in &rows {
        body.remove(tx, number)?;
    }
    let first = -(rows.len() as i64) / 2;
    for (index, (_, element)) in rows.into_iter().enumerate() {
        body.insert(tx, &((first + index as i64) * STEP), element)?;
    }
    Ok(())
}

/// The number behind the last element, or in front of the first.
fn next_number(tx: &mut impl Store, body: Ptr<List>, left: bool) -> Result<i64, Error> {
    let step = if left { -STEP } else { STEP };
    for _ in 0..2 {
        let edge = if left { body.entry_at(tx, 0)? } else { body.last(tx)? };
        let Some((edge, _)) = edge else { return Ok(0) };
        if let Some(next) = edge.checked_add(step) {
            return Ok(next);
        }
        renumber(tx, body)?;
    }
    Err(Error::Corrupt { what: "the elements of a list cannot be numbered", offset: Ptr::offset(body) })
}

/// Puts elements at an end, one after the other; gives the bytes that they count for.
pub fn push_all(tx: &mut impl Store, body: Ptr<List>, left: bool, elements: &[Vec<u8>]) -> Result<u64, Error> {
    let mut bytes = 0;
    for element in elements {
        let number = next_number(tx, body, left)?;
        let blob = Blob::make(tx, element)?;
        body.insert(tx, &number, blob)?;
        bytes += weight(element);
    }
    Ok(bytes)
}

/// Takes an element from an end; gives it and the bytes that it counted for.
pub fn pop_one(tx: &mut impl Store, body: Ptr<List>, left: bool) -> Result<Option<(Vec<u8>, u64)>, Error> {
    let edge = if left { body.entry_at(tx, 0)? } else { body.last(tx)? };
    let Some((number, element)) = edge else { return Ok(None) };
    body.remove(tx, &number)?;
    let value = element.read(tx)?;
    let bytes = release(tx, element)?;
    Ok(Some((value, bytes)))
}

/// Puts an element in front of the one at a place; gives the bytes that it counts for.
pub fn insert(tx: &mut impl Store, body: Ptr<List>, place: u64, element: &Vec<u8>) -> Result<u64, Error> {
    let length = body.len(tx)?;
    if place == 0 || place >= length {
        return push_all(tx, body, place == 0, std::slice::from_ref(element));
    }
    let mut number = None;
    while number.is_none() {
        let mut around = body.iter_from(tx, place - 1)?;
        let before = around.next().transpose()?.map_or(0, |(number, _)| number);
        let behind = around.next().transpose()?.map_or(0, |(number, _)| number);
        drop(around);
        let middle = ((i128::from(before) + i128::from(behind)) >> 1) as i64;
        if middle > before && middle < behind {
            number = Some(middle);
        } else {
            renumber(tx, body)?;
        }
    }
    let blob = Blob::make(tx, element)?;
    body.insert(tx, &number.unwrap_or_default(), blob)?;
    Ok(weight(element))
}

/// Gives the element at a place another value; gives the bytes that came and went.
pub fn replace(tx: &mut impl Store, body: Ptr<List>, place: u64, element: &[u8]) -> Result<(u64, u64), Error> {
    let Some((number, old)) = body.entry_at(tx, place)? else { return Ok((0, 0)) };
    let blob = Blob::make(tx, element)?;
    body.insert(tx, &number, blob)?;
    Ok((weight(element), release(tx, old)?))
}

/// Removes elements by their numbers; gives the bytes that they counted for.
pub fn remove(tx: &mut impl Store, body: Ptr<List>, numbers: &[i64]) -> Result<u64, Error> {
    let mut bytes = 0;
    for number in numbers {
        if let Some(element) = body.remove(tx, number)? {
            bytes += release(tx, element)?;
        }
    }
    Ok(bytes)
}
