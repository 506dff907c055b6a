//! Pointers.

#![allow(unsafe_code)]

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::ops::Deref;

use super::Persistent;

/// A pointer to a value in a pool: its offset, in 8 bytes, and its type. `Option<Ptr<T>>` has 8
/// bytes, too.
///
/// A pointer is a number and no more: it borrows nothing, may be copied and sent, and says nothing
/// about which pool it belongs to. What it points to is reached through a transaction, which checks
/// that the value lies in the pool's heap. A pointer to an object that was freed, or of another
/// pool, therefore gives an error or some other bytes as a value, but never leaves the pool.
///
/// It dereferences to [`Persistent::Fields`]: `person.name()` is the pointer to the field `name`,
/// where `person` is a `Ptr<Person>`. What a pointer can do by itself are functions, as
/// [`Ptr::offset`], so that they hide no field.
#[repr(transparent)]
pub struct Ptr<T> {
    offset: NonZeroU64,
    /// Neither owned nor shared between threads: only named.
    target: PhantomData<fn() -> T>,
}

impl<T> Clone for Ptr<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> PartialEq for Ptr<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.offset == other.offset
    }
}

impl<T> Eq for Ptr<T> {}

impl<T> Hash for Ptr<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.offset.hash(state);
    }
}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ptr({:#x})", self.offset)
    }
}

impl<T: Persistent> Ptr<T> {
    /// The pointer to an offset in the pool, as [`Ptr::offset`] gave it; `None` for 0.
    #[inline]
    pub fn from_offset(offset: u64) -> Option<Ptr<T>> {
        NonZeroU64::new(offset).map(|offset| Ptr { offset, target: PhantomData })
    }

    /// Where it points to, in bytes from the start of the pool.
    #[inline]
    pub fn offset(pointer: Ptr<T>) -> u64 {
        pointer.offset.get()
    }

    /// The same place as another type: any bytes are a value of any persistent type.
    #[inline]
    pub fn cast<U: Persistent>(pointer: Ptr<T>) -> Ptr<U> {
        Ptr { offset: pointer.offset, target: PhantomData }
    }

    /// What lies so many bytes behind. At the end of all offsets it stays there, where nothing is.
    #[inline]
    pub(crate) fn behind<U>(pointer: Ptr<T>, bytes: u64) -> Ptr<U> {
        Ptr { offset: pointer.offset.saturating_add(bytes), target: PhantomData }
    }

    /// The value with this index in a row of values that begins here.
    #[inline]
    pub fn nth(pointer: Ptr<T>, index: u64) -> Ptr<T> {
        Ptr::behind(pointer, index.saturating_mul(size_of::<T>() as u64))
    }

    /// For the derive: a field, so many bytes behind. It says nothing of the field's type, which
    /// the derive has checked elsewhere.
    #[doc(hidden)]
    #[inline]
    pub fn field<U>(pointer: Ptr<T>, offset: usize) -> Ptr<U> {
        Ptr::behind(pointer, offset as u64)
    }
}

impl<T: Persistent> Deref for Ptr<T> {
    type Target = T::Fields;

    #[inline]
    fn deref(&self) -> &T::Fields {
        // SAFETY: by the contract of `Persistent`, the fields are nothing at all, or transparent
        // over this pointer.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}
