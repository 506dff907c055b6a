//! A rank's place among the others.

use std::rc::Rc;

use crate::array::{Array, Core, Element, Options};
use crate::error::Result;
use crate::rma::{Rma, Work, shm};

/// The ranks that work together, as one of them sees it. It belongs to one thread.
#[derive(Clone)]
pub struct World {
    pub(crate) rma: Rc<dyn Rma>,
}

impl World {
    /// From a backend's handle of this rank.
    pub fn new(rma: impl Rma + 'static) -> World {
        World { rma: Rc::new(rma) }
    }

    /// The world that this process was started for: by `nearpm gvr run`, or, where MPI is built in,
    /// by `mpiexec`. `window` is how many bytes of memory each rank gets from MPI; `nearpm gvr run`
    /// says so itself. `None` if nobody has started it for one.
    ///
    /// # Errors
    /// [`Error::BadOption`], [`Error::System`], [`Error::DeadRank`] if another rank does not come.
    pub fn launched(window: u64) -> Result<Option<World>> {
        if let Some(shm) = shm::launched()? {
            return Ok(Some(World::new(shm)));
        }
        Self::of_mpi(window)
    }

    #[cfg(feature = "mpi")]
    fn of_mpi(window: u64) -> Result<Option<World>> {
        use crate::rma::mpi;
        if mpi::is_rank() { Ok(Some(World::new(mpi::Mpi::join(window)?))) } else { Ok(None) }
    }

    #[cfg(not(feature = "mpi"))]
    fn of_mpi(_: u64) -> Result<Option<World>> {
        Ok(None)
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rma.rank()
    }

    /// Ranks.
    pub fn ranks(&self) -> usize {
        self.rma.ranks()
    }

    /// One-sided operations themselves.
    pub fn rma(&self) -> &dyn Rma {
        &*self.rma
    }

    /// Says that the program computes for so long, which counts in virtual time alone.
    ///
    /// # Errors
    /// None of the backends that there are.
    pub fn compute(&self, nanoseconds: u64) -> Result<()> {
        self.rma.work(Work::Compute { nanoseconds })
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// [`Error::DeadRank`].
    pub fn barrier(&self) -> Result<()> {
        self.rma.barrier()
    }

    /// Makes an array of zeros; all ranks call it alike. Its versions live as long as the ranks:
    /// for durable ones see [`crate::Job`].
    ///
    /// # Errors
    /// [`Error::BadOption`], [`Error::NoMemory`], [`Error::DeadRank`].
    pub fn array<T: Element>(&self, dims: &[u64], options: Options) -> Result<Array<T>> {
        let core = Core::new(Rc::clone(&self.rma), dims, T::KIND, options)?;
        Ok(Array::of(Rc::new(core), None))
    }
}
