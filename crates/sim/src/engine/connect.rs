//! How connections begin and end: start and stop times, neighbour discovery before the first packet, resets.

use super::*;

impl Engine<'_> {
    pub(super) fn start_or_stop(&mut self, i: usize) {
        let f = &mut self.flows[i];
        if !f.syn_sent && self.now < f.stop {
            self.events.want(Self::component(i, START_STOP), self.flows[i].stop);
            match self.neighbours {
                Neighbours::Resolved => self.connect(i),
                Neighbours::Unknown => self.ask_neighbours(),
                Neighbours::Asked(_) => {}
            }
            return;
        }
        self.stop_flow(i);
    }

    fn connect(&mut self, i: usize) {
        let f = &mut self.flows[i];
        f.syn_sent = true;
        f.sender.connect(self.now, f.start);
        self.flush_sender(i);
    }

    /// The application closes with a RST (SO_LINGER 0): what is in flight still counts until the RST is accepted.
    pub(super) fn stop_flow(&mut self, i: usize) {
        let f = &mut self.flows[i];
        if f.closed {
            return;
        }
        f.closed = true;
        if f.begin.is_none() {
            f.dead = true;
            self.alive -= 1;
            return;
        }
        let seq = f.sender.snd_nxt();
        self.send_rst(i, seq);
    }

    pub(super) fn send_rst(&mut self, i: usize, seq: u64) {
        let segment = Segment { seq, flags: Flags::RST, ..Segment::default() };
        self.transmit(i, Transmit { segment, segs: 1, burst: 0, departure: self.now });
    }

    fn ask_neighbours(&mut self) {
        self.neighbours = Neighbours::Asked(self.now);
        self.events.want(ARP_TIMER, self.now + ARP_RETRY);
        let p = Packet { flow: ARP, size: 28 + ETH_HEADER, segs: 1, ..Packet::default() };
        self.host.push(self.now, p);
        self.pump_host();
    }

    pub(super) fn on_arp_timer(&mut self) {
        if let Neighbours::Asked(at) = self.neighbours {
            if self.now >= at + ARP_RETRY && self.now < self.end {
                self.ask_neighbours();
            }
        }
    }

    pub(super) fn neighbours_known(&mut self) {
        if self.neighbours == Neighbours::Resolved {
            return;
        }
        self.neighbours = Neighbours::Resolved;
        for i in 0..self.flows.len() {
            if !self.flows[i].syn_sent && self.flows[i].start <= self.now && !self.flows[i].closed {
                self.connect(i);
            }
        }
    }

    // RFC 5961 §3.2; Linux: tcp_validate_incoming(): only the exact sequence number, or the end of the last SACKed range, resets.
    pub(super) fn on_rst(&mut self, i: usize, seg: &Segment) {
        let f = &mut self.flows[i];
        f.absorb_all(self.now);
        if seg.seq == f.receiver.rcv_nxt() || Some(seg.seq) == f.receiver.highest_sacked() {
            f.dead = true;
            self.alive -= 1;
            return;
        }
        let (ack, wnd) = (f.receiver.rcv_nxt(), f.receiver.window());
        let ack = Segment { seq: 1, ack, wnd, flags: Flags::ACK, ..Segment::default() };
        self.reply(i, ack);
    }
}
