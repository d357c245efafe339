//! A connection → the records of its directions.

use super::connection::Connection;
use super::direction::Direction;
use super::end::End;
use super::record::{Facts, FlowRecord};
use super::sequence::shown;
use super::vantage::{self, Parts, Place, Vantage};

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
        seconds: (c.span.end - c.span.start) as f64 / 1e9,
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

fn goodput(d: &Direction, bytes: u64) -> Option<f64> {
    let (from, _) = d.data.span()?;
    let to = d.acks.delivered_t();
    (to > from && d.log.counts.acks > 0).then(|| bytes as f64 * 8e3 / (to - from) as f64)
}
