//! A congestion control from a crate of its own beside CUBIC: `cargo run --release -p gentle`.

mod gentle;

use gentle::Gentle;
use tcpscape_path::{parse_tc, Host, StageSpec};
use tcpscape_plan::{Plan, PlanError};
use tcpscape_sim::{CheckedPlan, Controls};

const SEEDS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// The registry's congestion controls, and ours: a name, and what makes a new one for each flow of each trial.
fn controls() -> Controls<'static> {
    Controls::new().with("gentle", |_flow, _seed| Box::new(Gentle))
}

/// 10 s at 20 Mbit/s and 40 ms, with a buffer of one bandwidth-delay product and a loss in a thousand.
fn plan<'a>(cca: &str, controls: &Controls<'a>) -> Result<CheckedPlan<'a>, PlanError> {
    let json = format!(r#"{{"duration_ns": 10000000000, "flows": [{{"cca": "{cca}"}}]}}"#);
    let hop = |words: &str, at| StageSpec { qdisc: parse_tc(words).expect("tc's words"), at };
    let mut plan = Plan::from_json(&json)?;
    plan.forward.stages =
        vec![hop("netem delay 20ms loss 0.1%", Host::Router), hop("tbf rate 20mbit burst 6056 limit 100000", Host::Router)];
    plan.reverse.stages = vec![hop("netem delay 20ms", Host::Receiver)];
    CheckedPlan::with_controls(plan, controls)
}

/// Goodput of each seed, Mbit/s, in order.
fn goodputs(cca: &str) -> Result<Vec<f64>, PlanError> {
    let plan = plan(cca, &controls())?;
    let mut all: Vec<f64> = SEEDS.iter().map(|&seed| plan.run(seed).flows[0].goodput_mbps).collect();
    all.sort_by(f64::total_cmp);
    Ok(all)
}

fn main() -> Result<(), PlanError> {
    println!("20 Mbit/s, 40 ms, 0.1 % loss; goodput in Mbit/s of {} trials: median (least – most)", SEEDS.len());
    for cca in ["cubic", "gentle"] {
        let got = goodputs(cca)?;
        println!("{cca:8} {:5.1} ({:.1} – {:.1})", (got[3] + got[4]) / 2.0, got[0], got[7]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_like_those_of_the_registry_and_always_alike() {
        let (cubic, ours) = (goodputs("cubic").unwrap(), goodputs("gentle").unwrap());
        assert_eq!(ours, goodputs("gentle").unwrap());
        assert!(cubic.iter().chain(&ours).all(|&g| g > 5.0 && g < 20.0), "{cubic:?} {ours:?}");
        assert_ne!(cubic, ours);
    }

    #[test]
    fn a_name_that_nobody_has_is_refused() {
        let said = plan("nosuch", &controls()).err().unwrap().to_string();
        assert!(said.contains("no congestion control 'nosuch'; there are gentle, "), "{said}");
    }
}
