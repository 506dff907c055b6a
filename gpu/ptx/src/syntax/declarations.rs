//! Declarations of registers and variables.

use super::lexer::{Kind, Position};
use super::parser::{MOST_NESTED, Parser};
use super::{Declaration, Initial, ParseError};

impl<'a> Parser<'a> {
    pub(super) fn declarations(
        &mut self,
        at: Position,
        space: &'a str,
        external: bool,
        mut found: impl FnMut(Declaration<'a>),
    ) -> Result<(), ParseError> {
        let first = self.declaration(at, space, external)?;
        let mut more = Vec::new();
        while self.accept(',')? {
            let mut next = Declaration { initial: Vec::new(), count: None, elements: None, ..first.clone() };
            self.declared_name(&mut next)?;
            more.push(next);
        }
        self.mark(';')?;
        found(first);
        more.into_iter().for_each(found);
        Ok(())
    }

    pub(super) fn declaration(
        &mut self,
        at: Position,
        space: &'a str,
        external: bool,
    ) -> Result<Declaration<'a>, ParseError> {
        let mut declaration = Declaration {
            at,
            space,
            kind: "",
            external,
            align: None,
            vector: 1,
            name: "",
            count: None,
            elements: None,
            initial: Vec::new(),
        };
        while let Kind::Dot(word) = self.token.kind {
            self.next()?;
            match word {
                "align" => declaration.align = Some(self.size("an alignment")?),
                "v2" => declaration.vector = 2,
                "v4" => declaration.vector = 4,
                // Says where a pointer parameter points, and how that is aligned: nothing here
                // depends on it.
                "ptr" => declaration.kind = if declaration.kind.is_empty() { "b64" } else { declaration.kind },
                "global" | "const" | "shared" | "local" | "attribute" if space == "param" => {}
                kind => declaration.kind = kind,
            }
        }
        self.declared_name(&mut declaration)?;
        Ok(declaration)
    }

    fn declared_name(&mut self, declaration: &mut Declaration<'a>) -> Result<(), ParseError> {
        declaration.at = self.token.at;
        declaration.name = self.word("a name")?;
        if self.accept('<')? {
            declaration.count = Some(self.size("a number of registers")?);
            self.mark('>')?;
        }
        while self.accept('[')? {
            let bound = if self.is(']') { 0 } else { self.size("an array bound")? };
            declaration.elements = Some(declaration.elements.unwrap_or(1).saturating_mul(bound));
            self.mark(']')?;
        }
        if self.accept('=')? {
            self.initial(&mut declaration.initial, 0)?;
        }
        Ok(())
    }

    fn initial(&mut self, into: &mut Vec<Initial<'a>>, depth: u32) -> Result<(), ParseError> {
        if depth > MOST_NESTED {
            return self.expected("fewer nested braces");
        }
        if self.accept('{')? {
            while !self.accept('}')? {
                self.initial(into, depth + 1)?;
                if !self.accept(',')? && !self.is('}') {
                    return self.expected("`,` or `}`");
                }
            }
            return Ok(());
        }
        if let Kind::Word(word) = self.token.kind {
            self.next()?;
            let name = if word == "generic" && self.accept('(')? {
                let name = self.word("a variable")?;
                self.mark(')')?;
                name
            } else {
                word
            };
            let offset = self.offset()?;
            into.push(Initial::Address(name, offset));
            return Ok(());
        }
        let number = self.number("a number or the name of a variable")?;
        into.push(Initial::Number(number));
        Ok(())
    }
}
