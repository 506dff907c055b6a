//! The header, by cbindgen.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language, Style};

/// What stands above the declarations.
const TOP: &str = "\
/* NearPM: crash-consistent pools of persistent memory for programs that store through pointers.
 *
 * Made from the library's source. Do not edit.
 *
 * nearpm(7) is the introduction, and each function has a page. Compile with $(pkg-config --cflags --libs nearpm).
 */";

/// Makes the header of some files. `types` are declared even if no function names them.
pub fn generate(files: &[PathBuf], types: Vec<String>) -> Result<String> {
    let config = Config {
        language: Language::C,
        style: Style::Tag,
        cpp_compat: true,
        documentation_style: DocumentationStyle::C99,
        header: Some(TOP.to_owned()),
        include_guard: Some("NEARPM_H".to_owned()),
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        usize_is_size_t: true,
        line_length: 120,
        tab_width: 4,
        export: ExportConfig { include: types, ..ExportConfig::default() },
        ..Config::default()
    };
    let builder = files.iter().fold(Builder::new().with_config(config), |builder, file| builder.with_src(file));
    let bindings = builder.generate().context("cbindgen cannot read the interface")?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    Ok(String::from_utf8(text)?)
}
