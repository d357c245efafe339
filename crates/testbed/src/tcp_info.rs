//! `struct tcp_info` of include/uapi/linux/tcp.h, read field by field, so that older and newer kernels both fit.

use crate::sys;
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes asked for; kernels fill what they have.
const SIZE: usize = 256;

/// A sample of TCP_INFO.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    bytes: [u8; SIZE],
    len: usize,
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $at:expr;)*) => {
        impl TcpInfo { $($(#[$doc])* pub fn $name(&self) -> $ty { self.field::<{ size_of::<$ty>() }>($at).map_or(0, <$ty>::from_ne_bytes) })* }
    };
}

fields! {
    /// 0 Open to 4 Loss.
    ca_state: u8 = 1;
    /// Options that both ends agreed on, TCPI_OPT_….
    options: u8 = 5;
    /// Retransmission timeout, µs.
    rto: u32 = 8;
    /// Segments not acknowledged.
    unacked: u32 = 24;
    /// Of these, selectively acknowledged.
    sacked: u32 = 28;
    /// Of these, held to be lost.
    lost: u32 = 32;
    /// Of these, retransmitted and not yet acknowledged.
    retrans: u32 = 36;
    /// Smoothed RTT, µs.
    rtt: u32 = 68;
    /// Its mean deviation, µs.
    rttvar: u32 = 72;
    /// Slow-start threshold, segments.
    snd_ssthresh: u32 = 76;
    /// Congestion window, segments.
    snd_cwnd: u32 = 80;
    /// Reordering metric, segments.
    reordering: u32 = 88;
    /// Retransmissions so far, segments.
    total_retrans: u32 = 100;
    /// Pacing rate, B/s; all ones without pacing.
    pacing_rate: u64 = 104;
    /// Bytes acknowledged.
    bytes_acked: u64 = 120;
    /// Bytes received in order.
    bytes_received: u64 = 128;
    /// Segments received.
    segs_in: u32 = 140;
    /// Bytes written by the application and not yet sent once.
    notsent_bytes: u32 = 144;
    /// Windowed minimum RTT, µs; all ones without a sample.
    min_rtt: u32 = 148;
    /// Segments with data sent.
    data_segs_out: u32 = 156;
    /// Delivery rate, B/s.
    delivery_rate: u64 = 160;
    /// Time with data to send, µs.
    busy_time: u64 = 168;
    /// Of it, time stopped by the receive window, µs.
    rwnd_limited: u64 = 176;
    /// Of it, time stopped by the send buffer, µs.
    sndbuf_limited: u64 = 184;
    /// Segments delivered.
    delivered: u32 = 192;
    /// Of these, those reported with a congestion mark.
    delivered_ce: u32 = 196;
    /// DSACKs received.
    dsack_dups: u32 = 216;
    /// Reordering events.
    reord_seen: u32 = 220;
    /// The receiver's window, bytes (Linux 5.4).
    snd_wnd: u32 = 228;
    /// Retransmission timeouts (Linux 6.7).
    total_rto: u16 = 240;
}

impl TcpInfo {
    /// The socket's state now.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
        let mut info = TcpInfo { bytes: [0; SIZE], len: 0 };
        info.len = sys::tcp_info(socket, &mut info.bytes)?;
        Ok(info)
    }

    fn field<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        (at + N <= self.len).then(|| self.bytes[at..at + N].try_into().expect("N bytes"))
    }

    /// Whether the kernel counts timeouts for each socket.
    pub fn knows_rtos(&self) -> bool {
        self.len >= 242
    }

    /// Whether the last delivery rate was measured while the application did not keep the window full. Linux: tcpi_delivery_rate_app_limited
    pub fn is_app_limited(&self) -> bool {
        self.field::<1>(7).is_some_and(|[bits]| bits & 1 != 0)
    }

    /// Whether both ends agreed to use ECN. Linux: TCPI_OPT_ECN.
    pub fn ecn(&self) -> bool {
        self.options() & 8 != 0
    }

    /// Segments in flight by the kernel's own account. Linux: tcp_packets_in_flight()
    pub fn in_flight(&self) -> u32 {
        (self.unacked() + self.retrans()).saturating_sub(self.sacked() + self.lost())
    }
}
