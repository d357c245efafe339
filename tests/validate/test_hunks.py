"""The search for hunks: on parts that a function judges, and on values of a metric."""

from types import SimpleNamespace

import pytest

from tcpscape.errors import EngineError
from tcpscape.kernels.patches import Hunk, HunkRefused
from tcpscape.validate.hunks import RUNS, Shows, Sought, Verdict, about_steps, clearest, judge_of, search

HUNKS = [Hunk(f"net/ipv4/{file}.c", 10 * number, number, f"@@ {file} {number}\n") for file in "abcd" for number in (1, 2, 3)]


def shown_by(*needed, broken=lambda part: False):
    """A judge: a part shows the difference if it has every needed hunk."""
    tried = []

    def judge(part):
        tried.append(list(part))
        if broken(part):
            return Verdict(tuple(part), Shows.UNBUILT, why="net/ipv4/a.c:3:1: error: expected ;")
        return Verdict(tuple(part), Shows.YES if set(needed) <= set(part) else Shows.NO, 1.0, 6)

    judge.tried = tried
    return judge


@pytest.mark.parametrize("place", range(len(HUNKS)))
def test_one_hunk_of_twelve_is_found_by_halves(place):
    judge = shown_by(HUNKS[place])
    result = search(HUNKS, judge)
    assert result.smallest == (HUNKS[place],)
    assert (result.rest.shows, result.ended_early, result.unbuilt) == (Shows.NO, False, ())
    assert set(result.rest.hunks) == set(HUNKS) - {HUNKS[place]}
    assert len(judge.tried) == len(result.steps) <= about_steps(HUNKS)
    assert HUNKS not in judge.tried, "the whole patch was measured before"


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 11), (4, 7), (3, 8)])
def test_two_hunks_that_only_do_it_together(one, other):
    result = search(HUNKS, shown_by(HUNKS[one], HUNKS[other]))
    assert set(result.smallest) == {HUNKS[one], HUNKS[other]}
    assert result.rest.shows is Shows.NO


def test_a_part_that_does_not_build_tells_nothing_and_the_smallest_that_was_shown_remains():
    """Hunk 0 needs hunk 1, without which nothing builds."""
    result = search(HUNKS, shown_by(HUNKS[0], broken=lambda part: (HUNKS[0] in part) != (HUNKS[1] in part)))
    assert set(result.smallest) == {HUNKS[0], HUNKS[1]}
    assert result.unbuilt
    assert all(v.why for v in result.unbuilt)


def test_files_come_before_hunks():
    judge = shown_by(HUNKS[4])
    search(HUNKS, judge)
    by_file = [{h.file for h in part} for part in judge.tried]
    assert judge.tried[0] == HUNKS[:6]
    assert [len(files) for files in by_file[:2]] == [2, 1], "halves of four files"


def test_no_more_parts_than_may_be():
    judge = shown_by(HUNKS[0], HUNKS[4], HUNKS[11])
    result = search(HUNKS, judge, most=3)
    assert (len(result.steps), result.ended_early, result.rest) == (3, True, None)
    assert {HUNKS[0], HUNKS[4], HUNKS[11]} <= set(result.smallest)


def test_the_rest_may_show_it_too():
    judge = shown_by(HUNKS[2])
    both = search(HUNKS, lambda part: Verdict(tuple(part), Shows.YES, 1.0, 6) if HUNKS[9] in part else judge(part))
    assert both.smallest in ((HUNKS[2],), (HUNKS[9],))
    assert both.rest.shows is Shows.YES


def test_one_hunk_alone_is_the_answer_without_a_trial():
    judge = shown_by(HUNKS[0])
    result = search(HUNKS[:1], judge)
    assert (result.smallest, result.steps, result.rest, judge.tried) == ((HUNKS[0],), (), None, [])


FIRST, SECOND = [10.0 + 0.01 * i for i in range(40)], [12.0 + 0.01 * i for i in range(40)]


@pytest.mark.parametrize(
    ("values", "shows", "between"),
    [
        (FIRST[::7], Shows.NO, False),
        (SECOND[::7], Shows.YES, False),
        ([11.5, 11.6, 11.5, 11.6, 11.5, 11.6], Shows.YES, True),
        ([10.6, 10.5, 10.7, 10.6, 10.5, 10.6], Shows.NO, True),
        ([8.0, 16.0], Shows.UNCLEAR, False),
    ],
)
def test_what_values_show(values, shows, between):
    verdict = Sought(None, (FIRST, SECOND)).verdict(HUNKS[:1], values)
    assert (verdict.shows, verdict.runs, verdict.between) == (shows, len(values), between)


def test_an_unclear_part_gets_more_runs_and_one_that_fails_none():
    asked = []

    def measure(kernel, runs):
        asked.append((kernel, runs))
        return [6.0, 16.2] * (runs // 2) if runs < RUNS[2] else SECOND[-runs:]

    judge = judge_of(Sought(None, (FIRST, SECOND)), lambda part: "kernel", measure)
    verdict = judge(HUNKS[:2])
    assert (verdict.shows, verdict.runs) == (Shows.YES, RUNS[2])
    assert asked == [("kernel", runs) for runs in RUNS[:3]]

    for failure in (EngineError("kernel: the build failed: a.c:3:1: error; mend it"), HunkRefused("net/ipv4/a.c:10: the hunk does not apply")):

        def build(part, failure=failure):
            raise failure

        verdict = judge_of(Sought(None, (FIRST, SECOND)), build, measure)(HUNKS[:2])
        assert (verdict.shows, verdict.why) == (Shows.UNBUILT, str(failure))


def test_the_clearest_difference_is_sought():
    def difference(value, low, high):
        return SimpleNamespace(comparison=SimpleNamespace(ratio=SimpleNamespace(value=value, low=low, high=high)))

    wide, narrow, exact = difference(2.0, 1.1, 2.9), difference(0.9, 0.89, 0.91), difference(1.1, 1.1, 1.1)
    assert clearest([wide, narrow]) is narrow
    assert clearest([wide, narrow, exact]) is exact
