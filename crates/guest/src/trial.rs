//! One trial: parameters of the congestion controls, the network, its course.

use crate::modules::{Modules, ParamError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use tcpscape_plan::{Plan, PlanError};
use tcpscape_testbed::course::{self, CapturePoint, Course, CourseError};
use tcpscape_testbed::flows::Options;
use tcpscape_testbed::network::{Scope, Settings, Testbed, TestbedError};
use tcpscape_testbed::report::Report;
use tcpscape_testbed::sys;
use tcpscape_testbed::watch::Watched;

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
    /// Where packets are to be kept.
    #[serde(default)]
    pub pcap: Vec<CapturePoint>,
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
    /// The network could not be built.
    #[error("{0}")]
    Testbed(#[from] TestbedError),
    /// The plan is not valid.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// A congestion control does not take a parameter.
    #[error("{0}")]
    Param(#[from] ParamError),
    /// Its course.
    #[error("{0}")]
    Course(#[from] CourseError),
    /// The guest's own namespace.
    #[error("namespace: {0}")]
    Namespace(io::Error),
}

/// Runs a trial; the calling thread ends in the sender's namespace. `home` is the namespace of the guest itself.
pub fn run(job: &Job, home: &File, captures: &[(CapturePoint, PathBuf)]) -> Result<(Report, Watched), TrialError> {
    let plan = &job.plan;
    sys::enter(home.as_fd()).map_err(TrialError::Namespace)?;
    let _modules = Modules::write(plan.connections())?;
    let settings = Settings { values: &job.sysctls, scope: Scope::Kernel };
    let mut testbed = Testbed::build(plan, &settings, Some(tcpscape_base::mix(job.seed, u64::MAX)))?;
    let hz = plan.check().map_err(TrialError::Plan)?.hz;
    let zero = course::at_phase(course::time_zero(plan, job.seed), plan, hz);
    let course = Course { plan, seed: job.seed, zero, sample_ns: job.sample_ns, options: Options::default(), captures, is_proved: true };
    let finished = course.run(&mut testbed)?;
    Ok((finished.report, finished.watched))
}
