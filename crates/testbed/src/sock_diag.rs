//! sock_diag: the TCP sockets of a network namespace with their TCP_INFO, and those that end.
//!
//! What it is: [`Sockets`] dumps the sockets of the calling thread's namespace, [`Endings`] hears of each that ends, with its last counters.
//! Neither needs a privilege. A socket without one of the attributes (an older kernel) has an empty one.
//! Source: sock_diag(7), linux/{sock_diag,inet_diag}.h.
//! What it does not do: other protocols than TCP, filters in the kernel, ending sockets.

use crate::netlink::{attributes, messages, text_of, u32_at, verdict, NetlinkError};
use crate::tcp_info::TcpInfo;
use netlink_packet_core::{NLMSG_DONE, NLMSG_ERROR, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST};
use netlink_sys::{protocols::NETLINK_SOCK_DIAG, Socket as Raw, SocketAddr as Address};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Linux: SOCK_DIAG_BY_FAMILY.
const BY_FAMILY: u16 = 20;
/// Bytes of `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// Families, and the groups that hear of the end of their TCP sockets. Linux: SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY.
const FAMILIES: [(u8, u32); 2] = [(libc::AF_INET as u8, 1), (libc::AF_INET6 as u8, 3)];
/// Attributes. Linux: INET_DIAG_….
const INFO: u16 = 2;
const VEGAS: u16 = 3;
const CONTROL: u16 = 4;
const MEMORY: u16 = 7;
const BBR: u16 = 16;
/// Those that are asked for, as bits; that of `VEGAS` asks for the numbers of any congestion control.
const ASKED: u8 = 1 << (INFO - 1) | 1 << (VEGAS - 1) | 1 << (CONTROL - 1) | 1 << (MEMORY - 1);
/// Room for one datagram of answers, bytes.
const ROOM: usize = 64 << 10;
/// Sockets that are asked for in one message, so that their answers fit into the socket's buffer.
const TOGETHER: usize = 32;

/// How the kernel names a socket. Linux: `struct inet_diag_sockid`, with the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    family: u8,
    bytes: [u8; 48],
}

/// A socket as the kernel describes it.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    message: &'a [u8],
    attributes: &'a [u8],
}

impl<'a> Found<'a> {
    fn of(payload: &'a [u8]) -> Option<Found<'a>> {
        let (message, attributes) = payload.split_at_checked(MESSAGE)?;
        Some(Found { message, attributes })
    }
    /// The kernel's number of this socket, which no other has had since the machine started.
    pub fn cookie(&self) -> u64 {
        u64::from(u32_at(self.message, 44)) | u64::from(u32_at(self.message, 48)) << 32
    }
    /// Its name for [`Sockets::ask`].
    pub fn id(&self) -> Id {
        Id { family: self.message[0], bytes: self.message[4..52].try_into().expect("48 bytes") }
    }
    /// Its state, as [`TcpInfo::state`].
    pub fn state(&self) -> u8 {
        self.message[1]
    }
    /// This end and the other; an IPv4 address in an IPv6 socket is an IPv4 address.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.end(4, 8), self.end(6, 24))
    }
    fn end(&self, port: usize, address: usize) -> SocketAddr {
        let m = self.message;
        let bytes: [u8; 16] = m[address..address + 16].try_into().expect("16 bytes");
        let ip = match i32::from(m[0]) {
            libc::AF_INET => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
            _ => IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical(),
        };
        SocketAddr::new(ip, u16::from_be_bytes([m[port], m[port + 1]]))
    }
    /// What waits at both ends of the socket.
    pub fn queues(&self) -> Queues {
        Queues { unread: u32_at(self.message, 56), unacknowledged: u32_at(self.message, 60) }
    }
    /// User who owns it.
    pub fn uid(&self) -> u32 {
        u32_at(self.message, 64)
    }
    /// The rest in one pass over the attributes.
    pub fn details(&self) -> Details<'a> {
        let mut details = Details { info: TcpInfo::from_bytes(&[]), control: "", memory: &[], bbr: &[] };
        for (kind, value) in attributes(self.attributes) {
            match kind {
                INFO => details.info = TcpInfo::from_bytes(value),
                CONTROL => details.control = text_of(value),
                MEMORY => details.memory = value,
                BBR => details.bbr = value,
                _ => {}
            }
        }
        details
    }
}

/// Bytes that wait in a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Received and not read.
    pub unread: u32,
    /// Written and not acknowledged.
    pub unacknowledged: u32,
}

/// What the attributes of a socket say.
#[derive(Clone, Copy, Debug)]
pub struct Details<'a> {
    /// TCP_INFO.
    pub info: TcpInfo,
    /// Name of the congestion control; empty where it is not told.
    pub control: &'a str,
    memory: &'a [u8],
    bbr: &'a [u8],
}

/// What a socket's buffers hold and may hold, bytes with the kernel's own overhead. Linux: SK_MEMINFO_….
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Received.
    pub rmem: u32,
    /// The receive buffer.
    pub rcvbuf: u32,
    /// The send buffer.
    pub sndbuf: u32,
    /// Written and not acknowledged.
    pub wmem_queued: u32,
    /// Packets dropped by this socket.
    pub drops: u32,
}

/// What BBR says of itself. Linux: `struct tcp_bbr_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bbr {
    /// Its estimate of the bottleneck's rate, B/s.
    pub bw: u64,
    /// Its smallest RTT, µs.
    pub min_rtt: u32,
    /// Gains, times 256.
    pub pacing_gain: u32,
    /// The same for the window.
    pub cwnd_gain: u32,
}

impl Details<'_> {
    /// Its buffers; None where the kernel does not tell.
    pub fn memory(&self) -> Option<Memory> {
        let at = |i: usize| u32_at(self.memory, 4 * i);
        (!self.memory.is_empty()).then(|| Memory { rmem: at(0), rcvbuf: at(1), sndbuf: at(3), wmem_queued: at(5), drops: at(8) })
    }
    /// BBR's numbers; None of other controls.
    pub fn bbr(&self) -> Option<Bbr> {
        let at = |i: usize| u32_at(self.bbr, 4 * i);
        let bw = u64::from(at(0)) | u64::from(at(1)) << 32;
        (!self.bbr.is_empty()).then(|| Bbr { bw, min_rtt: at(2), pacing_gain: at(3), cwnd_gain: at(4) })
    }
}

/// A connection to the kernel that lists sockets.
#[derive(Debug)]
pub struct Sockets {
    socket: Raw,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Sockets {
    /// Opens it in the calling thread's network namespace.
    pub fn open() -> io::Result<Sockets> {
        Ok(Sockets { socket: Raw::new(NETLINK_SOCK_DIAG)?, sequence: 0, buffer: vec![0; ROOM] })
    }

    /// Lists all TCP sockets, IPv4 and IPv6, whose state is in `states` (bit 1 << state). False where sockets came or went meanwhile, so
    /// that some may be missing or be there twice.
    pub fn list(&mut self, states: u32, mut each: impl FnMut(&Found<'_>)) -> Result<bool, NetlinkError> {
        let mut whole = true;
        for (family, _) in FAMILIES {
            match self.dump(family, states, &mut each) {
                Ok(is_whole) => whole &= is_whole,
                // A kernel without IPv6 has no handler for it.
                Err(NetlinkError::Refused { error, .. }) if family != libc::AF_INET as u8 && error.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(whole)
    }

    /// Asks for single sockets, which costs less than a list where there are many others. Those that have ended are passed over.
    pub fn ask(&mut self, ids: &[Id], mut each: impl FnMut(&Found<'_>)) -> Result<(), NetlinkError> {
        for some in ids.chunks(TOGETHER) {
            let first = self.sequence.wrapping_add(1);
            let mut bytes = Vec::with_capacity(some.len() * (HEADER + REQUEST));
            for id in some {
                self.sequence = self.sequence.wrapping_add(1);
                bytes.extend_from_slice(&request(id.family, NLM_F_REQUEST, u32::MAX, &id.bytes, self.sequence));
            }
            send(&self.socket, &bytes)?;
            let mut open = some.len();
            while open > 0 {
                let n = receive(&self.socket, &mut self.buffer)?;
                for m in messages(&self.buffer[..n]).filter(|m| m.sequence_number().wrapping_sub(first) < some.len() as u32) {
                    open = open.saturating_sub(1);
                    if m.message_type() == BY_FAMILY {
                        Found::of(m.payload()).iter().for_each(&mut each);
                    }
                }
            }
        }
        Ok(())
    }

    fn dump(&mut self, family: u8, states: u32, each: &mut impl FnMut(&Found<'_>)) -> Result<bool, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&self.socket, &request(family, NLM_F_REQUEST | NLM_F_DUMP, states, &[0; 48], self.sequence))?;
        let mut whole = true;
        loop {
            let n = receive(&self.socket, &mut self.buffer)?;
            for m in messages(&self.buffer[..n]).filter(|m| m.sequence_number() == self.sequence) {
                whole &= m.flags() & NLM_F_DUMP_INTR == 0;
                match m.message_type() {
                    NLMSG_DONE => return Ok(whole),
                    NLMSG_ERROR => return verdict(&m, 0).map_or(Ok(whole), Err),
                    _ => Found::of(m.payload()).iter().for_each(&mut *each),
                }
            }
        }
    }
}

fn request(family: u8, flags: u16, states: u32, id: &[u8; 48], sequence: u32) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[HEADER..HEADER + 3].copy_from_slice(&[family, libc::IPPROTO_TCP as u8, ASKED]);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&states.to_ne_bytes());
    bytes[HEADER + 8..].copy_from_slice(id);
    bytes
}

fn send(socket: &Raw, bytes: &[u8]) -> io::Result<()> {
    uninterrupted(|| socket.send(bytes, 0)).map(drop)
}

fn receive(socket: &Raw, into: &mut [u8]) -> io::Result<usize> {
    uninterrupted(|| socket.recv(&mut &mut *into, 0)).map(|n| n.min(ROOM))
}

fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Hears of TCP sockets that end.
#[derive(Debug)]
pub struct Endings {
    socket: Raw,
    buffer: Vec<u8>,
}

impl Endings {
    /// Of the calling thread's network namespace, from now on.
    pub fn open() -> io::Result<Endings> {
        let mut socket = Raw::new(NETLINK_SOCK_DIAG)?;
        socket.bind(&Address::new(0, 0))?;
        for (_, group) in FAMILIES {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Endings { socket, buffer: vec![0; ROOM] })
    }

    /// Those that ended since the last call. False where some were missed, because they were too many.
    pub fn take(&mut self, mut each: impl FnMut(&Found<'_>)) -> io::Result<bool> {
        let mut whole = true;
        loop {
            match receive(&self.socket, &mut self.buffer) {
                Ok(n) => messages(&self.buffer[..n]).for_each(|m| Found::of(m.payload()).iter().for_each(&mut each)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(whole),
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => whole = false,
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn connection(address: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address).ok()?;
        let ours = TcpStream::connect(listener.local_addr().ok()?).ok()?;
        Some((ours, listener.accept().ok()?.0))
    }

    #[test]
    fn a_socket_of_this_process_is_found_with_its_counters_and_its_end_is_heard() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((mut ours, mut theirs)) = connection(address) else {
                tcpscape_base::skip(format!("there is no {address} here"));
                continue;
            };
            let mut endings = Endings::open().expect("no privilege is needed");
            let mut sockets = Sockets::open().expect("no privilege is needed");
            ours.write_all(&[7; 5000]).expect("room");
            theirs.read_exact(&mut [0; 5000]).expect("the data");
            let ends = (ours.local_addr().unwrap(), ours.peer_addr().unwrap());
            let mut found = None;
            sockets
                .list(1 << 1, |f| {
                    if f.ends() == ends {
                        let details = f.details();
                        assert!(!details.control.is_empty() && details.memory().expect("SKMEMINFO").sndbuf > 0);
                        found = Some((f.cookie(), f.state(), details.info.state(), f.id()));
                    }
                })
                .expect("a list");
            let (cookie, state, same, id) = found.expect("it is in the list");
            assert_eq!((state, same), (1, 1));
            let gone = Id { bytes: [1; 48], ..id };
            let mut answers = Vec::new();
            sockets
                .ask(&[[gone; 40].as_slice(), &[id, id]].concat(), |f| answers.push((f.cookie(), f.details().info.bytes_acked())))
                .expect("answers");
            assert_eq!(answers.iter().map(|a| a.0).collect::<Vec<_>>(), [cookie; 2]);
            assert!(answers.iter().all(|a| a.1 <= 5001));
            let mut sent = None;
            theirs.shutdown(std::net::Shutdown::Both).expect("open");
            drop((ours, theirs));
            for _ in 0..200 {
                endings
                    .take(|f| {
                        if f.cookie() == cookie {
                            sent = Some(f.details().info.bytes_acked())
                        }
                    })
                    .expect("no error");
                if sent.is_some() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            // The SYN counts as a byte, the FIN may.
            assert!(matches!(sent, Some(5000..=5002)), "{sent:?}");
        }
    }

    #[test]
    fn a_message_that_is_cut_is_no_socket() {
        assert!(Found::of(&[0; MESSAGE - 1]).is_none());
        let mut bytes = [0; MESSAGE + 6];
        bytes[MESSAGE] = 200;
        let found = Found::of(&bytes).expect("a message");
        assert_eq!(found.details().control, "");
        assert_eq!((found.details().memory(), found.details().bbr()), (None, None));
    }

    #[test]
    fn an_ipv4_address_in_an_ipv6_socket_is_an_ipv4_address() {
        let mut bytes = [0; MESSAGE];
        bytes[0] = libc::AF_INET6 as u8;
        bytes[6..8].copy_from_slice(&443u16.to_be_bytes());
        bytes[24..40].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped().octets());
        assert_eq!(Found::of(&bytes).expect("a message").ends().1, "192.0.2.7:443".parse().unwrap());
    }
}
