//! What a C program's world is, and what its handles are.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::rc::Rc;

use super::descriptors::{Description, Predicate};
use super::status::refuse;
use crate::array::{Core, Face, Old, Sealer};
use crate::error::Result;
use crate::persist::{Inner, Job};
use crate::world::World;

/// A world that was joined.
pub struct Joined {
    pub job: Option<Job>,
    pub world: World,
}

thread_local! {
    static WORLD: RefCell<Option<Joined>> = const { RefCell::new(None) };
    static HANDLES: Cell<i64> = const { Cell::new(0) };
}

/// An array, and what it shares with others of its job.
pub struct Member {
    pub(crate) core: Rc<Core>,
    pub job: Option<Rc<Inner>>,
}

/// What a handle is: an array, and the version that it is at.
pub struct Gds {
    pub member: Member,
    /// `None`: the current one.
    at: RefCell<Option<(u64, Rc<Old>)>>,
    /// What all handles of the array share: there are as many as this has owners.
    shared: Rc<Shared>,
}

/// `GDS_recovery_func_t`
pub type Handler = Option<unsafe extern "C" fn(*mut Gds, *mut Description) -> c_int>;
/// `GDS_check_func_t`
pub type Check = Option<unsafe extern "C" fn(*mut Gds, c_int) -> c_int>;

/// Whose errors are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Local,
    Global,
}

/// What a program has registered for an array, and global errors that not all ranks know of.
#[derive(Default)]
pub struct Handlers {
    pub(super) handlers: RefCell<Vec<(Scope, Predicate, Handler)>>,
    pub(super) checks: RefCell<Vec<(c_int, Check)>>,
    pub(super) raised: RefCell<Vec<Description>>,
}

/// What a program has told of an array.
#[derive(Default)]
pub struct Shared {
    pub(super) handlers: Handlers,
    /// Attributes that it has set, by key.
    pub(super) attributes: RefCell<BTreeMap<c_int, usize>>,
}

impl std::ops::Deref for Gds {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Gds {
    pub fn new(member: Member) -> Gds {
        Gds { member, at: RefCell::new(None), shared: Rc::default() }
    }

    /// A second handle of the array, at the same version.
    pub fn another(&self) -> Result<Gds> {
        let member = Member { core: Rc::clone(&self.member.core), job: self.member.job.clone() };
        let gds = Gds { member, at: RefCell::new(None), shared: Rc::clone(&self.shared) };
        if let Some((number, _)) = self.at() {
            gds.move_to(Some((number, gds.member.core.pin(number)?)));
        }
        Ok(gds)
    }

    /// Whether there is no other handle of the array.
    pub fn is_last(&self) -> bool {
        Rc::strong_count(&self.shared) == 1
    }

    pub(crate) fn face(&self) -> Face<'_> {
        Face { core: &self.member.core, job: self.member.job.as_deref().map(|job| job as &dyn Sealer) }
    }

    /// The old version that the handle is at.
    pub(crate) fn at(&self) -> Option<(u64, Rc<Old>)> {
        self.at.borrow().clone()
    }

    /// Moves the handle to a version that was pinned.
    pub(crate) fn move_to(&self, version: Option<(u64, Old)>) {
        let version = version.map(|(number, old)| (number, Rc::new(old)));
        if let Some((_, before)) = std::mem::replace(&mut *self.at.borrow_mut(), version) {
            self.member.core.unpin(&before);
        }
    }
}

/// Refuses a world where there is one already.
pub fn check_first() -> Result<()> {
    if WORLD.with_borrow(Option::is_some) {
        return Err(refuse("the world was joined already: GDS_init is called once"));
    }
    Ok(())
}

pub fn join(world: World) -> Result<()> {
    check_first()?;
    WORLD.set(Some(Joined { job: None, world }));
    Ok(())
}

pub fn leave() -> Result<()> {
    if HANDLES.get() > 0 {
        return Err(refuse(format!("{} arrays are not freed: free them, then leave", HANDLES.get())));
    }
    let Some(Joined { job, world }) = WORLD.with_borrow_mut(Option::take) else {
        return Err(refuse("the world was not joined: GDS_init comes first"));
    };
    job.map_or(Ok(()), Job::close)?;
    world.barrier()
}

/// Counts handles.
pub fn count(more: i64) {
    HANDLES.set(HANDLES.get() + more);
}

/// Works on the world of this thread.
pub fn with_world<R>(act: impl FnOnce(&mut Joined) -> Result<R>) -> Result<R> {
    WORLD.with_borrow_mut(|world| match world {
        Some(world) => act(world),
        None => {
            Err(refuse("this thread has not joined the world: GDS_init comes first, and all calls from its thread"))
        }
    })
}

/// The array of a handle.
///
/// # Safety
/// The handle is null or comes from this library and was not freed.
pub unsafe fn array<'a>(gds: *const Gds) -> Result<&'a Gds> {
    // SAFETY: by the caller.
    unsafe { gds.as_ref() }.ok_or_else(|| refuse("the handle is null"))
}
