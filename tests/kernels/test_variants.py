"""Kernels between two trees: hunks by diff and patch, and builds with some of them, on trees that are no kernels but answer like one."""

import os
import shutil

import pytest
from test_kernels import MAKEFILE, TREE, cache, fill  # noqa: F401 (a fixture)

from tcpscape.errors import EngineError
from tcpscape.kernels import patches, variants
from tcpscape.kernels.patches import WHOLE_FILE, HunkRefused
from tcpscape.kernels.source import BuildProgress

LINES = [f"line {n};\n" for n in range(60)]
"""tcp_three.c of the first tree: three places far from each other are changed."""

pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("diff", "patch", "make"))), reason="diff, patch or make is missing")


def changed(*places):
    return "".join(f"changed {n};\n" if n in places else line for n, line in enumerate(LINES))


COMMANDS = MAKEFILE.replace("@cp $< $@", '@cp $< $@; echo "source := $(CURDIR)/$< " > $@.cmd')
"""As the kernel's make, it keeps the name of what it has compiled."""
FIRST = TREE | {"Makefile": COMMANDS, "net/ipv4/tcp_three.c": "".join(LINES), "net/ipv4/tcp_gone.c": "gone\n", "drivers/net/other.c": "a\n"}
SECOND = (FIRST | {"net/ipv4/tcp_three.c": changed(5, 30, 55), "net/ipv4/tcp_new.c": "new\n", "drivers/net/other.c": "b\n"}).items()
SECOND = {name: text for name, text in SECOND if name != "net/ipv4/tcp_gone.c"}


@pytest.fixture
def trees(tmp_path):
    return fill(tmp_path / "old", FIRST), fill(tmp_path / "new", SECOND)


@pytest.fixture
def builder(trees, cache):  # noqa: F811
    with variants.opened(*map(str, trees), 1) as between:
        between.prepare(BuildProgress())
        yield between


def text_of(kernel):
    return kernel.path.read_text()


def test_hunks_are_places_where_the_trees_differ(trees):
    assert patches.differing_files(*trees) == ["drivers/net/other.c", "net/ipv4/tcp_gone.c", "net/ipv4/tcp_new.c", "net/ipv4/tcp_three.c"]
    hunks = patches.hunks_of(*trees, "net/ipv4/tcp_three.c")
    assert [(h.place, h.number) for h in hunks] == [(f"net/ipv4/tcp_three.c:{line}", n) for n, line in enumerate((3, 28, 53), 1)]
    assert [h.line for h in patches.hunks_of(*trees, "net/ipv4/tcp_new.c")] == [WHOLE_FILE]


@pytest.mark.parametrize("chosen", [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_every_choice_of_hunks_is_the_file_with_these_changes(trees, chosen):
    file = "net/ipv4/tcp_three.c"
    hunks = patches.hunks_of(*trees, file)
    content = patches.patched(*trees, file, [hunks[i] for i in chosen], 3)
    assert content.decode() == changed(*((5, 30, 55)[i] for i in chosen))


def test_a_hunk_that_does_not_apply_is_named_with_its_line(trees):
    file = "net/ipv4/tcp_three.c"
    second = patches.hunks_of(*trees, file)[1]
    (trees[0] / file).write_text(changed(28, 29, 30, 31, 32))
    with pytest.raises(HunkRefused, match=r"^net/ipv4/tcp_three\.c:28: the hunk does not apply"):
        patches.patched(*trees, file, [second], 3)


def test_the_first_tree_the_second_and_kernels_between(builder, trees):
    assert builder.left_out == ("drivers/net/other.c",)
    assert [h.place for h in builder.hunks][:2] == ["net/ipv4/tcp_gone.c", "net/ipv4/tcp_new.c"]
    assert changed() in text_of(builder.first)
    assert "gone" in text_of(builder.first)
    assert changed(5, 30, 55) in text_of(builder.second)
    assert "new" in text_of(builder.second)
    assert "gone" not in text_of(builder.second)
    one = builder([h for h in builder.hunks if h.line == 28])
    assert changed(30) in text_of(one)
    assert "gone" in text_of(one)
    assert len({builder.first.digest, builder.second.digest, one.digest}) == 3
    assert text_of(builder.first) != text_of(one), "each has an executable of its own"


def test_only_what_changed_is_compiled_and_nothing_twice(builder):
    lines = []
    builder.progress = type("Lines", (BuildProgress,), {"say": lambda self, line: lines.append(line)})()
    part = [h for h in builder.hunks if h.line == 28]
    first = builder(part)
    assert [line for line in lines if "tcp_three" in line and "CC" in line]
    assert not [line for line in lines if "tcp_bbr" in line]
    lines.clear()
    assert (builder(part).digest, lines) == (first.digest, [])


def test_another_search_goes_on_from_there_and_sees_edits(trees, cache):  # noqa: F811
    for edit in (False, True):
        if edit:
            (trees[1] / "net/ipv4/tcp_new.c").write_text("newer\n")
            for tree in trees:
                (tree / "net/ipv4/tcp_bbr.c").write_text("another\n")
                os.utime(tree / "net/ipv4/tcp_bbr.c", ns=(2**61, 2**61))
        with variants.opened(*map(str, trees), 1) as between:
            between.prepare(BuildProgress())
            assert ("newer" in text_of(between.second)) is edit
            assert ("another" in text_of(between.second)) is edit
            assert changed() in text_of(between.first)
            assert changed(5) in text_of(between([h for h in between.hunks if h.line == 3]))


def test_a_part_that_does_not_build_names_file_and_line(builder, trees):
    (trees[1] / "net/ipv4/tcp_three.c").write_text(changed(5, 30, 55).replace("changed 30", "BROKEN"))
    with pytest.raises(EngineError, match=r"net/ipv4/tcp_three\.c:3:1: error: expected ;"):
        builder.prepare(BuildProgress())


def test_equal_trees_and_what_is_no_tree_are_refused_in_one_line(trees, cache, monkeypatch):  # noqa: F811
    with variants.opened(str(trees[0]), str(trees[0])) as between, pytest.raises(EngineError, match="have the same files"):
        between.prepare(BuildProgress())
    with pytest.raises(EngineError, match="does not exist"), variants.opened(str(trees[0]), "nowhere/"):
        pass
    monkeypatch.setattr(patches.shutil, "which", lambda program: None if program == "patch" else program)
    with pytest.raises(EngineError, match="missing: patch; run `apt-get install patch`"):
        patches.check_programs()
