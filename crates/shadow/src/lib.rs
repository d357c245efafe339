//! A congestion control that watches somebody else's connection: it is told what the packets show, and says which window it would have.
//!
//! **What it is.** The hooks of a control, called for each ACK of a capture as the sender would call them. Recoveries, timeouts and the window itself
//! come from the observation: at [`Ack::window`] the watched window replaces the control's own, so that errors do not add up, and what the control
//! makes of it until the next one can be compared with what was seen.
//! **Source.** docs/models/controls/control-hooks.md for the order of calls; docs/models/methods/control.md for what it is used for.
//! **How it differs.** From `Sender`: the window is not reduced packet by packet during a reduction, it falls at its end.
//! **What it does not model.** Undo (the watched window comes back by itself), rate samples, so no control that owns its window.

use tcpscape_base::{CaState, Time};
use tcpscape_tcp::cc::{
    AckSample, CaEvent, CongestionController, Counts, EcnMode, InAck, PktsAcked, RateSample, Timestamps, View, Window, INFINITE_SSTHRESH,
};

/// Whether the watched connection is in slow start, as its growth shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// Nothing can be said.
    #[default]
    Unknown,
    /// It doubles each round trip.
    SlowStart,
    /// It does not.
    Avoidance,
}

/// An ACK as a capture at the sender shows it. Packets are bytes in units of the MSS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Left edge after it.
    pub una: u64,
    /// Next new sequence number when it came.
    pub nxt: u64,
    /// Packets newly cumulatively acknowledged.
    pub acked: u32,
    /// Packets newly delivered, SACKed ones included.
    pub delivered: u32,
    /// RTT of the last packet it acknowledged that was sent once, µs; 0 when unknown.
    pub rtt_us: u32,
    /// Packets in flight before it.
    pub in_flight: u32,
    /// Packets delivered since the last one it acknowledged was sent.
    pub since_sent: u32,
    /// The phase of the connection after it.
    pub state: CaState,
    /// It carries ECE.
    pub ece: bool,
    /// It carries SACK blocks or another window than the one before.
    pub slow_path: bool,
    /// Its timestamps.
    pub timestamps: Timestamps,
    /// The watched window before it is processed, packets; 0 leaves the control's own.
    pub window: u32,
    /// What the watched window does from here on; read where `window` is set.
    pub growth: Growth,
    /// Segments have been seen to arrive far out of order, so that SACKs alone let the window grow.
    pub reordered: bool,
}

/// What is known of the whole connection.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Sender's maximum segment size, bytes.
    pub mss: u32,
    /// Ticks a second of its kernel.
    pub hz: u32,
    /// What both ends agreed on for ECN.
    pub ecn: EcnMode,
}

/// A reduction as the control would have made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The ACK, by its place.
    pub ack: usize,
    /// Window before, packets.
    pub before: u32,
    /// Window after it, packets; where its end was not seen the threshold.
    pub after: u32,
}

/// No connection has a longer RTT, µs: four minutes. A clock that was set forward shows more, by which controls would divide wrongly.
const LONGEST_RTT_US: u32 = 1 << 28;

/// The control and what it is told.
pub struct Shadow {
    control: Box<dyn CongestionController>,
    watched: Watched,
    w: Window,
    state: CaState,
    counts: Counts,
    /// It has been initialised, which needs an RTT, as after a handshake.
    is_begun: bool,
    srtt8_us: u32,
    min_rtt_us: u32,
    /// End of a reduction that the control itself asked for.
    own_reduction: Option<u64>,
    reductions: Vec<Reduction>,
}

impl Shadow {
    /// A control at the begin of a connection.
    pub fn new(control: Box<dyn CongestionController>, watched: Watched) -> Shadow {
        let (w, state) = (Window::default(), CaState::Open);
        let counts = Counts { delivered: 1, ..Counts::default() };
        let is_begun = false;
        Shadow {
            control,
            watched,
            w,
            state,
            counts,
            is_begun,
            srtt8_us: 0,
            min_rtt_us: u32::MAX,
            own_reduction: None,
            reductions: Vec::new(),
        }
    }

    /// The window after each ACK, packets, and the reductions.
    pub fn watch(mut self, acks: &[Ack]) -> (Vec<u32>, Vec<Reduction>) {
        let windows = acks.iter().enumerate().map(|(i, ack)| self.on_ack(i, ack)).collect();
        (windows, self.reductions)
    }

    fn on_ack(&mut self, place: usize, a: &Ack) -> u32 {
        let a = &Ack { rtt_us: a.rtt_us.min(LONGEST_RTT_US), ..*a };
        self.measure(a);
        if !self.is_begun && self.srtt8_us > 0 {
            let v = self.view(a);
            self.control.init(&v, &mut self.w);
            self.is_begun = true;
        }
        if !self.ends(a) {
            self.follow(a);
        }
        let v = self.view(a);
        let rtt_us = if a.rtt_us > 0 { i64::from(a.rtt_us) } else { -1 };
        let in_flight = self.watched.mss.wrapping_mul(a.since_sent);
        self.control.pkts_acked(&v, &mut self.w, &PktsAcked { pkts_acked: a.acked, rtt_us, in_flight });
        if self.control.wants_in_ack() {
            let told = InAck { slow_path: a.slow_path, win_update: a.slow_path, ece: a.ece };
            self.control.in_ack(&v, &mut self.w, told);
        }
        if a.state != self.state {
            self.change(place, a);
        }
        self.end_own_reduction(a);
        if (a.acked > 0 || (a.reordered && a.delivered > 0)) && !self.is_reducing() {
            self.raise(place, a, rtt_us);
        }
        self.w.cwnd
    }

    /// Counts what it delivers, and its RTT.
    fn measure(&mut self, a: &Ack) {
        self.counts.delivered = self.counts.delivered.wrapping_add(a.delivered);
        self.counts.delivered_us = a.now.micros();
        if a.ece {
            self.counts.delivered_ce = self.counts.delivered_ce.wrapping_add(a.delivered);
        }
        if a.rtt_us > 0 {
            self.min_rtt_us = self.min_rtt_us.min(a.rtt_us);
            let step = a.rtt_us as i32 - (self.srtt8_us / 8) as i32;
            self.srtt8_us = if self.srtt8_us == 0 { a.rtt_us * 8 } else { self.srtt8_us.saturating_add_signed(step).max(1) };
        }
    }

    /// The watched window replaces the control's own.
    fn follow(&mut self, a: &Ack) {
        if a.window == 0 {
            return;
        }
        let avoids = !self.w.in_slow_start();
        self.w.cwnd = a.window;
        match a.growth {
            Growth::SlowStart if avoids => self.w.ssthresh = INFINITE_SSTHRESH,
            Growth::SlowStart => {}
            Growth::Avoidance => self.w.ssthresh = self.w.ssthresh.min(a.window),
            Growth::Unknown if avoids => self.w.ssthresh = self.w.ssthresh.min(a.window),
            Growth::Unknown => {}
        }
    }

    fn is_reducing(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery) || self.own_reduction.is_some()
    }

    /// Whether a watched reduction ends.
    fn ends(&self, a: &Ack) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery) && a.state < CaState::Cwr
    }

    /// The phase changes as it was seen to.
    fn change(&mut self, place: usize, a: &Ack) {
        if a.state == CaState::Loss {
            if matches!(self.state, CaState::Open | CaState::Disorder) {
                self.lower(place, a);
            }
            self.event(a, CaEvent::Loss);
            (self.w.cwnd, self.w.cwnd_cnt) = (1, 0);
        } else if a.state > CaState::Disorder && !self.is_reducing() {
            self.lower(place, a);
        }
        self.own_reduction = None;
        let ends = self.ends(a);
        let v = self.view(a);
        self.control.on_state(&v, &mut self.w, a.state);
        self.state = a.state;
        if ends {
            self.w.cwnd = self.w.ssthresh;
            self.event(a, CaEvent::CompleteCwr);
            self.reduced();
            self.follow(a);
        }
    }

    /// The threshold falls to where the control says.
    fn lower(&mut self, place: usize, a: &Ack) {
        (self.w.prior_cwnd, self.w.cwnd_cnt) = (self.w.cwnd, 0);
        let v = self.view(a);
        self.w.ssthresh = self.control.ssthresh(&v, &self.w);
        self.reductions.push(Reduction { ack: place, before: self.w.cwnd, after: self.w.ssthresh });
    }

    /// What is left at the end of a reduction counts: some controls set the window there and then.
    fn reduced(&mut self) {
        if let Some(last) = self.reductions.last_mut() {
            last.after = self.w.cwnd;
        }
    }

    /// The control's part in congestion avoidance and slow start.
    fn raise(&mut self, place: usize, a: &Ack, rtt_us: i64) {
        let rate = RateSample {
            rtt_us,
            acked_sacked: a.delivered,
            prior_in_flight: a.in_flight,
            interval_us: -1,
            delivered: -1,
            ..RateSample::default()
        };
        let v = self.view(a);
        self.control.on_ack(&v, &mut self.w, &AckSample { acked: a.delivered, ack: a.una, may_raise: true, rate });
        if std::mem::take(&mut self.w.enter_cwr) {
            self.lower(place, a);
            let v = self.view(a);
            self.control.on_state(&v, &mut self.w, CaState::Cwr);
            self.own_reduction = Some(a.nxt);
        }
    }

    /// A reduction that the control asked for lasts a round trip.
    fn end_own_reduction(&mut self, a: &Ack) {
        if self.own_reduction.is_some_and(|end| a.una >= end) {
            self.w.cwnd = self.w.ssthresh;
            let v = View { ca_state: CaState::Cwr, ..self.view(a) };
            self.control.on_state(&v, &mut self.w, CaState::Open);
            self.own_reduction = None;
            self.event(a, CaEvent::CompleteCwr);
            self.reduced();
        }
    }

    fn event(&mut self, a: &Ack, e: CaEvent) {
        let v = self.view(a);
        self.control.on_event(&v, &mut self.w, e);
    }

    fn view(&self, a: &Ack) -> View {
        let out = (a.nxt.saturating_sub(a.una)).div_ceil(u64::from(self.watched.mss.max(1))) as u32;
        let jiffies = (a.now.0 / (1_000_000_000 / u64::from(self.watched.hz.max(1))).max(1)) as u32;
        View {
            now: a.now,
            jiffies,
            hz: self.watched.hz,
            mss: self.watched.mss,
            snd_una: a.una,
            snd_nxt: a.nxt,
            srtt_us: self.srtt8_us,
            min_rtt_us: self.min_rtt_us,
            in_flight: a.in_flight,
            packets_out: out,
            sacked_out: 0,
            counts: self.counts,
            ca_state: if self.own_reduction.is_some() { CaState::Cwr } else { self.state },
            is_cwnd_limited: true,
            most_packets_out: self.w.cwnd,
            last_sent: jiffies,
            has_unsent: true,
            pacing_next_ns: 0,
            timestamps: a.timestamps,
            ecn: self.watched.ecn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_tcp::cc::make;

    fn shadow(name: &str) -> Shadow {
        let control = make(name, 1).expect("it is in the registry");
        Shadow::new(control, Watched { mss: 1448, hz: 1000, ecn: EcnMode::Off })
    }

    /// A full window acknowledged each 50 ms, two packets an ACK.
    fn rounds(window: u32, count: u32) -> Vec<Ack> {
        let mut acks = Vec::new();
        for round in 0..count {
            for i in 0..window / 2 {
                let una = u64::from(round * window + 2 * i + 2) * 1448;
                let now = Time(u64::from(round) * 50_000_000 + u64::from(i) * 100_000 + 1);
                let nxt = una + u64::from(window) * 1448;
                acks.push(Ack { now, una, nxt, acked: 2, delivered: 2, rtt_us: 50_000, in_flight: window, ..Ack::default() });
            }
        }
        acks
    }

    #[test]
    fn reno_adds_a_packet_a_round_trip_to_the_watched_window() {
        let mut acks = rounds(100, 5);
        acks[0] = Ack { window: 100, growth: Growth::Avoidance, ..acks[0] };
        // 500 packets acknowledged: 100 + 101 + 102 + 103 are spent on four packets.
        let (windows, _) = shadow("reno").watch(&acks);
        assert_eq!(windows.last(), Some(&104));
    }

    #[test]
    fn a_recovery_lowers_the_window_as_the_control_does() {
        for (name, after) in [("reno", 50), ("scalable", 88), ("bic", 79)] {
            let mut acks = rounds(100, 6);
            acks[0] = Ack { window: 100, growth: Growth::Avoidance, ..acks[0] };
            acks[120] = Ack { window: 100, ..acks[120] };
            for ack in &mut acks[120..160] {
                ack.state = CaState::Recovery;
            }
            let (windows, reductions) = shadow(name).watch(&acks);
            assert_eq!(reductions.len(), 1, "{name}");
            assert!(reductions[0].before.abs_diff(100) <= 1 && reductions[0].after.abs_diff(after) <= 1, "{name}: {reductions:?}");
            assert!(windows[160].abs_diff(reductions[0].after) <= 1, "{name}: {}", windows[160]);
        }
    }

    #[test]
    fn every_control_of_the_registry_can_watch() {
        for entry in tcpscape_tcp::cc::REGISTRY {
            let control = make(entry.name, 1).expect("it is in the registry");
            if control.owns_window() {
                continue;
            }
            let (windows, _) = Shadow::new(control, Watched { mss: 1448, hz: 250, ecn: EcnMode::Off }).watch(&rounds(40, 20));
            assert!(windows.iter().all(|&w| w > 0), "{}", entry.name);
        }
    }
}
