//! The self-check: what the testbed did to the trial that nobody asked for.

use super::offload::Offload;
use crate::netlink::{attribute, u32_at, u64_at, NetlinkError, Socket};
use std::io;
use std::os::fd::AsFd;

/// Statistics of devices. Source: linux/if_link.h (`RTM_GETSTATS`, `IFLA_STATS_LINK_64`, `struct rtnl_link_stats64`).
const RTM_GETSTATS: u16 = 94;
const LINK_64: u16 = 1;
/// Bytes of `struct if_stats_msg`.
const HEADER: usize = 12;

/// Reads back the offload flags of a host's devices and says which differ from what was asked. `asked`: super-packets may pass.
pub fn offloads(socket: &Socket, owner: &str, devices: &[(i32, &str)], asked: bool, found: &mut Vec<String>) -> io::Result<()> {
    for (_, device) in devices {
        for offload in Offload::ALL {
            let on = offload.read(socket.as_fd(), device)?;
            let name = offload.name();
            if on && !asked {
                found.push(format!("{owner}'s device {device}: {name} is on although the scenario asks for none"));
            } else if asked && !on && offload != Offload::Gro {
                // veth leaves GRO off by itself.
                found.push(format!("{owner}'s device {device}: {name} is off although the scenario asks for offload"));
            }
        }
    }
    Ok(())
}

/// Reads the counters of a host's devices, given by number and name, and says which lost packets: a fresh device has none.
pub fn devices(socket: &mut Socket, owner: &str, devices: &[(i32, &str)], found: &mut Vec<String>) -> Result<(), NetlinkError> {
    let mut header = [0; HEADER];
    header[8..12].copy_from_slice(&(1u32 << (LINK_64 - 1)).to_ne_bytes());
    socket.dump(RTM_GETSTATS, &header, |message| {
        let device = u32_at(message, 4) as i32;
        let stats = message.get(HEADER..).and_then(|a| attribute(a, LINK_64)).unwrap_or_default();
        let Some((_, name)) = devices.iter().find(|d| d.0 == device) else { return };
        for (place, what) in
            [(4, "arrived damaged"), (5, "could not be sent"), (6, "were dropped on arrival"), (7, "were dropped when sent")]
        {
            let n = u64_at(stats, place * 8);
            if n > 0 {
                found.push(format!("{owner}'s device {name}: {n} packets {what}, which no queue of the scenario did"));
            }
        }
    })
}

/// Says what the CPUs' backlogs lost since there were `before` losses.
pub fn backlogs(before: u64, found: &mut Vec<String>) {
    let lost = lost_on_cpus().saturating_sub(before);
    if lost > 0 {
        found.push(format!("the kernel lost {lost} packets between devices: its per-CPU backlog was full (net.core.netdev_max_backlog)"));
    }
}

/// Packets that the kernel dropped because a CPU's backlog was full, since it started; 0 where it does not tell.
pub fn lost_on_cpus() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/softnet_stat").unwrap_or_default();
    text.lines().filter_map(|l| l.split_whitespace().nth(1)).filter_map(|n| u64::from_str_radix(n, 16).ok()).sum()
}
