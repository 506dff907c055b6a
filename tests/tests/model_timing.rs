//! The transaction-level card keeps the RTL's time: its latencies are those that micro-traces give.

use nearpm_firmware::standard;
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::bench::{CardBench, load_latency, provisioned};
use nearpm_sim::core::Medium;
use nearpm_sim::machine::Power;
use nearpm_sim::model::{Config, ModelCard, Timing};
use nearpm_sim::profile::Profile;
use nearpm_sim::rtl::{Options, RtlCards};
use nearpm_tests::micro::{self, Micro};
use nearpm_tests::trace::POOL;
use nearpm_tests::{drive, fit};

/// Mean error of the fit over all micro-traces, as a share of their length.
const WORST_FIT: f64 = 0.05;

fn medium() -> Medium {
    provisioned((POOLS_BASE + POOL.bytes) as usize, standard().bytes())
}

fn model(timing: Timing, micro: &Micro) -> Vec<u64> {
    let card = ModelCard::new(Config { timing, ..Config::default() }, medium());
    fit::times(&drive::run(Box::new(card), &micro.trace))
}

/// What profiles say of the card's part of a load is the RTL's, at each clock;
/// `sim/tests/profiles.rs` holds the model to it.
#[test]
fn an_idle_read_takes_on_the_rtl_what_profiles_say() {
    let verilog = nearpm_hdl::generated(&nearpm_hdl::Parameters::default()).simulated();
    let mut far = Vec::new();
    for name in ["vcu118-300", "vcu118-250", "vcu118-200"] {
        let device = Profile::load(name).unwrap_or_else(|e| panic!("{e}")).device;
        let options = Options { mhz: device.clock_mhz.value as u64, ..Options::default() };
        let cards = RtlCards::build(nearpm_hdl::MODULE, &verilog, options).unwrap_or_else(|e| panic!("{e}"));
        let mut bench = CardBench::open(cards.power_up(medium()), POOL);
        let cycles = load_latency(&mut bench);
        let ns = (cycles * bench.card.period_ps()) as f64 / 1000.0;
        println!("{name}: {cycles} cycles, {ns:.1} ns; {} in the profile", device.read_ns.value);
        // Where the memory has another clock, a read meets its crossings a cycle sooner or later.
        let most = if device.clock_mhz.value == 300.0 { 0.5 } else { 1000.0 / device.clock_mhz.value };
        if (ns - device.read_ns.value).abs() > most {
            far.push(format!("{name}: {ns} ns, {} in the profile", device.read_ns.value));
        }
    }
    assert!(far.is_empty(), "{far:?}");
}

/// Prints the values in force, those that fit, and what is left; a value that is stale fails the
/// test by name.
#[test]
fn the_latencies_in_force_are_those_that_the_micro_traces_give() {
    let verilog = nearpm_hdl::generated(&nearpm_hdl::Parameters::default()).simulated();
    let cards = RtlCards::build(nearpm_hdl::MODULE, &verilog, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let traces = micro::all();
    let rtl: Vec<Vec<u64>> =
        traces.iter().map(|m| fit::times(&drive::run(cards.power_up(medium()), &m.trace))).collect();
    let error = |timing| {
        let each = traces.iter().zip(&rtl).map(|(micro, rtl)| fit::distance(rtl, &model(timing, micro)));
        each.sum::<f64>() / traces.len() as f64
    };
    let before = error(Timing::CARD);
    let (mut fitted, after) = fit::descend(Timing::CARD, error);
    for (micro, rtl) in traces.iter().zip(&rtl) {
        let (here, there) = (model(Timing::CARD, micro), model(fitted, micro));
        let last = |times: &[u64]| times.iter().copied().max().unwrap_or(0);
        println!(
            "{:44} RTL {:6}  in force {:6} ({:5.1} %)  fitted {:6} ({:5.1} %)",
            micro.name,
            last(rtl),
            last(&here),
            100.0 * fit::distance(rtl, &here),
            last(&there),
            100.0 * fit::distance(rtl, &there)
        );
    }
    let mut stale = Vec::new();
    let mut force = Timing::CARD;
    for ((name, force), (_, fitted)) in force.latencies().into_iter().zip(fitted.latencies()) {
        println!("{name} = {fitted},");
        if force != fitted {
            stale.push(format!("{name}: {force} in force, {fitted} fits"));
        }
    }
    println!("mean error: {:.2} % in force, {:.2} % fitted", 100.0 * before, 100.0 * after);
    assert!(after < WORST_FIT, "the model's structure does not follow the RTL: {:.2} %", 100.0 * after);
    assert!(stale.is_empty(), "latencies to change in sim/src/model/timing.rs:\n{}", stale.join("\n"));
}
