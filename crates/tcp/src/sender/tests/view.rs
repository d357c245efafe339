//! What a test sees of a connection beside its packets, `Info` and statistics, and what it arranges that packets would take long to bring about.
//! No other test knows the sender's parts.

use super::*;
use crate::cc::EcnMode;
use crate::sender::flight::Flight;
use crate::sender::repair::Phase;
use crate::sender::report::Overtaken;

/// What a test sees.
impl Script {
    pub fn stats(&self) -> &SenderStats {
        &self.s.c.stats
    }
    pub fn state(&self) -> CaState {
        self.s.info().ca_state
    }
    pub fn cwnd(&self) -> u32 {
        self.s.info().cwnd
    }
    pub fn ssthresh(&self) -> u32 {
        self.s.info().ssthresh
    }
    pub fn una(&self) -> u64 {
        self.s.bytes_acked() + 1
    }
    pub fn flight(&self) -> &Flight {
        &self.s.c.flight
    }
    pub fn phase(&mut self) -> Phase {
        self.s.repair.recovery().phase()
    }
    pub fn has_reneged(&mut self) -> bool {
        self.s.repair.recovery().has_reneged()
    }
    /// The left edge when the reduction began that could be undone.
    pub fn undo_from(&self) -> Option<u64> {
        self.s.repair.watch().undo_from
    }
    /// Recoveries for which the reordering window stays as it is.
    pub fn window_kept_for(&mut self) -> u8 {
        self.s.repair.rack().kept_for()
    }
    pub fn probe_is_out(&self) -> bool {
        self.s.repair.probe_is_out()
    }
    pub fn probe_ends_at(&self, seq: u64) -> bool {
        self.s.repair.watch().probe_end == Some(seq)
    }
    /// Credit towards the next increase of the window, packets.
    pub fn credit(&self) -> u32 {
        self.s.governor.window().cwnd_cnt
    }
    pub fn is_paced(&self) -> bool {
        self.s.governor.window().paced
    }
    pub fn owns_window(&self) -> bool {
        self.s.governor.owns_window()
    }
    pub fn is_window_limited(&mut self) -> bool {
        self.s.governor.usage().is_limited()
    }
    pub fn ecn_mode(&self) -> EcnMode {
        self.s.c.ecn.mode
    }
    /// Times that the timeout was doubled.
    pub fn backoff(&self) -> u32 {
        self.s.c.rtt.backoff()
    }
    /// Segments that one burst may hold.
    pub fn burst_segments(&self) -> u32 {
        self.s.outbound.burst_segments(&self.s.c, &self.s.governor)
    }
    pub fn next_departure_ns(&self) -> u64 {
        self.s.outbound.waiting().next_departure_ns
    }
    pub fn pacing_timer(&mut self) -> Option<Time> {
        self.s.outbound.parts().pacer.timer()
    }
    /// Memory that the host's queue holds, bytes.
    pub fn host_memory(&mut self) -> u64 {
        self.s.outbound.parts().host.memory()
    }
    /// Memory that the send buffer may use, bytes.
    pub fn buffer_size(&mut self) -> u32 {
        *self.s.outbound.parts().buffer.size()
    }
    /// Memory that it holds, bytes.
    pub fn memory(&mut self) -> u64 {
        self.s.outbound.parts().buffer.used(&self.s.c.flight)
    }
    /// What the timer is for and when it fires, ms.
    pub fn timer(&mut self) -> Option<(Purpose, f64)> {
        let fires = self.s.outbound.parts().timer.fires()?.0 as f64 / 1e6 - self.base as f64;
        Some((self.s.outbound.purpose()?, fires))
    }
}

/// What a test arranges.
impl Script {
    pub fn set_cwnd(&mut self, cwnd: u32) {
        self.s.governor.window_mut().cwnd = cwnd;
    }
    pub fn set_ssthresh(&mut self, ssthresh: u32) {
        self.s.governor.window_mut().ssthresh = ssthresh;
    }
    pub fn set_pacing_rate(&mut self, rate: u64) {
        self.s.governor.window_mut().pacing_rate = rate;
    }
    pub fn set_buffer_size(&mut self, bytes: u32) {
        *self.s.outbound.parts().buffer.size() = bytes;
    }
    /// Room in a send buffer that TCP sizes.
    pub fn make_room(&mut self, bytes: u64) {
        self.s.outbound.parts().buffer.grow(bytes, u32::MAX);
    }
    /// Data that end at `high` have overtaken a segment that begins at `low`.
    pub fn see_reordering(&mut self, low: u64, high: u64) {
        self.s.repair.rack().reordering.overtaken(Overtaken { low, high }, MSS);
    }
    pub fn widen_reordering_window(&mut self, steps: u32) {
        self.s.repair.rack().widen(steps);
    }
    /// Unsent data of `len` bytes, in a buffer of their own.
    pub fn append_buffer(&mut self, len: u32) {
        self.s.outbound.parts().buffer.begin();
        self.s.outbound.parts().buffer.append(len, true, len);
        self.s.outbound.parts().buffer.push();
    }
    /// What waits may go.
    pub fn release(&mut self) {
        self.s.on_released();
    }
    pub fn update_pacing_rate(&mut self) {
        self.s.governor.update_pacing_rate(&self.s.c);
    }
    pub fn expand_send_buffer(&mut self) {
        self.s.outbound.expand_send_buffer(&self.s.c, &self.s.governor, self.s.repair.standing());
    }
}
