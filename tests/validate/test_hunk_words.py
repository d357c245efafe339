"""The answer of a search for hunks: of a comparison in the model, with parts whose verdicts are invented."""

import pytest
from test_kernel_diff import PATHS, RUNS, pair, with_more_loss

from conftest import expect
from tcpscape.kernels.patches import Hunk
from tcpscape.validate.hunks import HunkComparison, Shows, Sought, Verdict, search
from tcpscape.validate.kernel_diff import difference
from tcpscape.words import hunks as words

HUNKS = tuple(
    Hunk(f"net/ipv4/{file}.c", line, number, f"@@ -{line} +{line} @@\n-{file}\n+{file}{number}\n")
    for file in "ab"
    for number, line in ((1, 3), (2, 50))
)


@pytest.fixture(scope="module")
def compared():
    return difference(pair("old", "new", change=with_more_loss), PATHS, runs=RUNS)


def found(result, needed, broken=()):
    def judge(part):
        if set(part) & set(broken) and not set(broken) <= set(part):
            return Verdict(tuple(part), Shows.UNBUILT, why="kernel: the build failed: net/ipv4/a.c:3:1: error: expected ;")
        shows = Shows.YES if set(needed) <= set(part) else Shows.NO
        return Verdict(tuple(part), shows, sought.means[shows is Shows.YES], 6)

    sought = result.told[0]
    return HunkComparison(result, HUNKS, ("drivers/net/amt.c",), Sought(sought, ([1.0], [2.0])), search(HUNKS, judge))


def test_the_answer_names_the_hunk_and_that_the_rest_does_nothing(compared):
    one = found(compared, HUNKS[3:])
    assert one.is_clear
    answer = words.answer(one)
    assert answer.startswith("net/ipv4/b.c:50 makes the difference: on lossy, with new cubic carries ")
    assert answer.endswith("The 3 other hunks alone do not show it.")
    screen = words.screen(one)
    assert "4 hunks of 2 files lie between the two trees." in screen.remarks
    assert any("b2" in detail for detail in screen.details)
    rows = words.table(one).rows
    assert [row[2] for row in rows[:2]] == ["no", "yes"]
    expect("kernel-hunks", words.document(one))


def test_a_part_that_does_not_build_is_told(compared):
    two = found(compared, HUNKS[:1], broken=(HUNKS[0], HUNKS[2]))
    assert set(two.search.smallest) == {HUNKS[0], HUNKS[2]}
    assert any("could not be tried" in remark for remark in words.screen(two).remarks)
    assert any("error: expected ;" in detail for detail in words.screen(two).details)
    assert {part["shows"] for part in words.document(two)["parts"]} == {"yes", "no", "unbuilt"}


def test_kernels_that_are_the_same_have_no_hunks_to_name():
    same = HunkComparison(difference(pair("old", "new"), PATHS[:1], runs=RUNS), HUNKS, ())
    assert words.answer(same).startswith("No difference between old and new on this path")
    assert words.screen(same).tables == ()
    expect("kernel-hunks", words.document(same))
