//! PM with named objects: a region, in the format of `nearpm_interface::region`.

use std::cell::{Ref, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{DirectoryEntry, DirectoryHead};
pub use nearpm_interface::region::ObjectKind;
use nearpm_interface::region::{
    OBJECT_ALIGNMENT, REGION_DATA, REGION_DIRECTORY, REGION_DIRECTORY_COPIES, REGION_DIRECTORY_COPY_BYTES,
    REGION_DIRECTORY_MAGIC, REGION_DIRECTORY_VERSION, REGION_MAGIC, REGION_OBJECTS, REGION_VERSION, RegionHead,
};
use nearpm_interface::seal;

use crate::device::{Attached, Device};
use crate::durability::{Drained, LinkState, drain, link_state};
use crate::error::Error;
use crate::medium::Medium;

/// Whether a region is made or must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is made; nothing may be at the path.
    Create,
    /// It is there.
    Open,
}

/// An object of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Name, 1 to 32 bytes.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Offset in the region, a multiple of 4096.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
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

#[derive(Default)]
struct Directory {
    generation: u64,
    /// Copy that counts.
    copy: u64,
    objects: Vec<Object>,
}

impl PmRegion {
    /// Makes a region of `bytes` bytes, or opens one: then `bytes` is 0, or what it must have.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::InUse`], [`Error::NotPinnable`]; of a region that is opened [`Error::Foreign`], [`Error::Newer`],
    /// [`Error::Truncated`], [`Error::Corrupt`]; what the system refuses. Nothing is left behind or changed then.
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
            Access::Open => {
                let medium = Medium::open(path)?;
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
        }
    }

    /// Makes a region in a medium, whose contents are gone then.
    ///
    /// # Errors
    /// As for [`PmRegion::map`].
    pub fn create_in(device: Rc<dyn Device>, mut medium: Medium) -> Result<PmRegion, Error> {
        check_bytes(medium.bytes().len() as u64)?;
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

    /// The bytes as the processor sees them, of a region on a card. On the interpreter they are those of the last
    /// [`PmRegion::close`]: use [`PmRegion::read`], which is right everywhere.
    pub fn mapped<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        look(self.medium().bytes())
    }

    /// The same for the processor to store to, past the device: what CPU-assisted persistence does. The caller makes it durable.
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
    /// Outside of the region.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut medium = self.shared.medium.borrow_mut();
        let medium = medium.as_mut().expect("a region that is there is open");
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

    /// The objects, by rising offset.
    pub fn objects(&self) -> Vec<Object> {
        self.shared.directory.borrow().objects.clone()
    }

    /// The object of a name.
    ///
    /// # Errors
    /// [`Error::NoObject`]: there is none, or it is of another kind.
    pub fn find(&self, name: &str, kind: ObjectKind) -> Result<Object, Error> {
        let directory = self.shared.directory.borrow();
        let what = format!("{} named {name:?}", kind.name());
        match directory.objects.iter().find(|object| object.name == name) {
            Some(object) if object.kind == kind => Ok(object.clone()),
            Some(object) => Err(Error::NoObject { what, why: format!("that name has a {}", object.kind.name()) }),
            None => {
                let names: Vec<&str> = directory.objects.iter().map(|object| &*object.name).collect();
                Err(Error::NoObject { what, why: format!("it has {}", names.join(", ")) })
            }
        }
    }

    /// Adds an object. `fill` stores its first contents, which are durable before the object is there; what it does not store to is
    /// zero. A crash leaves the object whole or not there.
    ///
    /// # Errors
    /// [`Error::NoRoom`]; a name that is none, or is taken.
    pub fn add(
        &self,
        name: &str,
        kind: ObjectKind,
        bytes: u64,
        fill: impl FnOnce(&Object) -> Result<(), Error>,
    ) -> Result<Object, Error> {
        let object = self.place(name, kind, bytes)?;
        // An attempt before a crash may have stored there.
        self.zero(object.offset, if kind.has_head() { OBJECT_ALIGNMENT.min(bytes) } else { 0 })?;
        fill(&object)?;
        let mut directory = self.shared.directory.borrow_mut();
        let mut objects = directory.objects.clone();
        objects.push(object.clone());
        let (generation, copy) = (directory.generation + 1, (directory.copy + 1) % REGION_DIRECTORY_COPIES);
        let (head, body) = encode(generation, &objects);
        // First a head that does not count, then everything else, then the head.
        let start = REGION_DIRECTORY + copy * REGION_DIRECTORY_COPY_BYTES;
        self.write(start, &[0; 8])?;
        self.write(start + LINE as u64, &body)?;
        self.write(start + 8, &head[8..])?;
        self.write(start, &head[..8])?;
        *directory = Directory { generation, copy, objects };
        Ok(object)
    }

    fn place(&self, name: &str, kind: ObjectKind, bytes: u64) -> Result<Object, Error> {
        let directory = self.shared.directory.borrow();
        let refuse = |why: String| Error::NoRoom { name: name.to_owned(), bytes, why };
        if !(1..=32).contains(&name.len()) || name.contains('\0') {
            return Err(Error::Invalid(format!("{name:?} is no name: one has 1 to 32 bytes of UTF-8 without zero")));
        }
        if directory.objects.iter().any(|object| object.name == name) {
            return Err(Error::Invalid(format!("the region has an object named {name:?} already")));
        }
        if directory.objects.len() >= REGION_OBJECTS {
            return Err(refuse(format!("a region has {REGION_OBJECTS} objects at most")));
        }
        let offset = directory.objects.last().map_or(REGION_DATA, |object| object.offset + object.bytes);
        let offset = offset.next_multiple_of(OBJECT_ALIGNMENT);
        let free = self.bytes().saturating_sub(offset);
        if bytes == 0 || bytes > free {
            return Err(refuse(format!("{free} bytes are free")));
        }
        Ok(Object { name: name.to_owned(), kind, offset, bytes })
    }

    /// Zeroes bytes, durably.
    ///
    /// # Errors
    /// Outside of the region.
    pub fn zero(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        let zeros = vec![0; (1 << 20).min(bytes) as usize];
        let mut at = 0;
        while at < bytes {
            let piece = (bytes - at).min(zeros.len() as u64) as usize;
            self.write(offset + at, &zeros[..piece])?;
            at += piece as u64;
        }
        Ok(())
    }

    /// Copies everything to a file that takes the place of the one at `path`, and synchronises it: durability
    /// [`crate::Durability::Drained`]. The copy is a region, too. No kernel runs meanwhile.
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

fn check_bytes(bytes: u64) -> Result<(), Error> {
    let minimum = REGION_DATA + OBJECT_ALIGNMENT;
    if bytes < minimum || !bytes.is_multiple_of(OBJECT_ALIGNMENT) {
        let rule = format!("a region has at least {minimum} bytes, in whole pages of {OBJECT_ALIGNMENT}");
        return Err(Error::Invalid(format!("{bytes} is no size of a region: {rule}")));
    }
    Ok(())
}

/// Writes the head and the first directory of a new region.
fn format(medium: &mut Medium) {
    use std::hash::{BuildHasher, RandomState};
    let id = (RandomState::new().hash_one(std::process::id()) as u32).max(1);
    let bytes = medium.bytes().len() as u64;
    let (head, _) = encode(1, &[]);
    let at = REGION_DIRECTORY as usize;
    medium.bytes_mut()[at..at + LINE].copy_from_slice(&head);
    let mut line =
        RegionHead { magic: REGION_MAGIC, version: REGION_VERSION, id, bytes, ..RegionHead::default() }.to_bytes();
    seal::seal(&[], &mut line);
    medium.bytes_mut()[..LINE].copy_from_slice(&line);
    crate::flush::persist(&medium.bytes()[..REGION_DATA as usize]);
}

/// A copy of the directory: head and body.
fn encode(generation: u64, objects: &[Object]) -> ([u8; LINE], Vec<u8>) {
    let mut body = Vec::with_capacity(objects.len() * LINE);
    for object in objects {
        let (base, bytes, pool) = (object.offset, object.bytes, object.kind as u32);
        let mut entry = DirectoryEntry { base, bytes, pool, ..DirectoryEntry::default() };
        entry.name[..object.name.len()].copy_from_slice(object.name.as_bytes());
        body.extend_from_slice(&entry.to_bytes());
    }
    let (magic, version, entries) = (REGION_DIRECTORY_MAGIC, REGION_DIRECTORY_VERSION, objects.len() as u16);
    let mut head = DirectoryHead { magic, version, entries, generation, ..DirectoryHead::default() }.to_bytes();
    seal::seal(&body, &mut head);
    (head, body)
}

/// The head of a region, checked.
fn read_head(path: &Path, bytes: &[u8]) -> Result<RegionHead, Error> {
    let path = path.to_owned();
    let found = bytes.len() as u64;
    let Some(line) = bytes.first_chunk::<LINE>() else {
        return Err(Error::Foreign { path, why: format!("it has {found} bytes") });
    };
    let head = RegionHead::from_bytes(line);
    if head.magic != REGION_MAGIC {
        let why = match line.iter().all(|&byte| byte == 0) {
            true => "its head is blank: its creation was interrupted, or it is another kind of file".to_owned(),
            false => format!("its magic number is {:#018x}, not {REGION_MAGIC:#018x}", head.magic),
        };
        return Err(Error::Foreign { path, why });
    }
    // The version first: a newer one may be sealed in another way.
    if head.version > REGION_VERSION {
        return Err(Error::Newer { path, found: head.version, supported: REGION_VERSION });
    }
    if !seal::is_sealed(&[], line) {
        return Err(Error::Corrupt { path, what: "the checksum of the head does not hold".to_owned(), offset: 0 });
    }
    if found < head.bytes {
        return Err(Error::Truncated { path, expected: head.bytes, found });
    }
    if head.bytes < REGION_DATA + OBJECT_ALIGNMENT || head.id == 0 {
        return Err(Error::Corrupt { path, what: "the head describes an impossible region".to_owned(), offset: 0 });
    }
    Ok(head)
}

/// The directory that counts: the valid copy with the highest generation.
fn read_directory(path: &Path, bytes: &[u8]) -> Result<Directory, Error> {
    let copies = (0..REGION_DIRECTORY_COPIES).filter_map(|copy| read_copy(bytes, copy));
    copies.max_by_key(|directory| directory.generation).ok_or_else(|| {
        let what = "both copies of the directory of objects".to_owned();
        Error::Corrupt { path: path.to_owned(), what, offset: REGION_DIRECTORY }
    })
}

fn read_copy(bytes: &[u8], copy: u64) -> Option<Directory> {
    let start = (REGION_DIRECTORY + copy * REGION_DIRECTORY_COPY_BYTES) as usize;
    let line = bytes.get(start..)?.first_chunk::<LINE>()?;
    let head = DirectoryHead::from_bytes(line);
    let entries = usize::from(head.entries);
    let body = bytes.get(start + LINE..start + LINE + entries * LINE)?;
    let ours = head.magic == REGION_DIRECTORY_MAGIC && head.version == REGION_DIRECTORY_VERSION;
    if !ours || entries > REGION_OBJECTS || !seal::is_sealed(body, line) {
        return None;
    }
    let objects: Option<Vec<Object>> = body.chunks_exact(LINE).map(|entry| decode(entry, bytes.len() as u64)).collect();
    Some(Directory { generation: head.generation, copy, objects: objects? })
}

fn decode(bytes: &[u8], end: u64) -> Option<Object> {
    let entry = DirectoryEntry::from_bytes(bytes.try_into().ok()?);
    let length = entry.name.iter().position(|&byte| byte == 0).unwrap_or(entry.name.len());
    let name = std::str::from_utf8(&entry.name[..length]).ok()?.to_owned();
    let kind = ObjectKind::from_code(entry.pool)?;
    let inside = entry.base >= REGION_DATA && entry.base.checked_add(entry.bytes)? <= end;
    (inside && entry.base.is_multiple_of(OBJECT_ALIGNMENT)).then_some(Object {
        name,
        kind,
        offset: entry.base,
        bytes: entry.bytes,
    })
}
