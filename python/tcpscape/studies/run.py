"""Runs a study under its own conditions, on one engine or on two, and judges every claim of the result.

On two engines, for example a patched kernel and the stock one, the answer is a :class:`Contrast`: the cells in which their goodputs differ. The same
seed on two kernels is not the same run: from the first changed decision on, the same random numbers meet other packets. So the runs of a cell are
not paired; the ratio of the two medians has an interval for which each side's runs are resampled independently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tcpscape import stats
from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.campaign.outcome import Cell
from tcpscape.campaign.record import Record
from tcpscape.controls.spelling import name_of
from tcpscape.engines import Engine
from tcpscape.errors import StudyError, TcpscapeError, refuse
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import CONFIDENCE
from tcpscape.studies import known, measures
from tcpscape.studies.known import log_distance
from tcpscape.studies.result import JudgedStudy, Result
from tcpscape.studies.study import Study, of

COMPARED = 2
"""Congestion controls that a part must have left to say anything where an engine lacks some of them."""


def run(study: Study, execution: Execution = Execution()) -> Result:
    """Runs every part; the samples that the metrics of its claims and of its published numbers need are recorded."""
    campaigns = [_with_metrics(study, part) for part in study.parts]
    return Result(study, {campaign.name: outcome for campaign, outcome in zip(campaigns, execute.run_all(campaigns, execution), strict=True)})


def read(record: Record) -> Result | None:
    """The study of a record, with the parts that it has and the claims about them; None where the record is not of a study."""
    if record.study is None:
        return None
    study = of(record.study, "manifest")
    names = [part.name for part in study.parts if part.name in record.parts]
    return Result(study if len(names) == len(study.parts) else study.only(names), record.parts)


def judge(result: Result) -> JudgedStudy:
    """The result with a verdict on every claim. This may take seconds: judge a result once and pass the answer on."""
    return JudgedStudy(result, tuple(measures.judge(result, claim) for claim in result.study.claims))


def runnable(study: Study, engines: Sequence[Engine]) -> tuple[Study, tuple[str, ...]]:
    """The study with only those parts and congestion controls that every one of `engines` can run, and a sentence for what is left out.

    For example, a real kernel has no BBR version 3 and no jitter that keeps the order of packets, and this machine's may have no DCTCP.

    :raises TcpscapeError: the first part's refusal, where the engines can run no part at all.
    """
    study, without = _without_controls(study, engines)
    refusals = {part.name: error for part in study.parts if (error := _refusal(part, engines))}
    if len(refusals) == len(study.parts):
        raise next(iter(refusals.values()))
    if not refusals:
        return study, without
    remaining = study.only([p.name for p in study.parts if p.name not in refusals])
    return remaining, (*without, *(f"part {name} is left out: {error}" for name, error in refusals.items()))


def _without_controls(study: Study, engines: Sequence[Engine]) -> tuple[Study, tuple[str, ...]]:
    """The study without congestion controls that an engine lacks, in parts where others remain, and the claims about them; a sentence each."""
    first, sentences, parts, claims = study.parts[0].name, [], [], list(study.claims)
    for part in study.parts:
        missing = {cca for cca in _controls(part) if any(e.ccas() and name_of(cca) not in e.ccas() for e in engines)}
        if not missing or len(_controls(part)) - len(missing) < COMPARED:
            parts.append(part)
            continue
        parts.append(_without(part, missing))
        claims = [c for c in claims if (c.part or first) != part.name or not {c.cca, c.over.get("cca")} & missing]
        sentences.append(f"part {part.name} is run without {', '.join(sorted(missing))}, which the engine lacks: its other claims are of fewer cells")
    return study.model_copy(update={"parts": tuple(parts), "claims": tuple(claims)}), tuple(sentences)


def _controls(part: Campaign) -> set[str]:
    """The congestion controls that a part compares."""
    return {cca for levels in (part.cca, *(group.get("cca", ()) for group in (part.axes, *part.zip))) for cca in levels}


def _without(part: Campaign, missing: Collection[str]) -> Campaign:
    """The part without these congestion controls, and the rows of its groups that name them."""

    def kept(group: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        rows = [row for row, cca in enumerate(group["cca"]) if cca not in missing]
        return {name: tuple(levels[row] for row in rows) for name, levels in group.items()}

    zips = tuple(kept(group) if "cca" in group else dict(group) for group in part.zip)
    axes = {name: tuple(c for c in levels if c not in missing) if name == "cca" else levels for name, levels in part.axes.items()}
    return part.model_copy(update={"cca": tuple(c for c in part.cca if c not in missing), "zip": zips, "axes": axes})


def _with_metrics(study: Study, part: Campaign) -> Campaign:
    """The part with every metric that a claim or a published number about it needs."""
    first = study.parts[0].name
    needed = [c.metric for c in study.claims if (c.part or first) == part.name or c.over.get("part") == part.name]
    needed += [k.metric for k in known.table(study) if k.part == part.name]
    return part.model_copy(update={"metrics": tuple(dict.fromkeys((*part.metrics, *needed)))})


def _refusal(part: Campaign, engines: Sequence[Engine]) -> TcpscapeError | None:
    """Why one of the engines cannot run the part; None where all can."""
    try:
        for case in part.cases():
            for engine in engines:
                engine.check(case.scenario)
    except TcpscapeError as e:
        return e
    return None


@dataclass(frozen=True)
class CellPair:
    """One cell on both engines."""

    part: str
    ours: Cell
    other: Cell
    metric: str = "goodput"

    @property
    def medians(self) -> tuple[Estimate, Estimate]:
        """Median of the metric on each engine."""
        return self.ours.median(self.metric), self.other.median(self.metric)

    @property
    def ratio(self) -> Estimate:
        """Our median / the other's."""
        return stats.median_ratio(self.ours.values(self.metric), self.other.values(self.metric))

    @property
    def differs(self) -> bool:
        """Whether the ratio's interval excludes 1."""
        return self.ratio.excludes(1)

    @property
    def distance(self) -> float:
        """|ln| of the ratio; infinite where one of the medians is 0."""
        return log_distance(self.ratio.value, 1)

    @property
    def same(self) -> bool:
        """Whether goodput and retransmissions of every run are the same on both, to the last digit."""
        return all(self.ours.values(m) == self.other.values(m) for m in ("goodput", "retransmits"))


@dataclass(frozen=True)
class Contrast:
    """A study that was run on two engines."""

    ours: Result
    other: Result

    @property
    def labels(self) -> tuple[str, str]:
        """The names of both engines for tables; with their versions where the names are the same."""
        names = self.ours.label, self.other.label
        return names if names[0] != names[1] else (_engine_names(self.ours.outcome().versions), _engine_names(self.other.outcome().versions))

    def pairs(self) -> Iterator[CellPair]:
        """Every cell on both, in the order of tables."""
        for part, outcome in self.ours.parts.items():
            metric = outcome.campaign.metric
            for ours, other in zip(outcome.cells, self.other.parts[part].cells, strict=True):
                yield CellPair(part, ours, other, metric)

    def expected_by_chance(self) -> float:
        """Cells that would differ by chance alone if the engines were the same."""
        return (1 - CONFIDENCE) * sum(1 for _ in self.pairs())

    def frame(self) -> pl.DataFrame:
        """One row for each cell."""
        return pl.DataFrame([self._row(pair) for pair in self.pairs()], infer_schema_length=None)

    def _row(self, pair: CellPair) -> dict[str, object]:
        (ours, other), ratio = pair.medians, pair.ratio
        engine, against = (_engine_names(r.outcome().versions) for r in (self.ours, self.other))
        return {
            "part": pair.part,
            "cca": pair.ours.cca,
            **pair.ours.at,
            "metric": pair.metric,
            "engine": engine,
            "n": ours.n,
            "median": ours.value,
            "median_low": ours.low,
            "median_high": ours.high,
            "against": against,
            "against_n": other.n,
            "against_median": other.value,
            "against_low": other.low,
            "against_high": other.high,
            "ratio": ratio.value,
            "ratio_low": ratio.low,
            "ratio_high": ratio.high,
            "differs": pair.differs,
            "same": pair.same,
        }


def _engine_names(versions: Mapping[str, str]) -> str:
    """`model 0.9, mock 1`, from engine → version."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def contrast(study: Study, engine: str, other: str, execution: Execution = Execution()) -> Contrast:
    """Runs every cell equally often on both engines; a cell that the second cannot run is refused before the first begins."""
    first, second = execution.make(engine), execution.make(other)
    if (first.name, first.version) == (second.name, second.version):
        refuse("against", f"{second.name} {second.version} against itself", "name another engine or kernel", StudyError)
    for part in study.parts:
        for case in part.cases():
            second.check(case.scenario)
    each = [study.changed({"engines": [name]}) for name in (engine, other)]
    campaigns = [_with_metrics(one, part) for one in each for part in one.parts]
    outcomes = execute.run_all(campaigns, execution)
    count = len(study.parts)
    parts = [{c.name: o for c, o in zip(campaigns[i:], outcomes[i : i + count], strict=False)} for i in (0, count)]
    return Contrast(Result(each[0], parts[0]), Result(each[1], parts[1]))
