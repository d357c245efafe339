//! Connections: which slot and which number they have, how they begin and end (start and stop times, resets).

use super::neighbours::Neighbours;
use super::node::{Node, Part};
use super::Engine;
use tcpscape_base::{Flags, Segment};
use tcpscape_tcp::Transmit;

impl Engine<'_> {
    /// The number that packets of the connection in slot `i` carry.
    #[inline]
    pub(super) fn number(&self, i: usize) -> usize {
        self.transfers.number(i)
    }

    /// The slot of the connection whose packets carry this number; none when it is over.
    #[inline]
    pub(super) fn slot(&self, number: usize) -> Option<usize> {
        self.transfers.slot(number)
    }

    /// The start time of a connection has come, or its stop time.
    pub(super) fn start_or_stop(&mut self, i: usize) {
        if !self.flows[i].is_to_open(self.now) {
            return if i < self.plan_flows { self.stop_flow(i) } else { self.give_up(i) };
        }
        self.events.want(Node::Flow(i as u32, Part::Connection), self.flows[i].stop);
        self.begin_connection(i);
    }

    /// Connects, as soon as the neighbour's address is known.
    pub(super) fn begin_connection(&mut self, i: usize) {
        if self.knows_neighbours(self.flows[i].is_up()) {
            self.connect(i);
        }
    }

    /// Whether the host that sends down, or up, knows its neighbour's address; if not it asks for it.
    pub(super) fn knows_neighbours(&mut self, up: bool) -> bool {
        match self.neighbours[usize::from(up)] {
            Neighbours::Known => return true,
            Neighbours::Unknown => self.ask_neighbours(up),
            Neighbours::Asked(_) => {}
        }
        self.neighbours[usize::from(up)] == Neighbours::Known
    }

    pub(super) fn connect(&mut self, i: usize) {
        self.flows[i].open(self.now);
        self.flush_sender(i);
    }

    /// The application closes with a RST (SO_LINGER 0): what is in flight still counts until the RST is accepted.
    pub(super) fn stop_flow(&mut self, i: usize) {
        if self.flows[i].is_closed() {
            return;
        }
        match self.flows[i].close() {
            Some(seq) => self.send_reset(i, seq),
            None => self.on_over(i),
        }
    }

    pub(super) fn send_reset(&mut self, i: usize, seq: u64) {
        let segment = Segment { seq, flags: Flags::RST, ..Segment::default() };
        self.transmit(i, &Transmit { segment, segs: 1, burst: 0, departure: self.now });
    }

    /// A RST has come: only the exact sequence number resets (RFC 5961 §3.2), or the end of the rightmost SACKed range
    /// (docs/models/methods/engine.md); any other is answered with an ACK.
    pub(super) fn on_reset(&mut self, i: usize, seq: u64) {
        let f = &mut self.flows[i];
        f.absorb_all(self.now);
        if seq == f.receiver.rcv_nxt() || Some(seq) == f.receiver.highest_sacked() {
            f.reset();
            return self.on_over(i);
        }
        let (ack, wnd) = (f.receiver.rcv_nxt(), f.receiver.window());
        self.reply(i, Segment { seq: 1, ack, wnd, flags: Flags::ACK, ..Segment::default() });
    }
}
