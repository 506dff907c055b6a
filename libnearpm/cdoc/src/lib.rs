//! The C interface of `libnearpm` as C programmers read it: a header and manual pages, both made
//! from the Rust source, whose documentation is the only one.
//!
//! A function's documentation has a first sentence, text, and sections: `# Returns` and `# Errors`
//! always, `# Safety` where pointers must keep to something, `# Example` with C where it helps.
//!
//! | file | holds |
//! |---|---|
//! | `source.rs` | functions and types with their documentation, read from the source |
//! | `header.rs` | the header, by cbindgen |
//! | `manual.rs` | a page for each function, and one for all |
//! | `book.rs` | all of them as one page of the book |
//! | `markup.rs` | documentation in Markdown as manual pages have it |

mod book;
mod header;
mod manual;
mod markup;
mod source;

use std::path::Path;

use anyhow::{Context, Result};

pub use source::{Function, Type};

/// The interface.
#[derive(Debug)]
pub struct Interface {
    /// The text of `nearpm.h`.
    pub header: String,
    /// Functions in the order of the header, in groups.
    pub groups: Vec<Group>,
    /// What stands above all of them.
    overview: String,
}

/// Functions and types that belong together.
#[derive(Debug)]
pub struct Group {
    /// What they are for.
    pub title: &'static str,
    /// Functions.
    pub functions: Vec<Function>,
    /// Structures and enumerations.
    pub types: Vec<Type>,
}

/// Files of the interface, in the order in which they are read, with what they are for.
const SOURCES: &[(&str, &str)] = &[
    ("pools", "Functions for pools"),
    ("transactions", "Functions for transactions"),
    ("objects", "Functions for objects"),
    ("reports", "Functions for reports"),
    ("error", "Functions for errors"),
    ("primitives", "Functions for primitives"),
];

fn parse(path: &Path) -> Result<syn::File> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))
}

impl Interface {
    /// Reads the interface from the folder of the crate `nearpm-c`.
    pub fn read(library: &Path) -> Result<Interface> {
        let folder = library.join("src");
        let files: Vec<_> = SOURCES.iter().map(|(file, _)| folder.join(file).with_extension("rs")).collect();
        let sources = files.iter().map(|path| parse(path)).collect::<Result<Vec<_>>>()?;
        let types: Vec<_> = sources.iter().map(source::types).collect();
        let header = header::generate(&files, types.iter().flatten().map(|kind| kind.name.clone()).collect())?;
        let mut groups = Vec::new();
        for ((source, types), (file, title)) in sources.iter().zip(types).zip(SOURCES) {
            let functions = source::functions(source, &header).with_context(|| format!("in {file}.rs"))?;
            groups.push(Group { title, functions, types });
        }
        let path = folder.join("overview.md");
        let overview = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Interface { header, groups, overview })
    }

    /// The manual as one page of the book, in Markdown.
    pub fn book(&self) -> String {
        book::page(&self.overview, &self.groups)
    }

    /// Every function.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.groups.iter().flat_map(|group| &group.functions)
    }

    /// The manual: names of files, and what they hold.
    pub fn manual(&self) -> Vec<(String, String)> {
        let mut pages = vec![("nearpm.7".to_owned(), manual::overview(&self.overview, &self.groups))];
        for group in &self.groups {
            let page = |function: &Function| (format!("{}.3", function.name), manual::page(function, group));
            pages.extend(group.functions.iter().map(page));
        }
        pages
    }
}
