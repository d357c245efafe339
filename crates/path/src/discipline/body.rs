//! What a packet carries, as far as a queue must know: how to cut it when segmentation offload made it larger than an MTU.

use tcpscape_base::{Packet, Segment};

/// The body of a packet. Only offloaded packets (`segs > 1`) are ever cut; other bodies can take the defaults.
pub trait Body: Clone + Send + 'static {
    /// Bytes of payload.
    fn payload(&self) -> u32 {
        0
    }
    /// Part `index` of `of` equal parts (the last may be shorter).
    fn split(&self, index: u32, of: u32) -> Self {
        let _ = (index, of);
        self.clone()
    }
    /// The number of the packet that carries this part of packet `whole`: the same, unless whoever sends packets numbers their parts.
    fn number(&self, whole: u64) -> u64 {
        whole
    }
    /// The TCP segment, if it is one.
    fn segment(&self) -> Option<&Segment> {
        None
    }
}

impl Body for () {}
impl Body for u32 {}
impl Body for u64 {}
impl Body for usize {}
impl Body for Vec<u8> {}

impl Body for Segment {
    #[inline]
    fn payload(&self) -> u32 {
        self.len
    }
    #[inline]
    fn split(&self, index: u32, of: u32) -> Segment {
        self.part(index, self.len.div_ceil(of.max(1)))
    }
    fn segment(&self) -> Option<&Segment> {
        Some(self)
    }
}

/// The MTU-sized packets inside an offloaded one, each with its own headers: `size` counts one header a segment.
#[inline]
pub fn segments<B: Body>(p: &Packet<B>) -> impl Iterator<Item = Packet<B>> + '_ {
    let of = u32::from(p.segs.max(1));
    let payload = p.body.payload();
    let header = p.size.saturating_sub(payload) / of;
    let last = p.size - payload - header * (of - 1);
    (0..of).map(move |i| {
        let body = p.body.split(i, of);
        let head = if i + 1 == of { last } else { header };
        Packet {
            id: body.number(p.id),
            flow: p.flow,
            hosts: p.hosts,
            size: head + body.payload(),
            segs: 1,
            ecn: p.ecn,
            edt: p.edt,
            corrupt: p.corrupt,
            body,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Flags;

    #[test]
    fn three_segments_of_4000_bytes_are_1334_1334_1332() {
        let body = Segment { seq: 100, len: 4000, flags: Flags::ACK.with(Flags::PSH).with(Flags::CWR), ..Default::default() };
        let p = Packet { size: 4000 + 3 * 66, segs: 3, body, ..Default::default() };
        let parts: Vec<_> = segments(&p).collect();
        assert_eq!(
            parts.iter().map(|p| (p.body.seq, p.body.len, p.size)).collect::<Vec<_>>(),
            [(100, 1334, 1400), (1434, 1334, 1400), (2768, 1332, 1398)]
        );
        assert!(parts[0].body.flags.has(Flags::CWR) && !parts[0].body.flags.has(Flags::PSH));
        assert!(!parts[2].body.flags.has(Flags::CWR) && parts[2].body.flags.has(Flags::PSH));
        assert_eq!(parts.iter().map(|p| p.size).sum::<u32>(), p.size);
    }
}
