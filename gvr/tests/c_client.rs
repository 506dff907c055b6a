//! A C program against `gds.h`, compiled by the system's compiler, alone and as several ranks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The library as the build of this test has made it: the newest one, as its name holds a number of
/// cargo's.
fn library() -> PathBuf {
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let files = std::fs::read_dir(beside).unwrap().map(|file| file.unwrap());
    let is_ours = |name: &str| name.starts_with("libnearpm_gvr") && name.ends_with(".a");
    let libraries = files.filter(|file| file.file_name().to_str().is_some_and(is_ours));
    libraries.max_by_key(|file| file.metadata().unwrap().modified().unwrap()).expect("the library was built").path()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_client_runs_alone_and_on_several_ranks() {
    let (crate_folder, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir().unwrap());
    let (client, job) = (folder.path().join("client"), folder.path().join("job"));
    let mut compiler = Command::new(if cfg!(feature = "mpi") { "mpicc" } else { "gcc" });
    compiler
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg("-I")
        .arg(crate_folder.join("include"))
        .arg(crate_folder.join("tests/c/client.c"))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"])
        .arg(&client);
    run(&mut compiler);
    run(&mut Command::new(&client));
    let mut wanted = 0;
    for (life, ranks) in [(1, 3), (2, 3), (3, 2), (4, 1)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm-gvr"));
        command.args(["run", "-n", &ranks.to_string(), "--"]).arg(&client).arg(&job);
        wanted += ranks;
        let output = run(&mut command);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("life {life}, ranks {wanted}\n"));
    }
}
