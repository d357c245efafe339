"""The recipes: each page carried out from top to bottom, with the output that it shows."""

import pytest

import jobs
from conftest import ROOT

PAGES = [*sorted((ROOT / "docs" / "how-to").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_recipe_can_be_carried_out(page, need_model, tmp_path):
    jobs.Job(page, tmp_path).run()


def test_what_a_page_shows_is_compared():
    jobs.compare("a  b\n…\nd\n", "a b\nc\nd\n")
    for shown in ("a c\n", "d\na b\n", "e\n"):
        with pytest.raises(AssertionError, match="is not printed"):
            jobs.compare(shown, "a b\nc\nd\n")


def test_a_command_must_end_with_the_status_that_its_page_names(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```text title="x.txt"\n1\n```\n\n```console\n$ cat \\\n  x.txt\n$ exit 3  # exit status 3\n```\n\n```text\n1\n```\n')
    jobs.Job(page, tmp_path).run()
    page.write_text("```console\n$ exit 3\n```\n")
    with pytest.raises(AssertionError, match="exit 3"):
        jobs.Job(page, tmp_path).run()
