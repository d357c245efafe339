//! One connection with its two applications.

use crate::output::{CwndSummary, FlowSummary, LimitedBy, ReceiverSummary, RttSummary};
use crate::plan::{App, FlowPlan};
use std::collections::VecDeque;
use tcpscape_base::{Duration, Segment, Stream, Time};
use tcpscape_tcp::{Receiver, Sender};

/// A connection in a trial.
pub(crate) struct Flow {
    pub plan: FlowPlan,
    pub start: Time,
    pub stop: Time,
    pub sender: Sender,
    pub receiver: Receiver,
    /// When connect() returned.
    pub begin: Option<Time>,
    pub syn_sent: bool,
    /// The sender has stopped: whatever comes is answered with a RST.
    pub closed: bool,
    /// The receiver has accepted the RST.
    pub dead: bool,
    /// Its writer waits for the sending host's CPU.
    pub ready: bool,
    writer: Writer,
    reader: Reader,
    /// What came while the reader held the socket.
    backlog: VecDeque<Segment>,
    noise: Stream,
    pub received: u64,
    pub received_first_half: u64,
}

struct Writer {
    chunk: u64,
    gap: Duration,
    /// Bytes left of the chunk being written.
    left: u64,
    /// Bytes left in all.
    total: u64,
    due: Time,
    blocked: bool,
}

/// What running costs an application in time.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// Timer slack of a sleep.
    pub slack: Duration,
    /// One write().
    pub write: Duration,
    /// One read().
    pub read: Duration,
    /// Most that a sleep lasts longer.
    pub noise: Duration,
}

impl Costs {
    /// What a sleep adds to the time asked for.
    fn oversleep(&self, noise: &mut Stream) -> Duration {
        if self.noise == Duration::ZERO {
            return self.slack;
        }
        self.slack + Duration(noise.next_u64() % self.noise.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Sleeps or works until then, then reads.
    Busy(Time),
    /// In read() until then, with room left for so many bytes.
    Copying(Time, u64),
    /// In read(), takes a segment of the backlog in at that time; then copies on if there is room.
    Absorbing(Time, Option<u64>),
    /// Blocked in read().
    Blocked,
}

impl Flow {
    pub fn new(plan: &FlowPlan, duration_ns: u64, sender: Sender, receiver: Receiver, noise: Stream) -> Flow {
        let (start, stop) = plan.span(duration_ns);
        let (chunk, total) = match plan.app {
            App::Bulk { chunk } | App::Paced { chunk, .. } => (chunk, u64::MAX),
            App::Finite { chunk, bytes } => (chunk, bytes),
        };
        Flow {
            start,
            stop,
            sender,
            receiver,
            begin: None,
            syn_sent: false,
            closed: false,
            dead: false,
            ready: false,
            writer: Writer { chunk, gap: plan.gap(), left: chunk.min(total), total, due: Time::ZERO, blocked: false },
            reader: Reader::Blocked,
            backlog: VecDeque::new(),
            noise,
            received: 0,
            received_first_half: 0,
            plan: plan.clone(),
        }
    }

    /// The sender's application runs: writes what is due, one chunk. Returns when it wants to run again, if it is not blocked.
    pub fn write(&mut self, now: Time, costs: Costs) -> Option<Time> {
        if self.closed || now >= self.stop {
            return None;
        }
        if self.begin.is_none() {
            self.begin = Some(now);
            self.writer.due = now;
        }
        let w = &mut self.writer;
        if now < w.due {
            return Some(w.due);
        }
        w.blocked = false;
        if w.total == 0 {
            return None;
        }
        let n = self.sender.write(now, w.left);
        w.left -= n;
        w.total -= n.min(w.total);
        if w.left > 0 {
            w.blocked = true;
            return None;
        }
        w.left = w.chunk.min(w.total);
        let next = now + costs.write;
        w.due = if w.gap > Duration::ZERO { next + w.gap + costs.oversleep(&mut self.noise) } else { next };
        Some(w.due)
    }

    /// Whether the writer waits for room rather than for time.
    pub fn writer_blocked(&self) -> bool {
        self.writer.blocked || self.begin.is_none()
    }

    /// Everything of a finite transfer was written and acknowledged.
    pub fn finished(&self) -> bool {
        self.writer.total == 0 && self.sender.idle()
    }

    /// The connection was accepted: the receiving application starts its loop.
    pub fn accept(&mut self, now: Time, costs: Costs) {
        let d = self.plan.read.delay_ns;
        self.reader = if d > 0 { Reader::Busy(now + Duration(d) + costs.oversleep(&mut self.noise)) } else { Reader::Blocked };
    }

    /// When the receiving application should run, given that there may be data.
    pub fn read_due(&self, now: Time) -> Option<Time> {
        match self.reader {
            Reader::Busy(t) | Reader::Copying(t, _) | Reader::Absorbing(t, _) => Some(t.max(now)),
            Reader::Blocked if self.receiver.readable() > 0 => Some(now),
            Reader::Blocked => None,
        }
    }

    /// A segment comes to the receiver. While its application is in read() it waits: the socket is locked. Linux: tcp_add_backlog()
    pub fn on_segment(&mut self, now: Time, seg: &Segment) {
        if matches!(self.reader, Reader::Copying(..) | Reader::Absorbing(..)) {
            self.backlog.push_back(*seg);
        } else {
            self.receiver.on_segment(now, seg, 0);
        }
    }

    /// The receiver takes in at once what waits for its socket.
    pub fn absorb_all(&mut self, now: Time) {
        for seg in std::mem::take(&mut self.backlog) {
            self.receiver.on_segment(now, &seg, 0);
        }
    }

    /// The receiving application runs: a read begins, goes on, or ends. Copying takes time for each buffer; what comes in the meantime
    /// waits in the backlog, is taken in by the reader, which costs time for each segment, and is read as well. Only the end of
    /// the call says whether an ACK is due. Linux: tcp_recvmsg_locked(), __release_sock()
    pub fn read(&mut self, now: Time, costs: Costs, half: Time) {
        let state = self.reader;
        let (room, begun) = match state {
            Reader::Busy(t) | Reader::Copying(t, _) | Reader::Absorbing(t, _) if t > now => return,
            Reader::Absorbing(_, room) => {
                if let Some(seg) = self.backlog.pop_front() {
                    self.receiver.on_segment(now, &seg, 0);
                }
                if self.absorbs(now, costs, room) {
                    return;
                }
                let Some(room) = room else { return self.leave_read(now, costs) };
                (room, true)
            }
            Reader::Copying(_, room) if room > 0 && self.absorbs(now, costs, Some(room)) => return,
            Reader::Copying(_, room) => (room, true),
            Reader::Busy(_) | Reader::Blocked => (self.plan.read.size, false),
        };
        let (n, buffers) = self.receiver.copy(now, room);
        self.received += n;
        if now < half {
            self.received_first_half = self.received;
        }
        if n > 0 {
            self.reader = Reader::Copying(now + costs.read / 2 * u64::from(buffers), room - n);
            if costs.read > Duration::ZERO {
                return;
            }
        } else if !begun {
            self.reader = Reader::Blocked;
            return;
        }
        self.receiver.finish_read(now, true);
        if !self.absorbs(now, costs, None) {
            self.leave_read(now, costs);
        }
    }

    /// Whether segments wait for the socket: then the reader takes the next one in after `costs.read / 2`.
    fn absorbs(&mut self, now: Time, costs: Costs, room: Option<u64>) -> bool {
        if self.backlog.is_empty() {
            return false;
        }
        self.reader = Reader::Absorbing(now + costs.read / 2, room);
        true
    }

    /// The call returns; the application sleeps or calls again.
    fn leave_read(&mut self, now: Time, costs: Costs) {
        let next = now + costs.read / 2;
        let d = self.plan.read.delay_ns;
        self.reader = Reader::Busy(if d > 0 { next + Duration(d) + costs.oversleep(&mut self.noise) } else { next });
    }

    /// Its results at the end of the trial.
    pub fn summary(&mut self, end: Time) -> FlowSummary {
        let stop = self.stop.min(end);
        let seconds = self.begin.map_or(0.0, |b| stop.since(b).secs_f64());
        let (info, ecn) = (self.sender.info(), self.sender.uses_ecn());
        // What reached the receiver in order is its application's, also what it had no time to read.
        let bytes = self.received + self.receiver.readable();
        let r = *self.receiver.stats();
        let s = self.sender.stats(stop);
        let total: u64 = s.limited_ns.iter().sum();
        let share = |i: usize| if total == 0 { 0.0 } else { s.limited_ns[i] as f64 / total as f64 };
        let ms = |us: f64| us / 1e3;
        let rtt = &s.rtt;
        FlowSummary {
            cca: self.plan.cca.clone(),
            start_s: self.begin.map_or(f64::NAN, Time::secs_f64),
            stop_s: stop.secs_f64(),
            seconds,
            established: self.begin.is_some(),
            bytes_received: bytes,
            bytes_received_first_half: self.received_first_half,
            bytes_sent: s.bytes_written,
            goodput_mbps: if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 },
            retransmits: s.retransmits,
            spurious_retransmits: s.dsack_dups,
            dsacks: r.dsacks,
            rtos: s.rtos,
            spurious_rtos: s.spurious_rtos,
            fast_recoveries: s.fast_recoveries,
            undos: s.undos,
            tlps: s.tlps,
            reord_seen: s.reord_seen,
            reordering: info.reordering,
            rtt_ms: if rtt.count() == 0 {
                RttSummary { min: f64::NAN, p50: f64::NAN, p95: f64::NAN, p99: f64::NAN, max: f64::NAN, mean: f64::NAN }
            } else {
                RttSummary {
                    min: ms(f64::from(rtt.min())),
                    p50: ms(rtt.quantile(0.5)),
                    p95: ms(rtt.quantile(0.95)),
                    p99: ms(rtt.quantile(0.99)),
                    max: ms(f64::from(rtt.max())),
                    mean: ms(rtt.mean()),
                }
            },
            srtt_ms: ms(f64::from(info.srtt_us)),
            min_rtt_ms: if info.min_rtt_us == u32::MAX { f64::NAN } else { ms(f64::from(info.min_rtt_us)) },
            cwnd: CwndSummary { mean: if total == 0 { 0.0 } else { s.cwnd_integral as f64 / total as f64 }, max: s.cwnd_max },
            limited_by: LimitedBy { app: share(0), rwnd: share(1), cwnd: share(2), pacing: share(3), sndbuf: share(4), tsq: share(5) },
            ecn,
            delivered_ce: u64::from(info.delivered_ce),
            ecn_reductions: s.ecn_reductions,
            data_segs_out: s.data_segs_out,
            segs_in: s.segs_in,
            paws_rejected: s.paws_rejected,
            max_rwnd: s.max_rwnd,
            receiver: ReceiverSummary {
                acks: r.acks,
                ce_segments: r.ce_segments,
                ooo_segments: r.ooo_segments,
                duplicates: r.duplicates,
                dsacks: r.dsacks,
                compressed_acks: r.compressed_acks,
                dropped_paws: r.dropped_paws,
                dropped_memory: r.dropped_memory + r.pruned,
                zero_window_acks: r.zero_window_acks,
            },
        }
    }
}
