//! The layout of a type, as a number.

use std::any::TypeId;
use std::cell::RefCell;

use super::Persistent;

/// What a type is made of: names, sizes, places of fields, and all of that of the types that it
/// refers to, as one number. Types that refer to each other in a circle are fine.
pub struct Description {
    hash: u64,
    /// Types that were referred to, in the order in which they were met.
    met: Vec<TypeId>,
    /// Of those the ones that have not been described.
    waiting: Vec<fn(&mut Description)>,
}

impl Description {
    /// FNV-1a (RFC 9923): it is kept in pools, so that it must stay what it is.
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    /// A type of a name and so many bytes or elements.
    pub fn structure(&mut self, name: &str, size: usize) {
        self.text(name);
        self.bytes(&(size as u64).to_le_bytes());
    }

    /// A field of the type that was begun last.
    pub fn field<T: Persistent>(&mut self, name: &str, offset: usize) {
        self.structure(name, offset);
        T::describe(self);
    }

    /// A type that is pointed to.
    pub fn refer<T: Persistent>(&mut self) {
        let id = TypeId::of::<T>();
        let index = self.met.iter().position(|&met| met == id).unwrap_or_else(|| {
            self.met.push(id);
            self.waiting.push(T::describe);
            self.met.len() - 1
        });
        self.bytes(&(index as u64).to_le_bytes());
    }
}

/// The layout of a type and of everything that it refers to, as a number: two programs whose types
/// differ have different ones, but for a chance of 2^-64.
pub fn fingerprint<T: Persistent>() -> u64 {
    thread_local!(static KNOWN: RefCell<Vec<(TypeId, u64)>> = const { RefCell::new(Vec::new()) });
    let id = TypeId::of::<T>();
    KNOWN.with_borrow_mut(|known| match known.iter().find(|(known, _)| *known == id) {
        Some(&(_, fingerprint)) => fingerprint,
        None => {
            let fingerprint = describe::<T>();
            known.push((id, fingerprint));
            fingerprint
        }
    })
}

fn describe<T: Persistent>() -> u64 {
    let mut description = Description { hash: 0xcbf2_9ce4_8422_2325, met: Vec::new(), waiting: Vec::new() };
    description.refer::<T>();
    while let Some(describe) = description.waiting.pop() {
        describe(&mut description);
    }
    description.hash
}
