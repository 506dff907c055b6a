//! The socket: who comes gets a function, or is told why not.
//!
//! A served library takes one client from a listener. So each listener that has the socket's path
//! has room for one who waits: when somebody has come, a new listener takes the path, and the old
//! one is the client's. Who comes in between waits in `connect`, which the kernel then carries out
//! on the new one: nobody is left in a queue that nobody looks at.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nearpm_interface::config_space::SPACE_BYTES;
use nearpm_interface::geometry::{MSIX_BAR, MSIX_BAR_BYTES};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::Backlog;
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_EVENTFD, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS,
    VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_MMAP, VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE,
    vfio_region_info, vfio_region_sparse_mmap_area,
};
use vfio_user::{IrqInfo, Server, ServerRegion, SparseArea};

use crate::bus::VECTORS;
use crate::function::Function;
use crate::{Device, HandedOn};

/// Bytes of a message's header: identifier, command, size, flags, error.
const HEADER_BYTES: usize = 16;
/// A reply, and one that tells of an error.
const REPLY_WITH_ERROR: u32 = 0x21;
/// Milliseconds between two looks at whether there is still something to serve.
const LOOK_MS: u16 = 250;
/// How long one who is refused may take to say what for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who has functions to give.
pub trait Host {
    /// What a client gets.
    type Device: Device + 'static;

    /// Name of the program, for messages.
    fn name(&self) -> &'static str;

    /// A device for a client that has come, or the error number that it is told.
    ///
    /// # Errors
    /// Why there is none.
    fn admit(&self) -> Result<Self::Device, Errno>;

    /// Looked at now and then.
    ///
    /// # Errors
    /// Why nothing is served any more.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Serves functions, each client in a thread of its own.
///
/// # Errors
/// If the socket cannot be made, or there is nothing to serve any more.
pub fn serve(host: &impl Host, path: &Path) -> Result<()> {
    if UnixStream::connect(path).is_ok() {
        bail!("{} is in use by another process", path.display());
    }
    let mut listener = listen(path)?;
    loop {
        host.check()?;
        if !has_client(&listener)? {
            continue;
        }
        // What one client uses up does not end the others: who comes waits until there is something
        // left again.
        let next = match listen(path) {
            Ok(next) => next,
            Err(error) => {
                eprintln!("{}: {error:#}", host.name());
                std::thread::sleep(PATIENCE);
                continue;
            }
        };
        let mine = std::mem::replace(&mut listener, next);
        let attended = match host.admit() {
            Ok(device) => attend(host.name(), mine, device),
            Err(errno) => std::thread::Builder::new().spawn(move || refuse(&mine, errno)).map(drop).map_err(Into::into),
        };
        if let Err(error) = attended {
            eprintln!("{}: {error:#}", host.name());
        }
    }
}

/// A listener that has the path, instead of who had it, with room for one client.
fn listen(path: &Path) -> Result<UnixListener> {
    let beside = PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
    let cannot = || format!("cannot listen on {}", path.display());
    let _ = std::fs::remove_file(&beside);
    let listener = UnixListener::bind(&beside).with_context(cannot)?;
    // The kernel lets one more wait than it is told.
    let one = Backlog::new(0).with_context(cannot)?;
    nix::sys::socket::listen(&listener, one).with_context(cannot)?;
    std::fs::rename(&beside, path).with_context(cannot)?;
    Ok(listener)
}

/// Waits until somebody is in a listener's queue, and leaves them there; false where nobody has
/// come for a while.
fn has_client(listener: &UnixListener) -> Result<bool> {
    let mut poll = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    match nix::poll::poll(&mut poll, PollTimeout::from(LOOK_MS)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error).context("cannot wait for a client"),
    }
}

/// Serves the client that waits on a listener.
fn attend<D: Device + 'static>(name: &'static str, listener: UnixListener, device: D) -> Result<()> {
    let shared: Vec<_> = (0..VFIO_PCI_NUM_REGIONS).map(|region| device.shared_bar(region as usize)).collect();
    let regions = (0..).zip(&shared).map(|(index, shared)| region(&device, index, shared.as_ref())).collect();
    let server = Server::from_owned_fd(OwnedFd::from(listener), true, interrupts(), regions);
    let serve = move || {
        // Held open, since the server knows the files by their numbers alone.
        let _shared = shared;
        let mut function = Function::new(device);
        // What a client sends cannot take the others down: the library panics on some of it.
        match catch_unwind(AssertUnwindSafe(|| server.run(&mut function))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("{name}: the client has gone: {error}"),
            Err(_) => eprintln!("{name}: the client broke the protocol"),
        }
    };
    std::thread::Builder::new().spawn(serve).context("no thread for a client")?;
    Ok(())
}

/// Answers the first message of the client that waits on a listener with an error number.
fn refuse(listener: &UnixListener, errno: Errno) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let mut reply = [0; HEADER_BYTES];
    reply[..4].copy_from_slice(&header[..4]);
    for (at, value) in [(4, HEADER_BYTES as u32), (8, REPLY_WITH_ERROR), (12, errno as u32)] {
        reply[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    stream.write_all(&reply)
}

fn interrupts() -> Vec<IrqInfo> {
    let count = |index| if index == VFIO_PCI_MSIX_IRQ_INDEX { VECTORS as u32 } else { 0 };
    (0..VFIO_PCI_NUM_IRQS).map(|index| IrqInfo { index, flags: VFIO_IRQ_INFO_EVENTFD, count: count(index) }).collect()
}

/// What the client is told of a region.
fn region(device: &impl Device, index: u32, shared: Option<&HandedOn>) -> ServerRegion {
    let size = match index {
        VFIO_PCI_CONFIG_REGION_INDEX => SPACE_BYTES,
        bar if bar as usize == MSIX_BAR => MSIX_BAR_BYTES as u64,
        bar => match device.bar_bytes(bar as usize) {
            0 => 0,
            bytes => bytes.next_power_of_two(),
        },
    };
    let mut region_info = vfio_region_info {
        argsz: size_of::<vfio_region_info>() as u32,
        index,
        size,
        flags: if size > 0 { VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE } else { 0 },
        ..Default::default()
    };
    let Some(shared) = shared else { return ServerRegion { region_info, sparse_areas: Vec::new(), mmap_fd: None } };
    region_info.flags |= VFIO_REGION_INFO_FLAG_MMAP;
    region_info.offset = shared.offset;
    let area = |area: &std::ops::Range<u64>| SparseArea {
        area: vfio_region_sparse_mmap_area { offset: area.start, size: area.end - area.start },
    };
    let sparse_areas = shared.areas.iter().map(area).collect();
    ServerRegion { region_info, sparse_areas, mmap_fd: Some(shared.file.as_raw_fd()) }
}
