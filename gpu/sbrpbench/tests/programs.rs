//! The six programs, small: what they leave, and what was durable on the way.

use nearpm_gpusim::Config;
use nearpm_sbrpbench::crash::{Recorded, narrow, recover, recover_twice};
use nearpm_sbrpbench::device::{Interpreted, Simulated};
use nearpm_sbrpbench::kernels::Lowering;
use nearpm_sbrpbench::mutants::{found, found_in, hardware};
use nearpm_sbrpbench::programs::{Size, all};

/// On each named configuration a run leaves what it should, and at no cycle is something durable
/// that the model forbids.
#[test]
fn programs_run_on_every_configuration_as_the_model_allows() {
    for name in nearpm_gpusim::names() {
        let config = Config::named(&name).unwrap();
        for program in all(Size::Tiny).unwrap() {
            let recorded = Recorded::of(&config, program.as_ref());
            let recorded = recorded.unwrap_or_else(|error| panic!("{} on {name}: {error:#}", program.name()));
            assert!(recorded.events() > 20, "{} persists", program.name());
            program.check_done(&recorded.image(recorded.events())).unwrap();
        }
    }
}

/// So is it with what was tried to make the buffer faster, and with the artifact's way to wait.
#[test]
fn what_was_tried_does_as_the_model_allows() {
    let near = narrow(Config::named("artifact-sbrp-near").unwrap());
    let tried = [
        Config { generations: true, bypass: 32, ..near.clone() },
        Config { granule: 8, queue_merges: true, ..near.clone() },
        Config { granule: 4, generations: true, bypass: 16, ..near.clone() },
        Config { artifact_waits: true, ..near },
    ];
    for (number, config) in tried.iter().enumerate() {
        for program in all(Size::Tiny).unwrap() {
            let recorded = Recorded::of(config, program.as_ref());
            let recorded = recorded.unwrap_or_else(|error| panic!("{}, {number}: {error:#}", program.name()));
            program.check_done(&recorded.image(recorded.events())).unwrap();
        }
    }
}

/// The hardware on which mutants are looked for is sound itself.
#[test]
fn small_hardware_does_as_the_model_allows() {
    for (name, config) in hardware() {
        for program in all(Size::Tiny).unwrap() {
            assert_eq!(found(&config, program.as_ref()), None, "{} on {name}", program.name());
        }
    }
}

/// Crashes at changes of what is durable, spread over the run; the first and the last are among
/// them.
#[test]
fn a_crash_at_any_cycle_is_recovered_from() {
    for name in ["artifact-sbrp-near", "paper-sbrp-far", "artifact-improved-near", "artifact-epoch-far"] {
        let config = narrow(Config::named(name).unwrap());
        for program in all(Size::Tiny).unwrap() {
            let recorded = Recorded::of(&config, program.as_ref()).unwrap();
            for events in (0..recorded.events()).step_by(recorded.events() / 24 + 1) {
                recover(program.as_ref(), &recorded.image(events))
                    .unwrap_or_else(|error| panic!("{} on {name}, {events} changes: {error:#}", program.name()));
            }
            let middle = recorded.image(recorded.events() / 2);
            recover_twice(&config, program.as_ref(), middle, 5)
                .unwrap_or_else(|error| panic!("{} on {name}, twice: {error:#}", program.name()));
        }
    }
}

/// And from images that the model allows, though this hardware would hardly leave them.
#[test]
fn what_the_model_allows_is_recovered_from() {
    let config = narrow(Config::named("artifact-sbrp-near").unwrap());
    for program in all(Size::Tiny).unwrap() {
        let run = Recorded::of(&config, program.as_ref()).unwrap();
        assert!(run.allowed_images(160).count() > 100, "{}", program.name());
        assert_eq!(found_in(program.as_ref(), &run, true), None, "{}", program.name());
        let mut late = run.image(run.events());
        program.crash_late(&mut late);
        let recovery = Recorded::of_recovery(&config, program.as_ref(), late).unwrap();
        assert_eq!(found_in(program.as_ref(), &recovery, true), None, "recovery of {}", program.name());
    }
}

/// The same kernels under GPM's lowering, and on a card's, which the interpreter runs.
#[test]
fn the_other_lowerings_run() {
    for program in all(Size::Tiny).unwrap() {
        let config = Config::named("artifact-epoch-far").unwrap();
        let mut device = Simulated::new(&config, Lowering::Gpm, program.image()).unwrap();
        program.run(&mut device).unwrap();
        program.check_done(&device.image()).unwrap();
        let mut device = Interpreted::new(Lowering::Card, &program.image());
        program.run(&mut device).unwrap();
        program.check_done(&device.image()).unwrap();
    }
}

/// On a GPU of today, whose persistency the interpreter knows: stopped at many steps, with random
/// subsets of what had not persisted, each program recovers.
#[test]
fn a_card_recovers_from_crashes() {
    for program in all(Size::Tiny).unwrap() {
        let mut device = Interpreted::new(Lowering::Card, &program.image());
        program.run(&mut device).unwrap();
        let steps = device.steps();
        for crash in 0..12 {
            let mut device = Interpreted::new(Lowering::Card, &program.image());
            device.crash_at(steps * crash / 12, crash);
            if program.run(&mut device).is_ok() {
                continue;
            }
            let image = device.image();
            let mut device = Interpreted::new(Lowering::Card, &image);
            program.recover(&mut device).unwrap();
            let checked = program.check_recovered(&device.image());
            checked.unwrap_or_else(|error| panic!("{}, crash {crash}: {error:#}", program.name()));
        }
    }
}

/// Counts, not times: the same run twice takes the same cycles.
#[test]
fn a_run_is_deterministic() {
    let config = Config::named("artifact-improved-near").unwrap();
    for program in all(Size::Tiny).unwrap() {
        let once = || {
            let mut device = Simulated::new(&config, Lowering::Hardware, program.image()).unwrap();
            program.run(&mut device).unwrap();
            device.statistics
        };
        assert_eq!(once(), once(), "{}", program.name());
    }
}
