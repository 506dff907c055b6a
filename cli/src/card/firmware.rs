//! `nearpm card firmware`: which firmware is in force on a card, and another one.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use nearpm_firmware::Image;
use nearpm_interface::registers as reg;

use super::transport::Opened;

/// Says what is in force, after loading an image where one is given.
///
/// # Errors
/// If the image is none, or the card refuses it: the firmware of before is in force then. If the
/// card has gone or takes too long, it is not known which is.
pub fn run(opened: &Opened, load: Option<&Path>) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{}", opened.what)?;
    writeln!(text, "in force: {}", in_force(opened))?;
    if let Some(path) = load {
        let image = crate::firmware::read_image(path)?;
        opened.card.load_firmware(image.bytes()).with_context(|| format!("cannot load {}", path.display()))?;
        writeln!(text, "loaded {} revision {}", image.name(), image.revision())?;
        writeln!(text, "in force: {}", in_force(opened))?;
    }
    Ok(text)
}

fn in_force(opened: &Opened) -> String {
    let registers = opened.card.registers();
    let (slot, crc) = (registers.firmware_slot(), registers.read(reg::FIRMWARE_CRC));
    let standard: Image = nearpm_firmware::standard();
    let known = match crc == standard.crc() {
        true => format!("{} revision {}, which ships with this program", standard.name(), standard.revision()),
        false => "not the one that ships with this program".into(),
    };
    format!("slot {slot}, checksum {crc:#010x}, {known}")
}
