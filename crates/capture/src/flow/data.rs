//! The data of one end, as its packets came here.

use super::arrivals::{Arrivals, Evidence, Piece};
use super::end::Seen;
use super::rtt::Times;
use super::window::Window;

/// Copies that the network makes are looked for among so many packets.
const COPIES: usize = 64;
/// Bytes beyond the window that no sender's mistake explains.
const FAR: u64 = 1 << 30;
/// A packet without identification that looks the same is a copy if it comes so soon, ns.
const AT_ONCE: u64 = 1_000_000;

/// What of a packet a copy of it has too: identification, first byte and TSval.
type Digest = (u16, u32, u32);

/// The data as sent.
#[derive(Debug, Default)]
pub struct Data {
    arrivals: Arrivals,
    upstream: Times,
    span: Option<(u64, u64)>,
    last_t: u64,
    copies: Option<Box<[Digest; COPIES]>>,
}

impl Data {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.arrivals.heap() + self.copies.as_ref().map_or(0, |c| size_of_val(&**c))
    }
    /// What was seen.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }
    /// From the other end's packets to data that echo them.
    pub fn upstream(&self) -> &Times {
        &self.upstream
    }
    /// First and last data packet.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }
    /// When the last packet came that is no copy, ns; 0 before one.
    pub fn last_t(&self) -> u64 {
        self.last_t
    }
    /// The connection's first byte is known to be this.
    pub fn begin(&mut self, first: u64) {
        self.arrivals.begin(first);
    }
    /// A packet acknowledges the bytes below `ack`; gives how many of them had not been seen.
    pub fn acknowledged(&mut self, ack: u64, by: &Seen) -> u64 {
        self.span.map_or(0, |_| self.arrivals.acknowledged(ack, by.t, by.frame, by.tsecr))
    }

    /// Whether it lies so far from all others that it is none of the connection's.
    pub fn is_out_of_window(&self, s: &Seen, window: &Window) -> bool {
        let Some(high) = self.arrivals.high() else { return false };
        let is_beyond = window.edge().is_some_and(|edge| s.start > edge.max(high) + window.most().max(1 << 16));
        is_beyond || s.start > high + FAR || s.range().end + FAR < high
    }

    /// Takes the times of a packet.
    pub fn timed(&mut self, s: &Seen) {
        self.span = Some((self.span.map_or(s.t, |x| x.0), s.t));
        if let Some(after) = s.echo.and_then(|e| e.after) {
            self.upstream.add(after);
        }
    }

    /// Whether the same packet has just been seen: the network made a copy (a retransmission has another identification, or another TSval).
    pub fn is_copy(&mut self, s: &Seen) -> bool {
        if s.stamp.id == 0 && s.stamp.tsval.is_none() {
            return false;
        }
        let copies = self.copies.get_or_insert_with(|| Box::new([(0, 0, 0); COPIES]));
        let place = if s.stamp.id == 0 { (s.start >> 8) as usize } else { usize::from(s.stamp.id) } % COPIES;
        let this = (s.stamp.id, s.start as u32, s.tsval());
        let is_same = std::mem::replace(&mut copies[place], this) == this;
        let is_at_once = s.stamp.id != 0 || s.t.saturating_sub(self.last_t) < AT_ONCE;
        is_same && is_at_once && self.arrivals.high().is_some_and(|h| s.start < h)
    }

    /// Takes its bytes; calls `each` with every piece of it, in ascending order.
    pub fn take(&mut self, s: &Seen, evidence: &Evidence<'_>, each: impl FnMut(Piece)) {
        self.arrivals.take(s.range(), evidence, each);
        self.last_t = s.t;
    }

    /// What the sender had in flight when it sent this, by the ACK that it echoes; 0 unknown.
    pub fn flight_by_echo(&self, s: &Seen) -> u32 {
        let (Some(echo), Some(high)) = (s.echo, self.arrivals.high()) else { return 0 };
        u32::try_from(super::sequence::shown(high).saturating_sub(echo.delivered)).unwrap_or(u32::MAX)
    }
}
