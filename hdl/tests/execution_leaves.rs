//! The data-path leaves of the execution side against plain arithmetic, on both back ends.

use nearpm_hdl::bundles::Work;
use nearpm_hdl::cells::Gather;
use nearpm_hdl::dut::{PortValue, Value, on_both_back_ends};
use nearpm_hdl::units::burst::{BURST_LINES, Burst};
use nearpm_hdl::units::firmware_store::ImageFields;
use nearpm_hdl::units::instruction::{
    Classify, Decode, IS_COPY, IS_END, IS_GENERATE, IS_SOUND, IS_STORE, IS_WAIT, Operation,
};
use nearpm_hdl::units::lanes::{ByteMask, MaskedLine};
use nearpm_hdl::units::load_store_unit::LoadStoreUnit;
use nearpm_hdl::units::metadata_generator::{HeadFields, HeadSeal};
use nearpm_interface::firmware::{Instruction, Operand};
use nearpm_interface::geometry::{LINE, LINE_U64, MAX_COMMAND_BYTES};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead};
use nearpm_interface::save::firmware_word;
use nearpm_interface::seal;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn random() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0x6c65_6176)
}

fn random_line(rng: &mut ChaCha8Rng) -> [u8; LINE] {
    let mut line = [0; LINE];
    rng.fill_bytes(&mut line);
    line
}

#[test]
fn gather_keeps_the_order() {
    on_both_back_ends::<Gather<6>>(|dut| {
        for bits in 0..64u64 {
            for bit in 0..6 {
                dut.set(&format!("i${bit}"), bits >> bit & 1 == 1);
            }
            assert_eq!(dut.get("o"), bits);
        }
    });
}

#[test]
fn bursts_cover_a_run_and_cross_no_boundary() {
    on_both_back_ends::<Burst>(|dut| {
        let mut rng = random();
        for case in 0..60u64 {
            let mut line = if case == 0 { (1 << 34) - 40 } else { rng.random_range(0..1u64 << 34) };
            let mut left = if case < 40 { case + 1 } else { rng.random_range(1..4098) };
            dut.set("from", line);
            dut.set("count", left);
            dut.set("load", true);
            dut.set("step", case % 2 == 1);
            dut.cycle();
            dut.set("load", false);
            dut.set("step", true);
            loop {
                assert_eq!(dut.get("line"), line);
                let lines = dut.get_u64("lines");
                assert_eq!(lines, left.min(BURST_LINES - line % BURST_LINES));
                assert_eq!(dut.get("beats"), lines - 1);
                assert_eq!(dut.get("last"), lines == left);
                line = (line + lines) & ((1 << 34) - 1);
                left -= lines;
                if left == 0 {
                    break;
                }
                assert_eq!(line % BURST_LINES, 0);
                dut.cycle();
            }
        }
    });
}

#[test]
fn masks_keep_the_bytes_of_the_range() {
    on_both_back_ends::<ByteMask>(|dut| {
        for case in 0..4096u64 * 4 {
            let (offset, end) = (case & 63, case >> 6 & 63);
            let (first, last) = (case >> 12 & 1 == 1, case >> 13 & 1 == 1);
            if first && last && offset > end || case % 7 > 1 && end != 63 && offset != 0 {
                continue;
            }
            dut.set("first", first);
            dut.set("last", last);
            dut.set("offset", offset);
            dut.set("end_byte", end);
            let inside = |b: &u64| (!first || *b >= offset) && (!last || *b <= end);
            let mask = (0..64).filter(inside).fold(0u64, |mask, b| mask | 1 << b);
            assert_eq!(dut.get("mask"), mask);
        }
    });
    on_both_back_ends::<MaskedLine>(|dut| {
        let mut rng = random();
        for case in 0..50 {
            let line = random_line(&mut rng);
            let mask = if case == 0 { u64::MAX } else { rng.random() };
            dut.set("valid", true);
            dut.set("line", Value::from_bytes(&line));
            dut.set("mask", mask);
            let kept: Vec<_> = (0..LINE).map(|b| if mask >> b & 1 == 1 { line[b] } else { 0 }).collect();
            assert_eq!(dut.get("masked"), Value::from_bytes(&kept));
        }
    });
}

#[test]
fn words_go_to_their_lane_only() {
    on_both_back_ends::<LoadStoreUnit>(|dut| {
        let mut rng = random();
        for lane in 0..8usize {
            let value: u64 = rng.random();
            dut.set("lane", lane as u64);
            dut.set("value", value);
            assert_eq!(dut.get("strobes"), 0xffu64 << (8 * lane));
            assert_eq!(dut.get("line").slice(64 * lane, 64), value);
        }
    });
}

/// A random instruction, or (one in three) a random word that differs in a bit or two from one.
fn random_word(rng: &mut ChaCha8Rng) -> u32 {
    let operand = |rng: &mut ChaCha8Rng| Operand::from_code(rng.random_range(0..3)).expect("an operand");
    let instruction = match rng.random_range(0..5) {
        0 => Instruction::End { status: rng.random() },
        1 => Instruction::Copy {
            from: operand(rng),
            from_lines: rng.random(),
            to: operand(rng),
            to_lines: rng.random(),
            lines: rng.random(),
        },
        2 => Instruction::Generate { at: operand(rng), object: operand(rng), kind: rng.random() },
        3 => Instruction::Store { at: operand(rng) },
        _ => Instruction::Wait,
    };
    let flips = if rng.random_bool(0.3) { 1 << rng.random_range(0..32) | 1 << rng.random_range(0..32) } else { 0 };
    instruction.encode() ^ flips
}

#[test]
fn decoding_agrees_with_the_instruction_set() {
    on_both_back_ends::<Decode>(|dut| {
        let mut rng = random();
        let cases = if dut.back_end() == "rust-hdl" { 3000 } else { 60_000 };
        for _ in 0..cases {
            let word = random_word(&mut rng);
            let addresses: [u64; 3] = std::array::from_fn(|_| rng.random::<u64>() >> 24);
            let offsets: [u64; 2] = rng.random();
            let length: u64 = rng.random_range(1..=u64::from(MAX_COMMAND_BYTES));
            let context: bool = rng.random();
            dut.set("instruction", u64::from(word));
            dut.set("source", addresses[0]);
            dut.set("destination", addresses[1]);
            dut.set("auxiliary", addresses[2]);
            dut.set("source_offset", offsets[0]);
            dut.set("destination_offset", offsets[1]);
            dut.set("length", length);
            dut.set("in_context", context);
            let decoded = Instruction::decode(word)
                .filter(|i| !matches!(i, Instruction::Generate { object: Operand::Auxiliary, .. }));
            let lines = |address: u64, add: u8| (address / LINE_U64 + u64::from(add)) & ((1 << 34) - 1);
            let operation = Operation::from_value(dut.get("operation"));
            assert_eq!(operation.context, context);
            assert_eq!((operation.generate_head, operation.store), (word >> 28 == 2, word >> 28 == 3));
            match decoded {
                Some(Instruction::End { status }) => assert_eq!(dut.get("code"), u64::from(status)),
                Some(Instruction::Copy { from, from_lines, to, to_lines, lines: whole }) => {
                    let (read, write) = (addresses[from as usize], addresses[to as usize]);
                    let offset = if whole { read } else { write } % LINE_U64;
                    assert_eq!(operation.from.to_u64(), lines(read, from_lines));
                    assert_eq!(operation.line.to_u64(), lines(write, to_lines));
                    assert_eq!(operation.whole, whole);
                    assert_eq!(operation.offset.to_u64(), offset);
                    assert_eq!(operation.end_byte.to_u64(), (offset + length - 1) % LINE_U64);
                    assert_eq!(operation.count.to_u64(), (offset + length).div_ceil(LINE_U64));
                }
                Some(Instruction::Generate { at, object, kind }) => {
                    assert_eq!(operation.line.to_u64(), lines(addresses[at as usize], 0));
                    assert_eq!((operation.count.to_u64(), operation.whole), (1, true));
                    assert_eq!(dut.get("object"), offsets[object as usize]);
                    assert_eq!(dut.get("code"), u64::from(kind));
                }
                Some(Instruction::Store { at }) => {
                    assert_eq!(operation.line.to_u64(), lines(addresses[at as usize], 0));
                    assert_eq!((operation.count.to_u64(), operation.whole), (1, false));
                    assert_eq!(operation.offset.to_u64(), addresses[at as usize] % LINE_U64);
                }
                _ => {}
            }
        }
    });
}

#[test]
fn words_are_classified_as_the_instruction_set_has_them() {
    on_both_back_ends::<Classify>(|dut| {
        let mut rng = random();
        let cases = if dut.back_end() == "rust-hdl" { 3000 } else { 60_000 };
        for _ in 0..cases {
            let word = random_word(&mut rng);
            dut.set("word", u64::from(word));
            let kind = match Instruction::decode(word) {
                None | Some(Instruction::Generate { object: Operand::Auxiliary, .. }) => None,
                Some(Instruction::End { .. }) => Some(IS_END),
                Some(Instruction::Copy { .. }) => Some(IS_COPY),
                Some(Instruction::Generate { .. }) => Some(IS_GENERATE),
                Some(Instruction::Store { .. }) => Some(IS_STORE),
                Some(Instruction::Wait) => Some(IS_WAIT),
            };
            let kinds = kind.map_or(0, |kind| 1u64 << kind | 1 << IS_SOUND);
            assert_eq!(dut.get("kinds"), kinds, "{word:#010x}");
        }
    });
}

#[test]
fn a_head_has_its_fields_in_their_places() {
    on_both_back_ends::<HeadFields>(|dut| {
        let mut rng = random();
        for _ in 0..100 {
            let head = EntryHead {
                magic: ENTRY_MAGIC,
                kind: rng.random(),
                version: ENTRY_VERSION,
                thread: rng.random(),
                sequence: rng.random(),
                txid: rng.random(),
                offset: rng.random(),
                length: rng.random_range(1..=MAX_COMMAND_BYTES),
                pool: rng.random(),
                participants: rng.random(),
                ..EntryHead::default()
            };
            let work = Work {
                thread: u64::from(head.thread).into(),
                sequence: head.sequence.into(),
                txid: head.txid.into(),
                length: u64::from(head.length).into(),
                pool: u64::from(head.pool).into(),
                participants: u64::from(head.participants).into(),
                source_offset: rng.random::<u64>().into(),
                value: rng.random::<u64>().into(),
                ..Work::default()
            };
            dut.set("work", work.to_value());
            dut.set("kind", u64::from(head.kind));
            dut.set("object", head.offset);
            dut.set("enable", true);
            dut.cycle();
            dut.set("enable", false);
            dut.set("object", 0u64);
            dut.cycle();
            assert_eq!(dut.get("line"), Value::from_bytes(&head.to_bytes()));
        }
    });
}

#[test]
fn the_seal_is_that_of_the_interface() {
    on_both_back_ends::<HeadSeal>(|dut| {
        let mut rng = random();
        for lines in 1..40 {
            let body: Vec<u8> = (0..lines).flat_map(|_| random_line(&mut rng)).collect();
            let mut head = random_line(&mut rng);
            head[seal::HEAD_COVERED..].fill(0);
            // The state is the checksum without its last inversion.
            let state = !crc32c::crc32c(&head);
            let line = Value::from_bytes(&head).with_slice(seal::HEAD_COVERED * 8, 32, u64::from(state));
            dut.set("line", line);
            dut.set("crc", u64::from(crc32c::crc32c(&body)));
            dut.set("enable", true);
            dut.cycle();
            dut.set("enable", false);
            dut.cycle();
            seal::seal(&body, &mut head);
            assert_eq!(dut.get("head"), Value::from_bytes(&head), "{lines} lines");
        }
    });
}

#[test]
fn an_image_is_taken_apart() {
    on_both_back_ends::<ImageFields>(|dut| {
        let mut rng = random();
        for _ in 0..200 {
            let line = random_line(&mut rng);
            let (index, slot) = (rng.random_range(0..16usize), rng.random::<u8>());
            dut.set("line", Value::from_bytes(&line));
            dut.set("index", index as u64);
            dut.set("slot", u64::from(slot));
            let number = |at: usize| u32::from_le_bytes(line[at..at + 4].try_into().expect("four bytes"));
            assert_eq!(dut.get("number"), u64::from(number(4 * index)));
            assert_eq!(dut.get("crc"), u64::from(number(60)));
            assert_eq!(dut.get("word"), firmware_word(slot, number(60)));
            assert_eq!(dut.get("slot_ok"), slot < 2);
            assert_eq!(dut.get("base"), 0x800 + 64 * u64::from(slot));
            assert!(!dut.get_bool("magic_ok"));
        }
    });
}
