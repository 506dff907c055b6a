//! A program's launches as files, so that another simulator can run the same kernels on the same
//! data: `docs/gpusim.md`, "The artifact's own simulator".

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nearpm_ptx::Arguments;

use crate::device::{Device, Interpreted, Shape, as_bytes};
use crate::kernels::{Lowering, text};
use crate::programs::{Size, program};

/// Writes into a folder: `kernels.ptx`; `launches.txt`, which lists memory (`pm BYTES FILE`,
/// `volatile BYTES FILE`) and launches (`launch KERNEL BLOCKS THREADS ARGUMENT...`) in their order;
/// the files that memory holds; and `expected.bin`, what PM holds in the end.
///
/// # Errors
/// A file that cannot be written, or a program that does not run.
pub fn export(name: &str, size: Size, lowering: Lowering, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let program = program(name, size)?;
    let image = program.image();
    let mut exported = Exported {
        inner: Interpreted::new(lowering, &image),
        folder: folder.to_path_buf(),
        list: String::new(),
        memories: Vec::new(),
    };
    let pm = exported.inner.pm();
    exported.memory("pm", pm, &image)?;
    exported.file("kernels.ptx", text(lowering).as_bytes())?;
    program.run(&mut exported)?;
    let found = exported.inner.image();
    program.check_done(&found)?;
    exported.file("expected.bin", &as_bytes(&found))?;
    let list = std::mem::take(&mut exported.list);
    exported.file("launches.txt", list.as_bytes())
}

/// The interpreter, which notes what is asked of it.
struct Exported {
    inner: Interpreted,
    folder: PathBuf,
    list: String,
    /// First address and bytes of what was listed.
    memories: Vec<(u64, u64)>,
}

impl Exported {
    fn file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))
    }

    fn memory(&mut self, kind: &str, address: u64, words: &[u32]) -> Result<()> {
        let (bytes, file) = (as_bytes(words), format!("memory{}.bin", self.memories.len()));
        self.file(&file, &bytes)?;
        writeln!(self.list, "{kind} {} {file}", bytes.len())?;
        self.memories.push((address, bytes.len() as u64));
        Ok(())
    }

    /// An argument as text: `u32:VALUE`, `u64:VALUE`, or `memory:NUMBER+OFFSET` for a pointer.
    fn argument(&self, value: &[u8]) -> Result<String> {
        if let Ok(value) = <[u8; 4]>::try_from(value) {
            return Ok(format!("u32:{}", u32::from_le_bytes(value)));
        }
        let value = u64::from_le_bytes(value.try_into().context("an argument of neither 4 nor 8 bytes")?);
        let inside = |&(first, bytes): &(u64, u64)| (first..first + bytes).contains(&value);
        Ok(match self.memories.iter().position(inside) {
            Some(number) => format!("memory:{number}+{}", value - self.memories[number].0),
            None => format!("u64:{value}"),
        })
    }
}

impl Device for Exported {
    fn pm(&self) -> u64 {
        self.inner.pm()
    }

    fn words(&mut self, words: &[u32]) -> Result<u64> {
        let address = self.inner.words(words)?;
        self.memory("volatile", address, words)?;
        Ok(address)
    }

    fn read(&mut self, address: u64, count: usize) -> Result<Vec<u32>> {
        self.inner.read(address, count)
    }

    fn launch(&mut self, shape: Shape<'_>, arguments: Arguments) -> Result<()> {
        write!(self.list, "launch {} {} {}", shape.kernel, shape.blocks, shape.threads)?;
        for value in arguments.values() {
            let text = self.argument(value)?;
            write!(self.list, " {text}")?;
        }
        writeln!(self.list)?;
        self.inner.launch(shape, arguments)
    }
}
