//! Arithmetic, logic and shifts.

use super::builder::Builder;
use super::control::{B32, Guard};
use super::modifiers::Modifiers;
use super::operands::Operands;
use crate::ParseError;
use crate::code::{Op, Source};
use crate::lanes::float::Mode;
use crate::lanes::rounding::Rounding;
use crate::lanes::{Class, One, Three, Two, Type, bits, float, integer};
use crate::syntax::{Number, OperandKind, error};

impl<'a> Builder<'a> {
    pub fn arithmetic(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        match modifiers.opcode {
            "mov" => self.mov(modifiers, operands, guard),
            "add" | "sub" | "mul" | "mul24" | "div" | "rem" | "min" | "max" | "copysign" | "addc" | "subc" => {
                self.two(modifiers, operands, guard)
            }
            "mad" | "madc" | "fma" | "sad" => self.three(modifiers, operands, guard),
            "neg" | "abs" | "sqrt" | "rcp" | "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh" => {
                self.one(modifiers, operands, guard)
            }
            "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "popc" | "clz" | "brev" | "bfind" | "bfe"
            | "bfi" | "prmt" | "shf" | "lop3" => self.bits(modifiers, operands, guard),
            "setp" => self.setp(modifiers, operands, guard),
            "set" => self.set(modifiers, operands, guard),
            "testp" => self.testp(modifiers, operands, guard),
            "selp" => self.selp(modifiers, operands, guard),
            "slct" => self.slct(modifiers, operands, guard),
            opcode => error(operands.at, format!("the instruction `{opcode}` is not known or not supported")),
        }
    }

    fn mode(modifiers: &mut Modifiers<'a>) -> Mode {
        Mode { ftz: modifiers.take("ftz"), sat: modifiers.take("sat") }
    }

    pub fn emit_one(
        &mut self,
        f: Option<One>,
        modifiers: &Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        kind: Type,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let Some(f) = f else { return modifiers.unsupported() };
        operands.exactly(2, modifiers.opcode)?;
        let (to, a) = (self.target(&operands.all[0])?.0, self.source(&operands.all[1], kind)?);
        self.emit(Op::One { f, to, a }, guard)
    }

    fn emit_two(
        &mut self,
        f: Option<Two>,
        modifiers: &Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        kinds: [Type; 2],
        guard: Guard,
    ) -> Result<(), ParseError> {
        let Some(f) = f else { return modifiers.unsupported() };
        operands.exactly(3, modifiers.opcode)?;
        let to = self.target(&operands.all[0])?.0;
        let (a, b) = (self.source(&operands.all[1], kinds[0])?, self.source(&operands.all[2], kinds[1])?);
        self.emit(Op::Two { f, to, a, b }, guard)
    }

    fn emit_three(
        &mut self,
        f: Option<Three>,
        modifiers: &Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        kinds: [Type; 3],
        guard: Guard,
    ) -> Result<(), ParseError> {
        let Some(f) = f else { return modifiers.unsupported() };
        operands.exactly(4, modifiers.opcode)?;
        let to = self.target(&operands.all[0])?.0;
        let a = self.source(&operands.all[1], kinds[0])?;
        let b = self.source(&operands.all[2], kinds[1])?;
        let c = self.source(&operands.all[3], kinds[2])?;
        self.emit(Op::Three { f, to, a, b, c }, guard)
    }

    fn two(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let kind = modifiers.kind()?;
        let opcode = modifiers.opcode;
        if modifiers.take("cc") || matches!(opcode, "addc" | "subc") {
            return self.with_carry(modifiers, operands, kind, guard);
        }
        if kind.float() {
            let mode = Self::mode(modifiers);
            // `div` in these forms is correctly rounded: within the error that they allow.
            if opcode == "div" {
                modifiers.one_of(&["approx", "full"]);
            }
            let rounding = modifiers.rounding();
            if rounding != Rounding::Nearest {
                let f = if mode == Mode::default() { float::rounded_two_of(opcode, kind, rounding) } else { None };
                return self.emit_two(f, modifiers, operands, [kind; 2], guard);
            }
            let nan = modifiers.take("NaN");
            let name = if nan { format!("{opcode}.NaN") } else { opcode.to_string() };
            let f = if matches!(opcode, "rem" | "mul24") { None } else { float::two_of(&name, kind, mode) };
            return self.emit_two(f, modifiers, operands, [kind; 2], guard);
        }
        let mut name = opcode.to_string();
        if let Some(part) = modifiers.one_of(&["lo", "hi", "wide", "sat"]) {
            name = format!("{name}.{part}");
        }
        self.emit_two(integer::two_of(&name, kind), modifiers, operands, [kind; 2], guard)
    }

    fn with_carry(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        kind: Type,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let opcode = modifiers.opcode;
        let (out, takes) = (opcode.len() == 3 || modifiers.take("cc"), opcode.len() == 4);
        operands.exactly(3, opcode)?;
        let subtract = opcode.starts_with("sub");
        let functions = (integer::carry_of(subtract, false, kind.bits), integer::carry_of(subtract, true, kind.bits));
        let (Some(value), Some(carry)) = functions else { return modifiers.unsupported() };
        if !matches!(opcode, "add" | "sub" | "addc" | "subc") || kind.float() {
            return modifiers.unsupported();
        }
        let to = self.target(&operands.all[0])?.0;
        let (a, b) = (self.source(&operands.all[1], kind)?, self.source(&operands.all[2], kind)?);
        let flag = self.carry();
        let zero = self.constant(None, 0);
        let carry_in = if takes { Source(flag) } else { zero };
        // The sum goes to a register of its own first: the target may be one of the operands.
        let sum = self.new_register();
        self.emit(Op::Four { f: value, to: sum, from: [a, b, carry_in, zero] }, guard)?;
        if out {
            self.emit(Op::Four { f: carry, to: flag, from: [a, b, carry_in, zero] }, guard)?;
        }
        self.emit(Op::Move { to, a: Source(sum) }, guard)
    }

    fn mad_with_carry(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        kind: Type,
        out: bool,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let high = modifiers.one_of(&["lo", "hi"]) == Some("hi");
        let functions = (integer::mad_carry_of(high, false, kind), integer::mad_carry_of(high, true, kind));
        let (Some(value), Some(carry)) = functions else { return modifiers.unsupported() };
        if !matches!(modifiers.opcode, "mad" | "madc") || kind.float() {
            return modifiers.unsupported();
        }
        operands.exactly(4, modifiers.opcode)?;
        let to = self.target(&operands.all[0])?.0;
        let flag = self.carry();
        let carry_in = if modifiers.opcode == "madc" { Source(flag) } else { self.constant(None, 0) };
        let mut from = [carry_in; 4];
        for (from, operand) in from.iter_mut().zip(&operands.all[1..]) {
            *from = self.source(operand, kind)?;
        }
        let sum = self.new_register();
        self.emit(Op::Four { f: value, to: sum, from }, guard)?;
        if out {
            self.emit(Op::Four { f: carry, to: flag, from }, guard)?;
        }
        self.emit(Op::Move { to, a: Source(sum) }, guard)
    }

    fn three(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let kind = modifiers.kind()?;
        let opcode = modifiers.opcode;
        if modifiers.take("cc") {
            return self.mad_with_carry(modifiers, operands, kind, true, guard);
        }
        if opcode == "madc" {
            return self.mad_with_carry(modifiers, operands, kind, false, guard);
        }
        if kind.float() {
            let mode = Self::mode(modifiers);
            let rounding = modifiers.rounding();
            if rounding != Rounding::Nearest {
                let f = if mode == Mode::default() { float::rounded_three_of(opcode, kind, rounding) } else { None };
                return self.emit_three(f, modifiers, operands, [kind; 3], guard);
            }
            let f = if opcode == "sad" { None } else { float::three_of(opcode, kind, mode) };
            return self.emit_three(f, modifiers, operands, [kind; 3], guard);
        }
        let name = match modifiers.one_of(&["lo", "hi", "wide"]) {
            Some(part) => format!("{opcode}.{part}"),
            None => opcode.to_string(),
        };
        let last = if name == "mad.wide" { Type { bits: kind.bits * 2, ..kind } } else { kind };
        self.emit_three(integer::three_of(&name, kind), modifiers, operands, [kind, kind, last], guard)
    }

    fn one(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let kind = modifiers.kind()?;
        let opcode = modifiers.opcode;
        if !kind.float() {
            return self.emit_one(integer::one_of(opcode, kind), modifiers, operands, kind, guard);
        }
        let mode = Self::mode(modifiers);
        modifiers.take("approx");
        modifiers.nearest()?;
        self.emit_one(float::one_of(opcode, kind, mode), modifiers, operands, kind, guard)
    }

    fn bits(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let mut name = modifiers.opcode.to_string();
        if name == "shf" {
            let (Some(way), Some(beyond)) = (modifiers.one_of(&["l", "r"]), modifiers.one_of(&["wrap", "clamp"]))
            else {
                return modifiers.unsupported();
            };
            name = format!("shf.{way}.{beyond}");
        }
        if let Some(more) = modifiers.one_of(&["shiftamt", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]) {
            name = format!("{name}.{more}");
        }
        let kind = modifiers.kind()?;
        if kind.class == Class::Predicate {
            return self.predicate_logic(modifiers, operands, guard);
        }
        if kind.float() {
            return modifiers.unsupported();
        }
        match modifiers.opcode {
            "and" | "or" | "xor" => self.emit_two(bits::two_of(&name, kind), modifiers, operands, [kind; 2], guard),
            "shl" | "shr" => {
                let distance = operands.all.get(2).map(|operand| &operand.kind);
                let by_number = matches!(distance, Some(OperandKind::Number(Number::Integer(n))) if (0..i64::from(kind.bits)).contains(n));
                let uniform = if by_number { bits::uniform_shift(&name, kind) } else { None };
                let f = uniform.or_else(|| bits::two_of(&name, kind));
                self.emit_two(f, modifiers, operands, [kind, B32], guard)
            }
            "bfe" => self.emit_three(bits::three_of(&name, kind), modifiers, operands, [kind, B32, B32], guard),
            "prmt" | "shf" => self.emit_three(bits::three_of(&name, kind), modifiers, operands, [kind; 3], guard),
            "bfi" | "lop3" => {
                let Some(f) = bits::four_of(&name, kind) else { return modifiers.unsupported() };
                operands.exactly(5, modifiers.opcode)?;
                let to = self.target(&operands.all[0])?.0;
                let mut from = [Source(0); 4];
                for (index, kind) in [kind, kind, B32, B32].into_iter().enumerate() {
                    let kind = if name == "lop3" { B32 } else { kind };
                    from[index] = self.source(&operands.all[index + 1], kind)?;
                }
                self.emit(Op::Four { f, to, from }, guard)
            }
            _ => self.emit_one(bits::one_of(&name, kind), modifiers, operands, kind, guard),
        }
    }
}
