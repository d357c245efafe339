//! The advertised window: how much of the receive buffer is offered, how the offer grows, and what the buffer's memory means in bytes of window.
//!
//! Source: RFC 9293 §3.8.6 (window management; §3.8.6.2.2, silly windows), RFC 7323 §2 (scaling), `Documentation/networking/ip-sysctl.rst`
//! (`tcp_rmem`, `tcp_adv_win_scale`, `rmem_max`); how the window grows and closes is observed: docs/models/tcp/receiver.md, "Window" and "Full
//! buffer", docs/models/tcp/kernel-profiles.md ("Buffer → window").

use tcpscape_base::{Kernel, WindowRule};

/// The largest scale shift (RFC 7323 §2.3).
const MOST_SCALE: u32 = 14;
/// The largest window that the header's field holds.
pub(super) const UNSCALED: u32 = 65_535;
/// Bytes of a timestamp option, padded (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;
/// The window closes when less than this share of the buffer is free.
const CLOSED_BELOW: i64 = 16;

/// What could be offered now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// Window, bytes.
    pub window: u32,
    /// Less than half of the buffer is free.
    pub is_tight: bool,
}

/// The receive window.
pub(super) struct Window {
    capacity: Capacity,
    /// Largest window ever to be offered.
    ceiling: u32,
    /// What the window has grown to: it opens with well-filled segments, not at once.
    grown: u32,
    /// Window last advertised (RCV.WND) …
    advertised: u32,
    /// … when this was the next byte expected: the number of the last ACK.
    last_ack: u64,
    /// Scale shift.
    scale: u8,
    /// Where the payload share opens the ceiling, the window grows to what is offered.
    opens_to_offer: bool,
    /// Own maximum segment size; without the options that are always there once the connection is open.
    mss: u32,
}

/// `v` rounded up to a multiple of `1 << scale`.
fn round_up(v: u32, scale: u8) -> u32 {
    let below = (1u32 << scale) - 1;
    v.saturating_add(below) & !below
}

impl Window {
    /// The window of a listening socket: what the SYN-ACK offers, and the scale for all that may come (RFC 7323 §2.2). `mss` is what the
    /// SYN-ACK announces.
    pub fn new(kernel: &Kernel, rcvbuf: u32, mss: u32) -> Window {
        let capacity = Capacity::new(kernel, rcvbuf);
        let whole = capacity.whole() as u32;
        let unlimited = UNSCALED << MOST_SCALE;
        let ceiling = if capacity.is_fixed() { whole.min(unlimited) } else { unlimited };
        let segment = (mss - TIMESTAMPS).max(1);
        let first = match whole.min(ceiling) {
            space if space > segment => space - space % segment,
            space => space,
        };
        let largest = first.max(kernel.tcp_rmem_max).max(kernel.rmem_max).min(ceiling);
        let scale = (largest.max(1).ilog2().max(15) - 15).min(MOST_SCALE) as u8;
        // What the SYN-ACK cannot say, it being unscaled, 6.12 grants all the same.
        let advertised = if kernel.rules().opens_beyond_syn { first } else { first.min(UNSCALED) };
        Window {
            capacity,
            ceiling: ceiling.min(UNSCALED << scale),
            grown: advertised,
            advertised,
            last_ack: 1,
            scale,
            opens_to_offer: kernel.rules().opens_to_offer,
            mss,
        }
    }

    /// The handshake is over: the ceiling leaves room for one segment, unless that were more than all but two.
    pub fn establish(&mut self) {
        self.mss -= TIMESTAMPS;
        let whole = self.capacity.whole() as u32;
        self.ceiling = self.ceiling.min(whole);
        if self.ceiling > 2 * self.mss && self.ceiling + self.mss > whole {
            self.ceiling = (2 * self.mss).max(whole.saturating_sub(self.mss));
        }
        self.grown = self.grown.min(self.ceiling);
    }

    /// The buffer behind the window.
    #[inline]
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }
    /// Window last advertised, counted from [`Window::last_ack`].
    #[inline]
    pub fn advertised(&self) -> u32 {
        self.advertised
    }
    /// The number of the last ACK sent (Last.ACK.sent of RFC 7323).
    #[inline]
    pub fn last_ack(&self) -> u64 {
        self.last_ack
    }
    /// Scale shift.
    #[inline]
    pub fn scale(&self) -> u8 {
        self.scale
    }
    /// Largest window ever to be offered.
    #[inline]
    pub fn ceiling(&self) -> u32 {
        self.ceiling
    }
    /// What the window has grown to.
    #[inline]
    pub fn grown(&self) -> u32 {
        self.grown
    }
    /// Own maximum segment size.
    #[inline]
    pub fn mss(&self) -> u32 {
        self.mss
    }
    /// What is left of the window last advertised when `next` is the next byte expected.
    #[inline]
    pub fn left(&self, next: u64) -> u32 {
        (self.last_ack + u64::from(self.advertised)).saturating_sub(next) as u32
    }

    /// What to offer while `used` bytes of memory are occupied and the sender's segments have `segment` bytes, leaving aside that an offer
    /// is not taken back.
    #[inline]
    pub fn offer(&self, used: u64, segment: u32) -> Offer {
        let whole = self.capacity.whole();
        let most = whole.min(i64::from(self.ceiling));
        let segment = most.min(i64::from(segment));
        if segment <= 0 {
            return Offer { window: 0, is_tight: false };
        }
        let mut free = self.capacity.free(used);
        let is_tight = free < most / 2;
        if is_tight {
            free = (free >> self.scale) << self.scale;
            // RFC 9293 §3.8.6.2.2: a window of less than a segment, or than a sixteenth of the buffer, is a silly one.
            if free < whole / CLOSED_BELOW || free < segment {
                return Offer { window: 0, is_tight };
            }
        }
        let free = free.min(i64::from(self.grown)) as u32;
        let window = if self.scale > 0 { round_up(free, self.scale) } else { self.in_segments(free, segment as u32, most as u32) };
        Offer { window, is_tight }
    }
    // RFC 9293 §3.8.6.2.2: a window without scale moves only by whole segments, or where a segment is all of it, by half.
    fn in_segments(&self, free: u32, segment: u32, most: u32) -> u32 {
        let now = self.advertised;
        if now > free || free - now >= segment {
            free - free % segment
        } else if segment == most && free - now > most / 2 {
            free
        } else {
            now
        }
    }

    /// An ACK of `next` takes the offer; it takes nothing back that was promised (RFC 9293 §3.8.6). Returns the window as the header
    /// says it.
    #[inline]
    pub fn advertise(&mut self, offer: u32, next: u64) -> u32 {
        let left = self.left(next);
        self.advertised = if offer < left { round_up(left, self.scale) } else { offer };
        self.last_ack = next;
        (self.advertised.min(UNSCALED << self.scale) >> self.scale) << self.scale
    }
    /// An ACK of `next` takes the whole offer back: a segment in order found no memory (6.12). Returns the window, 0.
    pub fn close(&mut self, next: u64) -> u32 {
        self.advertised = 0;
        self.last_ack = next;
        0
    }

    /// A segment of `len` bytes was queued that costs `memory` bytes where it is merged with others, and `used` are occupied: the window
    /// may grow. Returns whether it did.
    #[inline]
    pub fn grow(&mut self, used: u64, len: u32, memory: u32, segment: u32) -> bool {
        let room = self.capacity.free(used).min(i64::from(self.ceiling)) - i64::from(self.grown);
        if room <= 0 {
            return false;
        }
        let step = match self.times_too_large(memory, len) {
            0 => 2 * self.mss,
            halvings if i64::from(self.grown) <= self.capacity.largest() >> halvings => 2 * segment,
            _ => return false,
        };
        self.grown += i64::from(step.max(2 * len)).min(room) as u32;
        true
    }
    // How often the window of a segment's memory must be halved to be no more than its payload: 0 for a well-filled segment.
    #[inline]
    fn times_too_large(&self, memory: u32, len: u32) -> u32 {
        let mut window = self.capacity.window_of(i64::from(memory));
        let mut halvings = 0;
        while window > i64::from(len) {
            window >>= 1;
            halvings += 1;
        }
        halvings
    }

    /// A full segment of `len` bytes occupies `memory`, where the payload share is measured: the ceiling follows. What the window has
    /// grown to stays, but since 6.18 it becomes what is offered where the ceiling opens. Returns whether the share changed.
    pub fn measure(&mut self, len: u32, memory: u32) -> bool {
        let changed = self.capacity.measure(len, memory);
        if changed {
            let whole = self.capacity.whole() as u32;
            if self.opens_to_offer && whole > self.ceiling {
                self.grown = self.grown.max(self.advertised.min(whole));
            }
            self.ceiling = whole;
        }
        changed
    }
    /// Enlarges the buffer to `memory` bytes, as far as it may; the ceiling follows.
    pub fn enlarge(&mut self, memory: u64) {
        if self.capacity.enlarge(memory) {
            self.ceiling = self.capacity.whole() as u32;
        }
    }
    /// The buffer is overfull: it follows what is used if it may, otherwise the window falls to two segments.
    pub fn squeeze(&mut self, used: u64) {
        self.capacity.follow(used);
        if used > u64::from(self.capacity.buffer()) {
            self.grown = self.ceiling.min(2 * self.mss);
        }
    }
}

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

    /// A window over a fixed buffer, after the handshake with an MSS of 1,460.
    fn window(kernel: &Kernel, rcvbuf: u32) -> Window {
        let mut w = Window::new(kernel, rcvbuf, 1_460);
        w.establish();
        w
    }

    /// RFC 7323 §2.2: the scale must suffice for the largest buffer, 6 MiB: 65,535 · 2⁷.
    #[test]
    fn the_scale_suffices_for_the_largest_window() {
        assert_eq!(Window::new(&Kernel::V6_1, 0, 1_460).scale(), 7);
        assert_eq!(Window::new(&Kernel::V6_1, 65_536, 1_460).scale(), 1);
        assert_eq!(Window::new(&Kernel::V6_1, 30_000, 1_460).scale(), 0);
    }

    /// 45 segments of 1,448 are the most that fit into 65,536.
    #[test]
    fn the_first_window_is_whole_segments() {
        assert_eq!(Window::new(&Kernel::V6_1, 65_536, 1_460).advertised(), 45 * 1_448);
        assert_eq!(Window::new(&Kernel::V6_1, 262_144, 1_460).advertised(), 65_535);
    }

    /// RFC 9293 §3.8.6: "the window SHOULD NOT be shrunk", the right edge moves back never.
    #[test]
    fn what_was_promised_is_kept() {
        let mut w = window(&Kernel::V6_1, 65_536);
        let edge = w.last_ack() + u64::from(w.advertised());
        assert_eq!(w.advertise(10_000, 1_449), 65_160 - 1_448);
        assert_eq!(w.last_ack() + u64::from(w.advertised()), edge);
        assert_eq!((w.close(1_449), w.left(1_449)), (0, 0));
    }

    /// Below half of the buffer the offer is tight; below a sixteenth there is none.
    #[test]
    fn a_nearly_full_buffer_offers_nothing() {
        let w = window(&Kernel::V6_1, 65_536); // 131,072 of memory, 65,536 of window
        let offer = |free: u64| w.offer(131_072 - 2 * free, 1_448);
        assert!(!offer(40_000).is_tight && offer(30_000).is_tight);
        assert_eq!(offer(4_096), Offer { window: 4_096, is_tight: true });
        assert_eq!(offer(4_095), Offer { window: 0, is_tight: true });
        assert_eq!(w.offer(200_000, 1_448), Offer { window: 0, is_tight: true });
    }

    /// RFC 9293 §3.8.6.2.2: an unscaled window stays until a segment more is free.
    #[test]
    fn an_unscaled_window_moves_by_whole_segments() {
        let mut w = window(&Kernel::V6_1, 20_000); // 40,000 of memory, 20,000 of window: 13 segments at first
        assert_eq!((w.scale(), w.advertised()), (0, 13 * 1_448));
        w.grown = 20_000;
        w.advertised = 5_000;
        let offer = |free: u64| w.offer(40_000 - 2 * free, 1_448).window;
        assert_eq!(offer(6_447), 5_000);
        assert_eq!(offer(6_448), 4 * 1_448);
        assert_eq!(offer(4_999), 3 * 1_448);
    }

    /// A full segment of 2,728 bytes needs 1,364 of window: it is well filled. One of 500 bytes has 1,780: half of the window of the
    /// largest buffer is open to it.
    #[test]
    fn the_window_grows_by_two_segments() {
        let mut w = window(&Kernel::V6_1, 262_144);
        assert!(w.grow(2_728, 1_448, 2_728, 536));
        assert_eq!(w.grown(), 65_535 + 2 * 1_448);
        assert!(w.grow(1_780, 500, 1_780, 500));
        assert_eq!(w.grown(), 65_535 + 2 * 1_448 + 1_000);
        assert!(!w.grow(1_281, 1, 1_281, 536), "640 times too large: 2,000,000 / 1,024");
        assert!(!w.grow(425_984, 1_448, 2_728, 536), "there is no room");
    }

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
