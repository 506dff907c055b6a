//! Structures with fixed offsets: one declaration gives the Rust type, its little-endian codec
//! and the table from which the other languages are generated.

/// One field of a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, in snake case.
    pub name: &'static str,
    /// Distance from the start of the structure, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// First line of its documentation.
    pub doc: &'static str,
}

/// A structure of fixed size whose fields have fixed offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name, in camel case.
    pub name: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// First line of its documentation.
    pub doc: &'static str,
    /// Fields by rising offset, without gaps.
    pub fields: &'static [Field],
}

/// A field type with a little-endian form.
pub trait Scalar: Sized {
    /// Writes the value to `bytes`, which has exactly its size.
    fn put(&self, bytes: &mut [u8]);
    /// Reads a value from `bytes`, which has exactly its size.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Scalar for $t {
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                <$t>::from_le_bytes(bytes.try_into().expect("the layout gives the exact size"))
            }
        }
    )*};
}
integer!(u8, u16, u32, u64);

impl<const N: usize> Scalar for [u8; N] {
    fn put(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self);
    }
    fn get(bytes: &[u8]) -> Self {
        bytes.try_into().expect("the layout gives the exact size")
    }
}

/// Declares a structure: `Name, size { /// doc \n offset field: type, ... }`.
///
/// Offsets and the size are checked at compile time, and gaps are impossible because the type is
/// `repr(C)` and every byte belongs to a field.
macro_rules! layout {
    (
        #[doc = $doc:literal] $(#[doc = $more:literal])*
        $name:ident, $size:literal {
            $( #[doc = $fdoc:literal] $(#[doc = $fmore:literal])* $offset:literal $field:ident : $ty:ty ),* $(,)?
        }
    ) => {
        #[doc = $doc] $(#[doc = $more])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        #[repr(C)]
        pub struct $name { $( #[doc = $fdoc] $(#[doc = $fmore])* pub $field: $ty ),* }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            assert!(0 $( + size_of::<$ty>() )* == $size);
            $( assert!(core::mem::offset_of!($name, $field) == $offset); )*
        };

        impl $name {
            /// Size in bytes.
            pub const SIZE: usize = $size;
            /// Names, offsets and sizes of the fields.
            pub const LAYOUT: $crate::Layout = $crate::Layout {
                name: stringify!($name),
                size: $size,
                doc: $doc,
                fields: &[ $( $crate::Field {
                    name: stringify!($field),
                    offset: $offset,
                    size: size_of::<$ty>(),
                    doc: $fdoc,
                } ),* ],
            };
            /// The little-endian form.
            pub fn to_bytes(&self) -> [u8; $size] {
                let mut bytes = [0; $size];
                $( $crate::layout::Scalar::put(
                    &self.$field, &mut bytes[$offset..$offset + size_of::<$ty>()]); )*
                bytes
            }
            /// Reads the little-endian form; says nothing about the meaning of the fields.
            pub fn from_bytes(bytes: &[u8; $size]) -> Self {
                Self { $( $field: $crate::layout::Scalar::get(
                    &bytes[$offset..$offset + size_of::<$ty>()]) ),* }
            }
        }
    };
}
pub(crate) use layout;
