//! A trial's packets as a pcapng file.

use crate::output::PacketEvents;
use crate::{engine, Controls, Plan};
use std::io::{self, BufWriter};
use tcpscape_base::{Flags, Segment, Time};
use tcpscape_capture::{Event, Meta, WHOLE};

const PROGRAM: &str = concat!("tcpscape ", env!("CARGO_PKG_VERSION"));

/// Runs one trial and writes what the sender's device sees to `path`; the file is opened first.
pub fn write_pcapng(path: &str, plan: &Plan, seed: u64, controls: &Controls<'_>) -> io::Result<()> {
    let file = BufWriter::new(std::fs::File::create(path)?);
    let plan = Plan { trace_packets: true, ..plan.clone() };
    let trial = engine::run_with(&plan, seed, controls);
    let comment = format!("seed {seed}, plan {}", serde_json::to_string(&plan)?);
    let meta = Meta { seed, mtu: plan.mtu, wscale: &trial.wscale, program: PROGRAM, comment: &comment, whole: WHOLE };
    tcpscape_capture::write(file, &meta, trial.packets.events())
}

impl PacketEvents {
    /// Adds a packet.
    pub fn push(&mut self, at: Time, flow: u32, s: &Segment, received: bool) {
        let mut blocks = [(0, 0); 3];
        for (k, b) in s.sacks().enumerate() {
            blocks[k] = b;
        }
        self.t_ns.push(at.0);
        self.flow.push(flow);
        self.received.push(u8::from(received));
        self.seq.push(s.seq);
        self.ack.push(s.ack);
        self.len.push(s.len);
        self.wnd.push(s.wnd);
        self.flags.push(s.flags.0);
        self.tsval.push(s.tsval);
        self.tsecr.push(s.tsecr);
        self.nsack.push(s.nsack);
        self.sack0_start.push(blocks[0].0);
        self.sack0_end.push(blocks[0].1);
        self.sack1_start.push(blocks[1].0);
        self.sack1_end.push(blocks[1].1);
        self.sack2_start.push(blocks[2].0);
        self.sack2_end.push(blocks[2].1);
    }

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
