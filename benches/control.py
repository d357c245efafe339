"""Trains and measures the classifier of congestion controls (docs/models/methods/control.md).

    .venv/bin/python benches/control_runs.py RUNS --set train --to 680            # captures; then --set wide, --set test, --set model
    .venv/bin/python benches/control.py features RUNS FEATURES                    # the features of each capture, a JSON each
    .venv/bin/python benches/control.py train FEATURES --sets train,wide,model    # writes the forest that comes with tcpscape
    .venv/bin/python benches/control.py measure FEATURES --sets test              # confusion matrix, precision against coverage

It needs scikit-learn: `.venv/bin/python -m pip install scikit-learn`. Training is the same to the last bit for the same features, and knows nothing of the sets that it is not told.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold

from tcpscape.findings.diagnosis.control.classify import ARRAYS, FILE, FORMAT, MOST_HELD, combined, features, pairs, posterior, trained, vector
from tcpscape.findings.diagnosis.control.watched import CANDIDATES, watch

TREES, PAIR_TREES, PAIR_LEAF = 200, 50, 5
"""Trees of the forests, and pairs of a leaf at least."""
PRIOR = {"cubic": 30.0, "bbr": 20.0, "reno": 10.0}
"""How frequent the controls are taken to be, %; the rest share what is left."""
REST = 40 / 14
FOLDS = 4
PRECISION = 0.985
"""What the answers on held-out training runs must reach; the threshold follows from it."""
NAME_PRECISION = 0.9
"""What the answers with each name must reach, one wrong one more counted."""
NEVER = 2.0
"""A certainty that nothing reaches."""
COARSE = ("cubic", "reno", "bbr")
"""Controls that are told apart from all others together."""


def read(folder: Path, sets: list[str]) -> list[dict[str, Any]]:
    """The runs of these sets, in the order of their names, without those that are not judged since something else held their window."""
    files = [f for f in sorted(folder.glob("*.json")) if f.name.rsplit("-", 1)[0] in sets]
    runs = [json.loads(f.read_text()) | {"name": f.stem} for f in files]
    return [r for r in runs if max(r["features"]["rwnd_held"], r["features"]["app_held"]) <= MOST_HELD]


def extract(runs: Path, out: Path) -> None:
    """Writes the features of each capture that has none yet."""
    from tcpscape import capture

    out.mkdir(parents=True, exist_ok=True)
    for about in sorted(runs.glob("*.json")):
        target = out / about.name
        if target.exists():
            continue
        run = json.loads(about.read_text())
        if len(run["scenario"]["flows"]) > 1:
            continue  # which of the captured flows has the control is not in the packets
        observation = capture.read(about.with_suffix(".pcap.gz"))
        first = min(observation.flows, key=lambda f: (f.start_s, -f.packets), default=None)
        watched = watch(first) if first else None
        if watched is not None:
            target.write_text(
                json.dumps({"label": run["control"], "engine": run["engine"], "scenario": run["scenario"], "features": features(watched)})
            )


def matrix(runs: list[dict[str, Any]], names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of features, a block of rows of pairs for each run, and labels."""
    values = [r["features"] for r in runs]
    return np.array([vector(v, names) for v in values]), np.array([pairs(v) for v in values]), np.array([r["label"] for r in runs])


def fit(x: np.ndarray, p: np.ndarray, y: np.ndarray) -> tuple[ExtraTreesClassifier, ExtraTreesClassifier]:
    """Both forests."""
    right = (y[:, None] == np.array(CANDIDATES)[None, :]).ravel()
    direct = ExtraTreesClassifier(TREES, max_features=0.1, random_state=0).fit(x, y)
    paired = ExtraTreesClassifier(PAIR_TREES, max_features=0.2, min_samples_leaf=PAIR_LEAF, class_weight="balanced", random_state=0)
    return direct, paired.fit(p.reshape(-1, p.shape[2]), right)


def held_out(x: np.ndarray, p: np.ndarray, y: np.ndarray, controls: tuple[str, ...]) -> np.ndarray:
    """Scores of each run by forests that have not seen it."""
    direct, paired = np.zeros((len(y), len(controls))), np.zeros((len(y), len(CANDIDATES)))
    for learn, judge in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x, y):
        one, two = fit(x[learn], p[learn], y[learn])
        direct[np.ix_(judge, np.searchsorted(controls, one.classes_))] = one.predict_proba(x[judge])
        paired[judge] = two.predict_proba(p[judge].reshape(-1, p.shape[2]))[:, 1].reshape(len(judge), -1)
    return combined(direct, paired, controls)


def calibrate(scores: np.ndarray, y: np.ndarray, controls: tuple[str, ...], prior: np.ndarray) -> tuple[float, np.ndarray, dict[str, float]]:
    """Sharpness, the map from probability to certainty, and the least certainty of an answer with each name; runs weigh as the prior says."""
    truth = np.searchsorted(controls, y)
    weights = (prior / np.maximum(np.bincount(truth, minlength=len(controls)), 1))[truth]
    weights /= weights.mean()
    powers = np.linspace(0.3, 3, 55)
    loss = [-(weights * np.log(np.maximum(posterior(scores, prior, p, controls)[np.arange(len(y)), truth], 1e-9))).mean() for p in powers]
    power = float(powers[int(np.argmin(loss))])
    final = posterior(scores, prior, power, controls)
    most, right = final.max(axis=1), final.argmax(axis=1) == truth
    curve = IsotonicRegression(out_of_bounds="clip", y_min=0.0, y_max=0.995).fit(most, right, sample_weight=weights)
    at = np.linspace(0, 1, 41)
    certain = np.array([at, np.maximum.accumulate(0.97 * curve.predict(at) + 0.03 * at)])
    certainty = np.interp(most, *certain)
    order = np.argsort(-certainty, kind="stable")
    precision = np.cumsum((right * weights)[order]) / np.cumsum(weights[order])
    good = np.flatnonzero((precision >= PRECISION) & (np.arange(len(order)) >= 20))
    whole = float(certainty[order[good[-1]]]) if len(good) else 0.99
    named = final.argmax(axis=1)
    return power, certain, {c: max(whole, least_of(certainty[named == i], right[named == i], weights[named == i])) for i, c in enumerate(controls)}


def least_of(certainty: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """The certainty from which a name was right often enough; one that never was is never answered."""
    order = np.argsort(-certainty, kind="stable")
    # One wrong answer more than was seen: a name that was seldom given has to be surer.
    precision = np.cumsum((right * weights)[order]) / (np.cumsum(weights[order]) + weights.min(initial=1.0))
    good = np.flatnonzero(precision >= NAME_PRECISION)
    return float(certainty[order[good[-1]]]) if len(good) else NEVER


def plain(kind: str, fitted: ExtraTreesClassifier) -> dict[str, np.ndarray]:
    """A forest as arrays."""
    rows: dict[str, list[Any]] = {name: [] for name in ARRAYS}
    for tree in (e.tree_ for e in fitted.estimators_):
        base = len(rows["feature"])
        rows["roots"].append(base)
        for node in range(tree.node_count):
            leaf = tree.children_left[node] < 0
            rows["feature"].append(-1 if leaf else tree.feature[node])
            rows["threshold"].append(0.0 if leaf else tree.threshold[node])
            rows["left"].append(len(rows["leaves"]) if leaf else base + tree.children_left[node])
            rows["right"].append(0 if leaf else base + tree.children_right[node])
            if leaf:
                counts = tree.value[node][0]
                rows["leaves"].append(np.round(255 * counts / counts.sum()))
    types = dict(zip(ARRAYS, (np.int32, np.int16, np.float32, np.int32, np.int32, np.uint8), strict=True))
    return {f"{kind}_{name}": np.array(values, types[name]) for name, values in rows.items()}


def train(runs: list[dict[str, Any]], sets: list[str]) -> None:
    """Trains, calibrates, writes."""
    names = tuple(sorted(runs[0]["features"]))
    x, p, y = matrix(runs, names)
    controls = tuple(sorted(set(y.tolist())))
    prior = np.array([PRIOR.get(c, REST) for c in controls])
    prior /= prior.sum()
    scores = held_out(x, p, y, controls)
    power, certain, least = calibrate(scores, y, controls, prior)
    direct, paired = fit(x, p, y)
    about = {
        "format": FORMAT,
        "controls": controls,
        "features": names,
        "prior": prior.tolist(),
        "sharpness": power,
        "confidence": certain.round(5).tolist(),
        "least": least,
        "provenance": {
            "made_by": "benches/control.py train",
            "runs": len(runs),
            "sets": sets,
            "engines": dict(Counter(r["engine"] for r in runs)),
            "per_control": dict(Counter(y.tolist())),
            "trees": [TREES, PAIR_TREES],
        },
    }
    np.savez_compressed(FILE, about=json.dumps(about), **plain("direct", direct), **plain("paired", paired))
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB, sharpness {power:.2f}, unknown below {json.dumps(least)}")
    final = posterior(scores, prior, power, controls)
    report(final, y, np.array(controls), np.interp(final.max(axis=1), *certain), least, "held-out folds of the training runs")


def measure(runs: list[dict[str, Any]]) -> None:
    """Measures the forest that is there."""
    model = trained()
    found = np.array([[p[c] for c in model.controls] for p in (model.probabilities(r["features"]) for r in runs)])
    certainty = np.array([model.certainty(p) for p in found.max(axis=1)])
    # As `classify` does: without a probe for the least RTT nothing is BBR.
    no_probe = np.array([not r["features"]["probes"] for r in runs]) & (np.array(model.controls)[found.argmax(axis=1)] == "bbr")
    report(found, np.array([r["label"] for r in runs]), np.array(model.controls), np.where(no_probe, 0.0, certainty), model.least, "runs drawn apart")


def report(found: np.ndarray, y: np.ndarray, controls: np.ndarray, certainty: np.ndarray, least: dict[str, float], what: str) -> None:
    """Prints what was reached, each control alike and weighted by the prior."""
    name = controls[found.argmax(axis=1)]
    right, answers = name == y, certainty >= np.array([least[c] for c in name])
    frequency = Counter(y.tolist())
    weights = np.array([PRIOR.get(c, REST) / frequency[c] for c in y])

    def share(good: np.ndarray, of: np.ndarray) -> str:
        return f"{good[of].mean():.3f} (weighted {np.average(good[of], weights=weights[of]):.3f})" if of.any() else "none"

    def coarse(a: np.ndarray) -> np.ndarray:
        return np.where(np.isin(a, COARSE), a, "other")

    every = np.ones(len(y), bool)
    print(f"{what}: {len(y)} runs")
    print(f"  best candidate right {share(right, every)}; cubic, reno, bbr or other {share(coarse(name) == coarse(y), every)}")
    print(f"  answers {share(answers, every)} of them, right {share(right, answers)}")
    print("  coverage → precision:", end="")
    order = np.argsort(-certainty, kind="stable")
    for part in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        print(f"  {part:.0%} → {right[order][: max(1, int(part * len(y)))].mean():.3f}", end="")
    print("\n  control: runs, right, answered, answered right")
    for c in controls:
        of = y == c
        if of.any():
            print(
                f"    {c:10} {of.sum():4d} {right[of].mean():.2f} {answers[of].mean():.2f} {right[of & answers].mean() if (of & answers).any() else float('nan'):.2f}"
            )
    for title, chosen in (("taken for another", ~right), ("answered wrongly", ~right & answers)):
        print(
            f"  {title}:",
            ", ".join(f"{a}→{b} {n}" for (a, b), n in Counter(zip(y[chosen].tolist(), name[chosen].tolist(), strict=True)).most_common(30)),
        )


def main() -> None:
    """Does what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("features", "train", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--sets", default="train,wide,model")
    options = parser.parse_args()
    os.nice(10)
    sets = options.sets.split(",")
    if options.what == "features":
        extract(options.folder, options.out or options.folder)
    elif options.what == "train":
        train(read(options.folder, sets), sets)
    else:
        measure(read(options.folder, sets))


if __name__ == "__main__":
    main()
