//! A report for programs: counts and simulated times as numbers.

use serde_json::{Value, json};

use super::report::{After, Crash, During, Report};

impl Report {
    /// The report as JSON. Times are nanoseconds of simulated time and end in `_ns`; `null` stands
    /// for what a run has not.
    pub fn json(&self) -> Value {
        let measured = self.measured.as_ref().map(|m| {
            json!({
                "operations": m.operations,
                "time_ns": m.ns,
                "commands": m.card.commands,
                "conflicts_held": m.card.held,
                "bytes_by_processor": m.pool.bytes_by_cpu,
                "bytes_by_card": m.pool.bytes_by_card,
            })
        });
        json!({
            "title": self.title,
            "power_cuts": self.crashes.iter().map(crash).collect::<Vec<_>>(),
            "measured": measured,
            "entries": self.entries,
        })
    }
}

fn crash(Crash { fall, after }: &Crash) -> Value {
    let image = fall.card.as_ref().and_then(|(_, saved)| saved.image);
    let (outcome, recovered) = match after {
        After::NextCut => ("next cut", None),
        After::TornSave => ("torn save", None),
        After::NoPool => ("no pool", None),
        After::Recovered(recovered) => ("recovered", Some(recovered)),
    };
    json!({
        "repeat": fall.cut.to_string(),
        "during": match fall.during {
            During::Making => "making",
            During::Boot => "boot",
            During::Replay => "replay",
            During::Recovery => "recovery",
            During::Check => "check",
            During::Operations => "operations",
        },
        "cycle": fall.card.as_ref().map(|(record, _)| record.cycle),
        "operations_begun": fall.started,
        "operations_acknowledged": fall.acknowledged,
        "commands_saved": image.map(|image| image.commands),
        "stores_saved": image.map(|image| image.stores),
        "outcome": outcome,
        "operations_kept": recovered.map(|recovered| recovered.kept),
        "undone": recovered.map(|recovered| recovered.recovery.undone),
        "redone": recovered.map(|recovered| recovered.recovery.redone),
        "bytes_written": recovered.map(|recovered| recovered.recovery.bytes),
        "recovery_ns": recovered.and_then(|recovered| recovered.ns),
    })
}
