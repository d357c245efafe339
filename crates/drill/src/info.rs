//! What `tcp_info` shows of the connection when a script looks: the fields that the model has, by the names of Linux without `tcpi_`.
//!
//! Source: the fields of `struct tcp_info` (tcp(7)). A script that asks for another field is not applicable.

use crate::endpoint::Stage;
use crate::host::Host;
use std::collections::BTreeMap;
use tcpscape_base::Time;
use tcpscape_tcp::Limit;

/// The fields now; `busy_ns` is how long data were waiting or in flight.
pub(crate) fn fields(host: &mut Host, now: Time, busy_ns: u64) -> BTreeMap<&'static str, i64> {
    let state = host.state();
    let since_data = host.last_data.map(|t| now.since(t).0 / 1_000_000);
    let mut fields = BTreeMap::from([("state", state)]);
    let Some(c) = &mut host.connection else { return fields };
    let i = c.sender.info();
    let (timestamps, sack, scaled) = c.has();
    let scales = c.scales();
    let options = [(timestamps, 1), (sack, 2), (scaled, 4), (c.ecn, 8)];
    let stats = c.sender.stats(now);
    let limited = |l: Limit| (stats.limited_ns[l as usize] / 1_000) as i64;
    fields.extend([
        ("ca_state", i.ca_state as i64),
        ("options", options.iter().filter(|o| o.0).map(|o| o.1).sum()),
        ("snd_wscale", i64::from(scales.0)),
        ("rcv_wscale", i64::from(scales.1)),
        ("rto", i.rto_us as i64),
        ("unacked", i64::from(i.unacked)),
        ("sacked", i64::from(i.sacked)),
        ("lost", i64::from(i.lost_out)),
        ("retrans", i64::from(i.copies_out)),
        ("rtt", i64::from(i.srtt_us)),
        ("rttvar", i64::from(i.rttvar_us)),
        ("min_rtt", i64::from(i.min_rtt_us)),
        ("snd_ssthresh", i64::from(i.ssthresh)),
        ("snd_cwnd", i64::from(i.cwnd)),
        ("snd_wnd", i64::from(i.rwnd)),
        ("reordering", i64::from(i.reordering)),
        ("reord_seen", stats.reord_seen as i64),
        ("total_retrans", i.retransmits as i64),
        ("dsack_dups", i.spurious as i64),
        ("bytes_acked", i.bytes_acked as i64),
        ("rcv_mss", i64::from(c.receiver.segment_size())),
        ("bytes_received", c.receiver.stats().bytes as i64),
        ("data_segs_out", stats.data_segs_out as i64),
        ("data_segs_in", c.data_segs_in as i64),
        ("delivered", i64::from(i.delivered)),
        ("delivered_ce", i64::from(i.delivered_ce)),
        ("delivery_rate", i.delivery_rate as i64),
        ("pacing_rate", i.pacing_rate as i64),
        ("busy_time", (busy_ns / 1_000) as i64),
        ("rwnd_limited", limited(Limit::Rwnd)),
        ("sndbuf_limited", limited(Limit::Sndbuf)),
        ("advmss", i64::from(c.own_mss()) - 12 * i64::from(timestamps)),
    ]);
    if c.stage != Stage::SynSent {
        fields.insert("snd_mss", i64::from(c.payload()));
    }
    if let Some(ms) = since_data {
        fields.insert("last_data_recv", ms as i64);
    }
    fields
}
