//! Who has stored something in a pool, by its root.

use std::collections::BTreeMap;

use super::{Image, Object, Tables};
use crate::error::Error;
use crate::pmdk_format::{HEAD_BYTES, Head, Header};
use crate::typed::root_type;

/// The objects of a type number.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// The number.
    pub number: u64,
    /// How many objects.
    pub objects: u64,
    /// Bytes of them that the program may use.
    pub bytes: u64,
}

/// Whose data a pool holds.
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "of", rename_all = "kebab-case"))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contents {
    /// Nobody's: it has no root.
    NoRoot,
    /// A program's for PMDK's libpmemobj.
    Pmdk {
        /// Name of the layout.
        layout: String,
        /// Offset of the program's root object, 0 for none.
        root: u64,
        /// Its bytes, as the program asked for.
        root_bytes: u64,
        /// Its other objects by their type numbers, rising.
        types: Vec<TypeInfo>,
    },
    /// A Rust program's, with a typed root.
    Rust {
        /// Name of the root's type, without its path.
        root_type: String,
        /// Its bytes.
        root_bytes: u64,
    },
    /// A program's whose root says nothing of itself.
    Untyped {
        /// Bytes from the root to the end of its object.
        root_bytes: u64,
    },
}

impl Image {
    /// Whose data it is, with the tables of the recovered pool.
    pub(super) fn contents(&self, tables: &Tables) -> Result<Contents, Error> {
        let root = tables.root;
        if root == 0 {
            return Ok(Contents::NoRoot);
        }
        let holds = |object: &Object| (object.offset..object.offset + object.bytes).contains(&root);
        let Some(object) = tables.objects().find(holds) else { return Ok(Contents::Untyped { root_bytes: 0 }) };
        let root_bytes = object.offset + object.bytes - root;
        let mut start = vec![0; root_bytes.min(HEAD_BYTES as u64) as usize];
        tables.read(&self.medium, root, &mut start);
        if let Some(head) = Head::read(&start, root).map_err(|problem| problem.at(&self.location))? {
            let types = self.types(tables, root, head.root);
            return Ok(Contents::Pmdk { layout: head.layout, root: head.root, root_bytes: head.root_bytes, types });
        }
        Ok(match root_type(&start) {
            Some((root_type, root_bytes)) => Contents::Rust { root_type, root_bytes },
            None => Contents::Untyped { root_bytes },
        })
    }

    /// The objects of a PMDK program but its root, by type number.
    fn types(&self, tables: &Tables, head: u64, root: u64) -> Vec<TypeInfo> {
        let mut types = BTreeMap::<u64, TypeInfo>::new();
        for object in tables.objects().filter(|object| object.offset != head && object.bytes >= Header::BYTES) {
            let header = |offset| {
                let mut bytes = [0; Header::BYTES as usize];
                tables.read(&self.medium, offset, &mut bytes);
                Header::from_bytes(&bytes)
            };
            let ahead = header(object.offset).ahead();
            if ahead + Header::BYTES > object.bytes || object.offset + ahead + Header::BYTES == root {
                continue;
            }
            let Header { type_num: number, .. } = header(object.offset + ahead);
            let of_type = types.entry(number).or_insert(TypeInfo { number, objects: 0, bytes: 0 });
            of_type.objects += 1;
            of_type.bytes += header(object.offset + ahead).bytes();
        }
        types.into_values().collect()
    }
}
