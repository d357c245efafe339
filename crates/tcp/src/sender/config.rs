//! What goes into a sender when it is made, and what comes out of it.

use crate::cc::CongestionController;
use crate::jiffies::Jiffies;
use tcpscape_base::Kernel;
use tcpscape_base::{Segment, Time};

/// How a sender is set up.
pub struct SenderConfig {
    /// Kernel profile.
    pub kernel: Kernel,
    /// Tick counter of its host.
    pub jiffies: Jiffies,
    /// Payload of a full segment, bytes: 1448 at an MTU of 1500 with timestamps.
    pub mss: u32,
    /// `SO_SNDBUF` argument in bytes, 0 for autotuning.
    pub sndbuf: u32,
    /// Whether TCP builds super-packets (always so in Linux since 4.17).
    pub gso: bool,
    /// `TCP_NODELAY`: small segments leave at once.
    pub nodelay: bool,
    /// Whether its system asks for ECN (`net.ipv4.tcp_ecn = 1`); a congestion control that needs it asks anyway.
    pub ecn: bool,
    /// Whether the first queue on the sender's host holds its memory (no netem there): enables TCP small queues.
    pub tsq: bool,
    /// Whether departures from the host are reported by [`Sender::on_departure`].
    pub watch_host: bool,
    /// Whether there is no queue on the sender's host: packets sent by a process leave at once, those sent while ACKs are
    /// processed leave when the batch of ACKs is done.
    pub bare_host: bool,
    /// Whether the host's queue paces by each segment's departure time (fq): then TCP stamps and does not wait.
    pub fq: bool,
    /// Sysctls of its host that no trial changes.
    pub tuning: Tuning,
    /// Its congestion control.
    pub congestion: Box<dyn CongestionController>,
}

/// Sysctls of the sender's host that a trial leaves as they are; scripts of packets change them.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// `net.ipv4.tcp_min_tso_segs`: least segments of a burst; none is what the congestion control asks for (2 unless it says otherwise).
    pub min_tso_segs: Option<u32>,
    /// `net.ipv4.tcp_tso_win_divisor`: the share of the window, one by this, that is large enough to go as one burst.
    pub tso_win_divisor: u32,
    /// `net.ipv4.tcp_early_retrans`: whether tail loss probes are sent.
    pub loss_probes: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { min_tso_segs: None, tso_win_divisor: 3, loss_probes: true }
    }
}

/// What a sender keeps of its configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub kernel: Kernel,
    pub jiffies: Jiffies,
    pub mss: u32,
    pub gso: bool,
    pub nodelay: bool,
    pub tsq: bool,
    pub watch_host: bool,
    pub bare_host: bool,
    pub fq: bool,
    pub tuning: Tuning,
}

impl SenderConfig {
    /// What is kept while the connection runs.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            kernel: self.kernel,
            jiffies: self.jiffies,
            mss: self.mss,
            gso: self.gso,
            nodelay: self.nodelay,
            tsq: self.tsq,
            watch_host: self.watch_host,
            bare_host: self.bare_host,
            fq: self.fq,
            tuning: self.tuning,
        }
    }

    /// Size of the send buffer, bytes, and whether it is fixed: what the application asks for is capped and doubled.
    pub(super) fn send_buffer(&self) -> u32 {
        if self.sndbuf == 0 {
            return self.kernel.tcp_wmem_default;
        }
        fixed_send_buffer(self.sndbuf, &self.kernel)
    }
}

/// Bytes of memory that `SO_SNDBUF` of `bytes` gives.
pub(super) fn fixed_send_buffer(bytes: u32, kernel: &Kernel) -> u32 {
    (bytes.min(kernel.wmem_max) * 2).max(LEAST_SEND_BUFFER)
}

/// Least size of a send buffer that the application fixes, bytes.
const LEAST_SEND_BUFFER: u32 = 4_608;

/// A segment on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// The segment; its payload may be longer than the MSS.
    pub segment: Segment,
    /// Number of MSS-sized packets inside.
    pub segs: u16,
    /// Its number for [`Sender::on_departure`]; 0 for segments without data.
    pub burst: u32,
    /// Earliest departure from its host: past or now unless the host's queue paces.
    pub departure: Time,
}
