//! Starting ranks as processes.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;

use super::Shm;
use super::map::Map;
use super::meeting::{Meeting, note_end, note_process};
use crate::error::{Error, Result};

/// Tells a process of its world: descriptor of the memory file, rank, ranks, bytes of a window.
const VARIABLE: &str = "NEARPM_GVR_WORLD";

/// Ranks that were started.
pub struct Launched {
    map: Map,
    children: Vec<Option<Child>>,
    ends: Vec<Option<ExitStatus>>,
}

/// Starts `ranks` processes, each by the command that `program` gives, with a window of `window`
/// bytes each. They join by [`launched`].
///
/// # Errors
/// [`Error::System`] if one cannot be started; those that run are killed.
pub fn launch(ranks: usize, window: u64, program: impl Fn(usize) -> Command) -> Result<Launched> {
    let (map, window) = Shm::create(ranks, window)?;
    let mut launched = Launched { map, children: Vec::new(), ends: vec![None; ranks] };
    for rank in 0..ranks {
        let file = launched.map.file().as_raw_fd();
        let mut command = program(rank);
        command.env(VARIABLE, format!("{file}:{rank}:{ranks}:{window}"));
        let what = format!("start rank {rank} ({})", command.get_program().to_string_lossy());
        let child = command.spawn().map_err(Error::io(what))?;
        note_process(&launched.map, rank, child.id());
        launched.children.push(Some(child));
    }
    Ok(launched)
}

/// As [`launch`], and waits for all: gives how each ended.
///
/// # Errors
/// As [`launch`].
pub fn launch_all(ranks: usize, window: u64, program: impl Fn(usize) -> Command) -> Result<Vec<ExitStatus>> {
    launch(ranks, window, program)?.wait()
}

impl Launched {
    /// Process number of a rank that has not been waited for.
    pub fn process(&self, rank: usize) -> Option<u32> {
        self.children[rank].as_ref().map(Child::id)
    }

    /// Kills a rank, as `kill -9` does.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn kill(&mut self, rank: usize) -> Result<()> {
        self.children[rank].as_mut().map_or(Ok(()), Child::kill).map_err(Error::io(format!("kill rank {rank}")))
    }

    /// Takes what has ended; tells whether any rank still runs.
    fn reap(&mut self) -> Result<bool> {
        for (rank, place) in self.children.iter_mut().enumerate() {
            let Some(child) = place else { continue };
            if let Some(end) = child.try_wait().map_err(Error::io(format!("wait for rank {rank}")))? {
                note_end(&self.map, rank);
                self.ends[rank] = Some(end);
                *place = None;
            }
        }
        Ok(self.children.iter().any(Option::is_some))
    }

    /// Waits for all ranks and gives how each ended.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn wait(mut self) -> Result<Vec<ExitStatus>> {
        while self.reap()? {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Ok(self.ends.iter().map(|end| end.unwrap_or_else(|| ExitStatus::from_raw(0))).collect())
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            // They may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The world that this process was started for, `None` if it was not started by [`launch`].
///
/// # Errors
/// [`Error::BadOption`] if the variable makes no sense; [`Error::DeadRank`] if another rank does
/// not come.
pub fn launched() -> Result<Option<Shm>> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
    let refuse = || Error::option(format!("{VARIABLE} is {text:?}, which no launcher has set: unset it"));
    let numbers: Vec<u64> =
        text.split(':').map(str::parse).collect::<std::result::Result<_, _>>().map_err(|_| refuse())?;
    let &[file, rank, ranks, window] = numbers.as_slice() else { return Err(refuse()) };
    let (rank, ranks) = (rank as usize, ranks as usize);
    let map = Map::open(own(file as i32).ok_or_else(refuse)?)?;
    let bytes = window.checked_mul(ranks as u64).and_then(|bytes| bytes.checked_add(super::meeting::head_bytes(ranks)));
    if rank >= ranks || bytes != Some(map.bytes()) {
        return Err(refuse());
    }
    Shm::new(Arc::new(map), rank, ranks, window, Meeting::of_processes(rank, ranks)).map(Some)
}

/// A descriptor of this process that is a file.
#[allow(unsafe_code)]
fn own(file: i32) -> Option<OwnedFd> {
    // SAFETY: the descriptor is borrowed for the call alone, and a number that is none is refused
    // by the system.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(file) };
    if file < 3 || rustix::fs::fstat(borrowed).is_err() {
        return None;
    }
    // A copy: the number itself stays open for a second call.
    rustix::io::dup(borrowed).ok()
}
