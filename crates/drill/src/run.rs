//! Carrying a script out in virtual time.
//!
//! Events happen at their times, timers of the model between them. A packet that is to leave must be the next that left, within the tolerance of its
//! time. How it differs from the tool: each event takes 20 µs of virtual time, where the tool's take what the machine needs; nothing is carried out
//! by a shell; what leaves after the last event is not looked at, as there.

use crate::endpoint::Departed;
use crate::host::{Begun, Host, Progress};
use crate::info;
use crate::scope;
use crate::script::{Action, Call, Event, Micros, Script, ScriptError, When};
use crate::settings::{Ignored, Refusal, Settings};
use crate::wire::Packet;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_base::{Kernel, Time};

/// What became of a script.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// All packets and calls were as expected.
    Passed,
    /// Something was not.
    Failed(Failure),
    /// The script asks for something that the model does not have.
    NotApplicable {
        /// Line of it.
        line: usize,
        /// What it is.
        reason: String,
    },
}

/// The first difference.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Line of the script.
    pub line: usize,
    /// What differs, in a few words.
    pub problem: String,
    /// What the script expects.
    pub expected: String,
    /// What was.
    pub actual: String,
}

/// `tcp_info` where a script has statements about it.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Line of the script.
    pub line: usize,
    /// The statements.
    pub code: String,
    /// The fields by name, without `tcpi_`.
    pub info: BTreeMap<&'static str, i64>,
}

/// What a script did.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What became of it, its statements about `tcp_info` left aside.
    pub outcome: Outcome,
    /// What those statements are about, in order, up to the end or the first difference.
    pub snapshots: Vec<Snapshot>,
    /// Settings that were not applied.
    pub ignored: Vec<Ignored>,
}

/// Why a script ends early.
enum Stop {
    Failed(Failure),
    Lacking(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Lacking(refusal)
    }
}

/// Runs a script's text on a host with this kernel.
pub fn run(text: &str, kernel: Kernel) -> Result<Report, ScriptError> {
    let script = crate::parse(text)?;
    let settings = Settings::new(kernel, &script)?;
    let lacking = scope::check(&script)?;
    let mut run = Run::new(settings);
    let stop = match lacking {
        Some(refusal) => Err(Stop::Lacking(refusal)),
        None => run.play(&script),
    };
    let outcome = match stop {
        Ok(()) => Outcome::Passed,
        Err(Stop::Failed(failure)) => Outcome::Failed(failure),
        Err(Stop::Lacking(Refusal { line, reason })) => Outcome::NotApplicable { line, reason },
    };
    Ok(Report { outcome, snapshots: run.snapshots, ignored: run.host.settings.ignored })
}

/// A call that blocks, or may.
struct Pending {
    line: usize,
    begun: Begun,
    /// When it is to return; none for at once.
    ends: Option<Time>,
}

struct Run {
    host: Host,
    now: Time,
    /// Script's time of the event before.
    last: Time,
    pending: Option<Pending>,
    snapshots: Vec<Snapshot>,
    busy_ns: u64,
    /// The first timestamps that left: in the script, and really.
    first_stamps: Option<(u32, u32)>,
}

impl Run {
    fn new(settings: Settings) -> Run {
        Run { host: Host::new(settings), now: BEGIN, last: BEGIN, pending: None, snapshots: Vec::new(), busy_ns: 0, first_stamps: None }
    }

    fn play(&mut self, script: &Script) -> Result<(), Stop> {
        for event in &script.events {
            self.event(event)?;
        }
        self.finish_pending()
    }

    fn event(&mut self, e: &Event) -> Result<(), Stop> {
        let (from, to) = self.window(e.when);
        if let Action::Outbound(expected) = &e.action {
            let left = self.departure(e, expected, from, to)?;
            self.last = if e.when == When::Any || to > from { left.max(self.last) } else { from };
            return self.pass_time();
        }
        self.advance(from)?;
        self.last = from;
        match &e.action {
            Action::Inbound(p) => self.inbound(e.line, p)?,
            Action::Call(call) => {
                let ends = e.ends.map(|us| add(self.base(e.when), us));
                self.call(e.line, call, ends)?;
            }
            Action::Shell(text) => self.host.settings.shell(e.line, text)?,
            Action::Code(code) => {
                let info = info::fields(&mut self.host, self.now, self.busy_ns);
                self.snapshots.push(Snapshot { line: e.line, code: code.clone(), info });
            }
            Action::Outbound(_) | Action::Foreign(_) => {}
        }
        self.pass_time()
    }

    fn base(&self, when: When) -> Time {
        match when {
            When::At(..) => BEGIN,
            When::After(us, _) => Time(self.last.0.saturating_sub(us as u64 * 1_000)),
            When::Any | When::Untimed => self.last,
        }
    }

    /// When an event may happen, on the virtual clock.
    fn window(&self, when: When) -> (Time, Time) {
        let (base, from, to) = match when {
            When::At(from, to) => (BEGIN, from, to),
            When::After(from, to) => (self.last, from, to),
            When::Any | When::Untimed => return (self.last, self.last),
        };
        (add(base, from), add(base, to.unwrap_or(from)))
    }

    // ---- time ---------------------------------------------------------------------------------------------------------

    /// Time passes until `to`; timers come.
    fn advance(&mut self, to: Time) -> Result<(), Stop> {
        while self.tick(to)? {}
        if to > self.now {
            self.reach(to);
        }
        Ok(())
    }
    /// The next timer comes, if it is due by `to`.
    fn tick(&mut self, to: Time) -> Result<bool, Stop> {
        let waiting = self.host.connection.as_ref().and_then(|c| c.out.front()).map(|departed| departed.at).filter(|&at| at > self.now);
        let next = self.host.next_event().into_iter().chain(waiting).min();
        let Some(due) = next.filter(|&t| t <= to) else { return Ok(false) };
        self.reach(due.max(self.now));
        self.host.on_timer(self.now);
        self.continue_pending()?;
        Ok(true)
    }
    fn reach(&mut self, to: Time) {
        let is_busy = self.host.connection.as_ref().is_some_and(|c| !c.sender.idle() && c.sender.established());
        if is_busy {
            self.busy_ns += to.since(self.now).0;
        }
        self.now = to;
    }
    /// An event takes its time.
    fn pass_time(&mut self) -> Result<(), Stop> {
        self.advance(Time(self.now.0 + STEP_NS))
    }

    // ---- packets ------------------------------------------------------------------------------------------------------

    fn inbound(&mut self, line: usize, p: &Packet) -> Result<(), Stop> {
        self.host.on_packet(self.now, p).map_err(|reason| Refusal { line, reason })?;
        self.continue_pending()
    }

    fn next_departed(&mut self) -> Option<Departed> {
        let now = self.now;
        let out = &mut self.host.connection.as_mut()?.out;
        out.front().is_some_and(|departed| departed.at <= now).then(|| out.pop_front()).flatten()
    }

    /// Waits for the packet that is expected next and compares it. Returns when it left.
    fn departure(&mut self, e: &Event, expected: &Packet, from: Time, to: Time) -> Result<Time, Stop> {
        let tolerance = self.tolerance(to);
        let latest = if e.when == When::Any { FOREVER } else { add(to, tolerance) };
        let mut departed = self.await_departed(latest)?.ok_or_else(|| failed(e.line, "no packet left", expected, "nothing".into()))?;
        // A packet of a script may stand for several that leave one behind the other, unless it is strict.
        while !self.host.settings.strict && departed.packet.len > 0 && departed.packet.len < expected.len {
            let end = departed.packet.seq + u64::from(departed.packet.len);
            match self.next_departed() {
                Some(next) if next.packet.seq == end && next.packet.len > 0 => departed.packet.append(&next.packet),
                Some(next) => {
                    self.put_back(next);
                    break;
                }
                None if !self.tick(latest)? => break,
                None => {}
            }
        }
        let actual = &departed.packet;
        if let Some(what) = expected.difference(actual) {
            return Err(failed(e.line, what, expected, shown(expected, actual)));
        }
        let is_early = departed.at < add(from, -tolerance);
        if e.when != When::Any && (is_early || departed.at > latest) {
            let off = departed.at.0 as i64 / 1_000 - (if is_early { from } else { to }).0 as i64 / 1_000;
            let problem = format!("time, {} ms {}", millis(off.abs()), if is_early { "early" } else { "late" });
            return Err(failed(e.line, &problem, expected, shown(expected, actual)));
        }
        self.compare_timestamps(e.line, expected, actual)?;
        Ok(departed.at)
    }

    /// How far a packet's time may be off `expected`: the tolerance of the script, or its share of the time since the event before, as in the tool.
    fn tolerance(&self, expected: Time) -> Micros {
        let settings = &self.host.settings;
        let since = (expected.0.saturating_sub(self.last.0) / 1_000) as Micros;
        settings.tolerance.max((since as f64 * settings.tolerance_share) as Micros)
    }

    /// The next packet that leaves up to `latest`.
    fn await_departed(&mut self, latest: Time) -> Result<Option<Departed>, Stop> {
        loop {
            if let Some(departed) = self.next_departed() {
                return Ok(Some(departed));
            }
            if !self.tick(latest)? {
                return Ok(None);
            }
        }
    }
    fn put_back(&mut self, departed: Departed) {
        if let Some(c) = &mut self.host.connection {
            c.out.push_front(departed);
        }
    }

    /// Timestamps of a script stand for those that left; where their tick is told, they are checked.
    fn compare_timestamps(&mut self, line: usize, expected: &Packet, actual: &Packet) -> Result<(), Stop> {
        let (Some((script, _)), Some((live, _))) = (expected.timestamps(), actual.timestamps()) else { return Ok(()) };
        let (tick, tolerance) = (self.host.settings.timestamp_tick, self.host.settings.tolerance);
        let first = *self.first_stamps.get_or_insert((script, live));
        if tick > 0 {
            let (asked, came) =
                (i64::from(script.wrapping_sub(first.0) as i32) * tick, i64::from(live.wrapping_sub(first.1) as i32) * 1_000);
            if (asked - came).abs() > tolerance + 1_000 {
                return Err(failed(line, "timestamp", expected, shown(expected, actual)));
            }
        }
        if let Some(c) = &mut self.host.connection {
            c.learn_timestamp(script, live);
        }
        Ok(())
    }

    // ---- calls --------------------------------------------------------------------------------------------------------

    fn call(&mut self, line: usize, call: &Call, ends: Option<Time>) -> Result<(), Stop> {
        self.finish_pending()?;
        self.pending = Some(Pending { line, begun: Begun::new(call.clone()), ends });
        self.continue_pending()?;
        match &self.pending {
            Some(p) if p.ends.is_none() => Err(self.differs(line, call, "the call blocks".into())),
            _ => Ok(()),
        }
    }

    /// The call that blocks goes on.
    fn continue_pending(&mut self) -> Result<(), Stop> {
        let Some(mut p) = self.pending.take() else { return Ok(()) };
        let progress = self.host.step(self.now, &mut p.begun);
        let (line, call) = (p.line, &p.begun.call);
        let (value, errno) = match progress {
            Progress::Blocks => {
                self.pending = Some(p);
                return Ok(());
            }
            Progress::NotApplicable(reason) => return Err(Refusal { line, reason }.into()),
            Progress::Differs(actual) => return Err(self.differs(line, call, actual)),
            Progress::Done(value) => (value, None),
            Progress::Failed(errno) => (-1, Some(errno)),
        };
        let right = call.returns.map_or(true, |r| r == value) && (call.errno.is_none() || value != -1 || call.errno.as_deref() == errno);
        if !right {
            let actual = errno.map_or_else(|| value.to_string(), |e| format!("-1 {e}"));
            return Err(self.differs(line, call, format!("returns {actual}")));
        }
        if let Some(ends) = p.ends {
            let off = (self.now.0 as i64 - ends.0 as i64) / 1_000;
            if off.abs() > self.host.settings.tolerance {
                let actual = format!("returns {} ms {}", millis(off.abs()), if off < 0 { "early" } else { "late" });
                return Err(self.differs(line, call, actual));
            }
        }
        Ok(())
    }

    /// Waits for the call that blocks.
    fn finish_pending(&mut self) -> Result<(), Stop> {
        while let Some(p) = &self.pending {
            let latest = p.ends.map_or(self.now, |t| add(t, self.host.settings.tolerance));
            let (line, call) = (p.line, p.begun.call.clone());
            if !self.tick(latest)? && self.pending.is_some() {
                return Err(self.differs(line, &call, "the call still blocks".into()));
            }
        }
        Ok(())
    }

    fn differs(&self, line: usize, call: &Call, actual: String) -> Stop {
        Stop::Failed(Failure { line, problem: "the call's result".into(), expected: call.text.clone(), actual })
    }
}

fn failed(line: usize, problem: &str, expected: &Packet, actual: String) -> Stop {
    Stop::Failed(Failure { line, problem: problem.into(), expected: format!("> {expected}"), actual })
}

/// A packet that left, without what the script says nothing about.
fn shown(expected: &Packet, actual: &Packet) -> String {
    let mut packet = actual.clone();
    packet.win = packet.win.filter(|_| expected.win.is_some());
    packet.ecn = packet.ecn.filter(|_| expected.ecn.is_some());
    format!("> {packet}")
}

fn add(t: Time, us: Micros) -> Time {
    Time(t.0.saturating_add_signed(us.saturating_mul(1_000)))
}

fn millis(us: i64) -> String {
    format!("{:.1}", us as f64 / 1_000.0)
}

/// When a script begins, on the virtual clock.
const BEGIN: Time = Time(10_000_000_000);
/// No script waits longer for a packet that may come at any time.
const FOREVER: Time = Time(1_000_000_000_000_000);
/// What an event takes, ns.
const STEP_NS: u64 = 20_000;
