//! `nearpm firmware`: images from text, text from images.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use nearpm_firmware::disassembler::program_name;
use nearpm_firmware::{Image, Source, assemble, disassemble};
use nearpm_interface::firmware::PROGRAM_WORDS;

use nearpm_text::Table;

/// What to do with firmware.
#[derive(Subcommand)]
pub enum FirmwareCommand {
    /// Assemble sources to one image
    Assemble {
        /// Sources; without any, those of the firmware that ships with the card
        sources: Vec<PathBuf>,
        /// File to write the image to
        #[arg(long)]
        out: PathBuf,
    },
    /// Print the programs of an image as a source
    Disassemble {
        /// The image
        image: PathBuf,
    },
    /// Check sources or an image, and list the programs
    Check {
        /// An image, or sources (names ending in .npm); without any, the firmware that ships with
        /// the card
        files: Vec<PathBuf>,
    },
}

/// Runs the command.
pub fn command(command: &FirmwareCommand) -> Result<()> {
    match command {
        FirmwareCommand::Assemble { sources, out } => {
            let image = assembled(sources)?;
            std::fs::write(out, image.bytes()).with_context(|| format!("cannot write {}", out.display()))?;
            print!("{}", listing(&image));
            Ok(())
        }
        FirmwareCommand::Disassemble { image } => {
            let text = disassemble(&read_image(image)?);
            std::io::stdout().write_all(text.as_bytes()).context("cannot print")
        }
        FirmwareCommand::Check { files } => {
            let sources = |p: &PathBuf| p.extension().is_some_and(|e| e == "npm");
            let image = match files.as_slice() {
                [image] if !sources(image) => read_image(image)?,
                files if files.iter().all(sources) => assembled(files)?,
                _ => bail!("check takes one image, or sources whose names end in .npm"),
            };
            print!("{}", listing(&image));
            Ok(())
        }
    }
}

/// Reads an image from a file.
///
/// # Errors
/// If it cannot be read, or is no image.
pub fn read_image(path: &Path) -> Result<Image> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Image::parse(&bytes).with_context(|| format!("{} is refused", path.display()))
}

fn assembled(paths: &[PathBuf]) -> Result<Image> {
    if paths.is_empty() {
        return Ok(nearpm_firmware::standard());
    }
    let texts: Vec<(String, String)> = paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((path.display().to_string(), text))
        })
        .collect::<Result<_>>()?;
    let sources: Vec<Source<'_>> = texts.iter().map(|(name, text)| Source { name, text }).collect();
    assemble(&sources).context("the firmware does not assemble")
}

/// The programs of an image.
fn listing(image: &Image) -> String {
    let mut table = Table::new(&["opcode", "program", "entry", "instructions"]);
    for opcode in 0..=u8::MAX {
        if let (Some(head), Some(code)) = (image.descriptor(opcode), image.program(opcode)) {
            table.row([
                format!("{opcode:#04x}"),
                program_name(opcode),
                head.entry().to_string(),
                code.len().to_string(),
            ]);
        }
    }
    format!(
        "{} revision {}, checksum {:#010x}, {} of {PROGRAM_WORDS} words\n\n{table}",
        image.name(),
        image.revision(),
        image.crc(),
        image.words().len(),
    )
}
