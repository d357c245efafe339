//! A frame's TCP segment as the path's queues read it: for CAKE's filter of ACKs.
//!
//! Source: RFC 9293 §3.1, RFC 7323 §3.2 (timestamps), RFC 2018 §3 (SACK). Sequence numbers become offsets that do not wrap: each number
//! is the one nearest to the flow's last.

use super::parse::{Inner, Transport};
use std::collections::HashMap;
use tcpscape_base::{wire, Ecn, Flags, Segment};

/// Most flows whose numbers are followed; those of others wrap.
const MOST: usize = 1 << 16;
/// Where the offsets of a flow begin, far enough from 0 for older numbers.
const BEGIN: u64 = 1 << 32;
const HEADER: usize = 20;
const URG: u8 = 0x20;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// The last sequence and acknowledgement number of each flow.
#[derive(Debug, Default)]
pub(crate) struct Numbers(HashMap<u32, [u64; 2]>);

impl Numbers {
    /// The segment of a packet; `None` where it is none, or urgent.
    pub fn segment(&mut self, flow: u32, packet: &[u8], inner: Inner, ecn: Ecn) -> Option<Segment> {
        let tcp = packet.get(inner.at..inner.payload)?;
        if inner.transport != Transport::Tcp || tcp.len() < HEADER || tcp[13] & URG != 0 {
            return None;
        }
        let accurate = if tcp[12] & 1 != 0 { Flags::AE } else { Flags(0) };
        let mut s = Segment {
            len: (packet.len() - inner.payload) as u32,
            wnd: u32::from(tcp[14]) << 8 | u32::from(tcp[15]),
            flags: Flags(tcp[13]).with(accurate),
            ecn,
            ..Segment::default()
        };
        [s.seq, s.ack] = self.unwrap(flow, [number(tcp, 4)?, number(tcp, 8)?]);
        wire::options(&tcp[HEADER..]).for_each(|(kind, value)| read_option(kind, value, &mut s));
        Some(s)
    }

    fn unwrap(&mut self, flow: u32, numbers: [u32; 2]) -> [u64; 2] {
        let fresh = numbers.map(|n| BEGIN + u64::from(n));
        if self.0.len() >= MOST && !self.0.contains_key(&flow) {
            return fresh;
        }
        let last = self.0.entry(flow).or_insert(fresh);
        for (last, n) in last.iter_mut().zip(numbers) {
            *last = near(*last, n);
        }
        *last
    }
}

/// The offset nearest to `last` whose low half is `n`.
fn near(last: u64, n: u32) -> u64 {
    last.wrapping_add_signed(wire::ahead(last as u32, n))
}

fn read_option(kind: u8, value: &[u8], s: &mut Segment) {
    match kind {
        TIMESTAMPS => (s.tsval, s.tsecr) = (number(value, 0).unwrap_or(0), number(value, 4).unwrap_or(0)),
        SACK => {
            for block in value.chunks_exact(8) {
                let [from, to] = [0, 4].map(|at| near(s.ack, number(block, at).unwrap_or(0)));
                if from < to {
                    s.push_sack((from, to));
                }
            }
        }
        _ => {}
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..at + 4)?.first_chunk()?))
}
