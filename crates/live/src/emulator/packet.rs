//! A port on a device: AF_PACKET with a ring that the kernel fills, and batches of frames sent with one call.
//!
//! The ring (TPACKET_V2) is memory shared with the kernel, so reading costs no system call, and its size is not bounded by
//! `net.core.rmem_max`, as the queue of a socket is in a user namespace: a window of packets that a sender emits at once fits.
//! Each frame carries the kernel's receive timestamp and, directly before its first byte, a `virtio_net_hdr`.
//! Source: packet(7), Documentation/networking/packet_mmap.rst, linux/if_packet.h, linux/virtio_net.h.
//! What it does not do: VLAN tags, which the kernel keeps beside the frame.

#![allow(unsafe_code)]

use super::outbox::Waiting;
use crate::link::VNET_HEADER;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use tcpscape_testbed::sys::{check, see_device};

/// Bytes of a block of the ring: contiguous memory of the kernel, so not too many.
const BLOCK: usize = 1 << 20;
/// Room for a super-packet with all that stands before it: 64 KiB and 1 KiB.
const SUPER: usize = 65 << 10;
/// What stands before a frame in its slot, at most (header, address, alignment), bytes.
const BEFORE: usize = 128;
/// Bytes of a ring for frames of the MTU (4096 frames of 1500 bytes), and of one for super-packets (480). The kernel clears a ring in one call
/// during which it may run nothing else on that CPU (10 ms, 100 ms where a virtual machine has to get the memory first): more would disturb others.
const SMALL_RING: usize = 8 << 20;
const SUPER_RING: usize = 32 << 20;
/// Bytes of frames that may wait for their departure.
const WAITING: libc::c_int = 256 << 20;
/// linux/socket.h (asm-generic): the option, and the type of its control message.
const SO_TXTIME: libc::c_int = 61;
/// Most frames sent with one call.
pub const BATCH: usize = 64;

fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: a value and its size; the kernel copies it.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), size) }).map(drop)
}

/// The ring's memory.
struct Memory {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone; whoever has it may use it from any thread.
unsafe impl Send for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping of this length, made by `Ring::new`, to which nothing refers any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Slots that the kernel fills in turn.
struct Ring {
    memory: Memory,
    slot: usize,
    slots: usize,
    per_block: usize,
    next: usize,
}

impl Ring {
    fn new(socket: &OwnedFd, slot: usize, bytes: usize) -> io::Result<Ring> {
        let (blocks, per_block) = (bytes / BLOCK, BLOCK / slot);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: (blocks * per_block) as u32,
        };
        set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let length = blocks * BLOCK;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, shared, socket.as_raw_fd(), 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                // Processes that are started from here have no use for it; User-Mode Linux 7.1 loses its pages when they end.
                // SAFETY: the mapping that was just made.
                let _ = unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_DONTFORK) };
                Ok(Ring { memory: Memory { start, length }, slot, slots: blocks * per_block, per_block, next: 0 })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The next slot in turn.
    fn header(&self) -> *mut libc::tpacket2_hdr {
        let offset = self.next / self.per_block * BLOCK + self.next % self.per_block * self.slot;
        // SAFETY: `next` is below `slots`, so the slot lies within the mapping.
        unsafe { self.memory.start.as_ptr().add(offset).cast() }
    }

    /// The status of the next slot, shared with the kernel.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the first word of a slot is its status; slots are aligned to 16 bytes and live as long as the ring.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.header()).tp_status) }
    }
}

/// A frame that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// `virtio_net_hdr` and the frame.
    pub frame: &'a [u8],
    /// CLOCK_REALTIME, ns; 0 is unknown.
    pub stamp: u64,
}

/// Messages of one call, all on the port's socket.
struct Messages {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    /// When each frame is to leave, where its device's queue waits for that.
    times: Option<Vec<LeaveAt>>,
}

/// A control message with the time at which a frame leaves, CLOCK_MONOTONIC, ns. Linux: cmsg(3), SCM_TXTIME.
#[repr(C)]
#[derive(Clone, Copy)]
struct LeaveAt {
    header: libc::cmsghdr,
    ns: u64,
}

impl LeaveAt {
    fn new(ns: u64) -> LeaveAt {
        // SAFETY: all-zero is a valid header.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = size_of::<LeaveAt>() as _;
        (header.cmsg_level, header.cmsg_type) = (libc::SOL_SOCKET, SO_TXTIME);
        LeaveAt { header, ns }
    }
}

// SAFETY: the pointers lead into the vectors beside them, and to frames that are set anew before each call.
unsafe impl Send for Messages {}

/// A device's frames.
pub struct PacketPort {
    socket: OwnedFd,
    ring: Ring,
    messages: Messages,
    /// Frames that the kernel had no slot for.
    overflows: u64,
    /// Frames that were larger than a slot.
    too_large: u64,
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl PacketPort {
    /// Opens a device of the calling thread's namespace. `super_packets`: whether frames may be larger than the MTU.
    pub fn open(device: &str, super_packets: bool) -> io::Result<PacketPort> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a fresh descriptor that nobody else owns. It receives nothing before it is bound.
        let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) };
        let (on, version) = (1 as libc::c_int, libc::tpacket_versions::TPACKET_V2 as libc::c_int);
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &on)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on)?;
        // The devices of the emulator's namespace have no queue that a frame should wait in.
        set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &on)?;
        let (number, mtu) = super::device::find(device)?;
        let (slot, bytes) = if super_packets { (SUPER, SUPER_RING) } else { (slot_of(mtu as usize), SMALL_RING) };
        let ring = Ring::new(&socket, slot, bytes)?;
        let messages = Messages { headers: Vec::with_capacity(BATCH), vectors: Vec::with_capacity(BATCH), times: None };
        see_device(socket.as_fd(), number)?;
        Ok(PacketPort { socket, ring, messages, overflows: 0, too_large: 0 })
    }

    /// Hands over frames as long as `each` wants more; false if none is left.
    pub fn receive(&mut self, each: &mut dyn FnMut(Arrival<'_>) -> bool) -> bool {
        while self.ring.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
            let header = self.ring.header();
            // SAFETY: the slot is ours until its status says otherwise, and the kernel has filled it: the frame and the `virtio_net_hdr`
            // before it lie within the slot.
            let (whole, arrival) = unsafe {
                let h = header.read();
                let from = usize::from(h.tp_mac) - VNET_HEADER;
                let length = (h.tp_snaplen as usize + VNET_HEADER).min(self.ring.slot - from);
                let frame = std::slice::from_raw_parts(header.cast::<u8>().add(from), length);
                let stamp = u64::from(h.tp_sec) * 1_000_000_000 + u64::from(h.tp_nsec);
                (h.tp_snaplen == h.tp_len, Arrival { frame, stamp })
            };
            self.too_large += u64::from(!whole);
            let more = !whole || each(arrival);
            self.ring.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.ring.next = (self.ring.next + 1) % self.ring.slots;
            if !more {
                return true;
            }
        }
        false
    }

    /// From now on frames wait until they are due in the queue of the device, which must be one that waits for that.
    pub fn time_departures(&mut self) -> io::Result<()> {
        let (off, times) = (0 as libc::c_int, libc::sock_txtime { clockid: libc::CLOCK_MONOTONIC, flags: 0 });
        set(&self.socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &off)?;
        set(&self.socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &WAITING)?;
        set(&self.socket, libc::SOL_SOCKET, SO_TXTIME, &times)?;
        self.messages.times = Some(Vec::with_capacity(BATCH));
        Ok(())
    }

    /// Whether they do.
    pub fn is_timed(&self) -> bool {
        self.messages.times.is_some()
    }

    /// Sends frames in order, up to [`BATCH`] of them: how many went. An error concerns the first of them. `zero`: CLOCK_MONOTONIC at time 0, ns.
    pub fn send(&mut self, frames: &[Waiting], bytes: &[u8], zero: u64) -> io::Result<usize> {
        let Messages { headers, vectors, times } = &mut self.messages;
        headers.clear();
        vectors.clear();
        for f in frames.iter().take(BATCH) {
            let frame = &bytes[f.at..f.at + f.length];
            vectors.push(libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() });
        }
        for vector in vectors.iter_mut() {
            // SAFETY: all-zero is a valid header.
            let mut m: libc::mmsghdr = unsafe { std::mem::zeroed() };
            m.msg_hdr.msg_iov = vector;
            m.msg_hdr.msg_iovlen = 1;
            headers.push(m);
        }
        if let Some(times) = times {
            times.clear();
            times.extend(frames.iter().take(BATCH).map(|f| LeaveAt::new(zero + f.due.0)));
            for (m, time) in headers.iter_mut().zip(times) {
                m.msg_hdr.msg_control = std::ptr::from_mut(time).cast();
                m.msg_hdr.msg_controllen = size_of::<LeaveAt>() as _;
            }
        }
        // SAFETY: as many headers as said; their vectors, times and frames live until the call returns, and the kernel only reads the frames.
        let sent = unsafe { libc::sendmmsg(self.socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, libc::MSG_DONTWAIT) };
        check(sent).map(|n| n as usize)
    }

    /// Frames that were larger than the port expects, and so were dropped.
    pub fn too_large(&self) -> u64 {
        self.too_large
    }

    /// Frames that the kernel dropped because the ring was full, since the port was opened.
    pub fn overflows(&mut self) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut size = size_of_val(&stats) as libc::socklen_t;
        let fd = self.socket.as_raw_fd();
        // SAFETY: a place for the result and its size. The kernel counts from zero after each call.
        if unsafe { libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, (&raw mut stats).cast(), &mut size) } == 0 {
            self.overflows += u64::from(stats.tp_drops);
        }
        self.overflows
    }
}

/// Bytes of a slot for frames of an MTU: a power of two, so that blocks are full.
fn slot_of(mtu: usize) -> usize {
    (mtu + BEFORE).next_power_of_two().clamp(2048, BLOCK)
}
