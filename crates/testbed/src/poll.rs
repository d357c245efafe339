//! Waiting for descriptors and for a time. Source: epoll(7), timerfd_create(2).

#![allow(unsafe_code)]

use crate::sys::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A timer of the monotonic clock.
pub struct Timer(OwnedFd);

impl Timer {
    /// One that is not set.
    pub fn new() -> io::Result<Timer> {
        // SAFETY: constant arguments; a descriptor that the call has just made, and nobody else owns.
        check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) })
            .map(|fd| Timer(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
    /// Makes it expire when the clock shows `at`, ns; a time that has passed expires at once, None never.
    pub fn set(&self, at: Option<u64>) -> io::Result<()> {
        // An all-zero time would disarm it.
        let value = crate::sys::timespec(at.map_or(0, |t| t.max(1)));
        let new = libc::itimerspec { it_interval: crate::sys::timespec(0), it_value: value };
        // SAFETY: a valid time; the old one is not asked for.
        check(unsafe { libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &new, std::ptr::null_mut()) }).map(drop)
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Descriptors to wait for.
pub struct Poll(OwnedFd);

/// What a wait gives: epoll's flags, and the token under which the descriptor was added.
pub type Ready = libc::epoll_event;

impl Poll {
    /// None.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: a constant argument; a descriptor that the call has just made, and nobody else owns.
        check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(|fd| Poll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
    /// Adds a descriptor, until it is closed.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, flags: libc::c_int) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, flags)
    }
    /// Waits for something else of a descriptor.
    pub fn change(&self, fd: BorrowedFd<'_>, token: u64, flags: libc::c_int) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, flags)
    }
    fn control(&self, operation: libc::c_int, fd: BorrowedFd<'_>, token: u64, flags: libc::c_int) -> io::Result<()> {
        let mut event = Ready { events: flags as u32, u64: token };
        // SAFETY: open descriptors, and an event that lives until the call returns.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd.as_raw_fd(), &mut event) }).map(drop)
    }
    /// Waits, and gives what is ready, at most as many as there is room for; none after a signal.
    pub fn wait<'a>(&self, room: &'a mut [Ready]) -> io::Result<&'a [Ready]> {
        // SAFETY: room for as many events as are asked for.
        match check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), room.as_mut_ptr(), room.len() as libc::c_int, -1) }) {
            Ok(n) => Ok(&room[..n as usize]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(e) => Err(e),
        }
    }
}
