//! The firmware image: descriptors and program words, sealed.

use nearpm_interface::command::OPCODES;
use nearpm_interface::firmware::{
    Descriptor, IMAGE_BYTES, IMAGE_FORMAT, IMAGE_MAGIC, ISA_VERSION, ImageHead, Instruction, PROGRAM_WORDS,
};
use nearpm_interface::geometry::LINE;
use nearpm_interface::seal;
use nearpm_interface::status::Status;

use crate::check::{self, CheckError};

/// A checked firmware image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    name: String,
    revision: u32,
    descriptors: [Descriptor; OPCODES],
    words: Vec<u32>,
}

/// Why bytes are not a firmware image for this card.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImageError {
    /// Not the size of an image.
    #[error("a firmware image has {IMAGE_BYTES} bytes, this has {bytes}: it is truncated or something else")]
    WrongSize {
        /// Bytes that were given.
        bytes: usize,
    },
    /// The magic is wrong.
    #[error("no firmware image: magic {magic:#010x} instead of {IMAGE_MAGIC:#010x}")]
    BadMagic {
        /// What stands in place of the magic.
        magic: u32,
    },
    /// The format or the instruction set is another version.
    #[error(
        "image format {format}, instruction set {isa}; this card needs {IMAGE_FORMAT} and {ISA_VERSION}: assemble it anew"
    )]
    BadVersion {
        /// Format of the image.
        format: u16,
        /// Instruction set of the image.
        isa: u16,
    },
    /// The checksum does not hold.
    #[error("the checksum of the firmware image does not hold: it is damaged")]
    BadChecksum,
    /// The name is not UTF-8 or the count of words is too large.
    #[error("the head of the firmware image is malformed: {what}")]
    BadHead {
        /// What is malformed.
        what: &'static str,
    },
    /// A program breaks a rule.
    #[error(transparent)]
    Check(#[from] CheckError),
}

impl Image {
    /// Checks descriptors and words and makes an image of them. Word 0 is not part of `words`: it is always an
    /// `end` with the status of a firmware fault, so that no program starts at 0, which stands for "not resumed".
    pub(crate) fn new(
        name: &str,
        revision: u32,
        descriptors: [Descriptor; OPCODES],
        words: Vec<u32>,
    ) -> Result<Image, CheckError> {
        let image = Image { name: name.into(), revision, descriptors, words };
        check::image(&image)?;
        Ok(image)
    }

    /// Reads and checks the bytes of an image.
    pub fn parse(bytes: &[u8]) -> Result<Image, ImageError> {
        if bytes.len() != IMAGE_BYTES {
            return Err(ImageError::WrongSize { bytes: bytes.len() });
        }
        let head_bytes: &[u8; LINE] = bytes[..LINE].try_into().expect("the size was checked");
        let head = ImageHead::from_bytes(head_bytes);
        if head.magic != IMAGE_MAGIC {
            return Err(ImageError::BadMagic { magic: head.magic });
        }
        if head.format != IMAGE_FORMAT || head.isa != ISA_VERSION {
            return Err(ImageError::BadVersion { format: head.format, isa: head.isa });
        }
        if !seal::is_sealed(&bytes[LINE..], head_bytes) {
            return Err(ImageError::BadChecksum);
        }
        let used = head.words as usize;
        if used > PROGRAM_WORDS {
            return Err(ImageError::BadHead { what: "more words than the control store has" });
        }
        let name = std::str::from_utf8(&head.name)
            .map_err(|_| ImageError::BadHead { what: "the name is not UTF-8" })?
            .trim_end_matches('\0');
        let mut numbers =
            bytes[LINE..].chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().expect("chunks of four")));
        let descriptors = std::array::from_fn(|_| Descriptor(numbers.next().expect("the size was checked")));
        let words: Vec<u32> = numbers.collect();
        if words[used..].iter().any(|&w| w != 0) {
            return Err(ImageError::BadHead { what: "words beyond the count are not zero" });
        }
        Ok(Image::new(name, head.revision, descriptors, words[..used].to_vec())?)
    }

    /// The sealed bytes, [`IMAGE_BYTES`] of them.
    pub fn bytes(&self) -> Vec<u8> {
        let mut name = [0; 32];
        name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        let head = ImageHead {
            magic: IMAGE_MAGIC,
            format: IMAGE_FORMAT,
            isa: ISA_VERSION,
            words: self.words.len() as u32,
            revision: self.revision,
            name,
            ..ImageHead::default()
        };
        let mut body = Vec::with_capacity(IMAGE_BYTES - LINE);
        for descriptor in self.descriptors {
            body.extend(descriptor.0.to_le_bytes());
        }
        for word in &self.words {
            body.extend(word.to_le_bytes());
        }
        body.resize(IMAGE_BYTES - LINE, 0);
        let mut bytes = head.to_bytes();
        seal::seal(&body, &mut bytes);
        let mut image = bytes.to_vec();
        image.extend(body);
        image
    }

    /// Checksum of the image, as the card reports it.
    pub fn crc(&self) -> u32 {
        u32::from_le_bytes(self.bytes()[seal::HEAD_COVERED..LINE].try_into().expect("four bytes"))
    }

    /// Name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Revision, for people.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// Operand descriptor of an opcode, valid or not; `None` above the opcodes that a command can carry.
    pub fn descriptor(&self, opcode: u8) -> Option<Descriptor> {
        self.descriptors.get(opcode as usize).copied()
    }

    /// Program words, from word 0.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The instruction at `pc`; a firmware fault beyond the program.
    pub fn instruction(&self, pc: u8) -> Instruction {
        let word = self.words.get(pc as usize).copied();
        word.and_then(Instruction::decode).unwrap_or(Instruction::End { status: Status::FirmwareFault.code() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_image_survives_its_bytes() {
        let image = crate::standard();
        assert_eq!(image.bytes().len(), IMAGE_BYTES);
        assert_eq!(Image::parse(&image.bytes()), Ok(image));
    }

    #[test]
    fn wrong_images_are_refused_by_name() {
        let good = crate::standard().bytes();
        assert_eq!(Image::parse(&good[..100]), Err(ImageError::WrongSize { bytes: 100 }));
        let reseal = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            let (head, body) = bytes.split_at_mut(LINE);
            seal::seal(body, head.try_into().expect("a line"));
            Image::parse(&bytes)
        };
        assert!(matches!(reseal(&|b| b[0] ^= 1), Err(ImageError::BadMagic { .. })));
        assert!(matches!(reseal(&|b| b[4] = 9), Err(ImageError::BadVersion { format: 9, .. })));
        assert!(matches!(reseal(&|b| b[6] = 9), Err(ImageError::BadVersion { isa: 9, .. })));
        assert!(matches!(reseal(&|b| b[8] = 255), Err(ImageError::BadHead { .. })));
        assert!(matches!(reseal(&|b| b[16] = 0xff), Err(ImageError::BadHead { .. })));
        // An instruction that no assembler makes, at word 1.
        assert!(matches!(reseal(&|b| b[LINE + OPCODES * 4 + 7] = 0xf0), Err(ImageError::Check(_))));
    }

    proptest! {
        #[test]
        fn one_flipped_bit_is_refused(bit in 0..IMAGE_BYTES * 8) {
            let mut bytes = crate::standard().bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Image::parse(&bytes).is_err());
        }

        #[test]
        fn random_bytes_never_panic(mut body in prop::collection::vec(any::<u8>(), IMAGE_BYTES)) {
            let _ = Image::parse(&body);
            // Sealed nonsense reaches the checks behind the checksum.
            body[..8].copy_from_slice(&crate::standard().bytes()[..8]);
            body[8] %= 129; body[9..12].fill(0); body[16..48].fill(0);
            let used = body[8] as usize;
            body[LINE + OPCODES * 4 + used * 4..].fill(0);
            let (head, rest) = body.split_at_mut(LINE);
            seal::seal(rest, head.try_into().expect("a line"));
            let _ = Image::parse(&body);
        }
    }
}
