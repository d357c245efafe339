"""Sentences of hand-written pages quote generated figures with the numbers that those have."""

import re

import pytest

from conftest import bench

refresh = bench("refresh")


def finding(claim):
    """What docs/findings.md says was measured for the claim that begins so."""
    rows = [line.split(" | ") for line in (refresh.ROOT / "docs/findings.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    (measured,) = {row[2] for row in rows if len(row) > 2 and row[1].startswith(claim)}
    return measured


def interval(text):
    """The first estimate of a text, with its interval."""
    return re.search(r"[\d.]+ \[[\d., ]+\]", text)[0]


def percents(text):
    """Every estimate of a text, in per cent without digits."""
    return [round(100 * float(value)) for value in re.findall(r"([\d.]+) \[", text)]


def cell(page, part, row, column):
    """The first number of a cell of a generated table; `row` are the words with which its line begins."""
    heads, _, *rows = [line.strip("| ").split(" | ") for line in refresh.table.parts(refresh.ROOT / "docs/models" / page)[part].splitlines()[:64]]
    (found,) = [line for line in rows if line[: len(row)] == list(row)]
    return re.search(r"[\d.]+", found[heads.index(column)])[0]


def cliff_edges():
    """The lowest and the highest edge of the rig."""
    found = percents(finding("On this rig the cliff is between"))
    return f"{min(found)} to {max(found)} %"


def edge(part, row, column, *more):
    """An edge of cliff.md, % of the RTT."""
    return cell("methods/cliff.md", part, [row, *more], column)


def rig_edge(rtt, cca):
    """The edge of the rig at both application rates, % of the RTT."""
    return cell("methods/cliff.md", "edges", [f"rig, RTT {rtt} ms, jitter", cca], "edge [95 %]")


def share(feature, control):
    """Shares of the variance that a feature explains at both application rates, lowest first, in per cent."""
    both = [cell("methods/chaos.md", "shares", [feature], f"{control}, {rate} MiB/s") for rate in (5, 10)]
    return " to ".join(str(n) for n in sorted(round(100 * float(value)) for value in both)) + " %"


def spread(control, part, row, column):
    """A coefficient of variation of chaos.md."""
    return cell("methods/chaos.md", part, [control, *row], column)


QUOTED = {
    "docs/tour/2-the-cliff.md": lambda: (
        "CUBIC keeps {} % of its goodput at 8 ms of jitter and {} % at 12 ms".format(*percents(finding("CUBIC's cliff at 50 ms is at 12 ms"))),
        "BBR keeps {} % at 4 ms and {} % at 8 ms".format(*percents(finding("BBR's cliff at 50 ms is at 8 ms"))),
    ),
    "docs/how-it-works.md": lambda: (
        f"leave CUBIC {percents(finding('At 24 % of the RTT CUBIC keeps'))[0]} % of its goodput",
        f"CUBIC {percents(finding('The cliff is reordering'))[0]} % and BBR {percents(finding('BBR keeps three fifths'))[0]} %",
        f"The edges are at {cliff_edges()} of the RTT",
    ),
    "docs/deviations.md": lambda: (
        f"the model {interval(finding('Baseline: CUBIC carries 2.3 Mbps'))}",
        "CUBIC at HZ 100 carries " + interval(finding("Past the cliff CUBIC's rate depends")) + " of what",
        "16 ms of jitter the model keeps " + re.search(r"16ms keeps ([\d.]+ \[[\d., ]+\])", finding("CUBIC's cliff at 100 ms"))[1],
    ),
    "docs/models/methods/cliff.md": lambda: (
        f"at 12 ms CUBIC keeps {percents(finding('The cliff is reordering'))[0]} % and BBR {percents(finding('BBR keeps three fifths'))[0]} %",
        f"leaves CUBIC {percents(finding('At 24 % of the RTT CUBIC keeps'))[0]} %",
        f"BBR's edge moves from {edge('ingredients', 'netem: reordering, both ways', 'bbr')} to {edge('ingredients', 'no delay below 10 ms', 'bbr')} %",
        f"BBR's edge falls from {edge('lengths', '2 s', 'bbr')} to {edge('lengths', '60 s', 'bbr')} %",
        f"CUBIC's goes from {edge('lengths', '2 s', 'cubic')} to {edge('lengths', '5 s', 'cubic')} % at 5 s",
        f"from {edge('rates', '0.5 MiB/s', 'cubic')} to {edge('rates', '10 MiB/s', 'cubic')} % (CUBIC)",
        f"from {edge('rates', '1 MiB/s', 'bbr')} to {edge('rates', '10 MiB/s', 'bbr')} % (BBR)",
        f"moves it from {edge('contours', 'loss', 'edge, % of the RTT', 'bbr', '1.00%')} to {edge('ingredients', 'no delay below 10 ms', 'bbr')} %",
        *("at {}, {} and {} %".format(*(rig_edge(rtt, cca) for rtt in (24, 50, 100))) for cca in ("cubic", "bbr")),
    ),
    "docs/models/methods/chaos.md": lambda: (
        f"below 2 % of the path's explains {share('least RTT below 2% of the RTT at, s', 'cubic')}; below 10 %",
        f"whole 10 s will carry ({share('window after 2 s, segments', 'cubic')}), after 3 s {share('window after 3 s, segments', 'cubic')}",
        f"on which its window rests: {share('least RTT, ms', 'bbr')}, and its time (below 10 %) {share('least RTT below 10% of the RTT at, s', 'bbr')}",
        f"(a CV of {spread('cubic', 'lengths', [], 'CV of 10 s')} at 10 s, {spread('cubic', 'lengths', [], 'CV of 58 s')} at 58 s)",
        f"falls from {spread('bbr', 'lengths', [], 'CV of 10 s')} at 10 s to {spread('bbr', 'lengths', [], 'CV of 58 s')} at 58 s",
        *(
            f"from {100 * float(spread(cca, 'ingredients', ['(nothing)'], 'CV')):.0f} % "
            f"to {100 * float(spread(cca, 'ingredients', ['low tail of the delay'], 'CV')):.{digits}f} % ({cca.upper()})"
            for cca, digits in (("cubic", 0), ("bbr", 1))
        ),
    ),
}
"""Page → what its sentences say of generated figures."""


@pytest.mark.parametrize("page", QUOTED)
def test_sentences_quote_the_generated_figures(page):
    text = " ".join((refresh.ROOT / page).read_text("utf-8").split())
    assert [quote for quote in QUOTED[page]() if quote not in text] == []
