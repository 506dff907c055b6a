//! Run files: what is wrong in one is told with its line.

use nearpm_gpusim::{Config, RunFile};

const PROGRAMS: [&str; 2] = ["red", "scan"];

fn parse(text: &str) -> Result<RunFile, String> {
    RunFile::parse("run.toml", text, &PROGRAMS, &["small"]).map_err(|error| error.to_string())
}

#[test]
fn a_file_changes_a_named_configuration() {
    let run = parse("program = \"red\"\nbase = \"artifact-sbrp-near\"\n[config]\nwindow = 4\n").unwrap();
    assert_eq!(run.config, Config { window: 4, ..Config::named("artifact-sbrp-near").unwrap() });
    assert_eq!((run.program.as_str(), run.size.as_str()), ("red", "small"));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, line, what) in [
        ("program = \"red\"\nbase = \"artifact-sbrp-near\"\n[config]\nwindows = 4\n", 4, "unknown field `windows`"),
        ("program = \"red\"\nbase = \"artifact-sbrp-near\"\n[config]\nsms = 3\nwindow = 0\n", 5, "window: 0 is not"),
        ("program = \"red\"\nbase = \"artifact-sbrp-moon\"\n", 2, "no configuration artifact-sbrp-moon"),
        ("base = \"artifact-sbrp-near\"\nprogram = \"blue\"\n", 2, "no program blue"),
        ("program = \"red\"\nbase = \"artifact-sbrp-near\"\n[config]\npm_read_bytes = nan\n", 4, "pm_read_bytes"),
        ("program = \"red\"\nbase = \"artifact-sbrp-near\"\n[config]\nmodel = \"strict\"\n", 4, "strict"),
        ("program = \"red\"\nbase = \"artifact-sbrp-near\"\nsize = \"huge\"\n", 3, "no size huge: there are small"),
        ("program = \"red\"\nbase =\n", 2, ""),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(&format!("run.toml, line {line}: ")) && error.contains(what), "{error}");
    }
}
