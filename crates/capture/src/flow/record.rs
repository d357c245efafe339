//! What is handed on about one direction of a connection.

use super::counts::Counts;
use super::rtt::Summary;
use super::table::{AckRow, EventRow, SegmentRow};
use super::vantage::Vantage;
use crate::limits::{self, Doubt, Interval};
use crate::packet::Endpoint;
use serde::Serialize;
use serde_json::Value;

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

/// Facts of one direction. What is `None` the capture does not show.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// First packet of the connection, s since the capture's first.
    pub start_s: f64,
    /// From it to the connection's last, s.
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
