//! `cvt`.

use super::builder::Builder;
use super::control::Guard;
use super::modifiers::Modifiers;
use super::operands::Operands;
use crate::ParseError;
use crate::code::{Op, Source};
use crate::lanes::convert;
use crate::lanes::rounding::Rounding;

impl<'a> Builder<'a> {
    pub fn convert(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let integral = modifiers.one_of(&["rni", "rzi", "rmi", "rpi"]);
        let rounding = integral.or_else(|| modifiers.one_of(&["rn", "rz", "rm", "rp"]));
        let (ftz, sat) = (modifiers.take("ftz"), modifiers.take("sat"));
        let (to, from) = (modifiers.kind()?, modifiers.kind()?);
        let mode = rounding.and_then(Rounding::parse).unwrap_or(Rounding::Nearest);
        let f = match (to.float(), from.float()) {
            (false, false) => convert::integer(to, from, sat),
            // A conversion to an integer saturates with or without `.sat`.
            (false, true) => convert::float_to_integer(to, from, mode, ftz),
            (true, false) => convert::integer_to_float(to, from, mode),
            (true, true) => convert::float(to, from, mode, integral.is_some(), ftz, sat),
        };
        self.emit_one(f, modifiers, operands, from, guard)?;
        // A target narrower than its register is extended by the target's sign.
        let (register, kind) = self.target(&operands.all[0])?;
        if to.signed() && to.bits < kind.bits {
            self.extend(register, to.bits, kind.bits, guard)?;
        }
        Ok(())
    }

    fn extend(&mut self, register: u32, bits: u32, to_bits: u32, guard: Guard) -> Result<(), ParseError> {
        let f = convert::sign_extend(bits);
        self.emit(Op::One { f, to: register, a: Source(register) }, guard)?;
        let mask = self.constant(None, crate::lanes::Type { class: crate::lanes::Class::Bits, bits: to_bits }.mask());
        let and = crate::lanes::bits::two_of("and", super::control::B64).expect("and.b64 is there");
        self.emit(Op::Two { f: and, to: register, a: Source(register), b: mask }, guard)
    }
}
