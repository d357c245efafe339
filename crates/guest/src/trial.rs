//! One trial: the network, the flows, the watching, the result.

use crate::modules::{Modules, ParamError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use tcpscape_sim::{Plan, PlayerSummary};
use tcpscape_testbed::flows::{Clock, Flow, Running};
use tcpscape_testbed::network::{Testbed, TestbedError};
use tcpscape_testbed::proof::prove;
use tcpscape_testbed::report::{counters, FlowReport, Report};
use tcpscape_testbed::watch::{watch, Watched};
use tcpscape_testbed::{pcap, sys};

/// What the host asks for.
#[derive(Debug, Deserialize)]
pub struct Job {
    /// The trial's seed.
    pub seed: u64,
    /// The scenario.
    pub plan: Plan,
    /// Settings of the kernel, `net.ipv4.tcp_rmem` and its value.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Whether to keep the packets at the sender.
    #[serde(default)]
    pub pcap: bool,
    /// Sampling interval of the summaries, ns.
    #[serde(default = "summary_interval")]
    pub sample_ns: u64,
}

fn summary_interval() -> u64 {
    10_000_000
}

/// What ended a trial before it had a result.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The network could not be built or changed.
    #[error("{0}")]
    Testbed(#[from] TestbedError),
    /// A congestion control does not take a parameter.
    #[error("{0}")]
    Param(#[from] ParamError),
    /// A socket, a thread or a namespace failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The kernel's answer.
        error: io::Error,
    },
}

fn at(what: &'static str) -> impl FnOnce(io::Error) -> TrialError {
    move |error| TrialError::Io { what, error }
}

/// Time from the network's completion to the trial's time 0, ns, and a little more for each flow: every reader listens by then.
const LEAD: u64 = 200_000_000;
const LEAD_PER_FLOW: u64 = 10_000_000;
/// Longest tick that a kernel has (HZ = 24), ns: time 0 falls anywhere within a tick.
const TICK: u64 = 41_666_667;

/// Runs a trial; the calling thread ends in the sender's namespace. `home` is the namespace of the guest itself.
pub fn run(job: &Job, home: &File, capture: Option<&std::path::Path>) -> Result<(Report, Watched), TrialError> {
    let plan = &job.plan;
    sys::enter(home.as_fd()).map_err(at("namespace"))?;
    let _modules = Modules::write(&plan.flows)?;
    let mut testbed = Testbed::build_seeded(plan, &job.sysctls, Some(mix(job.seed, u64::MAX)))?;
    let clock = Clock {
        zero: sys::now() + LEAD + LEAD_PER_FLOW * plan.flows.len() as u64 + mix(job.seed, 0) % TICK,
        slack: plan.timer_slack_ns,
        noise: plan.wake_noise_ns,
    };
    let flows = prepare(job, &testbed)?;
    let recorder = capture.map(|path| pcap::Recorder::start(path, clock.zero)).transpose().map_err(at("pcap"))?;
    let mut running = Vec::with_capacity(flows.len());
    for (i, flow) in flows.into_iter().enumerate() {
        running.push(flow.start(i, testbed.address(), clock).map_err(at("thread"))?);
    }
    let mut watched = watch(plan, &mut testbed, &running, clock.zero, job.sample_ns.max(1_000_000))?;
    let ended: Vec<_> = running.into_iter().map(Running::join).collect();
    let mut report = Report { duration_ns: plan.duration_ns, queues: testbed.queues()?, ..Report::default() };
    report.flows = ended.iter().zip(&mut watched.flows).map(|(f, seen)| FlowReport::of(f, seen, clock.zero, plan.duration_ns)).collect();
    report.caveats.append(&mut watched.caveats);
    report.caveats.append(&mut testbed.faults()?);
    report.caveats.extend(ended.iter().filter_map(|f| f.trouble()));
    report.caveats.extend(PlayerSummary::caveat(report.flows.iter().filter_map(|f| f.player)));
    if let Some(recorder) = recorder {
        report.caveats.extend(recorder.finish().map_err(at("pcap"))?);
    }
    count(&mut report, &testbed).map_err(at("counters"))?;
    report.proof = prove(plan, &report.queues, &report.flows, &report.counters, &mut report.caveats);
    Ok((report, watched))
}

/// The flows with their sockets, all listening.
fn prepare(job: &Job, testbed: &Testbed) -> Result<Vec<Flow>, TrialError> {
    sys::enter(testbed.receiver()).map_err(at("namespace"))?;
    let listeners: io::Result<Vec<_>> = job.plan.flows.iter().enumerate().map(|(i, f)| Flow::listen(f, i)).collect();
    let listeners = listeners.map_err(at("listen"))?;
    sys::enter(testbed.sender()).map_err(at("namespace"))?;
    let flows = job.plan.flows.iter().zip(listeners).enumerate();
    flows.map(|(i, (f, listener))| Flow::dial(f, listener, mix(job.seed, i as u64 + 1)).map_err(at("socket"))).collect()
}

/// A number from a seed and a purpose, spread evenly (the finaliser of splitmix64).
fn mix(seed: u64, purpose: u64) -> u64 {
    let mut z = seed.wrapping_add(purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The kernel's counters of both hosts, and what they say about a single flow.
fn count(report: &mut Report, testbed: &Testbed) -> io::Result<()> {
    for (host, namespace) in [("sender", testbed.sender()), ("receiver", testbed.receiver())] {
        sys::enter(namespace)?;
        for file in ["netstat", "snmp"] {
            counters(host, &std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))?, &mut report.counters);
        }
    }
    if let [flow] = &mut report.flows[..] {
        let sum = |names: &[&str]| Some(names.iter().map(|n| report.counters.get(&format!("sender.TcpExt.{n}")).unwrap_or(&0)).sum());
        flow.rtos = flow.rtos.or_else(|| sum(&["TCPTimeouts"]));
        flow.fast_recoveries = sum(&["TCPSackRecovery", "TCPRenoRecovery"]);
        flow.undos = sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"]);
    }
    Ok(())
}
