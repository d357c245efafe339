//! The receive buffer's size, and what memory means in bytes of window.
//!
//! Source: `Documentation/networking/ip-sysctl.rst` (`tcp_rmem`, `tcp_adv_win_scale`, `rmem_max`), docs/models/tcp/kernel-profiles.md
//! ("Buffer → window").

use tcpscape_base::{Kernel, WindowRule};

/// Smallest receive buffer (`SOCK_MIN_RCVBUF`), bytes.
const LEAST_BUFFER: u32 = 2_304;
/// The share of memory that is payload before a full segment was seen, in 1/256.
const SHARE_AT_FIRST: u32 = 128;

/// A receive buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    rule: WindowRule,
    /// Payload share of memory in 1/256, where it is measured.
    share: u32,
    /// The buffer, bytes of memory.
    buffer: u32,
    /// Largest buffer that autotuning makes.
    largest: u32,
    /// `SO_RCVBUF` was set: the buffer stays as it is.
    fixed: bool,
}

impl Capacity {
    /// The buffer that `rcvbuf`, the argument of `SO_RCVBUF`, gives: twice as much, and no less than the least. 0 for an autotuned one.
    pub fn new(kernel: &Kernel, rcvbuf: u32) -> Capacity {
        let fixed = rcvbuf != 0;
        let asked = (rcvbuf.min(kernel.rmem_max) * 2).max(LEAST_BUFFER);
        Capacity {
            rule: kernel.window,
            share: SHARE_AT_FIRST,
            buffer: if fixed { asked } else { kernel.tcp_rmem_default },
            largest: kernel.tcp_rmem_max,
            fixed,
        }
    }

    /// The window that `memory` bytes are good for.
    #[inline]
    pub fn window_of(&self, memory: i64) -> i64 {
        match self.rule {
            WindowRule::Half => memory - (memory >> 1),
            WindowRule::ScalingRatio => (memory * i64::from(self.share)) >> 8,
        }
    }
    /// The memory that a window of `bytes` needs, where the share is measured.
    pub fn memory_for(&self, bytes: u64) -> u64 {
        (bytes << 8) / u64::from(self.share)
    }
    /// Window of the whole buffer.
    #[inline]
    pub fn whole(&self) -> i64 {
        self.window_of(i64::from(self.buffer))
    }
    /// Window of what is free when `used` bytes of memory are not; negative when the buffer is overfull.
    #[inline]
    pub fn free(&self, used: u64) -> i64 {
        self.window_of(i64::from(self.buffer) - used as i64)
    }
    /// Window of the largest buffer that autotuning makes.
    #[inline]
    pub fn largest(&self) -> i64 {
        self.window_of(i64::from(self.largest))
    }

    /// The buffer, bytes of memory.
    #[inline]
    pub fn buffer(&self) -> u32 {
        self.buffer
    }
    /// Whether it stays as it is.
    #[inline]
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }
    /// Whether the payload share is measured.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.rule == WindowRule::ScalingRatio
    }

    /// A full segment of `len` bytes occupies `memory`. Returns whether this changes the payload share.
    pub fn measure(&mut self, len: u32, memory: u32) -> bool {
        let share = ((u64::from(len) << 8) / u64::from(memory.max(1))).clamp(1, 255) as u32;
        let changed = share != self.share;
        self.share = share;
        changed
    }
    /// Enlarges the buffer to `memory` bytes, or as far as autotuning may. Returns whether it is larger now.
    pub fn enlarge(&mut self, memory: u64) -> bool {
        let memory = memory.min(u64::from(self.largest)) as u32;
        let larger = memory > self.buffer;
        self.buffer = self.buffer.max(memory);
        larger
    }
    /// More memory is used than there is: an autotuned buffer below the largest becomes what is used, or the largest.
    pub fn follow(&mut self, used: u64) {
        if self.buffer < self.largest && !self.fixed {
            self.buffer = used.min(u64::from(self.largest)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_capped_then_doubled() {
        let buffer = |rcvbuf| Capacity::new(&Kernel::V6_1, rcvbuf).buffer();
        assert_eq!((buffer(65_536), buffer(262_144), buffer(1)), (131_072, 425_984, 2_304));
        assert_eq!((buffer(0), Capacity::new(&Kernel::V6_1, 0).is_fixed()), (131_072, false));
    }

    /// docs/models/tcp/kernel-profiles.md: half the buffer in 6.1; in 6.12, 153/256 of it once a segment of 1,448 was seen with 960 beside it.
    #[test]
    fn what_a_buffer_is_worth() {
        let half = Capacity::new(&Kernel::V6_1, 65_536);
        assert_eq!((half.whole(), half.free(2_728), half.free(131_074)), (65_536, 64_172, -1));
        let mut measured = Capacity::new(&Kernel { rmem_max: 1 << 20, ..Kernel::V6_12 }, 262_144);
        assert_eq!(measured.whole(), 262_144);
        assert!(measured.measure(1_448, 1_448 + 960) && !measured.measure(1_448, 1_448 + 960));
        assert_eq!((measured.whole(), measured.memory_for(153)), (313_344, 256));
    }

    #[test]
    fn autotuning_ends_at_the_largest_buffer() {
        let mut c = Capacity::new(&Kernel::V6_1, 0);
        assert!(c.enlarge(200_000) && !c.enlarge(150_000));
        assert!(c.enlarge(1 << 40));
        assert_eq!(c.buffer(), 6_291_456);
    }
}
