//! A congestion control in a connection whose network does anything at all, in any order; the sender around it keeps to its rules.
//!
//! What must hold after each event, with any parameters: the window is between one packet and its clamp, the threshold at least one, the
//! pacing rate above 0, and the numbers of the trace are finite. A panic, an overflow or a division by zero is a failure by itself.

use crate::choices::Choices;
use std::collections::BTreeMap;
use tcpscape_base::{CaState, Duration, Time};
use tcpscape_tcp::cc::{
    self, AckSample, CaEvent, CongestionController, Counts, EcnMode, InAck, LostPacket, PktsAcked, RateSample, View, Window,
};

/// Most events of one input.
const MOST: usize = 4_000;

/// The target `control`: choices are a congestion control, its parameters, and events.
pub fn check(data: &[u8]) {
    let (kind, choices) = read(data);
    let mut c = Chaos::new(&kind, choices);
    for _ in 0..MOST {
        if c.choices.is_empty() {
            break;
        }
        c.step();
        c.is_in_bounds();
    }
}

/// The congestion control that bytes choose, and the choices left for its events.
pub fn read(data: &[u8]) -> (Kind, Choices<'_>) {
    let mut choices = Choices::new(data);
    (any(&mut choices), choices)
}

/// A congestion control with some of its parameters set.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its name in the registry.
    pub name: &'static str,
    /// Parameters that differ from their defaults.
    pub set: BTreeMap<String, i64>,
}

impl Kind {
    /// A new one; `seed` is for those that draw random numbers.
    pub fn make(&self, seed: u64) -> Box<dyn CongestionController> {
        let entry = cc::find(self.name).expect("a name of the registry");
        (entry.new)(&cc::Options { seed, set: Some(&self.set) })
    }
}

/// Each congestion control as it is.
pub fn plain() -> Vec<Kind> {
    cc::REGISTRY.iter().map(|e| Kind { name: e.name, set: BTreeMap::new() }).collect()
}

/// One of the registry, with parameters anywhere in their ranges.
fn any(choices: &mut Choices<'_>) -> Kind {
    let entry = &cc::REGISTRY[choices.below(cc::REGISTRY.len() as u32) as usize];
    let kind = Kind { name: entry.name, set: parameters(choices, entry) };
    cc::check(kind.name, &kind.set).unwrap_or_else(|(p, fix)| panic!("{}: {p} {fix}", kind.name));
    kind
}

/// Parameters of a congestion control anywhere in their ranges, most left at their defaults.
pub fn parameters(c: &mut Choices<'_>, entry: &cc::Entry) -> BTreeMap<String, i64> {
    let mut set = BTreeMap::new();
    for p in entry.params {
        let value = match c.below(6) {
            4 => c.pick(&[p.min, p.max]),
            5 => p.min.saturating_add_unsigned(c.any_u64() % p.max.abs_diff(p.min).max(1)),
            _ => continue,
        };
        set.insert(p.name.to_owned(), value);
    }
    set
}

/// Each with every parameter at its least and at its most, alone and all together.
pub fn extreme() -> Vec<Kind> {
    let mut all = Vec::new();
    for e in cc::REGISTRY.iter().filter(|e| !e.params.is_empty()) {
        let mut add = |set: BTreeMap<String, i64>| {
            cc::check(e.name, &set).unwrap_or_else(|(p, fix)| panic!("{}: {p} {fix}", e.name));
            all.push(Kind { name: e.name, set });
        };
        for p in e.params {
            add([(p.name.to_owned(), p.min)].into());
            add([(p.name.to_owned(), p.max)].into());
        }
        add(e.params.iter().map(|p| (p.name.to_owned(), p.min)).collect());
        add(e.params.iter().map(|p| (p.name.to_owned(), p.max)).collect());
    }
    all
}

/// A connection that makes no sense, but whose counters move as a connection's do.
pub struct Chaos<'a> {
    /// What it is about.
    pub kind: Kind,
    /// What the congestion control reads.
    pub v: View,
    /// What it writes.
    pub w: Window,
    /// The congestion control.
    pub cc: Box<dyn CongestionController>,
    choices: Choices<'a>,
    prior_ssthresh: u32,
    /// What it did last, for whoever asks why.
    pub last: &'static str,
}

impl<'a> Chaos<'a> {
    /// A connection that is established.
    pub fn new(kind: &Kind, mut choices: Choices<'a>) -> Chaos<'a> {
        let rng = &mut choices;
        // Counters start close to where they wrap, half of the time.
        let counter = |c: &mut Choices<'_>| if c.below(2) == 0 { 0 } else { u32::MAX - c.below(2_000) };
        let v = View {
            now: Time(u64::from(rng.any()) * 1_000),
            jiffies: counter(rng),
            hz: rng.pick(&[100, 250, 1_000]),
            mss: rng.pick(&[76, 536, 1448, 65_483]),
            min_rtt_us: u32::MAX,
            counts: Counts { delivered: counter(rng), delivered_ce: counter(rng), lost: counter(rng), ..Counts::default() },
            last_sent: counter(rng),
            snd_nxt: 1,
            ecn: rng.pick(&[EcnMode::Off, EcnMode::Classic, EcnMode::Accurate, EcnMode::Off]),
            ..View::default()
        };
        let clamp = rng.pick(&[u32::MAX, 1 << 30, 10_000, 64, 2, 1]);
        let w = Window { clamp, cwnd: Window::default().cwnd.min(clamp), ..Window::default() };
        let cc = kind.make(u64::from(rng.below(256)));
        let mut c = Chaos { kind: kind.clone(), cc, v, w, choices, prior_ssthresh: 0, last: "new" };
        c.cc.init(&c.v, &mut c.w);
        c
    }

    /// One event, of those that may come now.
    pub fn step(&mut self) {
        self.wait();
        match self.choices.below(32) {
            0 => self.enter_recovery(),
            1 => self.echo_congestion(),
            2 => self.time_out(),
            3 => self.undo(),
            4..=6 => self.recover(),
            7 => self.disorder(),
            8 => self.restart(),
            9 => self.limit_by_application(),
            10 => self.local_congestion(),
            _ => self.ack(),
        }
    }

    /// Panics where the congestion control has left its bounds.
    pub fn is_in_bounds(&self) {
        let Chaos { kind, last, w, .. } = self;
        assert!((1..=w.clamp).contains(&w.cwnd), "{kind:?}: {last} leaves {w:?}");
        assert!(w.ssthresh >= 1, "{kind:?}: {last} leaves {w:?}");
        assert!(!w.paced || w.pacing_rate > 0, "{kind:?}: {last} leaves {w:?}: paced at no rate");
    }

    fn size(&mut self, most: u32) -> u32 {
        self.choices.size(most)
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.choices.below(n) == 0
    }

    fn wait(&mut self) {
        let longest = if self.one_in(50) { 20_000_000 } else { 20_000 };
        let us = u64::from(self.size(longest));
        let old = self.v.now;
        self.v.now += Duration::micros(us);
        let tick = 1_000_000_000 / u64::from(self.v.hz);
        self.v.jiffies = self.v.jiffies.wrapping_add((self.v.now.0 / tick - old.0 / tick) as u32);
        self.v.in_flight = self.size(2 * self.w.cwnd.min(1 << 20));
        self.v.sacked_out = if self.one_in(4) { self.size(1_000) } else { 0 };
        self.v.packets_out = self.v.in_flight + self.v.sacked_out;
        self.v.most_packets_out = self.v.packets_out;
        self.v.is_cwnd_limited = self.one_in(2);
        self.v.has_unsent = self.one_in(2);
        self.v.counts.app_limited = if self.one_in(4) { self.v.counts.delivered.wrapping_add(self.v.in_flight).max(1) } else { 0 };
        self.v.pacing_next_ns = self.v.now.0 + u64::from(self.size(1 << 30));
        (self.v.timestamps.value, self.v.timestamps.echo) = (self.choices.any(), self.choices.any());
    }

    fn enter(&mut self, new: CaState) {
        self.cc.on_state(&self.v, &mut self.w, new);
        self.v.ca_state = new;
    }

    /// A new threshold, as on every way down.
    fn reduce(&mut self) {
        self.prior_ssthresh = self.w.ssthresh;
        self.w.prior_cwnd = self.w.cwnd;
        self.w.ssthresh = self.cc.ssthresh(&self.v, &self.w);
        assert!(self.w.ssthresh >= 1, "{:?}: threshold 0", self.kind);
    }

    fn enter_recovery(&mut self) {
        self.last = "loss";
        if self.v.ca_state >= CaState::Recovery {
            return;
        }
        if self.v.ca_state < CaState::Cwr {
            self.w.cwnd_cnt = 0;
            self.reduce();
        }
        self.enter(CaState::Recovery);
    }

    fn enter_cwr(&mut self) {
        self.prior_ssthresh = 0;
        if self.v.ca_state < CaState::Cwr {
            self.w.cwnd_cnt = 0;
            self.reduce();
            self.enter(CaState::Cwr);
        }
    }

    fn echo_congestion(&mut self) {
        self.last = "echo of congestion";
        if self.v.ecn.is_on() {
            self.enter_cwr();
        }
    }

    fn local_congestion(&mut self) {
        self.last = "local congestion";
        self.enter_cwr();
    }

    fn time_out(&mut self) {
        self.last = "timeout";
        if self.v.ca_state <= CaState::Disorder || self.one_in(2) {
            self.reduce();
            self.cc.on_event(&self.v, &mut self.w, CaEvent::Loss);
        }
        self.w.cwnd = (self.v.in_flight + 1).min(self.w.clamp);
        self.w.cwnd_cnt = 0;
        self.enter(CaState::Loss);
    }

    /// Everything outstanding at the loss has arrived.
    fn recover(&mut self) {
        self.last = "end of recovery";
        if matches!(self.v.ca_state, CaState::Cwr | CaState::Recovery) && !self.cc.owns_window() {
            self.w.cwnd = self.w.ssthresh.min(self.w.clamp);
        }
        if self.v.ca_state >= CaState::Cwr {
            if self.v.ca_state != CaState::Loss {
                self.cc.on_event(&self.v, &mut self.w, CaEvent::CompleteCwr);
            }
            self.enter(CaState::Open);
        }
    }

    fn undo(&mut self) {
        self.last = "undo";
        if self.v.ca_state < CaState::Recovery {
            return;
        }
        if self.prior_ssthresh != 0 {
            self.w.cwnd = self.cc.undo(&self.v, &self.w).clamp(1, self.w.clamp);
            self.w.ssthresh = self.w.ssthresh.max(self.prior_ssthresh);
        }
        self.enter(CaState::Open);
    }

    fn disorder(&mut self) {
        self.last = "disorder";
        if self.v.ca_state <= CaState::Disorder {
            let new = if self.v.ca_state == CaState::Open { CaState::Disorder } else { CaState::Open };
            self.enter(new);
        }
    }

    /// Nothing was in flight; perhaps for so long that the window restarts.
    fn restart(&mut self) {
        self.last = "restart after idling";
        (self.v.in_flight, self.v.packets_out, self.v.sacked_out) = (0, 0, 0);
        if self.one_in(2) && !self.cc.owns_window() {
            self.cc.on_event(&self.v, &mut self.w, CaEvent::CwndRestart);
            self.w.cwnd = (self.w.cwnd >> self.choices.below(4)).max(cc::INIT_CWND.min(self.w.cwnd));
        }
        self.cc.on_event(&self.v, &mut self.w, CaEvent::TxStart);
        self.v.last_sent = self.v.jiffies;
    }

    /// The window comes halfway down to what is used.
    fn limit_by_application(&mut self) {
        self.last = "application-limited";
        let used = self.size(1_000).max(cc::INIT_CWND);
        if self.v.ca_state == CaState::Open && used < self.w.cwnd && !self.cc.owns_window() {
            self.w.cwnd = (self.w.cwnd + used) >> 1;
        }
    }

    fn ack(&mut self) {
        self.last = "ACK";
        let (n, losses) = (self.size(1 << 16), if self.one_in(8) { self.size(1_000) } else { 0 });
        let rtt_us = if self.one_in(8) { -1 } else { i64::from(self.size(5_000_000)) };
        let back = self.size(1 << 16);
        let ce = if self.v.ecn.is_on() && self.one_in(2) { self.size(n) } else { 0 };
        let (v, w) = (&mut self.v, &mut self.w);
        let prior_delivered = v.counts.delivered.wrapping_sub(back);
        v.counts.delivered = v.counts.delivered.wrapping_add(n);
        v.counts.delivered_ce = v.counts.delivered_ce.wrapping_add(ce);
        v.counts.delivered_us = v.now.micros();
        v.snd_una += u64::from(n);
        v.snd_nxt = v.snd_una + u64::from(v.in_flight);
        if rtt_us >= 0 {
            v.srtt_us = (rtt_us as u32) << 3;
            v.min_rtt_us = v.min_rtt_us.min(rtt_us as u32);
        }
        self.cc.pkts_acked(v, w, &PktsAcked { pkts_acked: n, rtt_us, in_flight: v.in_flight.wrapping_mul(v.mss) });
        if self.cc.wants_in_ack() {
            let mut flag = || self.choices.below(2) == 0;
            self.cc.in_ack(v, w, InAck { slow_path: flag(), win_update: flag(), ece: ce > 0 });
        }
        let tx_in_flight = v.in_flight.saturating_add(n);
        let valid = n > 0 && self.choices.below(8) > 0;
        let rate = RateSample {
            prior_delivered,
            prior_mstamp: u64::from(valid),
            delivered: if valid { (n + back) as i32 } else { -1 },
            interval_us: if valid { i64::from(self.choices.below(2_000_000)) } else { -1 },
            rtt_us,
            losses,
            tx_in_flight,
            lost: losses,
            acked_sacked: n,
            prior_in_flight: tx_in_flight,
            is_app_limited: v.counts.app_limited != 0,
            is_retrans: self.choices.below(8) == 0,
            is_ack_delayed: n == 1,
        };
        self.lose(losses, tx_in_flight);
        self.control(n, &rate);
    }

    /// Packets are marked lost, a few of them told one by one.
    fn lose(&mut self, losses: u32, tx_in_flight: u32) {
        self.v.counts.lost = self.v.counts.lost.wrapping_add(losses);
        if self.cc.wants_lost() {
            for lost in 1..=losses.min(5) {
                let seq = self.v.snd_una + u64::from(self.size(1_000));
                let p = LostPacket {
                    seq,
                    end: seq + u64::from(self.v.mss),
                    tx_in_flight,
                    lost,
                    is_app_limited: self.v.counts.app_limited != 0,
                };
                self.cc.on_lost(&self.v, &mut self.w, &p);
            }
        }
    }

    /// The end of an ACK: the sender's own reduction, or the controller's growth.
    fn control(&mut self, n: u32, rate: &RateSample) {
        let reducing = matches!(self.v.ca_state, CaState::Cwr | CaState::Recovery);
        let may_raise = !reducing && self.choices.below(8) > 0;
        if reducing && !self.cc.owns_window() {
            let room = u64::from(self.v.in_flight) + u64::from(self.size(n));
            self.w.cwnd = room.clamp(1, u64::from(self.w.clamp)) as u32;
            return;
        }
        if may_raise || self.cc.owns_window() {
            self.cc.on_ack(&self.v, &mut self.w, &AckSample { acked: n, ack: self.v.snd_una, may_raise, rate: *rate });
        }
        if std::mem::take(&mut self.w.enter_cwr) {
            assert!(may_raise, "{}: a reduction already goes on", self.kind.name);
            self.enter_cwr();
        }
    }
}
