//! Timestamps and who echoes them: the time from a packet to the other end's answer, also where the ACK number is ambiguous.
//!
//! Source: RFC 7323 §3 (an ACK echoes the TSval of the earliest segment that it acknowledges; data echo the newest ACK's) and §4.1.
//! What it does not model: a sender whose clock ticks more slowly than its packets follow; only a tick's first packet is timed.

use std::collections::VecDeque;
use tcpscape_base::wire::ahead;

/// Most TSvals remembered of one end.
const MOST: usize = 1024;

/// A TSval and the packet that had it first.
#[derive(Clone, Copy, Debug)]
struct Mark {
    tsval: u32,
    t: u64,
    /// Bytes that the packets with this TSval had acknowledged and SACKed.
    delivered: u64,
    is_echoed: bool,
}

/// What the other end's echo says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echoed {
    /// Since the first packet with that TSval; `None` if it was echoed before.
    pub after: Option<u64>,
    /// What the answering end knew to be delivered.
    pub delivered: u64,
}

/// The TSvals of one end that are not yet echoed by the other.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    marks: VecDeque<Mark>,
}

impl Echoes {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>()
    }
    /// A packet of this end, which acknowledges and SACKs so many bytes of the other's data.
    pub fn sent(&mut self, tsval: u32, t: u64, delivered: u64) {
        match self.marks.back_mut() {
            Some(last) if last.tsval == tsval => last.delivered = last.delivered.max(delivered),
            Some(last) if ahead(last.tsval, tsval) < 0 => {}
            _ => {
                if self.marks.len() == MOST {
                    self.marks.pop_front();
                }
                self.marks.push_back(Mark { tsval, t, delivered, is_echoed: false });
            }
        }
    }
    /// A packet of the other end that echoes `tsecr`.
    pub fn echoed(&mut self, tsecr: u32, t: u64) -> Option<Echoed> {
        while self.marks.front().is_some_and(|m| ahead(tsecr, m.tsval) < 0) {
            self.marks.pop_front();
        }
        let mark = self.marks.front_mut().filter(|m| m.tsval == tsecr)?;
        let after = (!mark.is_echoed).then(|| t.saturating_sub(mark.t));
        mark.is_echoed = true;
        Some(Echoed { after, delivered: mark.delivered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_echo_of_the_first_packet_of_a_tick_is_timed() {
        let mut e = Echoes::default();
        e.sent(u32::MAX, 100, 1);
        e.sent(u32::MAX, 150, 2);
        e.sent(3, 200, 3);
        e.sent(u32::MAX, 210, 4); // an old packet that came late
        assert_eq!(e.echoed(u32::MAX, 1_100), Some(Echoed { after: Some(1_000), delivered: 2 }));
        assert_eq!(e.echoed(u32::MAX, 1_200), Some(Echoed { after: None, delivered: 2 }));
        assert_eq!(e.echoed(3, 1_300), Some(Echoed { after: Some(1_100), delivered: 3 }));
        assert_eq!((e.echoed(u32::MAX, 1_400), e.echoed(9, 1_400)), (None, None));
    }
}
