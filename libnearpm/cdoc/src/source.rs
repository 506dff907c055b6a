//! Functions and types with their documentation, read from the source.

use anyhow::{Context, Result, ensure};
use syn::{Attribute, Expr, File, Item, Lit, Meta};

/// A function of the interface.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its declaration in C, as in the header.
    pub prototype: String,
    /// First sentence of the documentation, without the period.
    pub brief: String,
    /// What follows, up to the first section.
    pub description: String,
    /// Sections: title, text.
    sections: Vec<(String, String)>,
}

/// A structure or an enumeration.
#[derive(Debug)]
pub struct Type {
    /// `enum` or `struct`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub documentation: String,
    /// Fields or values with their documentation.
    pub members: Vec<(String, String)>,
}

impl Function {
    /// The text of a section.
    pub fn section(&self, title: &str) -> Option<&str> {
        self.sections.iter().find(|(name, _)| name == title).map(|(_, text)| text.as_str())
    }

    /// The C code of its example.
    pub fn example(&self) -> Option<String> {
        let text = self.section("Example")?;
        let code = text.lines().skip_while(|line| *line != "```c").skip(1).take_while(|line| *line != "```");
        Some(code.collect::<Vec<_>>().join("\n"))
    }

    fn new(name: String, documentation: &str, header: &str) -> Result<Function> {
        let prototype = prototype(&name, header).with_context(|| format!("{name} is not in the header"))?;
        let mut parts = documentation.split("\n# ");
        let text = parts.next().unwrap_or_default().trim();
        let (brief, description) = text.split_once("\n\n").unwrap_or((text, ""));
        ensure!(brief.ends_with('.') && !brief.contains('\n'), "{name} does not begin with a sentence on one line");
        let section = |part: &str| {
            let (title, text) = part.split_once('\n').unwrap_or((part, ""));
            (title.trim().to_owned(), text.trim().to_owned())
        };
        let sections: Vec<_> = parts.map(section).collect();
        let function = Function {
            prototype,
            brief: brief.trim_end_matches('.').to_owned(),
            description: description.to_owned(),
            sections,
            name,
        };
        for title in ["Returns", "Errors"] {
            let there = function.section(title).is_some_and(|text| !text.is_empty());
            ensure!(there, "the documentation of {} has no section {title:?}", function.name);
        }
        Ok(function)
    }
}

/// The declaration of a function in the header.
fn prototype(name: &str, header: &str) -> Option<String> {
    let call = format!("{name}(");
    let declares = |line: &&str| {
        let before = line.find(&call).map(|at| &line[..at]);
        before.is_some_and(|before| before.ends_with([' ', '*']) && !before.starts_with("//"))
    };
    let mut lines = header.lines().skip_while(|line| !declares(line));
    let mut text = lines.next()?.to_owned();
    while !text.ends_with(';') {
        text.push('\n');
        text.push_str(lines.next()?);
    }
    Some(text)
}

/// Reads the functions of a file.
pub fn functions(file: &File, header: &str) -> Result<Vec<Function>> {
    let mut functions = Vec::new();
    for item in &file.items {
        match item {
            Item::Fn(f) if f.sig.abi.is_some() => {
                functions.push(Function::new(f.sig.ident.to_string(), &documentation(&f.attrs), header)?);
            }
            _ => {}
        }
    }
    Ok(functions)
}

/// Reads the types of a file that have the layout of C.
pub fn types(file: &File) -> Vec<Type> {
    let mut types = Vec::new();
    for item in &file.items {
        let (kind, name, attributes, members) = match item {
            Item::Enum(e) => {
                let member = |v: &syn::Variant| (v.ident.to_string(), documentation(&v.attrs));
                ("enum", &e.ident, &e.attrs, e.variants.iter().map(member).collect())
            }
            Item::Struct(s) => ("struct", &s.ident, &s.attrs, s.fields.iter().map(member).collect()),
            _ => continue,
        };
        if is_of_c(attributes) {
            types.push(Type { kind, name: name.to_string(), documentation: documentation(attributes), members });
        }
    }
    types
}

fn member(field: &syn::Field) -> (String, String) {
    let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    (name, documentation(&field.attrs))
}

/// Whether a type has the layout of C.
fn is_of_c(attributes: &[Attribute]) -> bool {
    let is_c = |attribute: &Attribute| {
        attribute.path().is_ident("repr") && attribute.parse_args::<syn::Ident>().is_ok_and(|kind| kind == "C")
    };
    attributes.iter().any(is_c)
}

/// The documentation of an item, line by line.
fn documentation(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        let Expr::Lit(value) = &meta.value else { continue };
        if let (true, Lit::Str(line)) = (meta.path.is_ident("doc"), &value.lit) {
            let line = line.value();
            lines.push(line.strip_prefix(' ').unwrap_or(&line).to_owned());
        }
    }
    lines.join("\n")
}
