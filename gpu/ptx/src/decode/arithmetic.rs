//! Arithmetic, logic, comparison, selection, moves.

use super::builder::{Builder, Symbol};
use super::control::{B32, B64, Guard};
use super::modifiers::Modifiers;
use super::operands::Operands;
use crate::ParseError;
use crate::code::{Compare, Logic, Op, Predicate, Source};
use crate::lanes::convert::Rounding;
use crate::lanes::float::Mode;
use crate::lanes::{Class, One, Three, Two, Type, bits, compare, float, integer};
use crate::syntax::{Number, Operand, OperandKind, error};

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
            let _ = opcode == "div" && modifiers.one_of(&["approx", "full"]).is_some();
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

    fn predicate_logic(
        &mut self,
        modifiers: &Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let Some(first) = operands.all.first() else { return operands.exactly(3, modifiers.opcode) };
        let (to, _) = self.condition(first)?;
        let logic = match modifiers.opcode {
            "and" => Logic::And,
            "or" => Logic::Or,
            "xor" => Logic::Xor,
            "not" => {
                operands.exactly(2, "not")?;
                let (a, negated) = self.condition(&operands.all[1])?;
                let op = if negated { Op::PredicateMove { to, a } } else { Op::PredicateNot { to, a } };
                return self.emit(op, guard);
            }
            _ => return modifiers.unsupported(),
        };
        operands.exactly(3, modifiers.opcode)?;
        let (a, not_a) = self.condition(&operands.all[1])?;
        let (b, not_b) = self.condition(&operands.all[2])?;
        let a = if not_a { self.negated(a)? } else { a };
        self.emit(Op::PredicateLogic { logic, to, a, b, not_b }, guard)
    }

    fn negated(&mut self, a: Predicate) -> Result<Predicate, ParseError> {
        let to = self.new_predicate();
        self.emit(Op::PredicateNot { to, a }, None)?;
        Ok(to)
    }

    /// The target of a comparison: `%p` or `%p|%q`.
    fn compare_target(&mut self, operand: &Operand<'a>) -> Result<(Predicate, Option<Predicate>), ParseError> {
        match operand.kind {
            OperandKind::Pair(p, q) => Ok((self.predicate(operand.at, p)?, Some(self.predicate(operand.at, q)?))),
            OperandKind::Name(p, 0) => Ok((self.predicate(operand.at, p)?, None)),
            _ => error(operand.at, "expected a predicate, or two as `%p|%q`"),
        }
    }

    fn comparison(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        kind: Type,
        to: (Predicate, Option<Predicate>),
    ) -> Result<Compare, ParseError> {
        let names = [
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
            "num", "nan",
        ];
        let Some(name) = modifiers.one_of(&names) else { return modifiers.unsupported() };
        let join = modifiers.one_of(&["and", "or", "xor"]).map(|logic| match logic {
            "and" => Logic::And,
            "or" => Logic::Or,
            _ => Logic::Xor,
        });
        let Some(test) = compare::test_of(name, kind, modifiers.take("ftz")) else { return modifiers.unsupported() };
        operands.exactly(if join.is_some() { 4 } else { 3 }, modifiers.opcode)?;
        let (a, b) = (self.source(&operands.all[1], kind)?, self.source(&operands.all[2], kind)?);
        let join = match join {
            Some(logic) => {
                let (with, not) = self.condition(&operands.all[3])?;
                Some((logic, with, not))
            }
            None => None,
        };
        Ok(Compare { test, to: to.0, not: to.1, a, b, join })
    }

    fn setp(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let kind = modifiers.kind()?;
        let Some(first) = operands.all.first() else { return operands.exactly(3, "setp") };
        let to = self.compare_target(first)?;
        let compare = self.comparison(modifiers, operands, kind, to)?;
        self.emit(Op::Compare(Box::new(compare)), guard)
    }

    /// `set.lt.u32.s32`: all ones, or 1.0, where it holds.
    fn set(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let (result, kind) = (modifiers.kind()?, modifiers.kind()?);
        let flag = self.new_predicate();
        let compare = self.comparison(modifiers, operands, kind, (flag, None))?;
        let to = self.target(&operands.all[0])?.0;
        let holds = if result.float() { u64::from(1f32.to_bits()) } else { u64::from(u32::MAX) };
        let (a, b) = (self.constant(None, holds), self.constant(None, 0));
        self.emit(Op::Compare(Box::new(compare)), guard)?;
        self.emit(Op::Select { to, a, b, by: flag }, guard)
    }

    fn testp(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let kind = modifiers.kind()?;
        let names = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
        let test = modifiers.one_of(&names).and_then(|name| compare::property_of(name, kind));
        let Some(test) = test else { return modifiers.unsupported() };
        operands.exactly(2, "testp")?;
        let (to, not) = self.compare_target(&operands.all[0])?;
        let a = self.source(&operands.all[1], kind)?;
        self.emit(Op::Compare(Box::new(Compare { test, to, not, a, b: a, join: None })), guard)
    }

    fn selp(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let kind = modifiers.kind()?;
        operands.exactly(4, "selp")?;
        let to = self.target(&operands.all[0])?.0;
        let (a, b) = (self.source(&operands.all[1], kind)?, self.source(&operands.all[2], kind)?);
        let (by, negated) = self.condition(&operands.all[3])?;
        let (a, b) = if negated { (b, a) } else { (a, b) };
        self.emit(Op::Select { to, a, b, by }, guard)
    }

    /// `slct.u32.s32 d, a, b, c`: a where c is at least zero.
    fn slct(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let (kind, by) = (modifiers.kind()?, modifiers.kind()?);
        operands.exactly(4, "slct")?;
        let Some(test) = compare::test_of("ge", by, modifiers.take("ftz")) else { return modifiers.unsupported() };
        let to = self.target(&operands.all[0])?.0;
        let (a, b) = (self.source(&operands.all[1], kind)?, self.source(&operands.all[2], kind)?);
        let (c, zero) = (self.source(&operands.all[3], by)?, self.constant(None, 0));
        let flag = self.new_predicate();
        self.emit(Op::Compare(Box::new(Compare { test, to: flag, not: None, a: c, b: zero, join: None })), guard)?;
        self.emit(Op::Select { to, a, b, by: flag }, guard)
    }

    fn mov(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let kind = modifiers.kind()?;
        operands.exactly(2, "mov")?;
        let (first, second) = (&operands.all[0], &operands.all[1]);
        if kind.class == Class::Predicate {
            let ((to, _), (a, negated)) = (self.condition(first)?, self.condition(second)?);
            let op = if negated { Op::PredicateNot { to, a } } else { Op::PredicateMove { to, a } };
            return self.emit(op, guard);
        }
        if let OperandKind::Vector(parts) = &second.kind {
            return self.pack(first, parts, kind, guard);
        }
        if let OperandKind::Vector(parts) = &first.kind {
            return self.unpack(parts, second, kind, guard);
        }
        if kind.bits == 128 {
            let (to, a) = (self.halves(first)?, self.halves(second)?);
            self.emit(Op::Move { to: to.0, a: Source(a.0) }, guard)?;
            return self.emit(Op::Move { to: to.1, a: Source(a.1) }, guard);
        }
        let to = self.target(first)?.0;
        if let OperandKind::Name(name @ ("%clock" | "%clock64" | "%clock_hi" | "%globaltimer"), 0) = second.kind {
            let bits = if name == "%clock" { 32 } else { 64 };
            return self.emit(Op::Clock { to, bits }, guard);
        }
        let a = self.source(second, kind)?;
        self.emit(Op::Move { to, a }, guard)
    }

    /// The two registers of a register of 128 bits.
    pub fn halves(&mut self, operand: &Operand<'a>) -> Result<(u32, u32), ParseError> {
        if let OperandKind::Name(name, 0) = operand.kind
            && let Symbol::Wide(low, high) = self.symbol(operand.at, name)?
        {
            return Ok((low, high));
        }
        error(operand.at, "expected a register of type `.b128`")
    }

    /// `mov.b64 %rd, {%r1, %r2}`
    fn pack(&mut self, to: &Operand<'a>, parts: &[Operand<'a>], kind: Type, guard: Guard) -> Result<(), ParseError> {
        if !matches!(parts.len(), 2 | 4) || kind.bits as usize / parts.len() < 8 {
            return error(to.at, "expected two or four parts");
        }
        let part = Type { class: Class::Bits, bits: kind.bits / parts.len() as u32 };
        if kind.bits == 128 {
            let (low, high) = self.halves(to)?;
            if parts.len() != 2 {
                return error(to.at, "expected two parts of 64 bits");
            }
            let (a, b) = (self.source(&parts[0], part)?, self.source(&parts[1], part)?);
            self.emit(Op::Move { to: low, a }, guard)?;
            return self.emit(Op::Move { to: high, a: b }, guard);
        }
        let to = self.target(to)?.0;
        let mut value = self.constant(None, 0);
        let insert = bits::four_of("bfi", B64).expect("bfi.b64 is there");
        for (index, operand) in parts.iter().enumerate() {
            let source = self.source(operand, part)?;
            let position = self.constant(None, u64::from(part.bits) * index as u64);
            let length = self.constant(None, u64::from(part.bits));
            let next = if index + 1 == parts.len() { to } else { self.new_register() };
            self.emit(Op::Four { f: insert, to: next, from: [source, value, position, length] }, guard)?;
            value = Source(next);
        }
        Ok(())
    }

    /// `mov.b64 {%r1, %r2}, %rd`
    fn unpack(
        &mut self,
        parts: &[Operand<'a>],
        from: &Operand<'a>,
        kind: Type,
        guard: Guard,
    ) -> Result<(), ParseError> {
        if !matches!(parts.len(), 2 | 4) || kind.bits as usize / parts.len() < 8 {
            return error(from.at, "expected two or four parts");
        }
        if kind.bits == 128 {
            let (low, high) = self.halves(from)?;
            for (part, half) in parts.iter().zip([low, high]) {
                let to = self.target(part)?.0;
                self.emit(Op::Move { to, a: Source(half) }, guard)?;
            }
            return Ok(());
        }
        // The source may be one of the targets.
        let (source, whole) = (self.source(from, kind)?, self.new_register());
        self.emit(Op::Move { to: whole, a: source }, guard)?;
        let width = kind.bits / parts.len() as u32;
        let extract = bits::three_of("bfe", Type { class: Class::Unsigned, bits: 64 }).expect("bfe.u64 is there");
        for (index, part) in parts.iter().enumerate() {
            let to = self.target(part)?.0;
            let position = self.constant(None, u64::from(width) * index as u64);
            let length = self.constant(None, u64::from(width));
            self.emit(Op::Three { f: extract, to, a: Source(whole), b: position, c: length }, guard)?;
        }
        Ok(())
    }
}
