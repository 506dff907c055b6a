//! From Verilog text to a loaded shared library.

use crate::compiler::Compiler;
use crate::error::IoContext;
use crate::instance::{Api, Instance};
use crate::tool::{Verilator, run};
use crate::{Error, Source, cache, coverage, idle, shim};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// How the C++ is compiled. Hidden visibility lets the optimiser see that nothing but the shim is
/// called from outside.
const CXX_FLAGS: &str = "-std=gnu++17 -fPIC -fvisibility=hidden -faligned-new -w \
     -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TIMING=0";

/// How much of the compiler's time goes into a model, and into Verilator's runtime.
const OPTIMISED: &str = "-O2";
/// The same for a model that is not to run fast, and for what runs once in a model's life, a third
/// of the text.
const UNOPTIMISED: &str = "-O0";
/// How Verilator ends the names of files of the latter.
const ONCE: &str = "__Slow.cpp";

/// Generated C++ up to this size, in bytes, is compiled as one unit: most of the time of a small
/// file goes into the headers. Larger designs are compiled file by file, two at a time.
const ONE_UNIT_LIMIT: u64 = 600_000;
/// The name of that unit.
const ONE_UNIT: &str = "all.cc";

/// A built design, loaded and ready to be instantiated. Clones share it.
#[derive(Clone)]
pub struct Library {
    api: Arc<Api>,
}

impl Library {
    /// Builds `source`, or takes it from the cache, and loads it.
    ///
    /// A first build takes about two seconds for a leaf cell and minutes for a whole card; a cached
    /// one takes milliseconds.
    ///
    /// With the variable `NEARPM_COVERAGE` of the environment set to a folder that exists, the
    /// models count their coverage. There is then, for each design, a file `TOP-KEY.points` with a
    /// line for each point (number of its counter, line, page and comment of Verilator's, apart by
    /// tabulators), and each process leaves `TOP-KEY-PROCESS.hits` when it ends: for each counter
    /// how many models, also of copies of it by fork, have hit it, in 32 bits. Such models take
    /// several times as long.
    pub fn build(source: &Source) -> Result<Self, Error> {
        let counts = cache::coverage_folder();
        let counters = source.counters.clone().filter(|_| counts.is_none());
        let source = &Source { coverage: counts.is_some(), counters, ..source.clone() };
        let verilator = Verilator::find()?;
        let key = key(&verilator, source)?;
        let folder = folder(&verilator, source, &key)?;
        let counts = counts.map(|folder| folder.join(format!("{}-{key}", source.top)));
        let api = Api::load(&folder.join("model.so"), source.trace, counts.as_deref())?;
        Ok(Self { api: Arc::new(api) })
    }

    /// Makes one model in its initial state, settled with all inputs 0.
    pub fn instance(&self) -> Result<Instance, Error> {
        Ok(Instance::new(Arc::clone(&self.api)))
    }
}

/// Names what is built of `source` by all that goes into it.
fn key(verilator: &Verilator, source: &Source) -> Result<String, Error> {
    let flags = source.flags();
    let deny = source.deny_warnings.to_string();
    let compiler = Compiler::find()?.version();
    let fixed = [shim::HEAD, CXX_FLAGS, compiler, optimisation(source), verilator.version(), &deny, &source.verilog];
    let counted = source.coverage.then_some([coverage::SHIM, coverage::HEAD]);
    let skipping = source.counters.as_deref().map(|counters| [idle::SHIM, counters]);
    let beyond = counted.into_iter().flatten().chain(skipping.into_iter().flatten());
    Ok(cache::key(fixed.into_iter().chain(flags.iter().map(String::as_str)).chain(beyond)))
}

/// Builds the design, or takes it from the cache, and gives its folder.
fn folder(verilator: &Verilator, source: &Source, key: &str) -> Result<PathBuf, Error> {
    cache::entry(key, |scratch| {
        let runtime = runtime(verilator, source)?;
        if source.counters.is_some() {
            // Only the shim differs from that of the same design with every edge. Whole cards are
            // built as both, and take minutes.
            let every_edge = &Source { counters: None, ..source.clone() };
            let base = folder(verilator, every_edge, &self::key(verilator, every_edge)?)?;
            if !base.join(ONE_UNIT).exists() {
                shim::write(&base, source, scratch)?;
                let shim = vec![scratch.join("shim.cpp")];
                compile_all(&source.top, verilator, source, &headers(verilator, source)?, (shim, &base), scratch)?;
                let code = with_extension(&base, "o")?.into_iter().filter(|file| !file.ends_with("shim.o")).collect();
                return link(source, code, &runtime, scratch);
            }
        }
        translate(verilator, source, scratch)?;
        compile(verilator, source, &runtime, scratch)
    })
}

/// The flag that says so.
fn optimisation(source: &Source) -> &'static str {
    if source.optimised { OPTIMISED } else { UNOPTIMISED }
}

/// Runs Verilator in `scratch` and judges its warnings.
fn translate(verilator: &Verilator, source: &Source, scratch: &Path) -> Result<(), Error> {
    let input = scratch.join("top.v");
    fs::write(&input, &source.verilog).context("write", &input)?;
    let mut command = verilator.command();
    command.args(source.flags()).arg("--Mdir").arg(scratch).arg(&input);
    let log = run(&source.top, &mut command)?;
    let log_path = scratch.join("warnings.log");
    fs::write(&log_path, &log).context("write", &log_path)?;
    if source.deny_warnings {
        let denied = denied(&log);
        if !denied.is_empty() {
            return Err(Error::DeniedWarnings { top: source.top.clone(), log: denied });
        }
    }
    if source.coverage {
        coverage::name_once(scratch)?;
    }
    shim::write(scratch, source, scratch)
}

/// The denied warnings of a log, each with the lines that explain it.
fn denied(log: &str) -> String {
    let mut keep = false;
    let mut out = String::new();
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix("%Warning-") {
            keep = Source::DENIED.iter().any(|w| rest.strip_prefix(w).is_some_and(|rest| rest.starts_with(':')));
        } else if line.starts_with('%') {
            keep = false;
        }
        if keep {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Compiles Verilator's own runtime once for all designs, and gives its folder of objects.
fn runtime(verilator: &Verilator, source: &Source) -> Result<PathBuf, Error> {
    let traced = source.trace.to_string();
    let counted = source.coverage.then_some("coverage");
    let source = &Source { optimised: true, ..source.clone() };
    let compiler = Compiler::find()?.version();
    let key = cache::key([CXX_FLAGS, compiler, OPTIMISED, verilator.version(), &traced].into_iter().chain(counted));
    cache::entry(&format!("runtime-{key}"), |scratch| {
        let mut names = vec!["verilated", "verilated_threads"];
        if source.coverage {
            names.push("verilated_cov");
        }
        if source.trace {
            names.push("verilated_vcd_c");
        }
        let files = names.iter().map(|n| verilator.include().join(format!("{n}.cpp"))).collect();
        compile_all("verilated", verilator, source, &[], (files, scratch), scratch)
    })
}

/// Reads Verilator's header once for all files that are compiled alike, and gives what a call of
/// the compiler takes instead: the header and what it includes are most of the work for a small
/// unit. Files whose coverage is counted are compiled in two ways each, and read it themselves.
fn headers(verilator: &Verilator, source: &Source) -> Result<Vec<OsString>, Error> {
    if source.coverage {
        return Ok(Vec::new());
    }
    let compiler = Compiler::find()?;
    let include = verilator.include();
    let place = include.to_string_lossy();
    let traced = source.trace.to_string();
    let key = [CXX_FLAGS, compiler.version(), optimisation(source), verilator.version(), &traced, &place];
    let folder = cache::entry(&format!("headers-{}", cache::key(key)), |scratch| {
        let mut command = cxx(verilator, source)?;
        command.args(compiler.precompile(&include.join("verilated.h"), scratch));
        run("verilated.h", &mut command).map(|_| ())
    })?;
    Ok(compiler.precompiled(&folder))
}

/// A call of the compiler for any C++ of this design.
fn cxx(verilator: &Verilator, source: &Source) -> Result<Command, Error> {
    let include = verilator.include();
    let compiler = Compiler::find()?;
    let mut command = compiler.command();
    command.args(CXX_FLAGS.split_whitespace()).args(compiler.flags()).arg(optimisation(source));
    let trace = u8::from(source.trace);
    command.arg(format!("-DVM_TRACE={trace}")).arg(format!("-DVM_TRACE_VCD={trace}"));
    command.arg("-I").arg(&include).arg("-I").arg(include.join("vltstd"));
    Ok(command)
}

/// Compiles and links what [`translate`] wrote.
fn compile(verilator: &Verilator, source: &Source, runtime: &Path, scratch: &Path) -> Result<(), Error> {
    let mut files = with_extension(scratch, "cpp")?;
    let size: u64 = files.iter().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum();
    if size <= ONE_UNIT_LIMIT {
        let all = scratch.join(ONE_UNIT);
        let text: String = files.iter().map(|f| format!("#include {f:?}\n")).collect();
        fs::write(&all, text).context("write", &all)?;
        files = vec![all];
    }
    compile_all(&source.top, verilator, source, &headers(verilator, source)?, (files, scratch), scratch)?;
    link(source, Vec::new(), runtime, scratch)
}

/// Links the objects in `scratch` and others to the library that is loaded.
fn link(source: &Source, others: Vec<PathBuf>, runtime: &Path, scratch: &Path) -> Result<(), Error> {
    let compiler = Compiler::find()?;
    let mut link = compiler.command();
    link.args(["-shared", "-fPIC", "-Wl,-Bsymbolic", "-pthread", "-o"]).arg(scratch.join("model.so"));
    link.args(with_extension(scratch, "o")?).args(others).args(with_extension(runtime, "o")?);
    link.args(compiler.libraries());
    run(&source.top, &mut link).map(|_| ())
}

/// Compiles each file to an object in `folder`, two at a time, with these [`headers`]; with the
/// files comes where their own headers are.
fn compile_all(
    top: &str,
    verilator: &Verilator,
    source: &Source,
    headers: &[OsString],
    (files, include): (Vec<PathBuf>, &Path),
    folder: &Path,
) -> Result<(), Error> {
    let job = |file: &Path| {
        let object = folder.join(file.file_stem().unwrap_or(OsStr::new("unit"))).with_extension("o");
        let mut command = cxx(verilator, source)?;
        let once = file.to_string_lossy().ends_with(ONCE);
        if source.coverage {
            command.args(["-UVM_COVERAGE", "-DVM_COVERAGE=1"]);
            // Of the counted, what runs once names every point of coverage.
            command.arg(if once { UNOPTIMISED } else { "-O1" });
        }
        // The last of two optimisations counts, and a header that was read for one is not taken by
        // the other.
        if once {
            command.arg(UNOPTIMISED)
        } else {
            command.args(headers)
        };
        command.arg("-I").arg(include);
        command.arg("-c").arg(file).arg("-o").arg(object);
        run(top, &mut command).map(|_| ())
    };
    let (first, second): (Vec<_>, Vec<_>) = files.iter().enumerate().partition(|(index, _)| index % 2 == 0);
    let all = |half: Vec<(usize, &PathBuf)>| half.into_iter().try_for_each(|(_, file)| job(file));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| all(second));
        let mine = all(first);
        mine.and(other.join().expect("the compile thread does not panic"))
    })
}

/// The files of a folder with that extension, in the order of their names.
fn with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).context("list", folder)?;
    let mut files: Vec<_> =
        entries.flatten().map(|e| e.path()).filter(|p| p.extension() == Some(OsStr::new(extension))).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::denied;

    #[test]
    fn only_denied_warnings_are_kept() {
        let log = "%Warning-LATCH: top.v:3:1: Latch inferred\n   3 | always\n\
                   %Warning-UNUSEDSIGNAL: top.v:4:1: Not used\n   4 | wire\n";
        assert_eq!(denied(log), "%Warning-LATCH: top.v:3:1: Latch inferred\n   3 | always\n");
    }
}
