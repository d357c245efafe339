//! SCReAM: a media flow that adapts its rate, sans-IO: the sender with its encoder, and the receiver that reports to it.
//!
//! Source: RFC 8298 §4.1.2 (congestion window, send window, pacing), §4.1.3 (media rate control), §4.2 (feedback); constants of §4.1.1.1. Read in the
//! first revision of draft-johansson-ccwg-scream-bis (2023-12-18), whose authors describe it as the RFC with other markup; later revisions are not used.
//! Left open there, chosen here: frames have the same size and come at even intervals; packets that wait for a second in the sender are discarded; while
//! nothing is reported for a second a packet leaves every 200 ms (§3 asks for a least rate); the loss event rate is an average over round trips with weight
//! 1/50; before the first report packets leave at twice the target bitrate; history of 200 delays (§4.1.2.3; §4.1.1.2 says 100).
//! How it differs: fast increase resumes only where there was no loss for as long, either. Not modelled: ECN, several streams, audio, key frames, clocks
//! that drift.

use std::collections::VecDeque;
use tcpscape_base::{Duration, Time};

/// Bounds of what is encoded, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaPlan {
    /// Least bitrate of the encoder.
    pub least_bps: u64,
    /// Largest bitrate of the encoder.
    pub most_bps: u64,
}

/// What the receiver reports: RTCP feedback (RFC 8298 §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The highest number that has arrived.
    pub highest: u64,
    /// When it arrived.
    pub arrived: Time,
    /// When the report was sent.
    pub sent: Time,
    /// The numbers of the last [`REPORTED`] below it that have not arrived.
    pub missing: Vec<u64>,
}

/// The receiver.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    next: u64,
    arrived: Time,
    /// Whether each of the last numbers has come, the newest last.
    recent: VecDeque<bool>,
    /// Payload that came within the last second.
    last_second: VecDeque<(Time, u32)>,
    bytes: u64,
    reported: Option<Time>,
}

impl Receiver {
    /// A packet has arrived; gives a report where one is due.
    pub fn on_packet(&mut self, now: Time, number: u64, size: u32) -> Option<Report> {
        self.note(now, number);
        self.bytes += u64::from(size);
        self.last_second.push_back((now, size));
        while let Some(&(_, size)) = self.last_second.front().filter(|(t, _)| now.since(*t) > SECOND) {
            self.last_second.pop_front();
            self.bytes -= u64::from(size);
        }
        let is_due = self.reported.map_or(true, |t| now.since(t) >= self.interval());
        is_due.then(|| self.report(now))
    }

    fn note(&mut self, now: Time, number: u64) {
        if number >= self.next {
            let gap = (number - self.next).min(REPORTED as u64);
            self.recent.extend(std::iter::repeat(false).take(gap as usize).chain([true]));
            self.recent.drain(..self.recent.len().saturating_sub(REPORTED));
            (self.next, self.arrived) = (number + 1, now);
        } else if let Some(seen) = (self.recent.len() as u64).checked_sub(self.next - number).and_then(|i| self.recent.get_mut(i as usize))
        {
            *seen = true;
        }
    }

    /// §4.2.2: 2.5 to 50 reports a second, as many as the bitrate in units of 10 kbit/s.
    fn interval(&self) -> Duration {
        let per_second = (self.bytes as f64 * 8.0 / 10_000.0).clamp(2.5, 50.0);
        Duration((1e9 / per_second) as u64)
    }

    fn report(&mut self, now: Time) -> Report {
        self.reported = Some(now);
        let first = self.next - self.recent.len() as u64;
        let missing = self.recent.iter().enumerate().filter(|(_, seen)| !**seen).map(|(i, _)| first + i as u64).collect();
        Report { highest: self.next - 1, arrived: self.arrived, sent: now, missing }
    }
}

/// A packet that the sender gives to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPacket {
    /// Its place among those that were sent.
    pub number: u64,
    /// Payload, bytes.
    pub size: u32,
    /// When its frame was encoded.
    pub encoded: Time,
}

/// A packet that has left.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    encoded: Time,
    size: u32,
    /// When it was marked lost.
    lost: Option<Time>,
    /// When a report first had it missing.
    missed: Option<Time>,
}

/// Averages of what is measured, each over 200 ms.
#[derive(Clone, Debug, Default)]
struct Rates {
    sent: f64,
    acked: f64,
    encoded: f64,
    transmit_bps: f64,
    ack_bps: f64,
    media_bps: f64,
    /// Of the encoder, over 10 s.
    history: VecDeque<f64>,
}

impl Rates {
    fn update(&mut self) {
        let per_second = |bytes: &mut f64| std::mem::take(bytes) * 8.0 / RATE_INTERVAL_S;
        (self.transmit_bps, self.ack_bps) = (per_second(&mut self.sent), per_second(&mut self.acked));
        self.media_bps = per_second(&mut self.encoded);
        push(&mut self.history, self.media_bps, 50);
    }

    fn current(&self) -> f64 {
        self.transmit_bps.max(self.ack_bps)
    }

    fn median(&self) -> f64 {
        let mut sorted: Vec<f64> = self.history.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

/// The delay of the queue, and what follows from it.
#[derive(Clone, Debug)]
struct Delay {
    /// Least one-way delay, s.
    base: f64,
    /// Of the last report, s.
    queue: f64,
    target: f64,
    fraction_avg: f64,
    fractions: VecDeque<f64>,
    /// In units of the low target.
    norm: VecDeque<f64>,
    trend: f64,
    trend_mem: f64,
}

impl Delay {
    fn new() -> Delay {
        let [fractions, norm] = [20, 200].map(|count| VecDeque::from(vec![0.0; count]));
        Delay { base: f64::INFINITY, queue: 0.0, target: TARGET_LO, fraction_avg: 0.0, fractions, norm, trend: 0.0, trend_mem: 0.0 }
    }

    fn sample(&mut self, one_way_s: f64) {
        self.base = self.base.min(one_way_s);
        self.queue = one_way_s - self.base;
    }

    // §4.1.2, every 50 ms: the trend is the delay's autocorrelation times its average.
    fn update(&mut self) {
        let fraction = self.queue / self.target;
        self.fraction_avg += DELAY_WEIGHT * (fraction - self.fraction_avg);
        push(&mut self.fractions, fraction, 20);
        self.trend = (self.autocorrelation() * self.fraction_avg).clamp(0.0, 1.0);
        self.trend_mem = (self.trend_mem * 0.99).max(self.trend);
    }

    /// That of the last 20 fractions with themselves one step later; 0 where it says nothing.
    fn autocorrelation(&self) -> f64 {
        let mean = self.fractions.iter().sum::<f64>() / self.fractions.len().max(1) as f64;
        let centred: Vec<f64> = self.fractions.iter().map(|x| x - mean).collect();
        let [now, later] = [0, 1].map(|lag| centred.iter().zip(centred.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>());
        if now > 0.0 {
            later / now
        } else {
            0.0
        }
    }

    // §4.1.2.3, for each report: a target that flows beside it push up.
    fn adjust_target(&mut self, loss_event_rate: f64) {
        push(&mut self.norm, self.queue / TARGET_LO, 200);
        let count = self.norm.len() as f64;
        let mean = self.norm.iter().sum::<f64>() / count;
        let variance = self.norm.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let recent = self.norm.len().min(50);
        let average = self.norm.iter().rev().take(recent).sum::<f64>() / recent as f64;
        let new = (average + variance.sqrt()) * TARGET_LO;
        self.target = if loss_event_rate > 0.002 {
            1.5 * new
        } else if variance < 0.2 {
            new
        } else if new < TARGET_LO {
            new.max(self.target * 0.5)
        } else {
            self.target * 0.9
        };
        self.target = self.target.clamp(TARGET_LO, TARGET_HI);
    }
}

/// The sender, with its encoder.
#[derive(Clone, Debug)]
pub struct Sender {
    plan: MediaPlan,
    /// Most payload of a packet, bytes.
    size: u32,
    frame: Duration,
    stop: Time,
    next_frame: Time,
    next_packet: Time,
    /// Packets that wait: payload and when they were encoded.
    queue: VecDeque<(u32, Time)>,
    sent: Vec<Sent>,
    /// Up to here all is acknowledged.
    acked: u64,
    in_flight: f64,
    /// Bytes that were acknowledged since the window was updated.
    newly_acked: f64,
    /// The most in flight within the last five seconds, each second's.
    most_in_flight: VecDeque<f64>,
    second: Time,
    cwnd: f64,
    fast: bool,
    delay: Delay,
    srtt_s: f64,
    reordering: Duration,
    loss_event: Time,
    loss_event_rate: f64,
    rates: Rates,
    target_bps: f64,
    last_max_bps: f64,
    /// When a report came last, delays were averaged, the rate was adjusted, and the trend was last high.
    reported: Time,
    averaged: Time,
    adjusted: Time,
    trend_high: Time,
}

impl Sender {
    /// Begins at `start` with the least bitrate and ends at `stop`; packets have at most `size` bytes, a frame comes every `frame`.
    pub fn new(plan: MediaPlan, size: u32, frame: Duration, start: Time, stop: Time) -> Sender {
        Sender {
            plan,
            size,
            frame,
            stop,
            next_frame: start,
            next_packet: start,
            queue: VecDeque::new(),
            sent: Vec::new(),
            acked: 0,
            in_flight: 0.0,
            newly_acked: 0.0,
            most_in_flight: VecDeque::from([0.0]),
            second: start,
            cwnd: MIN_CWND,
            fast: true,
            delay: Delay::new(),
            srtt_s: 0.0,
            reordering: Duration::ZERO,
            loss_event: start,
            loss_event_rate: 0.0,
            rates: Rates::default(),
            target_bps: plan.least_bps as f64,
            last_max_bps: 1.0,
            reported: start,
            averaged: start,
            adjusted: start,
            trend_high: start,
        }
    }

    /// When [`Sender::poll`] wants to be called next; none once all is over.
    pub fn next(&self) -> Option<Time> {
        let frame = Some(self.next_frame).filter(|t| *t < self.stop);
        let packet = self.queue.front().and_then(|&(size, _)| {
            let at = if self.has_room(size) { self.next_packet } else { self.next_packet.max(self.probe_at()) };
            Some(at).filter(|t| *t < self.stop)
        });
        frame.into_iter().chain(packet).min()
    }

    /// The next packet that leaves by `now`.
    pub fn poll(&mut self, now: Time) -> Option<MediaPacket> {
        while self.next_frame <= now && self.next_frame < self.stop {
            self.encode();
        }
        let &(size, encoded) = self.queue.front()?;
        if now < self.next_packet || now >= self.stop || !(self.has_room(size) || now >= self.probe_at()) {
            return None;
        }
        self.queue.pop_front();
        Some(self.send(now, size, encoded))
    }

    /// When packet `number` was encoded.
    pub fn encoded(&self, number: u64) -> Time {
        self.sent[number as usize].encoded
    }

    /// Its payload, bytes.
    pub fn size_of(&self, number: u64) -> u32 {
        self.sent[number as usize].size
    }

    /// Bitrate that the encoder is asked for, bit/s.
    pub fn target_bps(&self) -> f64 {
        self.target_bps
    }

    /// A report has come.
    pub fn on_report(&mut self, now: Time, report: &Report) {
        let Some(newest) = self.sent.get(report.highest as usize).copied() else { return };
        self.reported = now;
        let rtt_s = seconds(now.since(newest.at)) - seconds(report.sent.since(report.arrived));
        self.srtt_s = if self.srtt_s > 0.0 { self.srtt_s + (rtt_s - self.srtt_s) / 8.0 } else { rtt_s };
        self.delay.sample(seconds(report.arrived.since(newest.at)));
        self.acknowledge(report.highest);
        let is_lossy = self.look_for_losses(now, report);
        if is_lossy && seconds(now.since(self.loss_event)) > self.srtt_s {
            self.on_loss_event(now);
        } else {
            self.update_cwnd();
        }
        self.delay.adjust_target(self.loss_event_rate(now));
        if now.since(self.averaged) >= AVERAGE_INTERVAL {
            self.averaged = now;
            self.delay.update();
        }
        self.resume_fast_increase(now);
    }

    // ---- sending ----

    /// §4.1.3: frames at the target bitrate; every fifth of a second the target is adjusted before.
    fn encode(&mut self) {
        let now = self.next_frame;
        if now.since(self.adjusted) >= RATE_INTERVAL {
            self.adjusted = now;
            self.rates.update();
            self.adjust_rate();
        }
        if self.queue.front().is_some_and(|(_, encoded)| now.since(*encoded) >= SECOND) {
            self.queue.clear();
        }
        let mut bytes = (self.target_bps * seconds(self.frame) / 8.0).max(1.0) as u32;
        self.rates.encoded += f64::from(bytes);
        while bytes > 0 {
            let size = bytes.min(self.size);
            self.queue.push_back((size.max(LEAST_SIZE), now));
            bytes -= size;
        }
        self.next_frame = Time(now.0 + self.frame.0);
    }

    fn send(&mut self, now: Time, size: u32, encoded: Time) -> MediaPacket {
        let number = self.sent.len() as u64;
        self.sent.push(Sent { at: now, encoded, size, lost: None, missed: None });
        self.in_flight += f64::from(size);
        self.rates.sent += f64::from(size);
        self.note_in_flight(now);
        let pace_bps = if self.srtt_s > 0.0 { MIN_PACE.max(self.cwnd * 8.0 / self.srtt_s) } else { MIN_PACE.max(2.0 * self.target_bps) };
        self.next_packet = Time(now.0 + (f64::from(size) * 8e9 / pace_bps) as u64);
        MediaPacket { number, size, encoded }
    }

    /// §4.1.2.5: a packet more than the window while the queue is short.
    fn has_room(&self, size: u32) -> bool {
        let more = if self.delay.queue <= self.delay.target { self.mss() } else { 0.0 };
        self.in_flight + f64::from(size) <= self.cwnd + more
    }

    /// §4.1.1.1: the largest packet; 1000 bytes are recommended there.
    fn mss(&self) -> f64 {
        f64::from(self.size)
    }

    /// When a packet leaves although the window is full, as no report has come.
    fn probe_at(&self) -> Time {
        let last = self.sent.last().map_or(Time(0), |s| s.at);
        Time((self.reported.0 + SECOND.0).max(last.0 + RATE_INTERVAL.0))
    }

    fn note_in_flight(&mut self, now: Time) {
        if now.since(self.second) >= SECOND {
            self.second = now;
            push(&mut self.most_in_flight, 0.0, 5);
        }
        if let Some(most) = self.most_in_flight.back_mut() {
            *most = most.max(self.in_flight);
        }
    }

    // ---- the window ----

    /// All up to `highest` has left the network.
    fn acknowledge(&mut self, highest: u64) {
        let end = (highest + 1).max(self.acked);
        let bytes: f64 = self.sent[self.acked as usize..end as usize].iter().map(|s| f64::from(s.size)).sum();
        self.acked = end;
        self.in_flight -= bytes;
        self.newly_acked += bytes;
        self.rates.acked += bytes;
    }

    /// §4.1.2.4: what is missing for longer than packets were seen to be late is lost; whether anything is newly so.
    fn look_for_losses(&mut self, now: Time, report: &Report) -> bool {
        let mut is_lossy = false;
        let first = report.highest.saturating_sub(REPORTED as u64 - 1);
        for number in first..report.highest {
            let sent = &mut self.sent[number as usize];
            if !report.missing.contains(&number) {
                if let Some(lost) = sent.lost.take() {
                    self.reordering = self.reordering.max(now.since(lost));
                }
                sent.missed = None;
            } else if sent.lost.is_none() && now.since(*sent.missed.get_or_insert(now)) >= self.reordering {
                (sent.lost, is_lossy) = (Some(now), true);
            }
        }
        is_lossy
    }

    /// The part of round trips with a loss, of late: the average at the last loss event, and every round trip since without one.
    fn loss_event_rate(&self, now: Time) -> f64 {
        let quiet = seconds(now.since(self.loss_event)) / self.srtt_s.max(1e-3);
        self.loss_event_rate * (1.0 - LOSS_WEIGHT).powi(quiet.min(1e6) as i32)
    }

    // §4.1.2.2 and §4.1.3.
    fn on_loss_event(&mut self, now: Time) {
        self.loss_event_rate = self.loss_event_rate(now) + LOSS_WEIGHT;
        self.loss_event = now;
        self.cwnd = (self.cwnd * BETA_LOSS).max(MIN_CWND);
        self.fast = false;
        self.last_max_bps = self.target_bps;
        self.target_bps = (self.target_bps * BETA_R).max(self.plan.least_bps as f64);
    }

    // §4.1.2.2.
    fn update_cwnd(&mut self) {
        let acked = std::mem::take(&mut self.newly_acked);
        if self.fast {
            if self.delay.trend < TREND_TH {
                if self.in_flight * 1.5 + acked > self.cwnd {
                    self.cwnd += acked;
                }
                return;
            }
            self.fast = false;
            self.last_max_bps = self.target_bps;
        }
        let off_target = (self.delay.target - self.delay.queue) / self.delay.target;
        let is_used = self.in_flight * 1.25 + acked > self.cwnd;
        if off_target <= 0.0 || is_used {
            self.cwnd += GAIN * off_target * acked * self.mss() / self.cwnd;
        }
        let most = self.most_in_flight.iter().copied().fold(0.0, f64::max);
        self.cwnd = self.cwnd.min(most * HEAD_ROOM).max(MIN_CWND);
    }

    // §4.1.2.7: five seconds without a trend.
    fn resume_fast_increase(&mut self, now: Time) {
        if self.delay.trend >= TREND_LO || self.fast {
            self.trend_high = now;
        } else if seconds(now.since(self.trend_high)) >= RESUME_S && seconds(now.since(self.loss_event)) >= RESUME_S {
            self.fast = true;
        }
    }

    // ---- the rate ----

    // §4.1.3.
    fn adjust_rate(&mut self) {
        let waiting: f64 = self.queue.iter().map(|(size, _)| f64::from(*size) * 8.0).sum();
        let current = self.rates.current();
        let ramp = RAMP_UP.min(self.target_bps / 2.0) * RATE_INTERVAL_S;
        let away = (self.target_bps - self.last_max_bps) / self.last_max_bps * 4.0;
        let scale = (away * away).clamp(0.2, 1.0);
        if self.fast {
            self.target_bps += ramp * scale;
        } else {
            let change = current * (1.0 - PRE_CONGESTION_GUARD * self.delay.trend) - TX_QUEUE_FACTOR * waiting;
            self.target_bps += if change > 0.0 { (change * scale).min(ramp) } else { change };
            if current > 0.0 && waiting / current > QUEUE_TH_S {
                self.target_bps *= QUEUE_SCALE;
            }
        }
        let limit = current.max(self.rates.media_bps).max(self.rates.median()) * (2.0 - self.delay.trend_mem);
        self.target_bps = self.target_bps.min(limit).min(self.plan.most_bps as f64).max(self.plan.least_bps as f64);
    }
}

fn seconds(d: Duration) -> f64 {
    d.0 as f64 / 1e9
}

/// Appends to a history of at most `most`.
fn push(history: &mut VecDeque<f64>, value: f64, most: usize) {
    history.push_back(value);
    if history.len() > most {
        history.pop_front();
    }
}

/// Packets that a report tells of, the highest included.
pub const REPORTED: usize = 64;
/// Payload of a report, bytes: §4.2.1 has 44 for four chunks of run lengths.
pub const REPORT_SIZE: u32 = 44;
/// A number and a time fit.
const LEAST_SIZE: u32 = 16;
const SECOND: Duration = Duration(1_000_000_000);
const AVERAGE_INTERVAL: Duration = Duration(50_000_000);
const LOSS_WEIGHT: f64 = 1.0 / 50.0;
// §4.1.1.1; bytes, seconds and bit/s.
const TARGET_LO: f64 = 0.1;
const TARGET_HI: f64 = 0.4;
const DELAY_WEIGHT: f64 = 0.1;
const TREND_TH: f64 = 0.2;
const TREND_LO: f64 = 0.2;
const RESUME_S: f64 = 5.0;
const MIN_CWND: f64 = 3_000.0;
const HEAD_ROOM: f64 = 1.1;
const GAIN: f64 = 1.0;
const BETA_LOSS: f64 = 0.8;
const BETA_R: f64 = 0.9;
const MIN_PACE: f64 = 50_000.0;
const RATE_INTERVAL_S: f64 = 0.2;
const RATE_INTERVAL: Duration = Duration(200_000_000);
const RAMP_UP: f64 = 200_000.0;
const PRE_CONGESTION_GUARD: f64 = 0.1;
const TX_QUEUE_FACTOR: f64 = 1.0;
const QUEUE_TH_S: f64 = 0.02;
const QUEUE_SCALE: f64 = 0.95;
