//! The table: create and open.

use std::cell::Cell;
use std::rc::Rc;

use nearpm_gpm::{Sorter, read_head, write_head};
use nearpm_gpu::{Argument, Buffer, Device, Kernel, Launch, Module, Object, ObjectKind, PmRegion};
use nearpm_interface::hash_table::SLOT_BYTES;
use nearpm_interface::region::OBJECT_WORD;

use crate::cache::Cache;
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::found::Found;
use crate::layout::{Design, Keys, Layout};

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;
/// Lanes of a warp.
const WARP: u64 = 32;
/// Words of the counts that kernels keep: `GPH_COUNTS`.
pub(crate) const COUNTS: usize = 16;
/// A table that is open. Batches run one after the other; each is an epoch.
pub struct Table {
    pub(crate) region: PmRegion,
    pub(crate) object: Object,
    layout: Layout,
    module: Module,
    descriptor: Cell<Descriptor>,
    described: Buffer,
    pub(crate) counts: Buffer,
    pub(crate) taken: Buffer,
    /// What the descriptor points to.
    _held: [Buffer; 2],
    pub(crate) epoch: Cell<u32>,
    /// The epoch whose words of `taken` are zero already.
    pub(crate) prepared: Cell<u32>,
    /// Cells that design P's ring has for certain.
    pub(crate) available: Cell<u64>,
    pub(crate) sorter: Option<Sorter>,
    /// Windows in use of design N; how often design P has grown.
    pub(crate) grown: Cell<u32>,
    pub(crate) cache: Option<Cache>,
    /// Slots and cells of a copy that is volatile.
    pub(crate) copy: Option<[Buffer; 2]>,
    pub(crate) found: Found,
}

impl Table {
    /// Creates an empty table and opens it. `seed` is of its hash functions.
    ///
    /// # Errors
    /// A layout that makes no table; no room in the region or the device.
    pub fn create(region: &PmRegion, name: &str, layout: &Layout, seed: u32) -> Result<Table> {
        layout.check()?;
        region.add(name, layout.kind(), layout.bytes(), |object| {
            region.write_sealed_word(object.offset + OBJECT_WORD, seed.into())?;
            write_head(region, object, &layout.to_head())
        })?;
        Table::open(region, name)
    }

    /// A table as it lies in its region, with room in the device's memory for what recovery makes.
    pub(crate) fn unrecovered(region: &PmRegion, name: &str, kernels: &Module) -> Result<Table> {
        let (object, layout, seed) = find(region, name)?;
        let device = region.device();
        let buffer = |bytes: u64| Buffer::zeroed(device, bytes);
        let (windows, all_slots) = (u64::from(layout.room_windows()) + 1, layout.all_slots());
        let (tags, spares) = match layout.design {
            Design::Levels => (buffer(16)?, buffer(4 * layout.cells())?),
            Design::Tags => (buffer(2 * all_slots)?, buffer(4 * windows * u64::from(layout.spares))?),
        };
        spares.fill(0xff)?;
        let (counts, taken) = (buffer(4 * COUNTS as u64)?, buffer(2 * 4 * windows)?);
        let descriptor = Descriptor {
            slots: region.address(object.offset + layout.to_head().data),
            cells: region.address(object.offset + layout.cells_at()),
            tags: tags.address(),
            spares: spares.address(),
            taken: taken.address(),
            counts: counts.address(),
            owned: 0,
            seed,
            buckets: layout.buckets << layout.growths,
            windows: layout.room_windows(),
            window_spares: layout.spares,
            stash: layout.stash,
            width: layout.width,
            hashes: layout.hashes,
            levels: layout.levels,
            units: layout.value_bytes / 16,
            ring: layout.cells() as u32,
            slot_count: all_slots as u32,
            cell_count: layout.cells() as u32,
            holes: 0,
            base: layout.windows,
            used: layout.windows,
            key_units: layout.keys.stored_bytes() / 16,
            starts: [0; 4],
            cache: 0,
        };
        let described = Buffer::new(device, Descriptor::BYTES)?;
        Ok(Table {
            region: region.clone(),
            object,
            layout,
            module: kernels.clone(),
            descriptor: Cell::new(descriptor),
            described,
            counts,
            taken,
            _held: [tags, spares],
            epoch: Cell::new(0),
            prepared: Cell::new(0),
            available: Cell::new(0),
            sorter: None,
            grown: Cell::new(0),
            cache: None,
            copy: None,
            found: Found::default(),
        })
    }

    /// The layout of a table that is not open.
    ///
    /// # Errors
    /// There is none of that name; its head is damaged.
    pub fn layout_of(region: &PmRegion, name: &str) -> Result<Layout> {
        Ok(find(region, name)?.1)
    }

    /// Its layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What recovery found.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Gives it room to sort batches of up to `operations` by window, so that a large table is gone
    /// through part by part.
    ///
    /// # Errors
    /// No room in the device's memory.
    pub fn sort_batches(&mut self, operations: u32) -> Result<()> {
        self.sorter = Some(Sorter::new(self.device(), operations)?);
        Ok(())
    }

    /// Plants holes (`GPH_HOLE_...`) in kernels that have them: for tests.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn plant(&self, holes: u32) -> Result<()> {
        self.describe(Descriptor { holes, ..self.descriptor.get() })
    }

    pub(crate) fn device(&self) -> &Rc<dyn Device> {
        self.region.device()
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        self.descriptor.get()
    }

    pub(crate) fn describe(&self, descriptor: Descriptor) -> Result<()> {
        self.descriptor.set(descriptor);
        Ok(self.described.upload(&descriptor.to_bytes())?)
    }

    pub(crate) fn kernel(&self, entry: &'static str) -> Kernel<'_> {
        self.module.kernel(entry)
    }

    /// Launches a kernel of the table with a thread an item; the table comes before its arguments.
    pub(crate) fn launch(&self, entry: &'static str, items: u64, arguments: &[Argument]) -> Result<()> {
        let arguments = [&[self.address().into()], arguments].concat();
        // Few items need no whole block.
        let threads = items.next_multiple_of(WARP).clamp(WARP, THREADS.into()) as u32;
        Ok(self.device().launch(self.kernel(entry), &Launch { arguments, ..Launch::over(items, threads, []) })?)
    }

    /// Where kernels of a program find the table: the `gphash` that `gph_run` takes.
    pub fn address(&self) -> u64 {
        self.described.address()
    }

    /// Whether no pair can have this key.
    pub fn is_reserved(&self, key: u64) -> bool {
        self.layout.keys == Keys::Words && self.layout.media().is_reserved(key)
    }

    /// Where its slots are in the region: offset and bytes.
    pub fn slots(&self) -> (u64, u64) {
        let head = self.layout.to_head();
        (self.object.offset + head.data, self.layout.all_slots() * SLOT_BYTES)
    }
}

fn find(region: &PmRegion, name: &str) -> Result<(Object, Layout, u64)> {
    let kinds = [ObjectKind::TagHash, ObjectKind::LevelHash];
    let found = kinds.iter().find_map(|&kind| region.find(name, kind).ok());
    let object = match found {
        Some(object) => object,
        None => region.find(name, ObjectKind::TagHash)?,
    };
    let head = read_head(region, &object)?;
    let layout = Layout::of_head(&head, object.kind)?;
    if layout.bytes() > object.bytes {
        return Err(region
            .corrupt(format!("the head of {name:?} describes a table larger than its object"), object.offset)
            .into());
    }
    Ok((object.clone(), layout, region.read_sealed_word(object.offset + OBJECT_WORD)?))
}
