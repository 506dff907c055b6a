//! A kernel being decoded: its registers, constants, names and instructions.

mod declare;

use std::collections::HashMap;
use std::sync::Arc;

use crate::code::{Base, Code, Ins, Op, Predicate, Register, Source, Special, Variables};
use crate::decode::variables::{Layout, round_up, size_of};
use crate::lanes::Type;
use crate::syntax::{Function, Position, Source as Syntax, Statement, StatementKind, error};
use crate::{Parameter, ParseError};

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbol {
    Register(Register, Type),
    Predicate(Predicate),
    /// A register of 128 bits: its low and its high half.
    Wide(Register, Register),
    /// A parameter of the kernel, at an offset of its parameters.
    Param(u64),
    /// A variable of a thread, at an offset of its local memory.
    Local(u64),
    Shared(u64),
    /// Global, constant, or dynamically sized shared memory.
    Based(Base, u64),
}

/// Names of one `{ ... }`.
#[derive(Default)]
struct Names<'a> {
    exact: HashMap<&'a str, Symbol>,
    /// `%r<5>` as `%r` with its number and type: registers get a place when first used.
    ranges: HashMap<&'a str, (u64, Type)>,
}

/// One function while its body is expanded.
struct Frame<'a> {
    name: &'a str,
    scopes: usize,
    labels: HashMap<&'a str, u32>,
    tables: HashMap<&'a str, Vec<&'a str>>,
    branches: Vec<(usize, Position, Vec<&'a str>)>,
    /// Branches to the end of the body: `ret`.
    returns: Vec<usize>,
}

pub(super) struct Builder<'a> {
    pub syntax: &'a Syntax<'a>,
    layout: &'a Layout<'a>,
    pub instructions: Vec<Ins>,
    registers: u32,
    predicates: u32,
    constants: Vec<(Option<Base>, u64)>,
    constant_index: HashMap<(Option<Base>, u64), usize>,
    specials: Vec<(Special, Register)>,
    shared_bytes: u64,
    local_bytes: u64,
    scopes: Vec<Names<'a>>,
    frames: Vec<Frame<'a>>,
    /// Shared variables that have a place, by function (none for the module's own) and name.
    shared: HashMap<(&'a str, &'a str), Symbol>,
    carry: Option<Register>,
    kernel: &'a str,
    pub line: u32,
}

const MOST_INSTRUCTIONS: usize = 1 << 22;

impl<'a> Builder<'a> {
    pub fn new(syntax: &'a Syntax<'a>, layout: &'a Layout<'a>, function: &'a Function<'a>) -> Self {
        Self {
            syntax,
            layout,
            instructions: Vec::new(),
            registers: 0,
            predicates: 0,
            constants: Vec::new(),
            constant_index: HashMap::new(),
            specials: Vec::new(),
            shared_bytes: 0,
            local_bytes: 0,
            scopes: Vec::new(),
            frames: Vec::new(),
            shared: HashMap::new(),
            carry: None,
            kernel: function.name,
            line: 0,
        }
    }

    /// Decodes the kernel itself.
    pub fn kernel(&mut self, function: &'a Function<'a>) -> Result<(), ParseError> {
        let mut offset = 0;
        let mut bound = Vec::new();
        for parameter in &function.parameters {
            let (bytes, align) = size_of(parameter)?;
            offset = round_up(offset, align, parameter)?;
            bound.push((parameter.name, Symbol::Param(offset)));
            offset += bytes;
        }
        self.body(function, bound)?;
        self.emit(Op::Exit, None)
    }

    /// Expands a function's body, with its parameters and results bound.
    pub fn body(&mut self, function: &'a Function<'a>, bound: Vec<(&'a str, Symbol)>) -> Result<(), ParseError> {
        if self.frames.iter().any(|frame| frame.name == function.name) {
            return error(function.at, format!("`{}` calls itself, which is not supported", function.name));
        }
        let Some(statements) = &function.body else {
            return error(
                function.at,
                format!("a call of `{}`, which has no body here, is not supported", function.name),
            );
        };
        let scopes = self.scopes.len();
        self.scopes.push(Names { exact: bound.into_iter().collect(), ranges: HashMap::new() });
        self.frames.push(Frame {
            name: function.name,
            scopes,
            labels: HashMap::new(),
            tables: HashMap::new(),
            branches: Vec::new(),
            returns: Vec::new(),
        });
        for statement in statements {
            self.statement(statement)?;
        }
        let frame = self.frames.pop().expect("pushed above");
        self.scopes.truncate(frame.scopes);
        self.resolve(frame)
    }

    fn resolve(&mut self, frame: Frame<'a>) -> Result<(), ParseError> {
        let end = self.instructions.len() as u32;
        for index in frame.returns {
            self.instructions[index].op = Op::Branch { target: end };
        }
        for (index, at, names) in frame.branches {
            let find = |name: &&str| match frame.labels.get(*name) {
                Some(&target) => Ok(target),
                None => error(at, format!("`{name}` is no label of `{}`", frame.name)),
            };
            match &mut self.instructions[index].op {
                Op::BranchTable { targets, .. } => {
                    *targets = names.iter().map(find).collect::<Result<Vec<_>, _>>()?.into();
                }
                op => *op = Op::Branch { target: find(&names[0])? },
            }
        }
        Ok(())
    }

    fn frame(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("statements are decoded inside a body")
    }

    /// Whether the body being expanded is the kernel's own.
    pub fn outermost(&self) -> bool {
        self.frames.len() == 1
    }

    fn statement(&mut self, statement: &'a Statement<'a>) -> Result<(), ParseError> {
        self.line = statement.at.line;
        match &statement.kind {
            StatementKind::Open => self.scopes.push(Names::default()),
            StatementKind::Close => {
                self.scopes.pop();
            }
            StatementKind::Label(name) => {
                let here = self.instructions.len() as u32;
                if self.frame().labels.insert(name, here).is_some() {
                    return error(statement.at, format!("the label `{name}` is there twice"));
                }
            }
            StatementKind::Targets(name, targets) => {
                self.frame().tables.insert(name, targets.clone());
            }
            StatementKind::Declare(declaration) => self.declare(declaration)?,
            StatementKind::Instruction(instruction) => self.instruction(statement.at, instruction)?,
        }
        Ok(())
    }

    fn new_symbol(&mut self, kind: Type) -> Symbol {
        match kind.bits {
            1 => Symbol::Predicate(self.new_predicate()),
            128 => Symbol::Wide(self.new_register(), self.new_register()),
            _ => Symbol::Register(self.new_register(), kind),
        }
    }

    pub fn new_register(&mut self) -> Register {
        self.registers += 1;
        self.registers - 1
    }

    pub fn new_predicate(&mut self) -> Predicate {
        self.predicates += 1;
        self.predicates - 1
    }

    /// What a name stands for, innermost scope of this function first, then the module's.
    pub fn symbol(&mut self, at: Position, name: &'a str) -> Result<Symbol, ParseError> {
        let first = self.frames.last().map_or(0, |frame| frame.scopes);
        for index in (first..self.scopes.len()).rev() {
            if let Some(&symbol) = self.scopes[index].exact.get(name) {
                return Ok(symbol);
            }
            let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let Some(&(count, kind)) = self.scopes[index].ranges.get(prefix) else { continue };
            if name[prefix.len()..].parse::<u64>().is_ok_and(|number| number < count) {
                let symbol = self.new_symbol(kind);
                self.scopes[index].exact.insert(name, symbol);
                return Ok(symbol);
            }
        }
        if let Some(&(base, offset)) = self.layout.places.get(name) {
            return Ok(Symbol::Based(base, offset));
        }
        if let Some(&declaration) = self.layout.shared.get(name) {
            return self.shared_symbol("", declaration);
        }
        error(at, format!("`{name}` is not declared"))
    }

    pub fn constant(&mut self, base: Option<Base>, value: u64) -> Source {
        let next = self.constants.len();
        let index = *self.constant_index.entry((base, value)).or_insert(next);
        if index == next {
            self.constants.push((base, value));
        }
        Source::constant(index)
    }

    pub fn special(&mut self, special: Special) -> Source {
        if let Some(&(_, register)) = self.specials.iter().find(|(known, _)| *known == special) {
            return Source(register);
        }
        let register = self.new_register();
        self.specials.push((special, register));
        Source(register)
    }

    /// The register that carries from `add.cc` to `addc`.
    pub fn carry(&mut self) -> Register {
        match self.carry {
            Some(register) => register,
            None => {
                let register = self.new_register();
                self.carry = Some(register);
                register
            }
        }
    }

    pub fn emit(&mut self, op: Op, guard: Option<(Predicate, bool)>) -> Result<(), ParseError> {
        if self.instructions.len() >= MOST_INSTRUCTIONS {
            return error(
                Position { line: self.line, column: 1 },
                format!("`{}` with its calls expanded has more than {MOST_INSTRUCTIONS} instructions", self.kernel),
            );
        }
        self.instructions.push(Ins { op, guard, line: self.line });
        Ok(())
    }

    pub fn branch(&mut self, at: Position, labels: Vec<&'a str>) {
        let index = self.instructions.len();
        self.frame().branches.push((index, at, labels));
    }

    pub fn table(&mut self, name: &str) -> Option<Vec<&'a str>> {
        self.frame().tables.get(name).cloned()
    }

    pub fn branch_to_end(&mut self) {
        let index = self.instructions.len();
        self.frame().returns.push(index);
    }

    pub fn finish(
        self,
        function: &Function<'_>,
        parameters: Vec<Parameter>,
        parameter_bytes: usize,
        variables: Arc<Variables>,
        text: Arc<str>,
    ) -> Code {
        Code {
            name: function.name.to_string(),
            parameters,
            parameter_bytes,
            most_threads: function.most_threads,
            instructions: self.instructions,
            registers: self.registers as usize,
            predicates: self.predicates as usize,
            constants: self.constants,
            specials: self.specials,
            zeroed: std::sync::OnceLock::new(),
            live: std::sync::OnceLock::new(),
            shared_bytes: self.shared_bytes.next_multiple_of(16),
            local_bytes: self.local_bytes.next_multiple_of(16),
            variables,
            text,
        }
    }
}
