//! What is to run behind which path, as Python sends it.

use super::relay::Reach;
use serde::Deserialize;
use std::os::fd::RawFd;
use std::path::PathBuf;
use tcpscape_plan::Plan;

/// The job of the mode `emulate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Both directions of the path, MTU and offloads; its flows and its duration are not looked at.
    pub plan: Plan,
    /// Seed of the path's random streams.
    pub seed: u64,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Congestion control of the sockets at both ends; None is the kernel's.
    pub cca: Option<String>,
    /// Without a user namespace.
    pub root: bool,
    /// Command lines of servers at the far end.
    pub serve: Vec<String>,
    /// Ports of the far end that are ports of this host.
    pub reach: Vec<Reach>,
    /// Whether the far end is the world outside.
    pub outside: bool,
    /// Time after which the command is asked to end, ns.
    pub duration_ns: Option<u64>,
    /// File for the packets and the decisions on them.
    pub pcap: Option<PathBuf>,
    /// Time between figures while it runs, ns; None is never.
    pub live_ns: Option<u64>,
    /// A Unix socket to the process outside, for `reach`.
    pub host: Option<RawFd>,
    /// The command's standard input and output, where they are not this process's.
    pub stdin: Option<RawFd>,
    /// As `stdin`.
    pub stdout: Option<RawFd>,
}
