//! The socket: one client at a time, and a word for those who come meanwhile.
//!
//! While a client is served, another listener has the socket's path: it answers each who connects with EBUSY, so that nobody waits in a
//! queue that nobody looks at.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nearpm_interface::geometry::{COMMAND_BAR, MSIX_BAR, MSIX_BAR_BYTES, PM_BAR, REGISTER_BAR};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS,
    VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_MMAP, VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE,
    vfio_region_info, vfio_region_sparse_mmap_area,
};
use vfio_user::{IrqInfo, Server, ServerRegion, SparseArea};

use crate::bus::VECTORS;
use crate::engine::{Engine, WindowMode};
use crate::function::{Function, Shared};
use nearpm_sim::host::config_space::SPACE_BYTES;

/// Errno of a card that has a client: EBUSY.
const BUSY: u32 = 16;
/// Bytes of a message's header: identifier, command, size, flags, error.
const HEADER_BYTES: usize = 16;
/// A reply, and one that tells of an error.
const REPLY_WITH_ERROR: u32 = 0x21;
/// Milliseconds after which a door looks whether it is closed.
const LOOK_MS: u8 = 20;
/// How long one who is refused may take to say what for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Serves a card. Returns only when the socket cannot be made.
pub fn serve(shared: &Arc<Shared>, path: &Path) -> Result<()> {
    if UnixStream::connect(path).is_ok() {
        bail!("{} is in use by another process", path.display());
    }
    let mut listener = listen(path)?;
    loop {
        wait_for_client(&listener, PollTimeout::NONE)?;
        let door = Door::new(path)?;
        let regions = regions(&shared.engine());
        let server = Server::from_owned_fd(OwnedFd::from(listener), true, interrupts(), regions);
        let mut function = Function::new(shared.clone());
        // What a client sends cannot take the card down: the library panics on some of it.
        match catch_unwind(AssertUnwindSafe(|| server.run(&mut function))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("nearpm-sim: the client has gone: {error}"),
            Err(_) => eprintln!("nearpm-sim: the client broke the protocol"),
        }
        drop(function);
        listener = listen(path)?;
        drop(door);
    }
}

/// A listener that has the path, instead of who had it.
fn listen(path: &Path) -> Result<UnixListener> {
    let beside = PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
    let cannot = || format!("cannot listen on {}", path.display());
    let _ = std::fs::remove_file(&beside);
    let listener = UnixListener::bind(&beside).with_context(cannot)?;
    std::fs::rename(&beside, path).with_context(cannot)?;
    Ok(listener)
}

/// Waits until somebody is in a listener's queue, and leaves them there; false where nobody has come in time.
fn wait_for_client(listener: &UnixListener, timeout: PollTimeout) -> Result<bool> {
    let mut poll = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    loop {
        match nix::poll::poll(&mut poll, timeout) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for a client"),
        }
    }
}

/// Refuses clients while there is one.
struct Door {
    closed: Arc<AtomicBool>,
}

impl Door {
    fn new(path: &Path) -> Result<Door> {
        let listener = listen(path)?;
        let closed = Arc::new(AtomicBool::new(false));
        let ends = closed.clone();
        std::thread::spawn(move || {
            // Those who had come before the door closed are answered, too.
            while let Ok(ready) = wait_for_client(&listener, PollTimeout::from(LOOK_MS)) {
                match ready {
                    // Who does not wait for an answer needs none.
                    true => drop(listener.accept().map(|(stream, _)| refuse(stream))),
                    false if ends.load(Ordering::Acquire) => return,
                    false => {}
                }
            }
        });
        Ok(Door { closed })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// Answers the first message with EBUSY.
fn refuse(mut stream: UnixStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let mut reply = [0; HEADER_BYTES];
    reply[..4].copy_from_slice(&header[..4]);
    for (at, value) in [(4, HEADER_BYTES as u32), (8, REPLY_WITH_ERROR), (12, BUSY)] {
        reply[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    stream.write_all(&reply)
}

fn interrupts() -> Vec<IrqInfo> {
    let count = |index| if index == VFIO_PCI_MSIX_IRQ_INDEX { VECTORS as u32 } else { 0 };
    (0..VFIO_PCI_NUM_IRQS).map(|index| IrqInfo { index, flags: VFIO_IRQ_INFO_EVENTFD, count: count(index) }).collect()
}

/// What the client is told of the regions. Where they are mapped depends on the image that is in force now.
fn regions(engine: &Engine) -> Vec<ServerRegion> {
    let bar_bytes = |index: u32| match index as usize {
        bar @ (REGISTER_BAR | COMMAND_BAR) => engine.bar_bytes(bar),
        PM_BAR => engine.bar_bytes(PM_BAR).next_power_of_two(),
        MSIX_BAR => MSIX_BAR_BYTES as u64,
        _ if index == VFIO_PCI_CONFIG_REGION_INDEX => SPACE_BYTES,
        _ => 0,
    };
    let region = |index| {
        let size = bar_bytes(index);
        let mut region_info = vfio_region_info {
            argsz: size_of::<vfio_region_info>() as u32,
            index,
            size,
            flags: if size > 0 { VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE } else { 0 },
            ..Default::default()
        };
        if index as usize != PM_BAR || engine.mode() == WindowMode::Trapping {
            return ServerRegion { region_info, sparse_areas: Vec::new(), mmap_fd: None };
        }
        region_info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
        let (descriptor, offset) = engine.window_file();
        region_info.offset = offset;
        let area = |area: std::ops::Range<u64>| SparseArea {
            area: vfio_region_sparse_mmap_area { offset: area.start, size: area.end - area.start },
        };
        let sparse_areas = engine.areas().into_iter().map(area).collect();
        ServerRegion { region_info, sparse_areas, mmap_fd: Some(descriptor) }
    };
    (0..VFIO_PCI_NUM_REGIONS).map(region).collect()
}
