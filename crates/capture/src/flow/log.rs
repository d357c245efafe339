//! What is handed on about one direction: its counters, exact, whatever rows are kept, and the rows of its tables. An event counts itself.

use super::end::Seen;
use super::repeats::{Repeated, Trigger};
use super::sequence::shown;
use super::table::{AckRow, EventRow, Fate, Kind, SegmentRow, Side, Thinned};
use serde::Serialize;
use std::ops::Range;
use tcpscape_base::{Ecn, Flags};

/// Most events kept as rows.
pub const EVENTS: usize = 1 << 17;
/// Rows of events up to which those are kept of which a path with jitter has one for each packet.
const FREQUENT: usize = 1 << 16;
/// Payload of a full segment at least, where neither the SYNs nor the packets show it (RFC 9293 §3.7.1).
const LEAST_SEGMENT: u32 = 536;
/// The largest IP packet of an Ethernet, and the least headers of a segment, bytes.
const ETHERNET: u32 = 1_500;
const HEADERS: u32 = 40;
/// Segments in a super-packet at most: 64 kB in the smallest ones that a path must take (RFC 9293 §3.7.1).
const MOST_SEGMENTS: u32 = 123;
/// Packets of one size from which on it is that of full segments.
const REPEATED: u32 = 4;

/// What happened to a range of the data. Times are ns.
#[derive(Clone, Copy, Debug)]
pub enum Happened {
    /// It was sent again.
    Repeated(Trigger),
    /// It was sent again after a SACK had covered it.
    RepeatedSacked,
    /// What covered it shows, so long after its retransmission, that this was needless.
    Spurious(Proof, u64),
    /// It was lost before it came here: the retransmission came so late, when so many later segments had come.
    LostBefore { late: u64, above: u64 },
    /// So many transmissions of it were lost, the first of them so long ago. The receiver may have discarded it in their place.
    LostAfter { since: u64, times: u16, may_be_discarded: bool },
    /// It came so late, when so many later segments had come; of these nothing is known where it is not certain when exactly it came.
    Reordered { side: Side, late: u64, above: Option<u64> },
    /// It came late, and nothing shows why.
    Late,
    /// The network made a copy that came here.
    Copied,
    /// A DSACK reports a copy that the network made.
    CopiedAfter,
    /// The receiver discards it: it had echoed a newer timestamp before.
    Discarded,
    /// It was acknowledged, and the capture does not hold it.
    NotCaptured,
    /// It lies outside of the window.
    OutOfWindow,
    /// It carries CE.
    Ce,
    /// It ends a silence of this length.
    Idle(u64),
    /// It is a keep-alive.
    KeepAlive,
    /// It probes a closed window.
    WindowProbe,
    /// The window closed before it.
    WindowClosed,
    /// It is the window that opened after this time.
    WindowOpened(u64),
    /// An ACK came after a later one.
    ReorderedAck,
}

impl Happened {
    /// Counts it, of a range of `n` segments.
    fn count(self, c: &mut Counts, n: u64, bytes: u64) {
        match self {
            Happened::Repeated(trigger) => {
                c.retransmissions += n;
                match trigger {
                    Trigger::Fast => c.fast_retransmissions += n,
                    Trigger::Timeout => c.timeouts += 1,
                    Trigger::AfterTimeout => c.after_timeout += n,
                    Trigger::Probe => c.tail_probes += n,
                }
            }
            Happened::RepeatedSacked => c.spurious += n,
            Happened::Spurious(proof, _) => {
                c.spurious += n;
                *match proof {
                    Proof::Timestamp => &mut c.spurious_by_timestamp,
                    Proof::Time => &mut c.spurious_by_time,
                } += n;
            }
            Happened::LostBefore { .. } => {
                c.losses += n;
                c.losses_before += n;
            }
            Happened::LostAfter { times, may_be_discarded, .. } => {
                let n = n * u64::from(times);
                c.losses += n;
                c.losses_uncertain += if may_be_discarded && c.reordered > 0 { n } else { 0 };
            }
            Happened::Reordered { side, late, above } => {
                c.reordered += n;
                c.reordered_before += if side == Side::Before { n } else { 0 };
                if let Some(above) = above {
                    c.reordering_segments_max = c.reordering_segments_max.max(above);
                    c.reordering_ns_max = c.reordering_ns_max.max(late);
                }
            }
            Happened::Late => c.late_unexplained += n,
            Happened::Copied => c.duplicates += 1,
            Happened::CopiedAfter => c.duplicates += n,
            Happened::Discarded => c.discarded += 1,
            Happened::NotCaptured => c.not_captured_bytes += bytes,
            Happened::OutOfWindow => c.out_of_window += 1,
            Happened::Ce => c.ce += 1,
            Happened::Idle(_) => c.idles += 1,
            Happened::KeepAlive => c.keep_alives += 1,
            Happened::WindowProbe => c.window_probes += 1,
            Happened::WindowClosed => c.zero_windows += 1,
            Happened::WindowOpened(after) => c.zero_window_ns += after,
            Happened::ReorderedAck => c.acks_reordered += 1,
        }
    }

    /// What its row says: kind, side, extent in time and in segments.
    fn row(self, n: u64) -> Option<(Kind, Side, u64, u64)> {
        use Side::{After, Before, Unknown};
        Some(match self {
            Happened::Repeated(Trigger::Fast) => (Kind::FastRetransmission, Unknown, 0, n),
            Happened::Repeated(Trigger::Timeout) => (Kind::Timeout, Unknown, 0, n),
            Happened::Repeated(Trigger::AfterTimeout) => (Kind::AfterTimeout, Unknown, 0, n),
            Happened::Repeated(Trigger::Probe) => (Kind::TailProbe, Unknown, 0, n),
            Happened::RepeatedSacked => (Kind::Spurious, Unknown, 0, n),
            Happened::Spurious(_, after) => (Kind::Spurious, After, after, n),
            Happened::LostBefore { late, above } => (Kind::Loss, Before, late, above),
            Happened::LostAfter { since, times, .. } => (Kind::Loss, After, since, n * u64::from(times)),
            Happened::Reordered { side, late, above } => (Kind::Reordering, side, late, above.unwrap_or(0)),
            Happened::Late => return None,
            Happened::Copied => (Kind::Duplicate, Before, 0, 0),
            Happened::CopiedAfter => (Kind::Duplicate, After, 0, n),
            Happened::Discarded => (Kind::Discarded, After, 0, 0),
            Happened::NotCaptured => (Kind::NotCaptured, Unknown, 0, 0),
            Happened::OutOfWindow => (Kind::OutOfWindow, Unknown, 0, 0),
            Happened::Ce => (Kind::Ce, Before, 0, 0),
            Happened::Idle(gap) => (Kind::Idle, Unknown, gap, 0),
            Happened::KeepAlive => (Kind::KeepAlive, Unknown, 0, 0),
            Happened::WindowProbe => (Kind::WindowProbe, Unknown, 0, 0),
            Happened::WindowClosed => (Kind::ZeroWindow, After, 0, 0),
            Happened::WindowOpened(after) => (Kind::WindowOpened, After, after, 0),
            Happened::ReorderedAck => (Kind::ReorderedAck, After, 0, 0),
        })
    }
}

/// What shows that a retransmission was needless.
#[derive(Clone, Copy, Debug)]
pub enum Proof {
    /// The ACK echoes the original's timestamp (RFC 3522 §3.2).
    Timestamp,
    /// The ACK came sooner than the retransmission allows.
    Time,
}

/// Counters and rows of one direction.
#[derive(Debug, Default)]
pub struct Log {
    /// Counters.
    pub counts: Counts,
    /// Rows of data.
    pub segments: Thinned<SegmentRow>,
    /// Rows of the other end's packets.
    pub acks: Thinned<AckRow>,
    events: Vec<EventRow>,
    most: usize,
    agreed: Option<u32>,
    largest: u32,
    /// A payload that would be that of a jumbo frame, and how often it came.
    jumbo: (u32, u32),
}

impl Log {
    /// Keeps at most so many rows of events from now on.
    pub fn bound(&mut self, events: usize) {
        self.most = events;
    }
    /// Rows of events.
    pub fn events(&self) -> usize {
        self.events.len()
    }
    /// The rows of its three tables, handed on.
    pub fn into_rows(self) -> (Vec<SegmentRow>, Vec<AckRow>, Vec<EventRow>) {
        (self.segments.into_rows(), self.acks.into_rows(), self.events)
    }
    /// Payload of a full segment as the SYNs agree on it, where they do.
    pub fn agree(&mut self, payload: Option<u32>) {
        self.agreed = payload;
    }
    /// Payload of a full segment: by the SYNs, otherwise the largest of a packet that is no super-packet.
    pub fn segment_size(&self) -> Option<u32> {
        self.agreed.or((self.largest > 0).then_some(self.largest))
    }
    /// Segments that so many bytes take.
    pub fn segments_in(&self, bytes: u64) -> u64 {
        let size = self.agreed.unwrap_or(self.largest.max(LEAST_SEGMENT));
        u64::from(u32::try_from(bytes).unwrap_or(u32::MAX).div_ceil(size).max(1))
    }

    /// Whether this is a segment larger than an Ethernet takes: of a size that came again and again, which is no sum of smaller ones. What does not
    /// end a write (RFC 9293 §3.9.1.2: no PSH) is a full segment, or a super-packet of several.
    fn is_jumbo(&mut self, s: &Seen) -> bool {
        if self.agreed.is_some() || s.flags.has(Flags::PSH) || s.len <= self.largest {
            return false;
        }
        if (2..=MOST_SEGMENTS).any(|k| s.len % k == 0 && s.len / k <= ETHERNET - HEADERS) {
            return false;
        }
        let (len, times) = self.jumbo;
        self.jumbo = if len == s.len { (len, times + 1) } else { (s.len, 1) };
        self.jumbo.1 >= REPEATED
    }

    /// Counts a data packet.
    pub fn data(&mut self, s: &Seen) {
        if s.size <= ETHERNET || self.is_jumbo(s) {
            self.largest = self.largest.max(s.len);
        }
        let n = self.segments_in(u64::from(s.len));
        let c = &mut self.counts;
        c.packets += 1;
        c.segments += n;
        c.super_packets += u64::from(n > 1);
        c.payload_bytes += u64::from(s.len);
        if s.ecn == Ecn::Ce {
            self.add(s, s.range(), Happened::Ce);
        }
    }

    /// A packet shows that something happened to this range. Gives the number of its row, if it is kept.
    pub fn add(&mut self, s: &Seen, range: Range<u64>, what: Happened) -> Option<usize> {
        let bytes = range.end - range.start;
        let n = self.segments_in(bytes);
        what.count(&mut self.counts, n, bytes);
        let (kind, side, extent, segments) = what.row(n)?;
        let is_frequent = matches!(kind, Kind::Reordering | Kind::ReorderedAck);
        if self.events.len() >= if is_frequent { self.most.min(FREQUENT) } else { self.most } {
            self.counts.events_left_out += 1;
            return None;
        }
        let cut = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let (len, segments) = (cut(bytes), cut(segments));
        let (kind, side) = (kind as u8, side as u8);
        self.events.push(EventRow { t: s.t, frame: s.frame, seq: shown(range.start), extent, len, segments, kind, side });
        Some(self.events.len() - 1)
    }

    /// The capture holds, after this frame, what it acknowledged.
    pub fn captured_late(&mut self, frame: u64, bytes: u64) {
        self.counts.not_captured_bytes = self.counts.not_captured_bytes.saturating_sub(bytes);
        self.counts.captured_late_bytes += bytes;
        let mut since = self.events.iter_mut().rev().take_while(|e| e.frame >= frame);
        if let Some(event) = since.find(|e| e.frame == frame && e.kind == Kind::NotCaptured as u8) {
            event.kind = Kind::CapturedLate as u8;
        }
    }

    /// A DSACK refutes a loss of a repeated range.
    pub fn refuted(&mut self, s: &Seen, r: &Repeated) {
        let n = self.segments_in(r.end - r.start);
        self.counts.losses = self.counts.losses.saturating_sub(n);
        self.counts.spurious += n;
        self.counts.spurious_by_dsack += n;
        if r.lost > 0 {
            return;
        }
        if let Some(row) = self.segments.get(r.row) {
            row.fate = Fate::Spurious as u8;
        }
        if let Some(event) = r.event {
            self.events[event].kind = Kind::Spurious as u8;
        }
        if r.passed_t > 0 {
            // The original came, after later ones; when exactly lies between the two.
            let late = s.t.saturating_sub(r.passed_t);
            self.add(s, r.start..r.end, Happened::Reordered { side: Side::After, late, above: None });
        }
    }
}

/// What was seen of the data and of its acknowledgements. Segments are packets as the network carries them: a super-packet counts as several.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Counts {
    /// Packets with data.
    pub packets: u64,
    /// Segments in them.
    pub segments: u64,
    /// Bytes of payload in them, repeated ones as often as they came.
    pub payload_bytes: u64,
    /// Packets that are super-packets.
    pub super_packets: u64,
    /// Retransmitted segments seen.
    pub retransmissions: u64,
    /// Of them, those that ACKs caused.
    pub fast_retransmissions: u64,
    /// Of them, those by the timeout itself.
    pub timeouts: u64,
    /// Of them, those in the slow start after a timeout.
    pub after_timeout: u64,
    /// Of them, tail loss probes.
    pub tail_probes: u64,
    /// Segments that came twice, or would have, because of a retransmission.
    pub spurious: u64,
    /// Of them, those that a DSACK reports.
    pub spurious_by_dsack: u64,
    /// Of them, those that a timestamp reports (Eifel detection, RFC 3522).
    pub spurious_by_timestamp: u64,
    /// Of them, those covered sooner than the retransmission could have been.
    pub spurious_by_time: u64,
    /// Lost segments, retransmissions included.
    pub losses: u64,
    /// Of them, those between the sender and here.
    pub losses_before: u64,
    /// Of them, those of a path that reorders which the receiver may have discarded on a late arrival (see `discarded`): it had echoed a newer
    /// timestamp by the time at which their retransmission was covered.
    pub losses_uncertain: u64,
    /// Segments delivered after later ones.
    pub reordered: u64,
    /// Of them, those between the sender and here.
    pub reordered_before: u64,
    /// Largest reordering: segments that had come before.
    pub reordering_segments_max: u64,
    /// Largest reordering, ns.
    pub reordering_ns_max: u64,
    /// Segments that came late, and nothing shows why.
    pub late_unexplained: u64,
    /// Copies that the network made.
    pub duplicates: u64,
    /// Packets that the receiver discards, since it had echoed a newer timestamp before they came (PAWS, RFC 7323 §5.3).
    pub discarded: u64,
    /// Segments outside of the window.
    pub out_of_window: u64,
    /// Keep-alives.
    pub keep_alives: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// How often the window closed.
    pub zero_windows: u64,
    /// How long it was closed, ns.
    pub zero_window_ns: u64,
    /// Data packets with CE.
    pub ce: u64,
    /// Bytes that were acknowledged and that the capture does not hold.
    pub not_captured_bytes: u64,
    /// Bytes that the capture holds after their acknowledgement: its host put the packets of both directions out of order.
    pub captured_late_bytes: u64,
    /// Times with nothing in flight, of 200 ms and more.
    pub idles: u64,
    /// Packets of the other end with an ACK number.
    pub acks: u64,
    /// Duplicate ACKs.
    pub dup_acks: u64,
    /// ACKs that came after later ones.
    pub acks_reordered: u64,
    /// DSACK blocks.
    pub dsacks: u64,
    /// Bytes that they report.
    pub dsack_bytes: u64,
    /// ACKs with SACK blocks.
    pub sacks: u64,
    /// ACKs with ECE.
    pub ece: u64,
    /// Entries given up because too many were outstanding: what became of them is unknown.
    pub given_up: u64,
    /// Events that were not kept as rows.
    pub events_left_out: u64,
}
