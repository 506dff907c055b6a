//! The firmware image: sealed, versioned, and refused when anything is wrong.
//!
//! Having an [`Image`] tells you that its seal holds, that every word decodes, and that every
//! program passed [`crate::check`]: a card can put it in force and an interpreter can run it
//! without further tests.

use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{
    Descriptor, IMAGE_BYTES, IMAGE_FORMAT, IMAGE_MAGIC, ISA_VERSION, ImageHead, Instruction, PROGRAM_WORDS, descriptor,
};
use nearpm_interface::geometry::LINE;
use nearpm_interface::seal;
use nearpm_interface::status::Status;

use crate::check::{self, Fault};

nearpm_interface::debug_as_display!(ImageError);

/// Bytes of the name field.
const NAME_BYTES: usize = 32;
/// First byte of the program words.
const WORDS_AT: usize = ImageHead::SIZE + 4 * OPCODES;

/// Why something is not a firmware image.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Truncated or oversized.
    #[error("the image has {found} bytes; an image has {IMAGE_BYTES}")]
    Size {
        /// Bytes that were given.
        found: usize,
    },
    /// Something else than an image.
    #[error("not a firmware image: the magic is {found:#010x} instead of {IMAGE_MAGIC:#010x}")]
    Magic {
        /// What stands there.
        found: u32,
    },
    /// Made by another assembler.
    #[error("image format {found} is not format {IMAGE_FORMAT}, which this program reads")]
    Format {
        /// What stands there.
        found: u16,
    },
    /// Made for another card.
    #[error("instruction version {found} is not version {ISA_VERSION} of this card: assemble the sources again")]
    Isa {
        /// What stands there.
        found: u16,
    },
    /// Damaged.
    #[error("the image is damaged: its checksum does not hold")]
    Checksum,
    /// Reserved bytes, or words behind the program, that are not zero.
    #[error("bytes that must be zero are not, at offset {offset:#x}")]
    NotZero {
        /// First such byte.
        offset: usize,
    },
    /// The name does not fit, or is not one word.
    #[error("the name must be one word of at most {NAME_BYTES} bytes, without `;`")]
    Name,
    /// More words than a control store holds.
    #[error("the program has {found} words; the control store of a unit holds {PROGRAM_WORDS}")]
    Words {
        /// Words that were given.
        found: usize,
    },
    /// Word 0 is where nothing starts.
    #[error("word 0 must end with a firmware fault: no program starts there")]
    WordZero,
    /// A word that no assembler makes.
    #[error("word {pc} ({word:#010x}) is no instruction")]
    Undecodable {
        /// Index of the word.
        pc: usize,
        /// The word.
        word: u32,
    },
    /// An invalid descriptor that is not zero, or a valid one whose entry lies outside.
    #[error("opcode {opcode:#04x} starts at word {entry}, outside the program of {words} words")]
    Entry {
        /// Opcode.
        opcode: u8,
        /// Its entry.
        entry: u8,
        /// Words of the program.
        words: usize,
    },
    /// A program breaks a rule.
    #[error("opcode {opcode:#04x}, word {}: {fault}", pc.map_or("-".to_string(), |pc| pc.to_string()))]
    Program {
        /// Opcode.
        opcode: u8,
        /// Word of the program store, or `None` where the descriptor has the fault.
        pc: Option<usize>,
        /// What is wrong.
        fault: Fault,
    },
}

/// A checked firmware image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    name: String,
    revision: u32,
    descriptors: [Descriptor; OPCODES],
    words: Vec<u32>,
    bytes: Vec<u8>,
}

impl Image {
    /// Checks and seals an image.
    ///
    /// `words` holds the programs; word 0 is `end firmware_fault`, because the saved state uses
    /// entry 0 for "start from the beginning".
    pub fn new(
        name: &str,
        revision: u32,
        descriptors: [Descriptor; OPCODES],
        words: Vec<u32>,
    ) -> Result<Self, ImageError> {
        check_contents(&descriptors, &words)?;
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == ';';
        if name.is_empty() || name.len() > NAME_BYTES || name.contains(odd) {
            return Err(ImageError::Name);
        }
        let mut head = ImageHead {
            magic: IMAGE_MAGIC,
            format: IMAGE_FORMAT,
            isa: ISA_VERSION,
            words: words.len() as u32,
            revision,
            ..ImageHead::default()
        };
        head.name[..name.len()].copy_from_slice(name.as_bytes());
        let mut bytes = vec![0; IMAGE_BYTES];
        let numbers = descriptors.iter().map(|d| d.0).chain(words.iter().copied());
        for (to, number) in bytes[ImageHead::SIZE..].chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        let mut line = head.to_bytes();
        seal::seal(&bytes[LINE..], &mut line);
        bytes[..LINE].copy_from_slice(&line);
        Ok(Image { name: name.to_string(), revision, descriptors, words, bytes })
    }

    /// Reads an image, refusing everything that [`Image::new`] would not have made.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        if bytes.len() != IMAGE_BYTES {
            return Err(ImageError::Size { found: bytes.len() });
        }
        let line: &[u8; LINE] = bytes[..LINE].try_into().expect("the head is one line");
        let head = ImageHead::from_bytes(line);
        if head.magic != IMAGE_MAGIC {
            return Err(ImageError::Magic { found: head.magic });
        }
        if head.format != IMAGE_FORMAT {
            return Err(ImageError::Format { found: head.format });
        }
        if head.isa != ISA_VERSION {
            return Err(ImageError::Isa { found: head.isa });
        }
        if !seal::is_sealed(&bytes[LINE..], line) {
            return Err(ImageError::Checksum);
        }
        let used = head.words as usize;
        if used > PROGRAM_WORDS {
            return Err(ImageError::Words { found: used });
        }
        let end = WORDS_AT + 4 * used;
        if let Some(at) = bytes[end..].iter().position(|&b| b != 0) {
            return Err(ImageError::NotZero { offset: end + at });
        }
        let name_bytes = head.name.iter().position(|&b| b == 0).unwrap_or(NAME_BYTES);
        let name = std::str::from_utf8(&head.name[..name_bytes]).map_err(|_| ImageError::Name)?;
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let descriptors = std::array::from_fn(|i| Descriptor(number(ImageHead::SIZE + 4 * i)));
        let words = (0..used).map(|i| number(WORDS_AT + 4 * i)).collect();
        let image = Image::new(name, head.revision, descriptors, words)?;
        match image.bytes.iter().zip(bytes).position(|(made, read)| made != read) {
            // What is left after the checks above are the reserved bytes of the head and what
            // follows the name.
            Some(offset) => Err(ImageError::NotZero { offset }),
            None => Ok(image),
        }
    }

    /// The sealed bytes, as they go into a firmware slot.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Name of the firmware.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Revision of the firmware.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// The checksum by which card and save area know the image.
    pub fn crc(&self) -> u32 {
        u32::from_le_bytes(self.bytes[LINE - 4..LINE].try_into().expect("four bytes"))
    }

    /// The words of the control store that are used.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The descriptor of an opcode, or `None` where the firmware has no program for it.
    pub fn descriptor(&self, opcode: u8) -> Option<Descriptor> {
        self.descriptors.get(opcode as usize).copied().filter(|d| d.flag(descriptor::VALID))
    }

    /// All descriptors, opcode 0 first, as the image holds them.
    pub fn descriptors(&self) -> &[Descriptor; OPCODES] {
        &self.descriptors
    }

    /// The instruction at a word of the control store; words that are not used fault.
    pub fn instruction(&self, pc: u8) -> Instruction {
        let fault = Instruction::End { status: Status::FirmwareFault.code() };
        self.words
            .get(pc as usize)
            .map_or(fault, |&word| Instruction::decode(word).expect("every word of a checked image is an instruction"))
    }

    /// The instructions of an opcode from its entry to its `end`.
    pub fn program(&self, opcode: u8) -> Option<Vec<Instruction>> {
        self.descriptor(opcode).map(|head| {
            let mut code = Vec::new();
            for pc in head.entry().. {
                code.push(self.instruction(pc));
                if let Some(Instruction::End { .. }) = code.last() {
                    break;
                }
            }
            code
        })
    }
}

/// Checks the words and the program of every descriptor.
fn check_contents(descriptors: &[Descriptor; OPCODES], words: &[u32]) -> Result<(), ImageError> {
    if words.len() > PROGRAM_WORDS {
        return Err(ImageError::Words { found: words.len() });
    }
    let mut code = Vec::with_capacity(words.len());
    for (pc, &word) in words.iter().enumerate() {
        code.push(Instruction::decode(word).ok_or(ImageError::Undecodable { pc, word })?);
    }
    if code.first() != Some(&Instruction::End { status: Status::FirmwareFault.code() }) {
        return Err(ImageError::WordZero);
    }
    for (opcode, &head) in descriptors.iter().enumerate() {
        let opcode = opcode as u8;
        let entry = head.entry() as usize;
        if !head.flag(descriptor::VALID) {
            if head != Descriptor::default() {
                return Err(ImageError::Entry { opcode, entry: head.entry(), words: words.len() });
            }
            continue;
        }
        if entry == 0 || entry >= code.len() {
            return Err(ImageError::Entry { opcode, entry: head.entry(), words: words.len() });
        }
        let rest = &code[entry..];
        let length = rest.iter().position(|i| matches!(i, Instruction::End { .. })).map_or(rest.len(), |end| end + 1);
        check::program(head, &rest[..length]).map_err(|(at, fault)| ImageError::Program {
            opcode,
            pc: at.map(|at| entry + at),
            fault,
        })?;
    }
    Ok(())
}
