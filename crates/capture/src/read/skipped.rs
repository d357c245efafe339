//! The reasons why a packet of a file is not read.

/// Why a record gives no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skipped {
    /// Not an IP packet.
    NotIp,
    /// Not TCP.
    NotTcp,
    /// A later fragment of an IP packet, without the TCP header.
    Fragment,
    /// The snap length cut the headers before the TCP window field.
    Cut,
    /// Lengths that contradict each other.
    Damaged,
    /// The file has no time for it.
    NoTime,
    /// Its link type is not read.
    LinkType,
}

impl Skipped {
    /// Every reason, with its name in a report.
    pub const ALL: [(Skipped, &'static str); 7] = [
        (Skipped::NotIp, "not_ip"),
        (Skipped::NotTcp, "not_tcp"),
        (Skipped::Fragment, "fragment"),
        (Skipped::Cut, "cut"),
        (Skipped::Damaged, "damaged"),
        (Skipped::NoTime, "no_time"),
        (Skipped::LinkType, "link_type"),
    ];
}
