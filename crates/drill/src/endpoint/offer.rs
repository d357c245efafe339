//! What the two SYNs offer and both sides then have.
//!
//! Source: RFC 9293 §3.7.1 (the largest segment), RFC 7323 §1.3 and RFC 2018 §2 (an option that only one side has is not used).

use crate::settings::Settings;
use crate::wire::{Packet, TcpOption};

/// What a SYN offers, or what both sides have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offer {
    pub mss: u32,
    pub scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
}

impl Offer {
    /// What the host's own SYN offers.
    pub fn own(settings: &Settings, buffers: Buffers) -> Offer {
        let most = settings.mtu - HEADERS;
        let mss = if buffers.segment > 0 { buffers.segment.clamp(LEAST_MSS, most) } else { most };
        Offer { mss, scale: settings.window_scaling.then_some(0), sack: settings.sack, timestamps: settings.timestamps }
    }
    /// The peer's, in its SYN.
    pub fn of(p: &Packet) -> Offer {
        let mut offer = Offer { mss: DEFAULT_MSS, ..Offer::default() };
        for option in p.options() {
            match *option {
                TcpOption::Mss(mss) => offer.mss = mss.max(LEAST_MSS),
                TcpOption::WindowScale(shift) => offer.scale = Some(shift.min(14)),
                TcpOption::SackOk => offer.sack = true,
                TcpOption::Timestamps { .. } => offer.timestamps = true,
                _ => {}
            }
        }
        offer
    }
    /// What both have.
    pub fn and(self, own: Offer) -> Offer {
        Offer {
            mss: self.mss.min(own.mss),
            scale: self.scale.filter(|_| own.scale.is_some()),
            sack: self.sack && own.sack,
            timestamps: self.timestamps && own.timestamps,
        }
    }
    /// Payload of a full segment, bytes.
    pub fn payload(self) -> u32 {
        self.mss - if self.timestamps { TIMESTAMPS } else { 0 }
    }
}

/// Sizes of buffers that an application asks for before a connection, bytes; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffers {
    pub send: u32,
    pub receive: u32,
    pub nodelay: bool,
    /// `TCP_MAXSEG`.
    pub segment: u32,
}

/// Bytes of IPv4's and TCP's headers.
pub(super) const HEADERS: u32 = 40;
/// Bytes of the timestamp option with its padding.
pub(super) const TIMESTAMPS: u32 = 12;
/// Of a SYN without the option (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;
/// No smaller segment size is believed, bytes.
const LEAST_MSS: u32 = 48;
