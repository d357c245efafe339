//! A player's results.

use super::playback::Playback;
use super::Player;
use serde::Serialize;
use tcpscape_base::Time;

/// What a viewer has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PlayerSummary {
    /// From the first request to the first picture, s; where that never came, from the request to the end.
    pub startup_s: f64,
    /// Whether there was a picture.
    pub began: bool,
    /// Stops after the start.
    pub stalls: u64,
    /// Time stopped, s; a stall that lasts to the end included.
    pub stalled_s: f64,
    /// Media played, s.
    pub played_s: f64,
    /// Segments downloaded in full.
    pub segments: u64,
    /// Segments of another rung than the one before.
    pub switches: u64,
    /// Mean bit rate of the segments' rungs, Mbit/s; none without a segment.
    pub bitrate_mbps: Option<f64>,
    /// Linear QoE for each segment, Mbit/s; none without a segment.
    pub qoe_mbps: Option<f64>,
}

impl PlayerSummary {
    /// What to say of players that never began; none where all did.
    pub fn caveat(players: impl IntoIterator<Item = PlayerSummary>) -> Option<String> {
        let (mut all, mut waiting) = (0, 0);
        for player in players {
            all += 1;
            waiting += usize::from(!player.began);
        }
        (waiting > 0).then(|| format!("{waiting} of {all} players never began to play; their start-up delay is how long they waited"))
    }
}

/// The results of a player whose playback was advanced to `end`.
pub(super) fn of(player: &Player, playback: &Playback, end: Time) -> PlayerSummary {
    let startup_s = playback.startup().unwrap_or_else(|| playback.waited(end)).secs_f64();
    let stalled_s = playback.stalled(end).secs_f64();
    let per_segment = |sum: f64| (player.segments > 0).then(|| sum * 1e-6 / player.segments as f64);
    let top = player.plan.ladder.last().map_or(0.0, |&rate| rate as f64);
    // Yin et al., equation 5, with q(R) = R, λ = 1 and a second of stall or of start-up worth a segment of the highest rung (μ = μ_s = 3000 kbit/s there).
    let qoe = player.rates as f64 - player.changes as f64 - top * (stalled_s + startup_s);
    PlayerSummary {
        startup_s,
        began: playback.startup().is_some(),
        stalls: playback.stalls(),
        stalled_s,
        played_s: playback.played().secs_f64(),
        segments: player.segments,
        switches: player.switches,
        bitrate_mbps: per_segment(player.rates as f64),
        qoe_mbps: per_segment(qoe),
    }
}
