//! What commands keep in files: runs of figures, and programs for another simulator.

use std::path::{Path, PathBuf};

use nearpm_sbrpbench::export::export;
use nearpm_sbrpbench::figures::{Runs, figure};
use nearpm_sbrpbench::kernels::Lowering;
use nearpm_sbrpbench::programs::Size;

/// An empty place of this name.
fn place(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The second time nothing is run, and runs of another timing are none.
#[test]
fn a_figure_takes_its_runs_from_the_record() {
    let path = place("runs").join("figures.jsonl");
    let print = || figure(9, "artifact", Size::Tiny, &mut Runs::read(&path)?);
    let first = print().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 12, "two bars of six programs");
    // A run that says something else is taken as it is: it is not run again.
    let (cycles, _) = text.split_once("\"cycles\":").unwrap().1.split_once(',').unwrap();
    std::fs::write(&path, text.replacen(&format!("\"cycles\":{cycles}"), "\"cycles\":1", 1)).unwrap();
    assert_ne!(print().unwrap(), first);
    std::fs::write(&path, text.replace("\"timing\":", "\"timing\":1000")).unwrap();
    assert!(print().unwrap_err().to_string().contains("line 1: timing 1000"));
    std::fs::write(&path, &text[..text.len() - 9]).unwrap();
    assert!(print().unwrap_err().to_string().contains("line 12 is no run"));
}

/// A record of crashes is gone on with, but not one of another timing, or of a time when it had
/// none.
#[test]
fn crashes_of_another_timing_are_no_record() {
    let path = place("crashes").join("crashes.json");
    let run = |crashes| nearpm_sbrpbench::campaign::run(&path, crashes, |_| {});
    assert_eq!(run(3).unwrap().crashes, 3);
    assert_eq!(run(5).unwrap().crashes, 5);
    let text = std::fs::read_to_string(&path).unwrap();
    let timing = format!("\"timing\": {}", nearpm_gpusim::TIMING);
    assert!(text.contains(&timing), "{text}");
    for (other, said) in [("\"timing\": 1000", "timing 1000"), ("\"crashes\": 5", "is no record")] {
        std::fs::write(&path, text.replace(&timing, other)).unwrap();
        let refused = format!("{:#}", run(9).unwrap_err());
        assert!(refused.contains(said), "{refused}");
    }
    std::fs::write(&path, text.replace(&format!("{timing},"), "")).unwrap();
    assert!(run(9).unwrap_err().to_string().contains("timing 0"));
}

#[test]
fn an_exported_program_has_all_that_its_launches_name() {
    let folder = place("export");
    export("scan", Size::Tiny, Lowering::Hardware, &folder).unwrap();
    let list = std::fs::read_to_string(folder.join("launches.txt")).unwrap();
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines[0], "pm 3584 memory0.bin");
    assert_eq!(lines[3], "launch sbrp_scan 2 32 memory:1+0 memory:0+0 memory:2+0 u32:64 u32:6");
    for (file, bytes) in [("memory0.bin", 3584), ("memory1.bin", 512), ("memory2.bin", 1792), ("expected.bin", 3584)] {
        assert_eq!(std::fs::read(folder.join(file)).unwrap().len(), bytes, "{file}");
    }
    assert!(std::fs::read_to_string(folder.join("kernels.ptx")).unwrap().contains(".entry sbrp_scan("));
}
