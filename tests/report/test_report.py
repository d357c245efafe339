"""The report of a result directory: one page that opens offline, made from the directory alone, with everything in it."""

import csv
import html
import itertools
import re
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
from markupsafe import Markup

import tcpscape
from patience import PATIENCE_S
from tcpscape import plots, report
from tcpscape.campaign import execute, record
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution
from tcpscape.controls import palette
from tcpscape.errors import StoreError
from tcpscape.plots import style
from tcpscape.report import cells, figures, shapes, tables
from tcpscape.report.build import claims_section
from tcpscape.report.diagram import PathView
from tcpscape.report.figures import EmbeddedFigure, FigureRequest
from tcpscape.report.page import Answer, FigureGroup, Heading, Page, Provenance, Step, ToDeploy, render
from tcpscape.report.shapes import swatch
from tcpscape.scenario import files
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.store.results import FILE, Store
from tcpscape.studies import run as runs
from tcpscape.studies import study as studies
from tcpscape.studies.result import JudgedClaim, Result
from tcpscape.studies.study import WORKS, Claim
from tcpscape.text.numbers import Number
from tcpscape.text.table import Table
from tcpscape.words import campaign as answer
from tcpscape.words import study as study_answer
from tcpscape.words import terms

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Html(HTMLParser):
    """What is in a page; minds tags that are not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.links, self.ids, self.text = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        found = dict(attrs)
        self.links += [found[k] for k in ("href", "src", "xlink:href", "data") if k in found]
        self.ids += [found["id"]] if "id" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    root = tmp_path_factory.mktemp("study")
    said = studies.get("starlink").only(["profiles"]).changed({"engines": ["mock"], "seeds": 3})
    result = runs.run(said, Execution(store=Store(root)))
    record.save(record.Record("study", "starlink", "tcpscape study run starlink --quick", result.parts, said.model_dump(mode="json")), root)
    return root


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    root = tmp_path_factory.mktemp("sweep")
    said = {"name": "<b>&", "conditions": {"rtt": "50ms", "flow": {"rcvbuf": "256KiB"}}, "axes": {"jitter": "0,4,8ms"}, "cca": "cubic,bbr"}
    outcome = execute.run(Campaign.of({**said, "engines": ["mock"], "seeds": "3,5,8", "samples": "1s"}), Execution(store=Store(root)))
    record.save(record.Record("sweep", "<b>&", "tcpscape sweep --jitter '0,4,8ms'", {"": outcome}), root)
    return root


@pytest.fixture(scope="module")
def built(study):
    return report.build(record.load(study), study, ("svg", "png", "pdf"))


@pytest.fixture(scope="module")
def swept(sweep):
    return report.build(record.load(sweep), sweep, ("svg",))


def test_the_page_stands_alone(built):
    page = Html(text := built[0].read_text("utf-8"))
    assert page.seen.count("svg") >= 1
    assert len(set(page.ids)) == len(page.ids)
    assert not [link for link in page.links if re.match(r"(?i)(\w+:)?//|data:|javascript:", link)]
    for link in page.links:
        assert link.removeprefix("#") in page.ids if link.startswith("#") else (built[0].parent / link).is_file()
    assert "default-src 'none'" in text
    assert not re.findall(r"(?i)<(?:link|iframe|object|embed)|@import|url\((?!#)", text)


def test_claims_tables_and_versions_are_in_it(built, study):
    text = " ".join("".join(Html(built[0].read_text("utf-8")).text).split())
    kept = record.load(study)
    result = Result(studies.of(kept.study, "manifest"), kept.parts)
    for judged in runs.judge(result).claims:
        assert judged.claim.text in text
        assert judged.measured in text
    for said in ("tcpscape study run starlink --quick", "mock mock-1", "mock engine: the numbers mean nothing", kept.version, result.study.source):
        assert said in text
    for cell in result.outcome().cells:
        assert cell.mean().text() in text


PARTS = ('id="path"', 'id="main"', 'id="deploy"', 'id="figures"', 'id="tables"', 'id="claims"', 'id="again"')


def test_the_parts_stand_in_their_order(built):
    """The answer, the path, the main figure, …: whatever a page has of them."""
    text = built[0].read_text("utf-8")
    places = [text.index("<h1>"), *(text.index(part) for part in PARTS if part in text)]
    assert places == sorted(places)
    assert [part in text for part in PARTS] == [True, True, False, False, True, True, True]


def test_a_page_of_every_part():
    """The page of another command is made of the same parts; what it lacks is left out."""
    figure = EmbeddedFigure("bars", "what it shows", Markup("<svg></svg>"), Markup(""), ("figures/bars.png",))
    whole = Page(
        Heading("advise", "What this path should use"),
        (Answer("bbr carries 3.1 × cubic [2.8, 3.4] </p>", ("because <of> loss",)),),
        ("a <caveat>",),
        (PathView.of("", [scenario()], "25 Mbit/s <over> satellite"),),
        (FigureGroup("", (figure, replace(figure, name="more"))),),
        ToDeploy("Use <bbr>.", (Step("Until the next start", "sysctl -w net.ipv4.tcp_congestion_control=bbr", "as root"),)),
        (tables.PageTable("cells", "x", ("a",), [[tables.word("<1>")]]),),
        claims_section([judged("reproduced")]),
        Provenance("tcpscape advise <x>"),
    )
    text = render(whole)
    places = [text.index(part) for part in ("bbr carries", "a &lt;caveat&gt;", *PARTS)]
    assert places == sorted(places)
    assert not re.search(r"<(of|caveat|over|bbr|1|x)>", text)
    assert "bbr carries 3.1 × cubic [2.8, 3.4] </p>" in "".join(Html(text).text)
    short = render(Page(Heading("run", "Nothing yet")))
    assert not [part for part in PARTS if part in short]


def test_the_first_use_of_a_term_is_a_link_to_its_meaning():
    """On the page itself, which opens offline; terms that it does not use are not explained, code and names stay as they are."""
    page = Page(
        Heading("advise", "x", about=("`cliff` of it",)),
        (Answer("bbr stands behind its Cliff, in the chaos zone", ("the cliff of cubic and its zone, no cliffhanger",)),),
        caveats=("which <zone> is not identifiable",),
    )
    text = render(page)
    links = ["cliff", "chaos-zone", "zone", "not-identifiable"]
    assert [link for link in Html(text).links if "term" in link] == [f"#term-{link}" for link in links]
    assert [anchor for anchor in Html(text).ids if "term-" in anchor] == [f"term-{link}" for link in links]
    assert all(part in text for part in ("behind its <a", "the cliff of cubic and its <a", "&lt;zone&gt; is <a", "<code>cliff</code>"))
    assert all(meaning in text for term, meaning in terms.GLOSSES.items() if not term.startswith("runs"))
    assert 'id="terms"' not in render(Page(Heading("run", "Nothing yet")))
    assert Html(render(Page(Heading("cliff", "At which jitter does this path fall off its cliff?")))).links == ["#term-cliff"]


def scenario(**fields):
    return Scenario.of({"forward": ["netem delay 25ms 4ms loss 1%"], "bottleneck": ["tbf rate 40mbit burst 6056 limit 300000"], **fields})


def judged(verdict, text="a claim"):
    return JudgedClaim(Claim(text=text, work=next(iter(WORKS)), measure="mean"), verdict, "1.0 [0.9, 1.1]")


def test_claims_that_fail_come_first_and_the_reproduced_ones_are_folded():
    mixed = [judged(v, f"{v} {i}") for i, v in enumerate(("reproduced", "not decidable", "not reproduced", "reproduced", "not reproduced"))]
    found = claims_section(mixed)
    assert [row[1].text for row in found.open.rows] == ["not reproduced 2", "not reproduced 4", "not decidable 1"]
    assert [row[1].text for row in found.reproduced.rows] == ["reproduced 0", "reproduced 3"]
    assert [(name, count) for name, count, _ in found.tally] == [("not reproduced", 2), ("not decidable", 1), ("reproduced", 2)]
    text = render(Page(Heading("study", "x"), claims=found))
    folded = text[text.index("<details") : text.index("</details>")]
    assert "reproduced 0" in folded
    assert "not reproduced 2" not in folded
    assert "<summary>2 reproduced</summary>" in folded
    assert claims_section([]) is None


def test_the_diagram_shows_the_path():
    found = PathView.of("", [scenario(reverse=["netem delay 20ms"], flows=[{"cca": "bbr", "count": 2, "rcvbuf": "256KiB"}])])
    for drawn in (found.wide, found.narrow):
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
        words = ["Sender", "2 × bbr", "25 ms ± 4 ms uniform", "loss 1 %", "Router", "40 Mbit/s", "buffer 300 kB", "Receiver", "buffer 256KiB"]
        assert sorted(t for t in texts if not t.startswith("ACKs")) == sorted(words)
        assert "ACKs, 20 ms" in texts
        assert re.search(r'aria-labelledby="(\S+) (\S+)"><title id="\1">[^<]+</title><desc id="\2">Sender: 2 × bbr → 25 ms', drawn)
    jitters = [scenario(forward=[f"netem delay 25ms{j}"]) for j in ("", " 4ms distribution normal", " 12ms distribution normal")]
    found = PathView.of("", [*jitters, scenario(forward=["netem delay 50ms"], bottleneck=["tbf rate 20mbit burst 6056 limit 300000"])])
    assert "25–50 ms ± 0–12 ms normal" in found.wide
    assert ">20–40 Mbit/s<" in found.wide
    assert "each in turn" not in found.wide

    queues = tcpscape.sweep(rtt="40ms", rate="20mbit", buffer="500kB", queue="fifo,fq_codel", engine="mock", seeds=1)
    wide = str(PathView.of("", [cell.scenarios[0] for cell in queues.cells]).wide)
    assert "FIFO or fq_codel" in wide
    assert "0–" not in wide


def test_the_buffer_is_that_of_the_queue_that_a_rate_fills():
    """A netem under a tbf holds the packets that wait for its rate; one alone holds those on their way."""
    drawn = PathView.of("", [scenario(bottleneck=["tbf rate 10mbit burst 4000 latency 400ms; netem delay 50ms limit 700"])]).wide
    assert ">buffer 700 packets<" in drawn
    alone = PathView.of("", [scenario(forward=["netem delay 25ms limit 900"])]).wide
    assert "900" not in alone
    assert "no bottleneck" not in PathView.of("", [scenario(forward=["netem delay 25ms rate 10mbit"], bottleneck=[])]).wide
    assert "no bottleneck" in PathView.of("", [scenario(bottleneck=[])]).wide


@pytest.mark.parametrize("name", files.gallery())
def test_the_diagram_of_every_path_in_the_gallery(name):
    drawn = PathView.of("", [files.load(name)])
    assert "100000" not in drawn.wide  # the limit of a delay is no buffer
    expect_texts_apart(drawn.wide)
    assert ("application 10MiB/s" in drawn.narrow) == bool(files.load(name).flows[0].app.rate)


def test_hostile_names_are_text_in_the_diagram():
    name = "x<script>alert(1)</script>&\"'"
    drawn = PathView.of(name, [scenario()], f"over {name}", looks=palette.looks([name]))
    text = render(Page(Heading("run", name, name), (Answer(name),), (name,), (drawn,), provenance=Provenance(name, ((name, name),))))
    assert "<script>alert" not in text
    assert text.count("<script>") == 1
    node = shapes.Box(name, ((name, palette.LOOKS[0]),))
    assert "<script>" not in shapes.horizontal((node, node), (shapes.Arrow((name,)),), shapes.Arrow((name,)), "a")


@pytest.mark.parametrize("lines", [1, 4])
def test_the_diagram_is_legible_at_400_px(lines):
    """376 px are left for it; a text of 12 units must stay above 10 px, inside the drawing and clear of other texts."""
    hops = "; ".join(["netem delay 25ms 4ms loss 1% duplicate 1%", "fq_codel limit 132 ecn"][: 1 + (lines > 1)])
    found = PathView.of("", [scenario(forward=[hops], flows=[{"cca": c} for c in ("cubic", "bbr", "dctcp", "westwood", "reno", "yeah")][:lines])])
    width = float(re.search(r'viewBox="0 0 (\d+)', found.narrow)[1])
    assert shapes.FONT * 376 / width >= 10
    for drawn in (found.narrow, found.wide):
        expect_texts_apart(drawn)


def expect_texts_apart(drawn: str) -> None:
    """Texts are inside the drawing and clear of each other."""
    width = float(re.search(r'viewBox="0 0 (\d+)', drawn)[1])
    boxes = []
    for x, y, anchor, text in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"[^>]*>([^<]*)<', drawn):
        length = shapes.CHARACTER * shapes.FONT * len(text)
        left = float(x) - (length / 2 if anchor == "middle" else 0)
        boxes.append((left, left + length, float(y) - shapes.FONT, float(y)))
    assert all(left >= 0 and right <= width for left, right, _, _ in boxes)
    touching = [1 for a, b in itertools.combinations(boxes, 2) if min(a[1], b[1]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[2], b[2])]
    assert not touching


def test_a_network_is_drawn_with_each_flow_from_where_it_enters_to_where_it_leaves():
    long_name = "a router with a rather long name"
    network = {
        "links": [{"name": "west", "between": [long_name, "b"], "delay": "5ms", "rate": "20mbit"}, {"between": ["b", "c"], "delay": "1ms"}],
        "flows": [{"cca": "cubic", "leave": "b"}, {"cca": "bbr", "direction": "up", "enter": "c", "leave": "b"}, *[{"cca": "reno"}] * 20],
        "probes": ["ping", {"name": "near", "interval": "20ms", "enter": "b"}],
    }
    drawn = PathView.of("", [Scenario.of(network)], looks=palette.looks(["cubic", "bbr", "reno"])).wide
    expect_texts_apart(drawn)
    assert ">and 10 groups more<" in drawn
    [spoken] = re.findall(r"<desc[^>]*>(.*?)</desc>", drawn)
    assert "1 bbr up from c to b" in spoken
    assert "probe ping, probe near from b to c" in spoken
    router = [float(x) for x in re.findall(r'<circle class="box" cx="([\d.]+)"', drawn)]
    arrows = [tuple(map(float, ends)) for ends in re.findall(r'class="way" points="([\d.]+),[\d.]+ ([\d.]+),', drawn)]
    assert arrows[:3] == [(router[0], router[1]), (router[2], router[1]), (router[0], router[2])]
    assert len(arrows) == 14


def test_figures_are_legible_at_400_px(built, swept):
    """400 px less the page's margins of 12 px: text of 7 units in a figure 4 inches (288 units) wide is 9.1 px high there."""
    for text in (built[0].read_text("utf-8"), swept[0].read_text("utf-8")):
        narrow = re.findall(r'<div class="on-narrow"><svg .*?</svg>', text, re.DOTALL)
        assert len(narrow) == text.count('<figure id="figure-') > 0
        for drawn in narrow:
            width = float(re.search(r'viewBox="0 0 ([\d.]+) ', drawn)[1])
            sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:\d+ )?([\d.]+)px", drawn)]
            assert width <= 72 * style.NARROW
            assert min(sizes) * (400 - 24) / width >= 9


def test_a_page_never_overflows_and_has_code_and_figures_on_paper():
    """Whatever is wide is in a box that scrolls, with a cue; only those boxes scroll."""
    table = tables.PageTable("cells", "wide", [f"column {i}" for i in range(40)], [[tables.word("x" * 30)] * 40])
    text = render(Page(Heading("run", "x"), tables=(table,), provenance=Provenance("tcpscape " + "x" * 400)))
    assert re.search(r'<p class="cue"[^>]*>scroll</p>\s*<div class="scroll" tabindex="0" role="region" aria-label="wide">\s*<table>', text)
    assert re.search(r"\.scroll \{[^}]*overflow: auto", text)
    assert re.search(r"pre \{[^}]*overflow-x: auto", text)
    page = Page(Heading("study", "x"), provenance=Provenance("y", pitfalls=("part `a<b>` of it", "a lone ` quote <i>")))
    text = render(page)
    assert "part <code>a&lt;b&gt;</code> of it" in text
    assert "a lone ` quote &lt;i&gt;" in text
    # A sheet is narrower than the limit for narrow pages.
    css = render(Page(Heading("run", "x")))
    paper = css[css.index("@media print") :]
    assert css.index("@media print") > css.index("@media (max-width")
    assert re.search(r"\.on-narrow \{ display: none", paper)
    assert re.search(r"\.on-wide \{ display: block", paper)


@pytest.mark.parametrize(
    "command", [("advise", "--rtt", "60ms", "--rate", "20mbit", "--engine", "mock"), ("sweep", "--rtt", "20,60ms", "--engine", "mock")]
)
def test_a_page_is_one_sheet_of_paper(command, cli, tmp_path):
    """The answer, a figure, what to do and the command; a browser prints it, where there is one."""
    chromium = shutil.which("chromium") or pytest.skip("there is no chromium")
    assert cli(*command, "--cca", "cubic,bbr,reno", "--seeds", "3", "--out", tmp_path / "o", "--report").status == 0
    printed = [
        chromium,
        "--headless",
        "--no-sandbox",
        "--no-pdf-header-footer",
        f"--print-to-pdf={tmp_path / 'p.pdf'}",
        f"file://{tmp_path}/o/report.html",
    ]
    subprocess.run(printed, check=True, capture_output=True, timeout=PATIENCE_S)
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "p.pdf").read_bytes())) == 1


def test_controls_have_their_look_in_tables(swept):
    """The first column of each table has the colour, marker and dash of the figures."""
    text = swept[0].read_text("utf-8")
    looks = palette.looks(["cubic", "bbr"])
    for name, look in looks.items():
        row = re.search(rf'<td[^>]*><svg class="swatch".*?</svg>(?:<a [^>]*>)?{name}<', text)
        assert row
        assert look.colour in row[0]
    drawn = swatch(palette.LOOKS[6])
    assert 'stroke-dasharray="5 2"' in drawn
    assert swatch(palette.LOOKS[0]) != swatch(palette.LOOKS[6])


def test_one_statistic_in_the_table_of_the_cells(study, sweep):
    """That of the answer: means of the controls at one point, medians along axes; the files have both."""
    for root, part, stat in ((sweep, "", "median"), (study, "profiles", "median")):
        outcome = record.load(root).parts[part]
        table = cells.table(part, outcome, cells.measure(part, outcome, cells.names(part, outcome)))
        assert {c.split()[-1] for c in (name.split(",")[0] for name in table.columns[table.left + 1 :])} == {stat, "CV"}


def test_the_table_of_the_cells_is_made_in_parts(study, sweep, monkeypatch):
    for root in (study, sweep):
        parts = record.load(root).parts.items()
        estimated = [entry for part, outcome in parts for entry in cells.measure(part, outcome, cells.names(part, outcome))]
        whole = pl.DataFrame([*map(cells._row, estimated)], infer_schema_length=None)
        for at_once in (1, 2, len(estimated)):
            monkeypatch.setattr(cells, "AT_ONCE", at_once)
            frame = cells.frame(estimated)
            assert frame.equals(whole)
            assert frame.schema == whole.schema
            assert frame.n_chunks() == -(-len(estimated) // at_once)
    assert cells.frame([]).is_empty()


def test_the_answer_is_that_of_the_screen(built, study, swept, sweep):
    """The sentence of the command, its caveats right below it, and the path in the same words; tables of a terminal with looks and numbers."""
    kept = record.load(study)
    of_study = study_answer.study_screen(runs.judge(Result(studies.of(kept.study, "manifest"), kept.parts)))
    for file, screen in ((built[0], of_study), (swept[0], answer.sweep_screen(record.load(sweep).outcomes[0]))):
        text = html.unescape(file.read_text("utf-8"))
        places = [text.index(screen.answer), *(text.index(caveat) for caveat in screen.caveats), text.index('id="path"')]
        assert places == sorted(places)
    assert answer.sweep_screen(record.load(sweep).outcomes[0]).path in html.unescape(swept[0].read_text("utf-8"))


def test_tables_of_the_terminal():
    rows = [("cubic", Number(5.12, "5.1", "[4.0, 6.0]"), "cwnd"), ("all", Number(0.07, "~7 %"), "")]
    table = Table(("cca", "goodput", "limited by"), rows, words=("limited by",), notes=("a; b: --verbose",))
    found = tables.of_screen(table, palette.looks(["cubic"]), "In short")
    first, second = found.rows
    assert (first[0].looks, first[1].text, first[1].interval, first[1].sort) == ((palette.LOOKS[0],), "5.1", "[4.0, 6.0]", 5.12)
    assert (second[0].looks, second[1].text, second[1].sort, first[2].text) == ((), "~7 %", 0.07, "cwnd")
    assert (found.caption, list(found.notes)) == ("In short", ["a"])


def test_numbers_are_aligned_to_the_right_and_words_to_the_left():
    table = tables.PageTable("x", "x", ("cca", "n", "why"), [[tables.word("cubic"), tables.count(3), tables.word("loss")]], words=("why",))
    text = render(Page(Heading("run", "x"), tables=(table,)))
    assert re.findall(r'<t[hd]([^>]*)>(?:<button type="button">)?(\w+)', text[text.index("<table>") :]) == [
        *((' scope="col"', "cca"), (' scope="col" class="n"', "n"), (' scope="col"', "why")),
        *(("", "cubic"), (' class="n" data-v="3"', "3"), ("", "loss")),
    ]
    field = tables.estimate(Estimate(0.25, 0.2, 0.3, 9), 100)
    assert (field.text, field.interval, field.sort) == ("25.0", "[20.0, 30.0]", 25.0)
    assert tables.estimate(Estimate(3.0, float("nan"), float("nan"), 1)).interval == "[one run]"
    table = tables.PageTable("cells", "x", ("a", "b"), [[tables.word(i), tables.word("")] for i in range(tables.MOST_ROWS + 7)])
    assert (len(table.shown), table.hidden, table.dense().columns) == (tables.MOST_ROWS, 7, ["a"])


def test_names_of_parts_are_no_code_and_no_paths(tmp_path):
    """A directory with two campaigns has parts by their names, which are a user's own words."""
    hostile = '../up "><script>alert(1)</script>\\1'
    conditions = {"rtt": "50ms", "flow": {"rcvbuf": "256KiB"}}
    for name, loss in (("""up "><script>alert(1)""", "0,1,2%"), ("second", "0,3,4%")):
        said = {"name": name, "conditions": conditions, "axes": {"loss": loss}, "cca": "cubic,bbr", "engines": ["mock"], "seeds": 2}
        outcome = execute.run(Campaign.of(said), Execution(store=Store(tmp_path / "d")))
        record.save(record.Record("sweep", name, "tcpscape sweep x.yaml", {"": outcome}), tmp_path / "d")
    kept = record.load(tmp_path / "d")
    assert not any("<" in part or "/" in part for part in kept.parts)
    kept = replace(kept, parts={hostile: kept.outcomes[0], "second": kept.outcomes[-1]})  # as a damaged or foreign manifest could have it
    written = report.build(kept, tmp_path / "d", ("svg",))
    assert all((tmp_path / "d").resolve() in file.resolve().parents for file in written)
    text = written[0].read_text("utf-8")
    assert "<script>alert" not in text
    assert text.count("<script") == 1
    page = Html(text)
    assert len(set(page.ids)) == len(page.ids)
    for link in page.links:
        assert link.removeprefix("#") in page.ids if link.startswith("#") else (tmp_path / "d" / link).is_file()


def test_every_file_is_there(built, study):
    assert {f.relative_to(study).parts[0] for f in built} == {"report.html", "figures", "tables", "scenarios"}
    assert all(f.is_file() and f.stat().st_size for f in built)
    assert {f.suffix for f in built if f.parent.name == "figures"} == {".svg", ".png", ".pdf"}
    kept = record.load(study)
    for name, rows in (("cells", 6), ("runs", kept.outcomes[0].trial_count), ("claims", len((kept.study or {})["claims"]))):
        assert pl.read_parquet(study / "tables" / f"{name}.parquet").height == rows
        with (study / "tables" / f"{name}.csv").open() as file:
            assert len(list(csv.DictReader(file))) == rows
    row = pl.read_parquet(study / "tables" / "cells.parquet").row(0, named=True)
    mean = kept.outcomes[0].cells[0].mean()
    assert (row["goodput_mean"], row["goodput_mean_low"], row["goodput_mean_high"]) == (mean.value, mean.low, mean.high)


def test_the_same_directory_has_the_same_report(built, study, tmp_path):
    again = report.build(record.load(study), tmp_path, ("svg", "png", "pdf"))
    assert [f.relative_to(tmp_path) for f in again] == [f.relative_to(study) for f in built]
    assert [f for f, g in zip(again, built, strict=True) if f.read_bytes() != g.read_bytes()] == []


def test_what_is_said_to_run_it_again_does(sweep, swept, cli):
    kept = record.load(sweep)
    for cell, again in zip(kept.outcomes[0].cells, cells.reruns(kept.parts, {"": cells.names("", kept.outcomes[0])}), strict=True):
        assert [files.load(sweep / one.file).address() for one in again.scenarios] == [s.address() for s in cell.scenarios]
    command = cells.reruns(kept.parts, {"": cells.names("", kept.outcomes[0])})[1].scenarios[0].command.split()
    assert command[-2:] == ["--engine", "mock"]
    got = cli(command[1], sweep / command[2], *command[3:], "--json")
    assert [line["goodput_mbps"] for line in got.lines] == [t.goodput_mbps for t in kept.outcomes[0].cells[1].trials]


def test_names_are_escaped(swept):
    text = swept[0].read_text("utf-8")
    page = Html(text)
    assert "<b>&" not in text.replace("<b>Caveat", "")
    assert "<b>&" in "".join(page.text)


def test_the_command_writes_it(cli, sweep, tmp_path):
    got = cli("report", sweep, "--figures", "svg")
    assert (got.status, got.out.splitlines()[-1]) == (0, f"Next: open {sweep / 'report.html'}")
    got = cli("report", tmp_path)
    assert got.status == 2
    assert "no results.sqlite in it; name a directory that run, sweep or study wrote with --out" in got.err

    (sweep / "report.html").unlink()
    assert "chooses none of the conditions" in cli("report", sweep, "--check", "goodput[cca=reno] > 1").err
    assert not (sweep / "report.html").exists()


DAMAGES = {
    "a list": lambda document: [],
    "nothing": lambda document: {},
    "no cells": lambda document: {k: v for k, v in document.items() if k != "cells"},
    "cells that are none": lambda document: {**document, "cells": [3]},
    "no name": lambda document: {**document, "name": None},
    "no runs": lambda document: {**document, "cells": [{k: v for k, v in cell.items() if k != "runs"} for cell in document["cells"]]},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_manifest_is_one_line(cli, sweep, tmp_path, damage):
    root = shutil.copytree(sweep, tmp_path / "d")
    with Store(root) as store:
        store.change_manifests(lambda before: [DAMAGES[damage](before[0])])
    for args in (("report", root), ("compare", root, sweep), ("export", root, "--to", "csv")):
        got = cli(*args)
        assert (got.status, got.out, got.err.count("\n")) == (2, "", 1), got
        assert "a manifest in it is damaged (" in got.err
        assert got.err.endswith("; move the file away and run again\n")


def test_a_trial_that_is_missing_is_one_line(cli, sweep, tmp_path):
    root = shutil.copytree(sweep, tmp_path / "d")
    with sqlite3.connect(root / FILE) as connection:
        connection.execute("DELETE FROM trials WHERE rowid = 1")
    got = cli("report", root)
    assert (got.status, got.err.count("\n")) == (2, 1)
    assert got.err.endswith("of its manifest is missing; run again with the same --out\n")


def test_a_study_reports_itself(cli, tmp_path):
    got = cli("study", "run", "starlink", "--part", "profiles", "--quick", "--engine", "mock", "--out", tmp_path, "--report")
    assert got.status == 0, got.err
    assert got.out.endswith(f"Next: open {tmp_path / 'starlink' / 'report.html'}\n")
    assert record.load(tmp_path / "starlink").command.endswith(f"run starlink --part profiles --quick --engine mock --out {tmp_path} --report")


def test_a_run_reports_itself(cli, tmp_path):
    words = ("run", "--forward", "netem delay 25ms", "--cca", "cubic,bbr", "--engine", "mock", "--seeds", "3")
    got = cli(*words, "--out", tmp_path, "--report")
    assert got.status == 0, got.err
    assert got.out.endswith(f"Next: open {tmp_path / 'report.html'}\n")
    kept = record.load(tmp_path)
    assert kept.kind == "run"
    assert kept.command == f"tcpscape run --forward 'netem delay 25ms' --cca cubic,bbr --engine mock --seeds 3 --out {tmp_path} --report"
    assert [(c.cca, len(c.trials)) for c in kept.outcomes[0].cells] == [("cubic", 3), ("bbr", 3)]
    assert all(t.samples is not None for c in kept.outcomes[0].cells for t in c.trials)


@pytest.mark.parametrize(("seeds", "said"), [([0, 1, 2], "3"), ([5, 6, 7], "5..7"), ([1, 4, 9], "1,4,9"), ([7], "7..7")])
def test_seeds_as_the_command_line_reads_them(seeds, said):
    from tcpscape.campaign.axes import parse_seeds

    assert cells.seeds(seeds) == said
    assert parse_seeds(said) == seeds


def test_figures_that_are_asked_for(sweep):
    outcome = record.load(sweep).outcomes[0]
    fitting = [f.name for f in plots.fitting(outcome)]
    assert {"retention", "curve", "series"} <= set(fitting)

    def names(*asked, **more):
        return [f.name for f in figures.chosen(outcome, FigureRequest(asked, **more))]

    assert (names("curve"), names("shares"), names()) == (["curve"], fitting[:1], fitting)
    assert names(parts=2) == fitting[:1]
    several = FigureRequest(("series", "curve"), parts=2)
    assert [f.name for f in figures.chosen(outcome, several)] == ["series", "curve"]
    assert [f.name for f in figures.chosen(outcome, several.after(outcome))] == ["curve"]
    assert (several.most_pages(plots.find("series")), FigureRequest(parts=9).most_pages(plots.find("curve"))) == (2, 1)
    assert (figures.spread(2, 3), figures.spread(9, 3), figures.spread(9, 1)) == ([0, 1], [0, 4, 8], [4])
    # One bar compares nothing.
    whole = record.load(sweep).outcomes[0]
    one = replace(whole, cells=whole.cells[:1])
    assert [kind.name for kind in figures.chosen(one, FigureRequest())][:1] == ["series"]


def test_the_page_of_an_advice_is_not_replaced(sweep, tmp_path):
    """Its results lack what to deploy: `report` names the command that writes the page instead of writing a poorer one over it."""
    advised = replace(record.load(sweep), kind="advise", command="tcpscape advise --rtt 50ms --out out/a")
    with pytest.raises(StoreError, match=r"it resumes: tcpscape advise --rtt 50ms --out out/a --report$"):
        report.build(advised, tmp_path)
    assert not list(tmp_path.iterdir())


def test_figures_of_an_earlier_report_go(tmp_path):
    mine = [tmp_path / "figures" / name for name in ("a.svg", "b.svg", "someone's.svg")]
    mine[0].parent.mkdir()
    for file in mine:
        file.touch()
    (outside := tmp_path / "c.svg").touch()
    figures.tidy(mine[:2], tmp_path)
    (mine[0].parent / figures.LIST).write_text("a.svg\nb.svg\n../c.svg\n", "utf-8")
    figures.tidy(mine[1:2], tmp_path)
    assert [f.is_file() for f in (*mine, outside)] == [False, True, True, True]


def test_the_main_figure_is_of_the_delay_where_all_carry_the_same(tmp_path):
    out = tmp_path / "buffers"
    tcpscape.sweep(rtt="40ms", rate="20mbit", buffer="100kB,500kB", cca=["cubic", "cubic:hystart=off"], engine="mock", seeds=5, out=out)
    page = report.build(record.load(out), out)[0].read_text("utf-8")
    figures = re.findall(r'<figure id="figure-([^"]+)"', page)
    assert figures[0].endswith("-added_rtt")
    assert not [name for name in figures[1:] if "added_rtt" in name]
    assert "added RTT (95th percentile), ms" in page
