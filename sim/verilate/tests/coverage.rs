//! Counts of coverage: they are there when the process that ran the models has ended, of all models
//! together.

use std::process::Command;

use nearpm_verilate::{Library, Source};

const COUNTER: &str = "module top(clock, up, value);
input wire clock; input wire up; output reg [1:0] value;
initial value = 0;
always @(posedge clock) begin
  if (up) value <= value + 2'd1;
  else value <= 0;
end
endmodule\n";

/// Counts where the environment asks for it: two models, one of which counts up and the other of
/// which does not.
#[test]
fn two_models() {
    let library = Library::build(&Source::new("top", COUNTER)).unwrap();
    for (steps, up) in [(3, 1), (2, 0)] {
        let mut model = library.instance().unwrap();
        let [clock, direction] = ["clock", "up"].map(|name| model.port(name).unwrap());
        model.set_u64(direction, up);
        (0..steps).for_each(|_| {
            model.settle();
            model.edge(clock);
        });
    }
}

#[test]
fn the_counts_of_all_models_are_written_when_their_process_ends() {
    let folder = std::env::temp_dir().join(format!("nearpm-coverage-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = std::env::current_exe().unwrap();
    let status = Command::new(program).args(["--exact", "two_models"]).env("NEARPM_COVERAGE", &folder).status();
    assert!(status.unwrap().success());
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    let file = |kind: &str| files.iter().find(|path| path.extension().is_some_and(|e| e == kind)).unwrap();
    let points = std::fs::read_to_string(file("points")).unwrap();
    let hits = std::fs::read(file("hits")).unwrap();
    let count = |what: &str| {
        let line = points.lines().find(|line| line.ends_with(what)).unwrap_or_else(|| panic!("no {what} in {points}"));
        let counter: usize = line.split('\t').next().unwrap().parse().unwrap();
        u32::from_le_bytes(hits[4 * counter..][..4].try_into().unwrap())
    };
    assert_eq!((count("\tif"), count("\telse")), (1, 1), "each is hit by one of the models: {points}");
    assert_eq!((count("\tvalue[0]:0->1"), count("\tclock:0->1")), (1, 2), "{points}");
    assert_eq!(count("\tvalue[1]:1->0"), 0, "{points}");
    std::fs::remove_dir_all(folder).unwrap();
}
