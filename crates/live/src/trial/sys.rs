//! Readings of clocks that the standard library does not offer.

#![allow(unsafe_code)]

use tcpscape_testbed::sys;

/// Readings of which the best is taken.
const TRIES: usize = 5;

/// The wall clock minus the monotonic clock, ns, and how uncertain that is: the time between two readings of the latter. The best of several
/// readings, since this thread may be interrupted between them.
pub fn offset() -> (i64, u64) {
    let one = |_| {
        let [before, wall, after] = [sys::now, sys::wall, sys::now].map(|clock: fn() -> u64| clock() as i64);
        (wall - (before + after) / 2, (after - before).unsigned_abs())
    };
    (0..TRIES).map(one).min_by_key(|&(_, uncertain)| uncertain).unwrap_or_default()
}

/// The timer slack of a thread that asks for `ns`, ns; None of one with real-time priority, which has none. Linux: prctl(2) PR_GET_TIMERSLACK.
pub fn slack_of_a_thread(ns: u64) -> Option<u64> {
    let read = move || {
        sys::timer_slack(ns);
        // SAFETY: no arguments that are pointers.
        let (policy, slack) = unsafe { (libc::sched_getscheduler(0), libc::prctl(libc::PR_GET_TIMERSLACK)) };
        let is_ordinary = policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_OTHER;
        u64::try_from(slack).ok().filter(|_| is_ordinary)
    };
    std::thread::spawn(read).join().unwrap_or(None)
}
