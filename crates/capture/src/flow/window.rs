//! The receive window: its right edge, and when it was closed.
//!
//! Source: RFC 9293 §3.8.6, RFC 7323 §2.3 (scale; the window of a SYN is not scaled).

/// What the window does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It closed.
    Closed,
    /// It opened after so many ns.
    Opened(u64),
}

/// The receive window of one end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// The shift, if both SYNs had one; 0 if both were seen and one had none.
    pub shift: Option<u8>,
    edge: Option<u64>,
    most: u64,
    least: Option<u64>,
    closed_t: Option<u64>,
}

impl Window {
    /// Right edge: the byte after the last that may be sent; `None` where the scale is unknown.
    pub fn edge(&self) -> Option<u64> {
        self.edge
    }
    /// Largest seen, bytes; not scaled where the scale is unknown.
    pub fn most(&self) -> u64 {
        self.most
    }
    /// Smallest seen.
    pub fn least(&self) -> Option<u64> {
        self.least
    }
    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed_t.is_some()
    }
    /// A window field as bytes.
    pub fn bytes(&self, field: u16, is_syn: bool) -> u64 {
        u64::from(field) << if is_syn { 0 } else { self.shift.unwrap_or(0) }
    }
    /// The newest acknowledgement: `ack` and a window of `bytes`.
    pub fn take(&mut self, t: u64, ack: u64, bytes: u64) -> Option<Change> {
        self.most = self.most.max(bytes);
        self.least = Some(self.least.map_or(bytes, |l| l.min(bytes)));
        if self.shift.is_some() {
            self.edge = Some(self.edge.map_or(0, |e| e).max(ack + bytes));
        }
        match (self.closed_t, bytes) {
            (None, 0) => {
                self.closed_t = Some(t);
                Some(Change::Closed)
            }
            (Some(since), 1..) => {
                self.closed_t = None;
                Some(Change::Opened(t.saturating_sub(since)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_closes_and_opens_once() {
        let mut w = Window { shift: Some(7), ..Window::default() };
        let mut take = |t, field| {
            let bytes = w.bytes(field, false);
            w.take(t, 1000, bytes)
        };
        assert_eq!([take(1, 10), take(2, 0), take(3, 0), take(9, 2)], [None, Some(Change::Closed), None, Some(Change::Opened(7))]);
        assert_eq!((w.edge(), w.most(), w.least()), (Some(2280), 1280, Some(0)));
        assert_eq!(w.bytes(500, true), 500);
    }

    #[test]
    fn without_a_scale_there_is_no_edge() {
        let mut w = Window::default();
        w.take(0, 5, 100);
        assert_eq!((w.edge(), w.most()), (None, 100));
    }
}
