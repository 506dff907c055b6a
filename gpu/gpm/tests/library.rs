//! Logs, batches and checkpoints: what they hold, and what they refuse.

use std::rc::Rc;

use nearpm_gpm::table2::*;
use nearpm_gpm::{Batch, Checkpoint, Concurrent, Element, Error, Form, Log, Order, Outcome, Shape, UNSTRICT};
use nearpm_gpu::{Buffer, Device, Interpreted, Launch, LinkState, Medium, Module, ObjectKind, PmRegion};
use nearpm_interface::region::BatchState;

const SHAPE: Shape = Shape { blocks: 2, threads: 40 };

fn device() -> Rc<dyn Device> {
    Rc::new(Interpreted::new(16 << 20))
}

fn region() -> PmRegion {
    PmRegion::create_in(device(), Medium::of_bytes(vec![0; 4 << 20])).unwrap()
}

fn txn() -> Module {
    Module::new("txn", include_str!("../../kernels/ptx/txn.ptx"))
}

/// Updates cells with one kernel, which logs 12 bytes a cell.
fn update(region: &PmRegion, log: &Log, kernel: &'static str, shape: Shape, rounds: u32) {
    let cells = match region.find("cells", ObjectKind::Data) {
        Ok(cells) => cells,
        Err(_) => region.add("cells", ObjectKind::Data, 8 * 1024, |_| Ok(())).unwrap(),
    };
    let arguments = [log.address().into(), region.address(cells.offset).into(), rounds.into(), 7u32.into()];
    region.device().launch(txn().kernel(kernel), &Launch::new(shape.blocks, shape.threads, arguments)).unwrap();
}

fn forms(region: &PmRegion) -> Vec<(Log, &'static str)> {
    vec![
        (Log::create_hcl(region, "sealed", SHAPE, 12, 3, Form::Sealed).unwrap(), "update_sealed"),
        (Log::create_hcl(region, "tail", SHAPE, 12, 3, Form::Tail).unwrap(), "update_tail"),
    ]
}

#[test]
fn entries_are_there_until_the_log_is_cleared() {
    let region = region();
    for (log, kernel) in forms(&region) {
        update(&region, &log, kernel, SHAPE, 3);
        log.check().unwrap();
        let entries = log.entries(Order::Oldest).unwrap();
        assert_eq!(entries.len(), 240);
        // Blocks have whole warps: the second begins with thread 64.
        assert!(entries.iter().all(|entry| entry.thread % 64 < 40 && entry.words.len() == 3));
        let newest = log.entries(Order::Newest).unwrap();
        assert_eq!((newest[0].thread, newest[0].slot), (0, 2));
        let generation = log.generation();
        log.clear().unwrap();
        assert_eq!((log.entries(Order::Oldest).unwrap().len(), log.generation()), (0, generation + 1));
        // What is there of an earlier generation does not come back with new entries.
        update(&region, &log, kernel, SHAPE, 1);
        assert_eq!(log.entries(Order::Oldest).unwrap().len(), 80);
        let again = Log::open(&region, log.name()).unwrap();
        assert_eq!(again.entries(Order::Oldest).unwrap().len(), 80);
        // An opened log goes on behind its entries.
        update(&region, &again, kernel, SHAPE, 2);
        again.check().unwrap();
        assert_eq!(again.entries(Order::Oldest).unwrap().len(), 240);
    }
}

#[test]
fn full_logs_say_so_and_keep_what_they_have() {
    let region = region();
    for (log, kernel) in forms(&region) {
        update(&region, &log, kernel, SHAPE, 4);
        let refused = log.check().unwrap_err();
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        assert_eq!(log.entries(Order::Oldest).unwrap().len(), 240);
        // The complaint was told once.
        log.check().unwrap();
    }
    let log = Log::create_conventional(&region, "conventional", 2, 2400).unwrap();
    update(&region, &log, "update_conv", SHAPE, 4);
    assert!(matches!(log.check(), Err(Error::Full { .. })));
    let entries = log.entries(Order::Oldest).unwrap();
    assert!(entries.len() == 2 && entries.iter().all(|entry| entry.words.len() % 3 == 0 && entry.words.len() <= 320));
}

#[test]
fn another_launch_or_entry_than_the_logs_is_refused() {
    let region = region();
    for (log, kernel) in forms(&region) {
        for shape in [Shape { blocks: 1, ..SHAPE }, Shape { threads: 32, ..SHAPE }] {
            update(&region, &log, kernel, shape, 1);
            assert!(matches!(log.check(), Err(Error::LaunchShape { blocks: 2, threads: 40, .. })));
        }
        assert!(log.entries(Order::Oldest).unwrap().is_empty());
    }
    let log = Log::create_hcl(&region, "other", SHAPE, 16, 3, Form::Sealed).unwrap();
    update(&region, &log, "update_sealed", SHAPE, 1);
    assert!(matches!(log.check(), Err(Error::EntrySize { bytes: 16, .. })));
    let none = region.find("cells", ObjectKind::Data).unwrap();
    assert!(
        region.read_vec(none.offset, 8192).unwrap().iter().all(|&byte| byte == 0),
        "what was not logged was stored"
    );
}

#[test]
fn logs_that_cannot_be_are_refused() {
    let region = region();
    let hcl = |shape, bytes, depth, form| Log::create_hcl(&region, "log", shape, bytes, depth, form).err().unwrap();
    for refused in [
        hcl(Shape { blocks: 0, threads: 1 }, 4, 1, Form::Sealed),
        hcl(Shape { blocks: 1, threads: 1025 }, 4, 1, Form::Sealed),
        hcl(SHAPE, 0, 1, Form::Sealed),
        hcl(SHAPE, 6, 1, Form::Sealed),
        hcl(SHAPE, 260, 1, Form::Tail),
        hcl(SHAPE, 4, 0, Form::Sealed),
        hcl(SHAPE, 4, 1 << 16, Form::Tail),
        Log::create_conventional(&region, "log", 0, 100).err().unwrap(),
        Log::create_conventional(&region, "log", 100, 100).err().unwrap(),
    ] {
        assert!(matches!(refused, Error::Invalid(_)), "{refused}");
    }
    let large = hcl(Shape { blocks: 1 << 20, threads: 1024 }, 64, 100, Form::Sealed);
    assert!(matches!(large, Error::Device(nearpm_gpu::Error::NoRoom { .. })), "{large}");
    assert!(Log::open(&region, "log").is_err());
    assert!(region.objects().is_empty());
}

#[test]
fn damaged_logs_are_refused() {
    let region = region();
    let object = |name: &str| region.objects().into_iter().find(|object| object.name == name).unwrap();
    drop(forms(&region));
    for (at, what) in [(0u64, "head"), (64, "word")] {
        for name in ["sealed", "tail"] {
            let place = object(name).offset + at;
            let byte = region.read_vec(place, 1).unwrap()[0];
            region.write(place, &[byte ^ 4]).unwrap();
            let refused = Log::open(&region, name).err().unwrap().to_string();
            assert!(refused.contains(what) && refused.contains("damaged"), "{refused}");
            region.write(place, &[byte]).unwrap();
            Log::open(&region, name).unwrap();
        }
    }
}

#[test]
fn tails_of_old_generations_do_not_come_back() {
    let region = region();
    let log = Log::create_hcl(&region, "log", SHAPE, 12, 1, Form::Tail).unwrap();
    update(&region, &log, "update_tail", SHAPE, 1);
    // A tail has 16 bits of the generation.
    for _ in 0..1 << 16 {
        log.clear().unwrap();
    }
    assert!(log.entries(Order::Oldest).unwrap().is_empty());
    assert!(log.generation() >= 1 << 16);
    assert!(Log::open(&region, "log").unwrap().entries(Order::Oldest).unwrap().is_empty());
}

#[test]
fn batches_commit_or_are_to_be_recovered() {
    let region = region();
    let (log, kernel) = forms(&region).remove(0);
    let batch = Batch::create(&region, "batch").unwrap();
    let logs = [&log];
    let active = batch.begin(&logs).unwrap();
    update(&region, &log, kernel, SHAPE, 1);
    assert_eq!(active.commit().unwrap(), 1);
    assert!(log.entries(Order::Oldest).unwrap().is_empty());
    assert_eq!(batch.recover(&logs, || panic!("nothing is to undo")).unwrap(), Outcome::Kept { generation: 1 });
    let _ = batch.begin(&logs).unwrap();
    assert_eq!(batch.state(), BatchState::Active);
    assert!(matches!(batch.begin(&logs), Err(Error::NotRecovered { .. })));
    let failed = batch.recover(&logs, || Err(Error::Invalid("undo fails".to_owned())));
    assert!(failed.is_err() && batch.state() == BatchState::Active);
    let again = Batch::open(&region, "batch").unwrap();
    assert_eq!(again.recover(&logs, || Ok(())).unwrap(), Outcome::Undone { generation: 2 });
    // A batch whose log was full is not committed.
    let active = again.begin(&logs).unwrap();
    update(&region, &log, kernel, SHAPE, 4);
    assert!(matches!(active.commit(), Err(Error::Full { .. })));
    assert_eq!(again.state(), BatchState::Active);
    assert_eq!(log.entries(Order::Oldest).unwrap().len(), 240);
}

fn element(name: &str, buffer: &Buffer) -> Element {
    Element { name: name.to_owned(), address: buffer.address(), bytes: buffer.bytes() }
}

#[test]
fn groups_are_checkpointed_each_for_itself() {
    let region = region();
    let checkpoint = Checkpoint::create(&region, "checkpoint", 1000, 2, 2).unwrap();
    let memory: Vec<Buffer> = (0..3).map(|i| Buffer::new(region.device(), 100 + 7 * i).unwrap()).collect();
    checkpoint.register(0, element("a", &memory[0])).unwrap();
    checkpoint.register(0, element("b", &memory[1])).unwrap();
    checkpoint.register(1, element("a", &memory[2])).unwrap();
    assert_eq!(checkpoint.restore(0).unwrap(), None);
    memory.iter().zip(1..).for_each(|(memory, byte)| memory.fill(byte).unwrap());
    assert_eq!(checkpoint.checkpoint(0).unwrap().sequence, 1);
    assert_eq!(checkpoint.restore(1).unwrap(), None);
    memory.iter().for_each(|memory| memory.fill(9).unwrap());
    // Registered the other way round they are found by name.
    let again = Checkpoint::open(&region, "checkpoint").unwrap();
    again.register(0, element("b", &memory[1])).unwrap();
    again.register(0, element("a", &memory[0])).unwrap();
    assert_eq!(again.restore(0).unwrap().unwrap().bytes, 207);
    assert!(memory[0].download().unwrap().iter().all(|&byte| byte == 1));
    assert!(memory[1].download().unwrap().iter().all(|&byte| byte == 2));
    assert!(memory[2].download().unwrap().iter().all(|&byte| byte == 9));
}

/// Large elements go by the copy engine; the digest is the same as that of the kernel that
/// restores.
#[test]
fn large_elements_are_checkpointed() {
    let device = device();
    let region = PmRegion::create_in(device.clone(), Medium::of_bytes(vec![0; 5 << 20])).unwrap();
    for (name, more) in [("even", 0), ("odd", 13)] {
        let bytes = (1u64 << 20) + more;
        let region = PmRegion::create_in(device.clone(), Medium::of_bytes(vec![0; region.bytes() as usize])).unwrap();
        let checkpoint = Checkpoint::create(&region, name, bytes, 1, 1).unwrap();
        let memory = Buffer::new(&device, bytes).unwrap();
        let contents: Vec<u8> = (0..bytes).map(|at| ((at * at) >> 7) as u8).collect();
        memory.upload(&contents).unwrap();
        checkpoint.register(0, element(name, &memory)).unwrap();
        checkpoint.checkpoint(0).unwrap();
        memory.fill(0).unwrap();
        assert_eq!(checkpoint.restore(0).unwrap().unwrap().bytes, bytes);
        assert_eq!(memory.download().unwrap(), contents);
    }
}

#[test]
fn the_older_checkpoint_is_there_when_the_newer_is_damaged() {
    let region = region();
    let checkpoint = Checkpoint::create(&region, "checkpoint", 100, 1, 1).unwrap();
    let memory = Buffer::new(region.device(), 100).unwrap();
    checkpoint.register(0, element("a", &memory)).unwrap();
    for byte in 1..=2 {
        memory.fill(byte).unwrap();
        checkpoint.checkpoint(0).unwrap();
    }
    // The second slot's data: behind head and table.
    let object = region.find("checkpoint", ObjectKind::Checkpoint).unwrap();
    let image = region.read_vec(object.offset, object.bytes as usize).unwrap();
    let data =
        |byte: u8| image.windows(100).position(|window| window.iter().all(|&found| found == byte)).unwrap() as u64;
    region.write(object.offset + data(2) + 50, &[7]).unwrap();
    assert_eq!(checkpoint.restore(0).unwrap().unwrap().sequence, 1);
    assert!(memory.download().unwrap().iter().all(|&byte| byte == 1));
    region.write(object.offset + data(1) + 50, &[7]).unwrap();
    let refused = checkpoint.restore(0).unwrap_err();
    assert!(matches!(refused, Error::Device(nearpm_gpu::Error::Corrupt { .. })), "{refused}");
}

#[test]
fn checkpoints_that_do_not_fit_are_refused() {
    let region = region();
    assert!(Checkpoint::create(&region, "none", 100, 0, 1).is_err());
    assert!(Checkpoint::create(&region, "none", 100, 1, 0).is_err());
    assert!(Checkpoint::create(&region, "none", 1 << 40, 1, 1).is_err());
    let checkpoint = Checkpoint::create(&region, "checkpoint", 4096, 2, 1).unwrap();
    let (memory, large) = (Buffer::new(region.device(), 96).unwrap(), Buffer::new(region.device(), 1 << 16).unwrap());
    let refused = |group, element| checkpoint.register(group, element).unwrap_err().to_string();
    assert!(refused(1, element("a", &memory)).contains("1 is none"));
    assert!(refused(0, element("", &memory)).contains("no name"));
    assert!(refused(0, element("a", &large)).contains("create it larger"));
    assert!(refused(0, Element { address: memory.address() + 4, ..element("a", &memory) }).contains("multiple of 16"));
    assert!(checkpoint.checkpoint(0).unwrap_err().to_string().contains("no elements"));
    checkpoint.register(0, element("a", &memory)).unwrap();
    assert!(refused(0, element("a", &memory)).contains("taken"));
    checkpoint.checkpoint(0).unwrap();
    checkpoint.register(0, element("b", &memory)).unwrap();
    assert!(refused(0, element("c", &memory)).contains("2 elements already"));
    let other = checkpoint.restore(0).unwrap_err().to_string();
    assert!(other.contains("was taken of a (96 bytes)") && other.contains("b (96 bytes)"), "{other}");
}

#[test]
fn the_papers_calls_work_under_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let region = gpm_map(device(), &path("data"), 100_000, true).unwrap();
    assert_eq!(gpm_persist_begin(&region), LinkState::NotNeeded);
    assert_eq!(gpm_persist_end(&region), LinkState::NotNeeded);
    gpm_unmap(region).unwrap();
    gpm_unmap(gpm_map(device(), &path("data"), 0, false).unwrap()).unwrap();
    let log = gpmlog_create_hcl(device(), &path("hcl"), 80 * 12 * 3, 2, 40, 12).unwrap();
    assert_eq!((log.shape(), log.entry_bytes()), (SHAPE, 12));
    gpmlog_close(log);
    let log = gpmlog_open(device(), &path("hcl")).unwrap().with_flags(UNSTRICT).unwrap();
    gpmlog_close(log);
    gpmlog_close(gpmlog_create_conv(device(), &path("conv"), 10_000, 3).unwrap());
    assert_eq!(gpmlog_open(device(), &path("conv")).unwrap().shape().blocks, 3);
    // A log that is refused leaves no file.
    assert!(gpmlog_create_hcl(device(), &path("wrong"), 100, 1, 2000, 4).is_err());
    assert!(!path("wrong").exists());
    let device = device();
    let memory = Buffer::new(&device, 64).unwrap();
    memory.fill(5).unwrap();
    let checkpoint = gpmcp_create(device.clone(), &path("cp"), 64, 1, 1).unwrap();
    gpmcp_register(&checkpoint, memory.address(), 64, 0).unwrap();
    gpmcp_checkpoint(&checkpoint, 0).unwrap();
    gpmcp_close(checkpoint);
    memory.fill(0).unwrap();
    let checkpoint = gpmcp_open(device.clone(), &path("cp")).unwrap();
    gpmcp_register(&checkpoint, memory.address(), 64, 0).unwrap();
    assert_eq!(gpmcp_restore(&checkpoint, 0).unwrap().unwrap().sequence, 1);
    assert!(memory.download().unwrap().iter().all(|&byte| byte == 5));
}

#[test]
fn a_batch_over_regions_takes_the_logs_of_all_of_them_and_of_no_other() {
    let regions = [region(), region(), region()];
    let logs: Vec<Log> =
        regions.iter().map(|region| Log::create_hcl(region, "log", SHAPE, 12, 1, Form::Sealed).unwrap()).collect();
    let batch = Batch::create_over(&[&regions[0], &regions[1]], "batch").unwrap();
    for wrong in [vec![&logs[0]], vec![&logs[0], &logs[2]], vec![&logs[0], &logs[1], &logs[2]], vec![]] {
        assert!(matches!(batch.begin(&wrong).map(drop), Err(Error::OtherRegions { .. })));
        assert!(matches!(batch.recover(&wrong, || Ok(())), Err(Error::OtherRegions { .. })));
    }
    let right = [&logs[1], &logs[0]];
    assert_eq!(batch.begin(&right).unwrap().commit().unwrap(), 1);
    assert_eq!(
        Batch::open(&regions[0], "batch").unwrap().recover(&right, || Ok(())).unwrap(),
        Outcome::Kept { generation: 1 }
    );
    assert!(matches!(Batch::create_over(&[&regions[2], &regions[2]], "twice"), Err(Error::Invalid(_))));
    assert!(matches!(Batch::create_over(&[], "none"), Err(Error::Invalid(_))));
}

/// Memory of `pages` pages and some bytes, whose pages of 4 KiB begin with these bytes.
fn filled(memory: &Buffer, pages: &[u8]) {
    let mut bytes = vec![7; memory.bytes() as usize];
    bytes.chunks_mut(4096).zip(pages).for_each(|(page, &first)| page[0] = first);
    memory.upload(&bytes).unwrap();
}

#[test]
fn only_pages_that_changed_are_copied() {
    let region = region();
    let memory = Buffer::new(region.device(), 5 * 4096 + 21).unwrap();
    let checkpoint = Checkpoint::create(&region, "checkpoint", memory.bytes(), 1, 1).unwrap();
    checkpoint.register(0, Element { name: "a".to_owned(), address: memory.address(), bytes: memory.bytes() }).unwrap();
    let moved = |pages: [u8; 6]| {
        filled(&memory, &pages);
        let taken = checkpoint.checkpoint_changed(0).unwrap();
        memory.fill(0).unwrap();
        assert_eq!(checkpoint.restore(0).unwrap().unwrap().sequence, taken.sequence);
        assert_eq!(memory.download().unwrap().chunks(4096).map(|page| page[0]).collect::<Vec<_>>(), pages);
        taken.moved
    };
    // What the two slots hold is not known at first.
    assert_eq!(moved([1, 1, 1, 1, 1, 1]), 5 * 4096 + 21);
    assert_eq!(moved([2, 1, 1, 1, 1, 1]), 5 * 4096 + 21);
    // The first slot has the first's.
    assert_eq!(moved([2, 1, 1, 1, 3, 1]), 2 * 4096);
    assert_eq!(moved([2, 1, 1, 1, 3, 4]), 4096 + 21);
    assert_eq!(moved([2, 1, 1, 1, 3, 4]), 21);
    assert_eq!(moved([2, 1, 1, 1, 3, 4]), 0);
    // A whole one in between: what its slot holds is not known again.
    checkpoint.checkpoint(0).unwrap();
    assert_eq!(moved([2, 1, 1, 1, 3, 4]), 0);
    assert_eq!(moved([2, 1, 1, 1, 3, 4]), 5 * 4096 + 21);
}

#[test]
fn checkpoints_in_flight_are_of_the_moment_when_they_began() {
    let region = region();
    let memory = Buffer::new(region.device(), 4096).unwrap();
    let element = || Element { name: "a".to_owned(), address: memory.address(), bytes: 4096 };
    let concurrent = Concurrent::create(&region, "checkpoint", 4096, 1, 2).unwrap();
    concurrent.register(element()).unwrap();
    assert!(concurrent.restore().unwrap().is_none());
    memory.fill(1).unwrap();
    let first = concurrent.begin().unwrap();
    memory.fill(2).unwrap();
    let second = concurrent.begin().unwrap();
    memory.fill(3).unwrap();
    assert!(matches!(concurrent.begin(), Err(Error::Checkpoint { .. })));
    assert_eq!(concurrent.finish(second).unwrap().sequence, 2);
    assert_eq!(concurrent.finish(first).unwrap().sequence, 1);
    assert_eq!(concurrent.restore().unwrap().unwrap().sequence, 2);
    assert_eq!(memory.download().unwrap(), [2; 4096]);
    // One that is dropped does not count, and numbers go on.
    drop(concurrent.begin().unwrap());
    let again = Concurrent::open(&region, "checkpoint").unwrap();
    again.register(element()).unwrap();
    let third = again.begin().unwrap();
    assert_eq!(again.finish(third).unwrap().sequence, 3);
}
