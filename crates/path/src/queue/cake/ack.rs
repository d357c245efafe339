//! CAKE's filter of ACKs: a pure ACK that a later one of the same flow makes superfluous leaves the queue.
//!
//! What it is: when an ACK comes, the one nearest the head that says nothing more (no data, no later number, no SACK block or
//! timestamp of its own) goes, if another such waits behind it; in the aggressive form it goes also if the new one follows directly.
//! Source: tc-cake(8), `ack-filter`.
//! How it differs: the flow's number stands for addresses and ports.
//! What it does not model: TCP options other than timestamps and SACK, which its segments do not have after the SYN.

use std::cmp::Ordering;
use tcpscape_base::wire::ahead;
use tcpscape_base::{Flags, Segment};

/// Signals of ECN, of which none may be lost.
fn signals(s: &Segment) -> u8 {
    s.flags.0 & (Flags::ECE.0 | Flags::CWR.0)
}

/// Which of two ACKs SACKs more; what the other does not contain counts as more, a DSACK too.
fn compare_sacks(old: &Segment, new: &Segment) -> Ordering {
    match (old.nsack, new.nsack) {
        (0, 0) => return Ordering::Equal,
        (0, _) => return Ordering::Less,
        (_, 0) => return Ordering::Greater,
        _ => {}
    }
    let contained = |(start, end): (u64, u64)| start >= old.ack && new.sacks().any(|(s, e)| s <= start && end <= e);
    let bytes = |s: &Segment| s.sacks().map(|(start, end)| end - start).sum::<u64>();
    if !old.sacks().all(contained) {
        return Ordering::Greater;
    }
    bytes(old).cmp(&bytes(new))
}

/// Whether `new` makes the pure ACK `old` superfluous.
fn covers(new: &Segment, old: &Segment) -> bool {
    let pure = old.len == 0 && old.flags.0 & !(Flags::ECE.0 | Flags::CWR.0) == Flags::ACK.0;
    if !pure || ahead(new.tsval, old.tsval) > 0 || ahead(new.tsecr, old.tsecr) > 0 || old.ack > new.ack {
        return false;
    }
    match compare_sacks(old, new) {
        Ordering::Greater => false,
        Ordering::Equal => old.ack != new.ack,
        Ordering::Less => true,
    }
}

/// Place of the ACK in `queue` (of the same flow, oldest first, the newest last) that its last makes superfluous.
pub(super) fn superfluous(queue: &[Option<&Segment>], aggressive: bool) -> Option<usize> {
    let (new, before) = queue.split_last()?;
    let new = (*new)?;
    if new.flags.has(Flags::SYN) || !new.flags.has(Flags::ACK) {
        return None;
    }
    // The first that is covered; it stays where what follows signals something else.
    let mut first: Option<(usize, u8)> = None;
    for (i, old) in before.iter().enumerate().filter_map(|(i, old)| Some((i, (*old)?))) {
        first = first.filter(|f| f.1 == signals(old));
        if covers(new, old) {
            match first {
                Some((place, _)) => return Some(place),
                None => first = Some((i, signals(old))),
            }
        }
    }
    first.filter(|&(i, s)| aggressive && i + 1 == before.len() && s == signals(new)).map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(n: u64) -> Segment {
        Segment { ack: n, flags: Flags::ACK, ..Default::default() }
    }
    fn filter(list: &[Segment], aggressive: bool) -> Option<usize> {
        superfluous(&list.iter().map(Some).collect::<Vec<_>>(), aggressive)
    }

    #[test]
    fn the_oldest_of_two_goes_and_the_only_one_when_aggressive() {
        let list = [ack(100), ack(200), ack(300)];
        assert_eq!(filter(&list, false), Some(0));
        assert_eq!(filter(&list[1..], false), None);
        assert_eq!(filter(&list[1..], true), Some(0));
        assert_eq!(filter(&[ack(100), ack(100), ack(100)], true), None, "duplicates count");
    }

    #[test]
    fn data_signals_and_sacks_stay() {
        let data = Segment { len: 10, ..ack(100) };
        assert_eq!(filter(&[data, ack(200)], true), None);
        let ece = Segment { flags: Flags::ACK.with(Flags::ECE), ..ack(100) };
        assert_eq!(filter(&[ece, ack(200)], true), None, "the signal would be lost");
        assert_eq!(filter(&[ece, ece, ack(200)], true), Some(0), "one of two is enough");
        let mut sacked = ack(100);
        sacked.push_sack((300, 400));
        assert_eq!(filter(&[sacked, ack(200)], true), None);
        let mut more = ack(100);
        more.push_sack((300, 500));
        assert_eq!(filter(&[sacked, more], true), Some(0));
        let later = Segment { tsval: 9, ..ack(100) };
        assert_eq!(filter(&[later, ack(200)], true), None);
    }
}
