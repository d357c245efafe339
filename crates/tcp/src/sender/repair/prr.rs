//! Proportional rate reduction: how many packets may leave while the window shrinks to its threshold.
//!
//! Source: RFC 6937 §3, RFC 9937 §6 (one packet more while the left edge moves and nothing new is lost). How it differs: the window before
//! the reduction stands for the data in flight then. Not modelled: counts in bytes.

/// One reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) struct Prr {
    /// The window before it, packets (`RecoverFS`).
    prior_cwnd: u32,
    /// Packets delivered since it began (`prr_delivered`).
    delivered: u32,
    /// Packets sent since it began (`prr_out`).
    out: u32,
}

/// What one ACK means for a reduction.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Progress {
    /// Packets that it delivered.
    pub delivered: u32,
    /// It moved the left edge, and nothing more was found lost (`SafeACK`).
    pub safe: bool,
    /// Packets in flight after it.
    pub in_flight: u32,
    /// The window's target.
    pub ssthresh: u32,
}

impl Prr {
    /// Begins with a window of `prior_cwnd` packets.
    pub fn new(prior_cwnd: u32) -> Prr {
        Prr { prior_cwnd: prior_cwnd.max(1), delivered: 0, out: 0 }
    }

    /// `n` packets have left.
    #[inline]
    pub fn sent(&mut self, n: u32) {
        self.out += n;
    }
    /// `n` packets have not left after all.
    #[inline]
    pub fn taken_back(&mut self, n: u32) {
        self.out = self.out.saturating_sub(n);
    }

    /// Packets that may leave now (`sndcnt` of §3); `None` if the ACK delivered nothing.
    pub fn on_ack(&mut self, p: &Progress) -> Option<u32> {
        if p.delivered == 0 {
            return None;
        }
        self.delivered += p.delivered;
        let (delivered, out) = (u64::from(self.delivered), u64::from(self.out));
        let allowance = if p.in_flight > p.ssthresh {
            // Proportional part: sent so far is to delivered so far as the new window to the old one, rounded up.
            let target = (delivered * u64::from(p.ssthresh)).div_ceil(u64::from(self.prior_cwnd));
            target.saturating_sub(out)
        } else {
            // Slow start up to the threshold: what was delivered and not yet replaced, at least what this ACK delivered.
            let limit = delivered.saturating_sub(out).max(u64::from(p.delivered)) + u64::from(p.safe);
            limit.min(u64::from(p.ssthresh - p.in_flight))
        };
        // A fast retransmission always leaves.
        Some(allowance.max(u64::from(self.out == 0)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leaves at ACKs 3 (the retransmission) to 12 of RFC 6937 §3.1's first example: a window of 20, one loss, the threshold at 10.
    #[test]
    fn one_packet_leaves_for_two_delivered() {
        let mut prr = Prr::new(20);
        let (mut pipe, mut sent) = (19, vec![]);
        for _ in 0..10 {
            pipe -= 1;
            let n = prr.on_ack(&Progress { delivered: 1, safe: false, in_flight: pipe, ssthresh: 10 }).unwrap();
            prr.sent(n);
            pipe += n;
            sent.push(n);
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!((prr.delivered, prr.out), (10, 5));
    }

    /// Below the threshold as much leaves as was delivered, one more if that is safe, never beyond the threshold.
    #[test]
    fn the_slow_start_bound() {
        let mut prr = Prr::new(20);
        let few = Progress { delivered: 3, safe: false, in_flight: 4, ssthresh: 10 };
        assert_eq!(prr.on_ack(&few), Some(3));
        prr.sent(3);
        assert_eq!(prr.on_ack(&Progress { safe: true, ..few }), Some(4));
        prr.sent(4);
        assert_eq!(prr.on_ack(&Progress { in_flight: 9, ..few }), Some(1));
        // More was sent than delivered: as much as this ACK delivered, all the same.
        prr.sent(10);
        assert_eq!(prr.on_ack(&few), Some(3));
    }

    #[test]
    fn the_first_packet_always_leaves_and_nothing_moves_without_delivery() {
        let mut prr = Prr::new(100);
        let ack = Progress { delivered: 1, safe: false, in_flight: 10, ssthresh: 10 };
        assert_eq!(prr.on_ack(&Progress { delivered: 0, ..ack }), None);
        assert_eq!(prr.on_ack(&ack), Some(1));
        prr.sent(1);
        assert_eq!(prr.on_ack(&ack), Some(0));
    }
}
