//! What is kept of each socket: samples in which something changed, in bounded memory.
//!
//! An unchanged sample is kept only as the last one before a change, so that idle sockets cost two rows. Where there are more rows than the
//! budget, every second one of each socket goes, and from then on every second sample is passed over.

use std::collections::HashMap;
use std::net::SocketAddr;
use tcpscape_testbed::sock_diag::{Bbr, Found, Id, Memory, Queues};
use tcpscape_testbed::tcp_info::{TcpInfo, FIELDS};

/// One sample of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since the beginning, ns.
    pub t: u64,
    /// Its counters.
    pub info: TcpInfo,
    /// Its buffers.
    pub memory: Option<Memory>,
    /// BBR's numbers.
    pub bbr: Option<Bbr>,
    /// What waits at both ends.
    pub queues: Queues,
}

impl Sample {
    /// Whether anything happened on the connection from one sample to the other.
    fn differs(&self, other: &Sample) -> bool {
        let key = |s: &Sample| {
            let x = &s.info;
            (x.segs_in(), x.segs_out(), x.busy_time(), x.total_retrans(), x.ca_state(), x.state(), s.queues, x.snd_cwnd())
        };
        key(self) != key(other)
    }
}

/// A socket that was seen.
#[derive(Clone, Debug)]
pub struct Socket {
    /// This end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
    /// Its congestion control.
    pub control: String,
    /// User who owns it.
    pub uid: u32,
    /// When it ended, ns; None while it lives.
    pub ended: Option<u64>,
    /// Whether it was there before the first sample.
    pub was_there: bool,
    /// The samples, in order of time.
    pub samples: Vec<Sample>,
    id: Id,
    /// When something last happened on it, ns.
    active: u64,
    /// The last sample, where it did not differ from the one before.
    same: Option<Sample>,
}

impl Socket {
    /// Bytes that were acknowledged and received, together, while it was watched.
    fn carried(&self) -> u64 {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else { return 0 };
        let grown = |of: fn(&TcpInfo) -> u64| of(&last.info).saturating_sub(if self.was_there { of(&first.info) } else { 0 });
        grown(TcpInfo::bytes_acked) + grown(TcpInfo::bytes_received)
    }

    fn push(&mut self, sample: Sample) {
        match self.samples.last() {
            Some(last) if !sample.differs(last) => self.same = Some(sample),
            _ => {
                self.active = sample.t;
                self.samples.extend(self.same.take());
                self.samples.push(sample);
            }
        }
    }

    /// Leaves out every second sample but the first and the last.
    fn halve(&mut self) {
        let last = self.samples.len().saturating_sub(1);
        let mut i = 0;
        self.samples.retain(|_| {
            i += 1;
            (i - 1) % 2 == 0 || i - 1 == last
        });
    }

    /// The columns by the kernel's names, a value for each sample, NaN where the kernel does not tell; those of no value are left out.
    pub fn columns(&self) -> Vec<(&'static str, Vec<f64>)> {
        let column = |of: &dyn Fn(&Sample) -> Option<u64>| -> Vec<f64> {
            self.samples.iter().map(|s| of(s).map_or(f64::NAN, |v| v as f64)).collect()
        };
        let mut columns = vec![("t_s", self.samples.iter().map(|s| s.t as f64 / 1e9).collect())];
        columns.extend(FIELDS.iter().map(|(name, field)| (*name, column(&|s| field(&s.info)))));
        columns.push(("delivery_rate_app_limited", column(&|s| s.info.app_limited().map(u64::from))));
        columns.extend(EXTRA.iter().map(|(name, of)| (*name, column(of))));
        columns.retain(|(_, values)| values.iter().any(|v| !v.is_nan()));
        columns
    }
}

/// What a socket's list entry says besides TCP_INFO.
type Extra = fn(&Sample) -> Option<u64>;
const EXTRA: &[(&str, Extra)] = &[
    ("rqueue", |s| Some(u64::from(s.queues.unread))),
    ("wqueue", |s| Some(u64::from(s.queues.unacknowledged))),
    ("rmem", |s| s.memory.map(|m| u64::from(m.rmem))),
    ("rcvbuf", |s| s.memory.map(|m| u64::from(m.rcvbuf))),
    ("wmem_queued", |s| s.memory.map(|m| u64::from(m.wmem_queued))),
    ("sndbuf", |s| s.memory.map(|m| u64::from(m.sndbuf))),
    ("drops", |s| s.memory.map(|m| u64::from(m.drops))),
    ("bbr_bw", |s| s.bbr.map(|b| b.bw)),
    ("bbr_min_rtt", |s| s.bbr.map(|b| u64::from(b.min_rtt))),
    ("bbr_pacing_gain", |s| s.bbr.map(|b| u64::from(b.pacing_gain))),
    ("bbr_cwnd_gain", |s| s.bbr.map(|b| u64::from(b.cwnd_gain))),
];

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Sockets.
    pub sockets: usize,
    /// Samples of all sockets together.
    pub samples: usize,
}

/// Every socket that was seen, by its cookie.
#[derive(Debug)]
pub struct Kept {
    budget: Budget,
    sockets: HashMap<u64, Socket>,
    samples: usize,
    /// Of the sockets, those that ended.
    ended: usize,
    /// One of so many samples is kept.
    pub stride: u64,
    /// Sockets that ended and were dropped to make room.
    pub dropped: u64,
    /// Times that a socket found no room.
    pub refused: u64,
}

impl Kept {
    /// Nothing yet.
    pub fn new(budget: Budget) -> Kept {
        Kept { budget, sockets: HashMap::new(), samples: 0, ended: 0, stride: 1, dropped: 0, refused: 0 }
    }

    /// Takes in a sample of a socket; `is_first`: of the first list.
    pub fn sample(&mut self, t: u64, found: &Found<'_>, is_first: bool) {
        let (cookie, details) = (found.cookie(), found.details());
        if details.info.is_missing() {
            return;
        }
        let sample = Sample { t, info: details.info, memory: details.memory(), bbr: details.bbr(), queues: found.queues() };
        if let Some(socket) = self.sockets.get_mut(&cookie) {
            if socket.control != details.control {
                socket.control = details.control.to_owned();
            }
            let before = socket.samples.len();
            socket.push(sample);
            self.samples += socket.samples.len() - before;
        } else if self.has_room() {
            let (local, remote) = found.ends();
            let new = Socket {
                local,
                remote,
                control: details.control.to_owned(),
                uid: found.uid(),
                ended: None,
                was_there: is_first || self.refused > 0,
                samples: vec![sample],
                id: found.id(),
                active: if is_first { 0 } else { t },
                same: None,
            };
            self.sockets.insert(cookie, new);
            self.samples += 1;
        }
        if self.samples > self.budget.samples {
            self.halve();
        }
    }

    /// Takes in the last counters of a socket that has ended. One that was never sampled has these alone.
    pub fn ended(&mut self, t: u64, found: &Found<'_>) {
        let cookie = found.cookie();
        if !self.sockets.contains_key(&cookie) {
            self.sample(t, found, false);
        }
        let Some(socket) = self.sockets.get_mut(&cookie) else { return };
        self.ended += usize::from(socket.ended.replace(t).is_none());
        let Some(last) = socket.samples.last().copied() else { return };
        let before = socket.samples.len();
        socket.push(Sample { t, info: found.details().info, queues: found.queues(), ..last });
        self.samples += socket.samples.len() - before;
    }

    /// The sockets on which something happened since `t` and that live, those of the last moments first, at most `most`.
    pub fn active(&self, since: u64, most: usize) -> Vec<Id> {
        let mut active: Vec<(u64, Id)> =
            self.sockets.values().filter(|s| s.ended.is_none() && s.active >= since).map(|s| (s.active, s.id)).collect();
        active.sort_by_key(|(t, _)| std::cmp::Reverse(*t));
        active.truncate(most);
        active.into_iter().map(|(_, id)| id).collect()
    }

    /// Number of sockets that are kept.
    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    /// The sockets that carried data, those that carried most first, and how many carried none.
    pub fn into_active(self) -> (Vec<Socket>, usize) {
        let all = self.sockets.len();
        let mut active: Vec<Socket> = self.sockets.into_values().filter(|s| s.carried() > 0).collect();
        active.iter_mut().for_each(|s| s.samples.extend(s.same.take()));
        active.sort_by_key(|s| (std::cmp::Reverse(s.carried()), s.local, s.remote));
        let idle = all - active.len();
        (active, idle)
    }

    /// Whether another socket may be kept; where there are too many, those that ended and carried least go first.
    fn has_room(&mut self) -> bool {
        if self.sockets.len() < self.budget.sockets {
            return true;
        }
        if self.ended == 0 {
            self.refused += 1; // found without a look at every socket, since a list may have many for which there is no room
            return false;
        }
        let mut least: Vec<(u64, u64)> = self.sockets.iter().filter(|(_, s)| s.ended.is_some()).map(|(c, s)| (s.carried(), *c)).collect();
        least.sort_unstable();
        for (_, cookie) in least.iter().take(least.len().div_ceil(2)) {
            self.samples -= self.sockets.remove(cookie).map_or(0, |s| s.samples.len());
            self.dropped += 1;
            self.ended -= 1;
        }
        let has_room = self.sockets.len() < self.budget.sockets;
        self.refused += u64::from(!has_room);
        has_room
    }

    fn halve(&mut self) {
        self.stride *= 2;
        self.sockets.values_mut().for_each(Socket::halve);
        self.samples = self.sockets.values().map(|s| s.samples.len()).sum();
    }
}
