//! MSI-X vectors as event descriptors.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::time::{Duration, Instant};

/// One event descriptor per vector.
pub(crate) struct Vectors {
    events: Vec<File>,
}

impl Vectors {
    pub(crate) fn new(count: usize) -> std::io::Result<Vectors> {
        let event = |_| {
            // SAFETY: the call touches no memory; a descriptor that it returns is this process's
            // own.
            match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } {
                -1 => Err(Error::last_os_error()),
                // SAFETY: as above; nobody else has the descriptor.
                descriptor => Ok(unsafe { File::from_raw_fd(descriptor) }),
            }
        };
        Ok(Vectors { events: (0..count).map(event).collect::<Result<_, _>>()? })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.events.len()
    }

    /// What the kernel signals, by vector.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.events.iter().map(|event| event.as_raw_fd()).collect()
    }

    /// Waits for a vector, which must exist, and takes what it has signalled; false on timeout.
    pub(crate) fn wait(&self, vector: usize, timeout: Duration) -> std::io::Result<bool> {
        let mut event = &self.events[vector];
        let start = Instant::now();
        loop {
            match event.read(&mut [0; 8]) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let seconds = libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX);
            let left = libc::timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() };
            let mut poll = libc::pollfd { fd: event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: both structures live across the call, the array has one entry, and no signal
            // mask is given.
            if unsafe { libc::ppoll(&mut poll, 1, &left, std::ptr::null()) } < 0 {
                let error = Error::last_os_error();
                if error.kind() != ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_vector_fires_alone_and_once_and_waits_no_longer_than_it_was_told() {
        let vectors = Vectors::new(2).unwrap();
        assert_eq!((vectors.count(), vectors.descriptors().len()), (2, 2));
        assert!(!vectors.wait(0, Duration::ZERO).unwrap());
        let start = Instant::now();
        assert!(!vectors.wait(0, Duration::from_millis(20)).unwrap());
        assert!(start.elapsed() >= Duration::from_millis(20));
        (&vectors.events[1]).write_all(&1u64.to_ne_bytes()).unwrap();
        assert!(!vectors.wait(0, Duration::ZERO).unwrap());
        assert!(vectors.wait(1, Duration::ZERO).unwrap());
        assert!(!vectors.wait(1, Duration::ZERO).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                (&vectors.events[0]).write_all(&1u64.to_ne_bytes()).unwrap();
            });
            assert!(vectors.wait(0, Duration::from_secs(u64::MAX)).unwrap());
        });
    }
}
