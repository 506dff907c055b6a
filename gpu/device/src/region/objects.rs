//! Named objects of a region.

use nearpm_interface::geometry::LINE;
use nearpm_interface::region::{
    OBJECT_ALIGNMENT, ObjectKind, REGION_DATA, REGION_DIRECTORY, REGION_DIRECTORY_COPIES, REGION_DIRECTORY_COPY_BYTES,
    REGION_OBJECTS,
};

use super::PmRegion;
use super::format::{Directory, encode};
use crate::error::Error;

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

impl PmRegion {
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

    /// Adds an object. `fill` stores its first contents, which are durable before the object is
    /// there; what it does not store to is zero. A crash leaves the object whole or not there.
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
}
