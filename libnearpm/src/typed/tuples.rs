//! Tuples in a pool. The compiler may order the fields of its own as it likes; these lie as they
//! are written.

use crate::Persistent;

macro_rules! tuple {
    ($(#[$about:meta])* $name:ident, $($letter:ident $index:tt),+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Persistent)]
        #[repr(C)]
        pub struct $name<$($letter: Persistent),+>(
            $(#[doc = concat!("Field ", stringify!($index), ".")] pub $letter),+
        );

        impl<$($letter: Persistent),+> $name<$($letter),+> {
            /// The tuple.
            pub fn get(self) -> ($($letter,)+) {
                ($(self.$index,)+)
            }
        }

        impl<$($letter: Persistent),+> From<($($letter,)+)> for $name<$($letter),+> {
            fn from(tuple: ($($letter,)+)) -> Self {
                $name($(tuple.$index),+)
            }
        }

        impl<$($letter: Persistent),+> From<$name<$($letter),+>> for ($($letter,)+) {
            fn from(tuple: $name<$($letter),+>) -> Self {
                tuple.get()
            }
        }

        #[cfg(feature = "serde")]
        impl<$($letter: Persistent + serde::Serialize),+> serde::Serialize for $name<$($letter),+> {
            fn serialize<Z: serde::Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
                self.get().serialize(to)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de, $($letter: Persistent + serde::Deserialize<'de>),+> serde::Deserialize<'de> for $name<$($letter),+> {
            fn deserialize<Z: serde::Deserializer<'de>>(from: Z) -> Result<Self, Z::Error> {
                <($($letter,)+)>::deserialize(from).map(Self::from)
            }
        }
    };
}

tuple! {
    /// A pair in a pool; of keys it is a key, ordered by the first, then by the second.
    ///
    /// ```
    /// use nearpm::prelude::*;
    /// use nearpm::typed::PTuple2;
    ///
    /// /// Sales by shop and time.
    /// type Sales = PBTreeMap<PTuple2<u64, u64>, u64>;
    ///
    /// fn of_shop(from: &impl Load, sales: Ptr<Sales>, shop: u64) -> Result<u64, Error> {
    ///     let all = PTuple2(shop, 0)..=PTuple2(shop, u64::MAX);
    ///     sales.range(from, all)?.map(|sale| Ok(sale?.1)).sum()
    /// }
    /// ```
    ///
    /// As of a struct, nothing may lie between the fields or behind them: the compiler says so.
    PTuple2, A 0, B 1
}

tuple! {
    /// Three values in a pool, as [`PTuple2`].
    PTuple3, A 0, B 1, C 2
}

tuple! {
    /// Four values in a pool, as [`PTuple2`].
    PTuple4, A 0, B 1, C 2, D 3
}
