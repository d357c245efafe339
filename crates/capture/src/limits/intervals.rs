//! The list of results: adjacent times of one cause are one interval, and when the list is full, short ones give way to their neighbours.

use super::Cause;

/// Frames that prove an interval; 0 fills what is left.
pub type Frames = [u64; 4];

/// A time during which one cause held the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its begin, ns since the capture's first packet.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// The cause.
    pub cause: Cause,
    /// Numbers of the frames that prove it: departures and the ACKs that ended its first and its last gap.
    pub frames: Frames,
}

/// Intervals in the order of time, at most as many as it was made for.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    list: Vec<Interval>,
    most: usize,
    /// Intervals shorter than this belong to their neighbours, ns; grows when the list is full.
    least: u64,
}

impl Intervals {
    /// An empty list of at most `most` intervals.
    pub(super) fn new(most: usize) -> Intervals {
        Intervals { list: Vec::new(), most: most.max(4), least: 0 }
    }

    /// Adds a time that begins where the last one ended, or later.
    pub(super) fn push(&mut self, from: u64, to: u64, cause: Cause, frames: Frames) {
        if to <= from {
            return;
        }
        match self.list.last_mut() {
            Some(last) if last.cause == cause && from <= last.to.saturating_add(self.least) => extend(last, to, frames),
            Some(last) if to - from < self.least => last.to = to,
            _ => self.list.push(Interval { from, to, cause, frames }),
        }
        while self.list.len() > self.most {
            self.thin();
        }
    }

    /// Bytes of memory beside its own.
    pub(super) fn heap(&self) -> usize {
        self.list.capacity() * size_of::<Interval>()
    }

    /// From now on at most so many.
    pub(super) fn bound(&mut self, most: usize) {
        self.most = most.max(4);
        while self.list.len() > self.most {
            self.thin();
        }
    }

    /// What there is.
    pub(super) fn finish(self) -> Vec<Interval> {
        self.list
    }

    /// Halves the list at least: doubles the least length, and joins what is shorter to what came before it.
    fn thin(&mut self) {
        let span = self.list.last().map_or(0, |l| l.to) - self.list[0].from;
        self.least = (2 * self.least).max(span / self.most as u64).max(1);
        let mut kept: Vec<Interval> = Vec::with_capacity(self.most);
        for i in self.list.drain(..) {
            match kept.last_mut() {
                Some(last) if last.cause == i.cause || i.to - i.from < self.least => {
                    last.to = i.to;
                    if last.cause == i.cause {
                        last.frames = joined(last.frames, i.frames);
                    }
                }
                _ => kept.push(i),
            }
        }
        self.list = kept;
    }
}

/// A list of at most so many intervals, in which what is short belongs to its neighbours.
pub fn thinned(list: Vec<Interval>, most: usize) -> Vec<Interval> {
    let mut intervals = Intervals { list, most, least: 0 };
    intervals.bound(most);
    intervals.list.shrink_to_fit();
    intervals.finish()
}

fn extend(last: &mut Interval, to: u64, frames: Frames) {
    last.to = to;
    last.frames = joined(last.frames, frames);
}

/// The first two frames of the first and the last two of the second.
fn joined(a: Frames, b: Frames) -> Frames {
    let tail = |f: Frames| if f[2] != 0 { [f[2], f[3]] } else { [f[0], f[1]] };
    let [c, d] = tail(b);
    [a[0], a[1], c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_cause_are_one_interval_with_the_frames_of_both_ends() {
        let mut list = Intervals::new(10);
        list.push(0, 5, Cause::Pacing, [1, 2, 0, 0]);
        list.push(5, 9, Cause::Pacing, [3, 4, 0, 0]);
        list.push(9, 9, Cause::Recovery, [5, 0, 0, 0]);
        list.push(9, 12, Cause::Application, [6, 7, 0, 0]);
        let all = list.finish();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], Interval { from: 0, to: 9, cause: Cause::Pacing, frames: [1, 2, 3, 4] });
        assert_eq!((all[1].from, all[1].to), (9, 12));
    }

    #[test]
    fn a_full_list_keeps_what_is_long_and_covers_all_the_time() {
        let mut list = Intervals::new(16);
        let causes = [Cause::Application, Cause::CongestionWindow];
        let mut t = 0;
        for k in 0..10_000u64 {
            let length = if k % 100 == 99 { 5_000 } else { 10 };
            list.push(t, t + length, causes[(k % 2) as usize], [k + 1, 0, 0, 0]);
            t += length;
        }
        let all = list.finish();
        assert!(all.len() <= 16, "{}", all.len());
        assert_eq!((all[0].from, all.last().expect("one").to), (0, t));
        assert!(all.windows(2).all(|w| w[0].to == w[1].from));
    }
}
