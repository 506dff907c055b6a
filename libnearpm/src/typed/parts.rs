//! The fields of a derived type. All that the derive of [`Persistent`] writes is the list of them,
//! so that a field that cannot persist is one error of the compiler, at its type.

use std::marker::PhantomData;

use super::layout::Description;
use super::{Persistent, Store};
use crate::error::Error;

/// A field of a type, by its index. A type of the derive's own implements it, so that a public type
/// may have fields of private ones.
pub trait Part<const INDEX: usize> {
    /// The type that has it.
    type Of;
    /// Its type.
    type Type: Persistent;
    /// Its name.
    const NAME: &'static str;
    /// Where it lies in the type, in bytes.
    const OFFSET: usize;

    /// The field of a value.
    fn take(value: Self::Of) -> Self::Type;
}

/// Fields of a type: one, or those of two halves. Halves, because the compiler's recursion has a
/// limit that a list of fields could reach.
pub trait Parts<T> {
    /// Their bytes together.
    const BYTES: usize;
    /// Whether one of them owns something.
    const OWNS: bool;
    /// What [`Persistent::CHECKED`] checks of their types.
    const CHECKED: ();

    /// Says what they are.
    fn describe(to: &mut Description);

    /// Frees what they own.
    fn release<S: Store>(value: T, tx: &mut S) -> Result<(), Error>
    where
        T: Copy;
}

/// The field with an index.
pub struct At<F, const INDEX: usize>(PhantomData<F>);

impl<T, F: Part<INDEX, Of = T>, const INDEX: usize> Parts<T> for At<F, INDEX> {
    const BYTES: usize = size_of::<F::Type>();
    const OWNS: bool = <F::Type as Persistent>::OWNS;
    // That of a type with parameters is looked at nowhere else.
    const CHECKED: () = <F::Type as Persistent>::CHECKED;

    fn describe(to: &mut Description) {
        to.field::<F::Type>(F::NAME, F::OFFSET);
    }

    #[inline]
    fn release<S: Store>(value: T, tx: &mut S) -> Result<(), Error> {
        if <Self as Parts<T>>::OWNS { F::take(value).release(tx) } else { Ok(()) }
    }
}

impl<T, A: Parts<T>, B: Parts<T>> Parts<T> for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;
    const OWNS: bool = A::OWNS || B::OWNS;
    const CHECKED: () = {
        let () = A::CHECKED;
        let () = B::CHECKED;
    };

    fn describe(to: &mut Description) {
        A::describe(to);
        B::describe(to);
    }

    #[inline]
    fn release<S: Store>(value: T, tx: &mut S) -> Result<(), Error>
    where
        T: Copy,
    {
        A::release(value, tx)?;
        B::release(value, tx)
    }
}

/// Objects have this alignment, and no more.
const MAX_ALIGNMENT: usize = 16;

/// Checks that a type's fields may persist and lie side by side, and that it is aligned as objects
/// are.
pub const fn check<T, P: Parts<T>>() {
    let () = P::CHECKED;
    assert!(align_of::<T>() <= MAX_ALIGNMENT, "objects of a pool are aligned to 16 bytes, and no more");
    assert!(
        P::BYTES == size_of::<T>(),
        "a Persistent struct has no padding: order its fields by size, or add fields that fill the gaps"
    );
}

/// Says what a type is made of.
pub fn describe<T, P: Parts<T>>(name: &str, to: &mut Description) {
    to.structure(name, size_of::<T>());
    P::describe(to);
}
