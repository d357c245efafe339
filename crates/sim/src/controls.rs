//! The extension point: congestion controls that are not in the registry, for one run.
//!
//! ```
//! use tcpscape_plan::Plan;
//! use tcpscape_sim::{CheckedPlan, Controls};
//! use tcpscape_tcp::cc::{AckSample, CongestionController, View, Window};
//!
//! /// Ten packets, whatever happens.
//! struct Ten;
//! impl CongestionController for Ten {
//!     fn ssthresh(&mut self, _: &View, _: &Window) -> u32 {
//!         10
//!     }
//!     fn on_ack(&mut self, _: &View, w: &mut Window, _: &AckSample) {
//!         w.cwnd = 10;
//!     }
//!     fn reacts_to_loss(&self) -> bool {
//!         false
//!     }
//! }
//!
//! let controls = Controls::new().with("ten", |_flow, _seed| Box::new(Ten));
//! let plan = Plan::from_json(r#"{"duration_ns": 1000000000, "flows": [{"cca": "ten"}]}"#).unwrap();
//! let plan = CheckedPlan::with_controls(plan, &controls).unwrap();
//! assert!(plan.run(1).flows[0].established);
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use tcpscape_plan::FlowPlan;
use tcpscape_tcp::cc::{self, CongestionController};

/// Makes a congestion control for a flow. The seed is the flow's own, for those that draw random numbers.
pub type Make<'a> = dyn Fn(&FlowPlan, u64) -> Box<dyn CongestionController> + Send + Sync + 'a;

/// Congestion controls by name: those added here, then the registry's. Every flow of every trial gets a new one.
#[derive(Default)]
pub struct Controls<'a> {
    own: BTreeMap<String, Arc<Make<'a>>>,
}

impl<'a> Controls<'a> {
    /// The registry's alone.
    pub fn new() -> Controls<'a> {
        Controls::default()
    }

    /// These, and `name`, which `make` makes. It hides one of that name in the registry. What it finds in `cca_params` is its own to judge.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&FlowPlan, u64) -> Box<dyn CongestionController> + Send + Sync + 'a,
    ) -> Self {
        self.own.insert(name.into(), Arc::new(make));
        self
    }

    /// Every name, the own ones first.
    pub fn names(&self) -> Vec<&str> {
        self.own.keys().map(String::as_str).chain(cc::REGISTRY.iter().map(|e| e.name)).collect()
    }

    /// What makes the congestion control called `name`, None if there is none of that name.
    pub(crate) fn find(&self, name: &str) -> Option<Control<'a>> {
        match self.own.get(name) {
            Some(make) => Some(Control::Own(make.clone())),
            None => cc::find(name).map(Control::Registry),
        }
    }
}

/// What makes a congestion control.
pub(crate) enum Control<'a> {
    /// A line of the registry.
    Registry(&'static cc::Entry),
    /// One from outside.
    Own(Arc<Make<'a>>),
}

impl Control<'_> {
    /// A new one for a flow; `seed` is the flow's own.
    pub fn make(&self, flow: &FlowPlan, seed: u64) -> Box<dyn CongestionController> {
        match self {
            Control::Registry(entry) => (entry.new)(&cc::Options { seed, set: Some(&flow.cca_params) }),
            Control::Own(make) => make(flow, seed),
        }
    }
}
