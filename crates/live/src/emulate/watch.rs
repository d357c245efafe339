//! The time while the command runs: figures go out, requests come in.

use super::{stuck, Job};
use crate::channel::Channel;
use crate::emulator::{Running, Snapshot};
use crate::link::Totals;
use crate::spaces::Child;
use serde::Deserialize;
use serde_json::{json, Value};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};
use tcpscape_path::{Direction, Patch};

/// How often it is looked whether packets passed; in virtual time nothing else may happen for hours.
const LOOK: Duration = Duration::from_millis(100);
const VIRTUAL_LOOK: Duration = Duration::from_millis(250);
/// How long a command that was asked to end may take for it.
const GRACE: Duration = Duration::from_secs(5);
/// Exit status of a command that ran for as long as it may, as of timeout(1).
const TIMED_OUT: i32 = 124;

/// What happens meanwhile.
enum Event {
    Line(String),
    Ended,
}

/// A request of whoever steers the path.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Request {
    /// Comes back with the answer.
    id: u64,
    change: Vec<ChangeNow>,
    figures: bool,
    end: Option<End>,
}

/// New values for a stage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeNow {
    direction: Direction,
    stage: usize,
    depth: usize,
    set: Patch,
}

/// How the command is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Term,
    Kill,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// The command's exit status.
    pub status: i32,
    /// Whether it ran for as long as it may, and was therefore ended.
    pub is_late: bool,
    /// How long it ran, ns.
    pub elapsed_ns: u64,
    /// Time in which packets left, ns, forward and reverse.
    pub active_ns: [u64; 2],
    /// Requests that changed the path.
    pub changes: u64,
    /// What programs in a guest waited for when their time was over.
    pub stuck: Option<String>,
}

/// Watches one command.
pub struct Watch<'a> {
    job: &'a Job,
    channel: &'a Channel,
    running: &'a Running,
    began: Instant,
    active: Active,
    changes: u64,
    is_late: bool,
    stuck: Option<String>,
    /// When the command is ended that was asked to.
    last: Option<Instant>,
}

impl<'a> Watch<'a> {
    /// From now on.
    pub fn new(job: &'a Job, channel: &'a Channel, running: &'a Running) -> Watch<'a> {
        Watch {
            job,
            channel,
            running,
            began: Instant::now(),
            active: Active::default(),
            changes: 0,
            is_late: false,
            stuck: None,
            last: None,
        }
    }

    /// Waits for the end of the command, which this thread started.
    pub fn until_the_end(mut self, mut command: Child) -> Result<Ended, String> {
        let fail = |e: std::io::Error| format!("emulate: the command cannot be watched: {e}");
        let (sender, events) = channel();
        self.listen(&sender)?;
        let ended = sender.clone();
        command.when_ended(move || drop(ended.send(Event::Ended))).map_err(fail)?;
        self.channel.send(&json!({ "event": "started" }));
        let mut shown = Instant::now();
        loop {
            match self.next(&events) {
                Some(Event::Ended) => {
                    let status = command.wait().map_err(fail)?;
                    self.look();
                    let status = if self.is_late { TIMED_OUT } else { status };
                    let elapsed_ns = self.began.elapsed().as_nanos() as u64;
                    let (is_late, active_ns, stuck) = (self.is_late, self.active.ns, self.stuck);
                    return Ok(Ended { status, is_late, elapsed_ns, active_ns, changes: self.changes, stuck });
                }
                Some(Event::Line(line)) => self.answer(&line, &mut command),
                None => {}
            }
            self.keep_time(&mut command);
            self.look();
            if self.job.live_ns.is_some_and(|every| shown.elapsed() >= Duration::from_nanos(every)) {
                shown = Instant::now();
                if let Some(snapshot) = self.running.snapshot() {
                    self.channel.send(&figures("live", &snapshot));
                }
            }
        }
    }

    /// Control messages become events.
    fn listen(&self, events: &Sender<Event>) -> Result<(), String> {
        let (channel, events) = (self.channel.clone(), events.clone());
        let read = move || {
            while let Ok(Some(lines)) = channel.read() {
                if lines.into_iter().any(|line| events.send(Event::Line(line)).is_err()) {
                    return;
                }
            }
        };
        thread::Builder::new().name("requests".into()).spawn(read).map(drop).map_err(|e| format!("emulate: a thread: {e}"))
    }

    fn next(&self, events: &Receiver<Event>) -> Option<Event> {
        match events.recv_timeout(if self.job.is_virtual { VIRTUAL_LOOK } else { LOOK }) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("this thread has a sender of them, too"),
        }
    }

    /// Ends a command whose time is over.
    fn keep_time(&mut self, command: &mut Child) {
        let is_over = self.job.duration_ns.is_some_and(|most| self.began.elapsed() >= Duration::from_nanos(most));
        if is_over && !self.is_late {
            self.is_late = true;
            self.stuck = self.job.is_virtual.then(stuck::programs).flatten();
            self.end(End::Term, command);
        }
        if self.last.is_some_and(|last| Instant::now() >= last) {
            self.end(End::Kill, command);
        }
    }

    fn end(&mut self, how: End, command: &mut Child) {
        self.last = (how == End::Term).then(|| Instant::now() + GRACE);
        match how {
            End::Term => command.ask_to_end(),
            End::Kill => command.kill(),
        }
    }

    /// Counts active time; asks for no more than that takes, since it does so for as long as the command runs.
    fn look(&mut self) {
        if let Some((now, totals)) = self.running.with(|now, link| (now.0, Direction::BOTH.map(|d| link.totals(d)))) {
            self.active.add(now, &totals);
        }
    }

    fn answer(&mut self, line: &str, command: &mut Child) {
        let request: Request = match serde_json::from_str(line) {
            Ok(request) => request,
            Err(e) => return self.channel.send(&json!({ "event": "answer", "id": 0, "refused": format!("control: {e}; report it") })),
        };
        let id = request.id;
        let mut said = match self.change(request.change) {
            Ok(0) => json!({}),
            Ok(at) => json!({ "at_ns": at }),
            Err(why) => json!({ "refused": why }),
        };
        if request.figures && said.get("refused").is_none() {
            if let Some(snapshot) = self.running.snapshot() {
                said = figures("answer", &snapshot);
            }
        }
        if let Some(how) = request.end {
            self.end(how, command);
        }
        said["event"] = Value::from("answer");
        said["id"] = Value::from(id);
        self.channel.send(&said);
    }

    /// Changes stages now; the emulator's time of it.
    fn change(&mut self, changes: Vec<ChangeNow>) -> Result<u64, String> {
        if changes.is_empty() {
            return Ok(0);
        }
        let done = self.running.with(move |now, link| {
            let each = |c: ChangeNow| link.change(now, c.direction, c.stage, c.depth, &c.set);
            changes.into_iter().try_for_each(each).map(|()| now.0)
        });
        let at = done.ok_or("control: the path has ended; ask while it runs")?.map_err(|e| format!("change: {e}"))?;
        self.changes += 1;
        Ok(at)
    }
}

/// The accounts of a moment.
fn figures(event: &str, snapshot: &Snapshot) -> Value {
    let [forward, reverse] = &snapshot.totals;
    let emulator = &snapshot.emulator;
    json!({
        "event": event, "at_ns": snapshot.at.0, "link": { "forward": forward, "reverse": reverse },
        "lateness_us": { "forward": emulator.forward.lateness, "reverse": emulator.reverse.lateness },
    })
}

/// How long packets left in each direction, in steps between two looks.
#[derive(Debug, Default)]
struct Active {
    ns: [u64; 2],
    at: u64,
    packets: [u64; 2],
}

impl Active {
    fn add(&mut self, now: u64, totals: &[Totals; 2]) {
        for (i, totals) in totals.iter().enumerate() {
            if totals.packets_out > self.packets[i] {
                self.packets[i] = totals.packets_out;
                let first = totals.departures.map_or(0, |d| d.0 .0);
                // Before the first packet there was nothing; a single one has no time of its own.
                self.ns[i] += now.saturating_sub(self.at.max(first));
            }
        }
        self.at = now;
    }
}
