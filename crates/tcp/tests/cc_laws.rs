//! Laws that every congestion control in the registry keeps under arbitrary sequences of events.

use tcpscape_base::{CaState, Duration, Stream, Time};
use tcpscape_tcp::cc::{self, AckSample, CaEvent, CongestionController, InAck, PktsAcked, RateSample, View, Window};

/// A connection that makes no sense, but whose counters move as a connection's do.
struct Chaos {
    rng: Stream,
    v: View,
    w: Window,
    cc: Box<dyn CongestionController>,
}

impl Chaos {
    fn new(name: &str, seed: u64) -> Chaos {
        let mut rng = Stream::new(seed, "chaos");
        // Counters start close to where they wrap, half of the time.
        let counter = |r: &mut Stream| if r.below(2) == 0 { 0 } else { u32::MAX - r.below(2_000) };
        let v = View {
            now: Time(u64::from(rng.next_u32()) * 1_000),
            jiffies: counter(&mut rng),
            hz: [100, 250, 1_000][rng.below(3) as usize],
            mss: [1, 536, 1448, 65_483][rng.below(4) as usize],
            min_rtt_us: u32::MAX,
            delivered: counter(&mut rng),
            lost: counter(&mut rng),
            lsndtime: counter(&mut rng),
            snd_nxt: 1,
            ..View::default()
        };
        let clamp = [u32::MAX, 1 << 30, 10_000, 64, 2, 1][rng.below(6) as usize];
        let mut c = Chaos { w: Window { clamp, ..Window::default() }, cc: cc::make(name, seed).unwrap(), rng, v };
        c.w.cwnd = c.w.cwnd.min(clamp);
        c.cc.init(&c.v, &mut c.w);
        c
    }

    /// Mostly small, sometimes as large as `most`.
    fn size(&mut self, most: u32) -> u32 {
        let bits = self.rng.below(33 - most.leading_zeros());
        self.rng.below(1 << bits.min(31)).min(most)
    }

    fn wait(&mut self) {
        let longest = if self.rng.below(50) == 0 { 20_000_000 } else { 20_000 };
        let us = u64::from(self.size(longest));
        let old = self.v.now;
        self.v.now += Duration::micros(us);
        let tick = 1_000_000_000 / u64::from(self.v.hz);
        self.v.jiffies = self.v.jiffies.wrapping_add((self.v.now.0 / tick - old.0 / tick) as u32);
        self.v.in_flight = self.size(2 * self.w.cwnd.min(1 << 20));
        self.v.packets_out = self.v.in_flight;
        self.v.max_packets_out = self.v.in_flight;
        self.v.is_cwnd_limited = self.rng.below(2) == 0;
        self.v.app_limited = if self.rng.below(4) == 0 { self.v.delivered.wrapping_add(self.v.in_flight).max(1) } else { 0 };
        self.v.wstamp_ns = self.v.now.0 + u64::from(self.size(1 << 30));
    }

    fn ack(&mut self) {
        let (n, losses) = (self.size(1 << 16), if self.rng.below(8) == 0 { self.size(1_000) } else { 0 });
        let rtt_us = if self.rng.below(8) == 0 { -1 } else { i64::from(self.size(5_000_000)) };
        let back = self.size(1 << 16);
        let (v, w) = (&mut self.v, &mut self.w);
        let prior_delivered = v.delivered.wrapping_sub(back);
        v.delivered = v.delivered.wrapping_add(n);
        v.delivered_mstamp = v.now.micros();
        v.lost = v.lost.wrapping_add(losses);
        v.snd_una += u64::from(n);
        v.snd_nxt = v.snd_una + u64::from(v.in_flight);
        if rtt_us >= 0 {
            v.srtt_us = (rtt_us as u32) << 3;
            v.min_rtt_us = v.min_rtt_us.min(rtt_us as u32);
        }
        self.cc.pkts_acked(v, w, &PktsAcked { pkts_acked: n, rtt_us, in_flight: v.in_flight });
        if self.cc.wants_in_ack() {
            let mut flag = || self.rng.below(2) == 0;
            self.cc.in_ack(v, w, InAck { slow_path: flag(), win_update: flag(), ece: flag() });
        }
        let valid = self.rng.below(8) > 0;
        let rate = RateSample {
            prior_delivered,
            prior_mstamp: 1,
            delivered: if valid { (n + back) as i32 } else { -1 },
            interval_us: if valid { i64::from(self.rng.below(2_000_000)) } else { -1 },
            rtt_us,
            losses,
            tx_in_flight: v.in_flight.saturating_add(n),
            lost: losses,
            acked_sacked: n,
            prior_in_flight: v.in_flight.saturating_add(n),
            is_app_limited: v.app_limited != 0,
            is_retrans: self.rng.below(8) == 0,
            is_ack_delayed: n == 1,
        };
        let may_raise = v.ca_state < CaState::Cwr && self.rng.below(8) > 0;
        self.cc.on_ack(v, w, &AckSample { acked: n, ack: v.snd_una, may_raise, rate });
        if std::mem::take(&mut self.w.enter_cwr) {
            assert!(may_raise, "a reduction already goes on");
            self.enter(CaState::Cwr);
        }
    }

    /// What the sender does to the window around a change of state.
    fn change_state(&mut self) {
        let new = [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss][self.rng.below(5) as usize];
        self.enter(new);
    }

    fn enter(&mut self, new: CaState) {
        let (v, w) = (&mut self.v, &mut self.w);
        if new >= CaState::Cwr && v.ca_state < CaState::Cwr {
            w.prior_cwnd = w.cwnd;
            w.ssthresh = self.cc.ssthresh(v, w);
        }
        self.cc.on_state(v, w, new);
        v.ca_state = new;
        match new {
            CaState::Loss => {
                w.cwnd = v.in_flight.saturating_add(1).min(w.clamp);
                w.cwnd_cnt = 0;
                self.cc.on_event(v, w, CaEvent::Loss);
            }
            CaState::Open if self.rng.below(2) == 0 => {
                w.cwnd = self.cc.undo(v, w).min(w.clamp);
                self.cc.on_event(v, w, CaEvent::CompleteCwr);
            }
            _ => {}
        }
    }

    fn step(&mut self) {
        self.wait();
        match self.rng.below(20) {
            0 => self.change_state(),
            1 => {
                self.cc.on_event(&self.v, &mut self.w, CaEvent::TxStart);
                self.v.lsndtime = self.v.jiffies;
            }
            2 => self.cc.on_event(&self.v, &mut self.w, CaEvent::CwndRestart),
            _ => self.ack(),
        }
    }
}

/// Runs `steps` steps for each controller and seed, and checks after each of them.
fn for_all(seeds: u64, steps: u32, check: impl Fn(&str, &Chaos)) {
    for entry in cc::REGISTRY {
        for seed in 0..seeds {
            let mut c = Chaos::new(entry.name, seed);
            for _ in 0..steps {
                c.step();
                check(entry.name, &c);
            }
        }
    }
}

#[test]
fn the_window_stays_between_one_and_the_clamp() {
    for_all(200, 1_000, |name, c| {
        assert!((1..=c.w.clamp).contains(&c.w.cwnd), "{name}: {:?}", c.w);
        assert!(c.w.ssthresh >= 1, "{name}: {:?}", c.w);
    });
}

#[test]
fn the_trace_shows_finite_numbers_and_bursts_hold_a_segment() {
    for_all(20, 300, |name, c| {
        assert!(c.cc.snapshot().iter().all(|(_, x)| x.is_finite()), "{name}");
        assert!(c.cc.min_tso_segs(&c.w) >= 1 && c.cc.sndbuf_expand() >= 2, "{name}");
        assert!(c.cc.owns_window() <= (c.w.pacing_rate < u64::MAX), "{name}: who owns the window must say how fast it goes");
    });
}

/// Whoever says that it does not react has the same window and rate before a recovery, in it and after it.
#[test]
fn who_does_not_react_to_loss_keeps_its_window_and_rate() {
    for e in cc::REGISTRY {
        let mut c = Chaos::new(e.name, 3);
        if c.cc.reacts_to_loss() {
            continue;
        }
        (c.v.mss, c.v.srtt_us, c.w.clamp) = (1448, 320_000, u32::MAX);
        let mut seen = vec![];
        for state in [CaState::Open, CaState::Recovery, CaState::Loss, CaState::Open] {
            c.w.ssthresh = c.cc.ssthresh(&c.v, &c.w);
            c.cc.on_state(&c.v, &mut c.w, state);
            c.v.ca_state = state;
            let rate = RateSample { losses: 5, rtt_us: 40_000, ..RateSample::default() };
            c.cc.on_ack(&c.v, &mut c.w, &AckSample { acked: 5, rate, ..AckSample::default() });
            seen.push((c.w.cwnd, c.w.pacing_rate));
        }
        assert!(seen.iter().all(|s| *s == seen[0]), "{}: {seen:?}", e.name);
    }
}

#[test]
fn the_same_events_give_the_same_windows() {
    for entry in cc::REGISTRY {
        let run = || {
            let mut c = Chaos::new(entry.name, 7);
            (0..2_000).map(|_| (c.step(), c.w.cwnd, c.w.ssthresh, c.w.pacing_rate)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run(), "{}", entry.name);
    }
}

#[test]
fn names_are_unique_and_answer_to_themselves() {
    for (i, e) in cc::REGISTRY.iter().enumerate() {
        assert_eq!(cc::make(e.name, 0).unwrap().name(), e.name);
        assert!(cc::REGISTRY[..i].iter().all(|o| o.name != e.name) && !e.about.is_empty());
    }
    assert!(cc::make("no such", 0).is_none());
}
