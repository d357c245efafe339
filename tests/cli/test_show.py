"""`cca list | show` and `qdisc list | show`, the pages and the package's numbers behind them."""

import json
import re
from functools import cache

import pytest

from conftest import ROOT
from tcpscape.cli import lists
from tcpscape.controls import documentation, spelling
from tcpscape.engines.host import survey
from tcpscape.engines.model import CcaEntry, Model

pytestmark = pytest.mark.usefixtures("need_model")
PAGE = """# odd

`crates/path/src/queue/odd.rs` · RFC 1 · tc-odd(8)

**What it is.** A queue that is odd. It is
not even.

**Words.** `odd limit 5`, see [tbf](tbf.md).

| a | b |
|---|---|

**Differences from Linux.** None
known.
**Not modelled.** Evenness.
"""


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    error = {"n": 7, "median": 0.0123, "p90": 0.25}
    said = {
        "date": "2026-11-21",
        "model": "model-1",
        "against": "kernels",
        "controls": {"cubic": {"alone": error}},
        "queues": {"tbf": {"total": error}},
    }
    (tmp_path / "f.json").write_text(json.dumps(said))
    monkeypatch.setattr(documentation.load_fidelity, "__defaults__", (tmp_path / "f.json",))


def test_paragraphs_of_a_page(tmp_path, monkeypatch):
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "odd.md").write_text(PAGE)
    monkeypatch.setattr(documentation, "DIRECTORIES", (tmp_path / "nosuch", tmp_path))
    page = documentation.find_page("odd")
    assert (page.file, page.source) == ("docs/models/queues/odd.md", "RFC 1, tc-odd(8)")
    assert page.paragraph(documentation.IS) == "A queue that is odd. It is not even."
    assert page.paragraph(documentation.WORDS) == "odd limit 5, see tbf."
    assert page.paragraph(documentation.DIFFERS) == "None known."
    assert page.paragraph(documentation.NOT_MODELLED) == "Evenness."
    assert page.paragraph(documentation.DEFAULTS) == ""
    assert documentation.find_page("even") is None
    monkeypatch.setattr(documentation, "DIRECTORIES", ())
    assert documentation.find_page("odd") is None


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("    W(t) = 4 t,\n\nevaluated later. It rises.\n\nMore.", "It aims at W(t) = 4 t, evaluated later. It rises."),
        ("    W(t) = 4 t.\n\nMore.", "It aims at W(t) = 4 t."),
        ("| when | what | how |\n|---|---|---|\n| `a` | 1 | x |\n| b | 2 | y |\n\nMore.", "It aims at a: 1, x; b: 2, y."),
        ("1. **one**, and\n   more,\n2. two.\n\nMore.", "It aims at 1. one, and more, 2. two."),
        ("**Other.** More.", "It aims at"),
    ],
)
def test_a_sentence_goes_on_below_its_formula(rest, text):
    """CUBIC's page has its curve below `From then on it aims at`."""
    page = documentation.Page("p.md", f"# p\n\n**What it is.** It aims\nat\n\n{rest}\n")
    assert (page.paragraph(documentation.IS), page.lead(documentation.IS)) == (text, "It aims at")


def test_every_page_says_whole_sentences():
    for name in [c.name for c in Model().registry()] + [name for name, _ in Model().queues()]:
        page = documentation.find_page(name)
        for label in (documentation.IS, documentation.WORDS, documentation.DIFFERS, documentation.NOT_MODELLED):
            assert page.paragraph(label)[-1:] in (".", ")", ""), (name, label)


LISTS = [
    ("scenario", "list"),
    ("cca", "list"),
    ("qdisc", "list"),
    ("study", "list"),
    ("study", "show", "jitter-cliff"),
    ("doctor",),
    ("kernel", "list"),
    ("cca", "show", "cubic"),
    ("cca", "show", "bbr"),
    ("qdisc", "show", "netem"),
    ("bound", "--from", "60mbit", "--to", "20mbit", "--rtt", "50ms"),
]


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_lists_fit(cli, monkeypatch, words):
    looked = cache(survey.survey)
    monkeypatch.setattr(survey, "survey", lambda say: looked())  # it measures for seconds
    for width in (60, 80, 100, 150):
        monkeypatch.setenv("COLUMNS", str(width))
        printed = cli(*words)
        assert printed.status == 0
        assert [line for line in printed.out.splitlines() if len(line.rstrip()) > width and not line.startswith("Next: ")] == []


def test_a_narrow_list_cuts_no_name(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    listed = cli("cca", "list").out
    assert "left out at 80 characters: source" in listed
    assert [c.name for c in Model().registry() if not re.search(rf"^{c.name} ", listed, re.MULTILINE)] == []
    monkeypatch.setenv("COLUMNS", "150")
    assert "draft-cardwell-iccrg-bbr-congestion-control-00" in cli("cca", "list").out


def test_every_control_and_queue_can_be_shown(cli):
    listed = cli("cca", "list").out
    for c in Model().registry():
        got = cli("cca", "show", c.name)
        assert got.status == 0
        assert f"source: {c.source}" in got.out
        assert "measured" in got.out
        assert all(f"  {p.name}" in got.out for p in c.params)
        assert c.name in listed
    listed = cli("qdisc", "list").out
    for name, example in Model().queues():
        got = cli("qdisc", "show", name)
        assert got.status == 0
        assert f"example: {example}" in got.out
        assert name in listed


@pytest.mark.parametrize("name", ["cubic", "bbr", "reno", "tbf", "netem", "pfifo", "bfifo", "htb", "jitter"])
def test_they_have_pages(name):
    assert (ROOT / documentation.find_page(name).file).exists()


def test_measured_errors_are_shown(cli, numbers):
    assert "alone: median 0.012, 90th percentile 0.250 of 7" in cli("cca", "show", "cubic").out
    assert "2026-11-21, model-1 against kernels" in cli("cca", "show", "cubic").out
    assert "0.012 / 0.250 (7)" in cli("cca", "list").out
    assert documentation.UNMEASURED in cli("cca", "show", "reno").out
    assert "total goodput: median 0.012" in cli("qdisc", "show", "tbf").out
    assert documentation.NO_KERNEL in cli("qdisc", "show", "jitter").out
    assert "not in Linux" in cli("qdisc", "list").out


def test_parameters_are_shown_with_defaults_and_an_example(monkeypatch):
    params = (spelling.Param("hystart", "Whether it ends early", 1, 0, 1), spelling.Param("beta", "Window after a loss, of 1024", 717, 1, 1023))
    monkeypatch.setattr(Model, "registry", lambda self: [CcaEntry("odd", "an odd one", "RFC 1", params)])
    said = list(lists.control_text("odd"))
    assert "parameters, for example --cca odd:hystart=off" in said
    assert "  hystart  default on   Whether it ends early (on, off)" in said
    assert "  beta     default 717  Window after a loss, of 1024 (1 to 1023)" in said
    assert f"measured: {documentation.NO_KERNEL}" in said


def test_the_packages_numbers_are_whole():
    said = documentation.load_fidelity()
    assert said.where
    for what in ("controls", "queues"):
        for name in said.content.get(what, {}):
            assert all(e.n > 0 and 0 <= e.median <= e.p90 for e in said.errors(what, name))
