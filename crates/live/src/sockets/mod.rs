//! The mode `sockets`: TCP sockets of the namespace in which this program runs, sampled while others use them.
//!
//! ```text
//! sock_diag ─ a list of all ───→ filter ─→ kept (bounded) ─→ a line for each socket that carried data
//!           ├ those that are active, in between ────┤
//!           └ sockets that end, with their last counters ─┘
//! ```
//!
//! | Question | File |
//! |---|---|
//! | Which sockets? | [`filter`] |
//! | What is kept of them? | [`kept`] |
//! | What does the kernel say? | [`tcpscape_testbed::sock_diag`] |
//!
//! Needs no privilege, makes nothing and changes nothing. The time between two lists grows with their cost, so that this program takes at most
//! about a twentieth of a processor; where there are so many sockets that lists are rare, those that are active are asked for in between.

pub mod filter;
pub mod kept;

use crate::channel::Channel;
use base64::prelude::{Engine, BASE64_STANDARD};
use filter::Condition;
use kept::{Budget, Kept, Socket};
use serde::Deserialize;
use serde_json::{json, Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tcpscape_testbed::sock_diag::{Endings, Found, Sockets};
use tcpscape_testbed::sys;

/// The interval where listing costs little, ns.
const INTERVAL: u64 = 20_000_000;
/// A list may take one of so many parts of the time.
const SHARE: u64 = 20;
/// Most sockets that are asked for between two lists.
const MOST_ACTIVE: usize = 256;
/// How long a socket counts as active after something happened on it, ns.
const ACTIVE: u64 = 2_000_000_000;
/// How long the program sleeps at most before it looks whether it shall stop, ns.
const LOOK: u64 = 100_000_000;
/// How often it says how far it is, ns.
const SAY: u64 = 500_000_000;
/// Most sockets that are kept, and samples of all together: about 70 MB.
const BUDGET: Budget = Budget { sockets: 16_384, samples: 200_000 };

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// How long, ns.
    duration_ns: u64,
    /// How often, ns; 0: as often as costs little.
    #[serde(default)]
    interval_ns: u64,
    /// Which states, bit 1 << state.
    states: u32,
    /// Which sockets.
    condition: Condition,
    /// The most that are told in the end.
    most: usize,
}

/// Samples until the time is over or a line comes or the input ends, then tells of each socket that carried data.
pub fn run(job: Value, channel: &Channel) -> Result<Value, String> {
    let job: Job = serde_json::from_value(job).map_err(|e| format!("job: {e}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_line(channel, &stop)?;
    let mut watch = Watch::open(&job)?;
    watch.until(job.duration_ns, &stop, channel)?;
    Ok(watch.tell(job.most, channel))
}

/// Any line, and the end of the input, ask to stop.
fn stop_on_line(channel: &Channel, stop: &Arc<AtomicBool>) -> Result<(), String> {
    let (channel, stop) = (channel.clone(), stop.clone());
    let wait = move || {
        let _ = channel.read();
        stop.store(true, Ordering::Release);
    };
    std::thread::Builder::new().name("requests".into()).spawn(wait).map(drop).map_err(|e| format!("sockets: no thread can be started: {e}"))
}

/// The sampling.
struct Watch<'a> {
    job: &'a Job,
    sockets: Sockets,
    endings: Option<Endings>,
    kept: Kept,
    zero: u64,
    samplings: Pace,
    lists: Pace,
    /// Lists during which sockets came or went, so that some may be missing in them.
    torn: u64,
    /// Whether all endings were heard.
    heard_all: bool,
    /// Sockets in the last list that the filter lets through.
    matching: usize,
}

/// Something that happens again and again, as often as its cost allows.
#[derive(Debug, Default)]
struct Pace {
    count: u64,
    next: u64,
    last: u64,
    /// Times between two, ns.
    gaps: Vec<u64>,
    /// Processor time of one, ns, smoothed.
    cost: u64,
}

impl Pace {
    /// It happened at `t` and took so much of the processor; the next time is at least `asked` later.
    fn happened(&mut self, t: u64, cost: u64, asked: u64) {
        self.cost = if self.count == 0 { cost } else { (self.cost + cost) / 2 };
        if self.count > 0 {
            self.gaps.push(t - self.last);
        }
        self.count += 1;
        self.last = t;
        let interval = asked.max(self.cost * SHARE);
        self.next = (self.next + interval).max(t + interval / 2);
    }

    /// A quantile of the times between two, s; None where there were not two.
    fn gap(&mut self, percent: usize) -> Option<f64> {
        self.gaps.sort_unstable();
        self.gaps.get((self.gaps.len() * percent / 100).min(self.gaps.len().saturating_sub(1))).map(|g| *g as f64 / 1e9)
    }
}

/// Processor time of this thread so far, ns; the clock's time where the kernel does not tell.
fn spent() -> u64 {
    sys::cpu_time().map_or_else(sys::now, |(ran, _)| ran)
}

impl<'a> Watch<'a> {
    fn open(job: &'a Job) -> Result<Watch<'a>, String> {
        let sockets = Sockets::open().map_err(|e| format!("sockets: the kernel does not list sockets ({e}); load its module tcp_diag"))?;
        let endings = Endings::open().ok();
        let heard_all = endings.is_some();
        let (samplings, lists) = (Pace::default(), Pace::default());
        Ok(Watch { job, sockets, endings, kept: Kept::new(BUDGET), zero: sys::now(), samplings, lists, torn: 0, heard_all, matching: 0 })
    }

    /// Samples until `end`, ns.
    fn until(&mut self, end: u64, stop: &AtomicBool, channel: &Channel) -> Result<(), String> {
        let asked = if self.job.interval_ns > 0 { self.job.interval_ns } else { INTERVAL };
        let mut say = SAY;
        loop {
            let t = sys::now() - self.zero;
            let is_list = t >= self.lists.next || t >= end;
            if is_list || t >= self.samplings.next {
                let before = spent();
                if is_list {
                    self.list(t)?;
                } else {
                    self.ask(t)?;
                }
                self.take_endings(t);
                let cost = spent() - before;
                self.samplings.happened(t, if is_list { self.samplings.cost } else { cost }, asked);
                if is_list {
                    self.lists.happened(t, cost, asked);
                }
            }
            if t >= say {
                say = t + SAY;
                channel.send(&json!({ "event": "seen", "t_s": t as f64 / 1e9, "sockets": self.matching }));
            }
            if t >= end || stop.load(Ordering::Acquire) {
                return Ok(());
            }
            sys::nap_until(self.zero + self.samplings.next.min(self.lists.next).min(end).min(t + LOOK));
        }
    }

    /// Takes in every socket.
    fn list(&mut self, t: u64) -> Result<(), String> {
        let keep = self.samplings.count % self.kept.stride == 0 || self.lists.count == 0;
        let (job, zero, is_first) = (self.job, self.zero, self.lists.count == 0);
        let (kept, matching) = (&mut self.kept, &mut self.matching);
        *matching = 0;
        let take = |f: &Found<'_>| {
            let (local, remote) = f.ends();
            if job.condition.holds(local, remote) {
                *matching += 1;
                if keep {
                    kept.sample((sys::now() - zero).max(t), f, is_first);
                }
            }
        };
        let whole = self.sockets.list(job.states, take).map_err(|e| format!("sockets: the kernel does not list TCP sockets: {e}"))?;
        self.torn += u64::from(!whole);
        Ok(())
    }

    /// Takes in those that are active.
    fn ask(&mut self, t: u64) -> Result<(), String> {
        if self.samplings.count % self.kept.stride != 0 {
            return Ok(());
        }
        let active = self.kept.active(t.saturating_sub(ACTIVE.max(2 * self.lists.cost * SHARE)), MOST_ACTIVE);
        let (kept, zero) = (&mut self.kept, self.zero);
        let take = |f: &Found<'_>| kept.sample((sys::now() - zero).max(t), f, false);
        self.sockets.ask(&active, take).map_err(|e| format!("sockets: the kernel does not tell of a TCP socket: {e}"))
    }

    fn take_endings(&mut self, t: u64) {
        let (job, kept) = (self.job, &mut self.kept);
        let Some(endings) = &mut self.endings else { return };
        let heard = endings.take(|f| {
            let (local, remote) = f.ends();
            if job.condition.holds(local, remote) {
                kept.ended(t, f);
            }
        });
        self.heard_all &= heard.unwrap_or(false);
    }

    /// Sends the sockets that carried data; the result says what there was besides.
    fn tell(mut self, most: usize, channel: &Channel) -> Value {
        let seconds = (sys::now() - self.zero) as f64 / 1e9;
        let (seen, dropped, refused, stride) = (self.kept.count(), self.kept.dropped, self.kept.refused, self.kept.stride);
        let (active, idle) = self.kept.into_active();
        for socket in active.iter().take(most) {
            channel.send(&line(socket));
        }
        json!({
            "seconds": seconds, "lists": self.lists.count, "samplings": self.samplings.count, "torn": self.torn, "stride": stride,
            "interval_s": self.samplings.gap(50), "interval_p99_s": self.samplings.gap(99), "list_interval_s": self.lists.gap(50), "seen": seen,
            "idle": idle, "carrying": active.len(), "untold": active.len().saturating_sub(most), "dropped": dropped, "refused": refused,
            "endings_heard": self.heard_all,
        })
    }
}

/// A socket as a line: columns are doubles, little endian, in base64 (RFC 4648).
fn line(socket: &Socket) -> Value {
    let bytes = |values: Vec<f64>| BASE64_STANDARD.encode(values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
    let columns: Map<String, Value> = socket.columns().into_iter().map(|(name, v)| (name.to_owned(), json!(bytes(v)))).collect();
    let end = |a: std::net::SocketAddr| json!([a.ip(), a.port()]);
    json!({
        "event": "socket", "local": end(socket.local), "remote": end(socket.remote), "control": socket.control, "uid": socket.uid,
        "ended_s": socket.ended.map(|t| t as f64 / 1e9), "was_there": socket.was_there, "columns": columns,
    })
}

#[cfg(test)]
mod tests;
