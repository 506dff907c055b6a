//! C and C++ programs on the header and the library.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where cargo has put the library: beside the test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    test.parent().expect("a test lies in a folder").to_owned()
}

/// What `./x install` installs of GPM, in a folder.
fn installed(into: &Path) {
    let output = Command::new(folder().join("install")).arg(libraries()).arg("/usr").arg(into).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(into.join("usr/include/nearpm_gpm.cuh").exists() && into.join("usr/lib/pkgconfig/nearpm_gpm.pc").exists());
}

fn compiled(source: &str, compiler: &str, options: &[&str], into: &Path) -> PathBuf {
    let program = into.join(format!("{source}-{compiler}"));
    let output = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(&options[..2])
        .arg(folder().join("tests/c").join(source))
        .arg("-I")
        .arg(into.join("usr/include"))
        .arg("-L")
        .arg(into.join("usr/lib"))
        .args([options[2], "-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("a C compiler is installed (Debian: gcc, g++)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// A compiler, its language, and how it links the installed library: the static one, and the shared
/// one.
const COMPILERS: [(&str, [&str; 3]); 2] =
    [("gcc", ["-std=c99", "-xc", "-l:libnearpm_gpm.a"]), ("g++", ["-std=c++17", "-xc++", "-lnearpm_gpm"])];

/// Compiles a program with both compilers on what is installed, and runs it with a folder and more
/// arguments.
fn works_from_c(source: &str, arguments: &[&Path]) {
    let into = tempfile::tempdir().unwrap();
    installed(into.path());
    for (compiler, options) in COMPILERS {
        let program = compiled(source, compiler, &options, into.path());
        let files = into.path().join(format!("files-{compiler}"));
        std::fs::create_dir(&files).unwrap();
        let output = Command::new(program)
            .arg(&files)
            .args(arguments)
            .env("NEARPM_GPM_DEVICE", "interpreter")
            .env("LD_LIBRARY_PATH", into.path().join("usr/lib"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("as it should be"));
    }
}

/// Hash tables: made, filled until they refuse, opened again; what is senseless is refused and
/// loses nothing.
#[test]
fn hash_tables_work_from_c() {
    works_from_c("tables.c", &[]);
}

#[test]
fn every_call_of_table_2_works_from_c_on_what_is_installed() {
    works_from_c("table2.c", &[&folder().join("../kernels/ptx/txn.ptx")]);
}

/// The 14 calls of the processor are in the header; the five of kernels are in the device header,
/// whose test is elsewhere.
#[test]
fn the_header_has_the_papers_calls() {
    let header = std::fs::read_to_string(folder().join("include/nearpm_gpm.h")).unwrap();
    let calls = [
        "gpm_map",
        "gpm_unmap",
        "gpm_persist_begin",
        "gpm_persist_end",
        "gpmlog_create_conv",
        "gpmlog_create_hcl",
        "gpmlog_open",
        "gpmlog_close",
        "gpmcp_create",
        "gpmcp_open",
        "gpmcp_close",
        "gpmcp_register",
        "gpmcp_checkpoint",
        "gpmcp_restore",
    ];
    assert_eq!(calls.len() + nearpm_gpm::table2::ON_THE_GPU.len(), 19);
    for call in calls {
        let declared = header.lines().any(|line| line.contains(&format!("{call}(")) && !line.starts_with(" *"));
        assert!(declared, "{call} is not declared");
    }
}
