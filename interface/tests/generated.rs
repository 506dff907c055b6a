//! The checked-in generated files are what the tables make of them.
//!
//! `NEARPM_BLESS=1 cargo test -p nearpm-interface` writes them anew.

use std::path::Path;

#[test]
fn generated_files_are_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
    for (path, text) in nearpm_interface::generate::files() {
        let file = root.join(path);
        if std::env::var_os("NEARPM_BLESS").is_some() {
            std::fs::create_dir_all(file.parent().expect("a file has a folder")).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "{path} is stale: run NEARPM_BLESS=1 cargo test -p nearpm-interface");
    }
}
