//! Runs a kernel warp by warp and tells the order what it does.

use std::collections::BTreeSet;

use nearpm_ptx::{
    Access, Arguments, Config, Fault, Gpu, Launch, LaunchError, MemoryError, Module, Next, NoSuchEntry, ParseError,
    Stepped, Unit, Where,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::finding::Finding;
use super::order::{Order, Who};
use crate::Scope;

/// An argument of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A pointer to this many bytes of PM, and what each word of 32 bits holds at first.
    Pm(u64, u32),
    /// A pointer to this many bytes of volatile memory, zero at first.
    Volatile(u64),
    /// A number of 32 bits.
    Number(u32),
}

impl std::str::FromStr for Argument {
    type Err = String;

    /// `pm:BYTES`, `pm:BYTES:WORD`, `gpu:BYTES` or a number; numbers may be hexadecimal.
    fn from_str(text: &str) -> Result<Argument, String> {
        let wrong = || format!("`{text}` is no argument: pm:BYTES, pm:BYTES:WORD, gpu:BYTES or a number");
        let number = |text: &str| {
            let number =
                text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
            number.ok_or_else(wrong)
        };
        let bytes = |text: &str| {
            number(text).and_then(|n| if (1..=1 << 30).contains(&n) { Ok(u64::from(n)) } else { Err(wrong()) })
        };
        match text.split(':').collect::<Vec<_>>().as_slice() {
            ["pm", size] => Ok(Argument::Pm(bytes(size)?, 0)),
            ["pm", size, word] => Ok(Argument::Pm(bytes(size)?, number(word)?)),
            ["gpu", size] => Ok(Argument::Volatile(bytes(size)?)),
            [text] => Ok(Argument::Number(number(text)?)),
            _ => Err(wrong()),
        }
    }
}

/// What to check.
#[derive(Clone, Debug)]
pub struct Job {
    /// The kernel.
    pub kernel: String,
    /// Blocks of the launch.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Interleavings of warps, from seeds 0 on.
    pub schedules: u64,
    /// Warp instructions after which a run is given up.
    pub budget: u64,
}

/// A kernel that cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The text is no PTX that the interpreter knows.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// There is no such kernel.
    #[error(transparent)]
    Entry(#[from] NoSuchEntry),
    /// The launch was refused.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// There is no memory for the arguments.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The kernel did what it must not.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// It does not end.
    #[error("the kernel has not ended after {0} warp instructions: raise the budget, or it waits for what never comes")]
    DoesNotEnd(u64),
}

/// Checks a kernel of a PTX text: what is wrong in any of the interleavings.
///
/// # Errors
/// [`CheckError`].
pub fn check(ptx: &str, job: &Job) -> Result<BTreeSet<Finding>, CheckError> {
    let module = Module::parse(ptx)?;
    let entry = module.entry(&job.kernel)?;
    let mut findings = BTreeSet::new();
    for seed in 0..job.schedules {
        let mut gpu = Gpu::new(Config::default());
        let mut arguments = Arguments::new();
        for argument in &job.arguments {
            arguments = match *argument {
                Argument::Pm(bytes, word) => {
                    let image = word.to_le_bytes().into_iter().cycle().take(bytes as usize).collect();
                    arguments.pointer(gpu.map_persistent(image).address)
                }
                Argument::Volatile(bytes) => arguments.pointer(gpu.allocate(bytes)?),
                Argument::Number(number) => arguments.u32(number),
            };
        }
        let launch = Launch::linear(job.blocks, job.threads, arguments);
        let stepped = gpu.begin(entry, &launch)?;
        findings.extend(Follower { gpu, stepped, order: Order::default() }.run(seed, job.budget)?);
    }
    Ok(findings)
}

struct Follower {
    gpu: Gpu,
    stepped: Stepped,
    order: Order,
}

impl Follower {
    fn run(mut self, seed: u64, budget: u64) -> Result<BTreeSet<Finding>, CheckError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let warps = self.stepped.threads_a_block().div_ceil(32) as usize;
        let mut ready: Vec<(usize, usize)> = Vec::new();
        while let Some(block) = self.stepped.start_block() {
            ready.extend((0..warps).map(|warp| (block, warp)));
        }
        let mut steps = 0;
        while !ready.is_empty() {
            ready.retain(|(block, warp)| !self.stepped.ended(*block, *warp));
            // From a random warp on, the first that can go on: a few steps, so that some run ahead
            // of others.
            let start = random.random_range(0..ready.len().max(1));
            let order = (0..ready.len()).map(|i| ready[(start + i) % ready.len()]);
            let able: Option<(usize, usize)> = order.into_iter().find(|(b, w)| self.stepped.next(*b, *w).is_some());
            let Some((block, warp)) = able else {
                if ready.is_empty() {
                    break;
                }
                return Err(self.stepped.stuck().into());
            };
            for _ in 0..random.random_range(1..40) {
                let Some(next) = self.stepped.next(block, warp) else { break };
                self.tell(block, warp, next);
                self.stepped.step(&mut self.gpu, block, warp)?;
                steps += 1;
            }
            if steps > budget {
                return Err(CheckError::DoesNotEnd(budget));
            }
        }
        Ok(self.order.findings)
    }

    /// Tells the order what a warp does next.
    fn tell(&mut self, block: usize, warp: usize, next: Next) {
        let instruction = &self.stepped.instructions()[next.instruction as usize];
        let (unit, line) = (instruction.unit, instruction.line);
        let first = self.stepped.first_thread(block, warp);
        let number = self.stepped.block_number(block);
        let lanes = (0..32).filter(|lane| next.lanes >> lane & 1 == 1);
        let access = self.stepped.access(&self.gpu, block, warp, next);
        for lane in lanes {
            let who = Who { thread: first + lane as u64, block: number, line };
            self.order.go_on(who);
            match unit {
                Unit::Barrier => self.order.arrive(who),
                Unit::Fence(scope) => self.order.fence(who, Some(of(scope)), false),
                // A `fence.acq_rel` of the system is a dFence, one of the device an oFence: no
                // compiler makes them of CUDA's own fences.
                Unit::LightFence(nearpm_ptx::Scope::System) => self.order.fence(who, Some(Scope::System), true),
                Unit::LightFence(_) => self.order.fence(who, None, false),
                Unit::Memory(kind, strong) => {
                    let Some(access) = access.filter(|access| access.place == Where::Global) else { continue };
                    let persistent = access.persistent >> lane & 1 == 1;
                    let scope = strong.map(of).filter(|scope| *scope < Scope::System);
                    for word in 0..access.bytes.div_ceil(4) {
                        let address = access.addresses[lane] / 4 + word;
                        self.access(kind, who, address, persistent, scope);
                    }
                }
                _ => {}
            }
        }
    }

    fn access(&mut self, kind: Access, who: Who, address: u64, persistent: bool, scope: Option<Scope>) {
        match kind {
            Access::Load => self.order.load(who, address, scope),
            Access::Store => self.order.store(who, address, persistent, scope),
            // An atomic is no persist operation: it reads and stores, and fences around it order.
            _ => {
                self.order.load(who, address, None);
                self.order.store(who, address, persistent, None);
            }
        }
    }
}

fn of(scope: nearpm_ptx::Scope) -> Scope {
    match scope {
        nearpm_ptx::Scope::Block => Scope::Block,
        nearpm_ptx::Scope::Device => Scope::Device,
        nearpm_ptx::Scope::System => Scope::System,
    }
}
