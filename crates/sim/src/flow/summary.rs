//! A connection's results at the end of the trial.

use super::Flow;
use tcpscape_base::Time;
use tcpscape_plan::results::{CwndSummary, FlowSummary, LimitedBy, ReceiverSummary, RttSummary};
use tcpscape_tcp::{ReceiverStats, SenderStats};

impl Flow<'_> {
    /// Its results at the end of the trial.
    pub fn summary(&mut self, end: Time) -> FlowSummary {
        let stop = self.stop.min(end);
        let seconds = self.begin.map_or(0.0, |b| stop.since(b).secs_f64());
        let (info, ecn) = (self.sender.info(), self.sender.uses_ecn());
        let bytes = self.bytes_received();
        let receiver = receiver_summary(self.receiver.stats());
        let s = self.sender.stats(stop);
        FlowSummary {
            cca: self.plan.cca.clone(),
            start_s: self.begin.map_or(f64::NAN, Time::secs_f64),
            stop_s: stop.secs_f64(),
            seconds,
            established: self.begin.is_some(),
            bytes_received: bytes,
            bytes_received_first_half: self.reader.received_first_half(),
            bytes_sent: s.bytes_written,
            goodput_mbps: if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 },
            retransmits: s.retransmits,
            spurious_retransmits: s.dsack_dups,
            dsacks: receiver.dsacks,
            rtos: Some(s.rtos),
            spurious_rtos: Some(s.spurious_rtos),
            fast_recoveries: Some(s.fast_recoveries),
            undos: Some(s.undos),
            tlps: Some(s.tlps),
            reord_seen: s.reord_seen,
            reordering: info.reordering,
            rtt_ms: RttSummary::of(&s.rtt),
            srtt_ms: Some(ms(info.srtt_us)),
            min_rtt_ms: (info.min_rtt_us < u32::MAX).then(|| ms(info.min_rtt_us)),
            cwnd: cwnd_summary(s),
            limited_by: Some(limits(s)),
            ecn,
            delivered_ce: u64::from(info.delivered_ce),
            ecn_reductions: Some(s.ecn_reductions),
            data_segs_out: s.data_segs_out,
            segs_in: s.segs_in,
            paws_rejected: Some(s.paws_rejected),
            max_rwnd: s.max_rwnd,
            receiver: Some(receiver),
            player: self.client.as_ref().and_then(|client| client.asker.player(stop)),
            responses: self.client.as_ref().and_then(|client| client.asker.responses()),
        }
    }
}

/// µs in ms.
fn ms(us: u32) -> f64 {
    f64::from(us) / 1e3
}

/// Time that the sender has been sending, ns.
fn sending(s: &SenderStats) -> u64 {
    s.limited_ns.iter().sum()
}

fn cwnd_summary(s: &SenderStats) -> CwndSummary {
    let mean = if sending(s) == 0 { 0.0 } else { s.cwnd_integral as f64 / sending(s) as f64 };
    CwndSummary { mean: Some(mean), max: Some(s.cwnd_max) }
}

fn limits(s: &SenderStats) -> LimitedBy {
    let share = |ns: u64| if sending(s) == 0 { 0.0 } else { ns as f64 / sending(s) as f64 };
    let [app, rwnd, cwnd, pacing, sndbuf, tsq] = s.limited_ns.map(share);
    LimitedBy { app, rwnd, cwnd, pacing: Some(pacing), sndbuf, tsq: Some(tsq) }
}

fn receiver_summary(r: &ReceiverStats) -> ReceiverSummary {
    ReceiverSummary {
        acks: r.acks,
        ce_segments: r.ce_segments,
        ooo_segments: r.ooo_segments,
        duplicates: r.duplicates,
        dsacks: r.dsacks,
        compressed_acks: r.compressed_acks,
        dropped_paws: r.dropped_paws,
        dropped_memory: r.dropped_memory + r.pruned,
        zero_window_acks: r.zero_window_acks,
    }
}
