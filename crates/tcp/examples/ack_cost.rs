//! What the hooks of each congestion control cost for one ACK: `ack_cost NAME ACKS` for a count of instructions from outside,
//! `ack_cost` alone for CPU time, a line `name ns` for each.
//!
//! A window of about 100 packets in a pipe of 50 ms, an ACK for every second packet, RTTs that vary by a tenth, a loss in every twentieth
//! round trip. The control `none` does nothing: its cost is the harness's own.

use std::hint::black_box;
use std::time::Instant;
use tcpscape_base::{CaState, Duration, Time};
use tcpscape_tcp::cc::{self, AckSample, CaEvent, CongestionController, EcnMode, InAck, LostPacket, PktsAcked, RateSample, View, Window};

/// RTT of the pipe, µs.
const RTT_US: u64 = 50_000;
/// Packets in flight.
const FLIGHT: u32 = 100;
/// ACKs of a round trip, each for two packets.
const ACKS: u64 = 50;
/// Round trips from one loss to the next.
const BETWEEN_LOSSES: u64 = 20;
/// ACKs of one measurement of CPU time, and measurements of each.
const TIMED: (u64, usize) = (200_000, 25);

struct Nothing;
impl CongestionController for Nothing {
    fn ssthresh(&mut self, _: &View, w: &Window) -> u32 {
        w.cwnd
    }
    fn on_ack(&mut self, _: &View, _: &mut Window, _: &AckSample) {}
}

fn make(name: &str) -> Box<dyn CongestionController> {
    cc::make(name, 1).unwrap_or(Box::new(Nothing))
}

/// Runs the hooks for so many ACKs.
fn run(mut cc: Box<dyn CongestionController>, acks: u64) -> u32 {
    let mut v = View {
        now: Time(1_000_000_000),
        hz: 100,
        mss: 1448,
        srtt_us: (RTT_US as u32) << 3,
        min_rtt_us: RTT_US as u32,
        is_cwnd_limited: true,
        ecn: EcnMode::Accurate,
        packets_out: FLIGHT,
        most_packets_out: FLIGHT,
        snd_nxt: 1,
        ..View::default()
    };
    let mut w = Window { cwnd: FLIGHT, ssthresh: FLIGHT, ..Window::default() };
    cc.init(&v, &mut w);
    let (in_ack, on_lost) = (cc.wants_in_ack(), cc.wants_lost());
    for i in 0..acks {
        let (round, place) = (i / ACKS, i % ACKS);
        advance(&mut v, i);
        // The window is kept where it was: growth costs the same at any size.
        w.cwnd = w.cwnd.clamp(FLIGHT / 2, FLIGHT);
        let rtt_us = (RTT_US + i * 7_919 % (RTT_US / 10)) as i64;
        cc.pkts_acked(&v, &mut w, &PktsAcked { pkts_acked: 2, rtt_us, in_flight: FLIGHT * v.mss });
        if in_ack {
            cc.in_ack(&v, &mut w, InAck::default());
        }
        let losses = u32::from(place == 0 && round % BETWEEN_LOSSES == BETWEEN_LOSSES - 1);
        if losses > 0 {
            lose(&mut *cc, &mut v, &mut w, on_lost);
        }
        let reducing = v.ca_state == CaState::Recovery;
        if cc.owns_window() || !reducing {
            let rate = RateSample {
                prior_delivered: v.counts.delivered.wrapping_sub(FLIGHT),
                prior_mstamp: v.now.micros() - RTT_US,
                delivered: FLIGHT as i32,
                interval_us: rtt_us,
                rtt_us,
                losses,
                tx_in_flight: FLIGHT,
                lost: losses,
                acked_sacked: 2,
                prior_in_flight: FLIGHT,
                ..RateSample::default()
            };
            cc.on_ack(&v, &mut w, &AckSample { acked: 2, ack: v.snd_una, may_raise: !reducing, rate });
            w.enter_cwr = false;
        }
        if reducing && place == ACKS - 1 {
            cc.on_event(&v, &mut w, CaEvent::CompleteCwr);
            cc.on_state(&v, &mut w, CaState::Open);
            v.ca_state = CaState::Open;
        }
        black_box((&v, &w));
    }
    w.cwnd
}

/// To the next ACK.
fn advance(v: &mut View, i: u64) {
    v.now += Duration::micros(RTT_US / ACKS);
    v.jiffies = (v.now.0 / 10_000_000) as u32;
    v.last_sent = v.jiffies;
    v.snd_una += u64::from(2 * v.mss);
    v.snd_nxt = v.snd_una + u64::from(FLIGHT * v.mss);
    v.counts.delivered = v.counts.delivered.wrapping_add(2);
    v.counts.delivered_ce = v.counts.delivered_ce.wrapping_add(u32::from(i % 100 == 0));
    v.counts.delivered_us = v.now.micros();
    v.in_flight = FLIGHT - 2;
    v.pacing_next_ns = v.now.0;
    v.timestamps.value = (v.now.0 / 1_000_000) as u32;
    v.timestamps.echo = v.timestamps.value - (RTT_US / 1_000) as u32;
}

fn lose(cc: &mut dyn CongestionController, v: &mut View, w: &mut Window, on_lost: bool) {
    v.counts.lost += 1;
    if on_lost {
        let (seq, end) = (v.snd_una, v.snd_una + u64::from(v.mss));
        cc.on_lost(v, w, &LostPacket { seq, end, tx_in_flight: FLIGHT, lost: 1, is_app_limited: false });
    }
    w.prior_cwnd = w.cwnd;
    w.ssthresh = cc.ssthresh(v, w);
    cc.on_state(v, w, CaState::Recovery);
    v.ca_state = CaState::Recovery;
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [name, acks] = &args[..] {
        black_box(run(make(name), acks.parse().expect("a number of ACKs")));
        return;
    }
    // One after the other in each turn, so that what disturbs the machine disturbs all of them.
    let names: Vec<&str> = std::iter::once("none").chain(cc::REGISTRY.iter().map(|e| e.name)).collect();
    let mut ns = vec![Vec::new(); names.len()];
    for _ in 0..TIMED.1 {
        for (name, ns) in names.iter().zip(&mut ns) {
            let began = Instant::now();
            black_box(run(make(name), TIMED.0));
            ns.push(began.elapsed().as_nanos() as f64 / TIMED.0 as f64);
        }
    }
    for (name, ns) in names.iter().zip(&mut ns) {
        ns.sort_by(f64::total_cmp);
        println!("{name} {:.2}", ns[TIMED.1 / 2]);
    }
}
