//! What is handed on about one direction of a connection, and how it is made of the connection.

use super::connection::Connection;
use super::direction::Direction;
use super::end::End;
use super::log::Counts;
use super::rtt::Summary;
use super::sequence::shown;
use super::table::{AckRow, EventRow, SegmentRow};
use super::vantage::{self, Parts, Place, Vantage};
use crate::limits::{self, Doubt, Interval};
use crate::packet::Endpoint;
use serde::Serialize;
use serde_json::Value;
use std::net::IpAddr;

/// One direction of a connection: the data and what acknowledges it.
#[derive(Debug)]
pub struct FlowRecord {
    /// Who sends the data.
    pub from: Endpoint,
    /// To whom.
    pub to: Endpoint,
    /// Exact numbers.
    pub facts: Facts,
    /// Data segments, every `facts.segment_stride`-th.
    pub segments: Vec<SegmentRow>,
    /// The other end's packets, every `facts.ack_stride`-th.
    pub acks: Vec<AckRow>,
    /// What happened.
    pub events: Vec<EventRow>,
    /// What held the flow.
    pub limits: Vec<Interval>,
}

impl FlowRecord {
    /// Keeps the first events, and the longest intervals, at most so many of each.
    pub fn cut(&mut self, most: usize) {
        self.facts.counts.events_left_out += self.events.len().saturating_sub(most) as u64;
        self.events.truncate(most);
        self.events.shrink_to_fit();
        if self.limits.len() > most {
            self.limits = limits::thinned(std::mem::take(&mut self.limits), most);
        }
    }
}

/// A connection that was asked for and, as far as the capture shows, not established.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
pub struct Attempt {
    /// Who asked for it: address and port.
    pub from: (IpAddr, u16),
    /// Who was asked.
    pub to: (IpAddr, u16),
    /// SYNs that were seen.
    pub syns: u32,
    /// SYN-ACKs that answered them.
    pub answers: u32,
    /// Whether a reset ended it.
    pub is_reset: bool,
    /// From its first packet to its last, ns.
    pub over_ns: u64,
}

/// What a connection is where its SYN was seen and nothing that an established one has.
pub fn attempt(c: &Connection) -> Option<Attempt> {
    let client = c.handshake.client.filter(|_| !c.is_established)?;
    let (syn, answer) = (&c.handshake.syn[client], &c.handshake.syn[1 - client]);
    let end = |e: Endpoint| (e.address, e.port);
    let is_reset = c.ended == Some("rst");
    let attempt = Attempt {
        from: end(c.ends[client]),
        to: end(c.ends[1 - client]),
        syns: syn.times,
        answers: answer.times,
        is_reset,
        over_ns: c.span.end - c.span.start,
    };
    (syn.times > 0 && !c.directions.iter().any(Direction::carries)).then_some(attempt)
}

/// Facts of one direction. What is `None` the capture does not show.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// First packet of the connection, s since the capture's first.
    pub start_s: f64,
    /// From it to the last packet that carries data or acknowledges some, s: what comes after that, a connection's end or its keep-alives, is no
    /// part of the transfer. The connection's last packet where no data were seen.
    pub seconds: f64,
    /// First and last data packet.
    pub data_first_ns: Option<u64>,
    /// See `data_first_ns`.
    pub data_last_ns: Option<u64>,
    /// Bytes of payload delivered, each once; without ACKs, those seen.
    pub bytes: u64,
    /// Those bytes over the time from the first data packet to the last packet that acknowledges some, Mbit/s.
    pub goodput_mbps: Option<f64>,
    /// Whether the SYN of the data's sender, and of its receiver, were seen.
    pub syn_seen: [bool; 2],
    /// Whether the data's sender opened the connection.
    pub sender_opened: Option<bool>,
    /// MSS options of the data's sender and of its receiver.
    pub mss: [Option<u16>; 2],
    /// Payload of a full segment, bytes; by the SYNs, otherwise the largest seen.
    pub segment_size: Option<u32>,
    /// Shifts of the windows of the data's sender and of its receiver.
    pub window_scale: [Option<u8>; 2],
    /// SACK agreed.
    pub sack: Option<bool>,
    /// Timestamps agreed, or seen.
    pub timestamps: Option<bool>,
    /// ECN agreed.
    pub ecn: Option<bool>,
    /// Whether the capture begins after the connection.
    pub begins_in_mid_connection: bool,
    /// Whether none of the data's packets is in the capture.
    pub data_missing: bool,
    /// Whether no acknowledgement is in the capture.
    pub acks_missing: bool,
    /// `fin`, `rst`, or absent.
    pub ended: Option<&'static str>,
    /// Counters.
    #[serde(flatten)]
    pub counts: Counts,
    /// From data to what acknowledges it, by Karn's rule.
    pub rtt: Option<Summary>,
    /// From the receiver's packets to data that echo their timestamps.
    pub echo: Option<Summary>,
    /// Handshake: from here to the sender and back, ms.
    pub handshake_sender_part_ms: Option<f64>,
    /// Handshake: from here to the receiver and back, ms.
    pub handshake_receiver_part_ms: Option<f64>,
    /// Where the capture was taken.
    #[serde(flatten)]
    pub vantage: Vantage,
    /// Most bytes in flight, as seen here.
    pub flight_max: u64,
    /// Largest window, bytes; not scaled where the scale is unknown.
    pub window_max: Option<u64>,
    /// Smallest.
    pub window_min: Option<u64>,
    /// Time to live of the first packet of the data's sender and of its receiver.
    pub ttl: [Option<u8>; 2],
    /// Whether the IP identification counts the packets of the data's sender and of its receiver.
    pub id_counts: [bool; 2],
    /// Packets seen again on another interface, or on their way through this machine.
    pub forwarded: u64,
    /// One row is kept of so many data segments.
    pub segment_stride: u64,
    /// One row is kept of so many packets of the other end.
    pub ack_stride: u64,
    /// Why what held the flow is unknown for a part of the time, where it is.
    pub limits_doubt: Option<Doubt>,
    /// Fields that the capture cannot show, and why.
    pub not_identifiable: Vec<(&'static str, &'static str)>,
}

impl Facts {
    /// As a JSON object: what is not identifiable is absent.
    pub fn json(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            let reasons = self.not_identifiable.iter().map(|&(f, why)| (f.to_owned(), Value::from(why))).collect();
            fields.insert("not_identifiable".to_owned(), Value::Object(reasons));
            self.not_identifiable.iter().for_each(|(f, _)| {
                fields.remove(*f);
            });
            fields.retain(|_, v| !v.is_null());
        }
        value
    }
}

/// Why fields about the data's fate are absent.
const NO_ACKS: &str = "no acknowledgement of this data is in the capture";
const NO_DATA: &str = "only acknowledgements of this data are in the capture";
const NO_SCALE: &str = "the window scale is in the SYNs, which the capture does not hold: windows are not scaled";
const NO_SYN: &str = "only the SYNs show it, which the capture does not hold";

/// Appends the records of a connection's directions that carry data.
pub fn records(mut c: Connection, out: &mut Vec<FlowRecord>) {
    for side in 0..2 {
        if c.directions[side].carries() {
            let record = record(&mut c, side);
            out.push(record);
        }
    }
}

fn record(c: &mut Connection, side: usize) -> FlowRecord {
    let parts = Parts { sender: c.handshake.part(side), receiver: c.handshake.part(1 - side) };
    let vantage = vantage::judge(&c.directions[side], parts);
    let (limits, doubt) = c.limits[side].take().map_or_else(Default::default, |t| t.finish(c.span.end));
    let facts = Facts { limits_doubt: doubt, ..facts(c, side, parts, vantage) };
    let mut log = std::mem::take(&mut c.directions[side].log);
    if vantage.place != Place::Sender && c.has_timestamps {
        log.segments.rows_mut().iter_mut().filter(|r| r.flight_by_echo > 0).for_each(|r| r.flight = r.flight_by_echo);
    }
    let (segments, acks, events) = log.into_rows();
    FlowRecord { from: c.ends[side], to: c.ends[1 - side], facts, segments, acks, events, limits }
}

fn facts(c: &Connection, side: usize, parts: Parts, vantage: Vantage) -> Facts {
    let d = &c.directions[side];
    let (data, acks, log) = (&d.data, &d.acks, &d.log);
    let syn = [c.handshake.syn[side], c.handshake.syn[1 - side]];
    let ends = [&d.end, &c.directions[1 - side].end];
    let both = c.handshake.both();
    let data_missing = log.counts.packets == 0;
    let acks_missing = log.counts.acks == 0;
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    let window = |w: u64| (!acks_missing).then_some(w);
    let bytes = delivered(d);
    Facts {
        start_s: c.span.start as f64 / 1e9,
        seconds: (end(d).unwrap_or(c.span.end) - c.span.start) as f64 / 1e9,
        data_first_ns: data.span().map(|s| s.0),
        data_last_ns: data.span().map(|s| s.1),
        bytes,
        goodput_mbps: goodput(d, bytes),
        syn_seen: syn.map(|s| s.t.is_some()),
        sender_opened: c.handshake.client.map(|client| client == side),
        mss: syn.map(|s| s.mss),
        segment_size: log.segment_size(),
        window_scale: syn.map(|s| s.shift),
        sack: both.map(|b| b.iter().all(|s| s.sack)).or((log.counts.sacks > 0).then_some(true)),
        timestamps: both.map(|b| b.iter().all(|s| s.timestamps)).or(Some(c.has_timestamps)),
        ecn: both.map(|b| b.iter().all(|s| s.ecn)),
        begins_in_mid_connection: syn.iter().all(|s| s.t.is_none()),
        data_missing,
        acks_missing,
        ended: c.ended,
        counts: log.counts,
        rtt: acks.rtt().summary(),
        echo: data.upstream().summary(),
        handshake_sender_part_ms: ms(parts.sender),
        handshake_receiver_part_ms: ms(parts.receiver),
        vantage,
        flight_max: acks.flight_max(),
        window_max: window(acks.window().most()),
        window_min: acks.window().least(),
        ttl: ends.map(End::ttl),
        id_counts: ends.map(|e| e.order().counts()),
        forwarded: c.forwarded.count,
        segment_stride: log.segments.stride(),
        ack_stride: log.acks.stride(),
        limits_doubt: None,
        not_identifiable: missing(d, both.is_some(), data_missing, acks_missing),
    }
}

/// Which fields the capture cannot show, and why.
fn missing(d: &Direction, has_syns: bool, data_missing: bool, acks_missing: bool) -> Vec<(&'static str, &'static str)> {
    let mut out = Vec::new();
    if !has_syns {
        out.extend(["window_scale", "mss", "ecn"].map(|f| (f, NO_SYN)));
    }
    if d.acks.window().shift.is_none() && !acks_missing {
        out.push(("window_edge", NO_SCALE));
    }
    if acks_missing {
        out.extend(
            ["losses", "spurious", "reordered", "goodput_mbps", "flight_max", "zero_windows", "dup_acks", "dsacks"].map(|f| (f, NO_ACKS)),
        );
    }
    if data_missing {
        out.extend(["losses", "reordered", "retransmissions", "spurious", "flight_max", "segments", "packets"].map(|f| (f, NO_DATA)));
    }
    out
}

/// Bytes delivered, each once: acknowledged or SACKed since the first seen; without ACKs, those seen.
fn delivered(d: &Direction) -> u64 {
    if d.log.counts.acks == 0 {
        return d.data.arrivals().bytes();
    }
    let board = d.acks.board();
    let total = board.delivered().saturating_sub(shown(board.begun()));
    // The FIN counts as one byte of the numbers, and is none of the data.
    match (d.data.arrivals().first(), d.data.arrivals().high()) {
        (Some(first), Some(high)) => total.min(high - first),
        _ => total,
    }
}

/// When the last data came, or when the last were acknowledged.
fn end(d: &Direction) -> Option<u64> {
    let acked = Some(d.acks.delivered_t()).filter(|&t| t > 0);
    d.data.span().map(|s| s.1).max(acked)
}

fn goodput(d: &Direction, bytes: u64) -> Option<f64> {
    let (from, _) = d.data.span()?;
    let to = d.acks.delivered_t();
    (to > from && d.log.counts.acks > 0).then(|| bytes as f64 * 8e3 / (to - from) as f64)
}
