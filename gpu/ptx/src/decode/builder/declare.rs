//! Names that a body declares: registers and variables.

use super::{Builder, Symbol};
use crate::ParseError;
use crate::code::Base;
use crate::decode::variables::{round_up, size_of};
use crate::lanes::Type;
use crate::syntax::{Declaration, error};

impl<'a> Builder<'a> {
    pub(super) fn declare(&mut self, declaration: &'a Declaration<'a>) -> Result<(), ParseError> {
        let symbol = match declaration.space {
            "reg" => {
                let Some(kind) = Type::parse(declaration.kind) else {
                    return error(
                        declaration.at,
                        format!("registers of type `.{}` are not supported", declaration.kind),
                    );
                };
                let names = self.scopes.last_mut().expect("a body has a scope");
                if let Some(count) = declaration.count {
                    names.ranges.insert(declaration.name, (count, kind));
                    return Ok(());
                }
                self.new_symbol(kind)
            }
            // One for all calls of the function.
            "shared" => self.shared_symbol(self.frames.last().map_or("", |frame| frame.name), declaration)?,
            "local" | "param" => {
                let (bytes, align) = size_of(declaration)?;
                Symbol::Local(self.local_variable(bytes, align, declaration)?)
            }
            // Laid out with the module's variables.
            _ => return Ok(()),
        };
        self.scopes.last_mut().expect("a body has a scope").exact.insert(declaration.name, symbol);
        Ok(())
    }

    pub fn local_variable(&mut self, bytes: u64, align: u64, of: &Declaration<'_>) -> Result<u64, ParseError> {
        let offset = round_up(self.local_bytes, align, of)?;
        self.local_bytes = offset + bytes;
        if self.local_bytes > 512 << 10 {
            return error(of.at, "local memory beyond the 512 KiB that a thread can have");
        }
        Ok(offset)
    }

    pub(super) fn shared_symbol(
        &mut self,
        function: &'a str,
        declaration: &Declaration<'a>,
    ) -> Result<Symbol, ParseError> {
        if let Some(&symbol) = self.shared.get(&(function, declaration.name)) {
            return Ok(symbol);
        }
        let symbol = if declaration.external || declaration.elements == Some(0) {
            Symbol::Based(Base::DynamicShared, 0)
        } else {
            Symbol::Shared(self.shared_variable(declaration)?)
        };
        self.shared.insert((function, declaration.name), symbol);
        Ok(symbol)
    }

    fn shared_variable(&mut self, declaration: &Declaration<'_>) -> Result<u64, ParseError> {
        let (bytes, align) = size_of(declaration)?;
        let offset = round_up(self.shared_bytes, align, declaration)?;
        self.shared_bytes = offset + bytes;
        Ok(offset)
    }
}
