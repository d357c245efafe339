"""The screens of studies: what the finding says follows from the results, the matrix fits, claims that do not hold are named."""

from dataclasses import replace

import pytest

from tcpscape.campaign.outcome import Outcome
from tcpscape.studies import run as runs
from tcpscape.studies import study as studies
from tcpscape.studies.result import Result
from tcpscape.text.screen import Lines
from tcpscape.text.table import Table
from tcpscape.words import study as answer

WIDTHS = (60, 80, 100, 150)
MOST_LINES = {60: 60, 80: 45, 100: 40, 150: 40}
"""Lines of a study's screen at most, by the width."""


def result_of(name: str, *parts: str, seeds: int = 2) -> Result:
    whole = studies.get(name).changed({"engines": ["mock"], "seeds": seeds})
    return runs.run(whole.only(list(parts)) if parts else whole)


def scaled(outcome: Outcome, factor) -> Outcome:
    """The outcome with the goodput of each cell multiplied by `factor(cell)`."""

    def of(cell):
        def trial(t):
            return replace(t, flows=tuple(replace(f, goodput_mbps=f.goodput_mbps * factor(cell)) for f in t.flows))

        return replace(cell, runs=tuple(tuple(map(trial, trials)) for trials in cell.runs))

    return replace(outcome, cells=tuple(map(of, outcome.cells)))


def steps(seeds: int = 4) -> answer.Subject:
    """The jitter cliff at 50 ms: what is left of CUBIC's goodput falls from all to a tenth between 8 and 12 ms, BBR's nowhere."""
    result = result_of("jitter-cliff", "cliff", seeds=seeds)
    base = {c.cca: c.mean().value for c in result.outcome("cliff").select(rtt="50ms", jitter="0ms")}
    outcome = scaled(
        result.outcome("cliff"), lambda c: (0.1 if c.cca == "cubic" and c.value("jitter").number > 8 else 1) * base[c.cca] / c.mean().value
    )
    return replace(answer.subject(result), outcome=replace(outcome, cells=outcome.select(rtt="50ms")))


@pytest.mark.parametrize("name", studies.names())
def test_every_study_has_a_matrix_of_cells_that_exist(name):
    study = studies.get(name)
    result = Result(study, {p.name: Outcome(p, tuple(_empty(p)), {"mock": "1"}) for p in study.parts})
    about = answer.subject(result)
    assert len(about.columns) > 1
    assert about.outcome.cells
    assert all(axis in about.outcome.axes for axis in about.down)


def _empty(part):
    from tcpscape.campaign.outcome import gather

    cases = part.cases()
    return gather(part, cases, [[]] * len(cases), {}).cells


def test_the_finding_says_where_goodput_falls():
    about = replace(steps(), of="")
    assert answer.sentence(about) == "Goodput falls to half: cubic at jitter 8ms–12ms, bbr nowhere up to jitter 24ms."
    # on a straight line from 1 at 8 ms to 0.1 at 12 ms, half is at 8 + 4 · 0.5 / 0.9 = 10.2 ms, 20 % of 50 ms;
    # nothing was measured between 8 and 12 ms: 16 to 24 %
    share = "Goodput falls to half where jitter is this share of the rtt: cubic 20 % [16, 24] (rtt 50ms), bbr nowhere up to jitter 24ms."
    assert answer.sentence(steps()) == share


def test_edges_are_read_off_the_finer_grid():
    """The same fall with a level of 10 ms that keeps 0.8: half is at 10 + 2 · 0.3 / 0.7 = 10.9 ms, between 10 and 12 ms, 20 to 24 % of 50 ms."""
    about = steps()
    level = [replace(c, at={**c.at, "jitter": "10ms"}) for c in about.outcome.select(jitter="8ms")]
    finer = replace(about.outcome, cells=(*about.outcome.cells, *scaled(replace(about.outcome, cells=tuple(level)), lambda c: 0.8).cells))
    assert "cubic 22 % [20, 24] (rtt 50ms), bbr nowhere" in answer.sentence(replace(about, finer=finer))


def test_without_its_finer_part_a_study_reads_edges_off_its_own_grid():
    study = studies.get("jitter-cliff")
    assert (study.headline.part, study.headline.edges, study.only(["cliff"]).headline.edges) == ("cliff", "edges", "")
    assert study.only(["cliff", "edges"]).headline == study.headline


def test_the_finding_follows_the_results():
    about = replace(steps(), of="")
    none = replace(about, outcome=scaled(about.outcome, lambda c: 10 if c.cca == "cubic" and c.value("jitter").number > 8 else 1))
    assert answer.sentence(none) == "Goodput falls to half: cubic nowhere up to jitter 24ms, bbr nowhere up to jitter 24ms."


def test_rows_that_fall_elsewhere_are_named():
    about = replace(steps(), of="")
    twice = [replace(c, at={**c.at, "rtt": "99ms"}) for c in about.outcome.select("cubic")]
    later = scaled(replace(about.outcome, cells=tuple(twice)), lambda c: 10 if c.value("jitter").number < 18 and c.value("jitter").number > 8 else 1)
    both = replace(about, outcome=replace(about.outcome, cells=(*about.outcome.cells, *later.cells)))
    assert answer.sentence(both).startswith("Goodput falls to half: cubic at jitter 8ms–12ms (rtt 50ms) to 16ms–20ms (rtt 99ms), bbr nowhere")


def test_the_matrix_has_shares_of_its_first_column():
    table = answer.matrix(steps())
    assert list(table.columns) == ["cca", "jitter 0ms", "4ms", "8ms", "12ms", "16ms", "20ms", "24ms"]
    cubic = next(row for row in table.rows if row[0] == "cubic")
    assert [cell.text.lstrip("~") for cell in cubic[2:]] == ["100 %", "100 %", "10 %", "10 %", "10 %", "10 %"]
    assert table.left_out(60) == ()
    assert table.left_out(45) == ("12ms", "20ms")  # from the far end, every second one first
    assert table.fitted(40).columns[-1] == "24ms"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["baseline", "starlink", "chaos-zone", "receiver-starvation", "fairness", "ecn"])
def test_the_screen_fits(name, width, judged):
    text = answer.study_screen(judged(name)).text(width)
    lines = text.splitlines()
    assert max(len(line) for line in lines if not line.startswith("Next: ")) <= width
    assert len(lines) <= MOST_LINES[width]
    assert text.count("→ ") == 1
    assert [line for line in lines if line.startswith("Claims: ")] == [f"Claims: {answer.count(judged(name))}"]


@pytest.fixture(scope="module")
def judged():
    kept = {}

    def of(name):
        if name not in kept:
            kept[name] = runs.judge(result_of(name))
        return kept[name]

    return of


def test_verbose_has_every_cell_and_claim(judged):
    study = judged("baseline")
    screen = answer.study_screen(study)
    text = screen.text(150, verbose=True)
    assert all(pitfall[:40] in text for pitfall in study.result.study.pitfalls)
    tables = [t for t in screen.details if isinstance(t, Table)]
    assert sum(len(t.rows) for t in tables) == len(study.result.rows) + len(study.claims)


def test_claims_that_do_not_hold_are_named_with_their_reason(judged):
    study = judged("starlink")
    failed = [j for j in study.claims if j.verdict == "not reproduced"]
    (shown,) = [part for part in answer.study_screen(study).tables if isinstance(part, Lines)]
    assert len(shown.texts) == min(len(failed), answer.MOST_FAILURES)
    assert all(j.claim.text in text and j.measured in text for j, text in zip(failed, shown.texts, strict=False))


def test_one_trial_has_no_interval_and_its_value_decides():
    about = steps(seeds=1)
    single = replace(about, of="", outcome=replace(about.outcome, cells=tuple(replace(c, runs=(c.runs[0],)) for c in about.outcome.cells)))
    assert answer.sentence(single) == "Goodput falls to half: cubic at jitter 8ms–12ms, bbr nowhere up to jitter 24ms."
    assert "1 trial a cell, so no intervals" in answer.matrix(single).notes[0]
    assert not any("~" in str(cell) for row in answer.matrix(single).rows for cell in row)


def test_a_part_shows_what_its_study_shows_of_it():
    about = answer.subject(result_of("fairness", "queues"))
    assert (about.metric, about.statistic, about.across) == ("share:bbr", "mean", "cca")


def test_sentences_are_cut_to_few_lines_and_indented():
    lines = list(Lines("t", ["word " * 40], most=2).cut(30))
    assert len(lines) == 2
    assert lines[1].startswith("  word")
    assert lines[1].endswith(" …")
    assert max(map(len, lines)) <= 30


def test_two_engines_are_contrasted_on_one_screen(judged):
    study = judged("baseline")
    other = replace(study.result, parts={p: scaled(o, lambda c: 2 if c.cca == "cubic" else 1) for p, o in study.result.parts.items()})
    contrast = runs.Contrast(study.result, replace(other, parts={p: replace(o, versions={"other": "2"}) for p, o in other.parts.items()}))
    screen = answer.contrast_screen(contrast, study)
    assert screen.answer.startswith("mock and other differ in 10 of 24 cells; 1.2 would by chance alone if they were the same. Largest ratio: 0.50 [")
    assert max(len(line) for line in screen.text(60).splitlines() if not line.startswith("Next: ")) <= 60


def test_a_study_is_described_before_it_runs(cli):
    brief, whole = cli("study", "show", "jitter-cliff"), cli("study", "show", "jitter-cliff", "--verbose")
    assert brief.out.splitlines()[1].startswith("→ 67 claims are checked on 524 cells")
    assert len(brief.out.splitlines()) <= 40
    assert "rtt 24ms, 50ms, 100ms; jitter 0ms to 19ms (25 values)" in brief.out  # the part edges: axes that move together
    assert "CUBIC's cliff at 24 ms is at 8 ms (33 %)" in whole.out


def test_an_unknown_part_of_a_headline_is_refused():
    from tcpscape.errors import TcpscapeError

    with pytest.raises(TcpscapeError, match="headline: there is no part 'moon'; choose pooled, rates"):
        studies.of({**studies.read("baseline"), "headline": {"part": "moon"}}, "baseline")
