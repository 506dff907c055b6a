//! Enums in a pool: the fields of the variant, then its number.

#![allow(unsafe_code)]

use std::fmt;

use super::layout::Description;
use super::persistent::{NoFields, bytes_of, bytes_of_mut, value_of, zero};
use super::{Persistent, Store};
use crate::error::Error;

/// An enum whose variants have fields that may persist. Implement it by
/// `#[derive(PersistentEnum)]`; it lies in a pool as a [`PEnum`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no enum that a pool can hold",
    note = "an enum of this program gets `#[derive(Clone, Copy, PersistentEnum)]`"
)]
pub trait PersistentEnum: Copy + 'static {
    /// Words that have room for the fields of every variant.
    #[doc(hidden)]
    type Room: Persistent;
    /// Whether a field owns something.
    #[doc(hidden)]
    const OWNS: bool;

    /// Says what the variants are.
    #[doc(hidden)]
    fn describe(to: &mut Description);
    /// Puts the fields down, and gives the number of the variant.
    #[doc(hidden)]
    fn put(self, fields: &mut FieldBytes<'_>) -> u64;
    /// The variant with a number, of fields that were put down; `None` if there is none.
    #[doc(hidden)]
    fn take(variant: u64, fields: &mut FieldBytes<'_>) -> Option<Self>;
    /// Frees what the fields own.
    #[doc(hidden)]
    fn free<S: Store>(self, tx: &mut S) -> Result<(), Error>;
}

/// The bytes of a variant's fields, one behind the other.
#[doc(hidden)]
pub struct FieldBytes<'b>(&'b mut [u8]);

impl<'b> FieldBytes<'b> {
    fn next(&mut self, bytes: usize) -> &'b mut [u8] {
        let (field, rest) = std::mem::take(&mut self.0).split_at_mut(bytes);
        self.0 = rest;
        field
    }

    /// Puts a field down.
    pub fn put<T: Persistent>(&mut self, value: T) {
        self.next(size_of::<T>()).copy_from_slice(bytes_of(std::slice::from_ref(&value)));
    }

    /// The next field.
    pub fn take<T: Persistent>(&mut self) -> T {
        let field = self.next(size_of::<T>());
        let value = value_of(|bytes| {
            bytes.copy_from_slice(field);
            Ok(())
        });
        value.unwrap_or_else(|_| zero())
    }
}

/// An enum in a pool, with the fields of its variants. Bytes may say a number that is none of its
/// variants, so that reading one is a question. Zeros are the first variant.
///
/// ```
/// use nearpm::prelude::*;
/// use nearpm::typed::PEnum;
/// use nearpm::PersistentEnum;
///
/// #[derive(Clone, Copy, PersistentEnum)]
/// enum Payment {
///     Open,
///     Cash { cents: u64 },
///     Card { number: [u8; 16], name: PString },
/// }
///
/// #[derive(Clone, Copy, Persistent)]
/// #[repr(C)]
/// struct Bill {
///     payment: PEnum<Payment>,
/// }
///
/// fn pay(tx: &mut impl Store, bill: Ptr<Bill>, cents: u64) -> Result<(), Error> {
///     match tx.get(bill.payment())?.get() {
///         Ok(Payment::Open) => tx.set(bill.payment(), Payment::Cash { cents }.into()),
///         Ok(_) => Err(Error::abort("it is paid")),
///         Err(number) => Err(Error::abort(format!("there is no payment of kind {number}"))),
///     }
/// }
/// ```
#[repr(C)]
pub struct PEnum<E: PersistentEnum> {
    fields: E::Room,
    /// Behind the fields: whether a type has a size is asked of its last field, and an enum with
    /// pointers to itself has no answer yet while the compiler looks for that of its fields.
    variant: u64,
}

impl<E: PersistentEnum> PEnum<E> {
    /// The variant with its fields.
    ///
    /// # Errors
    /// The number is that of no variant.
    pub fn get(self) -> Result<E, u64> {
        let mut fields = [self.fields];
        E::take(self.variant, &mut FieldBytes(bytes_of_mut(&mut fields))).ok_or(self.variant)
    }
}

impl<E: PersistentEnum> From<E> for PEnum<E> {
    fn from(value: E) -> PEnum<E> {
        let mut fields = [zero::<E::Room>()];
        let variant = value.put(&mut FieldBytes(bytes_of_mut(&mut fields)));
        PEnum { fields: fields[0], variant }
    }
}

impl<E: PersistentEnum> Clone for PEnum<E> {
    fn clone(&self) -> PEnum<E> {
        *self
    }
}

impl<E: PersistentEnum> Copy for PEnum<E> {}

impl<E: PersistentEnum + fmt::Debug> fmt::Debug for PEnum<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PEnum").field(&self.get()).finish()
    }
}

impl<E: PersistentEnum + PartialEq> PartialEq for PEnum<E> {
    fn eq(&self, other: &PEnum<E>) -> bool {
        self.get() == other.get()
    }
}

// SAFETY: every pattern is a value, as of both parts; that there is no padding is checked where the
// type is used.
unsafe impl<E: PersistentEnum> Persistent for PEnum<E> {
    type Fields = NoFields;
    const OWNS: bool = E::OWNS;
    const CHECKED: () = {
        let () = E::Room::CHECKED;
        assert!(
            size_of::<Self>() == 8 + size_of::<E::Room>() && align_of::<Self>() == 8,
            "the room for the fields of an enum is words of eight bytes"
        );
    };
    fn describe(to: &mut Description) {
        to.structure("enum", size_of::<Self>());
        E::describe(to);
    }
    fn release<S: Store>(self, tx: &mut S) -> Result<(), Error> {
        match self.get() {
            Ok(value) if E::OWNS => value.free(tx),
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "serde")]
impl<E: PersistentEnum + serde::Serialize> serde::Serialize for PEnum<E> {
    fn serialize<Z: serde::Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
        let unknown = |number| serde::ser::Error::custom(format!("{number} is the number of no variant"));
        self.get().map_err(unknown)?.serialize(to)
    }
}

#[cfg(feature = "serde")]
impl<'de, E: PersistentEnum + serde::Deserialize<'de>> serde::Deserialize<'de> for PEnum<E> {
    fn deserialize<Z: serde::Deserializer<'de>>(from: Z) -> Result<Self, Z::Error> {
        E::deserialize(from).map(Self::from)
    }
}
