//! A whole value outside of the pool: what COPY, DUMP, RESTORE and commands that store their result
//! go through.

use nearpm::prelude::*;

use super::db::{Db, ELEMENT, Found, Hash, Kind, List, Outcome, Set, ZSet, head};
use super::elements::{hash, list, zset};
use super::rank::ScoreKey;
use crate::store::{Item, Name, item};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Bytes.
    String(Vec<u8>),
    /// Elements in their order.
    List(Vec<Vec<u8>>),
    /// Members.
    Set(Vec<Vec<u8>>),
    /// Fields with their values.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Members with their scores.
    ZSet(Vec<(Vec<u8>, f64)>),
}

fn body<T: Persistent>(head: &Item) -> Result<Ptr<T>, Error> {
    Ptr::from_offset(head.extra).ok_or(Error::NotAllocated { offset: head.extra })
}

impl Value {
    /// What a key leads to.
    pub fn read(from: &impl Load, (place, head): (Ptr<Item>, Item)) -> Result<Value, Error> {
        Ok(match Kind::of(&head)? {
            Kind::String => {
                let mut bytes = Vec::with_capacity(head.length as usize);
                item::append_value(from, place, head.length, &mut bytes)?;
                Value::String(bytes)
            }
            Kind::List => {
                let elements = body::<List>(&head)?.iter(from)?.map(|entry| entry?.1.read(from));
                Value::List(elements.collect::<Result<_, _>>()?)
            }
            Kind::Set => {
                let members = body::<Set>(&head)?.iter(from)?.map(|entry| Ok(entry?.0.bytes));
                Value::Set(members.collect::<Result<_, Error>>()?)
            }
            Kind::Hash => {
                let fields = body::<Hash>(&head)?.iter(from)?.map(|entry| {
                    let (name, value) = entry?;
                    Ok((name.bytes, value.read(from)?))
                });
                Value::Hash(fields.collect::<Result<_, Error>>()?)
            }
            Kind::ZSet => {
                let members = body::<ZSet>(&head)?.order().iter(from)?.map(|entry| {
                    let ScoreKey { score, member } = entry?.0;
                    Ok((member, score))
                });
                Value::ZSet(members.collect::<Result<_, Error>>()?)
            }
        })
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        match self {
            Value::String(_) => 1,
            Value::List(rows) | Value::Set(rows) => rows.len(),
            Value::Hash(rows) => rows.len(),
            Value::ZSet(rows) => rows.len(),
        }
    }

    /// Puts it under a key, in the place of what that has. A collection without elements leaves
    /// nothing.
    pub fn store(&self, db: &Db<'_>, tx: &mut impl Store, name: &Name, expires: u64) -> Outcome {
        if self.len() == 0 {
            db.remove(tx, name)?;
            return Ok(());
        }
        match self {
            Value::String(bytes) => {
                db.put(tx, name, head(Kind::String, expires, 0), [bytes, b""])?;
            }
            Value::List(elements) => {
                let Found { item, body } = db.new_collection::<List>(tx, name, Kind::List, expires)?;
                let bytes = list::push_all(tx, body, false, elements)?;
                db.resize(tx, name, item, (bytes, 0), 1)?;
            }
            Value::Set(members) => {
                let Found { item, body } = db.new_collection::<Set>(tx, name, Kind::Set, expires)?;
                let mut bytes = 0;
                for member in members {
                    if body.insert(tx, &Name::of(member), 0)?.is_none() {
                        bytes += ELEMENT + member.len() as u64;
                    }
                }
                db.resize(tx, name, item, (bytes, 0), 1)?;
            }
            Value::Hash(fields) => {
                let Found { item, body } = db.new_collection::<Hash>(tx, name, Kind::Hash, expires)?;
                let (mut more, mut less) = (0, 0);
                for (field, value) in fields {
                    let (_, bytes) = hash::put(tx, body, field, value)?;
                    (more, less) = (more + bytes.0, less + bytes.1);
                }
                db.resize(tx, name, item, (more, less), 1)?;
            }
            Value::ZSet(members) => {
                let Found { item, body } = db.new_collection::<ZSet>(tx, name, Kind::ZSet, expires)?;
                let mut bytes = 0;
                for (member, score) in members {
                    if zset::put(tx, body, member, *score)? {
                        bytes += zset::weight(member);
                    }
                }
                db.resize(tx, name, item, (bytes, 0), 1)?;
            }
        }
        Ok(())
    }
}
