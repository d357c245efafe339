//! The statistics of queues as the kernel gives them with `RTM_GETQDISC`. Source: linux/gen_stats.h.

use crate::netlink::{attribute, attributes, text_of, u32_at, u64_at, Message, NetlinkError, Socket};
use netlink_packet_core::Emitable;
use netlink_packet_route::tc::{TcHeader, TcMessage, TcStatsBasic, TcStatsQueue};

/// Attributes of a message and of its statistics.
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const BASIC: u16 = 1;
const QUEUE: u16 = 3;
const APP: u16 = 4;
const PKT64: u16 = 8;

/// One queue's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of the device.
    pub device: i32,
    /// Its handle, `1:` is 0x10000.
    pub handle: u32,
    /// Its kind as the kernel calls it.
    pub kind: String,
    /// Packets that left.
    pub packets: u64,
    /// Bytes that left.
    pub bytes: u64,
    /// Packets dropped.
    pub drops: u32,
    /// Packets marked CE, where the queue tells.
    pub marked: u32,
    /// Packets that had to wait for a rate.
    pub overlimits: u32,
    /// Packets given back by the device.
    pub requeues: u32,
    /// Packets held.
    pub backlog_packets: u32,
    /// Bytes held.
    pub backlog_bytes: u32,
}

/// The counters of every queue in the socket's namespace.
pub fn read(socket: &mut Socket, mut each: impl FnMut(Counters)) -> Result<(), NetlinkError> {
    socket.dump(Message::GetQueueDiscipline(TcMessage::default()), |message| each(decode(message)))
}

/// Takes a message apart; what is missing is 0. Only what is needed: a newer kernel may say more than the crate knows.
pub fn decode(message: &[u8]) -> Counters {
    let header = TcHeader::parse(message).unwrap_or_default();
    let attributes = message.get(header.buffer_len()..).unwrap_or_default();
    let stats = attribute(attributes, TCA_STATS2).unwrap_or_default();
    let basic = attribute(stats, BASIC).and_then(|b| TcStatsBasic::parse(b).ok()).unwrap_or_default();
    let queue = attribute(stats, QUEUE).and_then(|q| TcStatsQueue::parse(q).ok()).unwrap_or_default();
    let kind = attribute(attributes, TCA_KIND).map_or("", text_of);
    Counters {
        device: header.index,
        handle: header.handle.into(),
        kind: kind.to_owned(),
        marked: marked(kind, attribute(stats, APP).unwrap_or_default()),
        packets: attribute(stats, PKT64).map_or(u64::from(basic.packets), |v| u64_at(v, 0)),
        bytes: basic.bytes,
        drops: queue.drops,
        overlimits: queue.overlimits,
        requeues: queue.requeues,
        backlog_packets: queue.qlen,
        backlog_bytes: queue.backlog,
    }
}

/// cake's statistics of its tins, and of each the packets marked (`TCA_CAKE_STATS_TIN_STATS`, `TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS`).
const CAKE_TINS: u16 = 10;
const CAKE_MARKED: u16 = 8;

/// Marks among a queue's own counters: where they are in its `struct tc_KIND_xstats` (linux/pkt_sched.h), B.
fn marked(kind: &str, own: &[u8]) -> u32 {
    if kind == "cake" {
        let tins = attributes(attribute(own, CAKE_TINS).unwrap_or_default());
        return tins.filter_map(|(_, tin)| attribute(tin, CAKE_MARKED)).map(|n| u32_at(n, 0)).sum();
    }
    let places: &[usize] = match kind {
        "red" => &[12],
        "codel" => &[24, 32],
        // behind the type of the statistics
        "fq_codel" => &[12, 28],
        "pie" => &[36],
        "fq_pie" => &[16],
        "fq" => &[80],
        _ => &[],
    };
    places.iter().map(|&at| u32_at(own, at)).sum()
}
