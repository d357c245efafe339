//! The flows of fq_codel and fq_pie: hashed into buckets, served in turn by bytes, new ones first.
//!
//! What it is: deficit round robin over two lists. A flow that was idle goes to the end of the new flows, which are served before
//! the old; when its quantum is used up, or when it runs empty while old flows wait, it goes to the end of the old ones.
//! Source: RFC 8290 §4; Shreedhar and Varghese 1995.
//! How it differs: the bucket is a hash of the flow's number under a key from the seed, where Linux hashes addresses and ports
//! under a key from its boot; whether two flows share a bucket is as likely.
//! What it does not model: filters and classes.

use crate::discipline::Aged;
use std::collections::VecDeque;
use tcpscape_base::{flow_hash, Packet, Stream, Time};

/// A flow with the state that its queue discipline keeps of it.
#[derive(Debug)]
pub struct Flow<B, S> {
    bucket: u32,
    queue: VecDeque<Aged<B>>,
    /// Bytes queued.
    pub bytes: u64,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
    /// The queue discipline's own.
    pub state: S,
}

impl<B, S> Flow<B, S> {
    /// Takes the first packet.
    pub fn pull(&mut self) -> Option<Aged<B>> {
        let p = self.queue.pop_front()?;
        self.bytes -= u64::from(p.1.size);
        Some(p)
    }
}

/// All flows that have been seen.
#[derive(Debug)]
pub struct Flows<B, S> {
    /// Place of each bucket's flow; [`NONE`] before its first packet.
    buckets: Vec<u32>,
    /// The flows in order of appearance.
    pub all: Vec<Flow<B, S>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
    key: u64,
}

const NONE: u32 = u32::MAX;

/// A full Ethernet frame, B: the quantum that both queues have unless told otherwise.
pub const FRAME: u32 = 1514;
/// Least quantum, B.
pub const QUANTUM_MIN: u32 = 256;

impl<B, S: Default> Flows<B, S> {
    /// So many buckets, so many bytes a turn; the hash's key is the stream `name/hash`.
    pub fn new(buckets: u32, quantum: u32, seed: u64, name: &str) -> Flows<B, S> {
        Flows {
            buckets: vec![NONE; buckets as usize],
            all: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(quantum),
            key: Stream::new(seed, &format!("{name}/hash")).next_u64(),
        }
    }
    /// The flow that a packet belongs to.
    pub fn classify(&mut self, p: &Packet<B>) -> usize {
        let z = flow_hash(p.flow, self.key);
        // The finaliser's last step, and the upper half scaled to the number of buckets.
        let bucket = ((((z ^ (z >> 31)) >> 32) * self.buckets.len() as u64) >> 32) as u32;
        let at = &mut self.buckets[bucket as usize];
        if *at == NONE {
            *at = self.all.len() as u32;
            self.all.push(Flow { bucket, queue: VecDeque::new(), bytes: 0, deficit: 0, listed: false, state: S::default() });
        }
        *at as usize
    }
    /// A packet goes to the end of flow `i`.
    pub fn push(&mut self, i: usize, now: Time, p: Packet<B>) {
        let f = &mut self.all[i];
        f.bytes += u64::from(p.size);
        f.queue.push_back((now, p));
        if !f.listed {
            (f.listed, f.deficit) = (true, self.quantum);
            self.new.push_back(i as u32);
        }
    }
    /// The flow whose turn it is, and whether it is a new one; flows without credit get their quantum and wait.
    pub fn turn(&mut self) -> Option<(usize, bool)> {
        loop {
            let new = !self.new.is_empty();
            let list = if new { &mut self.new } else { &mut self.old };
            let i = *list.front()?;
            let f = &mut self.all[i as usize];
            if f.deficit > 0 {
                return Some((i as usize, new));
            }
            f.deficit += self.quantum;
            list.pop_front();
            self.old.push_back(i);
        }
    }
    /// The flow whose turn it is has sent so much.
    pub fn charge(&mut self, i: usize, bytes: u32) {
        self.all[i].deficit -= i64::from(bytes);
    }
    /// The flow whose turn it is has nothing to send: an empty new one must pass through the old ones before it is new again.
    pub fn pass(&mut self, i: usize, new: bool) {
        if new {
            self.new.pop_front();
        } else {
            self.old.pop_front();
        }
        if new && !self.old.is_empty() {
            self.old.push_back(i as u32);
        } else {
            self.all[i].listed = false;
        }
    }
    /// The flow with the most bytes; of equals, that of the lowest bucket.
    pub fn fattest(&self) -> Option<usize> {
        (0..self.all.len()).max_by_key(|&i| (self.all[i].bytes, std::cmp::Reverse(self.all[i].bucket)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows() -> Flows<(), u32> {
        Flows::new(1024, 1514, 1, "t")
    }
    fn packet(flow: u32, size: u32) -> Packet<()> {
        Packet { flow, size, segs: 1, ..Default::default() }
    }

    #[test]
    fn a_sparse_flow_goes_before_two_bulk_ones() {
        let mut f = flows();
        for n in [1, 2, 1, 2, 1, 2] {
            let p = packet(n, 1514);
            let i = f.classify(&p);
            f.push(i, Time(0), p);
        }
        let mut sent = vec![];
        while sent.len() < 5 {
            if sent.len() == 3 && f.all.len() == 2 {
                let p = packet(3, 100);
                let i = f.classify(&p);
                f.push(i, Time(0), p);
            }
            let (i, new) = f.turn().unwrap();
            match f.all[i].pull() {
                Some((_, p)) => {
                    f.charge(i, p.size);
                    sent.push(p.flow);
                }
                None => f.pass(i, new),
            }
        }
        assert_eq!(sent, [1, 2, 1, 3, 2]);
    }

    #[test]
    fn an_emptied_new_flow_waits_among_the_old() {
        let mut f = flows();
        for n in [1, 1, 2] {
            let p = packet(n, 1514);
            let i = f.classify(&p);
            f.push(i, Time(0), p);
        }
        let serve = |f: &mut Flows<(), u32>| {
            let (i, new) = f.turn().unwrap();
            match f.all[i].pull() {
                Some((_, p)) => f.charge(i, p.size),
                None => f.pass(i, new),
            }
            (i, new)
        };
        assert_eq!([serve(&mut f), serve(&mut f)], [(0, true), (1, true)]);
        assert_eq!(serve(&mut f), (0, false));
        assert_eq!(serve(&mut f), (1, false), "empty, it loses its place");
        assert!(!f.all[1].listed && f.all[0].listed);
    }
}
