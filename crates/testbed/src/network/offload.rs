//! A device's offload flags, through ethtool's ioctl on any socket of its namespace. Source: linux/ethtool.h, netdevice(7).

use crate::sys::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A device's offload of segmentation or its reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// TCP segmentation offload.
    Tso,
    /// Generic segmentation offload.
    Gso,
    /// Generic receive offload.
    Gro,
}

impl Offload {
    /// All of them.
    pub const ALL: [Offload; 3] = [Offload::Tso, Offload::Gso, Offload::Gro];

    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Offload::Tso => "TCP segmentation offload",
            Offload::Gso => "generic segmentation offload",
            Offload::Gro => "generic receive offload",
        }
    }
    /// The commands that read and set it: ETHTOOL_GTSO, ETHTOOL_STSO and so on.
    fn commands(self) -> (u32, u32) {
        match self {
            Offload::Tso => (0x1e, 0x1f),
            Offload::Gso => (0x23, 0x24),
            Offload::Gro => (0x2b, 0x2c),
        }
    }
    /// Whether it is on.
    pub fn read(self, socket: BorrowedFd<'_>, device: &str) -> io::Result<bool> {
        ethtool(socket, device, self.commands().0, 0).map(|v| v != 0)
    }
    /// Switches it.
    pub fn set(self, socket: BorrowedFd<'_>, device: &str, on: bool) -> io::Result<()> {
        ethtool(socket, device, self.commands().1, u32::from(on)).map(drop)
    }
}

/// `SIOCETHTOOL`. Source: linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// A command with a `struct ethtool_value`: gives its value back.
#[allow(unsafe_code)]
fn ethtool(socket: BorrowedFd<'_>, device: &str, command: u32, value: u32) -> io::Result<u32> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let mut v = Value { command, data: value };
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut v).cast();
    // SAFETY: the request names a NUL-terminated device and points at a value of the size that these commands use.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })?;
    Ok(v.data)
}
