//! Tells of each case of a bench: on a terminal a bar, in a log a line.

use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use nearpm_evaluation::bench::Event;

/// Does work that tells of each of so many cases, and shows how far it has come.
pub fn with_progress<R>(cases: usize, work: impl FnOnce(&(dyn Fn(Event<'_>) + Sync)) -> R) -> R {
    let style =
        ProgressStyle::with_template("{msg:60!} [{bar:30}] {human_pos}/{human_len} {eta}").expect("it is right");
    let bar = ProgressBar::new(cases as u64).with_style(style.progress_chars("=> "));
    let told = AtomicUsize::new(0);
    let done = work(&|event| {
        let line = match event {
            Event::Found(case) => format!("{case}: there"),
            Event::Ran(record) => {
                format!("{}: {:.0} ns, ran {:.1} s", record.case, record.outcome.per_transaction(), record.wall_s)
            }
            Event::Failed(case, error) => format!("{case}: FAILED: {error:#}"),
        };
        bar.inc(1);
        let number = told.fetch_add(1, Ordering::Relaxed) + 1;
        if bar.is_hidden() || matches!(event, Event::Failed(..)) {
            eprintln!("{number} of {cases}: {line}");
        }
        bar.set_message(line);
    });
    bar.finish_and_clear();
    done
}
