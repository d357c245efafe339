//! What a bottleneck's queue leaves of measured delays: the inner loop of a fit that tries many rates and bursts.
//!
//! Source: python/tcpscape/findings/diagnosis/path/bottleneck.py, which states the queue and says what is looked for; each operation is the one that
//! NumPy would do there, in its order, so that both agree to the bit.

use std::cmp::Ordering;
use std::sync::Arc;

/// Delays of packets, and what the delay that a queue gave each of them follows from. Times in ms, sizes in bytes, all finite.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// When the packets came at which the queue may have been empty, in order.
    pub begins: Vec<f64>,
    /// The bytes that came before each of them.
    pub before: Vec<f64>,
    /// Of each packet whose delay is known, the last of the places in `begins` up to it.
    pub begin: Vec<usize>,
    /// These packets.
    pub packets: Arc<Packets>,
}

/// Packets whose delay was measured.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    /// When each came to the queue, less the delay before it.
    pub at: Vec<f64>,
    /// When it was sent.
    pub sent: Vec<f64>,
    /// Bytes up to its end.
    pub end: Vec<f64>,
    /// The measured delay, plus any constant.
    pub delay: Vec<f64>,
    /// Where each window of packets that share a level ends; the last one is their number.
    pub windows: Vec<usize>,
}

/// Memory that one evaluation after the other uses.
#[derive(Debug, Default)]
pub struct Scratch {
    begins: Vec<f64>,
    left: Vec<f64>,
    sorted: Vec<f64>,
}

impl Delays {
    /// Whether the columns belong together: as long as each other, every packet's begin exists, and the windows, none of them empty, cover the packets.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let (count, p) = (self.begin.len(), &self.packets);
        let ends = std::iter::once(0).chain(p.windows.iter().copied());
        self.begins.len() == self.before.len()
            && [&p.at, &p.sent, &p.end, &p.delay].iter().all(|x| x.len() == count)
            && self.begin.iter().all(|&i| i < self.begins.len())
            && ends.zip(&p.windows).all(|(from, &to)| from < to)
            && p.windows.last().copied().unwrap_or(0) == count
    }

    /// The same for rates up to `rate` alone, Mbit/s: packets that wait for others at that rate do at any lower one, and begin no busy time.
    #[must_use]
    pub fn up_to(&self, rate: f64) -> Delays {
        let per_byte = 8e-3 / rate;
        let mut latest = f64::NEG_INFINITY;
        let (mut begins, mut before, mut last) = (Vec::new(), Vec::new(), Vec::with_capacity(self.begins.len()));
        for (&at, &bytes) in self.begins.iter().zip(&self.before) {
            let level = at - bytes * per_byte;
            if level >= latest {
                begins.push(at);
                before.push(bytes);
            }
            latest = larger(latest, level);
            last.push(begins.len() - 1);
        }
        Delays { begins, before, begin: self.begin.iter().map(|&i| last[i]).collect(), packets: Arc::clone(&self.packets) }
    }

    /// Mean absolute deviation, ms, of what a queue of `rate` Mbit/s and `burst` bytes leaves of the delays, from the median of each window; of
    /// each at most `cap`. NaN without packets.
    pub fn deviation(&self, rate: f64, burst: f64, cap: f64, scratch: &mut Scratch) -> f64 {
        self.leave(rate, burst, scratch);
        let mut from = 0;
        for &to in &self.packets.windows {
            let part = &mut scratch.left[from..to];
            scratch.sorted.clear();
            scratch.sorted.extend_from_slice(part);
            let middle = median(&mut scratch.sorted);
            for x in part {
                *x = smaller((*x - middle).abs(), cap);
            }
            from = to;
        }
        sum(&scratch.left) / scratch.left.len() as f64
    }

    /// Puts into `scratch.left` the delays without the queue's.
    fn leave(&self, rate: f64, burst: f64, scratch: &mut Scratch) {
        let per_byte = 8e-3 / rate;
        let credit = burst * per_byte;
        let mut latest = f64::NEG_INFINITY;
        scratch.begins.clear();
        scratch.begins.extend(self.begins.iter().zip(&self.before).map(|(at, before)| {
            latest = larger(latest, at - before * per_byte);
            latest
        }));
        let (count, p) = (self.begin.len(), &self.packets);
        scratch.left.resize(count, 0.0);
        let (begin, at, sent) = (&self.begin[..count], &p.at[..count], &p.sent[..count]);
        let (end, delay, left) = (&p.end[..count], &p.delay[..count], &mut scratch.left[..count]);
        for i in 0..count {
            let finish = scratch.begins[begin[i]] + end[i] * per_byte;
            left[i] = delay[i] - (larger(finish - credit - at[i], 0.0) + at[i] - sent[i]);
        }
    }
}

/// The larger one; an instruction, where `f64::max` asks about NaN.
fn larger(a: f64, b: f64) -> f64 {
    if b > a {
        b
    } else {
        a
    }
}

fn smaller(a: f64, b: f64) -> f64 {
    if b < a {
        b
    } else {
        a
    }
}

/// The median of at least one value, whose order changes.
fn median(x: &mut [f64]) -> f64 {
    let count = x.len();
    let (below, &mut high, _) = x.select_nth_unstable_by(count / 2, order);
    let low = if count % 2 == 1 { high } else { below.iter().copied().fold(f64::NEG_INFINITY, larger) };
    (low + high) / 2.0
}

fn order(a: &f64, b: &f64) -> Ordering {
    if a < b {
        Ordering::Less
    } else if a > b {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// Values that NumPy adds one after the other, eight sums beside each other, before it halves the rest.
const BLOCK: usize = 128;

/// The sum, rounded as NumPy rounds it: pairwise.
fn sum(x: &[f64]) -> f64 {
    if x.len() < 8 {
        return x.iter().sum();
    }
    if x.len() > BLOCK {
        let half = x.len() / 2;
        let (a, b) = x.split_at(half - half % 8);
        return sum(a) + sum(b);
    }
    let mut sums = [0.0; 8];
    let eights = x.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for (s, x) in sums.iter_mut().zip(eight) {
            *s += x;
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    rest.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |s, x| s + x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packets of 1250 bytes at 10 Mbit/s take 1 ms each: the second one waits for the first and leaves after 2 ms, the third met an empty queue.
    fn three() -> Delays {
        let at = vec![0.0, 0.0, 10.0];
        let packets = Packets {
            at: at.clone(),
            sent: at.clone(),
            end: vec![1250.0, 2500.0, 3750.0],
            delay: vec![51.0, 52.0, 51.0],
            windows: vec![3],
        };
        Delays { begins: at, before: vec![0.0, 1250.0, 2500.0], begin: vec![0, 1, 2], packets: Arc::new(packets) }
    }

    fn changed(change: impl FnOnce(&mut Packets)) -> Delays {
        let mut d = three();
        change(Arc::make_mut(&mut d.packets));
        d
    }

    #[test]
    fn the_right_rate_leaves_nothing() {
        assert!(three().is_whole());
        assert!(three().deviation(10.0, 0.0, f64::INFINITY, &mut Scratch::default()) < 1e-12);
    }

    #[test]
    fn another_rate_or_a_burst_leaves_what_it_changes() {
        let mut scratch = Scratch::default();
        let mut of = |rate, burst, cap| three().deviation(rate, burst, cap, &mut scratch);
        assert!((of(20.0, 0.0, f64::INFINITY) - 0.5 / 3.0).abs() < 1e-12, "waits of 0.5, 1, 0.5 ms leave 50.5, 51, 50.5");
        assert!((of(10.0, 1250.0, f64::INFINITY) - 0.0).abs() < 1e-12, "a credit of one packet: 0, 1, 0 ms of wait");
        assert!((of(20.0, 0.0, 0.3) - 0.1).abs() < 1e-12, "the one that is off counts 0.3 ms");
    }

    #[test]
    fn each_window_has_a_level() {
        let d = changed(|p| (p.delay[2], p.windows) = (151.0, vec![2, 3]));
        assert!(d.deviation(10.0, 0.0, f64::INFINITY, &mut Scratch::default()) < 1e-12);
    }

    #[test]
    fn a_packet_that_waits_at_a_rate_begins_nothing_at_lower_ones() {
        let d = three().up_to(20.0);
        assert_eq!((&d.begins[..], &d.before[..], &d.begin[..]), (&[0.0, 10.0][..], &[0.0, 2500.0][..], &[0, 0, 1][..]));
        assert!(d.is_whole());
        for rate in [5.0, 10.0, 19.0] {
            let [one, other] = [&three(), &d].map(|d| d.deviation(rate, 100.0, f64::INFINITY, &mut Scratch::default()));
            assert_eq!(one.to_bits(), other.to_bits());
        }
    }

    #[test]
    fn what_is_not_whole_is_seen() {
        for windows in [vec![2], vec![1, 1, 3], vec![]] {
            assert!(!changed(|p| p.windows = windows).is_whole());
        }
        assert!(!changed(|p| p.sent.truncate(2)).is_whole());
        assert!(!Delays { begin: vec![0, 1, 3], ..three() }.is_whole());
    }

    #[test]
    fn a_median_of_an_even_number_is_between_two() {
        assert!((median(&mut [4.0, 1.0, 9.0, 2.0]) - 3.0).abs() < 1e-12);
        assert!((median(&mut [9.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
    }
}
