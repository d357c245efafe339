//! Frames on their way out of a port: those that cannot be sent at once wait here, in order.

use tcpscape_base::Time;

/// Most bytes that wait; what comes on top is dropped and counted.
const ROOM: usize = 32 << 20;

/// A frame that waits: where it lies, and when it was due.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its place in the outbox's memory.
    pub at: usize,
    /// Its length with `virtio_net_hdr`, bytes.
    pub length: usize,
    /// When it should have left.
    pub due: Time,
    /// Packets of MTU size in it.
    pub packets: u16,
}

/// Frames in the order in which they leave.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    frames: Vec<Waiting>,
    /// How many of `frames` are gone.
    gone: usize,
}

impl Outbox {
    /// Appends a frame; false if there is no room.
    pub fn push(&mut self, due: Time, packets: u16, frame: &[u8]) -> bool {
        if self.bytes.len() + frame.len() > ROOM {
            self.compact();
        }
        if self.bytes.len() + frame.len() > ROOM {
            return false;
        }
        self.frames.push(Waiting { at: self.bytes.len(), length: frame.len(), due, packets });
        self.bytes.extend_from_slice(frame);
        true
    }
    /// The frames that wait, and the memory in which they lie.
    pub fn waiting(&self) -> (&[Waiting], &[u8]) {
        (&self.frames[self.gone..], &self.bytes)
    }
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.gone == self.frames.len()
    }
    /// Number of frames that wait.
    pub fn len(&self) -> usize {
        self.frames.len() - self.gone
    }
    /// Bytes that are kept, those of frames that are gone included.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
    /// The first `n` are gone.
    pub fn remove(&mut self, n: usize) {
        self.gone += n;
        if self.is_empty() {
            self.bytes.clear();
            self.frames.clear();
            self.gone = 0;
        }
    }
    /// Frees the memory of those that are gone.
    fn compact(&mut self) {
        let Some(first) = self.frames.get(self.gone) else { return };
        let offset = first.at;
        self.bytes.drain(..offset);
        self.frames.drain(..self.gone);
        self.gone = 0;
        for frame in &mut self.frames {
            frame.at -= offset;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(outbox: &Outbox) -> Vec<(u64, Vec<u8>)> {
        let (frames, bytes) = outbox.waiting();
        frames.iter().map(|f| (f.due.0, bytes[f.at..f.at + f.length].to_vec())).collect()
    }

    #[test]
    fn frames_leave_in_order_and_keep_their_bytes_when_memory_is_freed() {
        let mut outbox = Outbox::default();
        for i in 0..5u8 {
            assert!(outbox.push(Time(u64::from(i)), 1, &[i; 3]));
        }
        outbox.remove(2);
        outbox.compact();
        assert_eq!(contents(&outbox), vec![(2, vec![2; 3]), (3, vec![3; 3]), (4, vec![4; 3])]);
        outbox.remove(3);
        assert!(outbox.is_empty());
        assert_eq!(outbox.bytes(), 0);
    }

    #[test]
    fn a_full_outbox_refuses_and_has_room_again_after_frames_left() {
        let mut outbox = Outbox::default();
        let frame = vec![0; ROOM / 4];
        assert!((0..4).all(|_| outbox.push(Time(0), 1, &frame)));
        assert!(!outbox.push(Time(0), 1, &frame));
        outbox.remove(1);
        assert!(outbox.push(Time(9), 1, &frame));
        assert_eq!(outbox.len(), 4);
    }
}
