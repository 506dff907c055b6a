//! Power cuts under programs that know nothing of them.
//!
//! The program works on volatile memory; a line reaches the image by the library's write-backs and
//! fences alone, or by eviction ([`TestMemory`]). When power fails, what survives is written to the
//! pool's file, and the process ends at once. SIGKILL cannot show this: the page cache survives it.

use std::str::FromStr;
use std::sync::Arc;

use super::{Event, MappedMemory, Memory, TestMemory};
use crate::error::Error;

/// The status that a process ends with when its power is cut.
pub const CUT_STATUS: i32 = 86;

/// What a process prints at its orderly end where a power cut was armed and did not come, behind
/// which stands in how many events, or cycles.
const NOT_CUT: &str = "power was not cut in ";

/// What is printed of a power cut that did not come in so many events or cycles, which `unit` says.
pub fn not_cut(count: u64, unit: &str) -> String {
    format!("{NOT_CUT}{count} {unit}")
}

/// The number of events or cycles in what a process has printed by [`not_cut`].
pub fn not_cut_in(text: &str) -> Option<u64> {
    let (_, behind) = text.split_once(NOT_CUT)?;
    behind.split(' ').next()?.parse().ok()
}

/// When power fails, and what survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// At the start of this fence, from 1; 0 for none.
    pub fence: u64,
    /// At the start of this event (store, write-back or fence of the library), from 1; 0 for none.
    pub event: u64,
    /// Decides what survives.
    pub seed: u64,
    /// A dirty line is evicted at about one event in so many; 0 never.
    pub evict_one_in: u64,
    /// The file is an ordinary one, and not persistent memory: what survives is decided by sectors,
    /// of which the system writes one where it would evict a line.
    pub torn: bool,
}

impl FromStr for PowerCut {
    type Err = String;

    /// Reads `fence=N,event=N,seed=N,evict=N,torn=1`, each part once at most.
    fn from_str(text: &str) -> Result<PowerCut, String> {
        let mut cut = PowerCut::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} has no value"))?;
            let value: u64 = value.parse().map_err(|_| format!("{value:?} is no number"))?;
            match name {
                "fence" => cut.fence = value,
                "event" => cut.event = value,
                "seed" => cut.seed = value,
                "evict" => cut.evict_one_in = value,
                "torn" => cut.torn = value != 0,
                _ => return Err(format!("{name:?} is none of fence, event, seed, evict, torn")),
            }
        }
        Ok(cut)
    }
}

/// A file as memory whose power may be cut.
pub(crate) struct DurableImage {
    memory: TestMemory,
    file: Arc<MappedMemory>,
}

impl DurableImage {
    /// Loads the file, and arms the cut.
    pub fn load(file: MappedMemory, cut: PowerCut) -> DurableImage {
        let file = Arc::new(file);
        let mut image = vec![0; file.bytes() as usize];
        file.load(0, &mut image);
        let memory = TestMemory::from_image(image).evict(cut.evict_one_in, cut.seed);
        let (mut fences, medium) = (0, file.clone());
        memory.probe(move |number, event, survive| {
            fences += u64::from(event == Event::Fence);
            if number == cut.event || (event == Event::Fence && fences == cut.fence) {
                medium.store(0, &survive(cut.seed));
                end_process();
            }
        });
        DurableImage { memory, file }
    }
}

/// Ends the process without anything that an orderly end would do.
#[allow(unsafe_code)]
pub(super) fn end_process() -> ! {
    // SAFETY: the call does not return and touches no memory.
    unsafe { libc::_exit(CUT_STATUS) }
}

impl Drop for DurableImage {
    /// The machine is switched off in order: what was made durable is in the file.
    fn drop(&mut self) {
        self.memory.stop_probe();
        self.file.store(0, &self.memory.durable());
        eprintln!("{}", not_cut(self.memory.events(), "events"));
    }
}

impl Memory for DurableImage {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.memory.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.memory.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        self.memory.write_back(offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        self.memory.fence()
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        self.memory.invalidate(offset, bytes);
    }
    fn address(&self) -> Option<*mut u8> {
        self.memory.address()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_read_from_text() {
        let cut = "fence=3,seed=9,evict=2".parse::<PowerCut>().unwrap();
        assert_eq!(cut, PowerCut { fence: 3, event: 0, seed: 9, evict_one_in: 2, torn: false });
        assert!("torn=1".parse::<PowerCut>().unwrap().torn);
        for bad in ["fence", "fence=x", "moon=1"] {
            assert!(bad.parse::<PowerCut>().is_err(), "{bad}");
        }
    }
}
