//! What is built: Verilog text and the options that change the result.

/// One Verilog design and how it is to be built. Everything here is part of the cache key.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the top module in `verilog`.
    pub top: String,
    /// The whole design as text, top module and all that it instantiates.
    pub verilog: String,
    /// Whether [`Instance::open_trace`](crate::Instance::open_trace) works. Tracing costs about
    /// half of the speed even while no file is open, so it is off unless asked for.
    pub trace: bool,
    /// Whether models count which lines of the Verilog they have executed and which bits have
    /// toggled: what the environment says.
    pub(crate) coverage: bool,
    /// Whether the warnings of [`Source::DENIED`] fail the build. On unless turned off.
    pub deny_warnings: bool,
    /// Whether the model is compiled to run fast, which is on unless turned off. For a netlist of
    /// gates, of which a second is simulated once in its life, that takes longer than it saves.
    pub optimised: bool,
    /// Whose edges are not simulated where they change nothing; see [`Source::with_idle_skipped`].
    pub(crate) counters: Option<String>,
    /// Further flags for Verilator, after the standard ones.
    pub verilator_flags: Vec<String>,
}

impl Source {
    /// Warnings that mean that the Verilog does something else than its author wrote, or
    /// (`UNOPTFLAT`) that its logic closes a loop within a cycle.
    pub const DENIED: [&str; 4] = ["WIDTHEXPAND", "LATCH", "UNDRIVEN", "UNOPTFLAT"];

    /// Warnings that generated Verilog causes by design and that change no behaviour.
    pub(crate) const ALLOWED: [&str; 1] = ["WIDTHTRUNC"];

    /// The design `verilog` with module `top` at its root: no trace, warnings denied.
    pub fn new(top: impl Into<String>, verilog: impl Into<String>) -> Self {
        Self {
            top: top.into(),
            verilog: verilog.into(),
            trace: false,
            coverage: false,
            deny_warnings: true,
            optimised: true,
            counters: None,
            verilator_flags: Vec::new(),
        }
    }

    /// The same design, with waveform tracing compiled in or not.
    #[must_use]
    pub fn with_trace(mut self, trace: bool) -> Self {
        self.trace = trace;
        self
    }

    /// The same design, with denied warnings as errors or not.
    #[must_use]
    pub fn with_deny_warnings(mut self, deny: bool) -> Self {
        self.deny_warnings = deny;
        self
    }

    /// The same design, compiled to run fast or not.
    #[must_use]
    pub fn with_optimised(mut self, optimised: bool) -> Self {
        self.optimised = optimised;
        self
    }

    /// The same design, whose edges ([`Instance::edge`](crate::Instance::edge)) are not simulated
    /// while no input changes and nothing but counters would: registers of 32 bits whose path
    /// contains `counters`. Those must do nothing but count, by as much in each cycle in which
    /// nothing else changes, or stand still; and nothing may depend on their values while nothing
    /// else and no input changes. Nobody checks that here: a timer that is called a counter never
    /// ends. So whoever names them has a test that compares with a model that [simulates every
    /// edge](crate::Instance::simulate_every_edge).
    #[must_use]
    pub fn with_idle_skipped(mut self, counters: impl Into<String>) -> Self {
        self.counters = Some(counters.into());
        self
    }

    /// The flags for Verilator that do not depend on where it runs.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = "--cc -O3 --x-assign fast --x-initial fast --noassert \
             --prefix Vtop -Wno-fatal -Wwarn-UNDRIVEN"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        flags.push("--top-module".into());
        flags.push(self.top.clone());
        flags.extend(Self::ALLOWED.map(|w| format!("-Wno-{w}")));
        if self.trace {
            flags.push("--trace".into());
        }
        if self.coverage {
            // Counting keeps blocks whole that are otherwise taken apart, so that signals which
            // only pass through one seem to close a loop.
            flags.extend(["--coverage-line", "--coverage-toggle", "-Wno-UNOPTFLAT"].map(str::to_owned));
        }
        flags.extend(self.verilator_flags.iter().cloned());
        flags
    }
}
