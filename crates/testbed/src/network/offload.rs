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

/// ETHTOOL_GSTRINGS, ETHTOOL_GSSET_INFO and ETHTOOL_SFEATURES, and what they say about features. Source: linux/ethtool.h.
const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const SFEATURES: u32 = 0x3b;
const SS_FEATURES: u32 = 4;
const NAME: usize = 32;
/// Segmentation of UDP datagrams of one size (UDP_SEGMENT) at the device.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// The first kernel whose packet sockets tell of super-packets of UDP; those before drop them, and nobody counts them.
const TELLS_OF_UDP: (u32, u32) = (6, 2);

/// Has the kernel cut super-packets of UDP before a device, where packet sockets could not see them behind it.
pub fn cut_udp_where_unseen(socket: BorrowedFd<'_>, device: &str) -> io::Result<()> {
    if release().is_some_and(|release| release >= TELLS_OF_UDP) {
        return Ok(());
    }
    let mut count = [GSSET_INFO, 0, 1 << SS_FEATURES, 0, 0]; // a reserved word, the wanted sets as two words, the number of names
    call(socket, device, &mut count)?;
    let features = count[4] as usize;
    let mut names = vec![0; 3 + features * NAME / size_of::<u32>()];
    names[..3].copy_from_slice(&[GSTRINGS, SS_FEATURES, count[4]]);
    call(socket, device, &mut names)?;
    let bytes: Vec<u8> = names[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let is_it = |name: &[u8]| name.strip_prefix(UDP_SEGMENTATION.as_bytes()).is_some_and(|rest| rest.first() == Some(&0));
    let Some(number) = bytes.chunks(NAME).position(is_it) else { return Ok(()) };
    let blocks = features.div_ceil(32);
    let mut change = vec![0; 2 + 2 * blocks]; // of each block of 32 features: those that are meant, and those of them that are to be on
    change[..2].copy_from_slice(&[SFEATURES, blocks as u32]);
    change[2 + 2 * (number / 32)] = 1 << (number % 32);
    call(socket, device, &mut change)
}

/// Major and minor number of the kernel that runs.
fn release() -> Option<(u32, u32)> {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// A command with a `struct ethtool_value`: gives its value back.
fn ethtool(socket: BorrowedFd<'_>, device: &str, command: u32, value: u32) -> io::Result<u32> {
    let mut words = [command, value];
    call(socket, device, &mut words)?;
    Ok(words[1])
}

/// A command in the first word with the room that it needs behind it.
#[allow(unsafe_code)]
fn call(socket: BorrowedFd<'_>, device: &str, words: &mut [u32]) -> io::Result<()> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request names a NUL-terminated device and points at as many words as the commands of this module read and write.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_the_kernel_that_runs_is_known() {
        assert!(release().is_some_and(|(major, _)| major >= 3));
    }
}
