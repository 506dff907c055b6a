//! The page for PMDK's users: its program is compiled, and its commands are run, one block after
//! the other.

use std::path::Path;
use std::process::Command;

/// Blocks of a language: what follows the language's name, and the lines.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let fence = format!("```{language}");
    let block = |part: &'a str| {
        let (head, rest) = part.split_once('\n')?;
        Some((head.trim(), rest.split_once("```")?.0))
    };
    page.split(&fence).skip(1).filter_map(block).collect()
}

#[test]
fn commands_for_pmdk_users_work() {
    if nearpm_pmemobj_programs::pmdk().is_none() || !nearpm_pmemobj_programs::headers_present() {
        return nearpm_pmemobj_programs::skip("PMDK is not installed (Debian: libpmemobj-dev, libpmemobj1)");
    }
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pmdk.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in blocks(&page, "c ") {
        std::fs::write(folder.path().join(name), source).unwrap();
    }
    let commands = blocks(&page, "sh");
    assert_eq!(commands.len(), 4);
    let library = nearpm_pmemobj_programs::library();
    // The library is built already.
    let script: String = commands.iter().map(|(_, lines)| *lines).collect::<String>().replace("./x pmemobj\n", "");
    let script = script.replace("target/pmemobj", library.parent().unwrap().to_str().unwrap());
    let output = Command::new("sh")
        .args(["-euxc", &script])
        .current_dir(folder.path())
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    let (shown, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    // Each load turns the list around.
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>(),
        ["apple", "pear", "apple", "pear", "pear", "apple", "apple", "pear"]
    );
    // Each library refuses the other's pool.
    for (pool, library) in [("new.pool", None), ("old.pool", library.parent())] {
        let mut command = Command::new(folder.path().join("words"));
        command.arg(folder.path().join(pool)).arg("dump").env_remove("LD_LIBRARY_PATH");
        let before = std::fs::read(folder.path().join(pool)).unwrap();
        let output = command.envs(library.map(|folder| ("LD_LIBRARY_PATH", folder))).output().unwrap();
        assert!(!output.status.success(), "{pool} was opened");
        assert!(std::fs::read(folder.path().join(pool)).unwrap() == before, "{pool} was changed");
    }
}
