//! A port that is a TUN device: one IP packet with its `virtio_net_hdr` for each read and write.
//!
//! Source: Documentation/networking/tuntap.rst, linux/if_tun.h, linux/virtio_net.h.
//! How it differs from [`super::packet`]: no Ethernet header, no receive timestamps, one system call for each packet.

#![allow(unsafe_code)]

use super::outbox::Waiting;
use super::packet::{Arrival, BATCH};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Packets that the device keeps for us to read; the default of 500 is less than a window.
const QUEUE: u32 = 10_000;
/// Room for a super-packet, bytes.
const LARGEST: usize = 65 << 10;

/// A TUN device's packets.
pub struct TunPort {
    file: File,
    buffer: Vec<u8>,
}

impl AsFd for TunPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl TunPort {
    /// Makes the device in the calling thread's namespace, with an MTU and up. It vanishes when the port is dropped.
    /// `super_packets`: whether the kernel may hand over packets that are larger than the MTU.
    pub fn make(device: &str, mtu: u32, super_packets: bool) -> io::Result<TunPort> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: all-zero is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if device.is_empty() || device.len() >= request.ifr_name.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{device:?} is no name of a network device")));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL) as libc::c_short;
        // SAFETY: a request that names a device and lives until the call returns.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let offload = if super_packets { tcp } else { libc::TUN_F_CSUM };
        // SAFETY: an integer argument.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload)) })?;
        super::device::set_up(device, mtu, QUEUE)?;
        Ok(TunPort { file, buffer: vec![0; LARGEST] })
    }

    /// Hands over packets as long as `each` wants more; false if none is left.
    pub fn receive(&mut self, each: &mut dyn FnMut(Arrival<'_>) -> bool) -> bool {
        while let Ok(n) = self.file.read(&mut self.buffer) {
            if !each(Arrival { frame: &self.buffer[..n], stamp: 0 }) {
                return true;
            }
        }
        false
    }

    /// Sends packets in order, up to [`BATCH`] of them: how many went. An error concerns the first of them.
    pub fn send(&mut self, frames: &[Waiting], bytes: &[u8]) -> io::Result<usize> {
        for (i, f) in frames.iter().take(BATCH).enumerate() {
            match self.file.write(&bytes[f.at..f.at + f.length]) {
                Ok(_) => {}
                Err(e) if i == 0 => return Err(e),
                Err(_) => return Ok(i),
            }
        }
        Ok(frames.len().min(BATCH))
    }
}

fn check(status: libc::c_int) -> io::Result<()> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
