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

/// A field of TCP_INFO as a number; None where the kernel is too old for it.
pub type Field = fn(&TcpInfo) -> Option<u64>;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $ty:ty = $at:expr;)*) => {
        impl TcpInfo { $($(#[$doc])* pub fn $name(&self) -> $ty { self.field::<{ size_of::<$ty>() }>($at).map_or(0, <$ty>::from_ne_bytes) })* }
        /// Every field by the kernel's name without `tcpi_`, in the kernel's units (times in µs, rates in B/s).
        pub const FIELDS: &[(&str, Field)] =
            &[$((stringify!($name), |x| x.field::<{ size_of::<$ty>() }>($at).map(|b| <$ty>::from_ne_bytes(b) as u64))),*];
    };
}

fields! {
    /// 1 ESTABLISHED, 2 SYN_SENT, … Linux: net/tcp_states.h.
    state: u8 = 0;
    /// 0 Open to 4 Loss.
    ca_state: u8 = 1;
    /// Timeouts in a row of the segment that is repeated now.
    retransmits: u8 = 2;
    /// Window probes that are not answered yet.
    probes: u8 = 3;
    /// How often the timeout was doubled.
    backoff: u8 = 4;
    /// Options that both ends agreed on, TCPI_OPT_….
    options: u8 = 5;
    /// Retransmission timeout, µs.
    rto: u32 = 8;
    /// Payload of a full segment to the peer, bytes.
    snd_mss: u32 = 16;
    /// Payload of a segment of the peer, as guessed for ACKs, bytes.
    rcv_mss: u32 = 20;
    /// Segments not acknowledged.
    unacked: u32 = 24;
    /// Of these, selectively acknowledged.
    sacked: u32 = 28;
    /// Of these, held to be lost.
    lost: u32 = 32;
    /// Of these, retransmitted and not yet acknowledged.
    retrans: u32 = 36;
    /// Path MTU, bytes.
    pmtu: u32 = 60;
    /// Smoothed RTT, µs.
    rtt: u32 = 68;
    /// Its mean deviation, µs.
    rttvar: u32 = 72;
    /// Slow-start threshold, segments.
    snd_ssthresh: u32 = 76;
    /// Congestion window, segments.
    snd_cwnd: u32 = 80;
    /// Payload of a full segment that is announced to the peer, bytes.
    advmss: u32 = 84;
    /// Reordering metric, segments.
    reordering: u32 = 88;
    /// RTT as a receiver estimates it, µs; 0 without an estimate.
    rcv_rtt: u32 = 92;
    /// Bytes that the application read in the last RTT, for the receive buffer's size.
    rcv_space: u32 = 96;
    /// Retransmissions so far, segments.
    total_retrans: u32 = 100;
    /// Pacing rate, B/s; all ones without pacing.
    pacing_rate: u64 = 104;
    /// Bytes acknowledged.
    bytes_acked: u64 = 120;
    /// Bytes received in order.
    bytes_received: u64 = 128;
    /// Segments sent.
    segs_out: u32 = 136;
    /// Segments received.
    segs_in: u32 = 140;
    /// Bytes written by the application and not yet sent once.
    notsent_bytes: u32 = 144;
    /// Windowed minimum RTT, µs; all ones without a sample.
    min_rtt: u32 = 148;
    /// Segments with data received.
    data_segs_in: u32 = 152;
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
    /// Bytes of payload sent, repeated ones too (Linux 4.19).
    bytes_sent: u64 = 200;
    /// Of these, bytes repeated (Linux 4.19).
    bytes_retrans: u64 = 208;
    /// DSACKs received.
    dsack_dups: u32 = 216;
    /// Reordering events.
    reord_seen: u32 = 220;
    /// Segments received out of order (Linux 5.4).
    rcv_ooopack: u32 = 224;
    /// The receiver's window, bytes (Linux 5.4).
    snd_wnd: u32 = 228;
    /// The window that this end announces, bytes (Linux 6.2).
    rcv_wnd: u32 = 232;
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

    /// From the kernel's bytes, shorter or longer than those known here.
    pub fn from_bytes(bytes: &[u8]) -> TcpInfo {
        let len = bytes.len().min(SIZE);
        let mut info = TcpInfo { bytes: [0; SIZE], len };
        info.bytes[..len].copy_from_slice(&bytes[..len]);
        info
    }

    /// Whether there is none at all, as of what is left of a connection in TIME_WAIT.
    pub fn is_missing(&self) -> bool {
        self.len == 0
    }

    fn field<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        (at + N <= self.len).then(|| self.bytes[at..at + N].try_into().expect("N bytes"))
    }

    /// Whether the application had too little to send when [`TcpInfo::delivery_rate`] was measured; None before Linux 4.9.
    pub fn app_limited(&self) -> Option<bool> {
        // The first bit of a byte of bit fields, which big-endian machines fill from the other end.
        let first = if cfg!(target_endian = "big") { 0x80 } else { 1 };
        self.field::<8>(160).and(self.field::<1>(7)).map(|[b]| b & first != 0)
    }

    /// Whether the kernel counts timeouts for each socket.
    pub fn knows_rtos(&self) -> bool {
        self.len >= 242
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_lacks_the_later_fields_and_a_new_one_has_more_than_are_known() {
        let bytes: Vec<u8> = (0..=255).chain([9; 40]).collect();
        let value = |x: &TcpInfo, name: &str| FIELDS.iter().find(|f| f.0 == name).and_then(|f| f.1(x));
        // Linux 3.2 ends after `total_retrans`.
        let old = TcpInfo::from_bytes(&bytes[..104]);
        assert_eq!((old.ca_state(), value(&old, "ca_state")), (1, Some(1)));
        assert_eq!((old.min_rtt(), value(&old, "min_rtt")), (0, None));
        let new = TcpInfo::from_bytes(&bytes);
        assert_eq!(value(&new, "total_rto"), Some(u64::from(u16::from_ne_bytes([240, 241]))));
        // A field that is cut in two is not there.
        assert_eq!(value(&TcpInfo::from_bytes(&bytes[..150]), "min_rtt"), None);
        assert_eq!((new.app_limited(), old.app_limited(), old.ecn()), (Some(true), None, false));
    }

    #[test]
    fn fields_do_not_overlap() {
        // Each byte set alone changes one field at most.
        for at in 0..SIZE {
            let mut bytes = [0; SIZE];
            bytes[at] = 1;
            let info = TcpInfo::from_bytes(&bytes);
            assert!(FIELDS.iter().filter(|f| f.1(&info) != Some(0)).count() <= 1, "byte {at}");
        }
    }
}
