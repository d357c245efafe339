//! Sockets of the world outside: a process that stayed in the host's network namespace opens them and passes them on.
//!
//! Asked for a port, it answers with one message: `ok` and a TCP socket that is connected to that port of the host's loopback, or why
//! there is none. Nothing but the host's loopback is reached, with the rights of the user who started the emulation.

use super::sys;
use crate::spaces;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

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
        sys::send(socket.as_fd(), port.to_string().as_bytes())?;
        match sys::receive(socket.as_fd())? {
            (_, Some(connection)) => Ok(TcpStream::from(connection)),
            (why, None) if why.is_empty() => Err(io::Error::other("the process outside has ended")),
            (why, None) => Err(io::Error::other(String::from_utf8_lossy(&why).into_owned())),
        }
    }
}
