//! Tells the program which commit it is built from: results carry it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

/// Files of the workspace that a program may be made of: everything but texts and tests.
const SOURCES: [&str; 4] = [":/", ":(top,exclude)*.md", ":(top,exclude)*/tests/*", ":(top,exclude)tests/*"];

/// What git answers; `None` where there is no git, or where it has nothing to say.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("--no-optional-locks")
        .arg("-C")
        .arg(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// The commit of the sources; `None` where they are not in git, as those of a tarball that lies
/// below another repository are not.
fn commit() -> Option<String> {
    git(&["ls-files", "build.rs"])?;
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&[&["status", "--porcelain", "--untracked-files=no", "--"][..], &SOURCES].concat());
    // The log of HEAD grows with each commit and each checkout, whatever that writes besides.
    let logs = ["HEAD", "logs/HEAD"]
        .into_iter()
        .filter_map(|name| git(&["rev-parse", "--path-format=absolute", "--git-path", name]));
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let sources = git(&[&["ls-files", "--full-name", "--"][..], &SOURCES].concat())?;
    let sources = sources.lines().map(|name| format!("{top}/{name}"));
    // What is missing would be looked for at each build.
    for path in logs.chain(sources).filter(|path| std::path::Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    Some(match changes {
        // Results of one change must not be taken for those of another.
        Some(changes) => {
            let mut hasher = DefaultHasher::new();
            git(&[&["diff", "--binary", "HEAD", "--"][..], &SOURCES].concat()).unwrap_or(changes).hash(&mut hasher);
            format!("{head}-changed-{:08x}", hasher.finish() as u32)
        }
        None => head,
    })
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=NEARPM_COMMIT={}", commit().as_deref().unwrap_or("unknown"));
}
