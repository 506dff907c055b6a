//! The opcodes: which part decodes which; and branches, calls, ends.

use super::builder::{Builder, Symbol};
use super::modifiers::Modifiers;
use super::operands::Operands;
use crate::ParseError;
use crate::code::{Op, Predicate, Source, Space};
use crate::lanes::{Class, Type};
use crate::syntax::{Function, Instruction, Operand, OperandKind, Position, error};

/// A guard as it is decoded.
pub(super) type Guard = Option<(Predicate, bool)>;

pub(super) const B32: Type = Type { class: Class::Bits, bits: 32 };
pub(super) const B64: Type = Type { class: Class::Bits, bits: 64 };

impl<'a> Builder<'a> {
    pub fn instruction(&mut self, at: Position, instruction: &'a Instruction<'a>) -> Result<(), ParseError> {
        let guard = match instruction.guard {
            Some((name, negated)) => Some((self.predicate(at, name)?, negated)),
            None => None,
        };
        let mut modifiers = Modifiers::new(at, instruction.opcode, &instruction.modifiers);
        let operands = Operands { at, all: &instruction.operands };
        match instruction.opcode {
            "bra" => self.bra(&mut modifiers, &operands, guard)?,
            "brx" => self.brx(&mut modifiers, &operands, guard)?,
            "ret" | "exit" => {
                modifiers.take("uni");
                operands.exactly(0, instruction.opcode)?;
                if instruction.opcode == "ret" && !self.outermost() {
                    self.branch_to_end();
                    self.emit(Op::Branch { target: 0 }, guard)?;
                } else {
                    self.emit(Op::Exit, guard)?;
                }
            }
            "trap" | "brkpt" => self.emit(Op::Trap, guard)?,
            "call" => self.call(&mut modifiers, &operands, guard)?,
            "ld" | "ldu" | "st" | "atom" | "red" | "membar" | "fence" | "cvta" | "isspacep" | "prefetch"
            | "prefetchu" => self.memory(&mut modifiers, &operands, guard)?,
            "bar" | "barrier" | "shfl" | "vote" | "match" | "activemask" | "redux" | "nanosleep" => {
                self.warp(&mut modifiers, &operands, guard)?
            }
            "cvt" => self.convert(&mut modifiers, &operands, guard)?,
            _ => self.arithmetic(&mut modifiers, &operands, guard)?,
        }
        modifiers.finish()
    }

    fn bra(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("uni");
        operands.exactly(1, "bra")?;
        let OperandKind::Name(label, 0) = operands.all[0].kind else {
            return error(operands.at, "expected a label");
        };
        self.branch(operands.at, vec![label]);
        self.emit(Op::Branch { target: 0 }, guard)
    }

    fn brx(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("idx");
        modifiers.take("uni");
        operands.exactly(2, "brx.idx")?;
        let index = self.source(&operands.all[0], B32)?;
        let OperandKind::Name(name, 0) = operands.all[1].kind else {
            return error(operands.at, "expected the label of `.branchtargets`");
        };
        let Some(labels) = self.table(name) else {
            return error(operands.at, format!("`{name}` is no list of branch targets declared before"));
        };
        self.branch(operands.at, labels);
        self.emit(Op::BranchTable { index, targets: Box::default() }, guard)
    }

    fn call(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("uni");
        let (mut results, mut name, mut arguments): (&[Operand<'a>], _, &[Operand<'a>]) = (&[], None, &[]);
        for operand in operands.all {
            match &operand.kind {
                OperandKind::List(list) if name.is_none() => results = list,
                OperandKind::List(list) => arguments = list,
                OperandKind::Name(function, 0) if name.is_none() => name = Some(*function),
                _ => return error(operand.at, "a call through a register is not supported"),
            }
        }
        let Some(name) = name else { return error(operands.at, "expected the name of a function") };
        if name == "__assertfail" {
            return self.assertion(operands.at, arguments, guard);
        }
        let functions = &self.syntax.functions;
        let defined = functions.iter().find(|function| function.name == name && function.body.is_some());
        let Some(function) = defined.filter(|function| !function.entry) else {
            return error(operands.at, format!("a call of `{name}`, which has no body here, is not supported"));
        };
        if guard.is_some() {
            return error(operands.at, "a call with a predicate is not supported");
        }
        self.expand(operands.at, function, results, arguments)
    }

    fn expand(
        &mut self,
        at: Position,
        function: &'a Function<'a>,
        results: &[Operand<'a>],
        arguments: &[Operand<'a>],
    ) -> Result<(), ParseError> {
        let formal = function.results.iter().chain(&function.parameters);
        let actual: Vec<&Operand<'a>> = results.iter().chain(arguments).collect();
        let names: Vec<_> = formal.map(|declaration| declaration.name).collect();
        if results.len() != function.results.len() || names.len() != actual.len() {
            return error(
                at,
                format!(
                    "`{}` takes {} arguments and gives {} results; the call has {} and {}",
                    function.name,
                    function.parameters.len(),
                    function.results.len(),
                    arguments.len(),
                    results.len()
                ),
            );
        }
        let mut bound = Vec::new();
        for (formal, actual) in names.into_iter().zip(actual) {
            bound.push((formal, self.bind(actual)?));
        }
        let line = self.line;
        self.body(function, bound)?;
        self.line = line;
        Ok(())
    }

    /// The variable or register that a formal parameter stands for.
    fn bind(&mut self, actual: &Operand<'a>) -> Result<Symbol, ParseError> {
        match actual.kind {
            OperandKind::Name(name, 0) => match self.symbol(actual.at, name)? {
                symbol @ (Symbol::Local(_) | Symbol::Register(..) | Symbol::Predicate(_)) => Ok(symbol),
                _ => error(actual.at, format!("`{name}` cannot be passed to a function")),
            },
            _ => error(actual.at, "expected a `.param` variable or a register"),
        }
    }

    fn assertion(&mut self, at: Position, arguments: &[Operand<'a>], guard: Guard) -> Result<(), ParseError> {
        if arguments.len() < 4 {
            return error(at, "`__assertfail` takes 5 arguments");
        }
        let mut value = |index: usize, bytes: u8| -> Result<Source, ParseError> {
            let OperandKind::Name(name, 0) = arguments[index].kind else {
                return error(at, "expected a `.param` variable");
            };
            match self.symbol(at, name)? {
                Symbol::Register(register, _) => Ok(Source(register)),
                Symbol::Local(offset) => {
                    let base = self.constant(None, offset);
                    let to = self.new_register();
                    let address = crate::code::Address { space: Space::Local, base, offset: 0 };
                    self.emit_load(address, bytes, to, guard)?;
                    Ok(Source(to))
                }
                _ => error(at, format!("`{name}` is no argument")),
            }
        };
        let (message, file, line, function) = (value(0, 8)?, value(1, 8)?, value(2, 4)?, value(3, 8)?);
        self.emit(Op::Assert { message, file, line, function }, guard)
    }
}
