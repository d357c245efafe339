//! Acknowledgements that say the same as the one sent before them: answers to segments that the receiver discarded.
//!
//! Source: RFC 7323 §5.3 (a segment whose timestamp is too old is discarded and answered with an ACK). The order is that of sending, by the
//! IP identification, since the network may change it.

/// Acknowledgements remembered.
const RECENT: usize = 64;

/// The last acknowledgements of one end.
#[derive(Debug, Default)]
pub struct Answers {
    /// Place in the order of sending, and a digest of what it says.
    recent: Option<Box<[(u64, u64); RECENT]>>,
}

impl Answers {
    /// Takes an acknowledgement with SACK blocks; gives how many answers without news it reveals: itself, if it says what the one before said;
    /// the one after, if that came earlier and says the same.
    pub fn without_news(&mut self, place: u64, digest: u64) -> u64 {
        let recent = self.recent.get_or_insert_with(|| Box::new([(0, 0); RECENT]));
        let has = |place: u64| u64::from(recent[place as usize % RECENT] == (place, digest));
        let n = has(place - 1) + has(place + 1);
        recent[place as usize % RECENT] = (place, digest);
        n
    }
}

/// A digest of an acknowledgement number, a window and SACK blocks.
pub fn digest(ack: u64, window: u16, blocks: &[(u64, u64)]) -> u64 {
    blocks.iter().fold(mix(ack, u64::from(window)), |h, b| mix(mix(h, b.0), b.1))
}

/// A digest with one more word in it.
pub fn mix(digest: u64, word: u64) -> u64 {
    (digest.rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_news_is_found_in_any_order_of_arrival() {
        let same = digest(5, 9, &[(7, 8)]);
        let other = digest(5, 9, &[(7, 9)]);
        let mut a = Answers::default();
        assert_eq!([(10, same), (11, same), (12, other)].map(|(p, d)| a.without_news(p, d)), [0, 1, 0]);
        let mut a = Answers::default();
        assert_eq!([(11, same), (13, same), (12, same), (10, same)].map(|(p, d)| a.without_news(p, d)), [0, 0, 2, 1]);
        assert_ne!(same, digest(5, 8, &[(7, 8)]));
    }
}
