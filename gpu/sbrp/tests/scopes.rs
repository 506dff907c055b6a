//! The checker of scopes: what the kernels of `kernels/scopes.cu` say of themselves is found at its
//! line, and nothing else.

use std::collections::BTreeSet;

use nearpm_sbrp::scopes::{Argument, CheckError, Finding, Flaw, Job, Source, check};

const CUDA: &str = include_str!("../kernels/scopes.cu");
const PTX: &str = include_str!("../kernels/ptx/scopes.ptx");

fn job(kernel: &str, arguments: usize) -> Job {
    // The first pointer and the last are data in PM; what is called a flag is volatile.
    let of = |name: &str| if name.contains("flag") { Argument::Volatile(4096) } else { Argument::Pm(4096, 0) };
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

const EMPTY: u32 = 0x8000_0000;

/// Programs of the paper, right as they are, with every scope of them made narrower and every
/// operation made plain: what is found.
fn of_the_paper(kernel: &str) -> Job {
    let (pm, volatile, number) = (|bytes| Argument::Pm(bytes, EMPTY), Argument::Volatile, Argument::Number);
    let arguments = match kernel {
        // Entries, their capacity, the queues' heads, commands, entries of a command, flags of the
        // threads, what was removed.
        "sbrp_mq" => {
            vec![
                Argument::Pm(2048, 0),
                number(256),
                Argument::Pm(1024, 0),
                number(6),
                number(64),
                volatile(512),
                volatile(8),
            ]
        }
        "sbrp_red" => vec![volatile(1024), number(256), number(1), pm(512), pm(64), pm(64), volatile(512)],
        _ => vec![volatile(1024), pm(8192), volatile(4096), number(128), number(3)],
    };
    Job { kernel: kernel.into(), blocks: 2, threads: 64, arguments, schedules: 10, budget: 10_000_000 }
}

#[test]
fn reduction_scan_and_queues_are_right_and_each_scope_is_found() {
    const PROGRAMS: &str = include_str!("../../kernels/ptx/sbrp.ptx");
    // What is missed, and why it is no mistake or cannot be seen.
    let mut missed = Vec::new();
    let mut found = 0;
    for kernel in ["sbrp_red", "sbrp_scan", "sbrp_mq"] {
        let job = of_the_paper(kernel);
        assert_eq!(check(PROGRAMS, &job).expect("it runs"), BTreeSet::new(), "{kernel}");
        let start = PROGRAMS.find(&format!(".entry {kernel}(")).expect("the kernel");
        let end = start + PROGRAMS[start..].find("\n}").expect("its end");
        let changes = [
            ("st.relaxed.gpu", "st.relaxed.cta"),
            ("ld.relaxed.gpu", "ld.relaxed.cta"),
            ("st.relaxed.cta", "st.volatile"),
            ("ld.relaxed.cta", "ld.volatile"),
            ("st.relaxed.gpu", "st.volatile"),
            ("ld.relaxed.gpu", "ld.volatile"),
        ];
        for (right, wrong) in changes {
            for (place, _) in PROGRAMS[start..end].match_indices(right) {
                let at = start + place;
                let mutant = format!("{}{wrong}{}", &PROGRAMS[..at], &PROGRAMS[at + right.len()..]);
                match check(&mutant, &job).expect("it runs").is_empty() {
                    true => missed.push((kernel, right, wrong)),
                    false => found += 1,
                }
            }
        }
    }
    println!("{found} found, missed: {missed:?}");
    assert_eq!(missed, [], "each is a mistake");
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
    for text in ["pm:", "pm:0", "pm:8:y", "gpu:8:1", "ram:7", "x", "0xg"] {
        assert!(text.parse::<Argument>().is_err(), "{text}");
    }
}
