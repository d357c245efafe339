//! The extension point: congestion controls that are not in the registry, for one run.
//!
//! ```
//! use tcpscape_sim::{run_with, Controls, Plan};
//! use tcpscape_tcp::cc::{AckSample, CongestionController, View, Window};
//!
//! /// Ten packets, whatever happens.
//! struct Ten;
//! impl CongestionController for Ten {
//!     fn name(&self) -> &'static str {
//!         "ten"
//!     }
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
//! let plan = Plan::read(r#"{"duration_ns": 1000000000, "flows": [{"cca": "ten"}]}"#, &controls).unwrap();
//! assert!(run_with(&plan, 1, &controls).flows[0].established);
//! ```

use crate::plan::FlowPlan;
use std::collections::BTreeMap;
use tcpscape_tcp::cc::{self, CongestionController};

/// Makes a congestion control for a flow. The seed is the flow's own, for those that draw random numbers.
pub type Make<'a> = dyn Fn(&FlowPlan, u64) -> Box<dyn CongestionController> + Send + Sync + 'a;

/// Congestion controls by name: those added here, then the registry's. Every flow of every trial gets a new one.
#[derive(Default)]
pub struct Controls<'a> {
    own: BTreeMap<String, Box<Make<'a>>>,
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
        self.own.insert(name.into(), Box::new(make));
        self
    }

    /// Whether `name` was added here.
    pub fn has_own(&self, name: &str) -> bool {
        self.own.contains_key(name)
    }

    /// Every name, the own ones first.
    pub fn names(&self) -> Vec<&str> {
        self.own.keys().map(String::as_str).chain(cc::REGISTRY.iter().map(|e| e.name)).collect()
    }

    /// The congestion control of a flow, None if there is none of that name.
    pub fn make(&self, flow: &FlowPlan, seed: u64) -> Option<Box<dyn CongestionController>> {
        if let Some(make) = self.own.get(&flow.cca) {
            return Some(make(flow, seed));
        }
        cc::find(&flow.cca).map(|e| (e.new)(&cc::Options { seed, set: Some(&flow.cca_params) }))
    }
}
