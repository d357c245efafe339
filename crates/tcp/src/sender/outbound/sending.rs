//! What may leave: new data (super-packets, Nagle's rule, the windows, the host's queue), and what was lost once more.
//!
//! Source: RFC 9293 §3.8 and §3.8.6.2.1 (sender's silly-window avoidance), RFC 896 (Nagle), RFC 6675 §5 step C, RFC 6937 §3,
//! docs/models/tcp/sender.md (super-packets). How it differs: small segments are not merged when they are sent again. Not modelled: rescue
//! retransmissions of RFC 6675 (the loss probe does their work).

use super::send_buffer::Unsent;
use super::timer::{may_probe, Purpose};
use super::{Outbound, GSO_MAX};
use crate::sender::connection::Connection;
use crate::sender::governor::Governor;
use crate::sender::report::{Copies, Standing, TimerOrder};
use tcpscape_base::{CaState, Flags, Time};

/// Why data are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Reason {
    /// Everything that may go.
    All,
    /// One super-packet, while a write goes on.
    One,
    /// One segment as a tail loss probe, whatever the congestion window.
    Probe,
}

/// What becomes of the next unsent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// So many bytes leave as one burst.
    Leaves(u32),
    /// They wait, or there are none.
    Waits,
    /// They wait for a larger burst, which the congestion window does not admit yet.
    WaitsForCwnd,
}

impl Outbound {
    // ---- new data ----

    /// Carries out what an ACK asks of the timer, and sends what may go; returns how many segments left. What leaves while a probe may be sent
    /// sets the timer itself.
    #[inline]
    pub fn answer(&mut self, timer: TimerOrder, c: &mut Connection, g: &mut Governor, st: Standing) -> u32 {
        let is_first = !(matches!(timer, TimerOrder::Restart(_)) && may_probe(c, st.state) && c.flight.out() > 0);
        if is_first {
            self.set_timer(timer, c);
        }
        let sent = self.push_pending(c, g, st);
        if sent == 0 && !is_first {
            self.set_timer(timer, c);
        }
        sent
    }

    /// Sends what may go, and sees to it that a closed window is probed; returns how many segments left.
    #[inline]
    pub fn push_pending(&mut self, c: &mut Connection, g: &mut Governor, st: Standing) -> u32 {
        if self.buffer.is_empty() {
            return 0;
        }
        let sent = self.send_pending(Reason::All, c, g, st);
        if sent == 0 && !self.buffer.is_empty() {
            self.schedule_window_probe(c);
        }
        sent
    }

    /// Sends unsent data as far as they may go; returns how many segments left.
    pub fn send_pending(&mut self, reason: Reason, c: &mut Connection, g: &mut Governor, st: Standing) -> u32 {
        let most = self.burst_segments(c, g);
        let (mut sent, mut limited) = (0, false);
        loop {
            match self.next(reason, most, c, g, st) {
                Next::Leaves(len) => {
                    let was_idle = c.flight.out() == 0;
                    sent += self.send_new(len, c, g, st);
                    // A probe that is scheduled below would replace it.
                    if reason == Reason::Probe || !may_probe(c, st.state) {
                        self.restart_rto(was_idle, c);
                    }
                }
                Next::Waits => break,
                Next::WaitsForCwnd => {
                    limited = true;
                    break;
                }
            }
            if reason != Reason::All {
                break;
            }
        }
        limited |= c.flight.in_flight() >= g.cwnd();
        if sent > 0 || limited {
            g.judge_use(c, st.state, limited, self.buffer.is_blocked());
        }
        if sent > 0 && reason != Reason::Probe {
            self.schedule_probe_after_sending(c, st.state);
        }
        sent
    }

    /// Segments that one burst may hold: what the rate sends in 1/1024 s, and more the shorter the path; however few, no more than a super-packet has
    /// room for.
    #[inline]
    pub fn burst_segments(&self, c: &Connection, g: &Governor) -> u32 {
        if !c.cfg.gso {
            return 1;
        }
        let halvings = c.rtt.min_us() / HALVING_RTT_US;
        let by_rtt = GSO_MAX.checked_shr(halvings).unwrap_or(0);
        let bytes = (g.window().pacing_rate / 1_024 + u64::from(by_rtt)).min(u64::from(GSO_MAX)) as u32;
        g.burst_segments(bytes / c.cfg.mss, (GSO_MAX / c.cfg.mss).max(1), c.cfg.tuning.min_tso_segs)
    }

    /// What becomes of the next unsent data; `most` segments make a burst.
    fn next(&mut self, reason: Reason, most: u32, c: &Connection, g: &Governor, st: Standing) -> Next {
        if self.buffer.is_empty() || self.wait_for_pacing(c, g) {
            return Next::Waits;
        }
        let quota = match cwnd_quota(c, g) {
            0 if reason == Reason::Probe || self.buffer.is_fin() => 1,
            0 => return Next::Waits,
            n => n,
        };
        if c.cfg.kernel.rules().fills_unsent_head {
            self.buffer.grow_head(quota.min(most).saturating_mul(c.cfg.mss));
        }
        let Some(&Unsent { len, .. }) = self.buffer.head() else { return Next::Waits };
        if !self.window_allows_head(c) {
            return Next::Waits;
        }
        let single = self.buffer.is_single();
        let burst = if len <= c.cfg.mss {
            if single && reason != Reason::Probe && self.nagle_holds(len < c.cfg.mss, c) {
                return Next::Waits;
            }
            c.cfg.mss
        } else {
            if reason == Reason::All && !self.buffer.is_finished() {
                if let Some(wait) = self.waits_for_larger(len, most, c, g, st) {
                    return wait;
                }
            }
            self.burst_length(len, quota.min(most), c)
        };
        if self.throttle_if_host_is_full(len.min(burst), 1, c, g) {
            // It was cut to size before the queue was looked at, and stays so.
            self.buffer.cut_head(burst);
            return Next::Waits;
        }
        Next::Leaves(len.min(burst))
    }

    /// Whether the first unsent segment fits into the receiver's window.
    pub fn window_allows_head(&self, c: &Connection) -> bool {
        self.buffer.head().is_some_and(|u| c.flight.nxt() + u64::from(u.len.min(c.cfg.mss)) <= c.window_end())
    }

    /// RFC 896 with Minshall's modification: a short segment waits while another short one is in flight.
    fn nagle_holds(&self, short: bool, c: &Connection) -> bool {
        short && !c.cfg.nodelay && self.buffer.small_in_flight(&c.flight)
    }

    /// How much of `len` unsent bytes leaves as one burst of at most so many segments: page sender, "Size of a burst".
    fn burst_length(&self, len: u32, segments: u32, c: &Connection) -> u32 {
        let (window, whole) = (c.window_end() - c.flight.nxt(), c.cfg.mss.saturating_mul(segments));
        let allowed = u64::from(len.min(whole)).min(window) as u32;
        let goes_on = !self.buffer.is_single() && u64::from(whole) <= window;
        let rest = if goes_on { 0 } else { allowed % c.cfg.mss };
        allowed - if self.nagle_holds(rest > 0, c) { rest } else { 0 }
    }

    /// Whether `len` unsent bytes wait for the next ACK, because it is near and would let a larger burst go: page sender, "Waiting for a fuller burst".
    fn waits_for_larger(&self, len: u32, most: u32, c: &Connection, g: &Governor, st: Standing) -> Option<Next> {
        let mss = c.cfg.mss;
        let by_window = (c.window_end() - c.flight.nxt()) as u32;
        let by_cwnd = (g.cwnd() - c.flight.in_flight()).saturating_mul(mss);
        let third = c.peer.window().min(g.cwnd().saturating_mul(mss)) / c.cfg.tuning.tso_win_divisor;
        let write = if self.buffer.is_single() { u32::MAX } else { len };
        let enough = (most * mss).min(third).min(write);
        let waits = by_window.min(by_cwnd) < enough && self.ack_is_near(c, st.state);
        waits.then_some(if by_cwnd < by_window && by_cwnd <= len { Next::WaitsForCwnd } else { Next::Waits })
    }

    /// Whether the ACK of the oldest segment is due within 1 ms or half the RTT, and something left within 1 ms before now, which was no repair.
    fn ack_is_near(&self, c: &Connection, state: CaState) -> bool {
        let (now_ns, rtt_ns) = (c.now.time.0, c.rtt.srtt_ns());
        let was_busy = now_ns.saturating_sub(self.pacer.next_ns()) <= NEAR_NS;
        let is_due = |sent_ns: u64| (sent_ns + rtt_ns).saturating_sub(now_ns) <= NEAR_NS.min(rtt_ns / 2);
        state < CaState::Recovery && was_busy && c.flight.front().is_some_and(|oldest| is_due(oldest.sent_ns))
    }

    /// Sends the first `len` unsent bytes as one burst; returns its segments.
    fn send_new(&mut self, len: u32, c: &mut Connection, g: &mut Governor, st: Standing) -> u32 {
        self.buffer.cut_head(len);
        let Some(head) = self.buffer.take_head() else { return 0 };
        let (segments, seq, was_idle) = (len.div_ceil(c.cfg.mss), c.flight.nxt(), c.flight.out() == 0);
        let departure_ns = self.depart(len, segments, c, g, st.state);
        let departure = c.rate.depart(departure_ns, was_idle, c.flight.marked_lost());
        c.flight.send(len, c.cfg.mss, head.push, &departure);
        if len % c.cfg.mss != 0 {
            self.buffer.small_sent(c.flight.nxt());
        }
        self.check_space(c, g, st);
        let (cwr, ecn) = c.ecn.data();
        let flags = if is_pushed(segments, head.push) { cwr.with(Flags::PSH) } else { cwr };
        self.emit(seq, len, departure_ns, flags, ecn, c);
        segments
    }

    /// A window probe that carries what little of the next segment the window admits.
    pub(super) fn send_what_fits(&mut self, c: &mut Connection, g: &mut Governor, st: Standing) {
        let room = (c.window_end() - c.flight.nxt()) as u32;
        let len = self.buffer.head().map_or(0, |u| u.len).min(room).min(c.cfg.mss);
        if len > 0 {
            self.send_new(len, c, g, st);
            self.restart_rto(true, c);
        }
    }

    // ---- sending again ----

    /// Sends lost segments again, lowest first, as far as the window allows.
    pub fn send_lost(&mut self, c: &mut Connection, g: &mut Governor, state: CaState) -> Copies {
        let mut copies = Copies::default();
        if c.flight.out() == 0 {
            return copies;
        }
        let most = self.burst_segments(c, g);
        let mut restart = false;
        while c.flight.in_flight() < g.cwnd() && c.flight.has_lost_to_send() {
            let Some(id) = c.flight.next_lost() else { break };
            if self.wait_for_pacing(c, g) {
                break;
            }
            let len = c.flight.same_state_run(id, u32::MAX, u64::MAX).1;
            if self.throttle_if_host_is_full(len, 2, c, g) {
                break;
            }
            let next = self.send_again(id, (g.cwnd() - c.flight.in_flight()).min(most), c, g, state);
            copies.add(&next);
            if next.left == 0 {
                break;
            }
            restart |= id == c.flight.front_id() && self.timer.purpose() != Some(Purpose::Reordering);
        }
        if restart {
            self.arm_paced(Purpose::Retransmit, c.rtt.rto(), c);
        }
        copies
    }

    /// Sends up to `most` segments from `id` again and counts them as copies in flight.
    ///
    /// A burst that still waits in the host's own queue is not sent again, but counts as if it had been.
    fn send_again(&mut self, id: u32, most: u32, c: &mut Connection, g: &mut Governor, state: CaState) -> Copies {
        let is_held = self.host.holds(c.flight.get(id).burst);
        let left = if is_held { 0 } else { self.transmit_again(id, most, c, g, state) };
        let counted = if is_held {
            c.stats.held_in_host_queue += 1;
            c.flight.same_state_run(id, u32::MAX, u64::MAX).0
        } else if left == 0 {
            return Copies { left, counted: 1, first: None };
        } else {
            c.flight.count_copies(id, left);
            left
        };
        Copies { left, counted, first: Some(c.cfg.jiffies.stamp(Time(c.flight.get(id).sent_ns))) }
    }

    /// A retransmission timeout sends the oldest segment again.
    pub fn send_head_again(&mut self, c: &mut Connection, g: &mut Governor, state: CaState) -> Copies {
        let copies = self.send_again(c.flight.front_id(), 1, c, g, state);
        self.host.timeout_sent((copies.left > 0).then(|| c.flight.last_burst()));
        copies
    }

    /// Sends the last segment again as a loss probe, unless it still waits in the host's own queue; returns whether it left.
    pub fn probe_with_last(&mut self, c: &mut Connection, g: &mut Governor, state: CaState) -> bool {
        let last = c.flight.back_id().filter(|&id| !self.host.holds(c.flight.get(id).burst));
        last.is_some_and(|id| self.transmit_again(id, 1, c, g, state) > 0)
    }

    /// Sends `id` again, with those of its burst that share its fate, up to `most`; returns how many left.
    fn transmit_again(&mut self, id: u32, most: u32, c: &mut Connection, g: &mut Governor, state: CaState) -> u32 {
        let end = c.window_end();
        let s = *c.flight.get(id);
        if s.end() > end && id != c.flight.front_id() {
            return 0; // the receiver has closed its window over it
        }
        let (n, len) = c.flight.same_state_run(id, most, end);
        let departure_ns = self.depart(len, n, c, g, state);
        let departure = c.rate.depart(departure_ns, false, c.flight.marked_lost());
        let ends_write = c.flight.send_again(id, n, &departure);
        c.stats.retransmits += u64::from(n);
        let flags = if is_pushed(n, ends_write) { Flags::PSH } else { Flags::default() };
        self.emit(s.seq, len, departure_ns, flags, c.ecn.control(), c);
        n
    }

    // ---- what holds data back ----

    /// Whether pacing holds the next burst back; where the host's queue paces, TCP does not.
    #[inline]
    fn wait_for_pacing(&mut self, c: &Connection, g: &Governor) -> bool {
        !c.cfg.fq && g.paced_rate().is_some() && self.pacer.holds(c.now.time)
    }

    /// A burst of `segments` leaves: returns when, ns.
    #[inline]
    fn depart(&mut self, len: u32, segments: u32, c: &mut Connection, g: &mut Governor, state: CaState) -> u64 {
        g.on_sending(c, state, self.waiting());
        c.stats.data_segs_out += u64::from(segments);
        let rate = g.paced_rate().filter(|_| c.stats.data_segs_out >= UNPACED_SEGMENTS);
        self.pacer.depart(c.now.time, len, rate)
    }

    /// TCP small queues: whether so much waits in the host's own queue that `len` more bytes wait here. The limit is two such bursts or what
    /// the rate sends in 1/1024 s, times `factor`.
    fn throttle_if_host_is_full(&mut self, len: u32, factor: u64, c: &Connection, g: &Governor) -> bool {
        if !c.cfg.tsq || c.flight.is_one_burst() {
            return false;
        }
        let memory = u64::from(len + c.cfg.kernel.skb_overhead);
        let limit = (2 * memory).max(g.window().pacing_rate / 1_024);
        let limit = if g.window().paced { limit } else { limit.min(u64::from(c.cfg.kernel.limit_output_bytes)) };
        let full = self.host.memory() >= limit * factor;
        if full {
            self.host.throttle();
        }
        full
    }
}

/// Whether PSH leaves with a burst: with every super-packet, and with a single segment where a write ends.
#[inline]
fn is_pushed(segments: u32, ends_write: bool) -> bool {
    segments > 1 || ends_write
}

/// Segments that the congestion window admits in one burst: at most half of it.
#[inline]
fn cwnd_quota(c: &Connection, g: &Governor) -> u32 {
    let cwnd = g.cwnd();
    cwnd.saturating_sub(c.flight.in_flight()).min((cwnd / 2).max(1))
}

/// Every so many µs of the smallest RTT halve what a burst may hold beyond the rate.
const HALVING_RTT_US: u32 = 512;
/// What is near enough to wait for: 1 ms.
const NEAR_NS: u64 = 1_000_000;
/// The segments of a connection before this one leave unpaced.
const UNPACED_SEGMENTS: u64 = 10;
