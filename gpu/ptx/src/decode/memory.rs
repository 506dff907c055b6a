//! Loads, stores, atomics, fences, address conversions.

use super::builder::{Builder, Symbol};
use super::control::{B64, Guard};
use super::modifiers::Modifiers;
use super::operands::Operands;
use crate::ParseError;
use crate::code::{
    Address, Atomic, AtomicOp, LOCAL_WINDOW, Load, Op, Order, PARAM_WINDOW, Register, SHARED_WINDOW, Scope, Source,
    Space, Store,
};
use crate::lanes::{Class, Type, integer};
use crate::syntax::{Operand, OperandKind, error};

const WEAK: Order = Order { strong: false, acquire: false, release: false, scope: Scope::Block };

impl<'a> Builder<'a> {
    pub fn memory(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        match modifiers.opcode {
            "ld" | "ldu" => self.load(modifiers, operands, guard),
            "st" => self.store(modifiers, operands, guard),
            "atom" | "red" => self.atomic(modifiers, operands, guard),
            "cvta" => self.cvta(modifiers, operands, guard),
            "isspacep" => self.is_space(modifiers, operands, guard),
            "membar" | "fence" => self.fence(modifiers, operands, guard),
            _ => {
                // A prefetch changes nothing that a program can see.
                while modifiers.one_of(&["global", "local", "L1", "L2", "L2::evict_last", "L2::evict_normal"]).is_some()
                {
                }
                self.emit(Op::Nothing, guard)
            }
        }
    }

    pub fn emit_load(&mut self, at: Address, bytes: u8, to: Register, guard: Guard) -> Result<(), ParseError> {
        let load = Load { at, bytes, elements: 1, sign: None, order: WEAK, to: [to; 4] };
        self.emit(Op::Load(Box::new(load)), guard)
    }

    /// The elements of a vector operand, or the one operand.
    fn elements<'o>(&self, operand: &'o Operand<'a>, count: usize) -> Result<&'o [Operand<'a>], ParseError> {
        let list = match &operand.kind {
            OperandKind::Vector(list) => list.as_slice(),
            _ => std::slice::from_ref(operand),
        };
        if list.len() == count {
            return Ok(list);
        }
        error(operand.at, format!("expected {count} registers, found {}", list.len()))
    }

    fn load(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let space = modifiers.space();
        let order = modifiers.order(false);
        let count = modifiers.vector();
        let kind = modifiers.kind()?;
        operands.exactly(2, modifiers.opcode)?;
        let at = self.address(&operands.all[1], space)?;
        let mut to = [0; 4];
        if kind.bits == 128 {
            let (low, high) = self.halves(&operands.all[0])?;
            to[..2].copy_from_slice(&[low, high]);
            let load = Load { at, bytes: 8, elements: 2, sign: None, order, to };
            return self.emit(Op::Load(Box::new(load)), guard);
        }
        let mut sign = None;
        for (index, element) in self.elements(&operands.all[0], count)?.iter().enumerate() {
            let (register, register_kind) = self.target(element)?;
            to[index] = register;
            if kind.signed() && register_kind.bits > kind.bits {
                sign = Some(register_kind.bits as u8);
            }
        }
        self.accessible(modifiers, kind)?;
        let load = Load { at, bytes: kind.bytes() as u8, elements: count as u8, sign, order, to };
        self.emit(Op::Load(Box::new(load)), guard)
    }

    fn accessible(&self, modifiers: &Modifiers<'a>, kind: Type) -> Result<(), ParseError> {
        if matches!(kind.bits, 8 | 16 | 32 | 64) { Ok(()) } else { modifiers.unsupported() }
    }

    fn store(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let space = modifiers.space();
        let order = modifiers.order(false);
        let count = modifiers.vector();
        let kind = modifiers.kind()?;
        operands.exactly(2, "st")?;
        let at = self.address(&operands.all[0], space)?;
        let mut from = [Source(0); 4];
        if kind.bits == 128 {
            let (low, high) = self.halves(&operands.all[1])?;
            from[..2].copy_from_slice(&[Source(low), Source(high)]);
            let store = Store { at, bytes: 8, elements: 2, order, from };
            return self.emit(Op::Store(Box::new(store)), guard);
        }
        for (index, element) in self.elements(&operands.all[1], count)?.iter().enumerate() {
            from[index] = self.source(element, kind)?;
        }
        self.accessible(modifiers, kind)?;
        let store = Store { at, bytes: kind.bytes() as u8, elements: count as u8, order, from };
        self.emit(Op::Store(Box::new(store)), guard)
    }

    fn atomic(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let space = modifiers.space();
        let order = modifiers.order(true);
        let names = ["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"];
        let Some(name) = modifiers.one_of(&names) else { return modifiers.unsupported() };
        modifiers.take("noftz");
        let kind = modifiers.kind()?;
        let op = atomic_op(name);
        let numeric = matches!(op, AtomicOp::Min | AtomicOp::Max | AtomicOp::Increment | AtomicOp::Decrement);
        let supported = match kind.class {
            Class::Float => op == AtomicOp::Add && kind.bits >= 32,
            Class::Bits => !numeric && op != AtomicOp::Add && (kind.bits >= 32 || op == AtomicOp::CompareAndSwap),
            Class::Unsigned | Class::Signed => kind.bits >= 32,
            Class::Predicate => false,
        };
        if !supported || matches!(kind.bits, 8 | 128) {
            return modifiers.unsupported();
        }
        let returns = modifiers.opcode == "atom";
        let values = if op == AtomicOp::CompareAndSwap { 2 } else { 1 };
        operands.exactly(usize::from(returns) + 1 + values, modifiers.opcode)?;
        let (to, rest) =
            if returns { (Some(self.target(&operands.all[0])?.0), &operands.all[1..]) } else { (None, operands.all) };
        let at = self.address(&rest[0], space)?;
        let a = self.source(&rest[1], kind)?;
        let b = if values == 2 { self.source(&rest[2], kind)? } else { a };
        let (signed, float) = (kind.signed(), kind.float());
        let atomic = Atomic { at, op, signed, float, bytes: kind.bytes() as u8, order, to, a, b };
        self.emit(Op::Atomic(Box::new(atomic)), guard)
    }

    /// `cvta.shared.u64` gives a generic address, `cvta.to.shared.u64` takes one.
    fn cvta(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let to_space = modifiers.take("to");
        let Some(mut space) = modifiers.space() else { return modifiers.unsupported() };
        let kind = modifiers.kind()?;
        operands.exactly(2, "cvta")?;
        let to = self.target(&operands.all[0])?.0;
        if let OperandKind::Name(name, _) = operands.all[1].kind
            && !to_space
            && matches!(self.symbol(operands.at, name), Ok(Symbol::Local(_)))
        {
            space = Space::Local;
        }
        let a = self.source(&operands.all[1], kind)?;
        let window = match space {
            Space::Global | Space::Generic => return self.emit(Op::Move { to, a }, guard),
            Space::Shared => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            Space::Param => PARAM_WINDOW,
        };
        let b = self.constant(None, window);
        let f = integer::two_of(if to_space { "sub" } else { "add" }, Type { class: Class::Unsigned, bits: 64 });
        self.emit(Op::Two { f: f.expect("add.u64 is there"), to, a, b }, guard)
    }

    fn is_space(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let Some(space) = modifiers.space() else { return modifiers.unsupported() };
        operands.exactly(2, "isspacep")?;
        let (to, _) = self.condition(&operands.all[0])?;
        let a = self.source(&operands.all[1], B64)?;
        self.emit(Op::IsSpace { to, a, space }, guard)
    }

    fn fence(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        operands.exactly(0, modifiers.opcode)?;
        // Each fence is treated as sequentially consistent: memory here is, between instructions.
        let light = modifiers.one_of(&["sc", "acq_rel", "acquire", "release"]).is_some_and(|order| order != "sc");
        let Some(scope) = modifiers.scope() else { return modifiers.unsupported() };
        self.emit(Op::Fence { scope, light }, guard)
    }
}

fn atomic_op(name: &str) -> AtomicOp {
    match name {
        "add" => AtomicOp::Add,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exchange,
        "cas" => AtomicOp::CompareAndSwap,
        "inc" => AtomicOp::Increment,
        _ => AtomicOp::Decrement,
    }
}
