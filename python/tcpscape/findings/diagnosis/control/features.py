"""The features of a flow: the course of its window, and for each candidate how far it would have gone from it, also compared with the best one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tcpscape.findings.diagnosis.control.shadows import CANDIDATES, compare, distance
from tcpscape.findings.diagnosis.control.shape import shape
from tcpscape.findings.diagnosis.control.watched import Floats, Watched

COMPARED = (
    "unlikely_short", "unlikely_long", "backoff_unlikely", "error_short", "error_long", "middle_long", "exact_short", "exact_long", "backoff_error",
    "backoff_close", "close_long",
)  # fmt: skip
"""Measures of a candidate that are also compared with the best candidate's."""
LEAST_IS_BEST = ("error", "middle", "unlikely")
"""In the names of measures of which the best candidate has the least."""
MISSING = -9.0
"""Stands for what a flow does not show."""
MOST = 99.0


def features(watched: Watched) -> dict[str, float]:
    """Name → value, NaN where the flow does not show it; the same names for every flow."""
    values = shape(watched) | related(compare(watched))
    return values | evidence(values)


def evidence(values: Mapping[str, float]) -> dict[str, float]:
    """How much the whole flow speaks against each candidate: its mean distances from the best one, times what was compared, as signed logarithms.

    `margin` is what speaks against the next candidate for the one that is best, and minus what speaks against itself for any other.
    """
    rounds = float(np.exp(values["log_rounds"]))
    compared, cuts = rounds * values["open"], max(float(np.exp(values["cuts"])) * rounds - 0.5, 0.0)
    growth = np.array([_apart(values, name, "unlikely_long") + _apart(values, name, "unlikely_short") for name in CANDIDATES]) * compared / 2
    backoff = np.array([_apart(values, name, "backoff_unlikely") for name in CANDIDATES]) * cuts
    against = growth + backoff - (growth + backoff).min()
    order = np.sort(against)
    result: dict[str, float] = {"best.margin": float(np.log1p(order[1]))}
    for i, name in enumerate(CANDIDATES):
        margin = order[1] if against[i] <= 0 else -against[i]
        result |= {
            f"{name}.against": float(np.log1p(against[i])), f"{name}.against_growth": float(np.log1p(growth[i])),
            f"{name}.against_backoff": float(np.log1p(backoff[i])), f"{name}.margin": float(np.sign(margin) * np.log1p(abs(margin))),
        }  # fmt: skip
    return result


def _apart(values: Mapping[str, float], name: str, measure: str) -> float:
    value = values[f"{name}.{measure}.apart"]
    return 0.0 if np.isnan(value) else value


def related(measures: dict[str, dict[str, float]]) -> dict[str, float]:
    """The measures of each candidate, their distance from the best one's, and the candidate's rank by all of them."""
    result = {f"{name}.{measure}": value for name, values in measures.items() for measure, value in values.items()}
    for measure in COMPARED:
        values: Floats = np.array([measures[name][measure] for name in CANDIDATES], float)
        known = values[np.isfinite(values)]
        best = float("nan") if not len(known) else float(known.min() if any(w in measure for w in LEAST_IS_BEST) else known.max())
        result[f"best.{measure}"] = best
        result |= {f"{name}.{measure}.apart": float(v) - best for name, v in zip(CANDIDATES, values, strict=True)}
    total = np.array([distance(measures[name]) for name in CANDIDATES])
    places = np.argsort(np.argsort(total, kind="stable"))
    for name, value, place in zip(CANDIDATES, total, places, strict=True):
        result |= {f"{name}.total": float(value), f"{name}.total.apart": float(value - total.min()), f"{name}.place": float(place)}
    return result


def bounded(row: Floats) -> Floats:
    """Values as the trees read them: none is missing, none is beyond :data:`MOST`."""
    finite: Floats = np.clip(np.nan_to_num(row, nan=MISSING, posinf=MOST, neginf=-MOST), -MOST, MOST)
    return finite.astype(np.float32).astype(np.float64)


def vector(values: Mapping[str, float], names: Sequence[str]) -> Floats:
    """The values in the order of `names`."""
    return bounded(np.array([values.get(name, float("nan")) for name in names], float))


def pairs(values: Mapping[str, float]) -> Floats:
    """A row for each candidate: its own measures under names that are the same for all, which candidate it is, and the course of the window."""
    about = [value for name, value in sorted(values.items()) if _is_common(name)]
    measures = sorted(name.partition(".")[2] for name in values if name.startswith(f"{CANDIDATES[0]}."))
    rows = [
        [values[f"{name}.{measure}"] for measure in measures] + [float(name == other) for other in CANDIDATES] + about for name in CANDIDATES
    ]  # fmt: skip
    return bounded(np.array(rows, float))


def _is_common(name: str) -> bool:
    """Whether a feature is of no single candidate."""
    return "." not in name or name.startswith("best.")
