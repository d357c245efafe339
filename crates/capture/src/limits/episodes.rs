//! Episodes in which a repair governs the window, not the congestion control's own growth.

use super::window::{Ending, Gap};
use super::{Cause, Repeat};

/// What governs the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Episode {
    /// The congestion control.
    #[default]
    None,
    /// Fast recovery, until this byte is acknowledged.
    Recovery(u64),
    /// A timeout, likewise.
    Timeout(u64),
}

/// The episode under way, and the last that ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Episodes {
    now: Episode,
    /// One that ended since the last departure: when.
    ended: Option<(u64, Cause)>,
}

impl Episodes {
    /// A segment is sent again when everything up to `nxt` was sent; gives whether that begins a recovery.
    pub(super) fn repeats(&mut self, repeat: Repeat, nxt: u64) -> bool {
        let begins = repeat == Repeat::Fast && self.now == Episode::None;
        match repeat {
            Repeat::Timeout => self.now = Episode::Timeout(nxt),
            Repeat::Fast if begins => self.now = Episode::Recovery(nxt),
            Repeat::Fast | Repeat::Probe => {}
        }
        begins
    }

    /// The sender learns at this time that everything below `una` was acknowledged.
    pub(super) fn acknowledged(&mut self, una: u64, at: u64) {
        let (point, cause) = match self.now {
            Episode::None => return,
            Episode::Timeout(point) => (point, Cause::Timeout),
            Episode::Recovery(point) => (point, Cause::Recovery),
        };
        if una >= point {
            (self.now, self.ended) = (Episode::None, Some((at, cause)));
        }
    }

    /// Cuts a gap at the end of an episode: what lies in it, if one ended, and the rest.
    pub(super) fn cut(&mut self, gap: Gap) -> (Option<Gap>, Gap) {
        if let Some((at, cause)) = self.ended.take() {
            let at = at.clamp(gap.from, gap.to);
            return (Some(Gap { to: at, ..within(gap, cause) }), Gap { from: at, ..gap });
        }
        match self.now {
            Episode::None => (None, gap),
            Episode::Recovery(_) => (None, within(gap, Cause::Recovery)),
            Episode::Timeout(_) => (None, within(gap, Cause::Timeout)),
        }
    }
}

/// Within an episode the receive window still holds what it holds, and in a recovery what was all sent is no matter of the window; the rest is
/// the episode's.
fn within(gap: Gap, cause: Cause) -> Gap {
    match gap.ending {
        Ending::Known(Cause::ReceiveWindow | Cause::Timeout) => gap,
        _ if gap.is_drained && cause == Cause::Recovery => gap,
        _ => Gap { ending: Ending::Known(cause), ..gap },
    }
}
