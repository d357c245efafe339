//! A path as data: what the grammar produces, what JSON carries, what [`crate::Pipe`] is built from.
//!
//! JSON: times are integer nanoseconds, rates bit/s, sizes bytes, probabilities integers scaled to 2³²−1 as netem has
//! them. A queue says its `kind`; what is left out has tc's default:
//! `{"stages": [{"qdisc": {"kind": "tbf", "rate": 10000000, "burst": 6056, "limit": 62500}, "at": "router"}]}`.

use crate::schedule::ScheduledChange;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use crate::impair::jitter::{JitterSpec, Order};
pub use crate::impair::loss::Loss;
pub use crate::netem::slot::Slot;
pub use crate::netem::NetemSpec;
pub use crate::queue::cake::CakeSpec;
pub use crate::queue::codel::CodelSpec;
pub use crate::queue::dualpi2::DualPi2Spec;
pub use crate::queue::fifo::FifoSpec;
pub use crate::queue::fq::FqSpec;
pub use crate::queue::fq_codel::FqCodelSpec;
pub use crate::queue::fq_pie::FqPieSpec;
pub use crate::queue::htb::HtbSpec;
pub use crate::queue::pie::PieSpec;
pub use crate::queue::red::RedSpec;
pub use crate::queue::sfq::SfqSpec;
pub use crate::queue::tbf::TbfSpec;

/// One direction of a path: its stages in the order in which packets meet them, and what changes when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// The stages, first to last.
    #[serde(default)]
    pub stages: Vec<StageSpec>,
    /// Changes while the path runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<ScheduledChange>,
}

/// One hop: a queue discipline at the egress of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// The queue discipline with its children.
    pub qdisc: QdiscSpec,
    /// Whose egress it is; informative.
    #[serde(default)]
    pub at: Host,
}

impl From<QdiscSpec> for StageSpec {
    fn from(qdisc: QdiscSpec) -> StageSpec {
        StageSpec { qdisc, at: Host::Sender }
    }
}

/// Whose egress a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// The data sender's.
    #[default]
    Sender,
    /// A router's.
    Router,
    /// The receiver's.
    Receiver,
}

/// A queue discipline and its children.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QdiscSpec {
    /// Network emulator.
    Netem(NetemSpec),
    /// Token bucket filter.
    Tbf(TbfSpec),
    /// Hierarchical token bucket with a single class.
    Htb(HtbSpec),
    /// FIFO limited in packets.
    Pfifo(FifoSpec),
    /// FIFO limited in bytes.
    Bfifo(FifoSpec),
    /// Random early detection.
    Red(RedSpec),
    /// Controlled delay.
    Codel(CodelSpec),
    /// Flow queues under CoDel.
    FqCodel(FqCodelSpec),
    /// Proportional integral controller, enhanced.
    Pie(PieSpec),
    /// Flow queues under PIE.
    FqPie(FqPieSpec),
    /// Common Applications Kept Enhanced.
    Cake(CakeSpec),
    /// The coupled dual queue of L4S.
    Dualpi2(DualPi2Spec),
    /// Fair queue with pacing.
    Fq(FqSpec),
    /// FIFO limited in packets that drops its oldest packet.
    PfifoHeadDrop(FifoSpec),
    /// Stochastic fairness queueing.
    Sfq(SfqSpec),
    /// Our own delay variation, with a choice of order.
    Jitter(JitterSpec),
}

impl QdiscSpec {
    /// tc's name for it.
    pub fn name(&self) -> &'static str {
        match self {
            QdiscSpec::Netem(_) => "netem",
            QdiscSpec::Tbf(_) => "tbf",
            QdiscSpec::Htb(_) => "htb",
            QdiscSpec::Pfifo(_) => "pfifo",
            QdiscSpec::Bfifo(_) => "bfifo",
            QdiscSpec::Red(_) => "red",
            QdiscSpec::Codel(_) => "codel",
            QdiscSpec::FqCodel(_) => "fq_codel",
            QdiscSpec::Pie(_) => "pie",
            QdiscSpec::FqPie(_) => "fq_pie",
            QdiscSpec::Cake(_) => "cake",
            QdiscSpec::Fq(_) => "fq",
            QdiscSpec::Dualpi2(_) => "dualpi2",
            QdiscSpec::PfifoHeadDrop(_) => "pfifo_head_drop",
            QdiscSpec::Sfq(_) => "sfq",
            QdiscSpec::Jitter(_) => "jitter",
        }
    }

    /// The child queue, where there is one.
    pub fn child(&self) -> Option<&QdiscSpec> {
        match self {
            QdiscSpec::Netem(s) => s.child.as_deref(),
            QdiscSpec::Tbf(s) => s.child.as_deref(),
            QdiscSpec::Htb(s) => s.child.as_deref(),
            _ => None,
        }
    }

    /// Puts a child into it; false if this queue has no room for one.
    pub fn set_child(&mut self, child: QdiscSpec) -> bool {
        let place = match self {
            QdiscSpec::Netem(s) => &mut s.child,
            QdiscSpec::Tbf(s) => &mut s.child,
            QdiscSpec::Htb(s) => &mut s.child,
            _ => return false,
        };
        *place = Some(Box::new(child));
        true
    }

    /// Whether a TCP on the host of this queue leaves its pacing to it or to a child.
    pub fn paces(&self) -> bool {
        matches!(self, QdiscSpec::Fq(s) if s.paces()) || self.child().is_some_and(QdiscSpec::paces)
    }

    /// Canonical tc words; children follow after `; `. [`crate::parse_tc`] reads them back to the same value.
    pub fn to_tc(&self) -> String {
        let own = match self {
            QdiscSpec::Netem(s) => s.words(),
            QdiscSpec::Tbf(s) => s.words(),
            QdiscSpec::Htb(s) => s.words(),
            QdiscSpec::Pfifo(s) => format!("pfifo limit {}", s.limit),
            QdiscSpec::Bfifo(s) => format!("bfifo limit {}", s.limit),
            QdiscSpec::Red(s) => s.words(),
            QdiscSpec::Codel(s) => s.words(),
            QdiscSpec::FqCodel(s) => s.words(),
            QdiscSpec::Pie(s) => s.words(),
            QdiscSpec::FqPie(s) => s.words(),
            QdiscSpec::Cake(s) => s.words(),
            QdiscSpec::Fq(s) => s.words(),
            QdiscSpec::Dualpi2(s) => s.words(),
            QdiscSpec::PfifoHeadDrop(s) => format!("pfifo_head_drop limit {}", s.limit),
            QdiscSpec::Sfq(s) => s.words(),
            QdiscSpec::Jitter(s) => s.words(),
        };
        match self.child() {
            Some(c) => format!("{own}; {}", c.to_tc()),
            None => own,
        }
    }

    /// Says what is wrong with it, children included.
    pub fn validate(&self) -> Result<(), SpecError> {
        match self {
            QdiscSpec::Netem(s) => s.validate()?,
            QdiscSpec::Tbf(s) => s.validate()?,
            QdiscSpec::Htb(s) => s.validate()?,
            QdiscSpec::Red(s) => s.validate()?,
            QdiscSpec::Codel(s) => s.validate()?,
            QdiscSpec::FqCodel(s) => s.validate()?,
            QdiscSpec::Pie(s) => s.validate()?,
            QdiscSpec::FqPie(s) => s.validate()?,
            QdiscSpec::Jitter(s) => s.validate()?,
            QdiscSpec::Cake(s) => s.validate()?,
            QdiscSpec::Fq(s) => s.validate()?,
            QdiscSpec::Dualpi2(s) => s.validate()?,
            QdiscSpec::Sfq(s) => s.validate()?,
            QdiscSpec::Pfifo(_) | QdiscSpec::Bfifo(_) | QdiscSpec::PfifoHeadDrop(_) => {}
        }
        if self.duplicates() && self.netems() > 1 {
            // Linux: check_netem_in_tree()
            return Err(SpecError::new("duplicate", "a duplicating netem cannot share a tree with another netem: use two stages"));
        }
        self.child().map_or(Ok(()), QdiscSpec::validate)
    }

    fn duplicates(&self) -> bool {
        matches!(self, QdiscSpec::Netem(s) if s.duplicate.0 > 0) || self.child().is_some_and(QdiscSpec::duplicates)
    }
    fn netems(&self) -> usize {
        usize::from(matches!(self, QdiscSpec::Netem(_))) + self.child().map_or(0, QdiscSpec::netems)
    }
}

impl PathSpec {
    /// A path of these queues, all at the sender, without a schedule.
    pub fn of(qdiscs: impl IntoIterator<Item = QdiscSpec>) -> PathSpec {
        PathSpec { stages: qdiscs.into_iter().map(StageSpec::from).collect(), schedule: Vec::new() }
    }

    /// Says what is wrong with it.
    pub fn validate(&self) -> Result<(), SpecError> {
        for s in &self.stages {
            s.qdisc.validate()?;
        }
        for c in &self.schedule {
            c.validate(self)?;
        }
        Ok(())
    }

    /// Reads and checks JSON.
    pub fn from_json(text: &str) -> Result<PathSpec, SpecError> {
        let spec: PathSpec = serde_json::from_str(text).map_err(|e| SpecError::new("path", &e.to_string()))?;
        spec.validate()?;
        Ok(spec)
    }
}

/// A specification that cannot run: the field and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fix}")]
pub struct SpecError {
    /// The field that is wrong.
    pub field: String,
    /// What to do about it.
    pub fix: String,
}

impl SpecError {
    pub(crate) fn new(field: &str, fix: &str) -> SpecError {
        SpecError { field: field.into(), fix: fix.into() }
    }
}

/// A probability scaled so that 2³²−1 is certainty, as netem keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prob(pub u32);

impl Prob {
    /// Never.
    pub const ZERO: Prob = Prob(0);
    /// Always.
    pub const ONE: Prob = Prob(u32::MAX);

    /// From a percentage, rounded as tc does; `None` outside 0..=100.
    pub fn from_percent(p: f64) -> Option<Prob> {
        (0.0..=100.0).contains(&p).then(|| Prob((p / 100.0 * f64::from(u32::MAX)).round_ties_even() as u32))
    }
    /// As a percentage.
    pub fn percent(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX) * 100.0
    }
    /// What is missing to certainty.
    pub fn complement(self) -> Prob {
        Prob(u32::MAX - self.0)
    }
    pub(crate) fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Prob {
    /// The shortest percentage that reads back as the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.percent();
        let text = (0..=12).map(|d| format!("{p:.d$}")).find(|t| t.parse().ok().and_then(Prob::from_percent) == Some(*self));
        write!(f, "{}%", text.unwrap_or_else(|| p.to_string()))
    }
}

/// The distribution of delay variation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dist {
    /// Even between −J and +J: netem's own without a table.
    #[default]
    Uniform,
    /// Normal, J is its standard deviation; cut at −4σ.
    Normal,
    /// Pareto with shape 3.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
}

impl Dist {
    /// The word of `distribution NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Dist::Uniform => "uniform",
            Dist::Normal => "normal",
            Dist::Pareto => "pareto",
            Dist::ParetoNormal => "paretonormal",
        }
    }
    /// The inverse of [`Dist::name`].
    pub fn named(name: &str) -> Option<Dist> {
        [Dist::Uniform, Dist::Normal, Dist::Pareto, Dist::ParetoNormal].into_iter().find(|d| d.name() == name)
    }
}
