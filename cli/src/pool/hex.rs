//! Bytes as text, in the format of `hexdump -C`.

use std::io::{Result, Write};

/// Bytes of a line.
const ROW: usize = 16;

/// Bytes as hexadecimal digits without spaces.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes bytes that lie at an offset. Lines like the one before them are one line with a star.
pub fn write(out: &mut impl Write, offset: u64, bytes: &[u8]) -> Result<()> {
    let mut before: Option<&[u8]> = None;
    let mut starred = false;
    for (row, at) in bytes.chunks(ROW).zip((offset..).step_by(ROW)) {
        if before == Some(row) {
            if !std::mem::replace(&mut starred, true) {
                writeln!(out, "*")?;
            }
            continue;
        }
        (before, starred) = (Some(row), false);
        let halves: Vec<String> = row.chunks(ROW / 2).map(half).collect();
        // Text that a terminal would take for a command stays out of it.
        let text: String =
            row.iter().map(|&byte| if matches!(byte, b' '..=b'~') { byte.into() } else { '.' }).collect();
        writeln!(out, "{at:08x}  {:<48}  |{text}|", halves.join("  "))?;
    }
    writeln!(out, "{:08x}", offset.saturating_add(bytes.len() as u64))
}

fn half(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_hexdump_writes_them() {
        let mut bytes = vec![0; 80];
        bytes[..21].copy_from_slice(b"pear\0apple\n\x1b\x7f|~\xff and ");
        bytes.truncate(75);
        let mut out = Vec::new();
        write(&mut out, 0x3e010, &bytes).unwrap();
        let expected = "\
0003e010  70 65 61 72 00 61 70 70  6c 65 0a 1b 7f 7c 7e ff  |pear.apple...|~.|
0003e020  20 61 6e 64 20 00 00 00  00 00 00 00 00 00 00 00  | and ...........|
0003e030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
*
0003e050  00 00 00 00 00 00 00 00  00 00 00                 |...........|
0003e05b
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
