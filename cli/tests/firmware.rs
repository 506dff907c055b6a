//! `nearpm firmware` as a user sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn nearpm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearpm")).arg("firmware").args(arguments).output().expect("the program runs")
}

fn programs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../firmware/programs");
    let mut paths: Vec<String> = std::fs::read_dir(folder)
        .expect("the programs are there")
        .map(|entry| entry.expect("the folder can be read").path().display().to_string())
        .collect();
    paths.sort();
    paths
}

#[track_caller]
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn sources_become_an_image_and_an_image_becomes_sources() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> (PathBuf, String) {
        let path = folder.path().join(name);
        (path.clone(), path.display().to_string())
    };
    let (image, image_name) = path("a.npfw");
    let sources = programs();
    let mut arguments = vec!["assemble", "--out", &image_name];
    arguments.extend(sources.iter().map(String::as_str));
    assert!(printed(&nearpm(&arguments)).contains("mirror_log"));
    assert_eq!(std::fs::read(&image).unwrap(), nearpm_firmware::standard().bytes());

    let text = printed(&nearpm(&["disassemble", &image_name]));
    let (source, source_name) = path("a.npm");
    std::fs::write(source, text).unwrap();
    let (again, again_name) = path("b.npfw");
    printed(&nearpm(&["assemble", "--out", &again_name, &source_name]));
    assert_eq!(std::fs::read(again).unwrap(), std::fs::read(&image).unwrap());
    assert_eq!(printed(&nearpm(&["check", &image_name])), printed(&nearpm(&["check"])));
}

#[test]
fn refusals_name_the_file_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.npm");
    std::fs::write(&path, "image bad revision 1\nprogram x = 1\nbegin\n  jump\n").unwrap();
    let output = nearpm(&["check", &path.display().to_string()]);
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("bad.npm:4:3: expected an instruction, found `jump`"), "{error}");

    let image = folder.path().join("short.npfw");
    std::fs::write(&image, &nearpm_firmware::standard().bytes()[..100]).unwrap();
    let output = nearpm(&["check", &image.display().to_string()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("short.npfw is refused: the image has 100 bytes"), "{error}");
}
