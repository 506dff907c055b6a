//! FirmwareStore: the image in force.

use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{
    Descriptor, IMAGE_BYTES, IMAGE_FORMAT, IMAGE_MAGIC, ISA_VERSION, ImageHead, Instruction, PROGRAM_WORDS,
};
use nearpm_interface::geometry::LINE;
use nearpm_interface::registers::firmware_status;
use nearpm_interface::seal;

/// Descriptors and programs as they are in force.
#[derive(Clone, Debug)]
pub struct Firmware {
    /// Checksum of the image; 0 if there is none.
    pub crc: u32,
    /// Slot of the image.
    pub slot: u8,
    descriptors: [Descriptor; OPCODES],
    /// Words that decode, as instructions.
    program: [Option<Instruction>; PROGRAM_WORDS],
}

impl Firmware {
    /// No image: every opcode is unknown.
    pub fn none() -> Self {
        let program = [None; PROGRAM_WORDS];
        Firmware { crc: 0, slot: 0, descriptors: [Descriptor::default(); OPCODES], program }
    }

    /// Checks an image; gives it, or its code of [`firmware_status`].
    pub fn verify(slot: u8, image: &[u8]) -> Result<Firmware, u32> {
        let head_bytes: &[u8; LINE] = image[..LINE].try_into().expect("a line");
        let head = ImageHead::from_bytes(head_bytes);
        if head.magic != IMAGE_MAGIC {
            return Err(firmware_status::BAD_MAGIC);
        }
        if head.format != IMAGE_FORMAT || head.isa != ISA_VERSION {
            return Err(firmware_status::BAD_VERSION);
        }
        if !seal::is_sealed(&image[LINE..IMAGE_BYTES], head_bytes) {
            return Err(firmware_status::BAD_CRC);
        }
        let word = |i: usize| {
            let at = LINE + 4 * i;
            u32::from_le_bytes(image[at..at + 4].try_into().expect("a word"))
        };
        Ok(Firmware {
            crc: head.crc,
            slot,
            descriptors: std::array::from_fn(|i| Descriptor(word(i))),
            program: std::array::from_fn(|i| Instruction::decode(word(OPCODES + i))),
        })
    }

    /// The descriptor of an opcode; an invalid one for codes that no command can carry.
    pub fn descriptor(&self, opcode: u8) -> Descriptor {
        self.descriptors.get(opcode as usize).copied().unwrap_or_default()
    }

    /// The instruction at an address; `None` where nothing decodes.
    pub fn instruction(&self, pc: u8) -> Option<Instruction> {
        self.program.get(pc as usize).copied().flatten()
    }
}
