"""The line of progress: the part that is done never shrinks, whatever the work turns out to be."""

import io
import itertools
import re

import pytest
from rich.console import Console

from conftest import with_another_mock
from tcpscape import engines
from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution, Runner
from tcpscape.cli.terminal import Progress
from tcpscape.findings.cliff import search
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.fields import validate
from tcpscape.studies import run as studies_run
from tcpscape.studies import study as studies

BAR = re.compile(r"(\d+)/(\d+)")
COUNT = re.compile(r"(\d+) trials")


class Watched(Progress):
    """Progress on a terminal whose clock moves on by a second with every look; keeps what is drawn after each update."""

    def __init__(self, what="running", *, is_open=False):
        self.drawn: list[str] = []
        super().__init__(
            what, is_open=is_open, clock=itertools.count(0.0, 1.0).__next__, screen=Console(file=io.StringIO(), force_terminal=True, width=100)
        )

    def update(self, done, total):
        super().update(done, total)
        if self._bar:
            page = Console(file=io.StringIO(), width=100, no_color=True)
            page.print(self._bar.get_renderable())
            self.drawn.append(page.file.getvalue().strip())

    def check(self):
        """Fails where a drawn fraction or count is less than the one before it, and where a bar comes back after a count."""
        fractions = [int(m[1]) / int(m[2]) for line in self.drawn if (m := BAR.search(line))]
        counts = [int(m[1]) for line in self.drawn if (m := COUNT.search(line) or BAR.search(line))]
        assert fractions == sorted(fractions), self.drawn
        assert counts == sorted(counts), self.drawn
        kinds = [bool(COUNT.search(line)) for line in self.drawn]
        assert kinds == sorted(kinds), self.drawn
        assert self.drawn
        return fractions, counts


def test_a_known_total_is_a_bar():
    with Watched("run") as progress:
        for done in range(6):
            progress.update(done, 5)
    fractions, _ = progress.check()
    assert fractions[-1] == 1
    assert len(fractions) == len(progress.drawn)


def test_a_second_step_turns_the_bar_into_a_count():
    with Watched("advise") as progress:
        for done, total in [(1, 2), (2, 2), (1, 4), (2, 4), (4, 4), (1, 1)]:
            progress.update(done, total)
    fractions, counts = progress.check()
    assert fractions == [0.5, 1.0]
    assert counts == [1, 2, 3, 4, 6, 7]


def test_a_total_that_grows_turns_the_bar_into_a_count():
    with Watched("sweep") as progress:
        for done, total in [(5, 10), (10, 10), (11, 30), (30, 30)]:
            progress.update(done, total)
    fractions, counts = progress.check()
    assert fractions == [0.5, 1.0]
    assert counts == [5, 10, 11, 30]


def test_an_open_total_is_a_count_from_the_start():
    with Watched("cliff", is_open=True) as progress:
        progress.update(1, 2)
        progress.update(2, 2)
    assert progress.check() == ([], [1, 2])


def test_a_campaign_with_precision_never_goes_back():
    campaign = Campaign.of(
        {"conditions": {"rtt": "50ms"}, "axes": {"jitter": "0,10ms"}, "engines": ["mock"], "seeds": 5, "precision": "1%", "max_seeds": 40}
    )
    with Watched("sweep") as progress:
        execute.run(campaign, Execution(1, progress=progress.update))
    _, counts = progress.check()
    assert counts[-1] > 10  # more than the first round's 2 × 5


def test_a_search_never_goes_back():
    path = validate(Conditions, {"rtt": "50ms"}, "the options")
    with Watched("cliff", is_open=True) as progress:
        result = search.on_path(Runner(engines.make("mock"), 1, progress=progress.update), path, "cubic", "jitter", search.effort(0.5, 0))
    _, counts = progress.check()
    assert counts[-1] == result.runs


@pytest.mark.parametrize("other", [None, "other"])
def test_the_parts_and_engines_of_a_study_are_one_bar(other):
    study = studies.get("baseline").changed({"seeds": 2, "engines": ["mock"]})
    with Watched("study") as progress:
        execution = Execution(1, progress=progress.update, make=with_another_mock)
        if other:
            studies_run.contrast(study, "mock", other, execution)
        else:
            studies_run.run(study, execution)
    fractions, counts = progress.check()
    assert len(study.parts) > 1
    assert fractions[-1] == 1
    assert not progress.is_open
    assert counts[-1] == 2 * sum(len(part.cases()) for part in study.parts) * (2 if other else 1)
