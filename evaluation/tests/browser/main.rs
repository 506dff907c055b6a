//! The page in a browser: light and dark, on a screen and on a phone. It is of the long form of the
//! tests.

mod devtools;

use devtools::Browser;
use nearpm_evaluation::bench::run_all;
use nearpm_evaluation::on_host;
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::report;
use nearpm_evaluation::results::Results;
use serde_json::Value;

/// Widths of a screen and of a phone, in pixels.
const SCREEN: u32 = 1280;
const PHONE: u32 = 390;

/// What is looked at: whether the page is wider than the window (a phone shrinks a page that is too
/// wide, so that `innerWidth` grows with it), its colours, its text, and the drawing of each
/// figure.
const LOOK: &str = "({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    paper: getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number),
    ink: getComputedStyle(document.body).color.match(/\\d+/g).map(Number),
    label: getComputedStyle(document.querySelector('svg text')).fill.match(/\\d+/g).map(Number),
    text: Math.min(...[...document.querySelectorAll('p,dd,dt,td')].map(e => parseFloat(getComputedStyle(e).fontSize))),
    outside: [...document.querySelectorAll('body > *, section > *')]
        .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.tagName + '#' + e.id + '.' + e.className),
    figures: [...document.querySelectorAll('section')].filter(s => s.querySelector('svg')).map(s => {
        const drawing = s.querySelector('svg').getBoundingClientRect();
        const marks = [...s.querySelectorAll('svg rect, svg circle')].filter(m => m.getBoundingClientRect().height > 0);
        return [s.id, drawing.width, drawing.height, marks.length];
    }),
})";

fn colour(value: &Value) -> f64 {
    let parts = value.as_array().expect("a colour has parts");
    parts.iter().take(3).map(|part| part.as_f64().unwrap()).sum::<f64>() / 3.0
}

fn looks_right(seen: &Value, what: &str, dark: bool, figures: &[String]) {
    assert_eq!(seen["wide"].as_f64().map(|wide| wide <= 0.0), Some(true), "{what}: the page scrolls sideways: {seen}");
    assert_eq!(seen["outside"].as_array().map(Vec::len), Some(0), "{what}: {}", seen["outside"]);
    for text in ["ink", "label"] {
        let (paper, ink) = (colour(&seen["paper"]), colour(&seen[text]));
        assert_eq!(paper < ink, dark, "{what}: {text} {ink} on {paper}");
        assert!((paper - ink).abs() > 120.0, "{what}: {text} {ink} on {paper} is hard to read");
    }
    assert!(seen["text"].as_f64().unwrap() >= 12.0, "{what}: the text is too small: {}", seen["text"]);
    let drawn = seen["figures"].as_array().unwrap();
    let names: Vec<&str> = drawn.iter().map(|figure| figure[0].as_str().unwrap()).collect();
    assert_eq!(names, figures, "{what}");
    for figure in drawn {
        let [width, height, marks] = [1, 2, 3].map(|i| figure[i].as_f64().unwrap());
        assert!(width >= 300.0 && height >= 100.0 && marks >= 3.0, "{what}: {figure} shows nothing");
    }
}

#[test]
fn the_page_is_readable_light_and_dark_on_a_screen_and_on_a_phone() {
    if !nearpm_tier::thorough() {
        return;
    }
    let Some(mut browser) = Browser::start() else {
        assert!(std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "chromium is not installed");
        return println!("chromium is not installed: not tried");
    };
    let folder = tempfile::tempdir().unwrap();
    let results = Results::open(&folder.path().join("results"), "unknown", false).unwrap();
    let records = run_all(&Scope::TINY.cases(), &results, 2, None, &|_| {}).unwrap_or_else(|e| panic!("{e:#}"));
    let figures = report::figures(&records, &report::recoveries().unwrap()).unwrap();
    let path = folder.path().join("page.html");
    std::fs::write(&path, report::page(&records, &figures, &on_host::stored().unwrap()).unwrap()).unwrap();
    let names: Vec<String> = figures.iter().map(|figure| figure.id.clone()).collect();
    for width in [SCREEN, PHONE] {
        for scheme in ["light", "dark"] {
            let what = format!("{scheme}, {width} pixels");
            browser.show(&format!("file://{}", path.display()), width, scheme);
            browser.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)");
            let seen = browser.evaluate(LOOK);
            looks_right(&seen, &what, scheme == "dark", &names);
            assert_eq!(browser.errors(), Vec::<String>::new(), "{what}");
        }
    }
    // Errors would have been seen.
    browser.evaluate("console.error('planted')");
    browser.evaluate("document.body.style.cssText = 'width: 2000px; max-width: none'");
    assert!(browser.errors().concat().contains("planted"));
    assert!(browser.evaluate(LOOK)["wide"].as_f64().unwrap() > 0.0);
}
