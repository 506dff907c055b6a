//! What histories are run on: a small table, its kernels, holes, and how its operations come.

use nearpm_gphash::{
    Design, Keys, Layout, level_kernels, level_kernels_alone, level_kernels_alone_wide, level_kernels_cached,
    level_kernels_wide, level_kernels_with_holes, tag_kernels, tag_kernels_cached, tag_kernels_wide,
    tag_kernels_with_holes,
};
use nearpm_gpu::Module;

use crate::values::{VALUE, WIDE};

/// What is tried.
#[derive(Clone)]
pub struct Subject {
    /// The table.
    pub layout: Layout,
    /// Its kernels.
    pub module: Module,
    /// Holes that are planted in them.
    pub holes: u32,
    /// Whether all operations are one batch, of which answers count at its end; else each answer is
    /// out at once.
    pub batched: bool,
    /// Turns of a cache before the operations: behind the first one it is being filled meanwhile,
    /// behind others it is in use, too. 0: no cache.
    pub turns: u32,
}

impl Subject {
    /// A small table of a design: a few buckets that all keys share.
    pub fn small(design: Design) -> Subject {
        let (layout, module) = match design {
            Design::Levels => (Layout { buckets: 2, spares: 64, ..Layout::levels(1, VALUE) }, level_kernels()),
            Design::Tags => {
                let spares = 32;
                (
                    Layout { width: 8, hashes: 2, buckets: 2, windows: 1, stash: 1, spares, ..Layout::tags(1, VALUE) },
                    tag_kernels(),
                )
            }
        };
        Subject { layout, module: module.clone(), holes: 0, batched: false, turns: 0 }
    }

    /// The same with holes.
    #[must_use]
    pub fn with_holes(mut self, holes: u32) -> Subject {
        let module = match self.layout.design {
            Design::Levels => level_kernels_with_holes(),
            Design::Tags => tag_kernels_with_holes(),
        };
        (self.module, self.holes) = (module.clone(), holes);
        self
    }

    /// The same with a bucket alone that all keys share, and nothing besides: what exhaustive
    /// schedules go through.
    #[must_use]
    pub fn one_bucket(mut self) -> Subject {
        self.layout = Layout { levels: 1, hashes: 1, width: 8, buckets: 1, stash: 0, ..self.layout };
        self
    }

    /// The same with room to double twice; of design P with a slot a bucket, so that keys may find
    /// no place.
    #[must_use]
    pub fn growing(mut self) -> Subject {
        self.layout = self.layout.growing(2);
        if self.layout.design == Design::Levels {
            self.layout = Layout { width: 1, buckets: 8, ..self.layout };
        }
        self
    }

    /// The same with a cache, behind so many turns of it.
    #[must_use]
    pub fn cached(mut self, turns: u32) -> Subject {
        if self.holes == 0 {
            self.module = match self.layout.design {
                Design::Levels => level_kernels_cached().clone(),
                Design::Tags => tag_kernels_cached().clone(),
            };
        }
        self.turns = turns;
        self
    }

    /// Design P with a thread an operation instead of a warp.
    pub fn alone() -> Subject {
        Subject { module: level_kernels_alone().clone(), ..Subject::small(Design::Levels) }
    }

    /// The same with keys behind the values, and not in the slots.
    #[must_use]
    pub fn wide(mut self) -> Subject {
        let wide = match self.layout.design {
            Design::Levels if self.module.name() == level_kernels_alone().name() => level_kernels_alone_wide(),
            Design::Levels => level_kernels_wide(),
            Design::Tags => tag_kernels_wide(),
        };
        (self.module, self.layout) = (wide.clone(), self.layout.with_keys(Keys::Fixed(WIDE)));
        self
    }

    /// The same with all operations as one batch.
    #[must_use]
    pub fn batched(mut self) -> Subject {
        self.batched = true;
        self
    }
}
