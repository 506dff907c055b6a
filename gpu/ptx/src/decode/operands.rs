//! Operands to registers and constants.

use super::builder::{Builder, Symbol};
use crate::ParseError;
use crate::code::{Address, LaneMask, Predicate, Register, Source, Space, Special};
use crate::lanes::Type;
use crate::syntax::{Number, Operand, OperandKind, Position, error};

/// The operands of one instruction, checked for their number.
pub(super) struct Operands<'o, 'a> {
    pub at: Position,
    pub all: &'o [Operand<'a>],
}

impl<'o, 'a> Operands<'o, 'a> {
    pub fn exactly(&self, count: usize, opcode: &str) -> Result<(), ParseError> {
        if self.all.len() == count {
            return Ok(());
        }
        error(self.at, format!("`{opcode}` takes {count} operands, found {}", self.all.len()))
    }
}

impl<'a> Builder<'a> {
    /// A register or constant that is read as type `kind`.
    pub fn source(&mut self, operand: &Operand<'a>, kind: Type) -> Result<Source, ParseError> {
        match &operand.kind {
            OperandKind::Name("WARP_SZ", 0) => Ok(self.constant(None, 32)),
            OperandKind::Name(name, offset) => {
                if name.starts_with('%')
                    && let Some(special) = single_special(name)
                {
                    return Ok(self.special(special));
                }
                match self.symbol(operand.at, name)? {
                    Symbol::Register(register, _) if *offset == 0 => Ok(Source(register)),
                    Symbol::Register(..) => error(operand.at, format!("`{name}` with an offset is only an address")),
                    Symbol::Predicate(_) => error(operand.at, format!("`{name}` is a predicate; expected a value")),
                    Symbol::Wide(..) => {
                        error(operand.at, format!("`{name}` has 128 bits, which are not expected here"))
                    }
                    symbol => Ok(self.address_of(symbol, *offset)),
                }
            }
            OperandKind::Special(name, part) => match special(name, part) {
                Some(special) => Ok(self.special(special)),
                None => error(operand.at, format!("the special register `{name}.{part}` is not supported")),
            },
            OperandKind::Number(number) => Ok(self.constant(None, number_bits(*number, kind))),
            _ => error(operand.at, "expected a register or a number"),
        }
    }

    /// The address of a variable in its own space, as a constant.
    fn address_of(&mut self, symbol: Symbol, offset: i64) -> Source {
        match symbol {
            Symbol::Param(place) | Symbol::Local(place) | Symbol::Shared(place) => {
                self.constant(None, place.wrapping_add_signed(offset))
            }
            Symbol::Based(base, place) => self.constant(Some(base), place.wrapping_add_signed(offset)),
            Symbol::Register(..) | Symbol::Predicate(_) | Symbol::Wide(..) => self.constant(None, offset as u64),
        }
    }

    /// A register that is written; `_` gives one that nobody reads.
    pub fn target(&mut self, operand: &Operand<'a>) -> Result<(Register, Type), ParseError> {
        match &operand.kind {
            OperandKind::Name("_", 0) => Ok((self.new_register(), Type { class: crate::lanes::Class::Bits, bits: 64 })),
            OperandKind::Name(name, 0) => match self.symbol(operand.at, name)? {
                Symbol::Register(register, kind) => Ok((register, kind)),
                _ => error(operand.at, format!("expected a register, found `{name}`")),
            },
            _ => error(operand.at, "expected a register"),
        }
    }

    pub fn predicate(&mut self, at: Position, name: &'a str) -> Result<Predicate, ParseError> {
        if name == "_" {
            return Ok(self.new_predicate());
        }
        match self.symbol(at, name)? {
            Symbol::Predicate(predicate) => Ok(predicate),
            _ => error(at, format!("expected a predicate, found `{name}`")),
        }
    }

    /// `%p` or `!%p`, or a number that is taken for a truth value.
    pub fn condition(&mut self, operand: &Operand<'a>) -> Result<(Predicate, bool), ParseError> {
        match operand.kind {
            OperandKind::Name(name, 0) => Ok((self.predicate(operand.at, name)?, false)),
            OperandKind::Not(name) => Ok((self.predicate(operand.at, name)?, true)),
            OperandKind::Number(Number::Integer(value)) => {
                let to = self.new_predicate();
                self.emit(crate::code::Op::PredicateSet { to, value: value != 0 }, None)?;
                Ok((to, false))
            }
            _ => error(operand.at, "expected a predicate"),
        }
    }

    /// `[base+offset]` in a space; a kernel's parameter or a local variable says its space itself.
    pub fn address(&mut self, operand: &Operand<'a>, space: Option<Space>) -> Result<Address, ParseError> {
        let OperandKind::Address(base, offset) = operand.kind else {
            return error(operand.at, "expected an address such as `[%rd1+8]`");
        };
        let space = space.unwrap_or(Space::Generic);
        let Some(name) = base else {
            return Ok(Address { space, base: self.constant(None, 0), offset });
        };
        Ok(match self.symbol(operand.at, name)? {
            Symbol::Register(register, _) => Address { space, base: Source(register), offset },
            Symbol::Predicate(_) | Symbol::Wide(..) => {
                return error(operand.at, format!("`{name}` is no register that holds an address"));
            }
            symbol => {
                let space = match (symbol, space) {
                    // Parameters of a function that is expanded lie in local memory, whatever space
                    // is written.
                    (Symbol::Local(_), Space::Param | Space::Generic | Space::Local) => Space::Local,
                    (Symbol::Param(_), Space::Param | Space::Generic) => Space::Param,
                    (Symbol::Shared(_) | Symbol::Based(crate::code::Base::DynamicShared, _), Space::Generic) => {
                        Space::Shared
                    }
                    (Symbol::Shared(_) | Symbol::Based(crate::code::Base::DynamicShared, _), Space::Shared) => space,
                    (
                        Symbol::Based(crate::code::Base::Global | crate::code::Base::Const, _),
                        Space::Global | Space::Generic,
                    ) => Space::Global,
                    _ => return error(operand.at, format!("`{name}` does not lie in that space")),
                };
                Address { space, base: self.address_of(symbol, offset), offset: 0 }
            }
        })
    }
}

/// A number's bits in a register of type `kind`.
pub(super) fn number_bits(number: Number, kind: Type) -> u64 {
    let bits = match number {
        Number::Integer(value) if kind.float() && kind.bits == 32 => u64::from((value as f32).to_bits()),
        Number::Integer(value) if kind.float() => (value as f64).to_bits(),
        Number::Integer(value) => value as u64,
        Number::Single(bits) if kind.bits == 64 => f64::from(f32::from_bits(bits)).to_bits(),
        Number::Single(bits) => u64::from(bits),
        Number::Double(bits) if kind.bits == 32 => u64::from((f64::from_bits(bits) as f32).to_bits()),
        Number::Double(bits) => bits,
    };
    bits & kind.mask()
}

fn special(name: &str, part: &str) -> Option<Special> {
    let axis = match part {
        "x" => 0,
        "y" => 1,
        "z" => 2,
        _ => return None,
    };
    match name {
        "%tid" => Some(Special::ThreadIndex(axis)),
        "%ntid" => Some(Special::BlockSize(axis)),
        "%ctaid" => Some(Special::BlockIndex(axis)),
        "%nctaid" => Some(Special::GridSize(axis)),
        _ => None,
    }
}

fn single_special(name: &str) -> Option<Special> {
    Some(match name {
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%nwarpid" => Special::Warps,
        "%lanemask_eq" => Special::LaneMask(LaneMask::Equal),
        "%lanemask_lt" => Special::LaneMask(LaneMask::Less),
        "%lanemask_le" => Special::LaneMask(LaneMask::LessEqual),
        "%lanemask_gt" => Special::LaneMask(LaneMask::Greater),
        "%lanemask_ge" => Special::LaneMask(LaneMask::GreaterEqual),
        "%smid" => Special::Processor,
        "%nsmid" => Special::Processors,
        "%gridid" => Special::Grid,
        "%dynamic_smem_size" => Special::DynamicShared,
        "%total_smem_size" => Special::TotalShared,
        _ => return None,
    })
}
