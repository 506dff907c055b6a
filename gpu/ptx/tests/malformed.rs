//! Damaged PTX is refused or runs into a fault; nothing panics.

use nearpm_ptx::{Arguments, Config, Gpu, Launch, Module, Persistence, Run};
use proptest::prelude::*;

const TEXTS: [&str; 3] =
    [include_str!("kernels/litmus.ptx"), include_str!("kernels/hcl.ptx"), include_str!("kernels/programs.ptx")];

/// Runs each kernel that is left, briefly; outcomes and faults are both fine.
fn run_all(module: &Module) {
    for entry in module.entries() {
        let mut gpu = Gpu::new(Config { device_memory: 1 << 20, resident_blocks: 2 });
        let data = gpu.map_persistent(vec![0; 1024]).address;
        let arguments = entry.parameters().iter().fold(Arguments::new(), |arguments, parameter| {
            let mut bytes = vec![0; parameter.bytes];
            let from = data.to_le_bytes();
            let count = bytes.len().min(8);
            bytes[..count].copy_from_slice(&from[..count]);
            arguments.bytes(&bytes)
        });
        let mut run = Run { budget: 300, persistence: Persistence::Tracked, ..Run::default() };
        let _ = gpu.launch(entry, &Launch { shared_bytes: 64, ..Launch::linear(2, 40, arguments) }, &mut run);
    }
}

#[test]
fn every_truncation_is_refused_or_runs() {
    for text in TEXTS {
        for end in (0..text.len()).step_by(23).filter(|&end| text.is_char_boundary(end)) {
            let _ = Module::parse(&text[..end]);
        }
    }
}

#[test]
fn every_line_left_out_is_refused_or_runs() {
    for text in TEXTS {
        let lines: Vec<&str> = text.lines().collect();
        for skip in (0..lines.len()).step_by(5) {
            let rest: Vec<&str> = lines.iter().enumerate().filter(|(i, _)| *i != skip).map(|(_, line)| *line).collect();
            if let Ok(module) = Module::parse(&rest.join("\n")) {
                run_all(&module);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_text_is_refused_or_runs(
        which in 0usize..3,
        place in any::<prop::sample::Index>(),
        insert in prop_oneof![
            "[ -~]{0,6}", Just("{".to_string()), Just("}".to_string()), Just("%r1".into()), Just("-1".into()),
            Just("4294967296".into()), Just(".b128".into()), Just("0f7F8".into()), Just("\u{e9}".into())
        ],
        cut in 0usize..12,
    ) {
        let text = TEXTS[which];
        let at = place.index(text.len());
        let end = (at + cut).min(text.len());
        let changed = format!("{}{insert}{}", &text[..at], &text[end..]);
        if let Ok(module) = Module::parse(&changed) {
            run_all(&module);
        }
    }

    #[test]
    fn operands_swapped_between_instructions_are_refused_or_run(
        which in 0usize..3, from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()
    ) {
        let mut lines: Vec<&str> = TEXTS[which].lines().collect();
        let (from, to) = (from.index(lines.len()), to.index(lines.len()));
        let moved = lines.remove(from);
        lines.insert(to.min(lines.len()), moved);
        if let Ok(module) = Module::parse(&lines.join("\n")) {
            run_all(&module);
        }
    }

    #[test]
    fn arbitrary_text_is_refused(text in "\\PC{0,200}") {
        let _ = Module::parse(&text);
    }
}
