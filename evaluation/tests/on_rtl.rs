//! The Verilated RTL as the device of the evaluation: the model is near it, and results of both are
//! kept apart.

use std::sync::OnceLock;

use anyhow::Result;
use nearpm::Mechanism;
use nearpm_evaluation::bench::run_all;
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::compute::Compute;
use nearpm_evaluation::copies::Copies;
use nearpm_evaluation::device::{Cards, Device};
use nearpm_evaluation::plan::{OURS, PAPER, RTL_COUNT, on_both_devices};
use nearpm_evaluation::results::{Results, charged};
use nearpm_evaluation::run;
use nearpm_sim::profile::Profile;
use nearpm_sim::rtl::{Options, RtlCards};
use nearpm_workloads::programs::Program;

/// The times of the two devices are within this part of each other. Found were at most 0.017 with
/// the copies, and 0.01 with the programs.
const BOUND: f64 = 0.03;

fn verilated(mhz: u64) -> Result<Cards> {
    static VERILOG: OnceLock<String> = OnceLock::new();
    let verilog = VERILOG.get_or_init(|| nearpm_hdl::generated(&nearpm_hdl::Parameters::default()).simulated());
    Ok(Box::new(RtlCards::build(nearpm_hdl::MODULE, verilog, Options { mhz, ..Options::default() })?))
}

fn profile(name: &str) -> Profile {
    Profile::load(name).expect("an embedded profile")
}

fn ran(case: &Case) -> run::Outcome {
    let outcome = run::run(case, &profile(&case.profile), &Compute::stored().unwrap(), Some(&verilated));
    outcome.unwrap_or_else(|e| panic!("{e:#}"))
}

fn is_near(rtl: f64, model: f64) -> bool {
    (rtl / model - 1.0).abs() <= BOUND
}

/// To store them anew: `nearpm bench stored --only copies-rtl`.
#[test]
fn copies_take_as_long_on_the_rtl_as_is_stored_and_as_on_the_model() {
    let ours = profile(OURS);
    let of = |device| Copies::run(&ours, device, Some(&verilated), "").unwrap_or_else(|e| panic!("{e:#}"));
    let (rtl, model) = (of(Device::Rtl), of(Device::Model));
    let stored = Copies::stored().unwrap();
    assert_eq!((&rtl.points, rtl.log_ns), (&stored.points, stored.log_ns), "today and stored");
    for (rtl, model) in rtl.points.iter().zip(&model.points) {
        println!("{rtl:?}: {:.3}; {model:?}: {:.3}", rtl.speed_up(), model.speed_up());
        let times = [(rtl.cpu_ns, model.cpu_ns), (rtl.card_ns, model.card_ns), (rtl.record_ns, model.record_ns)];
        assert!(times.into_iter().all(|(rtl, model)| is_near(rtl, model)), "{rtl:?} {model:?}");
    }
    assert!(is_near(rtl.log_ns, model.log_ns), "{} {}", rtl.log_ns, model.log_ns);
}

/// Every run's pool is compared with the program's own model at its end, on both devices. What the
/// library did there is the same, too.
#[test]
fn programs_take_as_long_on_the_rtl_as_on_the_model_and_do_the_same() {
    let tried = [(Program::Tatp, Mechanism::Undo), (Program::Btree, Mechanism::Checkpoint)];
    let mut cases = on_both_devices(&[OURS.to_owned()], RTL_COUNT, 1);
    cases.retain(|case| tried.contains(&(case.program, case.mechanism)) && case.configuration == Configuration::Card);
    assert_eq!(cases.len(), tried.len() * Device::ALL.len());
    for pair in cases.chunks_exact(Device::ALL.len()) {
        let [model, rtl] = [&pair[0], &pair[1]].map(ran);
        assert_eq!((pair[0].device, pair[1].device), (Device::Model, Device::Rtl));
        let [model_ns, rtl_ns] = [&model, &rtl].map(run::Outcome::per_transaction);
        println!("{}: {rtl_ns:.0} ns, {model_ns:.0} on the model", pair[1]);
        assert!(is_near(rtl_ns, model_ns), "{}: {rtl_ns} ns, on the model {model_ns}", pair[1]);
        for count in ["log entries", "bytes logged", "shadow pages", "epochs", "bytes by card", "commands"] {
            assert_eq!(rtl.counts[count], model.counts[count], "{}: {count}", pair[1]);
        }
    }
}

#[test]
fn results_of_the_two_devices_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::open(folder.path(), "fedcba987654", false).unwrap();
    let mut cases = on_both_devices(&[OURS.to_owned()], 4, 1);
    cases.retain(|case| case.program == Program::Tatp && case.configuration == Configuration::Bare);
    let records = run_all(&cases, &results, 1, Some(&verilated), &|_| {}).unwrap_or_else(|e| panic!("{e:#}"));
    assert_eq!(records.len(), 2);
    let compute = Compute::stored().unwrap();
    for record in &records {
        let found = results.find(&record.case, &charged(&record.case, &profile(OURS), &compute)).expect("it was kept");
        assert_eq!((found.case.device, found.outcome.ns), (record.case.device, record.outcome.ns));
    }
    let [model, rtl] = [&records[0], &records[1]];
    assert!(model.outcome.busy_ns.is_some() && rtl.outcome.busy_ns.is_none());
    assert_eq!(Results::all(folder.path()).unwrap().0.len(), 2);
}

#[test]
fn what_was_not_built_in_rtl_is_refused() {
    let cases = on_both_devices(&[OURS.to_owned()], 4, 1);
    let case = cases.into_iter().find(|case| case.device == Device::Rtl).expect("a case on the RTL");
    let several = Case { devices: 2, configuration: Configuration::Delayed, ..case.clone() };
    let compute = Compute::stored().unwrap();
    for (wrong, name, said) in [
        (&case, PAPER, "was not built"),
        (&Case { units: 2, ..case.clone() }, OURS, "was not built"),
        (&several, OURS, "one device"),
    ] {
        let error = run::run(wrong, &profile(name), &compute, Some(&verilated)).expect_err(said);
        assert!(format!("{error:#}").contains(said), "{error:#}");
    }
    let error = run::run(&case, &profile(OURS), &compute, None).expect_err("there is no RTL");
    assert!(format!("{error:#}").contains("no RTL here"), "{error:#}");
}
