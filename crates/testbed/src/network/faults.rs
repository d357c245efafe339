//! The self-check: what the testbed did to the trial that nobody asked for.

use super::offload::Offload;
use super::Scope;
use crate::netlink::{Message, NetlinkError, Socket};
use netlink_packet_core::Parseable;
use netlink_packet_route::stats::{StatsAttribute, StatsFilterMask, StatsMessage};
use std::io;
use std::os::fd::AsFd;

/// Reads back the offload flags of a host's devices and says which differ from what was asked. `asked`: super-packets may pass.
pub fn offloads(socket: &Socket, owner: &str, devices: &[(i32, &str)], asked: bool, found: &mut Vec<String>) -> io::Result<()> {
    for (_, device) in devices {
        for offload in Offload::ALL {
            let on = match offload.read(socket.as_fd(), device) {
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {
                    found.push(format!("{owner}'s device {device} is gone: a program in its namespace removed it"));
                    break;
                }
                on => on?,
            };
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
    let mut asked = StatsMessage::default();
    asked.header.filter_mask = StatsFilterMask::Link64;
    socket.dump(Message::GetStats(asked), |message| {
        let Ok(message) = StatsMessage::parse(message) else { return };
        let Some((_, name)) = devices.iter().find(|d| d.0 == message.header.ifindex as i32) else { return };
        for attribute in message.attributes {
            let StatsAttribute::Link64(stats) = attribute else { continue };
            for (n, what) in [
                (stats.rx_errors, "arrived damaged"),
                (stats.tx_errors, "could not be sent"),
                (stats.rx_dropped, "were dropped on arrival"),
                (stats.tx_dropped, "were dropped when sent"),
            ] {
                if n > 0 {
                    found.push(format!("{owner}'s device {name}: {n} packets {what}, which no queue of the scenario did"));
                }
            }
        }
    })
}

/// Says what the CPUs' backlogs lost since there were `before` losses; a kernel counts them for all namespaces together.
pub fn backlogs(before: u64, scope: Scope, found: &mut Vec<String>) {
    let lost = lost_on_cpus().saturating_sub(before);
    if lost > 0 {
        let whose = if scope == Scope::Namespaces { ", perhaps another program's" } else { "" };
        found.push(format!(
            "the kernel lost {lost} packets between devices{whose}: its per-CPU backlog was full (net.core.netdev_max_backlog)"
        ));
    }
}

/// Packets that the kernel dropped because a CPU's backlog was full, since it started; 0 where it does not tell.
pub fn lost_on_cpus() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/softnet_stat").unwrap_or_default();
    text.lines().filter_map(|l| l.split_whitespace().nth(1)).filter_map(|n| u64::from_str_radix(n, 16).ok()).sum()
}
