//! The table: create, open, run batches.

use std::cell::Cell;
use std::rc::Rc;

use nearpm_gpm::{Sorter, read_head, write_head};
use nearpm_gpu::{Argument, Buffer, Device, Kernel, Launch, Module, Object, ObjectKind, PmRegion};
use nearpm_interface::region::OBJECT_WORD;

use crate::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::kernels::{level_kernels, tag_kernels};
use crate::layout::{Design, Layout, SLOT};
use crate::operation::{Answer, Op, Operations, Outcome, Request};
use crate::recovery::{self, Found};

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;
/// Words of the counts that kernels keep: `GPH_COUNTS`.
pub(crate) const COUNTS: usize = 16;
/// Batches from so many operations on are sorted by window.
const SORTED_FROM: u32 = 1 << 15;

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
    epoch: Cell<u32>,
    /// Cells that design P's ring has for certain.
    available: Cell<u64>,
    sorter: Option<Sorter>,
    found: Found,
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

    /// Opens a table, whatever its design, and recovers it: what had been answered before a crash is there, of everything else each operation has
    /// happened or not.
    ///
    /// # Errors
    /// There is none of that name; [`Error::Damaged`]: nothing was changed then; no room in the device's memory.
    pub fn open(region: &PmRegion, name: &str) -> Result<Table> {
        let kernels = match Table::layout_of(region, name)?.design {
            Design::Levels => level_kernels(),
            Design::Tags => tag_kernels(),
        };
        let table = Table::open_with(region, name, kernels)?;
        match table.found.is_sound() {
            true => Ok(table),
            false => Err(Error::Damaged { table: name.to_owned(), found: table.found }),
        }
    }

    /// The same with other kernels, whatever recovery finds: for tests, and to repair.
    ///
    /// # Errors
    /// As for [`Table::open`].
    pub fn open_with(region: &PmRegion, name: &str, kernels: &Module) -> Result<Table> {
        let (object, layout, seed) = find(region, name)?;
        let device = region.device();
        let buffer = |bytes: u64| Buffer::zeroed(device, bytes);
        let (windows, all_slots) = (u64::from(layout.windows) + 1, layout.all_slots());
        let (tags, spares) = match layout.design {
            Design::Levels => (buffer(16)?, buffer(4 * layout.cells())?),
            Design::Tags => (buffer(2 * all_slots)?, buffer(4 * windows * u64::from(layout.spares))?),
        };
        spares.fill(0xff)?;
        let (counts, taken) = (buffer(4 * COUNTS as u64)?, buffer(4 * windows)?);
        let descriptor = Descriptor {
            slots: region.address(object.offset + layout.to_head().data),
            cells: region.address(object.offset + layout.cells_at()),
            tags: tags.address(),
            spares: spares.address(),
            taken: taken.address(),
            counts: counts.address(),
            owned: 0,
            seed,
            buckets: layout.buckets,
            windows: layout.windows,
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
        };
        let described = Buffer::new(device, Descriptor::BYTES)?;
        let mut table = Table {
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
            available: Cell::new(0),
            sorter: None,
            found: Found::default(),
        };
        table.found = recovery::recover(&table)?;
        Ok(table)
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

    /// Gives it room to sort batches of up to `operations` by window, so that a large table is gone through part by part.
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
        Ok(self.device().launch(self.kernel(entry), &Launch { arguments, ..Launch::over(items, THREADS, []) })?)
    }

    /// Where kernels of a program find the table: the `gphash` that `gph_run` takes.
    pub fn address(&self) -> u64 {
        self.described.address()
    }

    /// Begins an epoch for kernels of a program that call `gph_run`, with up to `cells` inserts and updates: the number that goes into the `epoch` of
    /// their copy of the table. It ends when the next one begins.
    ///
    /// # Errors
    /// Fewer cells than that.
    pub fn begin_epoch(&self, cells: u64) -> Result<u32> {
        match self.layout.design {
            Design::Tags => self.device().fill(self.taken.address(), 0, self.taken.bytes())?,
            Design::Levels => self.reserve(cells)?,
        }
        self.epoch.set(self.epoch.get().wrapping_add(1));
        Ok(self.epoch.get())
    }

    /// Sets cells of design P's ring aside.
    fn reserve(&self, cells: u64) -> Result<()> {
        if self.available.get() < cells {
            let counts = self.counts.download()?;
            let [taken, given] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| counts[at + byte])));
            self.available.set(given - taken);
        }
        match self.available.get().checked_sub(cells) {
            Some(rest) => self.available.set(rest),
            None => {
                return Err(Error::Invalid(format!(
                    "{} cells are spare, a batch that may need {cells} was to begin",
                    self.available.get()
                )));
            }
        }
        Ok(())
    }

    /// Runs a batch, whose operations all happen at the same time, in any order. It does not wait; its outcomes count when the device has done it.
    ///
    /// # Errors
    /// No values where some are put; what the device refuses.
    pub fn run(&self, batch: &Operations) -> Result<()> {
        if batch.puts > 0 && batch.values.is_none() {
            return Err(Error::Invalid("a batch that puts values has none".to_owned()));
        }
        let epoch = self.begin_epoch(batch.puts.into())?;
        let order = self.order_of(batch)?;
        let address = |buffer: &Option<Buffer>| buffer.as_ref().map_or(0, Buffer::address).into();
        let how = [epoch.into(), batch.count.into(), (batch.op as u32).into(), order.into(), address(&batch.ops)];
        let data = [
            batch.keys.address().into(),
            address(&batch.values),
            address(&batch.found),
            batch.outcomes.address().into(),
        ];
        self.launch("gph_run_batch", batch.count.into(), &[&how[..], &data].concat())
    }

    /// Numbers of a batch's operations by window, if it is worth it; 0 as they come.
    fn order_of(&self, batch: &Operations) -> Result<u64> {
        let windows = self.layout.windows;
        let Some(sorter) = self
            .sorter
            .as_ref()
            .filter(|sorter| windows > 1 && (SORTED_FROM..=sorter.capacity()).contains(&batch.count))
        else {
            return Ok(0);
        };
        let (to, numbers) = sorter.input();
        let bits = u32::BITS - (windows - 1).leading_zeros();
        // Two passes of the sort.
        let more = 16_u32.saturating_sub(bits);
        self.launch(
            "gph_windows",
            batch.count.into(),
            &[batch.count.into(), more.into(), batch.keys.address().into(), to.into(), numbers.into()],
        )?;
        Ok(sorter.sort(batch.count, 0, more + bits)?.1)
    }

    /// Runs a batch of the processor's and waits. What finds no slot or cell because operations of the same batch have just given it up is tried
    /// again in another batch.
    ///
    /// # Errors
    /// [`Error::Reserved`] before anything is done; [`Error::Full`], [`Error::NoCells`] behind everything else.
    pub fn batch(&self, requests: &[Request]) -> Result<Vec<Answer>> {
        let mut answers = vec![None; requests.len()];
        let mut left: Vec<usize> = (0..requests.len()).collect();
        loop {
            let some: Vec<&Request> = left.iter().map(|&at| &requests[at]).collect();
            let done = self.batch_once(&some)?;
            let before = left.len();
            let mut failed = None;
            let mut again = Vec::new();
            for (&at, answer) in left.iter().zip(done) {
                if matches!(answer.outcome, Outcome::Full | Outcome::NoCell) {
                    failed.get_or_insert((requests[at].key, answer.outcome));
                    again.push(at);
                }
                answers[at] = Some(answer);
            }
            let failures = again.len();
            match failed {
                None => return Ok(answers.into_iter().flatten().collect()),
                // The second time nothing of theirs was given up any more.
                Some((key, outcome)) if failures == before => {
                    return Err(match outcome {
                        Outcome::NoCell => Error::NoCells { key, failed: failures },
                        _ => Error::Full { key, failed: failures },
                    });
                }
                Some(_) => left = again,
            }
        }
    }

    fn batch_once(&self, requests: &[&Request]) -> Result<Vec<Answer>> {
        let bytes = self.layout.value_bytes as usize;
        let keys: Vec<u64> = requests.iter().map(|request| request.key).collect();
        if let Some(&key) = keys.iter().find(|&&key| self.is_reserved(key)) {
            return Err(Error::Reserved { key, why: self.layout.design.reserved() });
        }
        let mut values = vec![0; bytes * requests.len()];
        for (place, request) in values.chunks_exact_mut(bytes).zip(requests) {
            if request.value.len() != if request.op.puts() { bytes } else { 0 } {
                return Err(Error::Invalid(format!(
                    "{:?} of the key {:#018x} comes with {} bytes, a value has {bytes}",
                    request.op,
                    request.key,
                    request.value.len()
                )));
            }
            place[..request.value.len()].copy_from_slice(&request.value);
        }
        let device = self.device();
        let ops: Vec<Op> = requests.iter().map(|request| request.op).collect();
        let room = || Buffer::zeroed(device, values.len().max(1) as u64);
        let (given, found) = (room()?, room()?);
        given.upload(&values)?;
        let batch = Operations::new(device, Op::Get, &keys)?.each(device, &ops)?.with_values(given).with_found(found);
        self.run(&batch)?;
        let (outcomes, read) = (self.outcomes(&batch)?, batch.found.as_ref().map_or(Ok(Vec::new()), Buffer::download)?);
        Ok(ops
            .iter()
            .zip(outcomes)
            .enumerate()
            .map(|(at, (&op, outcome))| {
                let reads = matches!(op, Op::Get | Op::Rmw) && outcome == Outcome::Done;
                Answer { outcome, value: reads.then(|| read[at * bytes..][..bytes].to_vec()) }
            })
            .collect())
    }

    /// The outcomes of a batch, when the device has done it.
    ///
    /// # Errors
    /// What a kernel did wrong.
    pub fn outcomes(&self, batch: &Operations) -> Result<Vec<Outcome>> {
        let codes = batch.outcomes.download_words()?;
        let outcome = |&code: &u32| {
            Outcome::from_code(code)
                .ok_or_else(|| Error::Invalid(format!("a kernel left the outcome {code}, which there is not")))
        };
        codes[..batch.count as usize].iter().map(outcome).collect()
    }

    /// Whether no pair can have this key.
    pub fn is_reserved(&self, key: u64) -> bool {
        key == 0 || self.layout.design == Design::Levels && key >> 32 >= 0xffff_fffd
    }

    /// Where its slots are in the region: offset and bytes.
    pub fn slots(&self) -> (u64, u64) {
        let head = self.layout.to_head();
        (self.object.offset + head.data, self.layout.all_slots() * SLOT)
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
