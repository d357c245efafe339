//! What chooses the rungs of a player: the interface of an algorithm.

use tcpscape_base::Duration;

/// A segment that was downloaded.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    /// Its size.
    pub bytes: u64,
    /// From its request to its last byte.
    pub took: Duration,
}

/// Chooses rungs.
pub(super) trait Algorithm: std::fmt::Debug + Send {
    /// A segment was downloaded.
    fn downloaded(&mut self, download: Download);
    /// The rung of the next segment where `level` of media is buffered: 0 is the lowest.
    fn choose(&self, level: Duration) -> usize;
}
