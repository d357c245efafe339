"""The answer of `tcpscape kernel diff --hunks`: its screen, and its document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from tcpscape.kernels.patches import WHOLE_FILE, Hunk
from tcpscape.text.numbers import Number
from tcpscape.text.screen import Screen
from tcpscape.text.table import Table, table_of
from tcpscape.units import counted
from tcpscape.validate.hunks import MOST_STEPS, HunkComparison, HunkSearch, Shows, Verdict
from tcpscape.words import kernel_diff
from tcpscape.words.kernel_diff import SHARES, KernelDifferenceDocument
from tcpscape.words.paths import in_words

MOST_PLACES = 4
"""Hunks that a sentence names."""


class TriedPartDocument(TypedDict):
    """A part of the patch that was tried."""

    hunks: list[str]
    """Its hunks, `net/ipv4/tcp_output.c:210`: file and line in the first tree."""
    shows: Literal["yes", "no", "unclear", "unbuilt"]
    """Whether it shows the difference."""
    mean: float | None
    """Mean of the metric on a kernel with it."""
    runs: int
    """Runs on that kernel."""
    why: str
    """Why it could not be tried; else empty."""


class KernelHunksDocument(TypedDict):
    """Which hunks make the difference between two source trees. What `tcpscape kernel diff --hunks --json` prints."""

    format: Literal[1]
    """Format of a search for hunks."""
    first: str
    """The first tree."""
    second: str
    """The second tree."""
    hunks: list[str]
    """Every hunk that lies between the two and takes part in the kernel."""
    left_out: list[str]
    """Files that differ and that the compiler does not read."""
    difference: KernelDifferenceDocument | None
    """The difference whose hunks were sought; null where there is none."""
    smallest: list[str]
    """The smallest part that showed it."""
    parts: list[TriedPartDocument]
    """Every part that was tried, in order."""
    rest: Literal["yes", "no", "unclear", "unbuilt"] | None
    """Whether all but the smallest part shows it; null where that was not tried."""
    ended_early: bool
    """Whether as many parts as may be were tried before it was clear."""
    text: str
    """The answer as a sentence."""


def screen(answered: HunkComparison) -> Screen:
    """The screen of a search for hunks."""
    first, second = answered.result.kernels
    one = answered.result.conditions
    where = in_words(one[0].scenario) if len(one) == 1 else f"{len(one)} paths"
    tables = [table(answered)] if answered.search and answered.search.steps else []
    return Screen(
        f"hunks from {first} to {second}: {where}",
        answer(answered),
        remarks=tuple(_remarks(answered)),
        tables=tuple(tables),
        details=tuple(_details(answered)),
        caveats=answered.result.caveats,
    )


def answer(answered: HunkComparison) -> str:
    """The answer as a sentence."""
    if not answered.sought or not answered.search:
        return kernel_diff.answer(answered.result)
    told = kernel_diff.sentence(answered.sought.difference, answered.result).removesuffix(".")
    found, total = answered.search.smallest, len(answered.hunks)
    which = places(found)
    if len(found) == total:
        return f"No smaller part than all {counted(total, 'hunk')} was shown to make the difference: {told}."
    return f"{which} {'makes' if len(found) == 1 else 'make'} the difference: {told}.{_rest(answered.search, total)}"


def _rest(search: HunkSearch, total: int) -> str:
    """What the other hunks do."""
    others = counted(total - len(search.smallest), "other hunk")
    if search.rest is None:
        return ""
    if search.rest.shows is Shows.NO:
        more = ", though they change it by a part of that" if search.rest.between else ""
        return f" The {others} alone do not show it{more}."
    if search.rest.shows is Shows.YES:
        return f" The {others} alone show it too."
    return f" Whether the {others} alone show it is not known."


def places(hunks: Sequence[Hunk]) -> str:
    """`net/ipv4/tcp_output.c:210 and net/ipv4/tcp.c:3`; of many the first."""
    names = [hunk.place for hunk in hunks]
    if len(names) > MOST_PLACES:
        names = [*names[: MOST_PLACES - 1], counted(len(names) - MOST_PLACES + 1, "further hunk")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _remarks(answered: HunkComparison) -> list[str]:
    files = len({hunk.file for hunk in answered.hunks})
    remarks = [f"{counted(len(answered.hunks), 'hunk')} of {counted(files, 'file')} lie between the two trees."]
    if answered.left_out:
        remarks.append(f"Files that differ and that this kernel is not built from: {len(answered.left_out)}.")
    if answered.search and answered.search.ended_early:
        remarks.append(f"{MOST_STEPS} parts were tried, which is the most; fewer hunks may do.")
    if answered.search and (unbuilt := answered.search.unbuilt):
        remarks.append(f"{counted(len(unbuilt), 'part')} could not be tried: the answer is the smallest part that was shown.")
    return remarks


def _details(answered: HunkComparison) -> list[str]:
    details = []
    if answered.search and answered.search.unbuilt:
        details.append("\n".join(("Parts that could not be tried:", *(f"{places(v.hunks)}: {v.why}" for v in answered.search.unbuilt))))
    if answered.search:
        details += [f"{hunk.file}:\n{hunk.text}" for hunk in answered.search.smallest if hunk.line != WHOLE_FILE]
    if answered.left_out:
        details.append("\n".join(("Files that this kernel is not built from:", *answered.left_out)))
    return details


@table_of.register
def table(answered: HunkComparison) -> Table:
    """The parts that were tried."""
    if not (answered.search and answered.sought):
        return Table(("tried",), [])
    metric = answered.sought.metric
    unit = f", {metric.printed_unit}" if metric.printed_unit else ""
    first, second = answered.sought.difference.means
    rows = [("none", _mean(first, metric.name), "no"), ("all", _mean(second, metric.name), "yes")]
    rows += [(places(v.hunks), _mean(v.mean, metric.name), _shows(v)) for v in answered.search.steps]
    return Table(("hunks", f"{metric.name}{unit}", "shows it"), rows, title="Parts of the patch", words=("hunks", "shows it"))


def _mean(mean: float, metric: str) -> Number:
    return Number.percent(mean, 2) if metric in SHARES else Number.of(mean)


def _shows(verdict: Verdict) -> str:
    if verdict.shows is Shows.UNBUILT:
        return "could not be tried"
    return str(verdict.shows.value) + (", in part" if verdict.between else "")


def document(answered: HunkComparison) -> KernelHunksDocument:
    """Everything of a search for hunks."""
    search, sought = answered.search, answered.sought
    return KernelHunksDocument(
        format=1,
        first=answered.result.kernels[0],
        second=answered.result.kernels[1],
        hunks=[hunk.place for hunk in answered.hunks],
        left_out=list(answered.left_out),
        difference=kernel_diff.difference_document(sought.difference, answered.result) if sought else None,
        smallest=[hunk.place for hunk in search.smallest] if search else [],
        parts=[_part(v) for v in search.steps] if search else [],
        rest=search.rest.shows.value if search and search.rest else None,
        ended_early=bool(search and search.ended_early),
        text=answer(answered),
    )


def _part(verdict: Verdict) -> TriedPartDocument:
    return TriedPartDocument(
        hunks=[hunk.place for hunk in verdict.hunks],
        shows=verdict.shows.value,
        mean=verdict.mean if verdict.runs else None,
        runs=verdict.runs,
        why=verdict.why,
    )
