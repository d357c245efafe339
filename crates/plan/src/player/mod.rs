//! A video player with an adaptive bit rate, as a machine without input and output: the model's clients and the guest's both run it.
//!
//! What it is: the client of HTTP adaptive streaming (ISO/IEC 23009-1, DASH). It asks for one segment after the other over one connection, each at a
//! rung of its ladder that an [`Abr`] algorithm chooses, waits while its buffer is full, and plays as long as there is something to play.
//! Source: Yin, Jindal, Sekar, Sinopoli, SIGCOMM 2015, section 3 (the player's model, equations 1 to 5, and the QoE); the algorithms name theirs.
//! How it differs: playback begins with the first segment and resumes with the next one after a stall. Does not model: the manifest, TLS, headers of
//! answers, segments that differ in size at one rung (variable bit rate), seeking, abandoned downloads, the end of the video.

mod bola;
mod playback;
mod summary;
mod throughput;

use playback::Playback;
use serde::{Deserialize, Serialize};
pub use summary::PlayerSummary;
use tcpscape_base::{Duration, Time};

/// Bytes of a request, as the client writes it: a GET with its headers, which fits into one packet.
pub const REQUEST_BYTES: u32 = 400;
/// Most rungs of a ladder.
const MAX_RUNGS: usize = 100;
/// Shortest and longest segment.
const SEGMENTS: std::ops::RangeInclusive<u64> = 100_000_000..=60_000_000_000;

/// What a player is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayerPlan {
    /// Bit rates of the rungs in bit/s, the lowest first.
    #[serde(rename = "ladder_bps")]
    pub ladder: Vec<u64>,
    /// Media in a segment.
    pub segment_ns: u64,
    /// Media that the buffer holds.
    pub buffer_ns: u64,
    /// What chooses the rungs.
    pub abr: Abr,
}

/// Adaptive bit rate: the algorithms by their names. One is a file with a type that implements `Algorithm`, and a variant here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abr {
    /// Buffer-based: BOLA-BASIC.
    Bola,
    /// Rate-based: the harmonic mean of the last throughputs.
    Throughput,
}

/// A segment that was downloaded.
#[derive(Clone, Copy, Debug)]
struct Download {
    /// Its size.
    bytes: u64,
    /// From its request to its last byte.
    took: Duration,
}

/// Chooses rungs.
trait Algorithm: std::fmt::Debug + Send {
    /// A segment was downloaded.
    fn downloaded(&mut self, download: Download);
    /// The rung of the next segment where `level` of media is buffered: 0 is the lowest.
    fn choose(&self, level: Duration) -> usize;
}

impl PlayerPlan {
    /// What chooses its rungs.
    fn algorithm(&self) -> Box<dyn Algorithm> {
        match self.abr {
            Abr::Bola => Box::new(bola::Bola::new(self)),
            Abr::Throughput => Box::new(throughput::Throughput::new(self)),
        }
    }

    /// What is wrong with it: the field, and what would be right.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.ladder.is_empty() || self.ladder.len() > MAX_RUNGS {
            return Err(("ladder", format!("must have 1 to {MAX_RUNGS} rungs")));
        }
        if self.ladder.windows(2).any(|pair| pair[0] >= pair[1]) || self.ladder[0] == 0 {
            return Err(("ladder", "must rise from rung to rung".into()));
        }
        if !SEGMENTS.contains(&self.segment_ns) {
            return Err(("segment", "must be between 100 ms and 60 s".into()));
        }
        if self.buffer_ns < 2 * self.segment_ns || self.buffer_ns > 3_600_000_000_000 {
            return Err(("buffer", "must hold between two segments and an hour".into()));
        }
        Ok(())
    }

    /// Bytes of a segment at this rung, rounded up.
    pub fn segment_bytes(&self, rung: usize) -> u64 {
        let bits = u128::from(self.ladder[rung]) * u128::from(self.segment_ns);
        bits.div_ceil(8_000_000_000) as u64
    }

    fn segment(&self) -> Duration {
        Duration(self.segment_ns)
    }
}

/// What a player does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It asks for so many bytes, now.
    Request(u64),
    /// Its buffer is full: it asks again at that time.
    Wait(Time),
}

/// A request that was not answered in full yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Time,
    rung: usize,
}

/// A player.
#[derive(Debug)]
pub struct Player {
    plan: PlayerPlan,
    abr: Box<dyn Algorithm>,
    playback: Playback,
    asked: Option<Asked>,
    /// The rung of the last segment.
    last: Option<usize>,
    segments: u64,
    switches: u64,
    /// Sum of the segments' bit rates, and of the changes from one to the next, bit/s.
    rates: u128,
    changes: u128,
}

impl Player {
    /// A player before its first request; the plan passed [`PlayerPlan::check`].
    pub fn new(plan: &PlayerPlan) -> Player {
        Player {
            plan: plan.clone(),
            abr: plan.algorithm(),
            playback: Playback::default(),
            asked: None,
            last: None,
            segments: 0,
            switches: 0,
            rates: 0,
            changes: 0,
        }
    }

    /// What to do at `now`, with no request under way. Its first request is the moment from which the start-up delay counts.
    pub fn next(&mut self, now: Time) -> Next {
        self.playback.advance(now);
        let level = self.playback.level();
        let room = Duration(self.plan.buffer_ns - self.plan.segment_ns);
        if level > room {
            return Next::Wait(now + (level - room));
        }
        let rung = self.abr.choose(level);
        self.asked = Some(Asked { at: now, rung });
        self.playback.begin(now);
        Next::Request(self.plan.segment_bytes(rung))
    }

    /// The last byte of the segment asked for was read at `now`.
    pub fn on_segment_complete(&mut self, now: Time) {
        let Some(Asked { at, rung }) = self.asked.take() else { return };
        self.abr.downloaded(Download { bytes: self.plan.segment_bytes(rung), took: now.since(at) });
        self.playback.add(now, self.plan.segment());
        self.segments += 1;
        self.rates += u128::from(self.plan.ladder[rung]);
        if let Some(last) = self.last.replace(rung) {
            self.switches += u64::from(last != rung);
            self.changes += u128::from(self.plan.ladder[last].abs_diff(self.plan.ladder[rung]));
        }
    }

    /// What the viewer has seen by `end`.
    pub fn summary(&self, end: Time) -> PlayerSummary {
        let mut playback = self.playback;
        playback.advance(end);
        summary::of(self, &playback, end)
    }
}

#[cfg(test)]
mod tests;
