//! A connection → the records of its directions.

use super::connection::Connection;
use super::direction::Direction;
use super::record::{Facts, FlowRecord};
use super::sequence::{shown, ORIGIN};
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
    let (limits, doubt) = c.limits[side].take().map_or_else(Default::default, |t| t.finish(c.span.1));
    let facts = Facts { limits_doubt: doubt, ..facts(c, side, parts, vantage) };
    let mut d = std::mem::take(&mut c.directions[side]);
    if vantage.place != Place::Sender && c.has_timestamps {
        d.segments.rows_mut().iter_mut().filter(|r| r.flight_by_echo > 0).for_each(|r| r.flight = r.flight_by_echo);
    }
    FlowRecord {
        from: c.ends[side],
        to: c.ends[1 - side],
        facts,
        segments: d.segments.into_rows(),
        acks: d.acks.into_rows(),
        events: d.events,
        limits,
    }
}

fn facts(c: &Connection, side: usize, parts: Parts, vantage: Vantage) -> Facts {
    let d = &c.directions[side];
    let syn = [c.handshake.syn[side], c.handshake.syn[1 - side]];
    let both = c.handshake.both();
    let data_missing = d.counts.packets == 0;
    let acks_missing = d.counts.acks == 0;
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    let window = |w: u64| (d.counts.acks > 0).then_some(w);
    let bytes = delivered(d);
    Facts {
        start_s: c.span.0 as f64 / 1e9,
        seconds: (c.span.1 - c.span.0) as f64 / 1e9,
        data_first_ns: d.span.map(|s| s.0),
        data_last_ns: d.span.map(|s| s.1),
        bytes,
        goodput_mbps: goodput(d, bytes),
        syn_seen: syn.map(|s| s.t.is_some()),
        sender_opened: c.handshake.client.map(|client| client == side),
        mss: syn.map(|s| s.mss),
        segment_size: if d.mss > 0 { Some(d.mss) } else { (d.largest > 0).then_some(d.largest) },
        window_scale: syn.map(|s| s.shift),
        sack: both.map(|b| b.iter().all(|s| s.sack)).or((d.counts.sacks > 0).then_some(true)),
        timestamps: both.map(|b| b.iter().all(|s| s.timestamps)).or(Some(c.has_timestamps)),
        ecn: both.map(|b| b.iter().all(|s| s.ecn)),
        begins_in_mid_connection: syn.iter().all(|s| s.t.is_none()),
        data_missing,
        acks_missing,
        ended: c.ended,
        counts: d.counts,
        rtt: d.rtt.summary(),
        echo: d.upstream.summary(),
        handshake_sender_part_ms: ms(parts.sender),
        handshake_receiver_part_ms: ms(parts.receiver),
        vantage,
        flight_max: d.flight_max,
        window_max: window(d.window.most()),
        window_min: d.window.least(),
        ttl: [d.ttl, c.directions[1 - side].ttl],
        id_counts: [d.order.counts(), c.directions[1 - side].order.counts()],
        forwarded: c.forwarded.count,
        segment_stride: d.segments.stride(),
        ack_stride: d.acks.stride(),
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
    if d.window.shift.is_none() && !acks_missing {
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
    if d.counts.acks == 0 {
        return d.arrivals.bytes();
    }
    let begun = d.board.begun().max(ORIGIN);
    let total = d.board.delivered().saturating_sub(shown(begun));
    // The FIN counts as one byte of the numbers, and is none of the data.
    match (d.arrivals.first(), d.arrivals.high()) {
        (Some(first), Some(high)) => total.min(high - first),
        _ => total,
    }
}

fn goodput(d: &Direction, bytes: u64) -> Option<f64> {
    let (from, _) = d.span?;
    let to = d.delivered_last()?;
    (to > from && d.counts.acks > 0).then(|| bytes as f64 * 8e3 / (to - from) as f64)
}
