//! The advertised window: how much of the receive buffer is offered, and how the offer grows.
//!
//! Source: RFC 9293 §3.8.6 (window management; §3.8.6.2.2, silly windows), RFC 7323 §2 (scaling); how the window grows and closes is
//! observed: docs/models/tcp/receiver.md, "Window" and "Full buffer".

mod capacity;

pub(super) use capacity::Capacity;

use tcpscape_base::Kernel;

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
        Window { capacity, ceiling: ceiling.min(UNSCALED << scale), grown: advertised, advertised, last_ack: 1, scale, mss }
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

    /// A full segment of `len` bytes occupies `memory`, where the payload share is measured: the ceiling follows, and what the window has
    /// grown to stays. Returns whether the share changed.
    pub fn measure(&mut self, len: u32, memory: u32) -> bool {
        let changed = self.capacity.measure(len, memory);
        if changed {
            self.ceiling = self.capacity.whole() as u32;
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
}
