//! What differs between kernels and machines, as data: the rules and settings of a profile.
//!
//! Source: `Documentation/networking/ip-sysctl.rst`, and TCP_INFO of the kernels named (docs/models/tcp/kernel-profiles.md). A kernel whose rules
//! differ is a file with its rules and its profile, and a [`Version`]; `tcpscape_plan::kernel` gives the profile a name.

mod rules;
mod v6_1;
mod v6_12;
mod v6_18;
mod v6_19;
mod v6_6;
mod v7_1;

pub use rules::Rules;
use serde::{Deserialize, Serialize};

/// Whose rules apply where kernels differ in more than a sysctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// Linux 6.1.
    #[serde(rename = "6.1")]
    V6_1,
    /// Linux 6.6.
    #[serde(rename = "6.6")]
    V6_6,
    /// Linux 6.12.
    #[serde(rename = "6.12")]
    V6_12,
    /// Linux 6.18.
    #[serde(rename = "6.18")]
    V6_18,
    /// Linux 6.19.
    #[serde(rename = "6.19")]
    V6_19,
    /// Linux 7.1.
    #[serde(rename = "7.1")]
    V7_1,
}

/// How a receive buffer becomes a window (docs/models/tcp/kernel-profiles.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowRule {
    /// Half of the buffer, `tcp_adv_win_scale = 1` (up to Linux 6.5).
    Half,
    /// The buffer times the measured ratio of payload to memory in 1/256 (Linux 6.6 and later).
    ScalingRatio,
}

/// The kernel that a scenario simulates: version-dependent rules and sysctl defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kernel {
    /// Whose [`Rules`] apply.
    pub rules: Version,
    /// Timer ticks a second (`CONFIG_HZ`): granularity of RTO, TLP, delayed ACKs and the reordering timer.
    pub hz: u32,
    /// Buffer-to-window rule.
    pub window: WindowRule,
    /// Truesize of a received full-sized (MSS) segment in bytes: payload plus this overhead.
    pub skb_overhead: u32,
    /// `MAX_TCP_HEADER`, bytes: headroom of every skb that TCP builds; part of the units in which both buffers grow. 320 where
    /// the kernel has wireless and tunnel devices, as distributions do; the recorded reference of 6.1 behaves as with 256.
    pub max_tcp_header: u32,
    /// `net.core.rmem_max`: cap of an `SO_RCVBUF` argument, before its doubling.
    pub rmem_max: u32,
    /// `net.core.wmem_max`: cap of an `SO_SNDBUF` argument, before its doubling.
    pub wmem_max: u32,
    /// `net.ipv4.tcp_rmem[1]`: initial receive buffer when it is autotuned.
    pub tcp_rmem_default: u32,
    /// `net.ipv4.tcp_rmem[2]`: largest autotuned receive buffer.
    pub tcp_rmem_max: u32,
    /// `net.ipv4.tcp_wmem[1]`: initial send buffer.
    pub tcp_wmem_default: u32,
    /// `net.ipv4.tcp_wmem[2]`: largest autotuned send buffer.
    pub tcp_wmem_max: u32,
    /// `net.ipv4.tcp_limit_output_bytes`: most that a connection without pacing keeps in its host's queues, bytes.
    pub limit_output_bytes: u32,
    /// `net.ipv4.tcp_comp_sack_nr`: most ACKs held back by SACK compression.
    pub comp_sack_nr: u32,
    /// `net.ipv4.tcp_comp_sack_delay_ns`: longest time an ACK is held back by SACK compression.
    pub comp_sack_delay_ns: u32,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// Congestion window of a new connection, and the least one after a pause, segments: RFC 6928, `ip route … initcwnd`.
    pub initcwnd: u32,
    /// Time that each packet which arrives takes in its host between the wire and TCP, ns: interrupt, device driver, IP. 0 is a host in virtual time
    /// (docs/models/tcp/hosts.md).
    #[serde(rename = "host_time")]
    pub host_time_ns: u32,
}

impl Kernel {
    /// Linux 6.1: HZ 100, half the buffer is window; buffers of a machine of some GB.
    pub const V6_1: Kernel = v6_1::KERNEL;
    /// Linux 6.6 on a usual machine: HZ 1000, window from the measured ratio.
    pub const V6_6: Kernel = v6_6::KERNEL;
    /// Linux 6.12 on a usual machine: HZ 1000, window from the measured ratio.
    pub const V6_12: Kernel = v6_12::KERNEL;
    /// Linux 6.18 on a usual machine.
    pub const V6_18: Kernel = v6_18::KERNEL;
    /// Linux 6.19 on a usual machine.
    pub const V6_19: Kernel = v6_19::KERNEL;
    /// Linux 7.1 on a usual machine.
    pub const V7_1: Kernel = v7_1::KERNEL;

    /// The rules of its version.
    #[inline]
    pub fn rules(&self) -> &'static Rules {
        match self.rules {
            Version::V6_1 => &v6_1::RULES,
            Version::V6_6 => &v6_6::RULES,
            Version::V6_12 => &v6_12::RULES,
            Version::V6_18 => &v6_18::RULES,
            Version::V6_19 => &v6_19::RULES,
            Version::V7_1 => &v7_1::RULES,
        }
    }

    /// Payload that fits behind the headers in the head of a received buffer, bytes: what `skb_overhead` leaves beside the 576 bytes that
    /// describe a buffer and the room for headers. A short segment is copied there (docs/models/tcp/kernel-profiles.md).
    #[inline]
    pub fn head_room(&self) -> u32 {
        self.skb_overhead.saturating_sub(BUFFER_DESCRIPTION + self.max_tcp_header)
    }
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel::V6_1
    }
}

/// Memory that describes a socket buffer (`struct sk_buff` and `struct skb_shared_info`, 256 + 320), bytes.
const BUFFER_DESCRIPTION: u32 = 576;
