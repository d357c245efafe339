"""The E-model (ITU-T G.107, 06/2015) for a call with G.711 and packet loss concealment: the rating factor R, and the mean opinion score of it.

R = Ro − Is − Id − Ie-eff. All parameters but the delay and the loss have their default values (G.107 table 2), so that Ro − Is is a constant and a
call without delay and loss has R = 93.2. Not modelled: bursts of losses (BurstR = 1), noise, echo beyond the default loss of 65 dB, an advantage of
mobile users. Page: docs/models/methods/responsiveness.md.
"""

from __future__ import annotations

import math

RO, IS = 94.7688, 1.4136
"""Signal-to-noise ratio, and impairments together with the voice, of the default values."""
TELR, RLR, NO = 65.0, 2.0, -61.1790
"""Loudness of the talker's echo, dB; receive loudness, dB; all noise together, dBm0p: of the default values."""
WEPL = 110.0
"""Weighted echo path loss, dB."""
IE, BPL = 0.0, 25.1
"""Impairment and robustness against random loss of G.711 with packet loss concealment (G.113 appendix I)."""
BEARABLE_DELAY_MS = 100.0
"""Absolute delay up to which a conversation suffers from echo alone."""


def rating(delay_ms: float, loss: float) -> float:
    """The rating factor R, 0 to 100, of a call whose mouth-to-ear delay is `delay_ms` (one way, ms), with a fraction `loss` of its packets lost."""
    return max(0.0, RO - IS - delay_impairment(delay_ms) - loss_impairment(loss))


def score(r: float) -> float:
    """The mean opinion score of a rating factor, 1 to 4.5 (G.107 annex B, whose polynomial is a little below 1 for ratings under 6.5)."""
    if r <= 0:
        return 1.0
    return 4.5 if r >= 100 else max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def loss_impairment(loss: float) -> float:
    """Ie-eff of G.711 with packet loss concealment, where a fraction `loss` of the packets is lost at random (G.107 §7.5)."""
    percent = 100 * loss
    return IE + (95 - IE) * percent / (percent + BPL)


def delay_impairment(delay_ms: float) -> float:
    """Id of a one-way delay, ms: the talker's echo, the listener's echo, and the delay itself (G.107 §7.4)."""
    return _talker_echo(delay_ms) + _listener_echo(2 * delay_ms) + _absolute(delay_ms)


def _talker_echo(delay_ms: float) -> float:
    rating_of_noise = -1.5 * (NO - RLR)
    heard = TELR - 40 * math.log10((1 + delay_ms / 10) / (1 + delay_ms / 150)) + 6 * math.exp(-0.3 * delay_ms**2)
    half = (rating_of_noise - (80 + 2.5 * (heard - 14))) / 2
    return (half + math.sqrt(half**2 + 100) - 1) * (1 - math.exp(-delay_ms))


def _listener_echo(round_trip_ms: float) -> float:
    half = (RO - 10.5 * (WEPL + 7) * math.pow(round_trip_ms + 1, -0.25)) / 2
    return half + math.sqrt(half**2 + 169)


def _absolute(delay_ms: float) -> float:
    if delay_ms <= BEARABLE_DELAY_MS:
        return 0.0
    octaves = math.log2(delay_ms / BEARABLE_DELAY_MS)
    return 25 * (math.pow(1 + octaves**6, 1 / 6) - 3 * math.pow(1 + (octaves / 3) ** 6, 1 / 6) + 2)
