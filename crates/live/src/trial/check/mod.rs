//! The checks of a trial: what was asked and what happened, and what the machine did meanwhile.
//!
//! | Module | What it judges |
//! |---|---|
//! | [`path`] | each stage: loss, delay, limits, rate |
//! | [`machine`] | CPUs, sleeps, the wall clock |
//!
//! A flag is one sentence; it becomes a caveat of the trial. Lateness and losses of the emulator itself: [`crate::emulator::report`].

pub mod machine;
pub mod path;

use super::job::Job;
use crate::emulator::EmulatorReport;
use crate::link::Totals;
use crate::spaces::Realtime;
use machine::Machine;
use path::StageCheck;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_path::{Direction, PathSpec, StageStats};
use tcpscape_testbed::course::Finished;
use tcpscape_testbed::proof::{self, Pair, Proof};

/// What was asked and what happened.
#[derive(Debug, Default, Serialize)]
pub struct Check {
    /// What impaired the path: `emulator`, or `netem`.
    pub backend: &'static str,
    /// Propagation RTT, and the smallest that a flow measured, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Pair>,
    /// Each stage, as the emulator did it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageCheck>,
    /// What went through each direction: packets, bytes, delay from arrival to due time, order.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<&'static str, Totals>,
    /// The emulator's account of itself: lateness, losses that nobody asked for, CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorReport>,
    /// The proof of the kernel's own queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The machine.
    pub machine: Machine,
    /// How far real-time priority was allowed.
    pub realtime: Realtime,
    /// Timer slack of the applications that was asked for, and what a thread got, ns; null with real-time priority, which has none.
    pub timer_slack_ns: (u64, Option<u64>),
    /// Goodput of each flow in each whole second, Mbit/s: bytes acknowledged.
    pub goodput_by_second_mbps: Vec<Vec<f64>>,
    /// What may make the trial another one than was asked for.
    pub flags: Vec<String>,
}

impl Check {
    /// Judges the emulator's account of a trial.
    pub fn of_emulator(&mut self, job: &Job, finished: &Finished, stats: [Vec<StageStats>; 3]) {
        let plan = &job.plan;
        let [host, network, reverse] = stats;
        let forward: Vec<StageStats> = host.into_iter().chain(network).collect();
        for ((direction, path), stats) in Direction::BOTH.into_iter().zip(plan.paths()).zip([forward, reverse]) {
            self.stages.extend(path::judge(direction, path, &stats, plan.duration_ns, &mut self.flags));
        }
        if plan.paths().iter().all(|path| path.schedule.is_empty()) {
            self.rtt_ms = proof::rtt(plan, &finished.report.flows, &mut self.flags);
        }
        if let Some(emulator) = &self.emulator {
            self.flags.extend(emulator.flags(plan.paths().map(PathSpec::delay_ns)));
            if !plan.offload {
                self.flags.extend(Direction::BOTH.into_iter().filter_map(|d| joined(d, emulator)));
            }
        }
    }

    /// Adds what the machine did, and the priority that the trial had.
    pub fn of_machine(&mut self, job: &Job, machine: Machine) {
        self.flags.extend(machine.flags());
        self.machine = machine;
        let got = super::sys::slack_of_a_thread(job.plan.timer_slack_ns);
        self.timer_slack_ns = (job.plan.timer_slack_ns, got);
        if let Some(got) = got.filter(|&got| got != job.plan.timer_slack_ns.max(1)) {
            self.flags.push(format!("applications have a timer slack of {got} ns where {} ns was asked", job.plan.timer_slack_ns));
        }
    }
}

/// Mbit/s in each second from the bytes acknowledged until its end.
pub fn by_second(acked: &[f64]) -> Vec<f64> {
    std::iter::once(&0.0).chain(acked).zip(acked).map(|(before, until)| (until - before) * 8e-6).collect()
}

/// Super-packets that left the emulator although the scenario asks for none.
fn joined(direction: Direction, emulator: &EmulatorReport) -> Option<String> {
    let account = emulator.direction(direction);
    (account.released > account.frames_out).then(|| {
        format!(
            "{} {} packets left the emulator in super-packets although the scenario asks for no offload",
            account.released - account.frames_out,
            direction.name()
        )
    })
}
