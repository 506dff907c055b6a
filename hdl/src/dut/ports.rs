//! Ports of a rust-hdl struct by name.
//!
//! rust-hdl lets a visitor read its signals but not drive them, so each unit derives [`Ports`]: its
//! public fields. They are checked against what rust-hdl itself knows when a bench is made, so a
//! port that is private is a clear panic and not a silent 0.

use super::Value;
use rust_hdl::prelude::*;

/// Which way a port points, as the unit sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Driven by the bench.
    In,
    /// Driven by the unit.
    Out,
}

/// A type that a port can carry.
pub trait PortValue: Synth {
    /// The bits as a number.
    fn to_value(self) -> Value;
    /// The number as bits; it is known to fit.
    fn from_value(value: Value) -> Self;
}

impl PortValue for Bit {
    fn to_value(self) -> Value {
        self.into()
    }
    fn from_value(value: Value) -> Self {
        value.bit(0)
    }
}

impl PortValue for Clock {
    fn to_value(self) -> Value {
        self.clk.into()
    }
    fn from_value(value: Value) -> Self {
        value.bit(0).into()
    }
}

impl<const N: usize> PortValue for Bits<N> {
    fn to_value(self) -> Value {
        if N <= 64 {
            return self.to_u64().into();
        }
        let mut value = Value::ZERO;
        (0..N).for_each(|bit| value.set_bit(bit, self.get_bit(bit)));
        value
    }
    fn from_value(value: Value) -> Self {
        if N <= 64 {
            return value.to_u64().into();
        }
        let bits: [bool; N] = std::array::from_fn(|bit| value.bit(bit));
        Bits::Long(bits.into())
    }
}

/// One scalar port.
pub trait PortSignal {
    /// Its present value.
    fn value(&self) -> Value;
    /// Drives it; for inputs only.
    fn drive(&mut self, value: Value);
}

/// A row of a unit's port list.
#[derive(Clone, Debug)]
pub struct PortRow {
    /// Name as in the generated Verilog.
    pub name: String,
    /// Direction.
    pub way: Way,
    /// Width, 1 to 1024 bits.
    pub bits: usize,
    /// Where to find it: the position in the list of each level.
    pub path: Vec<u16>,
}

/// A struct, bundle, array or signal whose ports can be listed and reached.
pub trait Ports {
    /// Appends a row for each port below; `row` holds the name and the path so far.
    fn list(&self, row: &PortRow, rows: &mut Vec<PortRow>);
    /// The port at the end of `path`.
    fn at(&mut self, path: &[u16]) -> &mut dyn PortSignal;
}

impl PortRow {
    /// The row that a list starts from.
    pub(crate) fn root() -> Self {
        Self { name: String::new(), way: Way::In, bits: 0, path: Vec::new() }
    }

    /// The row of the child `name`, which is number `index` at its level.
    pub fn child(&self, name: &str, index: usize) -> Self {
        let mut row = self.clone();
        if !row.name.is_empty() {
            row.name.push('$');
        }
        row.name.push_str(name);
        row.path.push(u16::try_from(index).expect("fewer than 65536 ports at one level"));
        row
    }
}

macro_rules! scalar {
    ($way:ident, $drive:expr) => {
        impl<T: PortValue> PortSignal for Signal<$way, T> {
            fn value(&self) -> Value {
                self.val().to_value()
            }
            fn drive(&mut self, value: Value) {
                let drive: fn(&mut Self, Value) = $drive;
                drive(self, value);
            }
        }
        impl<T: PortValue> Ports for Signal<$way, T> {
            fn list(&self, row: &PortRow, rows: &mut Vec<PortRow>) {
                assert!(T::BITS <= Value::BITS, "port `{}` is wider than a Value", row.name);
                rows.push(PortRow { way: Way::$way, bits: T::BITS, ..row.clone() });
            }
            fn at(&mut self, path: &[u16]) -> &mut dyn PortSignal {
                debug_assert!(path.is_empty());
                self
            }
        }
    };
}
scalar!(In, |signal, value| signal.next = T::from_value(value));
scalar!(Out, |_, _| unreachable!("outputs are refused before"));

impl<P: Ports, const N: usize> Ports for [P; N] {
    fn list(&self, row: &PortRow, rows: &mut Vec<PortRow>) {
        for (index, port) in self.iter().enumerate() {
            port.list(&row.child(&index.to_string(), index), rows);
        }
    }
    fn at(&mut self, path: &[u16]) -> &mut dyn PortSignal {
        self[usize::from(path[0])].at(&path[1..])
    }
}

/// Puts a field into `value` from bit `low` up, and gives the bit behind it. For
/// [`PortValue`](macro@nearpm_hdl_derive::PortValue).
#[doc(hidden)]
pub fn put_field<T: PortValue>(value: &mut Value, low: usize, field: T) -> usize {
    *value = value.with_slice(low, T::BITS, field.to_value());
    low + T::BITS
}

/// Sets a field to the bits of `value` from bit `low` up, and gives the bit behind them.
#[doc(hidden)]
pub fn take_field<T: PortValue>(field: &mut T, value: Value, low: usize) -> usize {
    *field = T::from_value(value.slice(low, T::BITS));
    low + T::BITS
}
