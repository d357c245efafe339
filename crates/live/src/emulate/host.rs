//! Sockets of the world outside: a process that stayed in the host's network namespace opens them and passes them on.
//!
//! Asked for a port, it answers with one message: `ok` and a TCP socket that is connected to that port of the host's loopback, or why
//! there is none. Nothing but the host's loopback is reached, with the rights of the user who started the emulation.

#![allow(unsafe_code)]

use crate::spaces;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use tcpscape_testbed::sys::check;

/// The way to that process. Any thread.
#[derive(Debug)]
pub struct Host {
    socket: Mutex<OwnedFd>,
}

impl Host {
    /// The way that the inherited Unix socket (SOCK_SEQPACKET) `fd` is.
    pub fn inherited(fd: i32) -> io::Result<Host> {
        Ok(Host { socket: Mutex::new(spaces::inherited(fd)?) })
    }

    /// A connection to a port of the host's loopback. The error says why there is none.
    pub fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let socket = self.socket.lock().map_err(|_| io::Error::other("a thread that asked before has failed"))?;
        send(socket.as_fd(), port.to_string().as_bytes())?;
        match receive(socket.as_fd())? {
            (_, Some(connection)) => Ok(TcpStream::from(connection)),
            (why, None) if why.is_empty() => Err(io::Error::other("the process outside has ended")),
            (why, None) => Err(io::Error::other(String::from_utf8_lossy(&why).into_owned())),
        }
    }
}

/// Sends one message. Linux: send(2).
fn send(socket: BorrowedFd<'_>, message: &[u8]) -> io::Result<()> {
    // SAFETY: a buffer and its length.
    let n = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), libc::MSG_NOSIGNAL) };
    check(n as libc::c_int).map(drop)
}

/// Most bytes of a message with a descriptor.
const MESSAGE: usize = 512;

/// Receives one message, with the descriptor that came with it. Linux: recvmsg(2), unix(7) SCM_RIGHTS.
fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
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
