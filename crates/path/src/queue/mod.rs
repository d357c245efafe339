//! The disciplines: one file each, and the table of all of them.
//!
//! To add one: a file whose specification implements [`Discipline`] and whose machine implements [`crate::discipline::Qdisc`] (or
//! [`crate::discipline::Policy`], with [`crate::discipline::Queued`] around it); its `pub mod` and its row in the table below. Nothing
//! else names disciplines one by one: JSON, tc's words, validation, descriptions, building and the tests' loops all follow from the row. No discipline
//! imports this file or another discipline; parents get their child through [`Child`].

pub mod cake;
pub mod choke;
pub mod codel;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod htb;
pub mod jitter;
pub mod netem;
pub mod pie;
pub mod red;
pub mod sfq;
pub mod tbf;

use crate::discipline::{AnyQdisc, Body, Child, Description, Discipline};
use crate::values::SpecError;
use crate::words::{TcError, Words};
use serde::{Deserialize, Serialize};

/// A line of the registry.
pub struct Entry {
    /// The word in tc's grammar.
    pub name: &'static str,
    /// A short example, also used by the tests.
    pub example: &'static str,
    pub(crate) parse: fn(&mut Words<'_>) -> Result<QdiscSpec, TcError>,
    pub(crate) announces: fn(&[&str]) -> bool,
}

/// Makes [`QdiscSpec`], [`REGISTRY`] and what they do from rows of `Variant: module::Specification`; `[child]` after it names the field of
/// the child queue, where there is one. JSON's `kind` is the variant in snake case, which must be the discipline's `NAME`.
macro_rules! table {
    ($($(#[$doc:meta])* $variant:ident: $module:ident::$spec:ident $([$child:ident])?,)*) => {
        $(table!(@export $module $spec $($child)?);)*

        /// A queue discipline and its children.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum QdiscSpec {
            $($(#[$doc])* $variant($spec),)*
        }

        /// Every queue discipline by name.
        pub const REGISTRY: &[Entry] = &[
            $(Entry {
                name: <$spec as Discipline>::NAME,
                example: <$spec as Discipline>::EXAMPLE,
                parse: |words| checked(<$spec as Discipline>::parse(words)?).map(QdiscSpec::$variant),
                announces: <$spec as Discipline>::announces,
            },)*
        ];

        impl QdiscSpec {
            /// tc's name for it.
            pub fn name(&self) -> &'static str {
                match self { $(QdiscSpec::$variant(_) => <$spec as Discipline>::NAME,)* }
            }
            /// The child queue, where there is one.
            pub fn child(&self) -> Option<&QdiscSpec> {
                match self { $(QdiscSpec::$variant(_s) => table!(@child _s $($child)?),)* }
            }
            fn child_mut(&mut self) -> Option<&mut Option<Box<QdiscSpec>>> {
                match self { $(QdiscSpec::$variant(_s) => table!(@place _s $($child)?),)* }
            }
            fn own_words(&self) -> String {
                match self { $(QdiscSpec::$variant(s) => s.words(),)* }
            }
            fn validate_alone(&self) -> Result<(), SpecError> {
                match self { $(QdiscSpec::$variant(s) => s.validate(),)* }
            }
            fn validate_among_its_kind(&self) -> Result<(), SpecError> {
                match self { $(QdiscSpec::$variant(s) => s.validate_among_its_kind(),)* }
            }
            fn describe_alone(&self) -> Description {
                match self { $(QdiscSpec::$variant(s) => s.describe(),)* }
            }
            fn describe_own_queue(&self) -> Option<Description> {
                match self { $(QdiscSpec::$variant(s) => s.describe_own_queue(),)* }
            }
            fn paces_itself(&self) -> bool {
                match self { $(QdiscSpec::$variant(s) => s.paces(),)* }
            }
            /// The fields of a [`crate::Patch`] that a schedule may change.
            pub(crate) fn changes(&self) -> &'static [&'static str] {
                match self { $(QdiscSpec::$variant(_) => <$spec as Discipline>::CHANGES,)* }
            }
            fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
                match self { $(QdiscSpec::$variant(s) => s.machine(seed, name),)* }
            }
        }
    };
    (@export $module:ident $spec:ident) => { pub use $module::$spec; };
    (@export $module:ident $spec:ident $child:ident) => {
        #[doc = concat!("[`", stringify!($module), "::", stringify!($spec), "`] with whatever child queue.")]
        pub type $spec = $module::$spec<QdiscSpec>;
    };
    (@child $s:ident) => { None };
    (@child $s:ident $child:ident) => { $s.$child.as_deref() };
    (@place $s:ident) => { None };
    (@place $s:ident $child:ident) => { Some(&mut $s.$child) };
}

table! {
    /// Network emulator.
    Netem: netem::NetemSpec [child],
    /// Token bucket filter.
    Tbf: tbf::TbfSpec [child],
    /// Hierarchical token bucket with a single class.
    Htb: htb::HtbSpec [child],
    /// FIFO limited in packets.
    Pfifo: fifo::PfifoSpec,
    /// FIFO limited in bytes.
    Bfifo: fifo::BfifoSpec,
    /// Random early detection.
    Red: red::RedSpec,
    /// Controlled delay.
    Codel: codel::CodelSpec,
    /// Flow queues under CoDel.
    FqCodel: fq_codel::FqCodelSpec,
    /// Proportional integral controller, enhanced.
    Pie: pie::PieSpec,
    /// Flow queues under PIE.
    FqPie: fq_pie::FqPieSpec,
    /// Common Applications Kept Enhanced.
    Cake: cake::CakeSpec,
    /// The coupled dual queue of L4S.
    Dualpi2: dualpi2::DualPi2Spec,
    /// Fair queue with pacing.
    Fq: fq::FqSpec,
    /// FIFO limited in packets that drops its oldest packet.
    PfifoHeadDrop: fifo::PfifoHeadDropSpec,
    /// Stochastic fairness queueing.
    Sfq: sfq::SfqSpec,
    /// RED that compares a packet with one drawn from the queue.
    Choke: choke::ChokeSpec,
    /// Our own delay variation, with a choice of order.
    Jitter: jitter::JitterSpec,
}

fn checked<D: Discipline>(spec: D) -> Result<D, TcError> {
    spec.validate().map_err(|e| TcError(e.to_string()))?;
    Ok(spec)
}

impl QdiscSpec {
    /// It, its child, the child's child and so on.
    pub fn levels(&self) -> impl Iterator<Item = &QdiscSpec> {
        std::iter::successors(Some(self), |q| q.child())
    }

    /// Puts a child into it; false if this queue has no room for one.
    pub fn set_child(&mut self, child: QdiscSpec) -> bool {
        self.child_mut().map(|place| *place = Some(Box::new(child))).is_some()
    }

    /// The same with no child.
    pub fn without_child(&self) -> QdiscSpec {
        let mut alone = self.clone();
        if let Some(place) = alone.child_mut() {
            *place = None;
        }
        alone
    }

    /// Whether a TCP on the host of this queue leaves its pacing to it or to a child.
    pub fn paces(&self) -> bool {
        self.levels().any(QdiscSpec::paces_itself)
    }

    /// Canonical tc words; children follow after `; `. [`crate::parse_tc`] reads them back to the same value.
    pub fn to_tc(&self) -> String {
        self.levels().map(QdiscSpec::own_words).collect::<Vec<_>>().join("; ")
    }

    /// What it and its children do to packets, from the outside in: the levels that the machine has and reports, so that a shaper whose
    /// words name no child is followed by the queue that it has then.
    pub fn describe(&self) -> Vec<Description> {
        self.levels().flat_map(|q| std::iter::once(q.describe_alone()).chain(q.describe_own_queue())).collect()
    }

    /// Says what is wrong with it, children included.
    pub fn validate(&self) -> Result<(), SpecError> {
        depth(self.levels().count())?;
        for q in self.levels() {
            q.validate_alone()?;
            if self.levels().filter(|other| other.name() == q.name()).count() > 1 {
                q.validate_among_its_kind()?;
            }
        }
        Ok(())
    }
}

/// Most queues in one another: as many as the kernel follows from a child to its root.
const MOST_LEVELS: usize = 8;

/// Refuses more queues in one another than the kernel takes.
pub(crate) fn depth(levels: usize) -> Result<(), SpecError> {
    if levels > MOST_LEVELS {
        return Err(SpecError::new(
            "child",
            &format!("{levels} queues in one another are more than {MOST_LEVELS}: give them stages of their own"),
        ));
    }
    Ok(())
}

impl Child for QdiscSpec {
    fn name(&self) -> &'static str {
        self.name()
    }
    fn describe_alone(&self) -> Description {
        self.describe_alone()
    }
    fn build<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        self.machine(seed, &format!("{name}/{}", self.name()))
    }
    fn pfifo(limit: u64) -> QdiscSpec {
        QdiscSpec::Pfifo(PfifoSpec { limit })
    }
    fn bfifo(limit: u64) -> QdiscSpec {
        QdiscSpec::Bfifo(BfifoSpec { limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_calls_each_discipline_what_tc_does() {
        for e in REGISTRY {
            let words: Vec<&str> = e.example.split_whitespace().collect();
            assert_eq!(words[0], e.name);
            let spec = (e.parse)(&mut Words::new(e.name, &words[1..])).unwrap();
            assert_eq!(serde_json::to_value(&spec).unwrap()["kind"], e.name);
            assert_eq!(spec.own_words().split(' ').next(), Some(e.name));
        }
    }
}
