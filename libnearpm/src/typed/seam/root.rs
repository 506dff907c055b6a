//! The root object of a typed pool: a head that says what type it is, then the value.

use super::{Load, Store};
use crate::error::Error;
use crate::pmdk_format as pmdk;
use crate::typed::persistent::value_of;
use crate::typed::{Persistent, Ptr, fingerprint};

/// Magic of a [`Head`]: "NearType".
const MAGIC: u64 = u64::from_le_bytes(*b"NearType");

/// Bytes of a type's name that are kept.
const NAME_BYTES: usize = 40;

/// In front of the root's value.
#[derive(Clone, Copy, crate::Persistent)]
#[repr(C)]
struct Head {
    /// [`MAGIC`].
    magic: u64,
    /// Of the type ([`fingerprint`]).
    fingerprint: u64,
    /// Bytes of a value.
    bytes: u64,
    /// The type, for messages: what fits of its name, then zeros.
    name: [u8; NAME_BYTES],
}

/// Bytes of a [`Head`]: the value behind it lies as objects do.
const HEAD_BYTES: u64 = 64;
const _: () = assert!(size_of::<Head>() as u64 == HEAD_BYTES && HEAD_BYTES.is_multiple_of(16));

/// The name of a type without its path.
fn name<T>() -> &'static str {
    let full = std::any::type_name::<T>();
    let path = full.split('<').next().unwrap_or(full);
    path.rsplit("::").next().unwrap_or(full)
}

impl Head {
    fn of<T: Persistent>() -> Head {
        let mut kept = [0; NAME_BYTES];
        let name = name::<T>().as_bytes();
        let length = name.len().min(NAME_BYTES);
        kept[..length].copy_from_slice(&name[..length]);
        Head { magic: MAGIC, fingerprint: fingerprint::<T>(), bytes: size_of::<T>() as u64, name: kept }
    }

    /// The type's name and bytes, if this is a head.
    fn root_type(&self) -> Option<(String, u64)> {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        (self.magic == MAGIC).then(|| (String::from_utf8_lossy(&self.name[..end]).into_owned(), self.bytes))
    }
}

/// The type of a root whose object begins with these bytes, and its bytes; `None` if no Rust
/// program made it.
pub(crate) fn root_type(bytes: &[u8]) -> Option<(String, u64)> {
    let bytes = bytes.get(..size_of::<Head>())?;
    let head = value_of::<Head>(|head| {
        head.copy_from_slice(bytes);
        Ok(())
    });
    head.ok()?.root_type()
}

/// What the root is, for a message.
fn says(from: &impl Load, object: Ptr<Head>) -> String {
    if let Some((name, bytes)) = from.get(object).ok().and_then(|head| head.root_type()) {
        return format!("{name:?} of {bytes} bytes");
    }
    // Somebody else's root may be small, and lie at the very end of the heap.
    let mut bytes = [0; pmdk::HEAD_BYTES];
    let read = from.read(Ptr::offset(object), &mut bytes).ok();
    match read.and_then(|()| pmdk::Head::read(&bytes, Ptr::offset(object)).ok().flatten()) {
        Some(head) => format!("that of a PMDK program with the layout {:?}", head.layout),
        None => "an object that no Rust program typed".to_owned(),
    }
}

/// The root of a pool.
pub(super) fn find<T: Persistent>(from: &impl Load) -> Result<Option<Ptr<T>>, Error> {
    let Some(object) = Ptr::<Head>::from_offset(from.root_object()?) else { return Ok(None) };
    let is_ours = from.get(object.magic())? == MAGIC && from.get(object.fingerprint())? == fingerprint::<T>();
    if !is_ours {
        let wanted = format!("{:?} of {} bytes", name::<T>(), size_of::<T>());
        return Err(Error::RootType { found: says(from, object), wanted });
    }
    Ok(Some(Ptr::behind(object, HEAD_BYTES)))
}

/// Makes the root of a pool that has none.
pub(super) fn make<T: Persistent, S: Store>(tx: &mut S, value: T) -> Result<Ptr<T>, Error> {
    let object = tx.alloc_bytes(HEAD_BYTES + size_of::<T>() as u64)?;
    let head = super::pointer::<Head>(object)?;
    tx.set(head, Head::of::<T>())?;
    let root = Ptr::behind(head, HEAD_BYTES);
    tx.set(root, value)?;
    tx.set_root_object(object)?;
    Ok(root)
}
