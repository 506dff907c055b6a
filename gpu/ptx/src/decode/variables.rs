//! Where a module's variables lie, and what they hold at first.

use std::collections::HashMap;

use crate::ParseError;
use crate::code::{Base, Image, Variables};
use crate::lanes::Type;
use crate::syntax::{Declaration, Initial, Number, Source as Syntax, error};

/// More than any real module has; keeps a hostile one from using up memory.
const MOST_BYTES: u64 = 256 << 20;

/// Bytes and alignment of a declared variable.
pub(super) fn size_of(declaration: &Declaration<'_>) -> Result<(u64, u64), ParseError> {
    let Some(kind) = Type::parse(declaration.kind).filter(|kind| kind.bits >= 8) else {
        return error(
            declaration.at,
            format!("`{}` has the type `.{}`, which no variable can have", declaration.name, declaration.kind),
        );
    };
    let element = kind.bytes() * declaration.vector;
    let bytes = element.saturating_mul(declaration.elements.unwrap_or(1));
    let align = declaration.align.unwrap_or(element).max(element.min(kind.bytes()));
    if !align.is_power_of_two() || align > 4096 {
        return error(
            declaration.at,
            format!("alignment {align} of `{}` is no power of two up to 4096", declaration.name),
        );
    }
    if bytes > MOST_BYTES {
        return error(declaration.at, format!("`{}` of {bytes} bytes is larger than {MOST_BYTES}", declaration.name));
    }
    Ok((bytes, align))
}

pub(super) fn round_up(offset: u64, align: u64, declaration: &Declaration<'_>) -> Result<u64, ParseError> {
    let offset = offset.next_multiple_of(align);
    if offset > MOST_BYTES {
        return error(
            declaration.at,
            format!("the variables up to `{}` take more than {MOST_BYTES} bytes", declaration.name),
        );
    }
    Ok(offset)
}

/// The module's variables, by name.
pub(super) struct Layout<'a> {
    pub variables: Variables,
    pub places: HashMap<&'a str, (Base, u64)>,
    /// `.shared` declared outside of functions: each kernel that uses them has its own.
    pub shared: HashMap<&'a str, &'a Declaration<'a>>,
}

impl<'a> Layout<'a> {
    pub fn of(syntax: &'a Syntax<'a>) -> Result<Layout<'a>, ParseError> {
        let mut layout = Layout { variables: Variables::default(), places: HashMap::new(), shared: HashMap::new() };
        let functions = syntax.functions.iter().flat_map(|function| function.body.iter().flatten());
        let inner = functions.filter_map(|statement| match &statement.kind {
            crate::syntax::StatementKind::Declare(declaration) => Some(declaration),
            _ => None,
        });
        let all: Vec<&Declaration<'_>> = syntax
            .variables
            .iter()
            .chain(inner.filter(|declaration| matches!(declaration.space, "global" | "const")))
            .collect();
        for declaration in &all {
            layout.place(declaration)?;
        }
        for declaration in all {
            layout.fill(declaration)?;
        }
        Ok(layout)
    }

    fn place(&mut self, declaration: &'a Declaration<'a>) -> Result<(), ParseError> {
        let (bytes, align) = size_of(declaration)?;
        let (base, image) = match declaration.space {
            "shared" => {
                self.shared.insert(declaration.name, declaration);
                return Ok(());
            }
            "const" => (Base::Const, &mut self.variables.constant),
            _ => (Base::Global, &mut self.variables.global),
        };
        if declaration.external {
            return error(
                declaration.at,
                format!("`{}` is defined elsewhere: only whole modules are run", declaration.name),
            );
        }
        let offset = round_up(image.bytes.len() as u64, align, declaration)?;
        image.bytes.resize((offset + bytes) as usize, 0);
        self.places.insert(declaration.name, (base, offset));
        self.variables.names.push((declaration.name.to_string(), base, offset, bytes));
        Ok(())
    }

    fn fill(&mut self, declaration: &Declaration<'_>) -> Result<(), ParseError> {
        if declaration.initial.is_empty() {
            return Ok(());
        }
        let (bytes, _) = size_of(declaration)?;
        let Some(&(base, start)) = self.places.get(declaration.name) else {
            return error(declaration.at, format!("`{}` in shared memory cannot have a first value", declaration.name));
        };
        let width = Type::parse(declaration.kind).map_or(1, Type::bytes);
        if declaration.initial.len() as u64 * width > bytes {
            return error(declaration.at, format!("`{}` has more first values than room", declaration.name));
        }
        for (index, initial) in declaration.initial.iter().enumerate() {
            let offset = start as usize + index * width as usize;
            let value = match *initial {
                Initial::Number(number) => bits_of(number, width),
                Initial::Address(name, add) => {
                    let Some(&(to, place)) = self.places.get(name) else {
                        return error(declaration.at, format!("`{name}` is no variable with an address"));
                    };
                    if width != 8 {
                        return error(declaration.at, format!("the address of `{name}` needs 8 bytes, not {width}"));
                    }
                    let place = place.wrapping_add_signed(add);
                    self.image(base).addresses.push((offset, to, place));
                    0
                }
            };
            let image = self.image(base);
            image.bytes[offset..offset + width as usize].copy_from_slice(&value.to_le_bytes()[..width as usize]);
        }
        Ok(())
    }

    fn image(&mut self, base: Base) -> &mut Image {
        if base == Base::Const { &mut self.variables.constant } else { &mut self.variables.global }
    }
}

/// A number as it lies in a variable of `width` bytes.
fn bits_of(number: Number, width: u64) -> u64 {
    match number {
        Number::Integer(value) => value as u64,
        Number::Single(bits) => u64::from(bits),
        Number::Double(bits) if width == 4 => u64::from((f64::from_bits(bits) as f32).to_bits()),
        Number::Double(bits) => bits,
    }
}
