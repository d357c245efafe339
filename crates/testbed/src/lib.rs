//! A testbed in a Linux kernel: a path of network namespaces, real sockets that load it, and the reading of what happened.
//!
//! What it is: all that a trial on a real kernel needs, whether that kernel runs in virtual time (`crates/guest`) or is this
//! machine's own (`crates/live`): a trial's network ([`network`]: namespaces, veth pairs, queue disciplines from [`qdisc`] over
//! [`netlink`]), its flows on real sockets ([`flows`]), watched while they run ([`watch`]), and the result with the model
//! engine's names ([`report`]). What a kernel's queues do at all is measured by [`capabilities`].
//!
//! ```text
//! plan ─→ network::Testbed::build ─→ course: flows, traffic (probes, transfers) ─→ watch (TCP_INFO, queues, changes) ─→ report, proof
//! ```
//!
//! The path may also be a program's, between the hosts of a [`network::wire::Wire`]: whatever implements [`network::Network`] has a
//! [`course`].
//!
//! Source: the uapi of Linux (rtnetlink(7), tcp(7), packet(7)). How it differs from a script with tc and iperf3: nothing runs
//! in user space for a packet: a writer is one `sendmmsg` of many writes, a reader one `recvmmsg` of many reads, so that a
//! trial costs what the kernel's own work costs.

pub mod capabilities;
pub mod course;
pub mod flows;
pub mod netlink;
pub mod network;
pub mod pause;
pub mod pcap;
pub mod poll;
pub mod probes;
pub mod proof;
pub mod qdisc;
pub mod report;
pub mod ring;
pub mod sock_diag;
pub mod sys;
pub mod tcp_info;
pub mod traffic;
pub mod transfers;
pub mod watch;
