//! The guest of the virtual engine: the first and only process of a real Linux kernel that runs in virtual time.
//!
//! What it is: a static program that User-Mode Linux starts as `init`. It takes trials from the host one by one
//! ([`channel`]), builds each trial's network in the kernel ([`testbed`]: namespaces, veth pairs, queue disciplines over
//! [`netlink`]), runs the flows on real sockets ([`flows`]), watches them ([`watch`]) and hands back a result with the
//! model engine's names ([`report`]).
//!
//! ```text
//! host: io/7.job, "7" → FIFO ─→ channel ─→ trial::run ─→ Testbed::build → flows → watch → report ─→ io/7.json, "done 7"
//! ```
//!
//! Source: the uapi of Linux (rtnetlink(7), tcp(7), packet(7)). How it differs from a script with tc and iperf3: nothing runs
//! in user space for a packet: a writer is one `sendmmsg` of many writes, a reader one `recvmmsg` of many reads, so that a
//! trial costs what the kernel's own work costs.

pub mod channel;
pub mod flows;
pub mod modules;
pub mod netlink;
pub mod pause;
pub mod pcap;
pub mod proof;
pub mod qdisc;
pub mod report;
pub mod sys;
pub mod tcp_info;
pub mod testbed;
pub mod trial;
pub mod watch;
