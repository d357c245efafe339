//! The system calls of the emulator that no safe library of ours offers: waiting, priority, memory. One small function each.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use tcpscape_testbed::sys::check;
pub use tcpscape_testbed::sys::{now, thread_time, wall};

/// How late the calling thread may wake from a sleep, ns; 0 with real-time priority.
pub fn timer_slack() -> u64 {
    // SAFETY: integer arguments only.
    unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }.max(0) as u64
}

/// Keeps the process's memory from being paged out, as far as it is touched, where there is no limit to that: with a limit, later
/// mappings (stacks of threads, captures) would fail as soon as it is reached. Linux: mlockall(2), getrlimit(2).
pub fn lock_memory() -> io::Result<()> {
    if crate::spaces::limit(libc::RLIMIT_MEMLOCK)?.0 != libc::RLIM_INFINITY {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    }
    // SAFETY: constant flags.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) }).map(drop)
}

/// Wakes a thread that waits for it. Linux: eventfd(2).
pub struct Bell(OwnedFd);

impl Bell {
    /// A silent one.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: constant arguments; a descriptor that the call has just made, and nobody else owns.
        check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }).map(|fd| Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
    /// Rings it.
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes, as eventfd wants them. Its counter cannot be full.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
