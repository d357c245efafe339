//! A discipline at run time, and what it must know of a packet's body: how to cut it when segmentation offload made it larger than an MTU.

use super::patch::Patch;
use super::stats::{Cause, Meter, StageStats};
use tcpscape_base::{Packet, Segment, Time};

/// A queue discipline at run time. It asks nobody for the time.
pub trait Qdisc<B>: Send {
    /// Takes a packet, or drops it (and tells `freed`). False when there is no room for it, which a TCP on the same host
    /// learns; what an impairment takes away counts as taken.
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool;
    /// Gives the next packet that may leave at `now`.
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>>;
    /// The size of the packet that `dequeue(now)` would give. As in Linux, some queues take it out for that, and it stays the next
    /// one to leave whatever comes after: then whatever they decide on departure is decided here.
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32>;
    /// The size of the packet that leaves next, where looking at it changes nothing and nothing but its leaving changes it.
    fn head(&self) -> Option<u32> {
        None
    }
    /// When `dequeue` is worth trying; [`Time::ZERO`] for at once, [`Time::MAX`] for never without another packet. By default at once while
    /// there are packets.
    fn next_event(&self) -> Time {
        if self.packets() == 0 {
            Time::MAX
        } else {
            Time::ZERO
        }
    }
    /// The queue below, of one that holds no packets itself.
    fn below(&self) -> Option<&dyn Qdisc<B>> {
        None
    }
    /// Packets held, children included.
    #[inline]
    fn packets(&self) -> u64 {
        self.below().map_or(0, |q| q.packets())
    }
    /// Bytes held, children included.
    #[inline]
    fn bytes(&self) -> u64 {
        self.below().map_or(0, |q| q.bytes())
    }
    /// Whether a packet that enters no longer counts against its sender's queue limit (TSQ).
    fn orphans(&self) -> bool {
        self.below().is_some_and(|q| q.orphans())
    }
    /// `tc qdisc change`: what is queued keeps its due time. `depth` 0 is this queue, 1 its child. By default nothing
    /// of it can change.
    fn change(&mut self, _now: Time, _depth: usize, _patch: &Patch) {}
    /// The values that `change` would replace.
    fn current(&self, _depth: usize) -> Patch {
        Patch::default()
    }
    /// Appends this queue's account, then its children's.
    fn report(&self, out: &mut Vec<StageStats>);
}

/// A queue discipline of any kind.
pub type AnyQdisc<B> = Box<dyn Qdisc<B>>;

impl<B> Qdisc<B> for AnyQdisc<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        (**self).enqueue(now, p, freed)
    }
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        (**self).dequeue(now, freed)
    }
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        (**self).peek(now, freed)
    }
    fn head(&self) -> Option<u32> {
        (**self).head()
    }
    fn next_event(&self) -> Time {
        (**self).next_event()
    }
    fn below(&self) -> Option<&dyn Qdisc<B>> {
        (**self).below()
    }
    fn packets(&self) -> u64 {
        (**self).packets()
    }
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }
    fn orphans(&self) -> bool {
        (**self).orphans()
    }
    fn change(&mut self, now: Time, depth: usize, patch: &Patch) {
        (**self).change(now, depth, patch);
    }
    fn current(&self, depth: usize) -> Patch {
        (**self).current(depth)
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        (**self).report(out);
    }
}

/// A packet with the time when it came.
pub type Aged<B> = (Time, Packet<B>);

/// What queues let go of, for those who want to know: what the sender's first queue has sent or dropped (TSQ), and what any queue drops.
#[derive(Debug, Default)]
pub struct Freed {
    pub(crate) on: bool,
    pub(crate) list: Vec<(u32, u32, u64)>,
    /// Whether drops are written down; then where and when.
    pub(crate) watch: bool,
    pub(crate) stage: usize,
    pub(crate) now: Time,
    pub(crate) drops: Vec<Dropped>,
}

/// A packet that a queue dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// When.
    pub at: Time,
    /// In which stage.
    pub stage: usize,
    /// Why.
    pub cause: Cause,
    /// The packet's number ([`Packet::id`]).
    pub id: u64,
    /// MTU-sized packets inside.
    pub segs: u16,
}

impl Freed {
    /// What follows is of this stage at this time; `on` is whether departures are noted.
    #[inline]
    pub(crate) fn begin(&mut self, on: bool, stage: usize, now: Time) {
        self.on = on;
        if self.watch {
            (self.stage, self.now) = (stage, now);
        }
    }
    /// A packet left memory.
    #[inline]
    pub fn note<B>(&mut self, p: &Packet<B>) {
        if self.on {
            self.list.push((p.flow, p.size, p.id));
        }
    }
    /// A packet is dropped.
    #[inline]
    pub fn dropped<B>(&mut self, cause: Cause, p: &Packet<B>) {
        self.note(p);
        if self.watch {
            self.drops.push(Dropped { at: self.now, stage: self.stage, cause, id: p.id, segs: p.segs });
        }
    }
}

/// The account of a queue whose packets lie in its child: they come and go together, so the delay is the child's.
pub(crate) fn report_parent<B>(meter: &Meter, name: &str, child: &dyn Qdisc<B>, out: &mut Vec<StageStats>) {
    let mine = out.len();
    out.push(meter.report(name, child.packets(), child.bytes()));
    child.report(out);
    out[mine].delay = out[mine + 1].delay;
    // What a child cuts on its way makes it hold more, without asking its parent.
    out[mine].peak_packets = out[mine].peak_packets.max(out[mine + 1].peak_packets);
    out[mine].peak_bytes = out[mine].peak_bytes.max(out[mine + 1].peak_bytes);
    out[mine].reordered = out[mine + 1].reordered;
    out[mine + 1..].iter_mut().for_each(|s| s.depth += 1);
}

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
