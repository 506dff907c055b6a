//! What is not exactly an image is refused, each time with the reason, and never by a panic.

use nearpm_firmware::{Image, ImageError, Source, assemble, disassemble, standard};
use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{Descriptor, IMAGE_BYTES, Instruction, PROGRAM_WORDS, descriptor};
use nearpm_interface::geometry::LINE;
use nearpm_interface::seal;
use nearpm_interface::status::Status;
use proptest::prelude::*;

/// The standard image with bytes replaced and sealed again.
fn patched(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut image = standard().bytes().to_vec();
    image[at..at + bytes.len()].copy_from_slice(bytes);
    resealed(image)
}

fn resealed(mut image: Vec<u8>) -> Vec<u8> {
    let mut head: [u8; LINE] = image[..LINE].try_into().unwrap();
    seal::seal(&image[LINE..], &mut head);
    image[..LINE].copy_from_slice(&head);
    image
}

fn refused(bytes: &[u8]) -> ImageError {
    Image::parse(bytes).expect_err("the image must be refused")
}

#[test]
fn each_kind_of_damage_has_its_own_refusal() {
    let good = standard();
    let good = good.bytes();
    assert_eq!(refused(&good[..IMAGE_BYTES - 1]), ImageError::Size { found: IMAGE_BYTES - 1 });
    assert_eq!(refused(&[]), ImageError::Size { found: 0 });
    let long = [good, &[0]].concat();
    assert_eq!(refused(&long), ImageError::Size { found: IMAGE_BYTES + 1 });
    assert!(matches!(refused(&patched(0, b"NPLE")), ImageError::Magic { .. }));
    assert_eq!(refused(&patched(4, &9u16.to_le_bytes())), ImageError::Format { found: 9 });
    assert_eq!(refused(&patched(6, &1u16.to_le_bytes())), ImageError::Isa { found: 1 });
    assert_eq!(refused(&patched(8, &129u32.to_le_bytes())), ImageError::Words { found: 129 });
    assert_eq!(refused(&patched(16, &[0xff])), ImageError::Name);
    assert_eq!(refused(&patched(50, &[1])), ImageError::NotZero { offset: 50 });
    assert_eq!(refused(&patched(40, b"x")), ImageError::NotZero { offset: 40 });
    assert_eq!(refused(&patched(IMAGE_BYTES - 1, &[1])), ImageError::NotZero { offset: IMAGE_BYTES - 1 });
    let words = LINE + 4 * OPCODES;
    assert_eq!(refused(&patched(words, &[0])), ImageError::WordZero);
    assert_eq!(
        refused(&patched(words + 4, &0xf000_0000u32.to_le_bytes())),
        ImageError::Undecodable { pc: 1, word: 0xf000_0000 }
    );
    let mut crc = good.to_vec();
    crc[IMAGE_BYTES - 1] ^= 1;
    assert_eq!(refused(&crc), ImageError::Checksum);
}

#[test]
fn entries_and_ends_are_checked() {
    let valid = Descriptor::default().with(descriptor::VALID);
    let build = |head: Descriptor, words: Vec<Instruction>| {
        let mut descriptors = [Descriptor::default(); OPCODES];
        descriptors[7] = head;
        Image::new("t", 0, descriptors, words.into_iter().map(Instruction::encode).collect())
    };
    let fault = Instruction::End { status: Status::FirmwareFault.code() };
    let end = Instruction::End { status: 0 };
    assert!(build(valid.with_entry(1), vec![fault, end]).is_ok());
    for entry in [0, 2, 255] {
        assert!(matches!(build(valid.with_entry(entry), vec![fault, end]), Err(ImageError::Entry { opcode: 7, .. })));
    }
    assert!(matches!(build(Descriptor(1), vec![fault, end]), Err(ImageError::Entry { .. })));
    let falls_off = build(valid.with_entry(1), vec![fault, Instruction::Wait, Instruction::Wait]);
    assert!(falls_off.unwrap_err().to_string().contains("without end"));
    assert!(build(valid.with(descriptor::LOGS_DESTINATION).with_entry(1), vec![fault, end]).is_err());
    assert!(build(Descriptor(valid.0 | 1 << 31).with_entry(1), vec![fault, end]).is_err());
    let refusal = Instruction::End { status: Status::OutOfRange.code() };
    assert!(build(valid.with_entry(1), vec![fault, refusal]).unwrap_err().to_string().contains("side effects"));
    assert!(build(valid, vec![]).is_err());
}

#[test]
fn words_that_are_not_used_fault() {
    let image = standard();
    assert_eq!(image.instruction(image.words().len() as u8), Instruction::End { status: Status::FirmwareFault.code() });
    assert_eq!(image.instruction(0), Instruction::End { status: Status::FirmwareFault.code() });
}

/// Words that often decode.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0u32),
        any::<u32>(),
        (0u32..6, 0u32..4, 0u32..4, any::<bool>(), 0u32..2).prop_map(|(op, a, b, l, n)| op << 28
            | a << 26
            | b << 24
            | (l as u32) << 23
            | n),
    ]
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..IMAGE_BYTES + 64)) {
        prop_assert!(Image::parse(&bytes).is_err());
    }

    #[test]
    fn random_sealed_contents_never_panic(
        used in 0u32..=PROGRAM_WORDS as u32 + 2,
        descriptors in prop::collection::vec(prop_oneof![Just(0u32), any::<u32>(), (1u32..8).prop_map(|e| e | 1 << 8)], OPCODES),
        words in prop::collection::vec(word(), PROGRAM_WORDS),
    ) {
        let mut image = standard().bytes().to_vec();
        image[8..12].copy_from_slice(&used.to_le_bytes());
        let numbers = descriptors.iter().chain(words.iter().take(used as usize));
        image[LINE..].fill(0);
        for (to, number) in image[LINE..].chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        image[LINE + 4 * OPCODES..][..4].copy_from_slice(&0x81u32.to_le_bytes());
        if let Ok(parsed) = Image::parse(&resealed(image)) {
            let text = disassemble(&parsed);
            let again = assemble(&[Source { name: "t", text: &text }]).expect("a disassembly assembles");
            prop_assert_eq!(disassemble(&again), text);
        }
    }

    #[test]
    fn one_flipped_bit_is_refused(bit in 0..IMAGE_BYTES * 8) {
        let mut image = standard().bytes().to_vec();
        image[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Image::parse(&image).is_err());
    }

    #[test]
    fn random_text_never_panics(text in "(program|image|read|begin|end|gen|copy|source| |\n|=|1|;|ä){0,40}") {
        let _ = assemble(&[Source { name: "t", text: &text }]);
    }
}
