//! PM with named objects: a region, in the format of `nearpm_interface::region`.

mod format;
mod objects;

use std::cell::{Ref, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub use nearpm_interface::region::ObjectKind;
use nearpm_interface::region::REGION_DATA;
use nearpm_interface::seal;

use crate::device::{Attached, Device};
use crate::durability::{Drained, LinkState, drain, link_state};
use crate::error::Error;
use crate::medium::Medium;
use format::{Directory, check_bytes, format, read_directory, read_head};
pub use objects::Object;

/// Whether a region is made or must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is made; nothing may be at the path.
    Create,
    /// It is there.
    Open,
    /// It is there, and is only read: a region that was drained to a file on a disk, too. A card
    /// that stores there all the same ends its process.
    Read,
}

/// PM that a device has mapped, with named objects. Clones share it. One process at a time has it.
#[derive(Clone)]
pub struct PmRegion {
    shared: Rc<Shared>,
}

struct Shared {
    device: Rc<dyn Device>,
    attached: Attached,
    /// `None` when it was closed.
    medium: RefCell<Option<Medium>>,
    directory: RefCell<Directory>,
    id: u32,
}

impl PmRegion {
    /// Makes a region of `bytes` bytes, or opens one: then `bytes` is 0, or what it must have.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::InUse`], [`Error::NotPinnable`]; of a region that is opened
    /// [`Error::Foreign`], [`Error::Newer`], [`Error::Truncated`], [`Error::Corrupt`]; what the
    /// system refuses. Nothing is left behind or changed then.
    pub fn map(device: Rc<dyn Device>, path: &Path, bytes: u64, access: Access) -> Result<PmRegion, Error> {
        match access {
            Access::Create => {
                check_bytes(bytes)?;
                let mut unnamed = Medium::create(path, bytes)?;
                format(&mut unnamed.medium);
                // Before it has its name: what cannot be pinned leaves no file.
                let attached = device.attach(&unnamed.medium)?;
                let medium = unnamed.publish()?;
                PmRegion::assemble(device, medium, attached)
            }
            Access::Open => PmRegion::opened(device, Medium::open(path)?, path, bytes),
            Access::Read => PmRegion::opened(device, Medium::open_for_reading(path)?, path, bytes),
        }
    }

    fn opened(device: Rc<dyn Device>, medium: Medium, path: &Path, bytes: u64) -> Result<PmRegion, Error> {
        let region = PmRegion::open_in(device, medium)?;
        let found = region.bytes();
        if bytes != 0 && bytes != found {
            return Err(Error::Invalid(format!(
                "{} has {found} bytes, not {bytes}: open it with 0 for whatever it has",
                path.display()
            )));
        }
        Ok(region)
    }

    /// Makes a region in a medium, whose contents are gone then.
    ///
    /// # Errors
    /// As for [`PmRegion::map`].
    pub fn create_in(device: Rc<dyn Device>, mut medium: Medium) -> Result<PmRegion, Error> {
        check_bytes(medium.bytes().len() as u64)?;
        if medium.is_for_reading() {
            return Err(medium.refuse_store());
        }
        medium.bytes_mut()[..REGION_DATA as usize].fill(0);
        format(&mut medium);
        let attached = device.attach(&medium)?;
        PmRegion::assemble(device, medium, attached)
    }

    /// Opens the region that a medium holds.
    ///
    /// # Errors
    /// As for [`PmRegion::map`].
    pub fn open_in(device: Rc<dyn Device>, medium: Medium) -> Result<PmRegion, Error> {
        // Before it is pinned, which takes time.
        read_head(medium.path(), medium.bytes())?;
        read_directory(medium.path(), medium.bytes())?;
        let attached = device.attach(&medium)?;
        PmRegion::assemble(device, medium, attached)
    }

    fn assemble(device: Rc<dyn Device>, medium: Medium, attached: Attached) -> Result<PmRegion, Error> {
        let head = read_head(medium.path(), medium.bytes())?;
        let directory = RefCell::new(read_directory(medium.path(), medium.bytes())?);
        let medium = RefCell::new(Some(medium));
        Ok(PmRegion { shared: Rc::new(Shared { device, attached, medium, directory, id: head.id }) })
    }

    /// The device that has it mapped.
    pub fn device(&self) -> &Rc<dyn Device> {
        &self.shared.device
    }

    /// Its identifier.
    pub fn id(&self) -> u32 {
        self.shared.id
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.shared.attached.bytes
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.medium().path().to_owned()
    }

    /// Address at which kernels see an offset.
    pub fn address(&self, offset: u64) -> u64 {
        self.shared.attached.address + offset
    }

    /// Whether the device's writes go past the processor's caches.
    pub fn link_state(&self) -> LinkState {
        link_state(&self.medium())
    }

    fn medium(&self) -> Ref<'_, Medium> {
        Ref::map(self.shared.medium.borrow(), |medium| medium.as_ref().expect("a region that is there is open"))
    }

    /// The bytes as the processor sees them, of a region on a card. On the interpreter they are
    /// those of the last [`PmRegion::close`]: use [`PmRegion::read`], which is right everywhere.
    pub fn mapped<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        look(self.medium().bytes())
    }

    /// The same for the processor to store to, past the device: what CPU-assisted persistence does.
    /// The caller makes it durable.
    ///
    /// # Panics
    /// A region that is only read.
    pub fn mapped_mut<R>(&self, change: impl FnOnce(&mut [u8]) -> R) -> R {
        change(self.shared.medium.borrow_mut().as_mut().expect("a region that is there is open").bytes_mut())
    }

    /// Reads as the processor sees it, after all work given to the device.
    ///
    /// # Errors
    /// Outside of the region; what a kernel did wrong.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.shared.device.pm_read(&self.shared.attached, &self.medium(), offset, bytes)
    }

    /// The same into new bytes.
    ///
    /// # Errors
    /// As for [`PmRegion::read`].
    pub fn read_vec(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        let mut read = vec![0; bytes];
        self.read(offset, &mut read)?;
        Ok(read)
    }

    /// Stores by the processor; durable when this returns. Eight aligned bytes are stored at once.
    ///
    /// # Errors
    /// Outside of the region; a region that is only read.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut medium = self.shared.medium.borrow_mut();
        let medium = medium.as_mut().expect("a region that is there is open");
        if medium.is_for_reading() {
            return Err(medium.refuse_store());
        }
        self.shared.device.pm_write(&self.shared.attached, medium, offset, bytes)
    }

    /// The sealed word at an offset.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where it is none.
    pub fn read_sealed_word(&self, offset: u64) -> Result<u64, Error> {
        let mut word = [0; 8];
        self.read(offset, &mut word)?;
        let what = || "a sealed word does not hold".to_owned();
        seal::open_word(u64::from_le_bytes(word)).ok_or_else(|| self.corrupt(what(), offset))
    }

    /// Stores a sealed word, at once and durably.
    ///
    /// # Errors
    /// Outside of the region.
    pub fn write_sealed_word(&self, offset: u64, id: u64) -> Result<(), Error> {
        self.write(offset, &seal::seal_word(id).to_le_bytes())
    }

    /// The error of damage in this region.
    pub fn corrupt(&self, what: String, offset: u64) -> Error {
        Error::Corrupt { path: self.path(), what, offset }
    }

    /// Copies everything to a file that takes the place of the one at `path`, and synchronises it:
    /// durability [`crate::Durability::Drained`]. The copy is a region, too. No kernel runs
    /// meanwhile.
    ///
    /// # Errors
    /// What the system refuses; a file that was there stays then.
    pub fn drain_to(&self, path: &Path) -> Result<Drained, Error> {
        self.shared.device.synchronize()?;
        let image = self.image()?;
        match image {
            Some(image) => drain(&image, path),
            None => drain(self.medium().bytes(), path),
        }
    }

    /// What the processor sees, where that is not the medium itself.
    fn image(&self) -> Result<Option<Vec<u8>>, Error> {
        let direct = self.shared.attached.address == self.medium().bytes().as_ptr().addr() as u64;
        if direct { Ok(None) } else { self.read_vec(0, self.bytes() as usize).map(Some) }
    }

    /// Unmaps it and gives the medium back, with everything in it that was stored.
    ///
    /// # Errors
    /// What a kernel did wrong, or the driver refuses; a region of which there are other clones.
    pub fn close(self) -> Result<Medium, Error> {
        if Rc::strong_count(&self.shared) > 1 {
            return Err(Error::Invalid(
                "the region is in use by logs, batches or checkpoints: drop them first".to_owned(),
            ));
        }
        let mut medium = self.shared.medium.borrow_mut().take().expect("a region that is there is open");
        self.shared.device.detach(self.shared.attached, &mut medium)?;
        Ok(medium)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(mut medium) = self.medium.take() {
            // Nobody is there to be told; closing tells.
            let _ = self.device.detach(self.attached, &mut medium);
        }
    }
}
