//! The shape of each crate, held by a test: the modules beside each other in a folder have ranks,
//! so that each can be read after those below it.
//!
//! A module uses another where its text, without its tests, names it in a path. Circles that are
//! still there are listed in `circles.txt` beside this, and no other may come; `NEARPM_BLESS=1`
//! writes the list anew. A parent is not ranked against its children: it holds what they share and
//! says what they are together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A folder of modules, and which of them use which.
type Folders = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Where a file's module lies: the folder `src` of its crate, and its path in it.
fn place(file: &str) -> Option<(&str, Vec<&str>)> {
    let at = file.find("src/").filter(|at| *at == 0 || file[..*at].ends_with('/'))?;
    let (source, inside) = file.split_at(at + "src".len());
    let mut path: Vec<&str> = inside[1..].strip_suffix(".rs")?.split('/').collect();
    if matches!(path.last(), Some(&("mod" | "lib" | "main"))) {
        path.pop();
    }
    // Programs beside the library, and tests, may use anything.
    let is_outside = |name: &&str| *name == "bin" || *name == "tests" || name.ends_with("_tests");
    (!path.iter().any(is_outside)).then_some((source, path))
}

/// The text of a module without comments and without what is only there for tests.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Paths that a text names, from `crate` on, as seen from the module at `own`.
fn paths(text: &str, own: &[&str]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::").chain(text.match_indices("super::")) {
        if text[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c)) {
            continue;
        }
        let mut rest = &text[at..];
        let mut path: Vec<String> = own.iter().map(|name| name.to_string()).collect();
        if let Some(behind) = rest.strip_prefix("crate::") {
            (path, rest) = (Vec::new(), behind);
        }
        while let Some(behind) = rest.strip_prefix("super::") {
            path.pop();
            rest = behind;
        }
        expand(rest, &path, &mut found);
    }
    found
}

/// Adds the paths of `a::{b, c::d}` behind a path.
fn expand(mut rest: &str, path: &[String], found: &mut Vec<Vec<String>>) {
    let mut path = path.to_vec();
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            break;
        }
        path.push(rest[..end].to_owned());
        match rest[end..].strip_prefix("::") {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    let Some(list) = rest.strip_prefix('{') else { return found.push(path) };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                expand(list[start..at].trim_start(), &path, found);
                start = at + 1;
                if c == '}' {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// Who uses whom, folder by folder, in files given by name and text.
fn folders(files: &[(String, String)]) -> Folders {
    let placed: Vec<_> = files
        .iter()
        .filter_map(|(file, text)| Some((place(file)?, text)))
        .filter(|((_, own), _)| !own.is_empty())
        .collect();
    let modules: BTreeSet<(&str, Vec<&str>)> = placed.iter().map(|(place, _)| place.clone()).collect();
    let mut folders = Folders::new();
    for ((source, own), text) in &placed {
        for path in paths(&code(text), own) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let shared = own.iter().zip(&path).take_while(|(a, b)| a == b).count();
            let (Some(user), Some(used)) = (own.get(shared), path.get(shared)) else { continue };
            let is_module = |path: &[&str]| modules.contains(&(*source, path.to_vec()));
            if is_module(&path[..=shared]) && is_module(&own[..=shared]) {
                let folder = [&[*source], &own[..shared]].concat().join("/");
                folders.entry(folder).or_default().entry(user.to_string()).or_default().insert(used.to_string());
            }
        }
    }
    folders
}

/// The modules of a folder that reach themselves, in sets of those that reach each other.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reach = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(module) = open.pop() {
            open.extend(uses.get(&module).into_iter().flatten().filter(|used| seen.insert((*used).clone())).cloned());
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|module| (module, reach(module))).collect();
    let circle = |module: &String| {
        let back = |other: &&String| reached.get(other).is_some_and(|there| there.contains(module));
        reached[module].iter().filter(back).cloned().collect::<Vec<_>>()
    };
    uses.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

/// Files and modules that a table at the head of a module names in its first column, by their
/// names as they stand there. Types, which tables name too, begin with a capital.
fn listed(text: &str) -> Vec<&str> {
    let mut is_table = false;
    let mut names = Vec::new();
    for line in text.lines().take_while(|line| line.starts_with("//!")) {
        let cells = line.strip_prefix("//! |");
        is_table =
            cells.is_some_and(|cells| is_table || cells.starts_with(" file |") || cells.starts_with(" module |"));
        let first = cells.filter(|_| is_table).and_then(|cells| cells.split('|').next()).unwrap_or_default();
        names.extend(first.split('`').skip(1).step_by(2).filter(|name| name.starts_with(char::is_lowercase)));
    }
    names
}

#[test]
fn a_table_of_modules_names_what_is_there() {
    let mut tried = 0;
    let mut gone = Vec::new();
    for (file, text) in sources() {
        let Some((folder, "mod.rs" | "lib.rs" | "main.rs")) = file.rsplit_once('/') else { continue };
        for name in listed(&text) {
            tried += 1;
            let path = root().join(folder).join(name.replace("::", "/"));
            if !path.exists() && !path.with_extension("rs").exists() {
                gone.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(tried > 500, "{tried} names");
    assert!(gone.is_empty(), "there is none of these any more: {gone:#?}");
}

#[test]
fn a_name_in_a_table_of_modules_is_found() {
    let text = "//! A crate.\n//!\n//! | module | holds |\n//! |---|---|\n//! | [`a`], `b.rs`, [`Type`] | `c` |\n//!\n//! | word | `d` |\n\n//! | file |";
    assert_eq!(listed(text), ["a", "b.rs"]);
}

/// All circles: a line each, with the folder and the modules that use each other.
fn found(files: &[(String, String)]) -> BTreeSet<String> {
    let of = |(folder, uses): (String, BTreeMap<_, _>)| {
        circles(&uses).into_iter().map(move |circle| format!("{folder}: {}", circle.join(" "))).collect::<Vec<_>>()
    };
    folders(files).into_iter().flat_map(of).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in the workspace")
}

/// Sources that git has, by name and text.
fn sources() -> Vec<(String, String)> {
    let output = Command::new("git").args(["ls-files", "*.rs"]).current_dir(root()).output().expect("git runs");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let list = String::from_utf8(output.stdout).expect("names of files are text");
    // What was taken away and not committed yet is still in git's list.
    let read = |file: &str| Some((file.to_owned(), fs::read_to_string(root().join(file)).ok()?));
    list.lines().filter_map(read).collect()
}

#[test]
fn modules_beside_each_other_have_ranks() {
    let files = sources();
    assert!(files.len() > 500, "{} files", files.len());
    let (found, list) = (found(&files), root().join("tests/shape/tests/circles.txt"));
    if std::env::var_os("NEARPM_BLESS").is_some() {
        let lines: String = found.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&list, lines).expect("the list can be written");
    }
    // Where no circle is left there need be no list.
    let listed = if list.exists() { fs::read_to_string(&list).expect("the list can be read") } else { String::new() };
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(new.is_empty(), "modules use each other, and are not listed: {new:#?}");
    assert!(gone.is_empty(), "take what is no longer a circle from the list: {gone:#?}");
}

#[test]
fn a_planted_circle_is_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let mut files = vec![
        file("x/src/lib.rs", "mod a; mod b; mod c;"),
        file("x/src/a.rs", "use crate::{b::B, c};\n#[cfg(test)]\nmod tests { use crate::d; }"),
        file("x/src/b/mod.rs", "mod one; mod two; // use crate::a"),
        file("x/src/b/one.rs", "use super::two::{Two, three};"),
        file("x/src/b/two.rs", "pub struct Two;"),
        file("x/src/c.rs", "use super::b;"),
        file("x/src/d.rs", "use crate::a::A;"),
    ];
    assert_eq!(found(&files), BTreeSet::new());
    files[4].1.push_str("fn f() { super::one::f() }");
    files[2].1.push_str("\nuse crate::d;");
    assert_eq!(found(&files), BTreeSet::from(["x/src/b: one two".to_owned(), "x/src: a b c d".to_owned()]));
}
