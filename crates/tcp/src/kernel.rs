//! What differs between kernels and machines: the profile a scenario names, and the jiffies clock.
//!
//! Source: `Documentation/networking/ip-sysctl.rst`, and TCP_INFO of the kernels named (docs/models/tcp/kernel-profiles.md).

use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Time};

/// Whose rules apply where kernels differ in more than a sysctl (docs/models/tcp/kernel-profiles.md lists them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rules {
    /// Linux 6.1.
    #[serde(rename = "6.1")]
    V6_1,
    /// Linux 6.12.
    #[serde(rename = "6.12")]
    V6_12,
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
    /// The version whose rules apply.
    pub rules: Rules,
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
    /// Time that each packet which arrives takes in its host between the wire and TCP, ns: interrupt, device driver, IP. 0 is a host in virtual time
    /// (docs/models/tcp/hosts.md).
    #[serde(rename = "host_time")]
    pub host_time_ns: u32,
}

impl Kernel {
    /// Linux 6.1: HZ 100, half the buffer is window; buffers of a machine of some GB.
    pub const V6_1: Kernel = Kernel {
        rules: Rules::V6_1,
        hz: 100,
        window: WindowRule::Half,
        skb_overhead: 1_280,
        max_tcp_header: 320,
        rmem_max: 212_992,
        wmem_max: 212_992,
        tcp_rmem_default: 131_072,
        tcp_rmem_max: 6_291_456,
        tcp_wmem_default: 16_384,
        tcp_wmem_max: 4_194_304,
        limit_output_bytes: 1 << 20,
        comp_sack_nr: 44,
        comp_sack_delay_ns: 1_000_000,
        slow_start_after_idle: true,
        host_time_ns: 0,
    };
    /// Linux 6.12 and later on a usual machine: HZ 1000, window from the measured ratio.
    pub const V6_12: Kernel = Kernel { rules: Rules::V6_12, hz: 1000, window: WindowRule::ScalingRatio, skb_overhead: 960, ..Kernel::V6_1 };
    /// Linux 6.18 on a usual machine.
    pub const V6_18: Kernel = Kernel { tcp_rmem_max: 32 << 20, limit_output_bytes: 4 << 20, ..Kernel::V6_12 };

    /// Whether the rules of 6.12 apply.
    #[inline]
    pub fn is_6_12(&self) -> bool {
        self.rules >= Rules::V6_12
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
/// Levels of the timer wheel; a tick of each is 8 of the one below.
const WHEEL_LEVELS: u32 = 9;
/// A timer is on the lowest level if it is fewer ticks ahead than this.
const LOWEST_LEVEL: u64 = 63;

/// The tick counter: a timer armed for `n` jiffies fires on the tick that ends jiffy `n`, later ones on coarser grids.
#[derive(Clone, Copy, Debug)]
pub struct Jiffies {
    /// Length of a tick.
    tick: u64,
    /// 2⁸⁰ / tick, rounded up: with it a division is a multiplication, exact below 2⁵⁴ ns.
    per_tick: u64,
    /// Phase: the first tick after time zero.
    phase: u64,
    hz: u32,
}

impl Jiffies {
    /// `hz` ticks a second, shifted by `phase` (taken modulo a tick).
    pub fn new(hz: u32, phase: Duration) -> Jiffies {
        let tick = 1_000_000_000 / u64::from(hz.max(1));
        // Ticks of 2¹⁶ ns and less (above 15 kHz) would not fit.
        let tick = tick.max(1 << 16 | 1);
        Jiffies { tick, per_tick: ((1u128 << 80) / u128::from(tick) + 1) as u64, phase: phase.0 % tick, hz: hz.max(1) }
    }
    /// Whole ticks in `ns`.
    #[inline]
    fn ticks(&self, ns: u64) -> u64 {
        debug_assert!(ns < 1 << 54, "half a year");
        ((u128::from(ns) * u128::from(self.per_tick)) >> 80) as u64
    }
    /// Ticks a second.
    #[inline]
    pub fn hz(&self) -> u32 {
        self.hz
    }
    /// The tick counter at `now`.
    #[inline]
    pub fn at(&self, now: Time) -> u64 {
        self.ticks(now.0 + self.tick - self.phase)
    }
    /// Nanoseconds at `now` since the last tick before time zero.
    #[inline]
    pub fn since_tick(&self, now: Time) -> u64 {
        now.0 + self.tick - self.phase
    }
    /// When tick `j` happens.
    #[inline]
    pub fn time_of(&self, j: u64) -> Time {
        Time((j * self.tick + self.phase).saturating_sub(self.tick))
    }
    /// Microseconds to ticks, rounded up.
    #[inline]
    pub fn from_micros(&self, us: u64) -> u64 {
        self.ticks(us * 1_000 + self.tick - 1)
    }
    /// Ticks to microseconds.
    #[inline]
    pub fn to_micros(&self, j: u64) -> u64 {
        j * self.tick / 1_000
    }
    /// Ticks of one `divisor`th of a second, rounded down.
    #[inline]
    pub fn hz_over(&self, divisor: u32) -> u64 {
        u64::from(self.hz / divisor)
    }
    /// When a timer armed at `now` for `n` ticks ahead really fires: on the timer wheel it is rounded up by one unit of its level, 1 tick up
    /// to 63 ahead, 8 up to 504, 64 up to 4,032, and so on (docs/models/tcp/kernel-profiles.md, "Timers").
    #[inline]
    pub fn fire(&self, now: Time, n: u64) -> Time {
        self.fire_from(self.at(now), n)
    }
    /// The same for a timer armed in tick `tick`.
    #[inline]
    pub fn fire_from(&self, tick: u64, n: u64) -> Time {
        let top = WHEEL_LEVELS - 1;
        let level = (0..top).find(|level| n < LOWEST_LEVEL << (3 * level)).unwrap_or(top);
        let unit = 3 * level;
        self.time_of((((tick + n) >> unit) + 1) << unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_200_ms_timer_fires_between_200_and_210_ms_at_hz_100() {
        let j = Jiffies::new(100, Duration::millis(3));
        for t in 0..30u64 {
            let now = Time(t * 1_000_000 + 500);
            let d = j.fire(now, 20).since(now).0;
            assert!((200_000_000..=210_000_000).contains(&d), "{d}");
        }
    }

    /// The levels' bounds: 62 ticks ahead is on the lowest, 63 on the second, 504 on the third.
    #[test]
    fn a_timer_is_rounded_up_by_one_unit_of_its_level() {
        let j = Jiffies::new(1_000, Duration::ZERO);
        let now = j.time_of(1_000);
        let fires = |n| j.at(j.fire(now, n));
        assert_eq!((fires(62), fires(63), fires(503)), (1_063, 1_064, 1_504));
        assert_eq!((fires(504), fires(4_031), fires(4_032)), (1_536, 5_056, 5_120));
    }

    #[test]
    fn far_timers_are_coarser() {
        let j = Jiffies::new(100, Duration::ZERO);
        let now = Time(1_000_000_000);
        let d = j.fire(now, 100).since(now).0;
        assert!((1_000_000_000..=1_080_000_000).contains(&d), "{d}");
    }

    #[test]
    fn ticks_and_times_agree() {
        let j = Jiffies::new(250, Duration::micros(1_234));
        for k in 1..1_000 {
            assert_eq!(j.at(j.time_of(k)), k);
            assert_eq!(j.at(Time(j.time_of(k).0 - 1)), k - 1);
        }
    }

    #[test]
    fn the_division_by_multiplication_is_exact() {
        for hz in [24, 100, 250, 300, 999, 1_000, 10_000] {
            let j = Jiffies::new(hz, Duration::ZERO);
            for k in (0..54).map(|b| 1u64 << b).chain([1, 99, 12_345_678_901, 86_400_000_000_000]) {
                for ns in [k - 1, k, k / j.tick * j.tick, (k / j.tick * j.tick).saturating_sub(1)] {
                    assert_eq!(j.ticks(ns), ns / j.tick, "{ns} at {hz}");
                }
            }
        }
    }
}
