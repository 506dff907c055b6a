//! Types that may persist.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::layout::Description;
use super::{Ptr, Store};
use crate::error::Error;

/// A type whose values may lie in a pool: plain bytes that mean the same in every process.
/// Implement it by `#[derive(Persistent)]`.
///
/// It is implemented for the integers of fixed size, `f32`, `f64`, `()`, arrays, `Option<Ptr<T>>`,
/// options of the integers that are not zero, [`PBool`], [`POption`](super::POption),
/// [`PDuration`](super::PDuration), [`PEnum`](super::PEnum) and [`PCode`](super::PCode),
/// [`PTuple2`](super::PTuple2) and its like, and the collections. It is not for `bool`, `char` and
/// enums (not every byte is a value), for `usize` (it has another size on another machine), and for
/// references, boxes and strings (they point into this process).
///
/// ```compile_fail
/// # use nearpm::prelude::*;
/// #[derive(Clone, Copy, Persistent)]
/// #[repr(C)]
/// struct Person {
///     name: &'static str,
/// }
/// ```
///
/// # Safety
/// Every bit pattern of `size_of::<Self>()` bytes is a value, no byte of a value is padding, no
/// value refers to this process, the alignment is at most 16, and [`Persistent::Fields`] either has
/// no size and no alignment above 1, or is `#[repr(transparent)]` over `Ptr<Self>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot lie in a pool",
    label = "not `Persistent`",
    note = "it must mean the same in every process, and every byte must be a value: instead of `String` use `PString`, of `Vec<T>` `PVec<T>`, of \
            `&T`, `Box<T>` and `Rc<T>` `Option<Ptr<T>>`, of `HashMap` `PHashMap`, of `BTreeMap` `PBTreeMap`, of `VecDeque` `PQueue`, of a \
            mutex `PLock`, of `Ptr<T>` `Option<Ptr<T>>` (zeros are no pointer), of `bool` `PBool`, of `usize` `u64`, of `char` \
            a number, of an enum `PEnum`, of another option `POption`, of a tuple `PTuple2` or a struct",
    note = "a struct of this program gets `#[derive(Clone, Copy, Persistent)]` and `#[repr(C)]`, and a type parameter the bound `T: Persistent`"
)]
pub unsafe trait Persistent: Copy + 'static {
    /// What a [`Ptr`] to it dereferences to: it has a method for each field, which gives the
    /// pointer to it.
    type Fields;
    /// Whether [`Persistent::release`] does anything.
    const OWNS: bool = false;

    /// What the derive checks of a type with parameters, where it is used.
    #[doc(hidden)]
    const CHECKED: () = ();

    /// Says what the type is made of.
    fn describe(to: &mut Description);

    /// Frees what the value owns: what its collections hold. A [`Ptr`] owns nothing.
    ///
    /// # Errors
    /// Those of [`Store::destroy`].
    #[inline]
    fn release<S: Store>(self, tx: &mut S) -> Result<(), Error> {
        let _ = tx;
        Ok(())
    }
}

/// What a pointer to a type without fields dereferences to.
#[derive(Clone, Copy, Debug)]
pub struct NoFields;

/// The bytes of values.
pub(crate) fn bytes_of<T: Persistent>(values: &[T]) -> &[u8] {
    let () = T::CHECKED;
    // SAFETY: no byte of a value is padding, so that all of them are initialised; bytes need no
    // alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of values, to be changed.
pub(crate) fn bytes_of_mut<T: Persistent>(values: &mut [T]) -> &mut [u8] {
    let () = T::CHECKED;
    // SAFETY: as for `bytes_of`; whatever is written is a value.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The value of bytes that `fill` writes.
#[inline(always)]
pub(crate) fn value_of<T: Persistent>(fill: impl FnOnce(&mut [u8]) -> Result<(), Error>) -> Result<T, Error> {
    let () = T::CHECKED;
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: zeroed bytes are initialised, and the slice covers exactly the value.
    fill(unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast(), size_of::<T>()) })?;
    // SAFETY: every bit pattern is a value.
    Ok(unsafe { value.assume_init() })
}

/// The value whose bytes are all zero.
pub(crate) fn zero<T: Persistent>() -> T {
    // SAFETY: every bit pattern is a value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

macro_rules! plain {
    ($($type:ident)*) => {$(
        // SAFETY: every bit pattern is a value, there is no padding, and no field.
        unsafe impl Persistent for $type {
            type Fields = NoFields;
            fn describe(to: &mut Description) {
                to.structure(stringify!($type), size_of::<$type>());
            }
        }
    )*};
}

plain!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

// SAFETY: it has no bytes.
unsafe impl Persistent for () {
    type Fields = NoFields;
    fn describe(to: &mut Description) {
        to.structure("unit", 0);
    }
}

macro_rules! not_zero {
    ($($type:ident $of:ident)*) => {$(
        // SAFETY: an option of an integer that is not zero has the size of the integer, and no
        // bytes are no value of it: zeros are none.
        unsafe impl Persistent for Option<std::num::$type> {
            type Fields = NoFields;
            fn describe(to: &mut Description) {
                to.structure(stringify!($type), size_of::<$of>());
            }
        }
    )*};
}

not_zero!(NonZeroU8 u8 NonZeroU16 u16 NonZeroU32 u32 NonZeroU64 u64 NonZeroU128 u128);
not_zero!(NonZeroI8 i8 NonZeroI16 i16 NonZeroI32 i32 NonZeroI64 i64 NonZeroI128 i128);

// SAFETY: it has no bytes.
unsafe impl<T: Persistent> Persistent for PhantomData<T> {
    type Fields = NoFields;
    fn describe(to: &mut Description) {
        to.refer::<T>();
    }
}

/// What a pointer to an array dereferences to.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct ArrayFields<T: Persistent, const N: usize>(Ptr<[T; N]>);

impl<T: Persistent, const N: usize> ArrayFields<T, N> {
    /// The element of an index.
    ///
    /// # Panics
    /// If the array has no such element, as an array does.
    #[inline]
    pub fn at(&self, index: usize) -> Ptr<T> {
        assert!(index < N, "index {index} of an array of {N}");
        Ptr::nth(Ptr::cast(self.0), index as u64)
    }

    /// All elements, in order.
    pub fn each(&self) -> impl ExactSizeIterator<Item = Ptr<T>> + use<T, N> {
        let array = *self;
        (0..N).map(move |index| array.at(index))
    }
}

// SAFETY: elements lie side by side, and the fields are transparent over the pointer.
unsafe impl<T: Persistent, const N: usize> Persistent for [T; N] {
    type Fields = ArrayFields<T, N>;
    const OWNS: bool = T::OWNS;
    const CHECKED: () = T::CHECKED;
    fn describe(to: &mut Description) {
        to.structure("array", N);
        T::describe(to);
    }
    fn release<S: Store>(self, tx: &mut S) -> Result<(), Error> {
        if T::OWNS { self.into_iter().try_for_each(|element| element.release(tx)) } else { Ok(()) }
    }
}

/// A truth value in a pool: false is 0, and every other byte is true.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct PBool(u8);

impl PBool {
    /// The value.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for PBool {
    fn from(value: bool) -> PBool {
        PBool(value.into())
    }
}

impl From<PBool> for bool {
    fn from(value: PBool) -> bool {
        value.get()
    }
}

impl PartialEq for PBool {
    fn eq(&self, other: &PBool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for PBool {}

// SAFETY: a byte, of which every pattern is a value.
unsafe impl Persistent for PBool {
    type Fields = NoFields;
    fn describe(to: &mut Description) {
        to.structure("PBool", 1);
    }
}

// SAFETY: a number; every pattern but 0 is a pointer, and 0 is none.
unsafe impl<T: Persistent> Persistent for Option<Ptr<T>> {
    type Fields = NoFields;
    fn describe(to: &mut Description) {
        to.structure("pointer", 8);
        to.refer::<T>();
    }
}
