//! Small hand-written modules through the whole path: translate, compile, load, run.

use nearpm_verilate::{Direction, Error, Library, Source};

/// A counter with ports of every storage class and a `$` in a name.
const PORTS: &str = "module top(clock, a, b, c, d, w, m$sum, count);
input wire clock; input wire [2:0] a; input wire [15:0] b; input wire [31:0] c;
input wire [63:0] d; input wire [99:0] w; output wire [99:0] m$sum; output reg [7:0] count;
initial count = 0;
assign m$sum = w + {97'd0, a} + {84'd0, b} + {68'd0, c} + {36'd0, d};
always @(posedge clock) count <= count + {5'd0, a};
endmodule\n";

#[test]
fn ports_of_every_width_hold_their_values() {
    let library = Library::build(&Source::new("top", PORTS)).unwrap();
    let mut model = library.instance().unwrap();
    for (name, value) in [("a", 5), ("b", 0x1234), ("c", 0x8000_0001), ("d", u64::MAX)] {
        let port = model.port(name).unwrap();
        model.set_u64(port, value);
        assert_eq!(model.get_u64(port), value);
    }
    let (w, sum) = (model.port("w").unwrap(), model.port("m$sum").unwrap());
    model.set_words(w, &[1, 0, 0, 0xf]);
    model.eval();
    let mut words = [0; 4];
    model.get_words(sum, &mut words);
    let expect = (0xfu128 << 96) + 1 + 5 + 0x1234 + 0x8000_0001 + u128::from(u64::MAX);
    assert_eq!(words, [expect as u32, (expect >> 32) as u32, (expect >> 64) as u32, 0xf]);
    assert_eq!((model.info(w).bits, model.info(w).direction), (100, Direction::Input));
    assert_eq!(model.info(sum).direction, Direction::Output);
    assert!(matches!(model.port("nothing"), Err(Error::NoSuchPort { .. })));
}

#[test]
fn instances_are_independent_and_cycle_uses_the_new_inputs() {
    let library = Library::build(&Source::new("top", PORTS)).unwrap();
    let (mut one, mut two) = (library.instance().unwrap(), library.instance().unwrap());
    let [clock, a, count] = ["clock", "a", "count"].map(|n| one.port(n).unwrap());
    for step in [1, 2, 3] {
        one.set_u64(a, step);
        one.cycle(clock);
        two.cycle(clock);
    }
    let (mut one, two) = std::thread::spawn(move || (one, two)).join().unwrap();
    assert_eq!((one.get_u64(count), two.get_u64(count)), (6, 0));
    one.cycle(clock);
    assert_eq!(one.get_u64(count), 9);
}

#[test]
fn a_fast_cycle_does_what_a_cycle_does() {
    let library = Library::build(&Source::new("top", PORTS)).unwrap();
    let (mut fast, mut plain) = (library.instance().unwrap(), library.instance().unwrap());
    let [clock, a, w, sum, count] = ["clock", "a", "w", "m$sum", "count"].map(|n| fast.port(n).unwrap());
    for step in 0..20u32 {
        for model in [&mut fast, &mut plain] {
            model.set_u64(a, u64::from(step % 8));
            model.set_words(w, &[step, 0, step]);
        }
        fast.settle();
        plain.eval();
        assert_eq!(fast.get_u64(sum), plain.get_u64(sum));
        fast.edge(clock);
        plain.cycle(clock);
        assert_eq!(fast.get_u64(count), plain.get_u64(count), "step {step}");
    }
    // The two ways may be mixed.
    fast.cycle(clock);
    plain.cycle(clock);
    assert_eq!(fast.get_u64(count), plain.get_u64(count));
}

#[test]
#[should_panic(expected = "does not fit port `w` of 100 bits")]
fn values_that_do_not_fit_are_refused() {
    let mut model = Library::build(&Source::new("top", PORTS)).unwrap().instance().unwrap();
    let w = model.port("w").unwrap();
    model.set_words(w, &[0, 0, 0, 0x10]);
}

#[test]
fn warnings_that_change_behaviour_are_errors() {
    let cases = [
        ("WIDTHEXPAND", "module top(input [3:0] a, output [7:0] q); assign q = a; endmodule\n"),
        ("LATCH", "module top(input e, a, output reg q); always @(*) if (e) q = a; endmodule\n"),
        ("UNDRIVEN", "module top(output q); wire x; assign q = x; endmodule\n"),
    ];
    for (warning, verilog) in cases {
        let source = Source::new("top", verilog);
        match Library::build(&source) {
            Err(Error::DeniedWarnings { log, .. }) => assert!(log.contains(warning), "{log}"),
            Err(other) => panic!("{warning}: {other}"),
            Ok(_) => panic!("{warning} was not reported"),
        }
        Library::build(&source.with_deny_warnings(false)).unwrap();
    }
}

#[test]
fn broken_verilog_says_where() {
    let error = Library::build(&Source::new("top", "module top(; endmodule\n")).err().unwrap();
    assert!(error.to_string().contains("syntax error"), "{error}");
}

#[test]
fn a_trace_shows_the_nets() {
    let source = Source::new("top", PORTS).with_trace(true);
    let mut model = Library::build(&source).unwrap().instance().unwrap();
    let path = std::env::temp_dir().join(format!("nearpm-verilate-{}.vcd", std::process::id()));
    let clock = model.port("clock").unwrap();
    model.open_trace(&path).unwrap();
    for time in 0..4 {
        model.cycle(clock);
        model.dump(time);
    }
    drop(model);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.contains("count"), "{text}");

    let mut plain = Library::build(&Source::new("top", PORTS)).unwrap().instance().unwrap();
    assert!(matches!(plain.open_trace(&path), Err(Error::NotTraced)));
}

/// A unit that is busy for some cycles behind each start, counters of all cycles and of those in
/// which it works, which it shows once each time that it is asked, a register that is set, and a
/// timer, which does not only count. The register is set by the fourth edge behind the question:
/// that one is the first that is compared, and changes nothing else.
const WORKER: &str = "module top(clock, start, show, busy, late, shown);
input wire clock; input wire start; input wire show; output wire busy; output wire late; output reg [31:0] shown;
reg seen; reg [2:0] asked; reg [5:0] left; reg [31:0] r_cycles; reg [31:0] r_worked; reg [31:0] r_set; reg [31:0] timer; reg [31:0] noted [0:15];
initial begin seen = 0; asked = 0; left = 0; r_cycles = 0; r_worked = 0; r_set = 0; timer = 0; shown = 0; end
assign busy = |left;
assign late = timer == 32'd0;
always @(posedge clock) begin
  r_cycles <= r_cycles + 32'd1;
  if (busy) begin left <= left - 6'd1; r_worked <= r_worked + 32'd3; noted[left[3:0]] <= r_cycles; end
  else if (start) left <= 6'd37;
  if (busy) timer <= 32'd90;
  else if (!late) timer <= timer - 32'd1;
  asked <= {asked[1:0], show};
  r_set <= asked[2] ? 32'd9 : 32'd0;
  seen <= show;
  shown <= (show & ~seen) ? r_cycles ^ r_worked ^ r_set ^ noted[r_cycles[3:0]] : shown;
end
endmodule\n";

/// The first cycle in which a model that skips edges shows something else than one that does not.
fn differs(counters: &str) -> Option<u64> {
    let source = Source::new("top", WORKER);
    let sources = [source.clone(), source.with_idle_skipped(counters)];
    let mut models = sources.map(|source| Library::build(&source).unwrap().instance().unwrap());
    let mut seed = 1u64;
    let differs = (0..20_000).find(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let seen = models.each_mut().map(|model| {
            let [clock, start, show] = ["clock", "start", "show"].map(|name| model.port(name).unwrap());
            if seed >> 56 < 2 {
                model.set_u64(start, seed >> 40 & 1);
                model.set_u64(show, u64::from(seed >> 41 & 7 == 0));
                model.settle();
            }
            model.edge(clock);
            ["busy", "late", "shown"].map(|name| model.get_u64(model.port(name).unwrap()))
        });
        seen[0] != seen[1]
    });
    let [every, some] = models.map(|model| model.skipped_edges());
    assert!(every == 0 && some > 0, "{every} and {some} edges are skipped");
    differs
}

#[test]
fn edges_that_change_nothing_but_counters_are_skipped_unseen() {
    assert_eq!(differs("r_"), None);
    // Where the timer is called a counter, too (each name has an r in it), it does not end where it
    // should.
    assert!(differs("r").is_some());
}
