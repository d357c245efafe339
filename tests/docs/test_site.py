"""The documentation site: it builds without a warning, every link leads somewhere, and nothing is loaded from the network."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
pytest.importorskip("mkdocs", reason="MkDocs is not installed; make setup")

from website import check, pages, reference
from website.reference import fields

from tcpscape.campaign import checks
from tcpscape.campaign.campaign import Campaign
from tcpscape.scenario.scenario import Scenario
from tcpscape.words import terms


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site as `make site` builds it."""
    place = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert (built.returncode, built.stderr) == (0, "")
    return place


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    wrong, elsewhere = check.problems(site)
    assert wrong == []
    assert all(address.startswith("https://") for address in elsewhere)


def test_every_page_of_the_repository_is_in_the_site(site):
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT).as_posix()
        place = site / pages.ELSEWHERE.get(path, path.removeprefix("docs/"))
        assert place.with_suffix(".html").exists() or (place.name == "README.md" and place.with_name("index.html").exists()), path


def test_search_works_from_disk(site):
    assert (site / "search" / "search_index.js").exists()
    assert '<script src="assets/iframe-worker.js">' in (site / "index.html").read_text("utf-8")
    assert (site / "assets" / "iframe-worker.js").exists()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="b.html">', "b.html leads nowhere"),
        ('<a href="#there">', "#there has no such anchor"),
        ('<a href="a.html#here">', "a.html#here has no such anchor"),
        ('<img src="x.png">', "x.png leads nowhere"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js from the network"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css from the network"),
    ],
)
def test_the_check_finds(tmp_path, body, problem):
    (tmp_path / "a.html").write_text(f"<p id=other>{body}")
    assert check.problems(tmp_path)[0] == [f"a.html: {problem}"]


def test_the_check_follows_no_link_to_another_site(tmp_path):
    (tmp_path / "a.html").write_text('<p id="b"><a href="https://example.org/">x</a> <a href="#b">y</a> <a href="mailto:a@b">z</a>')
    assert check.problems(tmp_path) == ([], ["https://example.org/"])


@pytest.mark.parametrize(
    ("uri", "link", "led"),
    [
        ("index.md", "docs/tour/2-the-cliff.md", "tour/2-the-cliff.md"),
        ("index.md", "docs/models", "pages.md#models"),
        ("tour/1-a-first-run.md", "../../CONTRIBUTING.md", "../project/contributing.md"),
        ("tour/1-a-first-run.md", "2-the-cliff.md#a", "2-the-cliff.md#a"),
        ("pages.md", "../README.md", "index.md"),
        ("project/architecture.md", "docs/README.md", "../pages.md"),
        ("tour/1-a-first-run.md", "https://example.org/x#y", "https://example.org/x#y"),
    ],
)
def test_links_of_the_repository_lead_to_pages_of_the_site(uri, link, led):
    assert pages.with_links(f"see [x]({link}).", uri) == f"see [x]({led}).\n"
    assert pages.with_links(f"```\n[x]({link})\n```", uri) == f"```\n[x]({link})\n```\n"


@pytest.mark.parametrize(
    ("written", "led"),
    [
        ("two:\n- a\n  b\n- c\n", "two:\n\n- a\n  b\n- c\n"),
        ("- a\n  b\n  - c\n- d\n", "- a\n  b\n    - c\n- d\n"),
        ("1. a\n2. b\n", "1. a\n2. b\n"),
        ("```\ntwo:\n- a\n```\n", "```\ntwo:\n- a\n```\n"),
    ],
)
def test_lists_are_lists_in_the_site(written, led):
    assert pages.with_lists(written) == led


def test_the_glossary_has_each_term_of_the_product_at_its_anchor():
    text = (ROOT / "docs" / pages.GLOSSARY).read_text("utf-8")
    for term in terms.GLOSSES:
        assert f'<a id="{terms.anchor(term)}"></a>**{term.capitalize()}.**' in text


@pytest.mark.parametrize(
    ("written", "uri", "led"),
    [
        ("# A cliff\nthe cliff, a cliff", "a.md", "# A cliff\nthe [cliff](glossary.md#cliff), a cliff"),
        ("`a cliff` [the cliff](x.md) | Cliffs |", "tour/a.md", "`a cliff` [the cliff](x.md) | [Cliffs](../glossary.md#cliff) |"),
        (
            "```\na cliff\n```\nin the chaos zone of a zone",
            "a.md",
            "```\na cliff\n```\nin the [chaos zone](glossary.md#chaos-zone) of a [zone](glossary.md#zone)",
        ),
        ("[by hand](glossary.md#cliff): a cliff", "a.md", "[by hand](glossary.md#cliff): a cliff"),
        ("a cliff", "glossary.md", "a cliff"),
    ],
)
def test_the_first_use_of_a_term_leads_to_the_glossary(written, uri, led):
    assert pages.with_terms(written, uri).strip() == led


@pytest.mark.parametrize("name", reference.PARTS)
def test_a_part_of_the_reference_leaves_nothing_out(name):
    """No row of a table is without a description, and no name of the source's own documentation is left."""
    text = reference.PARTS[name]()
    assert not re.search(r":\w+:`", text)
    assert name not in fields.PARTS or not re.search(r"\bNone\b", text)
    assert [line for line in text.splitlines() if line.endswith("|  |")] == []


def test_the_pages_of_the_reference_are_current():
    """As the source has them: `UPDATE_PAGES=1` writes them."""
    pages = reference.pages(ROOT / "docs")
    stale = {file: text for file, text in pages.items() if not file.exists() or file.read_text("utf-8") != text}
    for file, text in stale.items() if os.environ.get("UPDATE_PAGES") else ():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert os.environ.get("UPDATE_PAGES") or not stale, f"UPDATE_PAGES=1 writes {', '.join(file.name for file in stale)}"


def test_the_reference_has_a_page_for_each_command_and_no_other():
    folder = ROOT / "docs" / reference.commands.FOLDER
    assert {file.name for file in folder.iterdir()} == {name.rpartition("/")[2] for name in reference.commands.pages()}


def test_the_reference_has_every_part():
    asked = [name for page in (ROOT / "docs").rglob("*.md") for name in reference.PLACE.findall(page.read_text("utf-8"))]
    assert sorted(asked) == sorted(reference.PARTS)


REFERENCE = ROOT / "docs" / "reference"


def yaml_of(page):
    (text,) = re.findall(r"```yaml\n(name:.*?)```", (REFERENCE / page).read_text("utf-8"), re.DOTALL)
    return yaml.load(text, yaml.BaseLoader)


def test_what_the_reference_shows_is_understood():
    assert Scenario.of(yaml_of("scenario.md")).flow_count == 1
    assert len(Campaign.of(yaml_of("campaign.md")).cases()) == 8
    (examples,) = re.findall(r"## Examples\n\n```text\n(.*?)```", (REFERENCE / "checks.md").read_text("utf-8"), re.DOTALL)
    assert [checks.read(text).text for text in examples.splitlines()] == examples.splitlines()
