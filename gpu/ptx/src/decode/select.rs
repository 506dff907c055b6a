//! Comparison, selection, logic of predicates, moves.

use super::builder::{Builder, Symbol};
use super::control::{B64, Guard};
use super::modifiers::Modifiers;
use super::operands::Operands;
use crate::ParseError;
use crate::code::{Compare, Logic, Op, Predicate, Source};
use crate::lanes::{Class, Type, bits, compare};
use crate::syntax::{Operand, OperandKind, error};

impl<'a> Builder<'a> {
    pub fn predicate_logic(
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

    pub fn setp(
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
    pub fn set(
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

    pub fn testp(
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

    pub fn selp(
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
    pub fn slct(
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

    pub fn mov(
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
