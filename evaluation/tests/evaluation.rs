//! Cases, results and the page, at the smallest scale.

use std::sync::Mutex;

use nearpm::Mechanism;
use nearpm_evaluation::bench::{Event, run_all};
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::compute::Compute;
use nearpm_evaluation::on_host;
use nearpm_evaluation::plan::{COMPARED, OURS, PAPER, Scope, THREAD_STEPS, THREADED};
use nearpm_evaluation::published::MECHANISMS;
use nearpm_evaluation::report;
use nearpm_evaluation::results::{Record, Results, charged, csv};
use nearpm_evaluation::run;
use nearpm_evaluation::summary::{Mean, Selection, Summary};
use nearpm_sim::profile::Profile;
use nearpm_workloads::programs::{Inputs, Program};

/// What results are kept under.
const COMMIT: &str = "fedcba987654";

fn profile(name: &str) -> Profile {
    Profile::load(name).expect("an embedded profile")
}

fn ran(case: &Case) -> run::Outcome {
    run::run(case, &profile(&case.profile), &Compute::stored().unwrap(), None).unwrap_or_else(|e| panic!("{e:#}"))
}

/// Runs every case of the plan, as small as it can be.
fn tiny() -> Vec<Record> {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::open(folder.path(), COMMIT, false).unwrap();
    run_all(&Scope::TINY.cases(), &results, 2, None, &|_| {}).unwrap_or_else(|e| panic!("{e:#}"))
}

#[test]
fn a_case_gives_the_same_each_time() {
    for configuration in Configuration::ALL {
        for program in [Program::Tpcc, Program::Redis] {
            let case = Scope::TINY.case(PAPER, program, Mechanism::Undo, configuration);
            assert_eq!(ran(&case), ran(&case), "{case}");
        }
    }
    let threads =
        Case { threads: 4, ..Scope::TINY.case(OURS, Program::Memcached, Mechanism::Undo, Configuration::Card) };
    assert_eq!(ran(&threads), ran(&threads));
}

/// Threads with a pool each meet on the link and in the card, but do not wait for each other's
/// loads.
#[test]
fn memcacheds_threads_overlap() {
    for configuration in [Configuration::Cpu, Configuration::Card] {
        let case = Scope { share: 100, ..Scope::TINY }.case(OURS, Program::Memcached, Mechanism::Undo, configuration);
        let [one, eight] = [1, 8].map(|threads| ran(&Case { threads, ..case.clone() }));
        let faster = one.ns / eight.ns;
        assert!((4.0..=8.1).contains(&faster), "{configuration:?}: {faster} times as fast with eight threads");
        assert!(eight.overlap_ns <= eight.busy_ns && eight.busy_ns <= Some(eight.ns), "{eight:?}");
    }
}

#[test]
fn the_parts_of_a_run_are_its_whole() {
    for configuration in Configuration::ALL {
        for mechanism in Mechanism::ALL {
            let case = Scope::TINY.case(OURS, Program::Btree, mechanism, configuration);
            let outcome = ran(&case);
            let parts: f64 = outcome.breakdown.values().sum();
            assert!((parts / outcome.ns - 1.0).abs() < 0.02, "{case}: {parts} of {} ns", outcome.ns);
            assert!(
                outcome.overlap_ns <= outcome.busy_ns && outcome.busy_ns <= Some(outcome.ns),
                "{case}: {outcome:?}"
            );
            assert_eq!(outcome.busy_ns > Some(0.0), configuration.uses_card(), "{case}");
        }
    }
}

/// What there is beside the mechanisms: each makes something durable, and gives the same each time.
#[test]
fn lean_undo_and_working_copies_are_run_and_charged_by_their_paths() {
    for (mechanism, configuration) in Configuration::BESIDE {
        for profile in COMPARED {
            let case = Scope::TINY.by_path(profile, Program::Btree, mechanism, configuration);
            let outcome = ran(&case);
            assert_eq!(outcome, ran(&case), "{case}");
            let bare = ran(&Scope::TINY.by_path(profile, Program::Btree, mechanism, Configuration::Bare));
            assert!(outcome.counts["fences"] >= case.count as u64, "{outcome:?}");
            // A working copy loads nothing over the link, which without crash consistency all is
            // loaded over.
            let is_slower = outcome.ns > bare.ns || configuration == Configuration::WorkingCopy;
            assert!(is_slower && outcome.breakdown["fence"] > 0.0, "{case}: {outcome:?}, bare {bare:?}");
            assert_eq!(outcome.breakdown["load"] > 0.0, configuration == Configuration::Lean, "{case}: {outcome:?}");
            let parts: f64 = outcome.breakdown.values().sum();
            assert!((parts / outcome.ns - 1.0).abs() < 0.02, "{case}: {parts} of {} ns", outcome.ns);
        }
        let alike = Scope::TINY.case(OURS, Program::Btree, mechanism, configuration);
        let error = run::run(&alike, &profile(OURS), &Compute::stored().unwrap(), None).expect_err("no such times");
        assert!(format!("{error:#}").contains("its own path"), "{error:#}");
    }
    let wrong = Case { threads: 2, ..Scope::TINY.by_path(OURS, Program::Redis, Mechanism::Undo, Configuration::Lean) };
    assert!(run::run(&wrong, &profile(OURS), &Compute::stored().unwrap(), None).is_err());
}

/// Commits of working copies that a mechanism brings home: by commands where a card does it, by
/// none where the processor does.
#[test]
fn working_copies_are_run_with_each_mechanism_by_processor_and_card() {
    for mechanism in Mechanism::ALL {
        for configuration in [Configuration::CopyCpu, Configuration::CopyCard] {
            let case = Scope::TINY.by_path(OURS, Program::Btree, mechanism, configuration);
            let outcome = ran(&case);
            assert_eq!(outcome, ran(&case), "{case}");
            assert_eq!(outcome.counts["commands"] > 0, configuration.uses_card(), "{case}: {outcome:?}");
            assert_eq!(outcome.counts["epochs"] > 0, mechanism.has_epochs(), "{case}: {outcome:?}");
            // Where a commit is durable when it returns it has a fence of its own.
            let fences = outcome.counts["fences"];
            assert!(mechanism.has_epochs() || fences >= case.count as u64, "{case}: {outcome:?}");
            assert!(fences > 0 && outcome.ns > 0.0, "{case}: {outcome:?}");
            let parts: f64 = outcome.breakdown.values().sum();
            assert!((parts / outcome.ns - 1.0).abs() < 0.02, "{case}: {parts} of {} ns", outcome.ns);
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let case = Scope::TINY.case(OURS, Program::Btree, Mechanism::Undo, Configuration::Card);
    for wrong in [
        Case { count: 0, ..case.clone() },
        Case { threads: 2, ..case.clone() },
        Case { devices: 2, ..case.clone() },
        Case { devices: 9, configuration: Configuration::Delayed, ..case.clone() },
    ] {
        let error = run::run(&wrong, &profile(OURS), &Compute::stored().unwrap(), None).expect_err("it makes no sense");
        assert!(error.to_string().contains(&wrong.key()), "{error:#}");
    }
}

#[test]
fn what_is_there_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let cases: Vec<Case> = [Configuration::Bare, Configuration::Cpu, Configuration::Card]
        .map(|configuration| Scope::TINY.case(OURS, Program::Tatp, Mechanism::Undo, configuration))
        .to_vec();
    let count = |results: &Results| {
        let ran = Mutex::new(0);
        let tell = |event: Event<'_>| *ran.lock().unwrap() += usize::from(matches!(event, Event::Ran(_)));
        let records = run_all(&cases, results, 1, None, &tell).unwrap();
        assert_eq!(records.len(), 3);
        ran.into_inner().unwrap()
    };
    let results = Results::open(folder.path(), COMMIT, true).unwrap();
    assert_eq!(count(&results), 3);
    assert_eq!(count(&results), 0);
    // A file that was cut off is no result.
    let file = folder.path().join(format!("{}.json", cases[1].key()));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    let (records, others) = Results::all(folder.path()).unwrap();
    assert_eq!((records.len(), others.len()), (2, 1));
    assert_eq!(count(&results), 1);
    // Another profile's result is none of this one, nor is another commit's without being asked
    // for.
    std::fs::write(&file, text.replace("load_miss_ns=436", "load_miss_ns=437")).unwrap();
    assert_eq!(count(&results), 1);
    std::fs::write(&file, text.replace(COMMIT, "0123456789ab")).unwrap();
    assert_eq!(count(&results), 0);
    assert_eq!(count(&Results::open(folder.path(), COMMIT, false).unwrap()), 1);
}

#[test]
fn a_case_that_fails_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::open(folder.path(), COMMIT, false).unwrap();
    let good = Scope::TINY.case(OURS, Program::Tatp, Mechanism::Undo, Configuration::Cpu);
    let bad = Case { count: 0, ..good.clone() };
    let error = run_all(&[bad, good.clone()], &results, 1, None, &|_| {}).expect_err("one fails");
    assert!(format!("{error:#}").contains("1 of 2 cases failed"), "{error:#}");
    assert!(results.find(&good, &charged(&good, &profile(OURS), &Compute::stored().unwrap())).is_some());
}

/// A table of results is as good as their folder, and each figure's command is the one that made
/// its results.
#[test]
fn a_figures_command_names_seeds_profiles_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    let results = Results::open(folder.path(), COMMIT, false).unwrap();
    let case = Scope::TINY.case(OURS, Program::Tatp, Mechanism::Undo, Configuration::Cpu);
    let cases: Vec<Case> = (1..=3).map(|seed| Case { seed, ..case.clone() }).collect();
    let records = run_all(&cases, &results, 1, None, &|_| {}).unwrap();
    let commands = |records: &[Record]| -> Vec<String> {
        report::figures(records, &[]).unwrap().into_iter().map(|figure| figure.command).collect()
    };
    let at = folder.path().display();
    let wanted = format!("nearpm bench --seeds 3 --profiles {OURS} --results {at} && nearpm report --results {at}");
    assert!(commands(&records).iter().all(|command| *command == wanted), "{:?}", commands(&records));
    let table = folder.path().join("results.csv");
    std::fs::write(&table, csv(&records)).unwrap();
    let read = Results::all(&table).unwrap().0;
    let wanted =
        format!("nearpm bench --seeds 3 --profiles {OURS} --csv {0} && nearpm report --results {0}", table.display());
    assert!(commands(&read).iter().all(|command| *command == wanted), "{:?}", commands(&read));
    let times = |records: &[Record]| -> Vec<String> {
        records.iter().map(|record| format!("{} {:.2}", record.case, record.outcome.per_transaction())).collect()
    };
    assert_eq!(times(&read), times(&records));
}

/// One test for all that needs every case.
#[test]
fn the_whole_plan_gives_every_figure_and_every_prediction() {
    let records = tiny();
    the_page_holds_every_figure_and_needs_nothing_else(&records);
    every_published_average_has_its_prediction(&records);
    nothing_goes_beyond_its_limit(&Summary::new(&records));
}

fn nothing_goes_beyond_its_limit(summary: &Summary) {
    let (card, base) = (Configuration::Card, Configuration::PaperCpu);
    let below = |value: Option<Mean>, limit: Option<Mean>, what: &str| {
        let (value, limit) = (value.unwrap().value, limit.unwrap().value);
        assert!(value.is_finite() && value <= limit, "{what}: {value}, and at most {limit}");
    };
    for profile in [PAPER, OURS] {
        for published in MECHANISMS {
            let s = Selection::new(profile, published.mechanism);
            for program in Program::ALL {
                let what = format!("{profile} {} {}", published.name, program.name());
                below(summary.region(&s, program, card, base), summary.region_limit(&s, program, base), &what);
                below(summary.whole(&s, program, card, base), summary.whole_limit(&s, program, base), &what);
                below(summary.parallel(&s, program, card), summary.busy(&s, program, card), &what);
                below(summary.without_movement(&s, program, base), summary.whole_limit(&s, program, base), &what);
            }
        }
        for (program, threads) in THREADED.into_iter().flat_map(|p| THREAD_STEPS.map(|threads| (p, threads))) {
            let s = Selection { threads, ..Selection::new(profile, Mechanism::Undo) };
            let what = format!("{profile} {} with {threads} threads", program.name());
            below(summary.whole(&s, program, card, base), summary.whole_limit(&s, program, base), &what);
            // The paper's baseline is not faster than the best path while the card is not busy: its
            // fences take as long whether it is or not.
            if threads <= 4 {
                let over_paper = summary.whole(&s, program, card, base);
                below(summary.whole(&s, program, card, Configuration::Cpu), over_paper, &what);
            }
        }
    }
}

fn the_page_holds_every_figure_and_needs_nothing_else(records: &[Record]) {
    let recoveries = report::recoveries().unwrap();
    let figures = report::figures(records, &recoveries).unwrap();
    for id in [
        "fig1a",
        "fig1bcd",
        "fig15a",
        "fig15b",
        "fig15c",
        "fig16a",
        "fig16b",
        "fig16c",
        "fig17",
        "fig18",
        "fig19",
        "fig20",
        "devices",
        "profiles-compared",
        "units-busy",
        "units-threads",
        "recovery-work",
        "recovery-pool",
        "where-undo",
    ] {
        let figure = figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("no figure {id}"));
        assert!(figure.origin.contains("simulated"), "{id}");
        assert!(!figure.published.is_empty() && figure.command.starts_with("nearpm bench"), "{id}");
        // The results are in a folder of the test's own.
        assert!(figure.command.contains(" --results "), "{id}: {}", figure.command);
    }
    for figure in figures.iter().filter(|figure| figure.id.starts_with("fig")) {
        // Each of the paper's has the model with its profile, this project's card, and a limit.
        let file = figure.file();
        assert!(file.contains(PAPER) && file.contains(OURS) && figure.limit.is_some(), "{}", figure.id);
    }
    for figure in &figures {
        let file = figure.file();
        let parsed = roxmltree::Document::parse(&file).unwrap_or_else(|e| panic!("{}: {e}", figure.id));
        assert!(parsed.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")), "{}", figure.id);
        // A file says by itself what it is.
        let noted: Vec<&str> = parsed
            .descendants()
            .filter(|n| n.attribute("class") == Some("notes"))
            .flat_map(|notes| notes.descendants().filter_map(|n| n.text().filter(|_| n.is_text())))
            .collect();
        let noted = noted.join(" ");
        let desc = parsed.descendants().find(|n| n.tag_name().name() == "desc").and_then(|n| n.text()).unwrap();
        for part in [&figure.origin, &figure.command, &figure.published] {
            assert!(noted.contains(part.as_str()) && desc.contains(part.as_str()), "{}: {part}", figure.id);
        }
        let legend = parsed.descendants().find(|n| n.attribute("class") == Some("legend")).expect("a legend");
        assert!(legend.descendants().any(|n| n.tag_name().name() == "rect"), "{}", figure.id);
        let drawn = parsed.descendants().filter(|n| {
            n.has_tag_name(("http://www.w3.org/2000/svg", "rect"))
                || n.has_tag_name(("http://www.w3.org/2000/svg", "circle"))
        });
        assert!(drawn.count() >= 3, "{} shows nothing", figure.id);
        assert!(!file.contains("NaN") && !file.contains("inf"), "{}", figure.id);
    }
    let page = report::page(records, &figures, &on_host::stored().unwrap()).unwrap();
    assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("src="));
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("name=\"viewport\""));
    assert!(page.contains("not available"));
    assert!(
        page.contains("A cached window on a card's memory is an assumption"),
        "the assumption stands on the page itself"
    );
    // The text of `nearpm bench` says at once what it is, and which aims are missed.
    let text = report::text(records, &recoveries).unwrap();
    assert!(text.lines().next().unwrap().contains("simulated"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("| waiting copy of 64 B") && line.contains("missed")), "{text}");
    assert!(text.lines().all(|line| !line.contains("NaN")), "{text}");
    // What was found is there, with its tables, and the words of the documentation.
    for part in [
        "<section id=\"found\">",
        "<h3>Where the time goes</h3>",
        "<strong>Amdahl's law on the paper's own figures</strong>",
        "Aims with this project",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let table = csv(records);
    assert_eq!(table.lines().count(), records.len() + 1);
    let columns = table.lines().next().unwrap().split(',').count();
    assert!(table.lines().all(|line| line.split(',').count() == columns));
}

fn every_published_average_has_its_prediction(records: &[Record]) {
    let summary = Summary::new(records);
    for comparison in report::comparisons(&summary) {
        assert!(comparison.deviation().is_some_and(f64::is_finite), "{comparison:?}");
        assert!(comparison.predicted[1].is_some() && comparison.ours.is_some(), "{comparison:?}");
    }
    // The paper's baseline is never faster than the best path, which is never faster than the
    // floor.
    for program in Program::ALL {
        for mechanism in Mechanism::ALL {
            for inputs in Inputs::ALL {
                let s = Selection { inputs, ..Selection::new(PAPER, mechanism) };
                let time = |configuration| summary.time(&s, program, configuration).unwrap().value;
                let [bare, cpu, paper] = [Configuration::Bare, Configuration::Cpu, Configuration::PaperCpu].map(time);
                let what = format!("{} {mechanism:?} {inputs:?}: {bare} {cpu} {paper}", program.name());
                assert!(bare < cpu && cpu <= paper * 1.02, "{what}");
            }
        }
    }
}
