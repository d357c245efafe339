//! Dynamic right-sizing: the receiver's own estimate of the round-trip time, and the buffer that follows the reader.
//!
//! Source: Fisk & Feng, Dynamic Right-Sizing (2001); Linux: `tcp_rcv_rtt_measure_ts()`, `tcp_rcv_rtt_measure()`,
//! `tcp_rcv_space_adjust()`.

use super::window::Window;
use tcpscape_base::Time;

/// Receiver-side RTT and what the application read in the last of them.
#[derive(Default)]
pub(super) struct Autotune {
    /// Smoothed RTT in µs << 3, 0 before the first sample (`rcv_rtt_est.rtt_us`).
    pub rtt_us: u32,
    /// A window's worth of data is on its way since `Time` and ends here (`rcv_rtt_est`).
    round: Option<(u64, Time)>,
    /// Last timestamp echo used (`rcv_rtt_last_tsecr`).
    last_tsecr: u32,
    /// Bytes read in the last round trip (`rcvq_space`): amount, start, time.
    pub space: u32,
    seq: u64,
    time: Time,
}

impl Autotune {
    /// The connection is established. Linux: tcp_init_buffer_space()
    pub fn establish(&mut self, now: Time, w: &Window, copied: u64) {
        self.time = now;
        self.seq = copied;
        self.space = w.ssthresh.min(w.wnd).min(10 * w.advmss);
    }

    // Linux: tcp_rcv_rtt_update(): the minimum at once, larger samples by 1/8 when they come from timestamps.
    fn update(&mut self, sample_us: u32, by_window: bool) {
        let m = sample_us.saturating_mul(8);
        if self.rtt_us == 0 || m < self.rtt_us {
            self.rtt_us = m;
        } else if !by_window {
            self.rtt_us = self.rtt_us - (self.rtt_us >> 3) + sample_us;
        }
    }

    /// A segment echoes a timestamp of ours, `age_ms` old; `full` when it is at least as long as the sender's MSS. An age
    /// of less than a millisecond counts as `least_ms`, 0 for not at all. Linux: tcp_rcv_rtt_measure_ts()
    #[inline]
    pub fn on_echo(&mut self, tsecr: u32, age_ms: u32, full: bool, least_ms: u32) {
        if tsecr == self.last_tsecr {
            return;
        }
        self.last_tsecr = tsecr;
        let age_ms = age_ms.max(least_ms);
        if full && tsecr != 0 && age_ms > 0 && age_ms < i32::MAX as u32 / 1_000 {
            self.update(age_ms * 1_000, false);
        }
    }

    /// Data was queued: has a full window passed? Linux: tcp_rcv_rtt_measure()
    #[inline]
    pub fn on_data(&mut self, now: Time, rcv_nxt: u64, wnd: u32) {
        if let Some((end, since)) = self.round {
            if rcv_nxt < end {
                return;
            }
            self.update(((now.micros() - since.micros()) as u32).max(1), true);
        }
        self.round = Some((rcv_nxt + u64::from(wnd), now));
    }

    /// The application read up to `copied`: once per round trip, the buffer is made to hold what it read, twice over,
    /// and room for growth. `waiting` bytes that are still in the queue count against it (6.12).
    /// Linux: tcp_rcv_space_adjust()
    pub fn on_read(&mut self, now: Time, copied: u64, waiting: u64, w: &mut Window) {
        let rtt = u64::from(self.rtt_us >> 3);
        if self.rtt_us == 0 || now.micros() - self.time.micros() < rtt {
            return;
        }
        let read = (copied - self.seq).saturating_sub(waiting) as u32;
        if read > self.space {
            if !w.locked {
                let base = (u64::from(read) << 1) + 16 * u64::from(w.advmss);
                let grow = base * u64::from(read - self.space) / u64::from(self.space.max(1));
                let win = base + (grow << 1);
                let need = if w.measures() {
                    w.space_from_win(win)
                } else {
                    // The memory of one segment: its truesize, or more if that is less than twice its payload.
                    let mut mem = w.advmss + w.max_tcp_header + BUFFER_OVERHEAD;
                    while w.win_from(i64::from(mem)) < i64::from(w.advmss) {
                        mem += 128;
                    }
                    win / u64::from(w.advmss) * u64::from(mem)
                };
                let need = need.min(u64::from(w.rmem_max)) as u32;
                if need > w.rcvbuf {
                    w.rcvbuf = need;
                    w.clamp = w.full_space() as u32;
                }
            }
            self.space = read;
        }
        self.seq = copied;
        self.time = now;
    }
}

/// What a socket buffer costs besides its payload and headers in the estimate of a segment's memory:
/// `struct sk_buff` (256) and `struct skb_shared_info` (320).
const BUFFER_OVERHEAD: u32 = 576;
