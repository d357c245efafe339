//! A long pipe with an endless buffer, with and without losses: what a congestion control makes of losses, and of nothing else.

use tcpscape_base::{CaState, Duration, Time};
use tcpscape_fuzzing::control::Kind;
use tcpscape_tcp::cc::{AckSample, CaEvent, CongestionController, EcnMode, LostPacket, PktsAcked, RateSample, View, Window};

/// RTT of the empty pipe, µs.
const RTT_US: u64 = 50_000;
/// Packets that fill it.
const BDP: u32 = 100;
/// Largest window, packets; also for one that sets another clamp.
const MOST: u32 = 1_000;
/// Packets acknowledged by one ACK.
const PER_ACK: u32 = 2;
/// ACKs of a lossy round trip, each of which reports a loss: more than any threshold of loss asks for.
const LOSSES: u32 = 20;

/// One connection in it.
pub struct Pipe {
    pub w: Window,
    v: View,
    cc: Box<dyn CongestionController>,
    /// Sum over all ACKs of what may be in flight, packets: by the window and by the rate.
    pub allowed: u64,
}

impl Pipe {
    pub fn new(kind: &Kind) -> Pipe {
        let v = View {
            now: Time(100_000_000_000),
            hz: 100,
            mss: 1448,
            srtt_us: (RTT_US as u32) << 3,
            min_rtt_us: RTT_US as u32,
            is_cwnd_limited: true,
            snd_nxt: 1,
            ecn: EcnMode::Accurate,
            ..View::default()
        };
        let mut p = Pipe { w: Window { clamp: MOST, ..Window::default() }, v, cc: kind.make(1), allowed: 0 };
        p.cc.init(&p.v, &mut p.w);
        p
    }

    /// A round trip: everything in flight is acknowledged, after losses or without.
    pub fn round(&mut self, lossy: bool) {
        self.w.cwnd = self.w.cwnd.min(MOST);
        let flight = self.flight();
        let rtt_us = RTT_US * u64::from(flight.max(BDP)) / u64::from(BDP);
        self.v.in_flight = flight;
        for i in 0..flight.div_ceil(PER_ACK) {
            let loses = lossy && i < LOSSES;
            self.advance(rtt_us * u64::from(PER_ACK) / u64::from(flight));
            let delivered = if lossy { flight.saturating_sub(LOSSES).max(1) } else { flight };
            self.ack(flight, rtt_us, delivered, u32::from(loses));
        }
        if self.v.ca_state == CaState::Recovery {
            if !self.cc.owns_window() {
                self.w.cwnd = self.w.ssthresh.min(self.w.clamp);
            }
            self.cc.on_event(&self.v, &mut self.w, CaEvent::CompleteCwr);
            self.enter(CaState::Open);
        }
    }

    /// Packets that the window allows, and for who sets the rate itself that rate times the RTT.
    fn flight(&self) -> u32 {
        let rate = if self.cc.owns_window() { self.w.pacing_rate } else { u64::MAX };
        let by_rate = u128::from(rate) * u128::from(self.v.srtt_us >> 3) / 1_000_000 / u128::from(self.v.mss);
        self.w.cwnd.min(MOST).min(by_rate.min(u128::from(MOST)) as u32).max(PER_ACK)
    }

    fn advance(&mut self, us: u64) {
        self.v.now += Duration::micros(us);
        self.v.jiffies = (self.v.now.0 / 10_000_000) as u32;
        self.v.last_sent = self.v.jiffies;
        self.v.pacing_next_ns = self.v.now.0;
        self.v.timestamps.value = (self.v.now.0 / 1_000_000) as u32;
        self.v.timestamps.echo = self.v.timestamps.value.wrapping_sub(RTT_US as u32 / 1_000);
    }

    fn enter(&mut self, new: CaState) {
        self.cc.on_state(&self.v, &mut self.w, new);
        self.v.ca_state = new;
    }

    fn ack(&mut self, flight: u32, rtt_us: u64, delivered: u32, losses: u32) {
        let prior_in_flight = self.v.in_flight;
        let v = &mut self.v;
        v.in_flight = v.in_flight.saturating_sub(PER_ACK + losses);
        (v.snd_una, v.counts.delivered) = (v.snd_una + u64::from(PER_ACK * v.mss), v.counts.delivered + PER_ACK);
        v.snd_nxt = v.snd_una + u64::from(flight * v.mss);
        v.counts.delivered_us = v.now.micros();
        v.srtt_us = (rtt_us as u32) << 3;
        (v.packets_out, v.most_packets_out) = (flight, flight);
        let bytes = flight * v.mss;
        self.cc.pkts_acked(&self.v, &mut self.w, &PktsAcked { pkts_acked: PER_ACK, rtt_us: rtt_us as i64, in_flight: bytes });
        self.lose(flight, losses);
        let rate = RateSample {
            prior_delivered: self.v.counts.delivered.saturating_sub(flight),
            prior_mstamp: self.v.now.micros() - rtt_us,
            delivered: delivered as i32,
            interval_us: rtt_us as i64,
            rtt_us: rtt_us as i64,
            losses,
            tx_in_flight: flight,
            lost: losses * LOSSES,
            acked_sacked: PER_ACK,
            prior_in_flight,
            ..RateSample::default()
        };
        let may_raise = self.v.ca_state < CaState::Cwr;
        if may_raise || self.cc.owns_window() {
            self.cc.on_ack(&self.v, &mut self.w, &AckSample { acked: PER_ACK, ack: self.v.snd_una, may_raise, rate });
        } else {
            // Proportional rate reduction: down to the threshold, evenly.
            self.w.cwnd = self.w.cwnd.saturating_sub(1).max(self.w.ssthresh.min(self.w.cwnd));
        }
        self.v.in_flight = self.v.in_flight.max(self.w.cwnd);
        self.allowed += u64::from(self.flight());
    }

    fn lose(&mut self, flight: u32, losses: u32) {
        if losses == 0 {
            return;
        }
        self.v.counts.lost += losses;
        if self.cc.wants_lost() {
            let (seq, end) = (self.v.snd_una, self.v.snd_una + u64::from(self.v.mss));
            let p = LostPacket { seq, end, tx_in_flight: flight, lost: LOSSES, is_app_limited: false };
            self.cc.on_lost(&self.v, &mut self.w, &p);
        }
        if self.v.ca_state < CaState::Cwr {
            self.w.cwnd_cnt = 0;
            self.w.prior_cwnd = self.w.cwnd;
            self.w.ssthresh = self.cc.ssthresh(&self.v, &self.w);
            self.enter(CaState::Recovery);
        }
    }
}
