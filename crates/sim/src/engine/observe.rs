//! What is seen of a trial: the hash over deliveries, samples of flows and queues, the results.

use super::*;

impl Engine<'_> {
    #[inline]
    pub(super) fn note_delivery(&mut self, i: usize, s: &Segment) {
        self.out.arrivals += 1;
        for v in [self.now.0, s.seq ^ (s.ack << 1), (i as u64) << 32 | u64::from(s.len) << 8 | u64::from(s.flags.0)] {
            self.out.hash = (self.out.hash ^ v).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
    }

    pub(super) fn sample_flows(&mut self) {
        for (i, f) in self.flows.iter().enumerate() {
            if f.begin.is_none() || f.closed {
                continue;
            }
            self.out.samples.push(self.now, i as u32, &f.sender.info());
        }
        let next = self.now + Duration(self.plan.sample_interval_ns);
        if next < self.end {
            self.events.want(SAMPLE, next);
        }
    }

    pub(super) fn sample_queues(&mut self) {
        for (k, pipe) in [&self.host, &self.net, &self.reverse].into_iter().enumerate() {
            let mut queues = pipe.stats();
            for q in queues.iter_mut().filter(|q| q.depth == 0) {
                (q.backlog_packets, q.backlog_bytes) = pipe.backlog(q.stage);
            }
            self.out.queue_samples.push(self.now, k as u8, &queues);
        }
        let next = self.now + Duration(self.plan.queue_sample_interval_ns);
        if next < self.end {
            self.events.want(QUEUE_SAMPLE, next);
        }
    }

    pub(super) fn finish(mut self) -> TrialOutput {
        let end = self.end;
        self.out.flows = self.flows.iter_mut().map(|f| f.summary(end)).collect();
        self.out.wscale = self.flows.iter().map(|f| f.receiver.wscale()).collect();
        for (name, pipe) in [("forward", &self.host), ("forward", &self.net), ("reverse", &self.reverse)] {
            self.out.queues.extend(pipe.stats().into_iter().map(|s| (name, s)));
        }
        let silent = self.out.flows.iter().filter(|f| f.bytes_received == 0).count();
        if silent > 0 {
            self.out.caveats.push(format!("{silent} of {} flows carried no data", self.out.flows.len()));
        }
        self.out
    }
}
