//! Tokens to syntax, by recursive descent with one token of look-ahead: a module and its
//! declarations.

use super::lexer::{Kind, Lexer, Position, Token};
use super::*;

/// Parses a module.
pub(crate) fn parse(text: &str) -> Result<Source<'_>, ParseError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.token()?;
    let mut parser = Parser { lexer, token };
    let mut source = Source::default();
    while parser.token.kind != Kind::End {
        parser.item(&mut source)?;
    }
    Ok(source)
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(super) token: Token<'a>,
}

/// Vectors in vectors do not occur; a bound keeps hostile text from using up the stack.
pub(super) const MOST_NESTED: u32 = 4;

impl<'a> Parser<'a> {
    pub(super) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        let next = self.lexer.token()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    pub(super) fn expected<T>(&self, what: &str) -> Result<T, ParseError> {
        error(self.token.at, format!("expected {what}, found {}", self.token.kind.describe()))
    }

    pub(super) fn is(&self, mark: char) -> bool {
        self.token.kind == Kind::Mark(mark)
    }

    pub(super) fn accept(&mut self, mark: char) -> Result<bool, ParseError> {
        let is = self.is(mark);
        if is {
            self.next()?;
        }
        Ok(is)
    }

    pub(super) fn mark(&mut self, mark: char) -> Result<(), ParseError> {
        if self.accept(mark)? { Ok(()) } else { self.expected(&format!("`{mark}`")) }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        match self.token.kind {
            Kind::Word(word) => self.next().map(|_| word),
            _ => self.expected(what),
        }
    }

    pub(super) fn dot(&mut self, what: &str) -> Result<&'a str, ParseError> {
        match self.token.kind {
            Kind::Dot(word) => self.next().map(|_| word),
            _ => self.expected(what),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Result<Number, ParseError> {
        let negative = self.accept('-')?;
        let number = match self.token.kind {
            Kind::Number(number) => self.next().map(|_| number)?,
            _ => return self.expected(what),
        };
        Ok(match (negative, number) {
            (false, number) => number,
            (true, Number::Integer(value)) => Number::Integer(value.wrapping_neg()),
            (true, Number::Single(bits)) => Number::Single(bits ^ 1 << 31),
            (true, Number::Double(bits)) => Number::Double(bits ^ 1 << 63),
        })
    }

    pub(super) fn integer(&mut self, what: &str) -> Result<i64, ParseError> {
        let at = self.token.at;
        match self.number(what)? {
            Number::Integer(value) => Ok(value),
            _ => error(at, format!("expected {what}, found a floating-point number")),
        }
    }

    pub(super) fn size(&mut self, what: &str) -> Result<u64, ParseError> {
        let at = self.token.at;
        match u64::try_from(self.integer(what)?) {
            Ok(value) if value <= 1 << 32 => Ok(value),
            _ => error(at, format!("expected {what} from 0 to 2^32")),
        }
    }

    fn item(&mut self, source: &mut Source<'a>) -> Result<(), ParseError> {
        let mut external = false;
        loop {
            let at = self.token.at;
            match self.dot("a directive such as `.version` or `.visible`")? {
                "version" => {
                    self.number("a version")?;
                    return Ok(());
                }
                "target" => return self.target(),
                "address_size" => {
                    return match self.integer("64")? {
                        64 => Ok(()),
                        other => error(at, format!("address size {other} is not supported, only 64")),
                    };
                }
                "file" => return self.file(),
                "pragma" => return self.skip_statement(),
                "section" => return self.section(),
                "visible" | "weak" | "common" => {}
                "extern" => external = true,
                entry @ ("entry" | "func") => {
                    let function = self.function(at, entry == "entry")?;
                    source.functions.push(function);
                    return Ok(());
                }
                space @ ("global" | "const" | "shared") => {
                    self.declarations(at, space, external, |declaration| source.variables.push(declaration))?;
                    return Ok(());
                }
                other => return error(at, format!("the directive `.{other}` is not known here")),
            }
        }
    }

    fn target(&mut self) -> Result<(), ParseError> {
        loop {
            self.word("a target such as `sm_90`")?;
            if !self.accept(',')? {
                return Ok(());
            }
        }
    }

    fn file(&mut self) -> Result<(), ParseError> {
        self.integer("a file number")?;
        match self.token.kind {
            Kind::Text(_) => self.next()?,
            _ => return self.expected("a file name"),
        };
        while self.accept(',')? {
            self.integer("a time or size")?;
        }
        Ok(())
    }

    fn section(&mut self) -> Result<(), ParseError> {
        while !self.is('{') {
            if self.token.kind == Kind::End {
                return self.expected("`{`");
            }
            self.next()?;
        }
        while !self.is('}') {
            if self.token.kind == Kind::End {
                return self.expected("`}`");
            }
            self.next()?;
        }
        self.mark('}')
    }

    pub(super) fn skip_statement(&mut self) -> Result<(), ParseError> {
        while !self.is(';') {
            if self.token.kind == Kind::End {
                return self.expected("`;`");
            }
            self.next()?;
        }
        self.mark(';')
    }

    fn function(&mut self, at: Position, entry: bool) -> Result<Function<'a>, ParseError> {
        let results = if !entry && self.is('(') { self.parameters()? } else { Vec::new() };
        let name = self.word("the function's name")?;
        let parameters = if self.is('(') { self.parameters()? } else { Vec::new() };
        let most_threads = self.tuning()?;
        let body = if self.accept(';')? { None } else { Some(self.body()?) };
        Ok(Function { at, name, entry, results, parameters, most_threads, body })
    }

    fn parameters(&mut self) -> Result<Vec<Declaration<'a>>, ParseError> {
        self.mark('(')?;
        let mut parameters = Vec::new();
        while !self.accept(')')? {
            let at = self.token.at;
            let space = match self.dot("`.param`")? {
                space @ ("param" | "reg") => space,
                _ => return error(at, "expected `.param` or `.reg`"),
            };
            parameters.push(self.declaration(at, space, false)?);
            if !self.accept(',')? && !self.is(')') {
                return self.expected("`,` or `)`");
            }
        }
        Ok(parameters)
    }

    /// `.maxntid 256, 1, 1` and its like, between the parameters and the body.
    fn tuning(&mut self) -> Result<Option<u64>, ParseError> {
        let mut most = None;
        while let Kind::Dot(name) = self.token.kind {
            self.next()?;
            let mut product = 1u64;
            while matches!(self.token.kind, Kind::Number(_)) {
                product = product.saturating_mul(self.size("a size")?);
                self.accept(',')?;
            }
            if matches!(self.token.kind, Kind::Text(_)) {
                self.next()?;
                self.accept(';')?;
            }
            if matches!(name, "maxntid" | "reqntid") {
                most = Some(product);
            }
        }
        Ok(most)
    }

    /// `+8`, `-8`, `+-8`, or nothing.
    pub(super) fn offset(&mut self) -> Result<i64, ParseError> {
        if self.accept('+')? {
            return self.integer("an offset");
        }
        if self.is('-') { self.integer("an offset") } else { Ok(0) }
    }
}
