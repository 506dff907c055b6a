//! Profiles: what is refused, what is the default host and card, and the two points that the
//! paper's profile is calibrated on.

use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_interface::geometry::{FIRMWARE_BASE, PM_BAR, POOLS_BASE};
use nearpm_sim::bench::{CardBench, load_latency, provisioned};
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::figures::POOL;
use nearpm_sim::host::{Parameters, Peers};
use nearpm_sim::machine::Machine;
use nearpm_sim::microbenchmark::{self, PUBLISHED};
use nearpm_sim::model::{Config, ModelCard, Timing};
use nearpm_sim::profile::{EMBEDDED, Profile, ProfileError};
use nearpm_statistics::median;

fn refused(text: &str) -> String {
    Profile::parse("test", text).expect_err("it is wrong").to_string()
}

#[test]
fn the_embedded_profiles_are_right_and_every_value_has_its_source() {
    for (name, _) in EMBEDDED {
        let profile = Profile::load(name).unwrap_or_else(|e| panic!("{e}"));
        assert!(profile.entries().iter().all(|entry| entry.sourced.source.len() > 5), "{name}");
    }
}

#[test]
fn the_card_of_this_project_is_the_default() {
    let profile = Profile::load("vcu118-300").unwrap();
    assert_eq!(profile.parameters(), Parameters::default());
    assert_eq!(profile.peers(), Peers::default());
    let (card, default) = (profile.card(profile.units()), Config::default());
    assert_eq!(card.timing, Timing::CARD);
    assert_eq!(
        (card.card_mhz, card.units, card.line_percent, card.ddr4),
        (default.card_mhz, default.units, default.line_percent, default.ddr4)
    );
}

#[test]
fn what_is_wrong_is_said() {
    let base = "base = \"vcu118-300\"\ntitle = \"x\"\n";
    for (text, words) in [
        ("[host]\nload_mis_ns = { value = 4.0, source = \"x\" }", "load_mis_ns"),
        ("[hots]\n", "hots"),
        (
            "[host]\nload_miss_ns = { value = -4.0, source = \"x\" }",
            "host.load_miss_ns is -4, and must be 10 to 100000",
        ),
        ("[host]\nload_miss_ns = { value = nan, source = \"x\" }", "host.load_miss_ns is NaN"),
        ("[host]\nload_miss_ns = { value = 400.0, source = \" \" }", "must be given with its source"),
        ("[host]\nload_miss_ns = { value = 400.0 }", "source"),
        ("[host]\nload_miss_ns = 400.0", "load_miss_ns"),
        ("[host]\nload_miss_ns = { value = 100.0, source = \"x\" }", "less than host.load_miss_ns, 100"),
        ("[device]\nunits = { value = 9, source = \"x\" }", "device.units is 9, and must be 1 to 8"),
        ("[device]\nbus_gb_per_s = { value = 20, source = \"x\" }", "at most 19.2"),
        ("[link]\nshared = { value = 0.5, source = \"x\" }", "link.shared is 0.5, and must be 0 or 1"),
        ("[host]\nwindow = { value = 1.5, source = \"x\" }", "host.window is 1.5, and must be 0, 1 or 2"),
        ("[device\n", "wrong"),
    ] {
        let message = refused(&format!("{base}{text}"));
        assert!(message.contains(words), "{text}: {message}");
    }
    assert!(refused("title = \"x\"").contains("host"), "everything has to be said where there is no base");
    assert!(refused("base = \"nowhere\"\ntitle = \"x\"").contains("nowhere"));
    assert!(matches!(Profile::load("nowhere"), Err(ProfileError::Unknown { .. })));
    assert!(matches!(Profile::load("./nowhere.toml"), Err(ProfileError::Unreadable { .. })));
}

/// A load from an idle card takes what the profile says, or less where it finds an open row.
#[test]
fn an_idle_load_takes_what_the_profile_says() {
    let mut far = Vec::new();
    for (name, _) in EMBEDDED {
        let profile = Profile::load(name).unwrap();
        let config = profile.card(profile.units());
        let power = move |medium: Medium| Box::new(ModelCard::new(config, medium)) as Box<dyn CardCore>;
        let machine = Machine::new(profile.parameters(), &power, Medium::blank(POOLS_BASE as usize + (1 << 20)));
        let function = machine.function();
        function.config_write(4, &[6, 0]).unwrap();
        const { assert!(FIRMWARE_BASE < POOLS_BASE) };
        let view = function.map(PM_BAR, POOLS_BASE..POOLS_BASE + (1 << 20), Caching::WriteBack).unwrap();
        let mut times_ns = Vec::new();
        for n in 0..20 {
            machine.settle();
            let start = machine.now_ps();
            view.load(n * 8192, &mut [0; 8]);
            times_ns.push((machine.now_ps() - start) as f64 / 1000.0);
        }
        let (median, said) = (median(times_ns), profile.host.load_miss_ns.value);
        println!("{name}: a load takes {median:.1} ns, {said} in the profile");
        if (median - said).abs() > 0.09 * said {
            far.push(format!("{name}: {median:.1} ns, {said} in the profile"));
        }
    }
    assert!(far.is_empty(), "{far:?}");
}

/// The card's part of such a load is what `nearpm figures` prints of the card, and the rest is the
/// link's. Where the memory has another clock than the card, a read meets its crossings a cycle
/// sooner or later.
#[test]
fn an_idle_read_of_the_card_takes_what_the_profile_says() {
    let mut far = Vec::new();
    for (name, _) in EMBEDDED {
        let profile = Profile::load(name).unwrap();
        let medium = provisioned((POOLS_BASE + POOL.bytes) as usize, nearpm_firmware::standard().bytes());
        let card: Box<dyn CardCore> = Box::new(ModelCard::new(profile.card(profile.units()), medium));
        let mut bench = CardBench::open(card, POOL);
        let found = (load_latency(&mut bench) * bench.card.period_ps()) as f64 / 1000.0;
        let said = profile.device.read_ns.value;
        println!("{name}: a read takes {found:.1} ns, {said} in the profile");
        let clock_mhz = profile.device.clock_mhz.value;
        let most = if clock_mhz == 300.0 { 0.5 } else { 1000.0 / clock_mhz };
        if (found - said).abs() > most {
            far.push(format!("{name}: {found:.1} ns, {said} in the profile"));
        }
    }
    assert!(far.is_empty(), "{far:?}");
}

/// The only two figures that the paper's profile is fitted to.
#[test]
fn the_papers_profile_meets_the_two_published_points() {
    let profile = Profile::load("paper-vcu118").unwrap();
    let points =
        microbenchmark::run(&profile, &microbenchmark::model(&profile), &PUBLISHED.map(|(bytes, _)| bytes), 200)
            .unwrap();
    for point in &points {
        println!("{point:?}: {:.3}", point.speed_up());
    }
    for point in points {
        let published = PUBLISHED.iter().find(|(bytes, _)| *bytes == point.bytes).expect("asked for").1;
        assert!(
            (point.speed_up() / published - 1.0).abs() < 0.005,
            "{point:?}: {:.3}, published {published}",
            point.speed_up()
        );
    }
}

#[test]
fn fewer_units_copy_less() {
    let profile = Profile::load("paper-vcu118").unwrap();
    let rates = [1, 2, 4, 8].map(|units| microbenchmark::log_rate(&profile, units, 256, 300));
    println!("256 B logs, million a second with 1, 2, 4 and 8 units: {rates:?}");
    assert!(rates[0] * 1.2 < rates[1] && rates[1] * 1.2 < rates[2] && rates[2] <= rates[3], "{rates:?}");
}

/// The aims of this project's card: what is met is held, what is missed is printed.
#[test]
fn waiting_copies_and_asynchronous_logs_meet_their_aims() {
    for name in ["vcu118-300", "vcu118-250", "vcu118-200"] {
        let profile = Profile::load(name).unwrap();
        let copies = microbenchmark::run(&profile, &microbenchmark::model(&profile), &[64, 4096, 16384], 100).unwrap();
        let speed_ups: Vec<f64> = copies.iter().map(microbenchmark::Point::speed_up).collect();
        let log_ns = microbenchmark::asynchronous_log(&profile, &microbenchmark::model(&profile), 64, 20_000).unwrap();
        let by_record: Vec<f64> = copies.iter().map(microbenchmark::Point::speed_up_by_record).collect();
        println!(
            "{name}: waiting copies {speed_ups:.2?}, by the record {by_record:.2?} (aims 1.4, 6, 10), an asynchronous log {log_ns:.1} ns (aim 100)"
        );
        assert!(log_ns <= 100.0, "{name}: {log_ns}");
        assert!(speed_ups[1] >= 6.0 && speed_ups[2] >= 10.0, "{name}: {speed_ups:?}");
        assert!(by_record[0] >= 1.4 || name == "vcu118-200", "{name}: {by_record:?}");
    }
}
