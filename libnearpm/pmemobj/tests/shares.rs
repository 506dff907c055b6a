//! What share of a pool objects can use, beside PMDK.
//! `cargo nextest run --release -p nearpm-pmemobj -E 'binary(shares)' --no-capture` prints it.

use nearpm_pmemobj_programs::{Library, Program};

/// For each size the share, in tenths of a percent.
fn shares(program: &Program, library: Library) -> Vec<(u64, u64)> {
    let output = program.output(library, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers");
    let numbers = |line: &str| {
        let (bytes, share) = line.split_once(' ').expect("two numbers");
        (bytes.parse().expect("bytes"), share.parse().expect("a share"))
    };
    text.lines().map(numbers).collect()
}

#[test]
fn objects_have_as_much_of_a_pool_as_with_pmdk_and_nine_tenths_from_a_kilobyte_on() {
    let Some(program) = Program::compile("shares") else { return };
    let Some(_) = nearpm_pmemobj_programs::pmdk() else { return };
    let (ours, theirs) = (shares(&program, Library::WorkingCopy), shares(&program, Library::Pmdk));
    println!("|   bytes | NearPM |  PMDK |");
    println!("|--------:|-------:|------:|");
    let percent = |tenths: u64| tenths as f64 / 10.0;
    for (&(bytes, ours), &(_, theirs)) in ours.iter().zip(&theirs) {
        println!("| {bytes:7} | {:6.1} | {:5.1} |", percent(ours), percent(theirs));
    }
    for ((bytes, ours), (of, theirs)) in ours.into_iter().zip(theirs) {
        assert_eq!(bytes, of);
        // A header of 16 bytes stands in front of each object.
        let aim = if bytes >= 1024 { 900 } else { 750 * bytes.min(64) / 64 };
        assert!(ours >= aim && ours >= theirs, "{bytes} B: {} %, PMDK {} %", percent(ours), percent(theirs));
    }
}
