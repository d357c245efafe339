//! A plan's schedules as a list of single changes with their times.
//!
//! What it is: steps, ramps, periodic changes and rate traces unrolled up to the plan's end, in the order in which
//! `tcpscape_path` makes them; each is what `tc qdisc change` would say. A queue's parameters are kept as they would be by
//! then, so a change carries all of them.
//! How it differs from the model: a bucket is full after a change of its rate, as `tc qdisc change` leaves it, also within ramps
//! and rate traces.

use super::gate::Layer;
use super::layout::Layout;
use super::TestbedError;
use tcpscape_base::Rate;
use tcpscape_path::queue::{BfifoSpec, PfifoHeadDropSpec, PfifoSpec};
use tcpscape_path::schedule::Runner;
use tcpscape_path::{Loss, Patch, Prob, QdiscSpec};
use tcpscape_plan::{Plan, Topology};

/// A change at one time.
#[derive(Clone, Debug)]
pub struct Change {
    /// When, ns since the trial's start.
    pub at_ns: u64,
    /// Number of the stage in the layout.
    pub(super) stage: usize,
    /// What the kernel is told.
    pub(super) acts: Vec<Act>,
}

/// What the kernel is told of one queue.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// New parameters for the queue at this depth.
    Queue(usize, QdiscSpec),
    /// Another limit for the gate at this depth, B.
    Limit(usize, u64),
    /// The gate at this depth closes, or opens.
    Close(usize, bool),
}

/// Most changes of one trial; each takes memory and a system call.
const MOST: usize = 1_000_000;

/// All changes of a plan, in order of time.
pub fn expand(plan: &Plan, layout: &Layout) -> Result<Vec<Change>, TestbedError> {
    let mut all = Vec::new();
    let mut next = 0;
    for path in Topology::of(plan).ways().map(|way| way.path) {
        let first = next;
        next += path.stages.len();
        let stages = layout.stages[first..next].iter();
        let mut queues: Vec<State> = stages.map(|s| State { layers: s.layers.clone(), base: s.layers.clone(), closed: false }).collect();
        let mut rules: Vec<Runner> = path.schedule.iter().map(Runner::new).collect();
        while let Some(t) = rules.iter().map(|r| r.next).min().filter(|t| t.0 <= plan.duration_ns) {
            for r in rules.iter_mut().filter(|r| r.next == t) {
                let state = &mut queues[r.change.stage];
                let patch = r.act(&state.current(r.change.depth));
                let acts = state.apply(r.change.depth, &patch);
                if !acts.is_empty() {
                    all.push(Change { at_ns: t.0, stage: first + r.change.stage, acts });
                }
            }
            if all.len() > MOST {
                return Err(TestbedError::Unsupported(format!("changes: more than {MOST} in one trial; take longer steps")));
            }
        }
    }
    all.sort_by_key(|c| c.at_ns);
    Ok(all)
}

/// A stage while its schedule is unrolled.
struct State {
    layers: Vec<Layer>,
    /// As it was at the begin.
    base: Vec<Layer>,
    closed: bool,
}

impl State {
    /// The values that a patch of the queue at `depth` could replace.
    fn current(&self, depth: usize) -> Patch {
        let mut values = Patch { outage: Some(self.closed), ..Patch::default() };
        match &self.layers[depth] {
            Layer::Queue(QdiscSpec::Netem(s)) => {
                (values.delay, values.jitter, values.limit) = (Some(s.delay), Some(s.jitter), Some(u64::from(s.limit)));
                values.rate = Some(s.rate.unwrap_or(Rate(0)));
                match s.loss {
                    Loss::Random { p, .. } => values.loss = Some(p),
                    _ => values.restore_loss = true,
                }
            }
            Layer::Queue(QdiscSpec::Tbf(s)) => (values.rate, values.burst, values.limit) = (Some(s.rate), Some(s.burst), Some(s.limit)),
            Layer::Queue(QdiscSpec::Htb(s)) => {
                (values.rate, values.burst) = (Some(s.rate), s.burst);
                values.limit = self.layers.get(depth + 1).and_then(limit_of);
            }
            Layer::Queue(QdiscSpec::Cake(s)) => values.rate = s.bandwidth,
            layer => values.limit = limit_of(layer),
        }
        values
    }

    /// Applies a patch and says what the kernel must be told.
    fn apply(&mut self, depth: usize, p: &Patch) -> Vec<Act> {
        let mut acts = Vec::new();
        let before = self.layers.clone();
        match &mut self.layers[depth] {
            Layer::Queue(QdiscSpec::Netem(s)) => {
                s.delay = p.delay.unwrap_or(s.delay);
                s.jitter = p.jitter.unwrap_or(s.jitter);
                s.limit = p.limit.map_or(s.limit, |l| u32::try_from(l).unwrap_or(u32::MAX));
                // The kernel keeps a rate of which it hears nothing; 0 is none.
                s.rate = p.rate.or(s.rate);
                if let Some(p) = p.loss {
                    let correlation = if let Loss::Random { correlation, .. } = s.loss { correlation } else { Prob::ZERO };
                    s.loss = Loss::Random { p, correlation };
                }
                if let (true, Layer::Queue(QdiscSpec::Netem(first))) = (p.restore_loss, &self.base[depth]) {
                    s.loss = first.loss;
                }
            }
            Layer::Queue(QdiscSpec::Tbf(s)) => {
                (s.rate, s.burst, s.limit) = (p.rate.unwrap_or(s.rate), p.burst.unwrap_or(s.burst), p.limit.unwrap_or(s.limit));
            }
            Layer::Queue(QdiscSpec::Htb(s)) => {
                if let Some(rate) = p.rate {
                    // A single class: rate and ceiling move together unless the ceiling was lower.
                    s.ceil = s.ceil.filter(|&c| c != s.rate).map(|c| c.min(rate));
                    s.rate = rate;
                }
                s.burst = p.burst.or(s.burst);
            }
            Layer::Queue(QdiscSpec::Cake(s)) => s.bandwidth = p.rate.or(s.bandwidth),
            layer => set_limit(layer, p.limit),
        }
        self.pass_limit_on(depth, p.limit);
        for (depth, (new, _)) in self.layers.iter().zip(&before).enumerate().filter(|(_, (new, old))| new != old) {
            acts.push(match new {
                Layer::Queue(q) => Act::Queue(depth, q.clone()),
                Layer::Gate { limit } => Act::Limit(depth, *limit),
            });
        }
        if let Some(closed) = p.outage.filter(|&o| o != self.closed) {
            self.closed = closed;
            acts.push(Act::Close(self.layers.len() - 1, closed));
        }
        acts
    }

    /// tbf and htb without a child of the scenario's own: their FIFO's limit is theirs.
    fn pass_limit_on(&mut self, depth: usize, limit: Option<u64>) {
        let Some(below) = self.layers.get_mut(depth + 1) else { return };
        match &self.base[depth] {
            Layer::Queue(QdiscSpec::Tbf(_)) if matches!(below, Layer::Gate { .. } | Layer::Queue(QdiscSpec::Bfifo(_))) => {
                set_limit(below, limit);
            }
            Layer::Queue(QdiscSpec::Htb(_)) => set_limit(below, limit),
            _ => {}
        }
    }
}

/// Any of the FIFOs; binds its limit.
macro_rules! fifo {
    ($limit:ident) => {
        QdiscSpec::Pfifo(PfifoSpec { limit: $limit })
            | QdiscSpec::Bfifo(BfifoSpec { limit: $limit })
            | QdiscSpec::PfifoHeadDrop(PfifoHeadDropSpec { limit: $limit })
    };
}

fn limit_of(layer: &Layer) -> Option<u64> {
    match layer {
        Layer::Queue(fifo!(limit)) => Some(*limit),
        Layer::Queue(QdiscSpec::Sfq(s)) => s.limit.map(u64::from),
        Layer::Queue(QdiscSpec::Fq(s)) => s.limit.map(u64::from),
        Layer::Queue(QdiscSpec::Netem(s)) => Some(u64::from(s.limit)),
        Layer::Queue(_) => None,
        Layer::Gate { limit } => Some(*limit),
    }
}

fn set_limit(layer: &mut Layer, limit: Option<u64>) {
    let Some(limit) = limit else { return };
    match layer {
        Layer::Queue(fifo!(old)) => *old = limit,
        Layer::Queue(QdiscSpec::Fq(s)) => s.limit = Some(u32::try_from(limit).unwrap_or(u32::MAX)),
        Layer::Queue(QdiscSpec::Sfq(s)) => s.limit = Some(u32::try_from(limit).unwrap_or(u32::MAX)),
        Layer::Queue(QdiscSpec::Netem(s)) => s.limit = u32::try_from(limit).unwrap_or(u32::MAX),
        Layer::Queue(_) => {}
        Layer::Gate { limit: old } => *old = limit,
    }
}
