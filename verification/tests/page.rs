//! The page in `docs` is one that the campaigns' list gives.

use nearpm_verification::campaigns::ALL;
use nearpm_verification::page::{check, grouped, render};
use nearpm_verification::run::{Counts, Outcome};
use nearpm_verification::workspace;

fn outcome(campaign: &str, violations: u64) -> Outcome {
    let campaign = nearpm_verification::campaigns::named(campaign).unwrap();
    Outcome {
        campaign: campaign.name.into(),
        command: campaign.arguments(60).join(" "),
        success: violations == 0,
        counts: Counts::from([("cycles".into(), 123_456_789), ("violations".into(), violations)]),
        seconds: 3_661,
        commit: "0123456789".into(),
    }
}

#[test]
fn the_page_lists_every_campaign_as_it_is() {
    let page = std::fs::read_to_string(workspace().join("docs/verification.md")).unwrap();
    check(&page).unwrap_or_else(|stale| panic!("docs/verification.md: {stale:#}: ./x verify --page writes it anew"));
}

#[test]
fn a_page_says_what_was_found_and_what_was_not() {
    let page = render(&[outcome("every-cycle", 0), outcome("explorer", 3)], "Somewhere.", "None.");
    check(&page).unwrap();
    assert!(page.contains("123 456 789 cycles"), "{page}");
    assert!(page.contains("100 000 000 cycles: reached") && page.contains("1 000 000 states: **missed**"), "{page}");
    assert!(page.contains("61 min 1 s") && page.contains("**3 violations**") && page.contains("--minutes 24"));
    assert_eq!(page.matches("**not run**").count(), ALL.len() - 2);
}

#[test]
fn a_page_of_another_list_is_refused() {
    let page = render(&[outcome("every-cycle", 0)], "Somewhere.", "None.");
    for (from, to) in [
        ("| every-cycle |", "| each-cycle |"),
        ("loses nothing accepted", "loses little"),
        ("| holds |", "| perhaps |"),
        ("--bin every-cycle", "--bin no-cycle"),
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
