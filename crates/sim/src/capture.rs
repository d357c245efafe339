//! A trial's packets as a pcapng file, and a capture at a sender's host as a trial's packets.

use crate::checked::CheckedPlan;
use crate::columns::{PacketEvent, PacketEvents};
use std::collections::HashMap;
use std::io::{self, BufWriter};
use tcpscape_base::{Flags, Segment, Time};
use tcpscape_capture::packet::{Endpoint, Packet};
use tcpscape_capture::read::{Reader, Unreadable};
use tcpscape_capture::{Event, Meta, WHOLE};

const PROGRAM: &str = concat!("tcpscape ", env!("CARGO_PKG_VERSION"));

/// Runs one trial and writes what the sender's device sees to `path`; the file is opened first. The plan must record packets.
pub fn write_pcapng(path: &str, checked: &CheckedPlan<'_>, seed: u64) -> io::Result<()> {
    let plan = checked.plan();
    if !plan.trace_packets {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "trace_packets: the plan records no packets; set it"));
    }
    let file = BufWriter::new(std::fs::File::create(path)?);
    let trial = checked.run(seed);
    let comment = format!("seed {seed}, plan {}", serde_json::to_string(plan)?);
    let meta = Meta { seed, mtu: plan.mtu, wscale: &trial.wscale, program: PROGRAM, comment: &comment, whole: WHOLE };
    tcpscape_capture::write(file, &meta, trial.packets.events())
}

impl PacketEvents {
    /// The packets in order.
    pub fn events(&self) -> impl Iterator<Item = Event> + Clone + '_ {
        (0..self.t_ns.len()).map(|i| {
            let mut seg = Segment {
                seq: self.seq[i],
                ack: self.ack[i],
                len: self.len[i],
                wnd: self.wnd[i],
                tsval: self.tsval[i],
                tsecr: self.tsecr[i],
                flags: Flags(self.flags[i]),
                ..Segment::default()
            };
            let blocks = [
                (self.sack0_start[i], self.sack0_end[i]),
                (self.sack1_start[i], self.sack1_end[i]),
                (self.sack2_start[i], self.sack2_end[i]),
            ];
            for b in &blocks[..usize::from(self.nsack[i])] {
                seg.push_sack(*b);
            }
            Event { at: Time(self.t_ns[i]), flow: self.flow[i], received: self.received[i] != 0, seg }
        })
    }
}

/// What the wire does not say of a number of 32 bits: how often it has wrapped since the SYN, whose number is 0.
#[derive(Clone, Copy, Default)]
struct Offset {
    first: Option<u32>,
    newest: u64,
}

impl Offset {
    /// The offset that is nearest to the newest one; what lies before the SYN counts as the SYN.
    fn of(&mut self, number: u32) -> u64 {
        let base = *self.first.get_or_insert(number);
        let step = number.wrapping_sub(base.wrapping_add(self.newest as u32)) as i32;
        let offset = self.newest.saturating_add_signed(i64::from(step));
        self.newest = self.newest.max(offset);
        offset
    }
}

/// A connection of a capture: who began it, and each way's numbers and window scale; the way of the data first.
struct Connection {
    from: Endpoint,
    flow: u32,
    ways: [(Offset, u8); 2],
}

/// The packets of a capture at the host where all connections begin, as a trial of the model has them: the flows are numbered by their first SYNs, numbers
/// count from each way's SYN, windows are in bytes. A connection without its SYN is left out.
pub fn packets_of(capture: &[u8]) -> Result<PacketEvents, Unreadable> {
    let (mut reader, mut packets) = (Reader::new(), PacketEvents::default());
    let mut connections: HashMap<[Endpoint; 2], Connection> = HashMap::new();
    reader.feed(capture, &mut |p| {
        let mut ends = [p.from, p.to];
        ends.sort_unstable();
        let flow = connections.len() as u32;
        if p.flags.has(Flags::SYN) && !p.flags.has(Flags::ACK) {
            connections.entry(ends).or_insert(Connection { from: p.from, flow, ways: Default::default() });
        }
        if let Some(connection) = connections.get_mut(&ends) {
            packets.push(connection.event(p));
        }
    })?;
    reader.finish()?;
    Ok(packets)
}

impl Connection {
    fn event(&mut self, p: &Packet) -> PacketEvent {
        let (received, is_first) = (p.from != self.from, p.flags.has(Flags::SYN));
        let [data, acks] = &mut self.ways;
        let (own, other) = if received { (acks, data) } else { (data, acks) };
        if is_first {
            own.1 = p.options.window_scale.unwrap_or(0);
        }
        let (tsval, tsecr) = p.options.timestamps.unwrap_or_default();
        let scale = if is_first { 0 } else { own.1 };
        let mut segment = Segment {
            seq: own.0.of(p.seq),
            ack: if p.flags.has(Flags::ACK) { other.0.of(p.ack) } else { 0 },
            len: p.len,
            wnd: u32::from(p.window) << scale,
            tsval,
            tsecr,
            flags: p.flags,
            ..Segment::default()
        };
        for (start, end) in &p.options.blocks[..usize::from(p.options.block_count)] {
            segment.push_sack((other.0.of(*start), other.0.of(*end)));
        }
        PacketEvent::of(p.at, self.flow, &segment, received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_capture_do_not_wrap() {
        let mut numbers = Offset::default();
        let seen = [u32::MAX - 1, 0, 2_000_000_000, 4_000_000_000, 1_000, 2_000, u32::MAX];
        assert_eq!(seen.map(|n| numbers.of(n)), [0, 2, 2_000_000_002, 4_000_000_002, 4_294_968_298, 4_294_969_298, 4_294_967_297]);
    }
}
