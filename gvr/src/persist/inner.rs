//! What durable arrays of a rank share: its pool, and the cut that is on its way.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use nearpm::Ptr;

use super::agree;
use super::cut::Prepared;
use super::flight::Flight;
use super::format::Head;
use super::pool::RankPool;
use crate::array::{Core, Fault, Options};
use crate::error::{Error, Result};
use crate::rma::{Kind, Rma};

/// What durable arrays of a rank share.
pub struct Inner {
    pub(crate) rma: Rc<dyn Rma>,
    pub(super) pool: Arc<RankPool>,
    /// Of a job with partner copies.
    pub(super) partner: Option<Partner>,
    /// The newest cut that all ranks have sealed.
    pub(super) cut: Cell<u64>,
    pub(super) arrays: RefCell<BTreeMap<String, Member>>,
    /// Cuts are sealed while the program goes on.
    pub(super) background: Cell<bool>,
    /// The cut that is about to begin its way.
    pub(super) prepared: RefCell<Option<Prepared>>,
    /// The cut that is on its way.
    pub(super) flight: RefCell<Option<Flight>>,
    /// Why versions could not be folded when the last cut was sealed.
    pub(super) folding: Cell<Option<Error>>,
}

/// The pool that this rank holds for another one.
pub(super) struct Partner {
    pub rank: usize,
    pub pool: Arc<RankPool>,
}

/// An array of a job.
#[derive(Clone)]
pub(super) struct Member {
    pub core: Rc<Core>,
    pub head: Ptr<Head>,
    /// Where the pool has it that is held for another rank.
    pub held: Option<Ptr<Head>>,
    pub options: Options,
}

impl Inner {
    pub(super) fn new(rma: Rc<dyn Rma>, pool: RankPool, partner: Option<Partner>) -> Inner {
        Inner {
            rma,
            pool: Arc::new(pool),
            partner,
            cut: Cell::new(0),
            arrays: RefCell::default(),
            background: Cell::new(false),
            prepared: RefCell::default(),
            flight: RefCell::default(),
            folding: Cell::default(),
        }
    }

    pub(super) fn add(&self, name: &str, dims: &[u64], kind: Kind, options: Options) -> Result<Rc<Core>> {
        let core = Rc::new(Core::new(Rc::clone(&self.rma), dims, kind, options)?);
        let add = |pool: &RankPool| pool.add(head_of(name, &core, &options));
        let heads = add(&self.pool)
            .and_then(|head| Ok((head, self.partner.as_ref().map(|partner| add(&partner.pool)).transpose()?)));
        let (head, held) = agree(&*self.rma, heads)?;
        self.arrays.borrow_mut().insert(name.to_owned(), Member { core: Rc::clone(&core), head, held, options });
        Ok(core)
    }

    pub(super) fn planted(&self, fault: Fault) -> bool {
        self.arrays.borrow().values().any(|member| member.options.planted(fault))
    }
}

/// What the pool says of an array.
fn head_of(name: &str, core: &Core, options: &Options) -> Head {
    let mut dims = [0; crate::array::MOST_DIMENSIONS];
    dims[..core.shape.dims().len()].copy_from_slice(core.shape.dims());
    Head {
        next: None,
        name: super::format::field(name),
        kind: core.kind as u32,
        dimensions: core.shape.dims().len() as u32,
        dims,
        block: core.geometry.block,
        keep: options.kept(),
        log_blocks: options.log_blocks,
        flags: u64::from(options.check) | u64::from(options.compress) << 1,
        blocks: core.geometry.blocks,
        oldest: None,
        newest: None,
        base: None,
    }
}
