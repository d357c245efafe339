//! The advertised window: how much of the receive buffer is offered, and how the offer grows.
//!
//! Source: RFC 9293 §3.8.6, RFC 7323 §2; Linux: `tcp_select_initial_window()`, `tcp_init_buffer_space()`,
//! `__tcp_select_window()`, `tcp_select_window()`, `tcp_grow_window()`. See docs/models/receiver.md.

use crate::{Kernel, WindowRule};

/// The largest scale shift (RFC 7323 §2.3).
const MAX_WSCALE: u32 = 14;
/// Smallest receive buffer: `SOCK_MIN_RCVBUF`.
const MIN_RCVBUF: u32 = 2_304;
/// Bytes of a timestamp option, padded (`TCPOLEN_TSTAMP_ALIGNED`).
const TSTAMP: u32 = 12;

/// Receive buffer, window and their limits.
pub(super) struct Window {
    rule: WindowRule,
    /// Payload share of buffer memory in 1/256 (`scaling_ratio`); 128 until a full segment was seen.
    ratio: u32,
    /// `sk_rcvbuf`.
    pub rcvbuf: u32,
    /// `SO_RCVBUF` was set: no autotuning (`SOCK_RCVBUF_LOCK`).
    pub locked: bool,
    /// `tcp_rmem[2]`.
    pub rmem_max: u32,
    /// `MAX_TCP_HEADER`.
    pub max_tcp_header: u32,
    /// Largest window ever to be offered (`window_clamp`).
    pub clamp: u32,
    /// Current limit of the window, growing with well-filled segments (`rcv_ssthresh`).
    pub ssthresh: u32,
    /// Window last advertised (`rcv_wnd`) …
    pub wnd: u32,
    /// … when this was the next byte expected (`rcv_wup`).
    pub wup: u64,
    /// Scale shift.
    pub wscale: u8,
    /// Own maximum segment size without options that are always there (`advmss`).
    pub advmss: u32,
}

/// `v` rounded up to a multiple of `1 << shift`.
fn align(v: u32, shift: u8) -> u32 {
    let m = (1u32 << shift) - 1;
    v.saturating_add(m) & !m
}

impl Window {
    /// The window of a listening socket at the moment of the SYN. Linux: tcp_openreq_init_rwin(), tcp_select_initial_window()
    pub fn new(kernel: &Kernel, rcvbuf: u32, advmss: u32) -> Window {
        let locked = rcvbuf != 0;
        let rcvbuf = if locked { (rcvbuf.min(kernel.rmem_max) * 2).max(MIN_RCVBUF) } else { kernel.tcp_rmem_default };
        let mut w = Window {
            rule: kernel.window,
            ratio: 128,
            rcvbuf,
            locked,
            rmem_max: kernel.tcp_rmem_max,
            max_tcp_header: kernel.max_tcp_header,
            clamp: 65_535 << MAX_WSCALE,
            ssthresh: 0,
            wnd: 0,
            wup: 1,
            wscale: 0,
            advmss,
        };
        let full = w.full_space() as u32;
        if locked {
            w.clamp = w.clamp.min(full);
        }
        let (mut space, mss) = (w.clamp.min(full), (advmss - TSTAMP).max(1));
        if space > mss {
            space -= space % mss;
        }
        // What the SYN-ACK cannot say, it being unscaled, 6.12 grants all the same.
        w.wnd = if kernel.is_6_12() { space } else { space.min(65_535) };
        let most = space.max(kernel.tcp_rmem_max).max(kernel.rmem_max).min(w.clamp);
        w.wscale = (most.max(1).ilog2().max(15) - 15).min(MAX_WSCALE) as u8;
        w.clamp = w.clamp.min(65_535 << w.wscale);
        w.ssthresh = w.wnd;
        w
    }

    /// The handshake is over: the clamp leaves room for one segment. Linux: tcp_init_buffer_space()
    pub fn establish(&mut self) {
        self.advmss -= TSTAMP;
        let full = self.full_space() as u32;
        self.clamp = self.clamp.min(full);
        if self.clamp > 2 * self.advmss && self.clamp + self.advmss > full {
            self.clamp = (2 * self.advmss).max(full.saturating_sub(self.advmss));
        }
        self.ssthresh = self.ssthresh.min(self.clamp);
    }

    /// The window that `space` bytes of buffer are good for. Linux: tcp_win_win_from()
    #[inline]
    pub fn win_from(&self, space: i64) -> i64 {
        match self.rule {
            WindowRule::Half => space - (space >> 1),
            WindowRule::ScalingRatio => (space * i64::from(self.ratio)) >> 8,
        }
    }
    /// The buffer that a window of `win` needs, where the kernel measures it. Linux: tcp_space_from_win()
    pub fn space_from_win(&self, win: u64) -> u64 {
        (win << 8) / u64::from(self.ratio)
    }
    /// Whether the ratio of payload to memory is measured.
    pub fn measures(&self) -> bool {
        self.rule == WindowRule::ScalingRatio
    }
    /// Window if the buffer were empty. Linux: tcp_full_space()
    #[inline]
    pub fn full_space(&self) -> i64 {
        self.win_from(i64::from(self.rcvbuf))
    }
    /// Window that the free part of the buffer is good for; negative when it is overfull. Linux: tcp_space()
    #[inline]
    pub fn space(&self, used: u64) -> i64 {
        self.win_from(i64::from(self.rcvbuf) - used as i64)
    }
    /// What is left of the window last advertised. Linux: tcp_receive_window()
    #[inline]
    pub fn left(&self, rcv_nxt: u64) -> u32 {
        (self.wup + u64::from(self.wnd)).saturating_sub(rcv_nxt) as u32
    }

    /// A full-sized segment of a new size shows what memory a payload byte costs; true when the clamp moved and DRS must
    /// follow. What the window has grown to stays. Linux 6.12: tcp_measure_rcv_mss()
    pub fn measure_ratio(&mut self, len: u32, truesize: u32) -> bool {
        let ratio = ((u64::from(len) << 8) / u64::from(truesize.max(1))).clamp(1, 255) as u32;
        if ratio == self.ratio {
            return false;
        }
        self.ratio = ratio;
        self.clamp = self.full_space() as u32;
        true
    }

    /// What to offer now, without the rule against shrinking, and whether the buffer is more than half full (which ends
    /// quick ACKs). Linux: __tcp_select_window(); RFC 9293 §3.8.6.2.2
    #[inline]
    pub fn select(&self, used: u64, rcv_mss: u32) -> (u32, bool) {
        let allowed = self.full_space();
        let full = allowed.min(i64::from(self.clamp));
        let mss = i64::from(rcv_mss).min(full);
        if mss <= 0 {
            return (0, false);
        }
        let mut free = self.space(used);
        let tight = free < full >> 1;
        if tight {
            free &= !((1i64 << self.wscale) - 1);
            if free < allowed >> 4 || free < mss {
                return (0, true);
            }
        }
        let free = free.min(i64::from(self.ssthresh));
        if self.wscale > 0 {
            return (align(free as u32, self.wscale), tight);
        }
        let wnd = i64::from(self.wnd);
        let win = if wnd <= free - mss || wnd > free {
            free - free % mss
        } else if mss == full && free > wnd + (full >> 1) {
            free
        } else {
            wnd
        };
        (win as u32, tight)
    }

    /// Takes the offer of an ACK that is being sent: never less than promised before. Linux: tcp_select_window()
    #[inline]
    pub fn advertise(&mut self, offer: u32, rcv_nxt: u64) -> u32 {
        let left = self.left(rcv_nxt);
        self.wnd = if offer < left { align(left, self.wscale) } else { offer };
        self.wup = rcv_nxt;
        (self.wnd.min(65_535 << self.wscale) >> self.wscale) << self.wscale
    }

    /// Takes the whole offer back: a segment in order found no memory. Linux 6.12: tcp_select_window(), ICSK_ACK_NOMEM
    pub fn close(&mut self, rcv_nxt: u64) -> u32 {
        self.wnd = 0;
        self.wup = rcv_nxt;
        0
    }

    /// A segment was queued: may the window grow? Returns whether it did. `truesize` is what such a segment will cost
    /// once coalesced. Linux: tcp_grow_window(), __tcp_grow_window()
    #[inline]
    pub fn grow(&mut self, used: u64, len: u32, truesize: u32, rcv_mss: u32) -> bool {
        let room = self.space(used).min(i64::from(self.clamp)) - i64::from(self.ssthresh);
        if room <= 0 {
            return false;
        }
        let incr = if self.win_from(i64::from(truesize)) <= i64::from(len) {
            2 * self.advmss
        } else {
            // A badly filled segment: grow only while the window is small for the memory there could be.
            let mut cost = self.win_from(i64::from(truesize)) >> 1;
            let mut limit = self.win_from(i64::from(self.rmem_max)) >> 1;
            loop {
                if i64::from(self.ssthresh) > limit {
                    return false;
                }
                if cost <= i64::from(len) {
                    break 2 * rcv_mss;
                }
                cost >>= 1;
                limit >>= 1;
            }
        };
        self.ssthresh += i64::from(incr.max(2 * len)).min(room) as u32;
        true
    }

    /// The buffer is overfull. Linux: tcp_clamp_window()
    pub fn squeeze(&mut self, used: u64) {
        if self.rcvbuf < self.rmem_max && !self.locked {
            self.rcvbuf = (used.min(u64::from(self.rmem_max))) as u32;
        }
        if used > u64::from(self.rcvbuf) {
            self.ssthresh = self.clamp.min(2 * self.advmss);
        }
    }
}
