"""Trained trees as plain arrays, and the probabilities that they give.

`benches/control.py` trains two forests on runs of the virtual engine and of the model and writes `forest.npz`. One reads all features and tells the
controls apart; the other reads the measures of one candidate and says whether it is the right one, so that what holds for all candidates is learnt
from all runs. Nothing in the file is code.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpscape.findings.diagnosis.control.features import pairs, vector
from tcpscape.findings.diagnosis.control.shadows import CANDIDATES, SAME
from tcpscape.findings.diagnosis.control.watched import Floats

FILE = Path(__file__).with_name("forest.npz")
"""The forest that comes with tcpscape."""
FORMAT = 2
"""Version of the file's layout."""
ARRAYS = ("roots", "feature", "threshold", "left", "right", "leaves")
DEEPEST = 64
"""Levels of a tree at most."""
FLOOR = 0.01
"""Added to both probabilities before they are multiplied: neither forest alone rules a control out."""


@dataclass(frozen=True, slots=True)
class Trees:
    """Decision trees, node by node."""

    roots: NDArray[np.int32]
    feature: NDArray[np.int16]
    """Of each node; −1 of a leaf."""
    threshold: NDArray[np.float32]
    """A value up to it goes left."""
    left: NDArray[np.int32]
    """Left child of a node, distribution of a leaf."""
    right: NDArray[np.int32]
    leaves: NDArray[np.uint8]
    """Distributions, a row each, in 1/255."""

    def mean(self, row: Floats) -> Floats:
        """Mean distribution of the leaves that a row of features reaches."""
        nodes = self.roots.copy()
        for _ in range(DEEPEST):
            inner = self.feature[nodes] >= 0
            if not inner.any():
                break
            at = nodes[inner]
            goes_left = row[self.feature[at]].astype(np.float32) <= self.threshold[at]
            nodes[inner] = np.where(goes_left, self.left[at], self.right[at])
        reached: Floats = self.leaves[self.left[nodes]].mean(axis=0, dtype=np.float64)
        return reached / 255


@dataclass(frozen=True, slots=True)
class Forest:
    """Both forests, with what is needed to read their answer."""

    controls: tuple[str, ...]
    """What it tells apart."""
    features: tuple[str, ...]
    """Names of the features of `direct`, in the order of its input."""
    direct: Trees
    """Features → distribution over the controls."""
    paired: Trees
    """Measures of a candidate → whether it is the right one."""
    prior: Floats
    """How frequent each control is taken to be."""
    sharpness: float
    """Power of the combined distribution that fits held-out runs best."""
    confidence: Floats
    """Two rows: largest probability → share of held-out runs in which the name was right."""
    least: Mapping[str, float]
    """Control → confidence below which the answer is "unknown"."""
    provenance: Mapping[str, Any]
    """What it was trained on."""

    def probabilities(self, values: Mapping[str, float]) -> dict[str, float]:
        """Control → probability, the most probable first."""
        direct = self.direct.mean(vector(values, self.features))
        paired = np.array([self.paired.mean(row)[1] for row in pairs(values)])
        final = posterior(combined(direct[None, :], paired[None, :], self.controls), self.prior, self.sharpness, self.controls)[0]
        order = np.argsort(-final, kind="stable")
        return {self.controls[i]: float(final[i]) for i in order}

    def certainty(self, probability: float) -> float:
        """The share of held-out runs in which a name with this probability was right."""
        return float(np.interp(probability, self.confidence[0], self.confidence[1]))


def combined(direct: Floats, paired: Floats, controls: Sequence[str]) -> Floats:
    """Rows of both forests' probabilities as one; a control that cannot watch has that of `direct` in both."""
    second = direct.copy()
    for column, name in enumerate(CANDIDATES):
        if name in controls:
            second[:, controls.index(name)] = paired[:, column]
    product: Floats = (direct + FLOOR) * (second + FLOOR)
    return product


def posterior(scores: Floats, prior: Floats, power: float, controls: Sequence[str]) -> Floats:
    """Rows of scores to a power, times the prior, normalised; controls that are the same share what they have as the prior says."""
    raised: Floats = scores**power * prior
    normal: Floats = raised / raised.sum(axis=1, keepdims=True)
    for pair in SAME.items():
        if set(pair) <= set(controls):
            columns = [controls.index(name) for name in pair]
            normal[:, columns] = normal[:, columns].sum(axis=1, keepdims=True) * prior[columns] / prior[columns].sum()
    return normal


@functools.cache
def trained(file: Path = FILE) -> Forest:
    """The forest of a file."""
    with np.load(file, allow_pickle=False) as arrays:
        about = json.loads(str(arrays["about"]))
        if about["format"] != FORMAT:
            raise ValueError(f"{file.name} has format {about['format']}, not {FORMAT}; train it again with benches/control.py")
        direct, paired = (Trees(*(arrays[f"{kind}_{name}"] for name in ARRAYS)) for kind in ("direct", "paired"))
    return Forest(
        controls=tuple(about["controls"]), features=tuple(about["features"]), direct=direct, paired=paired, prior=np.array(about["prior"]),
        sharpness=about["sharpness"], confidence=np.array(about["confidence"]), least=about["least"], provenance=about["provenance"],
    )  # fmt: skip
