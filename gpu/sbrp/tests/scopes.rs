//! The checker of scopes: what the kernels of `kernels/scopes.cu` say of themselves is found at its line, and nothing else.

use std::collections::BTreeSet;

use nearpm_sbrp::scopes::{Argument, CheckError, Finding, Flaw, Job, Source, check};

const CUDA: &str = include_str!("../kernels/scopes.cu");
const PTX: &str = include_str!("../kernels/ptx/scopes.ptx");

fn job(kernel: &str, arguments: usize) -> Job {
    // The first pointer and the last are data in PM; what is called a flag is volatile.
    let of = |name: &str| if name.contains("flag") { Argument::Volatile(4096) } else { Argument::Pm(4096) };
    let head = CUDA.lines().find(|line| line.contains(&format!(" {kernel}("))).expect("the kernel");
    let arguments: Vec<Argument> = head.split("sbrp_u32 *").skip(1).take(arguments).map(of).collect();
    Job { kernel: kernel.into(), blocks: 2, threads: 64, arguments, schedules: 20, budget: 1_000_000 }
}

fn found(ptx: &str, kernel: &str) -> BTreeSet<(Flaw, u32)> {
    let source = Source::of(ptx);
    let findings = check(ptx, &job(kernel, 9)).unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let place = |line: u32| source.place(line).map_or(0, |place| place.line);
    findings.iter().map(|finding: &Finding| (finding.flaw, place(finding.line))).collect()
}

/// What the comments of a kernel say that is found.
fn said(kernel: &str) -> BTreeSet<(Flaw, u32)> {
    let mut within = false;
    let mut all = BTreeSet::new();
    for (index, line) in CUDA.lines().enumerate() {
        if line.starts_with("extern") {
            within = line.contains(&format!(" {kernel}("));
        }
        let Some((_, what)) = line.split_once("// finds: ").filter(|_| within) else { continue };
        let flaw = match what {
            "narrow release" => Flaw::NarrowRelease,
            "narrow acquire" => Flaw::NarrowAcquire,
            "missing release" => Flaw::MissingRelease,
            "missing acquire" => Flaw::MissingAcquire,
            "two writers" => Flaw::TwoWriters,
            _ => Flaw::Unordered,
        };
        all.insert((flaw, index as u32 + 1));
    }
    all
}

#[test]
fn what_is_wrong_is_found_at_its_line_and_nothing_else() {
    let kernels = CUDA.lines().filter_map(|line| line.strip_prefix("extern \"C\" __global__ void "));
    let mut count = (0, 0);
    for kernel in kernels.filter_map(|rest| rest.split('(').next()) {
        let found = found(PTX, kernel);
        assert_eq!(found, said(kernel), "{kernel}");
        count = if found.is_empty() { (count.0, count.1 + 1) } else { (count.0 + 1, count.1) };
    }
    assert_eq!(count, (6, 4), "kernels with mistakes, and without");
}

/// Every scope of the right programs, made narrower, is found.
#[test]
fn each_narrowed_scope_is_found() {
    let mut narrowed = 0;
    for kernel in ["final_sum", "leader"] {
        let start = PTX.find(&format!(".entry {kernel}(")).expect("the kernel");
        let end = start + PTX[start..].find("\n}").expect("its end");
        for what in ["st.relaxed.gpu", "ld.relaxed.gpu"] {
            for (place, _) in PTX[start..end].match_indices(what) {
                let at = start + place;
                let narrow = what.replace("gpu", "cta");
                let mutant = format!("{}{narrow}{}", &PTX[..at], &PTX[at + what.len()..]);
                let flaws: BTreeSet<Flaw> = found(&mutant, kernel).into_iter().map(|(flaw, _)| flaw).collect();
                let wanted = if what.starts_with("st") { Flaw::NarrowRelease } else { Flaw::NarrowAcquire };
                assert!(flaws.contains(&wanted), "{kernel}, {what}: {flaws:?}");
                narrowed += 1;
            }
        }
    }
    assert_eq!(narrowed, 4);
}

#[test]
fn bad_input_is_told() {
    let said = check("this is no PTX", &job("leader", 9)).expect_err("no PTX").to_string();
    assert!(said.starts_with("line 1"), "{said}");
    let mut unknown = job("leader", 9);
    unknown.kernel = "nobody".into();
    assert!(matches!(check(PTX, &unknown), Err(CheckError::Entry(_))));
    // Without the block that releases, the last one waits for ever.
    let mut alone = job("missing_acquire", 9);
    (alone.threads, alone.budget) = (1, 10_000);
    assert!(check(PTX, &alone).is_ok());
    let mut few = job("leader", 2);
    few.schedules = 1;
    assert!(matches!(check(PTX, &few), Err(CheckError::Launch(_))));
    for text in ["pm:", "pm:0", "ram:7", "x"] {
        assert!(text.parse::<Argument>().is_err(), "{text}");
    }
}
