//! PTX text to typed syntax. Names are slices of the text; nothing is resolved here.

mod body;
mod declarations;
mod lexer;
mod parser;

pub(crate) use lexer::Position;
pub(crate) use parser::parse;

use crate::ParseError;

pub(crate) fn error<T>(at: Position, message: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError { line: at.line, column: at.column, message: message.into() })
}

/// The text of a module.
#[derive(Debug, Default)]
pub(crate) struct Source<'a> {
    pub variables: Vec<Declaration<'a>>,
    pub functions: Vec<Function<'a>>,
}

/// A kernel, a function, or (without body) the prototype of one.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub at: Position,
    pub name: &'a str,
    pub entry: bool,
    pub results: Vec<Declaration<'a>>,
    pub parameters: Vec<Declaration<'a>>,
    /// `.maxntid` or `.reqntid`: threads of a block.
    pub most_threads: Option<u64>,
    pub body: Option<Vec<Statement<'a>>>,
}

/// `.reg .b32 %r<5>`, `.shared .align 4 .b8 name[256]`, `.global .u32 x = 7`, ...
#[derive(Clone, Debug)]
pub(crate) struct Declaration<'a> {
    pub at: Position,
    /// `reg`, `shared`, `global`, `const`, `local`, `param`
    pub space: &'a str,
    /// `b8`, `u32`, `pred`, ...
    pub kind: &'a str,
    pub external: bool,
    pub align: Option<u64>,
    /// Elements of a declared vector type (`.v2`), else 1.
    pub vector: u64,
    pub name: &'a str,
    /// `%r<5>`: five registers `%r0` to `%r4`.
    pub count: Option<u64>,
    /// Product of the bounds; `Some(0)` where the bound is left out.
    pub elements: Option<u64>,
    pub initial: Vec<Initial<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Initial<'a> {
    Number(Number),
    /// `name+offset`, `generic(name)`
    Address(&'a str, i64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// Two's complement, of up to 64 bits.
    Integer(i64),
    /// Bits of a `0f` literal.
    Single(u32),
    /// Bits of a `0d` literal, or a decimal one.
    Double(u64),
}

#[derive(Debug)]
pub(crate) struct Statement<'a> {
    pub at: Position,
    pub kind: StatementKind<'a>,
}

#[derive(Debug)]
pub(crate) enum StatementKind<'a> {
    /// `{`: names declared up to `Close` hide those outside.
    Open,
    Close,
    Label(&'a str),
    Declare(Declaration<'a>),
    /// `name: .branchtargets a, b;`
    Targets(&'a str, Vec<&'a str>),
    Instruction(Instruction<'a>),
}

#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    /// `@%p` or, with `true`, `@!%p`.
    pub guard: Option<(&'a str, bool)>,
    pub opcode: &'a str,
    pub modifiers: Vec<&'a str>,
    pub operands: Vec<Operand<'a>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Operand<'a> {
    pub at: Position,
    pub kind: OperandKind<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum OperandKind<'a> {
    /// A register, variable, label or function, with an offset.
    Name(&'a str, i64),
    /// `%tid.x`
    Special(&'a str, &'a str),
    /// `!%p`
    Not(&'a str),
    /// `%r1|%p1`
    Pair(&'a str, &'a str),
    Number(Number),
    /// `[base+offset]`; the base is absent for a plain number.
    Address(Option<&'a str>, i64),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `(a, b)` of a call
    List(Vec<Operand<'a>>),
}
