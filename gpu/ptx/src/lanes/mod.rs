//! What instructions compute, for all 32 lanes of a warp at once.
//!
//! A register is 32 lanes of 64 bits; a narrower value is zero-extended. Each function runs over
//! all lanes, active or not, so that the compiler can vectorise it; the caller keeps the results of
//! the active ones. So none may panic, whatever is in an inactive lane.

pub(crate) mod bits;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod rounding;

pub(crate) const WARP: usize = 32;

/// One register of a warp.
pub(crate) type Lanes = [u64; WARP];
pub(crate) type One = fn(&Lanes, &mut Lanes);
pub(crate) type Two = fn(&Lanes, &Lanes, &mut Lanes);
pub(crate) type Three = fn(&Lanes, &Lanes, &Lanes, &mut Lanes);
pub(crate) type Four = fn(&Lanes, &Lanes, &Lanes, &Lanes, &mut Lanes);
/// One bit a lane.
pub(crate) type Test = fn(&Lanes, &Lanes) -> u32;

/// A value as it lies in a register.
pub(crate) trait Lane: Copy {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! integer_lane {
    ($($type:ty as $unsigned:ty),*) => {$(
        impl Lane for $type {
            #[inline(always)]
            fn of(bits: u64) -> Self { bits as $type }
            #[inline(always)]
            fn bits(self) -> u64 { self as $unsigned as u64 }
        }
    )*};
}
integer_lane!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl Lane for f32 {
    #[inline(always)]
    fn of(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits() as u64
    }
}

impl Lane for f64 {
    #[inline(always)]
    fn of(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// A [`One`] from a function of a value of one type to a value of another.
macro_rules! one {
    ($from:ty => $to:ty, $function:expr) => {
        (|a: &$crate::lanes::Lanes, out: &mut $crate::lanes::Lanes| {
            for i in 0..$crate::lanes::WARP {
                let value: $to = ($function)(<$from as $crate::lanes::Lane>::of(a[i]));
                out[i] = $crate::lanes::Lane::bits(value);
            }
        }) as $crate::lanes::One
    };
    ($type:ty, $function:expr) => { one!($type => $type, $function) };
}

/// A [`Two`] from a function of two values.
macro_rules! two {
    ($from:ty => $to:ty, $function:expr) => {
        (|a: &$crate::lanes::Lanes, b: &$crate::lanes::Lanes, out: &mut $crate::lanes::Lanes| {
            for i in 0..$crate::lanes::WARP {
                let (x, y) = (<$from as $crate::lanes::Lane>::of(a[i]), <$from as $crate::lanes::Lane>::of(b[i]));
                let value: $to = ($function)(x, y);
                out[i] = $crate::lanes::Lane::bits(value);
            }
        }) as $crate::lanes::Two
    };
    ($type:ty, $function:expr) => { two!($type => $type, $function) };
}

/// A [`Three`] from a function of two values of one type and one of the result's.
macro_rules! three {
    ($from:ty, $to:ty, $function:expr) => {
        (|a: &$crate::lanes::Lanes,
          b: &$crate::lanes::Lanes,
          c: &$crate::lanes::Lanes,
          out: &mut $crate::lanes::Lanes| {
            for i in 0..$crate::lanes::WARP {
                let (x, y) = (<$from as $crate::lanes::Lane>::of(a[i]), <$from as $crate::lanes::Lane>::of(b[i]));
                let value: $to = ($function)(x, y, <$to as $crate::lanes::Lane>::of(c[i]));
                out[i] = $crate::lanes::Lane::bits(value);
            }
        }) as $crate::lanes::Three
    };
}
pub(crate) use {one, three, two};

/// Class of a PTX type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Bits,
    Unsigned,
    Signed,
    Float,
    Predicate,
}

/// A PTX type such as `.u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub class: Class,
    pub bits: u32,
}

impl Type {
    pub fn parse(name: &str) -> Option<Type> {
        if name == "pred" {
            return Some(Type { class: Class::Predicate, bits: 1 });
        }
        let class = match name.as_bytes().first()? {
            b'b' => Class::Bits,
            b'u' => Class::Unsigned,
            b's' => Class::Signed,
            b'f' => Class::Float,
            _ => return None,
        };
        let bits = match name.get(1..)? {
            "8" => 8,
            "16" => 16,
            "32" => 32,
            "64" => 64,
            "128" => 128,
            _ => return None,
        };
        (class == Class::Bits || bits < 128).then_some(Type { class, bits })
    }

    pub fn bytes(self) -> u64 {
        u64::from(self.bits / 8)
    }

    pub fn signed(self) -> bool {
        self.class == Class::Signed
    }

    pub fn float(self) -> bool {
        self.class == Class::Float
    }

    /// The bits of a register that a value of this type has.
    pub fn mask(self) -> u64 {
        if self.bits >= 64 { u64::MAX } else { (1 << self.bits) - 1 }
    }
}
