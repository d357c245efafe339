//! A short trial, and what must hold of its results.
//!
//! - A plan that is refused says why.
//! - The same seed gives the same trial, also after the plan has been JSON.
//! - Packets, bytes, rates and RTTs keep the laws of [`TrialOutput::check_accounts`].
//! - Numbers are finite.

use tcpscape_plan::results::FlowSummary;
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;
use tcpscape_sim::TrialOutput;

/// Most work of a trial, in events and deliveries: a plan that needs more is judged by its beginning.
const WORK: u64 = 30_000;

/// Runs a plan twice and checks what comes of it.
pub fn check(plan: Plan, seed: u64) {
    let json = serde_json::to_string(&plan).unwrap_or_else(|e| panic!("{plan:?} has no JSON: {e}"));
    let checked = match CheckedPlan::new(plan) {
        Ok(checked) => checked,
        Err(refusal) => {
            assert!(!refusal.to_string().is_empty(), "{json} is refused without a reason");
            return;
        }
    };
    let trial = checked.run_within(seed, WORK);
    if let Err(broken) = trial.check_accounts(checked.plan()) {
        panic!("{json} with seed {seed}: {broken}");
    }
    for f in &trial.flows {
        let finite = [f.goodput_mbps, f.seconds, f.stop_s, f.cwnd.mean.unwrap_or(f64::NAN)].iter().all(|x| x.is_finite() && *x >= 0.0);
        assert!(finite, "{json} with seed {seed}: {f:?}");
    }
    same_again(&json, &trial);
}

fn same_again(json: &str, first: &TrialOutput) {
    let plan = Plan::from_json(json).unwrap_or_else(|e| panic!("{json} does not read back: {e}"));
    let again = CheckedPlan::new(plan).unwrap_or_else(|e| panic!("{json} is refused when read back: {e}")).run_within(first.seed, WORK);
    assert_eq!((first.hash, first.events, first.arrivals), (again.hash, again.events, again.arrivals), "{json}: two trials of one seed");
    assert_eq!(summaries(&first.flows), summaries(&again.flows), "{json}: two trials of one seed");
}

fn summaries(flows: &[FlowSummary]) -> String {
    serde_json::to_string(flows).unwrap_or_default()
}
