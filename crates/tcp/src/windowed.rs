//! The smallest or the largest value of a sliding window of time, from three candidates instead of all samples.
//!
//! **What it is.** A filter of constant size: the best sample of the window, a second best from a later part of it, and a third best
//! from a part later still. When the best grows too old, the others move up.
//! **Source.** Kathleen Nichols' windowed filter, as Chromium's QUICHE documents it (`windowed_filter.h`, BSD-3-Clause; its notice is in
//! `NOTICE`): the second best is taken once a quarter of the window has passed without a better sample, the third best once half has; both count
//! from the best, not from the second best.
//! **How it differs.** Two candidates are told apart by their times, not by their values: equal values at different times are two.
//! **What it does not model.** Windows that become shorter between two samples are judged at the next sample only.

use std::marker::PhantomData;

/// Which of two values is the better one.
pub(crate) trait Order {
    /// A value that every sample is at least as good as.
    const WORST: u32;
    /// Whether `value` is at least as good as `other`.
    fn is_as_good(value: u32, other: u32) -> bool;
}

/// The smallest value is the best.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Smallest {}

/// The largest value is the best.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Largest {}

impl Order for Smallest {
    const WORST: u32 = u32::MAX;
    #[inline]
    fn is_as_good(value: u32, other: u32) -> bool {
        value <= other
    }
}

impl Order for Largest {
    const WORST: u32 = 0;
    #[inline]
    fn is_as_good(value: u32, other: u32) -> bool {
        value >= other
    }
}

/// A clock or counter that never goes back, in any unit; it may wrap.
pub(crate) trait Clock: Copy + PartialOrd {
    /// Zero.
    const ZERO: Self;
    /// What has passed from `earlier` to this time.
    fn since(self, earlier: Self) -> Self;
    /// This length of time divided by 2^`shift`.
    fn shifted(self, shift: u32) -> Self;
}

impl Clock for u32 {
    const ZERO: u32 = 0;
    #[inline]
    fn since(self, earlier: u32) -> u32 {
        self.wrapping_sub(earlier)
    }
    #[inline]
    fn shifted(self, shift: u32) -> u32 {
        self >> shift
    }
}

impl Clock for u64 {
    const ZERO: u64 = 0;
    #[inline]
    fn since(self, earlier: u64) -> u64 {
        self.wrapping_sub(earlier)
    }
    #[inline]
    fn shifted(self, shift: u32) -> u64 {
        self >> shift
    }
}

/// The smallest value of a window; `u32::MAX` before the first sample. Times are 64 bits wide.
pub(crate) type WindowedMin = Windowed<Smallest, u64>;
/// The largest value of a window; 0 before the first sample. Times are a counter of 32 bits that may wrap.
pub(crate) type WindowedMax = Windowed<Largest, u32>;

/// The filter; `O` says what is best, `T` is the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windowed<O, T> {
    /// The best first, then the later and worse ones. No sample that came after a candidate was as good as it.
    candidates: [Candidate<T>; 3],
    order: PhantomData<O>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate<T> {
    time: T,
    value: u32,
}

impl<O: Order, T: Clock> Default for Windowed<O, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Order, T: Clock> Windowed<O, T> {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Windowed { candidates: [Candidate { time: T::ZERO, value: O::WORST }; 3], order: PhantomData }
    }

    /// The best value of the window, as of the last sample.
    #[inline]
    pub fn get(&self) -> u32 {
        self.candidates[0].value
    }

    /// Takes `value` at `time`; the window is as long as `window`, in the unit of `time`.
    #[inline]
    pub fn update(&mut self, window: T, time: T, value: u32) {
        let sample = Candidate { time, value };
        if O::is_as_good(value, self.get()) {
            self.candidates = [sample; 3];
        } else {
            self.take_worse(window, sample);
        }
    }

    /// Takes a sample that is not as good as the best.
    fn take_worse(&mut self, window: T, sample: Candidate<T>) {
        let age = |c: &Candidate<T>| sample.time.since(c.time);
        let [best, second, third] = &mut self.candidates;
        if age(third) > window {
            self.candidates = [sample; 3];
            return;
        }
        // It replaces the candidates that it is as good as: it stays in the window for longer than they do.
        if O::is_as_good(sample.value, third.value) {
            *third = sample;
            if O::is_as_good(sample.value, second.value) {
                *second = sample;
            }
        }
        if age(best) > window {
            self.drop_best(window, sample);
        } else if second.time == best.time && age(best) > window.shifted(2) {
            (*second, *third) = (sample, sample);
        } else if third.time == second.time && age(best) > window.shifted(1) {
            *third = sample;
        }
    }

    /// The best is too old: the others move up, by two places if the second is too old as well. The third never is.
    fn drop_best(&mut self, window: T, sample: Candidate<T>) {
        let [_, second, third] = self.candidates;
        let is_second_old = sample.time.since(second.time) > window;
        self.candidates = if is_second_old { [third, sample, sample] } else { [second, third, sample] };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Stream;

    /// A window of 100: 50 at time 0 is the smallest until it is older than that.
    #[test]
    fn the_second_best_is_of_the_second_quarter_and_the_third_of_the_second_half() {
        let mut f = WindowedMin::new();
        assert_eq!(f.get(), u32::MAX);
        let values = |f: &WindowedMin| f.candidates.map(|c| c.value);
        f.update(100, 0, 50);
        f.update(100, 20, 51);
        assert_eq!(values(&f), [50, 50, 50], "within the first quarter nothing else is kept");
        f.update(100, 25, 52);
        assert_eq!(values(&f), [50, 50, 50], "a quarter exactly is not more than a quarter");
        f.update(100, 26, 60);
        assert_eq!(values(&f), [50, 60, 60]);
        f.update(100, 40, 70);
        assert_eq!(values(&f), [50, 60, 60]);
        f.update(100, 51, 70);
        assert_eq!(values(&f), [50, 60, 70]);
        f.update(100, 60, 65);
        assert_eq!(values(&f), [50, 60, 65], "a better third best");
        f.update(100, 61, 55);
        assert_eq!(values(&f), [50, 55, 55], "better than both");
        f.update(100, 100, 80);
        assert_eq!(values(&f), [50, 55, 80], "the third is of the second half");
        f.update(100, 101, 90);
        assert_eq!(values(&f), [55, 80, 90], "50 is too old");
    }

    #[test]
    fn as_good_a_sample_replaces_the_best_and_makes_it_young() {
        let mut f = WindowedMin::new();
        f.update(100, 0, 50);
        f.update(100, 90, 50);
        f.update(100, 190, 60);
        assert_eq!(f.get(), 50);
        f.update(100, 191, 60);
        assert_eq!(f.get(), 60);
    }

    #[test]
    fn after_a_gap_longer_than_the_window_only_the_new_sample_counts() {
        let mut f = WindowedMax::new();
        assert_eq!(f.get(), 0);
        f.update(10, 0, 500);
        f.update(10, 3, 400);
        f.update(10, 100, 7);
        assert_eq!(f.candidates.map(|c| c.value), [7; 3]);
    }

    /// Best and second best of times 0 and 3, a sample at time 14: both are older than 10; the third, of time 6, is the largest left.
    #[test]
    fn two_candidates_may_be_too_old_at_once() {
        let mut f = WindowedMax::new();
        [(0, 100), (3, 90), (6, 80), (14, 10)].into_iter().for_each(|(t, x)| f.update(10, t, x));
        assert_eq!(f.candidates.map(|c| c.value), [80, 10, 10]);
    }

    #[test]
    fn the_maximum_expires_and_runners_up_take_over() {
        let mut f = WindowedMax::new();
        f.update(10, 0, 100);
        let seen: Vec<u32> = (1..=24)
            .map(|t| {
                f.update(10, t, 90 - t);
                f.get()
            })
            .collect();
        // 100 holds to age 10; then the 87 of t = 3, the first of the second quarter, to t = 13; then the 84 of t = 6.
        assert_eq!((&seen[..10], seen[10], seen[12], seen[13]), (&[100; 10][..], 87, 87, 84));
        assert!(seen.windows(2).all(|p| p[1] <= p[0]));
        f.update(10, 24, 200);
        assert_eq!(f.get(), 200);
    }

    #[test]
    fn a_counter_may_wrap() {
        let mut f = WindowedMax::new();
        f.update(10, u32::MAX - 1, 100);
        f.update(10, 2, 50);
        assert_eq!(f.get(), 100);
        f.update(10, 9, 40);
        assert_eq!(f.get(), 50, "11 later 100 is too old");
    }

    /// Against all samples of the window: what it gives is one of them, and no sample that came after that one is as good. So it is between
    /// the true best and the newest sample. Nearly always it is the true best: what is forgotten is at most what came shortly after a better one.
    #[test]
    fn it_is_a_sample_of_the_window_that_no_later_one_equals_and_mostly_the_best() {
        const WINDOW: u64 = 1_000;
        let (mut exact, mut updates) = (0, 0);
        for seed in 0..300 {
            let mut random = Stream::new(seed, "windowed");
            let (mut smallest, mut largest) = (WindowedMin::new(), Windowed::<Largest, u64>::new());
            let (mut samples, mut now) = (Vec::new(), 0);
            for _ in 0..400 {
                now += u64::from(1 + random.below(if seed % 2 == 0 { 60 } else { 900 }));
                let value = 1_000 + random.below(1 + 100 * (seed as u32 % 50));
                samples.push((now, value));
                smallest.update(WINDOW, now, value);
                largest.update(WINDOW, now, value);
                let within = || samples.iter().filter(|s| now - s.0 <= WINDOW);
                let last = |x: u32| samples.iter().rposition(|s| s.1 == x && now - s.0 <= WINDOW).expect("a sample of the window");
                assert!(samples[last(smallest.get())..].iter().all(|s| s.1 >= smallest.get()), "seed {seed}, time {now}");
                assert!(samples[last(largest.get())..].iter().all(|s| s.1 <= largest.get()), "seed {seed}, time {now}");
                exact += u32::from(within().map(|s| s.1).min() == Some(smallest.get()));
                exact += u32::from(within().map(|s| s.1).max() == Some(largest.get()));
                updates += 2;
            }
        }
        assert!(exact * 10 >= updates * 9, "{exact} of {updates}");
    }
}
