//! When an ACK is sent: quick, delayed and compressed ACKs.
//!
//! Source: RFC 9293 §3.8.6.3, RFC 5681 §4.2; Linux: `tcp_event_data_recv()`, `tcp_measure_rcv_mss()`,
//! `__tcp_ack_snd_check()`, `tcp_send_delayed_ack()`, `tcp_delack_timer_handler()`. See docs/models/receiver.md.

use crate::{Jiffies, Kernel};
use tcpscape_base::Time;

/// Most segments that are acknowledged one by one (`TCP_MAX_QUICKACKS`).
pub(super) const MAX_QUICKACKS: u32 = 16;
/// ACKs for out-of-order data that go out before compression starts (`TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED_DUPACKS: u8 = 3;
/// How much later than its delay a compressed ACK goes: the slack is used up, since arrivals wake no soft timers
/// (`net.ipv4.tcp_comp_sack_slack_ns`).
const COMP_SACK_SLACK_NS: u64 = 100_000;
/// Default MSS (`TCP_MSS_DEFAULT`, RFC 9293 §3.7.1) and the smallest one that is believed (`TCP_MIN_MSS`).
const MSS_DEFAULT: u32 = 536;
const MSS_MIN: u32 = 88;
/// Bytes of TCP header of a data segment, timestamps included (`tcp_header_len`).
const HEADER_LEN: u32 = 32;

/// What is scheduled and how eager the receiver is (`icsk_ack`).
#[derive(Default)]
pub(super) struct Acks {
    /// There is something to acknowledge (`ICSK_ACK_SCHED`).
    pub scheduled: bool,
    /// The delayed-ACK timer counts (`ICSK_ACK_TIMER`).
    pub timer: bool,
    /// A short or pushed segment came (`ICSK_ACK_PUSHED`) …
    pub pushed: bool,
    /// … and another (`ICSK_ACK_PUSHED2`).
    pub pushed_twice: bool,
    /// The next check sends at once (`ICSK_ACK_NOW`).
    pub at_once: bool,
    /// A segment in order found no memory: the next ACK closes the window (`ICSK_ACK_NOMEM`, 6.12).
    pub no_memory: bool,
    /// Most jiffies that an ACK is delayed (`tcp_delack_max()`) …
    most: u64,
    /// … and most that `ato` grows to.
    ato_max: u64,
    /// Segments still to be acknowledged one by one (`quick`).
    pub quick: u32,
    /// Interactive session: the ACK hopes for data to travel with (`pingpong`).
    pub pingpong: bool,
    /// Delay of the delayed ACK in jiffies (`ato`).
    pub ato: u64,
    /// When the delayed ACK is due, in jiffies (`timeout`).
    pub timeout: u64,
    /// Jiffy of the last data (`lrcvtime`).
    pub lrcvtime: u64,
    /// Estimate of the sender's segment size (`rcv_mss`).
    pub rcv_mss: u32,
    last_seg_size: u32,
    /// RTO in jiffies, an upper limit of `ato` (`icsk_rto`).
    pub rto: u64,
    /// RTT of the SYN-ACK in µs << 3, 0 if it was retransmitted (`srtt_us`), and in jiffies.
    pub srtt_us: u32,
    srtt: u64,
    /// The current jiffy and when the next one begins, so that time is seldom divided.
    jiffy: (u64, Time),
    /// The delayed-ACK timer as the timer wheel holds it: when it fires, and the jiffy it was armed for. It is left
    /// running when an ACK goes out otherwise.
    wheel: Option<(Time, u64)>,
    /// ACKs held back by SACK compression (`compressed_ack`).
    pub compressed: u32,
    /// When compression ends (`compressed_ack_timer`).
    compress_until: Option<Time>,
    compress_rcv_nxt: u64,
    dupacks: u8,
}

/// What `Acks::check` wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Send an ACK.
    Send,
    /// Nothing now.
    Wait,
}

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`: 40 ms, at least 4 jiffies.
fn ato_min(j: &Jiffies) -> u64 {
    if j.hz() >= 100 {
        j.hz_over(25)
    } else {
        4
    }
}

impl Acks {
    /// Nothing to acknowledge. ACKs are delayed by 200 ms at most (`TCP_DELACK_MAX`), in 6.12 by a jiffy less than the smallest
    /// RTO.
    pub fn new(kernel: &Kernel, j: &Jiffies) -> Acks {
        let max = j.hz_over(5);
        let (most, ato_max) = if kernel.is_6_12() { (max.min(j.from_micros(200_000).max(2) - 1), max) } else { (max, u64::MAX) };
        Acks { most, ato_max, ..Acks::default() }
    }

    /// The connection is established. Linux: tcp_initialize_rcv_mss(), tcp_synack_rtt_meas()
    pub fn establish(&mut self, now: Time, j: &Jiffies, advmss: u32, wnd: u32, synack_rtt_us: Option<u64>) {
        self.rcv_mss = advmss.min(wnd / 2).clamp(MSS_MIN, MSS_DEFAULT);
        self.lrcvtime = j.at(now);
        self.rto = u64::from(j.hz());
        if let Some(us) = synack_rtt_us {
            let us = us.max(1);
            self.srtt = j.from_micros(us);
            self.srtt_us = (us << 3).min(u64::from(u32::MAX)) as u32;
            self.rto = j.from_micros(us + (2 * us).max(200_000)); // RFC 6298 §2.2, with Linux's floor of the variance
        }
    }

    // The tick counter at `now`, which never goes back.
    #[inline]
    fn at(&mut self, now: Time, j: &Jiffies) -> u64 {
        if now >= self.jiffy.1 {
            let at = j.at(now);
            self.jiffy = (at, j.time_of(at + 1));
        }
        self.jiffy.0
    }

    /// Learns the sender's segment size. Linux: tcp_measure_rcv_mss()
    #[inline]
    pub fn measure_mss(&mut self, len: u32, push: bool, bare: bool, advmss: u32) {
        let last = std::mem::take(&mut self.last_seg_size);
        if len >= self.rcv_mss {
            self.rcv_mss = len.min(advmss);
            self.pushed |= push;
            return;
        }
        // Shorter: believed when the same length comes twice, and long enough or not the end of a write.
        let whole = len + HEADER_LEN;
        if whole >= MSS_DEFAULT + 20 || (whole >= MSS_MIN + 20 && bare) {
            self.last_seg_size = len;
            if len == last {
                self.rcv_mss = len;
                return;
            }
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    /// Raises the number of quick ACKs to half a window of segments, 2 at least. Linux: tcp_incr_quickack()
    pub fn quicken(&mut self, wnd: u32, max: u32) {
        let n = (wnd / (2 * self.rcv_mss.max(1))).max(2).min(max);
        self.quick = self.quick.max(n);
    }
    /// Something is wrong: acknowledge eagerly. Linux: tcp_enter_quickack_mode()
    pub fn enter_quick(&mut self, j: &Jiffies, wnd: u32) {
        self.enter_quick_for(MAX_QUICKACKS, j, wnd);
    }
    /// The same for so many segments at most.
    pub fn enter_quick_for(&mut self, most: u32, j: &Jiffies, wnd: u32) {
        self.quicken(wnd, most);
        self.pingpong = false;
        self.ato = ato_min(j);
    }

    /// In-order data came: adapts the delay to the gaps between segments. Linux: tcp_event_data_recv()
    #[inline]
    pub fn on_data(&mut self, now: Time, j: &Jiffies, wnd: u32) {
        let (min, at) = (ato_min(j), self.at(now, j));
        if self.ato == 0 {
            self.quicken(wnd, MAX_QUICKACKS);
            self.ato = min;
        } else {
            let gap = at - self.lrcvtime;
            if gap <= min / 2 {
                self.ato = (self.ato >> 1) + min / 2;
            } else if gap < self.ato {
                self.ato = ((self.ato >> 1) + gap).min(self.rto).min(self.ato_max);
            } else if gap > self.rto {
                self.quicken(wnd, MAX_QUICKACKS);
            }
        }
        self.lrcvtime = at;
    }

    /// Whatever was held back goes with the ACK that is sent.
    #[inline]
    pub fn uncompress(&mut self) {
        self.compressed = 0;
        self.compress_until = None;
    }

    /// An ACK was sent. Linux: tcp_event_ack_sent(), tcp_dec_quickack_mode()
    #[inline]
    pub fn on_sent(&mut self, j: &Jiffies) {
        self.uncompress();
        if self.scheduled && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ato_min(j);
            }
        }
        self.scheduled = false;
        self.timer = false;
        self.pushed = false;
        self.pushed_twice = false;
        self.at_once = false;
        self.no_memory = false;
    }

    /// Whether single segments are acknowledged at once. Linux: tcp_in_quickack_mode()
    #[inline]
    pub fn is_quick(&self) -> bool {
        (self.quick > 0 && !self.pingpong) || self.at_once
    }

    /// Arms the delayed-ACK timer, or says that the ACK is as good as due. Linux: tcp_send_delayed_ack()
    #[inline]
    pub fn delay(&mut self, now: Time, j: &Jiffies) -> Verdict {
        let (min, max) = (ato_min(j), j.hz_over(5));
        let mut ato = self.ato;
        if ato > min {
            let mut most = if self.pingpong || self.pushed { max } else { j.hz_over(2) };
            if self.srtt_us > 0 {
                most = most.min(self.srtt.max(min));
            }
            ato = ato.min(most);
        }
        ato = ato.min(self.most);
        let at = self.at(now, j);
        let mut timeout = at + ato;
        if self.timer {
            if self.timeout <= at + (ato >> 2) {
                return Verdict::Send;
            }
            timeout = timeout.min(self.timeout);
        }
        self.scheduled = true;
        self.timer = true;
        self.timeout = timeout;
        self.arm(now, j);
        Verdict::Wait
    }

    // A timer already armed for that jiffy stays as it is: it may fire on a finer grid than a new one.
    fn arm(&mut self, now: Time, j: &Jiffies) {
        if !matches!(self.wheel, Some((fire, expires)) if fire > now && expires == self.timeout) {
            self.wheel = Some((j.fire(now, self.timeout.saturating_sub(j.at(now))), self.timeout));
        }
    }

    /// Out-of-order data is waiting: send the ACK, or hold it back for a while. `rtt_us` is in µs << 3.
    /// Linux: __tcp_ack_snd_check(), SACK compression
    pub fn compress(&mut self, now: Time, rcv_nxt: u64, rtt_us: u32, most: u32, delay_ns: u64) -> Verdict {
        if self.compressed >= most {
            return Verdict::Send;
        }
        if self.compress_rcv_nxt != rcv_nxt {
            self.compress_rcv_nxt = rcv_nxt;
            self.dupacks = 0;
        }
        if self.dupacks < UNCOMPRESSED_DUPACKS {
            self.dupacks += 1;
            return Verdict::Send;
        }
        if self.compressed == 0 && self.wheel.is_some_and(|(fire, _)| fire <= now) {
            self.wheel = None; // a stale delayed-ACK timer that has fired unnoticed
        }
        self.compressed += 1;
        if self.compress_until.is_none() {
            let rtt = if self.srtt_us > 0 { rtt_us.min(self.srtt_us) } else { rtt_us };
            let delay = delay_ns.min(u64::from(rtt) * 125 / 20); // 5 % of the RTT
            self.compress_until = Some(Time(now.0 + delay + COMP_SACK_SLACK_NS));
        }
        Verdict::Wait
    }
    /// When a timer is due next. A delayed-ACK timer with nothing to do is not mentioned.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        match self.wheel {
            Some((fire, _)) if self.timer || self.compressed > 0 => Some(self.compress_until.map_or(fire, |t| t.min(fire))),
            _ => self.compress_until,
        }
    }

    /// Timers at `now`: whether an ACK is due, and whether it is a delayed one. Linux: tcp_delack_timer_handler()
    pub fn on_timer(&mut self, now: Time, j: &Jiffies) -> Option<bool> {
        if self.compress_until.is_some_and(|t| t <= now) {
            return Some(false);
        }
        let (fire, _) = self.wheel?;
        if fire > now {
            return None;
        }
        self.wheel = None;
        if self.compressed > 0 {
            return Some(false);
        }
        if !self.timer {
            return None;
        }
        if self.timeout > j.at(now) {
            self.arm(now, j);
            return None;
        }
        self.timer = false;
        if !self.scheduled {
            return None;
        }
        if self.pingpong {
            self.pingpong = false;
            self.ato = ato_min(j);
        } else {
            self.ato = (self.ato << 1).min(self.rto).min(self.ato_max);
        }
        Some(true)
    }
}
