//! The system calls of the mode `emulate` that no safe library offers: one small function each.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use tcpscape_testbed::sys::check;

/// Sends one message. Linux: send(2).
pub fn send(socket: BorrowedFd<'_>, message: &[u8]) -> io::Result<()> {
    // SAFETY: a buffer and its length.
    let n = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL) };
    check(n as libc::c_int).map(drop)
}

/// Most bytes of a message with a descriptor.
const MESSAGE: usize = 512;

/// Receives one message, with the descriptor that came with it. Linux: recvmsg(2), unix(7) SCM_RIGHTS.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut text = [0u8; MESSAGE];
    let mut control = [0u64; 8];
    let mut vector = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
    // SAFETY: the header points at buffers that live until the call returns; the control message is walked with libc's macros, and
    // the descriptor in it belongs to nobody else.
    unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        m.msg_iov = &mut vector;
        m.msg_iovlen = 1;
        m.msg_control = control.as_mut_ptr().cast();
        m.msg_controllen = size_of_val(&control) as _;
        let n = check(libc::recvmsg(socket.as_raw_fd(), &mut m, libc::MSG_CMSG_CLOEXEC) as libc::c_int)?;
        let c = libc::CMSG_FIRSTHDR(&m);
        let has_one = !c.is_null() && (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS;
        let descriptor = has_one.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(c).cast::<libc::c_int>().read_unaligned()));
        Ok((text[..n as usize].to_vec(), descriptor))
    }
}

/// The group of this process. Linux: getegid(2).
pub fn group() -> u32 {
    // SAFETY: no arguments.
    unsafe { libc::getegid() }
}
