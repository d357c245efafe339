//! Packets that the kernel copies into memory that it shares with a socket, while they pass.
//!
//! What it is: a packet socket with a receive ring. Nothing of a packet is held but its copy, so TCP may do with it what it does unseen (a packet that
//! waits in a socket is a clone, and none is merged with a clone); a process runs when a block of packets is full or old, not for each of them.
//! Source: packet(7), Documentation/networking/packet_mmap.rst (TPACKET_V3).

#![allow(unsafe_code)]

use crate::sys::{check, see_device};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a block, a power of two of pages, and number of blocks.
const BLOCK: usize = 1 << 19;
const BLOCKS: usize = 32;
/// Bytes by which the kernel checks the sizes above; packets of TPACKET_V3 take what they need.
const FRAME: usize = 2048;
/// How old the first packet of a block may be before the block is handed over as it is, ns.
pub const HANDED_OVER: u64 = 100_000_000;

/// What the kernel saw.
#[derive(Clone, Copy, Debug)]
pub struct Copied<'a> {
    /// Wall-clock time at which it passed, ns.
    pub at: u64,
    /// Its length without a link header, bytes.
    pub length: usize,
    /// Its beginning.
    pub bytes: &'a [u8],
}

/// A packet socket and the memory that it shares with the kernel.
pub struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    next: usize,
}

// SAFETY: the memory belongs to the ring alone, and to the kernel, which does not mind which thread reads it.
unsafe impl Send for Ring {}

impl Ring {
    /// One that sees every packet of the calling thread's namespace, or of one of its devices, and keeps `most` bytes of each.
    pub fn new(device: Option<&CStr>, most: usize) -> io::Result<Ring> {
        // SAFETY: a fresh descriptor that nobody else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?) };
        let number = match device {
            None => 0,
            // SAFETY: a string that lives until the call returns.
            Some(name) => match unsafe { libc::if_nametoindex(name.as_ptr()) } {
                0 => return Err(io::Error::last_os_error()), // bound to 0, it would see every device
                number => number as i32,
            },
        };
        let mut cut = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: most as u32 };
        let filter = libc::sock_fprog { len: 1, filter: &mut cut };
        set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
        set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))?;
        let ring = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (BLOCKS * BLOCK / FRAME) as u32,
            tp_retire_blk_tov: (HANDED_OVER / 1_000_000) as u32,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &ring)?;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the size that the ring has; nothing else is at that place.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), BLOCK * BLOCKS, both, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(io::Error::last_os_error)?;
        let ring = Ring { socket, memory, next: 0 };
        see_device(ring.socket.as_fd(), number)?; // from here on it sees packets
        Ok(ring)
    }

    /// Hands every packet of the next block to `sink` and gives the block back; false where the kernel still has it.
    pub fn take(&mut self, sink: &mut impl FnMut(Copied<'_>) -> io::Result<()>) -> io::Result<bool> {
        // SAFETY: a block lies within the mapping and begins with its description, whose status the kernel writes last when it hands the block
        // over; from then until the status is written here it is only read. Offsets and lengths are the kernel's own.
        unsafe {
            let block = self.memory.as_ptr().add(self.next * BLOCK);
            let head = &raw mut (*block.cast::<libc::tpacket_block_desc>()).hdr.bh1;
            let status = AtomicU32::from_ptr(&raw mut (*head).block_status);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return Ok(false);
            }
            let mut at = block.add((*head).offset_to_first_pkt as usize);
            for _ in 0..(*head).num_pkts {
                let packet = at.cast::<libc::tpacket3_hdr>().read();
                let bytes = std::slice::from_raw_parts(at.add(packet.tp_net as usize), packet.tp_snaplen as usize);
                let ns = u64::from(packet.tp_sec) * 1_000_000_000 + u64::from(packet.tp_nsec);
                sink(Copied { at: ns, length: packet.tp_len as usize, bytes })?;
                at = at.add(packet.tp_next_offset as usize);
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + 1) % BLOCKS;
        Ok(true)
    }

    /// Packets that found no room since the last call.
    pub fn lost(&self) -> u32 {
        // SAFETY: all-zero is a valid answer; the kernel writes at most its size.
        unsafe {
            let mut counts: libc::tpacket_stats_v3 = std::mem::zeroed();
            let mut size = size_of_val(&counts) as libc::socklen_t;
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, (&raw mut counts).cast(), &mut size);
            counts.tp_drops
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

fn set<T>(socket: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: a value of the option's own type, which lives until the call returns.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), size) }).map(drop)
}
