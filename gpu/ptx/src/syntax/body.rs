//! The bodies of functions: statements, instructions, operands.

use super::lexer::{Kind, Position};
use super::parser::{MOST_NESTED, Parser};
use super::*;

impl<'a> Parser<'a> {
    pub(super) fn body(&mut self) -> Result<Vec<Statement<'a>>, ParseError> {
        let mut statements = Vec::new();
        let mut depth = 0u32;
        self.mark('{')?;
        loop {
            let at = self.token.at;
            let mut push = |kind| statements.push(Statement { at, kind });
            match self.token.kind {
                Kind::Mark('{') => {
                    self.next()?;
                    depth += 1;
                    push(StatementKind::Open);
                }
                Kind::Mark('}') => {
                    self.next()?;
                    if depth == 0 {
                        return Ok(statements);
                    }
                    depth -= 1;
                    push(StatementKind::Close);
                }
                Kind::Mark(';') => {
                    self.next()?;
                }
                Kind::Dot(_) => self.body_directive(at, &mut statements)?,
                Kind::Mark('@') => push(StatementKind::Instruction(self.instruction(None)?)),
                Kind::Word(word) => {
                    self.next()?;
                    if self.accept(':')? {
                        push(StatementKind::Label(word));
                        self.targets(at, word, &mut statements)?;
                    } else {
                        push(StatementKind::Instruction(self.instruction(Some(word))?));
                    }
                }
                _ => return self.expected("an instruction, a label, a declaration or `}`"),
            }
        }
    }

    fn body_directive(&mut self, at: Position, statements: &mut Vec<Statement<'a>>) -> Result<(), ParseError> {
        match self.dot("a directive")? {
            space @ ("reg" | "local" | "shared" | "param" | "global" | "const") => {
                self.declarations(at, space, false, |declaration| {
                    statements.push(Statement { at, kind: StatementKind::Declare(declaration) })
                })
            }
            "loc" => {
                // Ends with its line: `.loc 1 12 7`, with an inline context behind commas.
                let line = at.line;
                while self.token.at.line == line && self.token.kind != Kind::End {
                    self.next()?;
                }
                Ok(())
            }
            "pragma" => self.skip_statement(),
            other => error(at, format!("the directive `.{other}` is not known in a function")),
        }
    }

    fn targets(&mut self, at: Position, label: &'a str, statements: &mut Vec<Statement<'a>>) -> Result<(), ParseError> {
        let Kind::Dot("branchtargets") = self.token.kind else { return Ok(()) };
        self.next()?;
        let mut targets = vec![self.word("a label")?];
        while self.accept(',')? {
            targets.push(self.word("a label")?);
        }
        self.mark(';')?;
        statements.push(Statement { at, kind: StatementKind::Targets(label, targets) });
        Ok(())
    }

    fn instruction(&mut self, opcode: Option<&'a str>) -> Result<Instruction<'a>, ParseError> {
        let (guard, opcode) = match opcode {
            Some(opcode) => (None, opcode),
            None => {
                self.mark('@')?;
                let negated = self.accept('!')?;
                let predicate = self.word("a predicate")?;
                (Some((predicate, negated)), self.word("an instruction")?)
            }
        };
        let mut modifiers = Vec::new();
        while let Kind::Dot(modifier) = self.token.kind {
            self.next()?;
            modifiers.push(modifier);
        }
        let mut operands = Vec::new();
        while !self.accept(';')? {
            operands.push(self.operand(0)?);
            if !self.accept(',')? && !self.is(';') {
                return self.expected("`,` or `;`");
            }
        }
        Ok(Instruction { guard, opcode, modifiers, operands })
    }

    fn operand(&mut self, depth: u32) -> Result<Operand<'a>, ParseError> {
        let at = self.token.at;
        if depth > MOST_NESTED {
            return self.expected("fewer nested braces");
        }
        let kind = match self.token.kind {
            Kind::Mark('[') => self.address()?,
            Kind::Mark('{') => OperandKind::Vector(self.list('{', '}', depth)?),
            Kind::Mark('(') => OperandKind::List(self.list('(', ')', depth)?),
            Kind::Mark('!') => {
                self.next()?;
                OperandKind::Not(self.word("a predicate")?)
            }
            Kind::Number(_) | Kind::Mark('-') => OperandKind::Number(self.number("a number")?),
            Kind::Word(word) => {
                self.next()?;
                if let Kind::Dot(part) = self.token.kind {
                    self.next()?;
                    OperandKind::Special(word, part)
                } else if self.accept('|')? {
                    OperandKind::Pair(word, self.word("a predicate")?)
                } else {
                    OperandKind::Name(word, self.offset()?)
                }
            }
            _ => return self.expected("an operand"),
        };
        Ok(Operand { at, kind })
    }

    fn list(&mut self, open: char, close: char, depth: u32) -> Result<Vec<Operand<'a>>, ParseError> {
        self.mark(open)?;
        let mut items = Vec::new();
        while !self.accept(close)? {
            items.push(self.operand(depth + 1)?);
            if !self.accept(',')? && !self.is(close) {
                return self.expected(&format!("`,` or `{close}`"));
            }
        }
        Ok(items)
    }

    fn address(&mut self) -> Result<OperandKind<'a>, ParseError> {
        self.mark('[')?;
        let address = match self.token.kind {
            Kind::Word(base) => {
                self.next()?;
                OperandKind::Address(Some(base), self.offset()?)
            }
            _ => OperandKind::Address(None, self.integer("an address")?),
        };
        self.mark(']')?;
        Ok(address)
    }
}
