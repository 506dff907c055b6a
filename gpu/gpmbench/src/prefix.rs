//! PS: prefix sums with native persistence: no log, no recovery; a run goes on where a crash ended
//! it.

use anyhow::{Result, ensure};
use nearpm_gpu::{Argument, Buffer, Launch, Module, Object, ObjectKind, PmRegion};

/// Numbers that are stored at a time.
const PIECE: usize = 1 << 20;

/// Sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Arrays.
    pub arrays: u32,
    /// Blocks an array.
    pub blocks: u32,
    /// Threads a block, each for a number: whole warps, up to 1024.
    pub threads: u32,
}

impl Sizes {
    /// Numbers in all arrays.
    pub fn count(&self) -> usize {
        self.arrays as usize * self.blocks as usize * self.threads as usize
    }

    fn all_blocks(&self) -> u32 {
        self.arrays * self.blocks
    }

    /// Bytes of a region for it: input, sums, what is done.
    pub fn region_bytes(&self) -> u64 {
        (8 * self.count() as u64 + 4 * u64::from(self.all_blocks()) + (64 << 10)).next_multiple_of(4096)
    }
}

/// The program, open.
pub struct Sums {
    region: PmRegion,
    sizes: Sizes,
    module: Module,
    input: Object,
    sums: Object,
    /// A word a block: the run whose sums are there.
    done: Object,
    /// The run's number: 0 for none.
    run: Object,
    /// The input, and what blocks add up to, in the device's memory.
    numbers: Buffer,
    totals: Buffer,
}

impl Sums {
    /// Makes its objects in a region.
    ///
    /// # Errors
    /// No room; sizes that no launch has.
    pub fn create(region: &PmRegion, sizes: Sizes, module: &Module) -> Result<Sums> {
        ensure!(
            sizes.threads.is_multiple_of(32) && (32..=1024).contains(&sizes.threads) && sizes.all_blocks() > 0,
            "{sizes:?} is no launch: blocks have 32 to 1024 threads, in whole warps"
        );
        let numbers = 4 * sizes.count() as u64;
        let flags = 4 * u64::from(sizes.all_blocks());
        for (name, bytes) in [("input", numbers), ("sums", numbers), ("done", flags), ("run", 8)] {
            region.add(name, ObjectKind::Data, bytes, |_| Ok(()))?;
        }
        Sums::open(region, sizes, module)
    }

    /// Opens it.
    ///
    /// # Errors
    /// The region has none of these sizes.
    pub fn open(region: &PmRegion, sizes: Sizes, module: &Module) -> Result<Sums> {
        let find = |name| region.find(name, ObjectKind::Data);
        let (input, sums, done, run) = (find("input")?, find("sums")?, find("done")?, find("run")?);
        let numbers = 4 * sizes.count() as u64;
        ensure!(input.bytes == numbers, "the region has {} bytes of numbers, {sizes:?} are {numbers}", input.bytes);
        let memory = |bytes| Buffer::new(region.device(), bytes);
        let (totals, numbers) = (memory(4 * u64::from(sizes.all_blocks()))?, memory(numbers)?);
        let (region, module) = (region.clone(), module.clone());
        let opened = Sums { region, sizes, module, input, sums, done, run, numbers, totals };
        opened.load()?;
        Ok(opened)
    }

    /// Brings the input from PM to the device's memory.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn load(&self) -> Result<()> {
        let from = self.region.address(self.input.offset);
        self.region.device().copy(self.numbers.address(), from, self.input.bytes)?;
        Ok(self.region.device().synchronize()?)
    }

    /// Begins a run with another input: what earlier runs have done does not count.
    ///
    /// # Errors
    /// Another number of numbers than the sizes'.
    pub fn begin(&self, input: &[u32]) -> Result<()> {
        ensure!(input.len() == self.sizes.count(), "{} numbers were given, not {}", input.len(), self.sizes.count());
        for (piece, at) in input.chunks(PIECE).zip((0..).step_by(4 * PIECE)) {
            let bytes: Vec<u8> = piece.iter().flat_map(|number| number.to_le_bytes()).collect();
            self.region.write(self.input.offset + at, &bytes)?;
        }
        self.load()?;
        self.again()
    }

    /// Begins a run with the same input.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn again(&self) -> Result<()> {
        let next = match self.number()? {
            // What a wrapped number would find done is wiped.
            u32::MAX => {
                self.region.zero(self.done.offset, self.done.bytes)?;
                1
            }
            number => number + 1,
        };
        Ok(self.region.write(self.run.offset, &u64::from(next).to_le_bytes())?)
    }

    fn number(&self) -> Result<u32> {
        let bytes = self.region.read_vec(self.run.offset, 4)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("a number has 4 bytes")))
    }

    /// Does what is not done of the run.
    ///
    /// # Errors
    /// No run has begun; what the device refuses.
    pub fn run(&self) -> Result<()> {
        let number = self.number()?;
        ensure!(number != 0, "no run has begun");
        let at = |object: &Object| self.region.address(object.offset);
        let (blocks, threads, device) = (self.sizes.all_blocks(), self.sizes.threads, self.region.device());
        let (numbers, totals) = (self.numbers.address().into(), self.totals.address().into());
        let launch = |kernel, blocks, arguments: &[Argument]| {
            device.launch(self.module.kernel(kernel), &Launch { blocks, threads, arguments: arguments.to_vec() })
        };
        launch("block_totals", blocks, &[numbers, totals])?;
        launch("block_offsets", self.sizes.arrays, &[totals, self.sizes.blocks.into()])?;
        launch("whole_sums", blocks, &[numbers, totals, at(&self.sums).into(), at(&self.done).into(), number.into()])?;
        Ok(device.synchronize()?)
    }

    /// The sums.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn sums(&self) -> Result<Vec<u32>> {
        let bytes = self.region.read_vec(self.sums.offset, self.sums.bytes as usize)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|&sum| u32::from_le_bytes(sum)).collect())
    }
}

/// Numbers that depend on nothing but the seed.
pub fn input_of(seed: u32, count: usize) -> Vec<u32> {
    (0..count as u32).map(|place| crate::pattern::pattern(place, seed) % 1000).collect()
}

/// The sums as a processor has them: the oracle.
pub fn sums_of(input: &[u32], sizes: Sizes) -> Vec<u32> {
    let array = (sizes.blocks * sizes.threads) as usize;
    let of_array = |numbers: &[u32]| -> Vec<u32> {
        let mut sum = 0u32;
        numbers.iter().map(|&number| (sum = sum.wrapping_add(number), sum).1).collect()
    };
    input.chunks(array).flat_map(of_array).collect()
}
