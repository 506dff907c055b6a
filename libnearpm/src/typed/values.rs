//! Values that a pool keeps in a form of which every byte is one: options, spans of time, enums
//! without fields.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::time::Duration;

use super::layout::Description;
use super::persistent::NoFields;
use super::{Persistent, Store};
use crate::error::Error;

/// An `Option<T>` in a pool, for what has a multiple of eight bytes: a number that says whether
/// there is a value, then the value.
///
/// ```
/// use nearpm::prelude::*;
/// use nearpm::typed::POption;
///
/// #[derive(Clone, Copy, Persistent)]
/// #[repr(C)]
/// struct Guest {
///     room: POption<u64>,
/// }
///
/// fn move_in(tx: &mut impl Store, guest: Ptr<Guest>, room: u64) -> Result<Option<u64>, Error> {
///     Ok(tx.replace(guest.room(), Some(room).into())?.get())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct POption<T: Persistent> {
    /// 0: there is none.
    is_some: u64,
    value: T,
}

impl<T: Persistent> POption<T> {
    /// The option.
    pub fn get(self) -> Option<T> {
        (self.is_some != 0).then_some(self.value)
    }
}

impl<T: Persistent> From<Option<T>> for POption<T> {
    fn from(option: Option<T>) -> POption<T> {
        let () = <POption<T> as Persistent>::CHECKED;
        POption { is_some: option.is_some().into(), value: option.unwrap_or_else(super::persistent::zero) }
    }
}

impl<T: Persistent> From<POption<T>> for Option<T> {
    fn from(option: POption<T>) -> Option<T> {
        option.get()
    }
}

impl<T: Persistent> Default for POption<T> {
    fn default() -> POption<T> {
        None.into()
    }
}

impl<T: Persistent + PartialEq> PartialEq for POption<T> {
    fn eq(&self, other: &POption<T>) -> bool {
        self.get() == other.get()
    }
}

// SAFETY: every pattern is a value, as of both parts; that there is no padding is checked where the
// type is used.
unsafe impl<T: Persistent> Persistent for POption<T> {
    type Fields = NoFields;
    const OWNS: bool = T::OWNS;
    const CHECKED: () = {
        let () = T::CHECKED;
        assert!(
            size_of::<T>().is_multiple_of(8) && align_of::<T>() <= 8,
            "a POption holds what has a multiple of eight bytes: use an `Option<NonZeroU32>`, or a `u64` in the place of a smaller number"
        );
    };
    fn describe(to: &mut Description) {
        to.structure("option", size_of::<T>());
        T::describe(to);
    }
    fn release<S: Store>(self, tx: &mut S) -> Result<(), Error> {
        if T::OWNS { self.get().map_or(Ok(()), |value| value.release(tx)) } else { Ok(()) }
    }
}

/// A [`Duration`] in a pool: seconds, and nanoseconds that count modulo a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct PDuration {
    seconds: u64,
    nanoseconds: u64,
}

impl PDuration {
    /// The duration.
    pub fn get(self) -> Duration {
        Duration::new(self.seconds, (self.nanoseconds % 1_000_000_000) as u32)
    }
}

impl From<Duration> for PDuration {
    fn from(duration: Duration) -> PDuration {
        PDuration { seconds: duration.as_secs(), nanoseconds: duration.subsec_nanos().into() }
    }
}

impl From<PDuration> for Duration {
    fn from(duration: PDuration) -> Duration {
        duration.get()
    }
}

// SAFETY: two numbers, side by side.
unsafe impl Persistent for PDuration {
    type Fields = NoFields;
    fn describe(to: &mut Description) {
        to.structure("duration", size_of::<PDuration>());
    }
}

/// An enum without fields in a pool, as its number: bytes may say a number that is none of its
/// variants, so that reading one is a question.
///
/// ```
/// use nearpm::prelude::*;
/// use nearpm::typed::PCode;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Light { Red, Green }
///
/// impl From<Light> for u64 {
///     fn from(light: Light) -> u64 { light as u64 }
/// }
///
/// impl TryFrom<u64> for Light {
///     type Error = u64;
///     fn try_from(code: u64) -> Result<Light, u64> {
///         [Light::Red, Light::Green].get(code as usize).copied().ok_or(code)
///     }
/// }
///
/// assert_eq!(PCode::from(Light::Green).get(), Ok(Light::Green));
/// assert_eq!(PCode::<Light>::default().get(), Ok(Light::Red));
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct PCode<E> {
    code: u64,
    of: PhantomData<fn() -> E>,
}

impl<E> Clone for PCode<E> {
    fn clone(&self) -> PCode<E> {
        *self
    }
}

impl<E> Copy for PCode<E> {}

impl<E> Default for PCode<E> {
    fn default() -> PCode<E> {
        PCode { code: 0, of: PhantomData }
    }
}

impl<E> PartialEq for PCode<E> {
    fn eq(&self, other: &PCode<E>) -> bool {
        self.code == other.code
    }
}

impl<E: TryFrom<u64>> PCode<E> {
    /// The variant.
    ///
    /// # Errors
    /// The number is that of none.
    pub fn get(self) -> Result<E, E::Error> {
        E::try_from(self.code)
    }
}

impl<E: Into<u64>> From<E> for PCode<E> {
    fn from(variant: E) -> PCode<E> {
        PCode { code: variant.into(), of: PhantomData }
    }
}

// SAFETY: a number.
unsafe impl<E: 'static> Persistent for PCode<E> {
    type Fields = NoFields;
    fn describe(to: &mut Description) {
        to.structure("code", 8);
    }
}
