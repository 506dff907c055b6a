//! Syntax to decoded form.
//!
//! Calls are expanded in place: a kernel is one list of instructions. So a function that calls
//! itself is refused.

mod arithmetic;
mod builder;
mod control;
mod convert;
mod memory;
mod modifiers;
mod operands;
mod select;
mod variables;
mod warp;

use std::sync::Arc;

use crate::code::Code;
use crate::syntax::{Source as Syntax, parse};
use crate::{Parameter, ParseError};

/// Parses and decodes each kernel of a module.
pub(crate) fn decode(text: &str) -> Result<Vec<Code>, ParseError> {
    let syntax: Syntax<'_> = parse(text)?;
    let text: Arc<str> = text.into();
    let variables = variables::Layout::of(&syntax)?;
    let shared = Arc::new(variables.variables.clone());
    syntax
        .functions
        .iter()
        .filter(|function| function.entry && function.body.is_some())
        .map(|function| {
            let mut builder = builder::Builder::new(&syntax, &variables, function);
            builder.kernel(function)?;
            let mut offset = 0;
            let mut parameters = Vec::new();
            for parameter in &function.parameters {
                let (bytes, align) = variables::size_of(parameter)?;
                offset = variables::round_up(offset, align, parameter)?;
                parameters.push(Parameter {
                    name: parameter.name.to_string(),
                    bytes: bytes as usize,
                    offset: offset as usize,
                });
                offset += bytes;
            }
            Ok(builder.finish(function, parameters, offset as usize, shared.clone(), text.clone()))
        })
        .collect()
}
