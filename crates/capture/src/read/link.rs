//! Link layers: where the IP packet of a record begins.
//!
//! Source: <https://www.tcpdump.org/linktypes.html>, IEEE 802.1Q, RFC 2516 (PPP over Ethernet).

use super::Skipped;
use super::Unreadable;
use std::ops::Range;

/// A link type by its number of tcpdump.org, which says what a record begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    const NULL: LinkType = LinkType(0);
    const ETHERNET: LinkType = LinkType(1);
    /// Raw IP, as several systems number it in their captures.
    const DLT_RAW: [LinkType; 2] = [LinkType(12), LinkType(14)];
    const RAW: LinkType = LinkType(101);
    const LOOP: LinkType = LinkType(108);
    const LINUX_SLL: LinkType = LinkType(113);
    const IPV4: LinkType = LinkType(228);
    const IPV6: LinkType = LinkType(229);
    const LINUX_SLL2: LinkType = LinkType(276);

    /// Whether its packets are read.
    pub fn is_read(self) -> bool {
        KNOWN.iter().any(|&(number, _, is_read)| number == self.0 && is_read)
    }

    /// `Ethernet`; of an unknown one its number.
    pub fn name(self) -> String {
        KNOWN.iter().find(|&&(number, ..)| number == self.0).map_or_else(|| format!("link type {}", self.0), |k| k.1.to_owned())
    }

    /// `127 (Wi-Fi with radiotap headers)`.
    fn described(self) -> String {
        KNOWN.iter().find(|&&(number, ..)| number == self.0).map_or_else(|| self.0.to_string(), |k| format!("{} ({})", self.0, k.1))
    }

    /// Why a file of such packets is not read, and what to do.
    pub fn refusal(self) -> Unreadable {
        let fix = match self.0 {
            105 | 119 | 127 | 163 | 192 => {
                "capture without monitor mode (tcpdump -i wlan0 -w FILE), where packets are whole and not encrypted"
            }
            189 | 220 | 249 => "capture on the network's interface, not on the USB bus",
            _ => "capture on a network interface: tcpdump -i any -w FILE tcp",
        };
        Unreadable { problem: format!("its packets have the link type {}, which is not read", self.described()), fix: fix.to_owned() }
    }

    /// Where the addresses of its header are.
    pub fn addresses(self) -> Range<usize> {
        match self {
            LinkType::ETHERNET => 0..12,
            LinkType::LINUX_SLL => 6..14,
            LinkType::LINUX_SLL2 => 12..20,
            _ => 0..0,
        }
    }

    /// The IP packet of a record, and for Linux's second header of `any` the interface that it names.
    #[inline]
    pub fn payload(self, bytes: &[u8]) -> Result<(&[u8], Option<u32>), Skipped> {
        match self {
            LinkType::ETHERNET => ethernet(cut(bytes, 12)?).map(|p| (p, None)),
            LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Ok((bytes, None)),
            LinkType::LINUX_SLL => ethernet(cut(bytes, 14)?).map(|p| (p, None)),
            LinkType::LINUX_SLL2 => sll2(bytes),
            // The family's number is another on each system, and its order that of the machine: what follows says which IP it is.
            LinkType::NULL | LinkType::LOOP => family(bytes).map(|p| (p, None)),
            _ if LinkType::DLT_RAW.contains(&self) => Ok((bytes, None)),
            _ => Err(Skipped::LinkType),
        }
    }
}

fn cut(bytes: &[u8], at: usize) -> Result<&[u8], Skipped> {
    bytes.get(at..).ok_or(Skipped::Cut)
}

/// What follows an EtherType, through tags of VLANs and a session of PPP.
#[inline]
fn ethernet(mut bytes: &[u8]) -> Result<&[u8], Skipped> {
    for _ in 0..MOST_TAGS {
        let kind = bytes.get(..2).ok_or(Skipped::Cut)?;
        match [kind[0], kind[1]] {
            [0x08, 0x00] | [0x86, 0xdd] => return Ok(&bytes[2..]),
            [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00] | [0x92, 0x00] => bytes = cut(bytes, 4)?,
            [0x88, 0x64] => return ppp(cut(bytes, 8)?),
            _ => return Err(Skipped::NotIp),
        }
    }
    Err(Skipped::NotIp)
}

fn ppp(bytes: &[u8]) -> Result<&[u8], Skipped> {
    match bytes.get(..2).ok_or(Skipped::Cut)? {
        [0x00, 0x21 | 0x57] => Ok(&bytes[2..]),
        _ => Err(Skipped::NotIp),
    }
}

fn sll2(bytes: &[u8]) -> Result<(&[u8], Option<u32>), Skipped> {
    let header = bytes.get(..20).ok_or(Skipped::Cut)?;
    let interface = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    match [header[0], header[1]] {
        [0x08, 0x00] | [0x86, 0xdd] => Ok((&bytes[20..], Some(interface))),
        // A tag stands after the header.
        [0x81, 0x00] | [0x88, 0xa8] => ethernet(cut(bytes, 22)?).map(|p| (p, Some(interface))),
        _ => Err(Skipped::NotIp),
    }
}

fn family(bytes: &[u8]) -> Result<&[u8], Skipped> {
    let header = bytes.get(..4).ok_or(Skipped::Cut)?;
    let number = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    let number = number.min(number.swap_bytes());
    if FAMILIES.contains(&number) {
        Ok(&bytes[4..])
    } else {
        Err(Skipped::NotIp)
    }
}

/// Most tags of VLANs within each other.
const MOST_TAGS: usize = 8;
/// AF_INET everywhere, and AF_INET6 on Linux, NetBSD and OpenBSD, FreeBSD, macOS; of Windows 23.
const FAMILIES: [u32; 6] = [2, 10, 23, 24, 28, 30];
/// Number, name, and whether it is read.
const KNOWN: [(u16, &str, bool); 22] = [
    (0, "BSD loopback", true),
    (1, "Ethernet", true),
    (9, "PPP", false),
    (12, "raw IP", true),
    (14, "raw IP", true),
    (101, "raw IP", true),
    (105, "Wi-Fi", false),
    (108, "OpenBSD loopback", true),
    (113, "Linux cooked", true),
    (119, "Wi-Fi with Prism headers", false),
    (127, "Wi-Fi with radiotap headers", false),
    (163, "Wi-Fi with AVS headers", false),
    (187, "Bluetooth", false),
    (189, "USB", false),
    (192, "Wi-Fi with PPI headers", false),
    (195, "IEEE 802.15.4", false),
    (201, "Bluetooth", false),
    (220, "USB", false),
    (228, "IPv4", true),
    (229, "IPv6", true),
    (249, "USB", false),
    (276, "Linux cooked v2", true),
];
