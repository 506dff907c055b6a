//! With the feature `mpi`: compiles the shim by the compiler of the MPI that is installed, and
//! links that MPI.

fn main() {
    println!("cargo:rerun-if-changed=src/rma/mpi/shim.c");
    #[cfg(feature = "mpi")]
    mpi::build();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::process::Command;

    pub fn build() {
        println!("cargo:rerun-if-env-changed=MPICC");
        let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
        let shown = Command::new(&compiler).arg("-show").output();
        let Some(shown) = shown.ok().filter(|output| output.status.success()) else {
            panic!(
                "the feature mpi needs an MPI: `{compiler} -show` does not run; install mpich, or name its compiler by MPICC"
            );
        };
        let line = String::from_utf8_lossy(&shown.stdout).into_owned();
        let mut shim = cc::Build::new();
        shim.file("src/rma/mpi/shim.c").std("c11").warnings_into_errors(true);
        for word in line.split_whitespace() {
            match word.split_at(word.len().min(2)) {
                ("-I", folder) => drop(shim.include(folder)),
                ("-L", folder) => println!("cargo:rustc-link-search=native={folder}"),
                ("-l", library) => println!("cargo:rustc-link-lib=dylib={library}"),
                _ => {}
            }
        }
        shim.compile("nearpm_gvr_mpi");
    }
}
