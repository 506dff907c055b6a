//! The simulator on small kernels: results, counts, refusals.

use nearpm_gpusim::{Config, Policy, SimulationError, Simulator};
use nearpm_ptx::{Arguments, Launch, Module};

fn module(body: &str) -> Module {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 p) {{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n\
         mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r4, %r2, %r3, %r1;\nmul.wide.u32 %rd2, %r4, 4;\n\
         add.u64 %rd3, %rd1, %rd2;\n{body}\nret;\n}}\n"
    );
    Module::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn config() -> Config {
    Config::named("paper-sbrp-near").unwrap()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

/// 64 blocks store a word a thread: each line is one persist, and is durable in the end.
#[test]
fn a_store_a_thread_is_a_persist_a_line() {
    let module = module("st.global.u32 [%rd3], %r4;");
    let mut simulator = Simulator::new(config()).unwrap();
    simulator.record();
    let pm = simulator.map_persistent(vec![0; 64 * 128 * 4]);
    let launch = Launch::linear(64, 128, Arguments::new().pointer(pm.address));
    let statistics = simulator.launch(module.entry("kernel").unwrap(), &launch).unwrap();
    assert_eq!(words(simulator.persistent(&pm)), (0..64 * 128).collect::<Vec<u32>>());
    assert_eq!((statistics.persists, statistics.pm_written_bytes), (256, 256 * 128));
    assert_eq!(statistics.thread_instructions, 64 * 128 * 9);
    let mut image = vec![0; 64 * 128 * 4];
    simulator.journal().unwrap().events().iter().for_each(|event| event.apply(pm.address, &mut image));
    assert_eq!(image, simulator.persistent(&pm));
    assert_eq!(simulator.check_order(), Ok(256));
}

/// Flushed lazily, two stores to a line without an order between them are one persist; with a
/// dFence in between they are two, and the thread waits.
#[test]
fn stores_coalesce_up_to_a_fence() {
    let run = |between: &str| {
        let module = module(&format!("st.global.u32 [%rd3], 1;\n{between}\nst.global.u32 [%rd3], 2;"));
        let mut simulator = Simulator::new(Config { policy: Policy::Lazy, ..config() }).unwrap();
        let pm = simulator.map_persistent(vec![0; 128]);
        let launch = Launch::linear(1, 32, Arguments::new().pointer(pm.address));
        simulator.launch(module.entry("kernel").unwrap(), &launch).unwrap()
    };
    let (plain, ordered, durable) = (run(""), run("fence.acq_rel.gpu;"), run("fence.acq_rel.sys;"));
    assert_eq!((plain.persists, ordered.persists, durable.persists), (1, 2, 2));
    assert_eq!((durable.waits_for_durability, ordered.waits_for_line), (1, 1));
    assert!(plain.cycles < durable.cycles);
}

/// Where entries tell the words of a line apart, only a store to the same word waits for the one
/// before an order.
#[test]
fn a_store_beside_an_ordered_one_does_not_wait() {
    let run = |granule: u32, offset: u32| {
        let body = format!("st.global.u32 [%rd1], 1;\nfence.acq_rel.gpu;\nst.global.u32 [%rd1+{offset}], 2;");
        let mut simulator = Simulator::new(Config { policy: Policy::Lazy, granule, ..config() }).unwrap();
        simulator.record();
        let pm = simulator.map_persistent(vec![0; 128]);
        let launch = Launch::linear(1, 32, Arguments::new().pointer(pm.address));
        let statistics = simulator.launch(module(&body).entry("kernel").unwrap(), &launch).unwrap();
        let mut image = vec![0; 128];
        simulator.journal().unwrap().events().iter().for_each(|event| event.apply(pm.address, &mut image));
        assert_eq!(image, simulator.persistent(&pm));
        simulator.check_order().unwrap();
        (statistics.persists, statistics.waits_for_line)
    };
    assert_eq!((run(0, 4), run(4, 4), run(4, 0)), ((2, 1), (2, 0), (2, 1)));
    assert_eq!((run(8, 4), run(8, 8)), ((2, 1), (2, 0)));
}

/// A write to a sector that is in a controller's queue takes no bandwidth of its own; what the
/// medium has begun to take is no longer there.
#[test]
fn writes_merge_in_a_queue() {
    let store = "fence.acq_rel.sys;\nst.global.u32 [%rd3], 2;\n";
    let module = module(&format!("st.global.u32 [%rd3+128], 1;\n{}", store.repeat(3)));
    let written = |queue_merges| {
        // The medium takes its time, the queue has room, and one channel has both lines.
        let slow = Config { pm_write_bytes: 0.05, l2_slices: 2, ..config() };
        let mut simulator = Simulator::new(Config { queue_merges, ..slow }).unwrap();
        let pm = simulator.map_persistent(vec![0; 256]);
        let launch = Launch::linear(1, 32, Arguments::new().pointer(pm.address));
        simulator.launch(module.entry("kernel").unwrap(), &launch).unwrap().pm_written_bytes
    };
    assert_eq!((written(false), written(true)), (512, 256));
}

/// A dFence waits until a controller has queued what was stored (ADR), not for the latency of the
/// medium.
#[test]
fn a_persist_waits_for_the_queue_alone() {
    let module = module("st.global.u32 [%rd3], 1;\nfence.acq_rel.sys;");
    let cycles = |pm_latency, persist_latency| {
        let mut simulator = Simulator::new(Config { pm_latency, persist_latency, ..config() }).unwrap();
        let pm = simulator.map_persistent(vec![0; 128]);
        let launch = Launch::linear(1, 32, Arguments::new().pointer(pm.address));
        simulator.launch(module.entry("kernel").unwrap(), &launch).unwrap().cycles
    };
    let queued = cycles(300, 0);
    assert_eq!(cycles(3000, 0), queued);
    assert_eq!(cycles(300, 100), queued + 100);
}

#[test]
fn a_block_that_does_not_fit_is_refused() {
    let module = module("st.global.u32 [%rd3], 1;");
    let mut simulator = Simulator::new(Config { warps: 8, ..config() }).unwrap();
    let launch = Launch::linear(1, 512, Arguments::new().pointer(0));
    let refused = simulator.launch(module.entry("kernel").unwrap(), &launch).unwrap_err();
    assert_eq!(refused, SimulationError::DoesNotFit { warps: 16, shared: 0 });
}

/// Faults name the PTX line; a kernel that waits for itself ends with a message, and one without
/// end by its budget.
#[test]
fn faults_are_messages() {
    let run = |body: &str, address: u64| {
        let module = module(body);
        let mut simulator = Simulator::new(Config { budget: 50_000, ..config() }).unwrap();
        let pm = simulator.map_persistent(vec![0; 128]);
        let address = if address == 1 { pm.address } else { address };
        let launch = Launch::linear(1, 32, Arguments::new().pointer(address));
        simulator.launch(module.entry("kernel").unwrap(), &launch).unwrap_err().to_string()
    };
    let outside = run("st.global.u32 [%rd3], 1;", 64);
    assert!(outside.contains("PTX line 15") && outside.contains("null pointer"), "{outside}");
    let atomic = run("atom.global.add.u32 %r5, [%rd3], 1;", 1);
    assert!(atomic.contains("PTX line 15") && atomic.contains("not simulated"), "{atomic}");
    let stuck = run("setp.ne.u32 %p1, %r1, 0;\n@%p1 bar.sync 1, 64;", 1);
    assert!(stuck.contains("no thread can go on"), "{stuck}");
    let endless = run("L:\nbra L;", 1);
    assert!(endless.contains("50000 cycles"), "{endless}");
}

#[test]
fn an_unknown_opcode_is_a_message_with_its_line() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<2>;\nwmma.mma %r0, %r1;\nret;\n}\n";
    let error = Module::parse(text).unwrap_err();
    assert_eq!(error.line, 6, "{error}");
}

/// The improvements take no more than the paper's 2 KB of an SM, and the paper's own design what it
/// says.
#[test]
fn the_buffer_takes_no_more_than_two_kilobytes() {
    for name in nearpm_gpusim::names() {
        let config = Config::named(&name).unwrap();
        config.check().unwrap();
        assert!(config.storage_bits() <= 2048 * 8, "{name}: {} bits", config.storage_bits());
    }
    assert_eq!(config().storage_bits(), 256 * 44 + 512 * 9 + 96 + 8);
    let words = Config { granule: 8, buffer_entries: 184, ..config() };
    assert_eq!(words.storage_bits(), 184 * (44 + 16) + 512 * 9 + 96 + 8);
    let generations = Config { generations: true, ..config() };
    assert_eq!(generations.storage_bits(), config().storage_bits() + 32 + 8 + 1);
}
