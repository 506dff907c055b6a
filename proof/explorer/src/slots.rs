//! Objects that come, grow, shrink and go, for the allocator's sake.

use nearpm::prelude::*;

use crate::explored::Explored;
use nearpm_subjects::Op;

/// Places for objects, each the offset of one or 0, and a word that transactions change in place.
pub type Stored = [u64; PLACES + 1];

const PLACES: usize = 5;

/// Sizes as programs ask for them: small ones of several classes, and now and then one of a whole
/// chunk.
const SIZES: [u64; 8] = [16, 24, 40, 64, 100, 200, 700, 9000];

/// Bytes of the objects, and the word.
pub type Model = (Vec<Option<Vec<u8>>>, u64);

/// Allocates, resizes, overwrites and frees.
pub struct Slots;

/// An object begins with its length.
const HEAD: u64 = 8;

fn place(at: Ptr<Stored>, slot: usize) -> u64 {
    Ptr::offset(at) + slot as u64 * 8
}

fn word(from: &impl Load, offset: u64) -> Result<u64, Error> {
    let mut bytes = [0; 8];
    from.read(offset, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn make(tx: &mut impl Store, data: &[u8]) -> Result<u64, Error> {
    let object = tx.alloc_bytes(HEAD + data.len() as u64)?;
    tx.write(object, &(data.len() as u64).to_le_bytes())?;
    tx.write(object + HEAD, data)?;
    Ok(object)
}

fn free(tx: &mut impl Store, object: u64) -> Result<(), Error> {
    if object == 0 { Ok(()) } else { tx.free_object(object) }
}

impl Explored for Slots {
    type Stored = Stored;
    type Model = Model;

    fn apply<S: Store>(tx: &mut S, at: Ptr<Stored>, model: &mut Model, op: &Op) -> Result<(), Error> {
        model.0.resize(PLACES, None);
        let slot = usize::from(op.key) % PLACES;
        let there = place(at, slot);
        let old = word(tx, there)?;
        let bytes = SIZES[op.value as usize % SIZES.len()] as usize;
        let fill = (op.value >> 8) as u8 | 1;
        match (op.kind % 6, &mut model.0[slot]) {
            (0 | 1, known) => {
                let data = vec![fill; bytes];
                let object = make(tx, &data)?;
                free(tx, old)?;
                tx.write(there, &object.to_le_bytes())?;
                *known = Some(data);
            }
            (2, known) => {
                free(tx, old)?;
                tx.write(there, &[0; 8])?;
                *known = None;
            }
            (3, Some(data)) => {
                // Another size, with the contents as far as they fit.
                data.resize(bytes, fill);
                let object = make(tx, data)?;
                tx.free_object(old)?;
                tx.write(there, &object.to_le_bytes())?;
            }
            (4, Some(data)) => {
                let start = usize::from(op.key) * 7 % data.len();
                let end = (start + bytes.min(24)).min(data.len());
                let part = &mut data[start..end];
                part.fill(fill);
                tx.write(old + HEAD + start as u64, part)?;
            }
            _ => {
                model.1 = u64::from(op.value) << 3 | 1;
                tx.write(place(at, PLACES), &model.1.to_le_bytes())?;
            }
        }
        Ok(())
    }

    fn objects((objects, _): &Model) -> Option<usize> {
        Some(objects.iter().flatten().count())
    }

    fn contents(from: &impl Load, at: Ptr<Stored>) -> Result<Model, Error> {
        let mut model = (Vec::new(), word(from, place(at, PLACES))?);
        for slot in 0..PLACES {
            let object = word(from, place(at, slot))?;
            let data = if object == 0 {
                None
            } else {
                let mut data = vec![0; word(from, object)?.min(1 << 16) as usize];
                from.read(object + HEAD, &mut data)?;
                Some(data)
            };
            model.0.push(data);
        }
        Ok(model)
    }
}
