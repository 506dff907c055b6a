//! What a kernel, its launch or its text must not do: each is an error that says what, where and by
//! whom.

mod common;

use common::{finish, module, write_u32};
use nearpm_ptx::{
    Arguments, Choice, Config, CrashError, Fault, FaultKind, Gpu, Launch, LaunchError, MemoryError, Module,
    Persistence, Run, Schedule, Stop,
};

fn fault(kernel: &str, threads: u32, more: impl Fn(Arguments) -> Arguments) -> Fault {
    let mut gpu = Gpu::new(Config::default());
    let data = gpu.allocate(256).unwrap();
    write_u32(&mut gpu, data, &(0..64).collect::<Vec<u32>>());
    if kernel == "forever" {
        write_u32(&mut gpu, data, &[0]);
    }
    let launch = Launch::linear(1, threads, more(Arguments::new().pointer(data)));
    let mut run = Run { budget: 10_000, schedule: Schedule::Seeded(1), ..Run::default() };
    match finish(&mut gpu, kernel, &launch, &mut run) {
        Err(LaunchError::Fault(fault)) => {
            // The launch counts as stopped, and cannot go on.
            assert_eq!(gpu.resume(&mut run), Err(LaunchError::NotStopped));
            *fault
        }
        other => panic!("{kernel}: {other:?}"),
    }
}

#[test]
fn accesses_outside_and_misaligned() {
    let found = fault("outside", 32, |a| a.u32(60));
    assert!(matches!(found.kind, FaultKind::Outside { bytes: 4, .. }), "{found}");
    assert_eq!(found.thread.thread, [4, 0, 0]);
    assert!(found.to_string().contains("has 256 bytes"), "{found}");
    let line = common_line(found.line);
    assert!(line.contains("st.global.u32"), "{line}");
    let found = fault("misaligned", 1, |a| a);
    assert!(matches!(found.kind, FaultKind::Misaligned { bytes: 4, .. }), "{found}");
    let mut gpu = Gpu::new(Config::default());
    let launch = Launch::linear(1, 1, Arguments::new().pointer(0).u32(1));
    let found = finish(&mut gpu, "outside", &launch, &mut Run::default()).unwrap_err();
    assert!(found.to_string().contains("null pointer"), "{found}");
}

fn common_line(line: u32) -> String {
    include_str!("kernels/programs.ptx").lines().nth(line as usize - 1).unwrap().to_string()
}

#[test]
fn a_freed_allocation_is_outside() {
    let mut gpu = Gpu::new(Config::default());
    let data = gpu.allocate(256).unwrap();
    gpu.free(data).unwrap();
    assert_eq!(gpu.free(data), Err(MemoryError::NotAllocated { address: data }));
    let launch = Launch::linear(1, 1, Arguments::new().pointer(data).u32(0));
    let found = finish(&mut gpu, "outside", &launch, &mut Run::default()).unwrap_err();
    assert!(found.to_string().contains("freed"), "{found}");
}

#[test]
fn a_failed_assertion_says_which() {
    let found = fault("asserts", 32, |a| a);
    let expected = FaultKind::Assertion {
        message: "data[i] != 5".into(),
        file: "programs.cu".into(),
        line: 42,
        function: "asserts".into(),
    };
    assert_eq!((found.kind, found.thread.thread), (expected, [5, 0, 0]));
}

#[test]
fn a_kernel_that_does_not_end() {
    let found = fault("forever", 1, |a| a);
    assert_eq!((found.kind, found.step), (FaultKind::DoesNotEnd { budget: 10_000 }, 10_000));
    assert_eq!(found.schedule, "seed 1");
}

#[test]
fn barriers_that_never_complete_are_named() {
    let found = fault("half_barrier", 64, |a| a);
    let FaultKind::Barrier { barrier, waits } = &found.kind else { panic!("{found}") };
    assert_eq!(
        (barrier.as_str(), waits.starts_with("32 of 64 threads came")),
        ("barrier 1 of block 0", true),
        "{found}"
    );
    let found = fault("two_barriers", 64, |a| a);
    let FaultKind::Barrier { barrier, waits } = &found.kind else { panic!("{found}") };
    assert!(barrier.contains("barrier 1") && waits.contains("of warp 1 wait at line"), "{found}");
    let found = fault("lost_lanes", 32, |a| a);
    assert!(found.to_string().contains("can never complete"), "{found}");
}

#[test]
fn arguments_and_shapes_are_checked() {
    let mut gpu = Gpu::new(Config::default());
    let mut launch = |arguments, grid, block, shared_bytes| {
        let launch = Launch { grid, block, shared_bytes, arguments };
        finish(&mut gpu, "outside", &launch, &mut Run::default()).unwrap_err().to_string()
    };
    let good = Arguments::new().pointer(0).u32(0);
    let one = [1, 1, 1];
    assert_eq!(launch(Arguments::new(), one, one, 0), "kernel outside takes 2 arguments, 0 were given");
    let wrong = launch(Arguments::new().pointer(0).u64(0), one, one, 0);
    assert!(wrong.contains("argument 1") && wrong.contains("is 4 bytes, the value given has 8"), "{wrong}");
    assert!(launch(good.clone(), [0, 1, 1], one, 0).contains("a grid of 0 x 1 x 1"));
    assert!(launch(good.clone(), one, [32, 64, 1], 0).contains("1 to 1024"));
    assert!(launch(good.clone(), one, [u32::MAX, u32::MAX, u32::MAX], 0).contains("1 to 1024"));
    assert!(launch(good, one, one, 300_000).contains("bytes of shared memory"));
    let names = module("programs").entry("no_such").unwrap_err().to_string();
    assert!(names.contains("no kernel no_such") && names.contains("spin_lock"), "{names}");
}

#[test]
fn crashes_need_tracking_and_a_stopped_gpu_is_busy() {
    let mut gpu = Gpu::new(Config { device_memory: 1 << 20, ..Config::default() });
    assert!(matches!(gpu.allocate(2 << 20), Err(MemoryError::Full { .. })));
    let pm = gpu.map_persistent(vec![0; 4096]);
    let launch = Launch::linear(1, 32, Arguments::new().pointer(pm.address).u32(1));
    let mut run = Run { stop_at: Stop::Step(3), persistence: Persistence::Counted, ..Run::default() };
    finish(&mut gpu, "strided", &launch, &mut run).unwrap();
    assert_eq!(gpu.crash(Choice::All), Err(CrashError::NotTracked));
    assert_eq!(gpu.pending(), Err(CrashError::NotTracked));
    assert_eq!(gpu.persistent_mut(&pm).unwrap_err(), MemoryError::Busy);
    assert_eq!(gpu.write(pm.address, &[1]), Err(MemoryError::Busy));
    let off = &mut Run { stop_at: Stop::PersistEvent(1), ..Run::default() };
    assert!(matches!(finish(&mut gpu, "strided", &launch, off), Err(LaunchError::Shape { .. })));
    // The stopped launch was abandoned: nothing runs, and a crash has nothing to lose.
    assert_eq!(gpu.crash(Choice::All).unwrap().step, 0);
    assert_eq!(gpu.resume(&mut run), Err(LaunchError::NotStopped));
    gpu.persistent_mut(&pm).unwrap()[0] = 9;
    assert_eq!(gpu.persistent(&pm)[0], 9);
}

#[test]
fn what_the_parser_does_not_know_is_named_with_its_line() {
    let kernel = |body: &str| {
        format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n.reg .pred %p<4>;\n{body}\nret;\n}}\n"
        )
    };
    let error = |body: &str| Module::parse(&kernel(body)).unwrap_err();
    for (body, message) in [
        ("mma.sync.aligned %r1, %r2;", "`mma` is not known or not supported"),
        ("add.u32 %r1, %r2;", "takes 3 operands, found 2"),
        ("add.u32 %r1, %r2, %nope;", "`%nope` is not declared"),
        ("add.u32 %r1, %r2, %r9;", "`%r9` is not declared"),
        ("sqrt.rz.f32 %f1, %f2;", "only supported with rounding to nearest"),
        ("add.u32.turbo %r1, %r2, %r3;", "`.turbo` of `add` is not supported"),
        ("bra nowhere;", "`nowhere` is no label"),
        ("add.u32 %r1, %r2 %r3;", "expected `,` or `;`, found `%r3`"),
        ("ld.global.u32 %r1, %rd1;", "expected an address"),
        ("ld.global.v2.u32 {%r1}, [%rd1];", "expected 2 registers, found 1"),
        ("tex.2d.v4.f32.f32 %f1, %f2;", "`tex` is not known"),
        ("mov.u32 %r1, %envreg3;", "`%envreg3` is not declared"),
        ("call nothing;", "a call of `nothing`"),
        ("atom.global.add.b32 %r1, [%rd1], 1;", "`atom` in this form"),
        ("L: L: ret;", "there twice"),
    ] {
        let found = error(body);
        assert!(found.message.contains(message), "{body}: {found}");
        assert_eq!(found.line, 10, "{body}: {found}");
    }
    for (text, message) in [
        ("hello", "expected a directive"),
        (".version 9.0\n.address_size 32", "only 64"),
        (".visible .entry k(", "expected `.param`"),
        (".visible .entry k() { ret", "expected an operand, found the end of the text"),
        (".global .u32 x[99999999999];", "from 0 to 2^32"),
        (".extern .global .u32 x;", "is defined elsewhere"),
        (".global .u64 p = nowhere;", "no variable with an address"),
        ("\u{1F980}", "found the character"),
    ] {
        let found = Module::parse(text).unwrap_err();
        assert!(found.message.contains(message), "{text}: {found}");
    }
    let recursive = ".func f() { call f; ret; }\n.visible .entry k() { call f; ret; }";
    assert!(Module::parse(recursive).unwrap_err().message.contains("calls itself"));
}
