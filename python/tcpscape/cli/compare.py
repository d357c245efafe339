"""`tcpscape compare`: whether two results differ."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tcpscape.cli import checks, options, terminal
from tcpscape.cli.command import Argument, Option, command
from tcpscape.errors import refuse

if TYPE_CHECKING:
    from tcpscape.interchange.sources import ResultSource


@dataclass(frozen=True)
class Sides:
    """Both results, and what of them is compared."""

    a: Annotated[
        Path, Argument("A result directory, iperf3's JSON, a Flent file, a table, a directory of such files, or a dossier.", complete="results")
    ]
    b: Annotated[Path, Argument("Another one.", complete="results")]
    metric: Annotated[str, Option("What to compare: goodput, rtt_p95, retransmits, …; of a table a column.", complete="metric")] = "goodput"
    cca: Annotated[str | None, Option("Only these congestion controls: bbr of both sides, or cubic:bbr, A's and B's.", complete="cca")] = None
    at: options.At = ()

    def load(self) -> tuple[ResultSource, ResultSource]:
        """The chosen conditions of A and of B. :raises TcpscapeError: for an axis that neither has, and where one has no trial of what is chosen."""
        from tcpscape.interchange import compare, sources

        a = sources.load(self.a, sources.SAMPLES)
        b = replace(a, path=self.b) if _is_same(self.a, self.b) else sources.load(self.b, sources.SAMPLES)
        return compare.choose(a, b, self.cca, options.levels(self.at))


def _is_same(a: Path, b: Path) -> bool:
    """Whether both are the same directory, which is read once then."""
    return os.path.isdir(a) and os.path.realpath(a) == os.path.realpath(b)


@command(
    examples=(
        "compare out/starlink out/starlink --cca cubic:bbr",
        'compare out/starlink out/starlink --cca cubic:bbr --metric rtt_p95\n--check "ratio < 1.5"',
    )
)
def compare(
    sides: Sides,
    output: options.ScreenOptions,
    as_json: Annotated[bool, options.json_output("One JSON document")] = False,
    markdown: Annotated[bool, Option("The answer, every condition, the caveats and the checks as Markdown.")] = False,
    check: checks.Checks = (),
) -> int:
    """Say whether two results differ: ratio of means with its interval and a verdict, condition by condition.

    Checks are of A's and B's metrics, or of the comparison: 'ratio.low > 0.95' (A over B, of means), 'median_ratio > 1', 'win > 0.5'.
    Of two dossiers of `evaluate`, A the older: which verdicts changed, and of two directories which measures; exit status 1 where a verdict became
    worse.
    """
    from tcpscape.clauses import dossier
    from tcpscape.interchange.compare import ComparisonChecks
    from tcpscape.interchange.compare import compare as compare_results
    from tcpscape.words import comparison

    if as_json and markdown:
        refuse("markdown", "given with --json", "choose one of them")
    if all(map(dossier.is_kept, (sides.a, sides.b))):
        if as_json:
            refuse("json", "a comparison of dossiers has no document", "take --markdown, or read both dossier.json")
        return _dossiers(sides, output, markdown=markdown, check=check)
    expected = ComparisonChecks.read(check, sides.metric)
    result, names = compare_results(*sides.load(), sides.metric), (str(sides.a), str(sides.b))
    verdicts = expected.verdicts(result)
    if as_json:
        print(json.dumps(comparison.document(result, *names), allow_nan=False))
    elif markdown:
        print(comparison.screen(result, *names, most=None).markdown())
    else:
        terminal.show(comparison.screen(result, *names, options.typed()), output)
    checks.finish(verdicts, as_json=as_json, mark="- " if markdown else "", verbose=output.verbose or markdown)
    return 0


def _dossiers(sides: Sides, output: options.ScreenOptions, *, markdown: bool, check: checks.Checks) -> int:
    """Compares the verdicts and the measures of two dossiers; gives the exit status."""
    from tcpscape.clauses import changes, dossier
    from tcpscape.cli.evaluate import gate
    from tcpscape.words import dossier as words

    for name, value in (("check", check), ("metric", sides.metric != "goodput"), ("cca", sides.cca), ("at", sides.at)):
        if value:
            refuse(name, "is of measurements, these are dossiers", "leave it out: exit status 1 says that a verdict became worse")
    old, new = dossier.read(sides.a), dossier.read(sides.b)
    changed = changes.changed(old, new)
    screen = words.comparison(old, new, changed, changes.moved(new, sides.a, sides.b))
    if markdown:
        print(screen.markdown())
    else:
        terminal.show(screen, output)
    return gate(changed, str(sides.a))
