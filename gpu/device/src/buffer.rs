//! Memory of a device that is given back when it is dropped.

use std::rc::Rc;

use crate::device::Device;
use crate::error::Error;

/// Volatile memory of a device.
pub struct Buffer {
    device: Rc<dyn Device>,
    address: u64,
    bytes: u64,
}

impl Buffer {
    /// `bytes` bytes, whose contents are not defined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(device: &Rc<dyn Device>, bytes: u64) -> Result<Buffer, Error> {
        Ok(Buffer { address: device.allocate(bytes)?, device: device.clone(), bytes })
    }

    /// The same, zeroed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeroed(device: &Rc<dyn Device>, bytes: u64) -> Result<Buffer, Error> {
        let buffer = Buffer::new(device, bytes)?;
        device.fill(buffer.address, 0, bytes)?;
        Ok(buffer)
    }

    /// The same with words of 4 bytes in it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn of_words(device: &Rc<dyn Device>, words: &[u32]) -> Result<Buffer, Error> {
        let buffer = Buffer::new(device, 4 * words.len() as u64)?;
        buffer.upload(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())?;
        Ok(buffer)
    }

    /// Its address, for kernels.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies to its start.
    ///
    /// # Errors
    /// More bytes than it has.
    pub fn upload(&self, bytes: &[u8]) -> Result<(), Error> {
        self.check(bytes.len())?;
        self.device.upload(self.address, bytes)
    }

    /// Copies its start.
    ///
    /// # Errors
    /// What a kernel did wrong.
    pub fn download(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.bytes as usize];
        self.device.download(self.address, &mut bytes)?;
        Ok(bytes)
    }

    /// The same as words of 4 bytes.
    ///
    /// # Errors
    /// What a kernel did wrong.
    pub fn download_words(&self) -> Result<Vec<u32>, Error> {
        let words = self.download()?;
        Ok(words.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect())
    }

    /// Fills it with a byte.
    ///
    /// # Errors
    /// What the driver refuses.
    pub fn fill(&self, byte: u8) -> Result<(), Error> {
        self.device.fill(self.address, byte, self.bytes)
    }

    fn check(&self, bytes: usize) -> Result<(), Error> {
        if bytes as u64 <= self.bytes {
            return Ok(());
        }
        Err(Error::Invalid(format!("{bytes} bytes do not fit in a buffer of {}", self.bytes)))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // After a crash of the interpreter there is nothing to give back.
        let _ = self.device.free(self.address);
    }
}
