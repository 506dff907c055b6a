//! The page in `docs` is one that the campaigns' list gives.

use std::collections::BTreeSet;

use nearpm_verification::campaigns::ALL;
use nearpm_verification::coverage::points::CoverPoint;
use nearpm_verification::coverage::waivers::Waivers;
use nearpm_verification::page::{check, former, former_coverage, former_machines, grouped, render};
use nearpm_verification::run::{Counts, Kept, Outcome};
use nearpm_verification::workspace;

fn outcome(campaign: &str, violations: u64) -> Outcome {
    let campaign = nearpm_verification::campaigns::named(campaign).unwrap();
    Outcome {
        campaign: campaign.name.into(),
        command: campaign.words(24).join(" "),
        success: violations == 0,
        counts: Counts::from([("cycles".into(), 123_456_789), ("violations".into(), violations)]),
        seconds: 3_661,
        commit: "0123456789".into(),
    }
}

fn machines(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.into()).collect()
}

#[test]
fn the_page_lists_every_campaign_as_it_is() {
    let page = std::fs::read_to_string(workspace().join("docs/verification.md")).unwrap();
    check(&page).unwrap_or_else(|stale| panic!("docs/verification.md: {stale:#}: ./x verify --page writes it anew"));
}

#[test]
fn a_page_says_what_was_found_and_what_was_not() {
    let page = render(&[outcome("every-cycle", 0), outcome("explorer", 3)], &machines(&["2 processors, X"]), "None.");
    check(&page).unwrap();
    assert!(page.contains("123 456 789 cycles"), "{page}");
    assert!(page.contains("100 000 000 cycles: reached") && page.contains("1 000 000 states: **missed**"), "{page}");
    assert!(page.contains("61 min 1 s") && page.contains("**3 violations**") && page.contains("--minutes 24"));
    assert_eq!(page.matches("**not run**").count(), ALL.len() - 2);
}

#[test]
fn a_page_says_how_long_its_rows_took_and_whether_they_are_of_one_commit() {
    let [mut one, other] = [outcome("every-cycle", 0), outcome("explorer", 0)];
    one.seconds = 59;
    let page = |outcomes: &[Outcome]| render(outcomes, &machines(&["2 processors, X"]), "None.");
    let short = page(&[one.clone()]);
    assert!(
        short.contains("took 59 s together") && short.contains("within the 60 minutes") && short.contains("one commit")
    );
    one.commit = "0123456789+".into();
    let long = page(&[one, other]);
    assert!(long.contains("took 62 min 0 s together") && long.contains("**more than** the 60 minutes"), "{long}");
    assert!(long.contains("**They ran on 2 commits**"), "{long}");
    assert!(check(&long.replace("took 62", "took 12")).is_err());
    assert!(page(&[]).contains("No campaign has run."));
}

#[test]
fn rows_are_kept_as_the_page_has_them() {
    let mut failed = outcome("fuzz", 0);
    failed.success = false;
    failed.counts = Counts::new();
    let mut outcomes = [outcome("every-cycle", 0), outcome("mutants", 12_345), failed];
    outcomes[0].counts.insert("states left by recoveries".into(), 1_000);
    let page = render(&outcomes, &machines(&["2 processors, X"]), "| kind |\n\nMore.\n");
    assert_eq!(former(&page), outcomes);
    assert_eq!(former_coverage(&page), Some("| kind |\n\nMore."));
    for of in [machines(&["2 processors, X"]), machines(&["2 processors, X", "8 processors, Y"])] {
        assert_eq!(former_machines(&render(&outcomes, &of, "None.")), of);
    }
    // What ran was another program.
    let other = page.replace("release/every-cycle", "release/no-cycle");
    assert_eq!(former(&other), outcomes[1..]);
    assert!(former("").is_empty() && former_coverage("").is_none());
}

/// What ran elsewhere comes to the page as what ran here.
#[test]
fn what_a_campaign_has_left_in_a_folder_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Kept::all(folder.path()).unwrap_err().to_string().contains("no campaign has left"));
    let kept = |name: &str, coverage: Option<&str>| Kept {
        outcome: outcome(name, 0),
        machine: "32 processors, Y".into(),
        coverage: coverage.map(str::to_owned),
    };
    let all = [kept("every-cycle", None), kept("coverage", Some("| kind |"))];
    // Those of the folder come in the list's order, whatever else lies there.
    all.iter().rev().for_each(|kept| kept.write(folder.path()).unwrap());
    std::fs::write(folder.path().join("every-cycle.log"), "{}").unwrap();
    assert_eq!(Kept::all(folder.path()).unwrap(), all);
    let mut other = kept("model", None);
    other.outcome.command = "target/release/another".into();
    other.write(folder.path()).unwrap();
    let stale = format!("{:#}", Kept::all(folder.path()).unwrap_err());
    assert!(stale.contains("is not what runs today"), "{stale}");
}

#[test]
fn a_campaign_gets_its_share_and_no_more_than_is_left() {
    let [every_cycle, model] =
        ["every-cycle", "model"].map(|name| nearpm_verification::campaigns::named(name).unwrap());
    let minutes = [(60, 60), (60, 7), (60, 0), (2, 2)].map(|(all, left)| every_cycle.minutes(all, left));
    assert_eq!(minutes, [15, 7, 1, 1]);
    assert_eq!(model.minutes(60, 60), 0);
}

#[test]
fn a_page_of_another_list_is_refused() {
    let page = render(&[outcome("every-cycle", 0)], &machines(&["2 processors, X"]), "None.");
    for (from, to) in [
        ("| every-cycle |", "| each-cycle |"),
        ("loses nothing accepted", "loses little"),
        ("| holds |", "| perhaps |"),
        ("release/every-cycle", "release/no-cycle"),
        ("123 456 789 cycles", ""),
    ] {
        assert!(page.contains(from), "{from}");
        assert!(check(&page.replace(from, to)).is_err(), "{from} -> {to}");
    }
}

#[test]
fn names_are_unique_and_shares_fit() {
    let mut names: Vec<_> = ALL.iter().map(|campaign| campaign.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    assert!(ALL.iter().map(|campaign| campaign.share).sum::<u64>() <= 100);
    assert!(ALL.iter().all(|c| (c.share > 0) == c.command.contains("MINUTES")));
    assert_eq!(grouped(1_234_567), "1 234 567");
    assert_eq!(grouped(12), "12");
}

/// What is open by the page is no more than what may be, and what may be is no more than that.
#[test]
fn the_bounds_of_what_is_open_are_what_the_page_has_found() {
    let page = std::fs::read_to_string(workspace().join("docs/verification.md")).unwrap();
    let waivers = Waivers::read(&Waivers::path()).unwrap();
    for kind in CoverPoint::ALL {
        let most = waivers.most_open.get(kind.name()).copied().unwrap_or(0);
        let row =
            page.lines().find(|line| line.starts_with(&format!("| {} |", kind.name()))).expect("a row of the kind");
        let open = row.split('|').nth(6).unwrap().replace(' ', "");
        assert_eq!(open.parse(), Ok(most), "{}: {row}", kind.name());
    }
}
