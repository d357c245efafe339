//! The mode `sockets`: TCP sockets of the namespace in which this program runs, sampled while others use them.
//!
//! ```text
//! sock_diag ─ list every interval ─→ filter ─→ kept (bounded) ─→ a line for each socket that carried data
//!           └ sockets that end, with their last counters ─┘
//! ```
//!
//! | Question | File |
//! |---|---|
//! | Which sockets? | [`filter`] |
//! | What is kept of them? | [`kept`] |
//! | What does the kernel say? | [`tcpscape_testbed::sock_diag`] |
//!
//! Needs no privilege, makes nothing and changes nothing. The interval grows with the cost of a list, so that listing takes at most one
//! twentieth of a processor.

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
    ticks: u64,
    /// Times between two lists, ns.
    gaps: Vec<u32>,
    /// Cost of a list, ns, smoothed.
    cost: u64,
    /// Lists during which sockets came or went, so that some may be missing in them.
    torn: u64,
    /// Whether all endings were heard.
    heard_all: bool,
    /// Sockets in the last list that the filter lets through.
    matching: usize,
}

impl<'a> Watch<'a> {
    fn open(job: &'a Job) -> Result<Watch<'a>, String> {
        let sockets = Sockets::open().map_err(|e| format!("sockets: the kernel does not list sockets ({e}); load its module tcp_diag"))?;
        let endings = Endings::open().ok();
        let heard_all = endings.is_some();
        let kept = Kept::new(BUDGET);
        Ok(Watch { job, sockets, endings, kept, zero: sys::now(), ticks: 0, gaps: Vec::new(), cost: 0, torn: 0, heard_all, matching: 0 })
    }

    /// Samples until `end`, ns.
    fn until(&mut self, end: u64, stop: &AtomicBool, channel: &Channel) -> Result<(), String> {
        let (mut next, mut say, mut before) = (0, SAY, None);
        loop {
            let t = sys::now() - self.zero;
            if t >= next || t >= end {
                self.list(t)?;
                self.gaps.extend(before.map(|b| u32::try_from(t - b).unwrap_or(u32::MAX)));
                before = Some(t);
                next = (next + self.interval()).max(t + self.interval() / 2);
            }
            if t >= say {
                say = t + SAY;
                channel.send(&json!({ "event": "seen", "t_s": t as f64 / 1e9, "sockets": self.matching }));
            }
            if t >= end || stop.load(Ordering::Acquire) {
                return Ok(());
            }
            sys::nap_until(self.zero + next.min(end).min(t + LOOK));
        }
    }

    /// Time to the next list, ns.
    fn interval(&self) -> u64 {
        let asked = if self.job.interval_ns > 0 { self.job.interval_ns } else { INTERVAL };
        asked.max(self.cost * SHARE)
    }

    fn list(&mut self, t: u64) -> Result<(), String> {
        let keep = self.ticks % self.kept.stride == 0;
        let (job, zero, is_first) = (self.job, self.zero, self.ticks == 0);
        let (kept, matching) = (&mut self.kept, &mut self.matching);
        *matching = 0;
        let take = |f: &Found<'_>| {
            let (local, remote) = f.ends();
            if job.condition.holds(local, remote) {
                *matching += 1;
                if keep {
                    kept.sample(sys::now() - zero, f, is_first);
                }
            }
        };
        let whole = self.sockets.list(job.states, take).map_err(|e| format!("sockets: the kernel does not list TCP sockets: {e}"))?;
        self.torn += u64::from(!whole);
        self.ticks += 1;
        self.take_endings(t);
        let cost = sys::now() - zero - t;
        self.cost = if is_first { cost } else { (7 * self.cost + cost) / 8 };
        Ok(())
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
    fn tell(self, most: usize, channel: &Channel) -> Value {
        let seconds = (sys::now() - self.zero) as f64 / 1e9;
        let (seen, dropped, refused, stride) = (self.kept.count(), self.kept.dropped, self.kept.refused, self.kept.stride);
        let (active, idle) = self.kept.into_active();
        for socket in active.iter().take(most) {
            channel.send(&line(socket));
        }
        let mut gaps = self.gaps;
        gaps.sort_unstable();
        let gap = |share: usize| gaps.get((gaps.len() * share / 100).min(gaps.len().saturating_sub(1))).map(|g| f64::from(*g) / 1e9);
        json!({
            "seconds": seconds, "lists": self.ticks, "torn": self.torn, "stride": stride, "interval_s": gap(50), "interval_p99_s": gap(99),
            "seen": seen, "idle": idle, "carrying": active.len(), "untold": active.len().saturating_sub(most), "dropped": dropped,
            "refused": refused, "endings_heard": self.heard_all,
        })
    }
}

/// A socket as a line: columns are doubles, little endian, in base64 (RFC 4648).
fn line(socket: &Socket) -> Value {
    let bytes = |values: Vec<f64>| BASE64_STANDARD.encode(values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
    let columns: Map<String, Value> = socket.columns().into_iter().map(|(name, v)| (name.to_owned(), json!(bytes(v)))).collect();
    let end = |a: std::net::SocketAddr| json!([a.ip(), a.port()]);
    json!({
        "event": "socket", "local": end(socket.ends.0), "remote": end(socket.ends.1), "control": socket.control, "uid": socket.uid,
        "ended_s": socket.ended.map(|t| t as f64 / 1e9), "was_there": socket.was_there, "columns": columns,
    })
}

#[cfg(test)]
mod tests;
