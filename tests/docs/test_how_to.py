"""The recipes: each page carried out from top to bottom, with the output that it shows."""

import contextlib
import json
import os
import signal

import pytest
import test_docs

import jobs
from conftest import ROOT
from patience import PATIENCE_S
from tcpscape import engines
from tcpscape.campaign import executors
from tcpscape.engines import host

REAL_KERNEL, PROGRAMS = (ROOT / "docs" / "how-to" / name for name in ("real-kernel.md", "programs.md"))
"""Need a kernel of the virtual engine, the second one of today's configuration."""
TOURS = [page for page in sorted((ROOT / "docs" / "tour").glob("*.md")) if page.name != test_docs.TUTORIAL]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "interchange.md",
    *TOURS,
    *sorted(page for page in (ROOT / "docs" / "how-to").glob("*.md") if page not in (REAL_KERNEL, PROGRAMS)),
]


@pytest.fixture
def job(tmp_path, cli, monkeypatch):
    """Makes a job of a page, in an empty directory, on a screen of 80 columns, which the site shows without scrolling."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return lambda page: jobs.Job(page, tmp_path, cli)


REAL_TIME, JOB = (ROOT / "docs" / "tour" / name for name in ("9-your-application.md", "8-in-ci.md"))
"""Take most of a minute: real programs run behind real delays, and a job measures everything twice."""


CLUSTER = ROOT / "docs" / "how-to" / "cluster.md"
"""Starts processes of its own, which the test ends."""
MANY_TRIALS = tuple(
    ROOT / "docs" / name
    for name in (
        *(f"how-to/{name}.md" for name in ("campaign", "evaluate", "json", "satellite", "worst-case")),
        *(f"tour/{name}.md" for name in ("3-your-own-path", "6-campaigns-and-studies", "10-a-capture")),
    )
)
"""Take eight seconds of CPU and more."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in (REAL_TIME, JOB, CLUSTER, *MANY_TRIALS)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_a_recipe_can_be_carried_out(page, need_model, job):
    job(page).run()


@pytest.mark.slow
@pytest.mark.parametrize("page", MANY_TRIALS, ids=lambda page: page.stem)
def test_a_recipe_of_many_trials_can_be_carried_out(page, need_model, job):
    job(page).run()


def test_the_recipe_for_a_cluster_can_be_carried_out(need_model, job, tmp_path, cli, monkeypatch):
    pytest.importorskip("distributed", reason="the package distributed is not installed")
    monkeypatch.setattr(executors, "CONNECT_S", PATIENCE_S)
    try:
        job(CLUSTER).run()
        pairs = json.loads(cli("compare", "far", "near", "--json").out)["conditions"]
        assert [(pair["same_runs"], pair["a"]["n"]) for pair in pairs] == [(True, 8)] * 4
    finally:
        for file in tmp_path.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.read_text("utf-8")), signal.SIGKILL)


@pytest.mark.slow
def test_the_tour_in_real_time_can_be_carried_out(job):
    if reason := host.unavailable():
        pytest.skip(reason)
    job(REAL_TIME).run()


@pytest.mark.slow
def test_the_job_for_continuous_integration_needs_its_baseline(need_model, job, tmp_path):
    page = job(JOB)
    page.run()
    assert "the same runs on both sides" in (tmp_path / "out" / "comparison.md").read_text("utf-8")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"now", "comparison.md", "comparison.json", "result.md", "result.png"}
    (tmp_path / "baseline").rename(tmp_path / "elsewhere")
    page.command("sh ci.sh  # exit status 2")


@pytest.mark.slow
def test_the_recipe_for_the_real_kernel_can_be_carried_out(job):
    if reason := engines.REGISTRY["virtual"]().unavailable():
        pytest.skip(reason)
    job(REAL_KERNEL).run()


@pytest.mark.slow
def test_the_recipe_for_programs_can_be_carried_out(job, need_programs):
    job(PROGRAMS).run()


def test_what_a_page_shows_is_compared():
    jobs.compare("a  b\n…\nd\n", "a b\nc\nd\n")
    for shown in ("a c\n", "d\na b\n", "e\n"):
        with pytest.raises(AssertionError, match="is not printed"):
            jobs.compare(shown, "a b\nc\nd\n")


@pytest.mark.parametrize(
    ("words", "needs"), [("a --check 'b > 1'", False), ("a > b", True), ("a | b", True), ("a --kernel '6.1|6.12'", False), ("a && b", True)]
)
def test_operators_of_a_shell_are_found(words, needs):
    assert jobs.needs_shell(words) == needs


def test_a_command_must_end_with_the_status_that_its_page_names(tmp_path, job):
    page = tmp_path / "page.md"
    page.write_text('```text title="x.txt"\n1\n```\n\n```console\n$ exit 3  # exit status 3\n$ cat \\\n  x.txt\n```\n\n```text\n1\n```\n')
    job(page).run()
    page.write_text("```console\n$ exit 3\n```\n")
    with pytest.raises(AssertionError, match="exit 3"):
        job(page).run()
