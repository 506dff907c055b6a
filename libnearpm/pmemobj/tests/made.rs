//! Pools that the project's tools make for PMDK programs (`nearpm pool create --direct --layout`),
//! and what the tools see in them afterwards.

use nearpm::Options;
use nearpm::check::{Contents, Image, TypeInfo};
use nearpm::direct::DirectPool;
use nearpm::pmdk;
use nearpm_pmemobj_programs::{Library, Program};

#[test]
fn a_pool_made_with_a_layout_opens_in_programs_and_says_what_they_stored() {
    let Some(program) = Program::compile("made") else { return };
    for library in [Library::WorkingCopy, Library::InPlace] {
        let folder = program.folder_for_pools(library);
        let path = folder.path().join("pool");
        let location = path.to_str().unwrap();
        let pool = DirectPool::create(location, 8 << 20, &Options::new()).unwrap();
        pmdk::create(&pool, b"words").unwrap();
        pool.close().unwrap();
        let contents = || Image::open(location).unwrap().info().unwrap().contents;
        let fresh = Contents::Pmdk { layout: "words".to_owned(), root: 0, root_bytes: 0, types: Vec::new() };
        assert_eq!(contents(), Some(fresh));

        let output = program.start(library, &path, &[], &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let Some(Contents::Pmdk { layout, root, root_bytes: 64, types }) = contents() else {
            panic!("the root has 64 bytes: {:?}", contents());
        };
        let of_type = |number, objects| TypeInfo { number, objects, bytes: 48 * objects };
        assert_eq!((layout.as_str(), types), ("words", vec![of_type(7, 1), of_type(9, 2)]));
        let bytes = Image::open(location).unwrap().read(root + 16, 21).unwrap();
        assert_eq!(bytes, b"a word of the program");

        let pool = DirectPool::open(location, &Options::new()).unwrap();
        let refused = pool.tx(|tx| nearpm::Store::root_or_zeroed::<u64>(tx).map(drop)).unwrap_err().to_string();
        assert!(refused.contains("a PMDK program with the layout \"words\""), "{refused}");
        assert!(pmdk::create(&pool, b"again").is_err(), "it has a root");
        pool.close().unwrap();
    }
}

#[test]
fn a_layout_has_a_name_that_c_can_say() {
    let memory = nearpm::memory::VolatileMemory::new(8 << 20);
    let pool = DirectPool::create_in(Box::new(memory), &Options::new()).unwrap();
    for bad in [&[b'a'; pmdk::MAX_LAYOUT][..], b"a\0b"] {
        let refused = pmdk::create(&pool, bad).unwrap_err().to_string();
        assert!(refused.contains("at most 1023 bytes"), "{refused}");
    }
    pmdk::create(&pool, &[b'a'; pmdk::MAX_LAYOUT - 1]).unwrap();
}
