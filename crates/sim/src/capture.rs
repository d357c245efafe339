//! A trial's packets as a pcapng file.

use crate::checked::CheckedPlan;
use crate::columns::PacketEvents;
use std::io::{self, BufWriter};
use tcpscape_base::{Flags, Segment, Time};
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
