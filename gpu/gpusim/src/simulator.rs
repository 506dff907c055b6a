//! The simulated GPU: memory, launches, and what a crash leaves.

use nearpm_ptx::{Entry, Fault, Gpu, Launch, LaunchError, MemoryError, PmRange};

use crate::allowed::Allowed;
use crate::config::ConfigError;
use crate::journal::Journal;
use crate::l2::L2;
use crate::order::{Order, Violation};
use crate::sm::{NEVER, Shared, Sm};
use crate::stalls::Stalls;
use crate::{Config, LINE, Statistics};

/// A launch that was refused, or that did what it must not.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// See there.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// See there.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// Memory that cannot be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A block does not fit into an SM.
    #[error("a block of {warps} warps and {shared} bytes of shared memory does not fit into an SM")]
    DoesNotFit {
        /// Its warps.
        warps: u64,
        /// Bytes of shared memory.
        shared: u64,
    },
    /// The launch did not end.
    #[error("the launch did not end within {0} cycles")]
    Budget(u64),
}

/// A simulated GPU with volatile and persistent memory.
#[derive(Debug)]
pub struct Simulator {
    config: Config,
    gpu: Gpu,
    now: u64,
    record: Option<(Journal, Order)>,
    stalls: Option<Stalls>,
}

impl Simulator {
    /// A GPU without any allocation.
    ///
    /// # Errors
    /// A setting that is out of bounds.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let resident = config.sms * config.warps;
        let gpu = Gpu::new(nearpm_ptx::Config { device_memory: 4 << 30, resident_blocks: resident });
        Ok(Self { config, gpu, now: 0, record: None, stalls: None })
    }

    /// What is simulated.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Records from now on what becomes durable, and in which order it has to.
    pub fn record(&mut self) {
        self.record = Some((Journal::default(), Order::default()));
    }

    /// Counts from now on what warps and persist buffers wait for.
    pub fn count_stalls(&mut self) {
        self.stalls = Some(Stalls::default());
    }

    /// What was waited for since [`Simulator::count_stalls`].
    pub fn stalls(&self) -> Option<Stalls> {
        self.stalls
    }

    /// Allocates volatile memory, zeroed.
    ///
    /// # Errors
    /// The memory is used up.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, SimulationError> {
        Ok(self.gpu.allocate(bytes)?)
    }

    /// Maps persistent memory that holds `image`, filled up to whole lines.
    pub fn map_persistent(&mut self, mut image: Vec<u8>) -> PmRange {
        image.resize(image.len().next_multiple_of(LINE as usize), 0);
        self.gpu.map_persistent(image)
    }

    /// What threads see in a persistent range.
    pub fn persistent(&self, range: &PmRange) -> &[u8] {
        self.gpu.persistent(range)
    }

    /// The memory, for the host.
    pub fn gpu_mut(&mut self) -> &mut Gpu {
        &mut self.gpu
    }

    /// Core cycles since the simulator was made.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Runs a kernel until all that it stored is durable.
    ///
    /// # Errors
    /// A launch that cannot be, a fault of the kernel, or no end within [`Config::budget`].
    pub fn launch(&mut self, entry: &Entry, launch: &Launch) -> Result<Statistics, SimulationError> {
        let mut stepped = self.gpu.begin(entry, launch)?;
        let warps = stepped.threads_a_block().div_ceil(32);
        if warps > u64::from(self.config.warps) || stepped.shared_bytes() > self.config.shared_bytes {
            return Err(SimulationError::DoesNotFit { warps, shared: stepped.shared_bytes() });
        }
        let start = self.now;
        let mut statistics = Statistics::default();
        // Absolute times, so that what a channel keeps from before is of no matter: each launch
        // finds its caches cold.
        let mut l2 = L2::new(&self.config);
        let mut sms: Vec<Sm> = (0..self.config.sms as usize).map(|id| Sm::new(id, &self.config)).collect();
        let first = start + self.config.launch_cycles;
        while sms.iter_mut().fold(false, |any, sm| any | sm.start_block(first, &mut stepped, &self.config)) {}
        let (journal, order) = match &mut self.record {
            Some((journal, order)) => (Some(journal), Some(order)),
            None => (None, None),
        };
        let instructions = stepped.instructions().clone();
        let mut shared = Shared {
            config: &self.config,
            gpu: &mut self.gpu,
            stepped: &mut stepped,
            instructions,
            l2: &mut l2,
            statistics: &mut statistics,
            stalls: self.stalls.as_mut(),
            journal,
            order,
        };
        let (counted, end) = run(&mut sms, &mut shared, start)?;
        let (warp_instructions, thread_instructions) = stepped.executed();
        (statistics.pm_read_bytes, statistics.pm_written_bytes) = l2.pm.bytes();
        statistics.gddr_bytes = l2.gddr_bytes();
        self.now = end;
        if let Some((_, order)) = &mut self.record {
            order.end_launch();
        }
        let drain_cycles = end - counted;
        Ok(Statistics { cycles: counted - start, drain_cycles, warp_instructions, thread_instructions, ..statistics })
    }

    /// What became durable since [`Simulator::record`].
    pub fn journal(&mut self) -> Option<&Journal> {
        let (journal, _) = self.record.as_mut()?;
        journal.sort();
        Some(journal)
    }

    /// Whether at each cycle since [`Simulator::record`] the model allows what was durable. Once:
    /// it uses up what was recorded of the order.
    ///
    /// # Errors
    /// The first cycle at which it does not.
    pub fn check_order(&mut self) -> Result<usize, Violation> {
        let Some((journal, order)) = &mut self.record else { return Ok(0) };
        journal.sort();
        for event in journal.events() {
            order.durable(event.at, &event.stores)?;
        }
        Ok(journal.events().len())
    }

    /// What the model allows to be durable, of what was stored since [`Simulator::record`], which
    /// ends.
    pub fn allowed(&mut self) -> Option<Allowed> {
        self.record.take().map(|(_, order)| Allowed::new(order))
    }
}

/// From event to event, until all threads have ended and all is durable. Gives the cycle until
/// which is counted, and the last one.
fn run(sms: &mut [Sm], shared: &mut Shared<'_>, start: u64) -> Result<(u64, u64), SimulationError> {
    let (mut now, mut draining, mut counted) = (start, false, 0);
    let all_counts = shared.config.final_flush || shared.config.model == crate::Model::Epoch;
    loop {
        let next = sms.iter().map(|sm| sm.wake).min().unwrap_or(NEVER);
        if next == NEVER {
            if sms.iter().all(Sm::idle) {
                return Ok((if all_counts { now } else { counted.min(now) }, now));
            }
            if !draining {
                return Err(SimulationError::Fault(shared.stepped.stuck()));
            }
            return Err(SimulationError::Budget(now - start));
        }
        now = next;
        if now - start > shared.config.budget {
            return Err(SimulationError::Budget(shared.config.budget));
        }
        for sm in sms.iter_mut().filter(|sm| sm.wake <= now) {
            sm.cycle(now, shared)?;
        }
        if !draining && sms.iter().all(|sm| !sm.busy()) {
            draining = true;
            counted = sms.iter().filter_map(Sm::last_acknowledgement).fold(now, u64::max);
            sms.iter_mut().for_each(|sm| sm.drain(now + 1));
        }
    }
}
