"""Figures: each draws what it applies to, its words do not touch, and its colours can be told apart."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.image import imread
from matplotlib.text import Text

import tcpscape
from tcpscape import plots
from tcpscape.campaign import execute
from tcpscape.campaign.campaign import Campaign
from tcpscape.controls import palette
from tcpscape.engines.mock import Mock
from tcpscape.errors import TcpscapeError
from tcpscape.findings.damage import Achieved, Damage
from tcpscape.plots import Context, bars, runs, series, style, traces
from tcpscape.stats import Estimate
from tcpscape.studies import run as study_runs
from tcpscape.studies import study

PATH = {"rtt": "50ms", "distribution": "normal", "flow": {"rcvbuf": "256KiB"}}
CAMPAIGNS = {
    "jitter": {"axes": {"jitter": "0..24ms/4ms"}, "cca": "cubic,bbr"},
    "jitter-rtt": {"axes": {"rtt": "24,50,100ms", "jitter": "0..24ms/4ms"}, "cca": "cubic,bbr"},
    "fine": {"axes": {"rtt": "24,50,100ms", "jitter": "0..24ms/1ms"}, "cca": "cubic,bbr", "seeds": 2},
    "loss": {"axes": {"loss": "0,0.1,0.25,0.5,1,2,5%"}, "cca": "cubic,bbr,reno"},
    "names": {"zip": [{"profile": ["near", "far"], "rtt": "20,200ms", "loss": "0%,1%"}], "cca": "cubic,bbr"},
    "one": {"cca": "cubic"},
    "runs": {"axes": {"jitter": "6..14ms/4ms"}, "cca": "cubic,bbr", "seeds": 12},
    "many": {"axes": {"loss": "0.5,1%"}, "cca": ["cubic", "bbr", "reno", "cubic:hystart=0"]},
    "engines": {"axes": {"jitter": "0,8ms"}, "cca": "cubic", "engines": ["mock", "other"]},
}


SAMPLED = {
    "step": {
        "scenario": {
            "bottleneck": "tbf rate 20mbit burst 6056 limit 300000",
            "reverse": "netem delay ${d}",
            "duration": "4s",
            "changes": [
                {"where": "bottleneck", "at": "2s", "set": {"rate": "10mbit"}},
                {"where": "bottleneck", "every": "1500ms", "hold": "50ms", "set": {"outage": True}},
            ],
        },
        "axes": {"d": "20,40ms"},
        "cca": "cubic,bbr",
    },
    "flows": {
        "scenario": {
            "bottleneck": "tbf rate 10mbit burst 6056 limit 62500; pfifo limit 20",
            "reverse": "netem delay 20ms",
            "duration": "4s",
            "flows": [{"cca": "cubic", "count": 2}, {"cca": "bbr", "start": "1s"}],
        }
    },
    "network": {
        "scenario": {
            "links": [{"delay": "10ms", "rate": "10mbit", "buffer": "62500"}],
            "duration": "4s",
            "probes": ["ping", "voice"],
            "flows": [{"cca": "cubic", "count": 2}, {"cca": "bbr", "direction": "up"}, {"cca": "cubic", "rtt": "60ms"}],
            "transfers": [{"rate": 10, "size": "30kB"}],
        }
    },
}
"""Those that only an engine with samples can fill."""


def outcome(name, seeds=3):
    said = {"name": name, "conditions": PATH, "engines": ["mock"], "seeds": seeds, **CAMPAIGNS[name]}
    return execute.run(Campaign.of(said), execute.Execution(make=lambda _: Mock()))


@pytest.fixture(scope="module")
def outcomes():
    return {name: outcome(name) for name in CAMPAIGNS}


@pytest.fixture(scope="module")
def sampled():
    from conftest import model

    model()
    return {n: execute.run(Campaign.of({"name": n, "seeds": 2, "samples": "20ms", "queue_samples": "20ms", **said})) for n, said in SAMPLED.items()}


def texts(sheet):
    """Every text that is seen, with its place on the canvas, in the resolution of the style."""
    style.lay_out(sheet)
    sheet.dpi = style.DPI
    sheet.draw_without_rendering()
    renderer = sheet.canvas.get_renderer()
    found = [t for t in sheet.findobj(Text) if t.get_visible() and t.get_text().strip() and t.get_alpha() != 0]
    found = [t for t in found if all(a.get_visible() for a in [t.axes] if a is not None)]
    ticks = {id(t) for axis in sheet.findobj(Axis) for t in _hidden_ticks(axis)}
    return [(t.get_text(), t.get_window_extent(renderer)) for t in found if id(t) not in ticks]


def _hidden_ticks(axis):
    """Labels of ticks outside the view: Matplotlib keeps them and does not draw them."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
        if not low - slack <= tick.get_loc() <= high + slack or not axis.get_visible():
            yield from (tick.label1, tick.label2)


def mind(sheet):
    """What is wrong with the words of a figure."""
    placed = texts(sheet)
    width, height = sheet.canvas.get_width_height()
    edge = sheet.dpi / 100
    out = [t for t, b in placed if b.x0 < -edge or b.y0 < -edge or b.x1 > width + edge or b.y1 > height + edge]
    touching = [(a, b) for (a, p), (b, q) in itertools.combinations(placed, 2) if _overlap(p, q)]
    return out, touching


def _overlap(p, q, slack=1.0):
    return min(p.x1, q.x1) - max(p.x0, q.x0) > slack and min(p.y1, q.y1) - max(p.y0, q.y0) > slack


DRAWN = {
    "jitter": ["retention", "curve"],
    "jitter-rtt": ["retention", "curve", "map", "ratio-map"],
    "fine": ["retention", "curve", "map", "ratio-map"],
    "loss": ["retention", "curve", "bars"],
    "names": ["profiles"],
    "one": ["bars"],
    "runs": ["curve", "strip", "cdf"],
    "many": ["profiles", "bars"],
    "engines": ["profiles"],
}
DRAWN_OF_SAMPLES = {
    "step": ["spike", "profiles", "series"],
    "flows": ["split", "bars", "series", "shares"],
    "network": ["split", "groups", "sizes", "latency-cdf", "bars", "latency", "series", "shares"],
}


def test_figures_that_fit_and_each_is_tested(outcomes, sampled):
    assert {name: [f.name for f in plots.fitting(some)] for name, some in outcomes.items()} == DRAWN
    assert {name: [f.name for f in plots.fitting(some)] for name, some in sampled.items()} == DRAWN_OF_SAMPLES
    assert {f for some in (*DRAWN.values(), *DRAWN_OF_SAMPLES.values()) for f in some} == set(plots.FIGURES)


def _each_figure():
    """Every figure of every result; those that were there of an earlier result are slow."""
    once: set[str] = set()
    for name, some in (DRAWN_OF_SAMPLES | DRAWN).items():
        for figure in some:
            yield pytest.param(name, figure, marks=[pytest.mark.slow] if figure in once else [])
            once.add(figure)


@pytest.mark.parametrize(("name", "figure"), list(_each_figure()))
def test_words_do_not_touch_and_stay_inside(request, name, figure):
    some = request.getfixturevalue("outcomes" if name in DRAWN else "sampled")[name]
    found = plots.find(figure)
    for page, width in itertools.product(found.pages(some), (None, style.PAGE, style.NARROW)):
        drawn = found.draw(page, Context("A title that says what this is about", width=width))
        assert mind(drawn) == ([], []), width
        assert width in (None, drawn.get_figwidth())


def test_an_unknown_figure_is_refused():
    with pytest.raises(TcpscapeError, match=r"figures: 'moon' is unknown; choose split, spike, groups, "):
        plots.find("moon")
    with pytest.raises(TcpscapeError, match=r"formats: 'gif' is no format; choose png, svg, pdf"):
        style.formats("png,gif")


def test_a_figure_by_name(outcomes, sampled):
    assert len(plots.draw(outcomes["jitter-rtt"]).axes) == len(plots.draw(outcomes["jitter-rtt"], "retention").axes)
    assert plots.draw(sampled["flows"], "shares", context=Context("mine")).get_suptitle().startswith("mine\n")
    with pytest.raises(TcpscapeError, match=r"figure: 'cdf' needs data that the result lacks; choose retention, curve$"):
        plots.draw(outcomes["jitter"], "cdf")
    with pytest.raises(TcpscapeError, match=r"page: curve has no page 1; choose 0 to 0"):
        plots.draw(outcomes["jitter"], "curve", page=1)


def test_the_help_of_draw_names_every_figure():
    assert all(f"`{name}`" in plots.draw.__doc__ for name in plots.FIGURES)


def test_too_many_panels_become_pages():
    axes = {"rtt": "10..70ms/10ms", "loss": "0,1%", "jitter": "0..8ms/4ms"}
    some = execute.run(Campaign.of({"axes": axes, "cca": "cubic", "conditions": PATH, "engines": ["mock"], "seeds": 2}))
    found = plots.find("curve").pages(some)
    assert [len(page.cells) for page in found] == [6] * 7
    sheet = plots.find("curve").draw(found[2], Context())
    assert len(sheet.axes) == 2
    assert "RTT 30ms; mean" in sheet.get_suptitle()
    assert [len(page.cells) for page in plots.find("map").pages(some)] == [21, 21]


def test_modes_are_marked(outcomes):
    def labels(goodput):
        some = outcomes["runs"]
        cells = [replace(c, runs=(tuple(_with(t, goodput(i)) for i, t in enumerate(c.trials)),)) for c in some.cells]
        return plots.find("strip").draw(replace(some, cells=tuple(cells)), Context()).axes[0].get_legend_handles_labels()[1]

    assert labels(lambda i: 10 + 0.1 * i + 30 * (i % 2)).count(runs.MODES) == 2 * 6
    assert runs.MODES not in labels(lambda i: 10 + 0.1 * i)


def test_metrics_that_are_not_there(outcomes):
    """A cell that one control lacks, and runs without the metric, are left out: of every kind of figure that fits."""
    some = outcomes["runs"]
    first, *others = some.cells
    blind = replace(first, runs=tuple(tuple(_with(t, math.nan) for t in trials) for trials in first.runs))
    half = replace(others[0], runs=tuple(tuple(_with(t, math.nan) if t.seed % 2 else t for t in trials) for trials in others[0].runs))
    gap = replace(some, cells=(blind, half, *(c for c in others[1:] if c.cca != "bbr")))
    for figure in plots.fitting(gap):
        assert mind(figure.draw(gap, Context())) == ([], [])
    ax = plots.find("strip").draw(gap, Context()).axes[0]
    assert len({float(one.lines[0].get_xdata()[0]) for one in ax.containers}) == len(gap.cells) - 1


def test_a_control_that_a_panel_lacks(outcomes):
    some = outcomes["jitter-rtt"]
    cells = tuple(c for c in some.cells if c.cca == "cubic" or c.at["rtt"] == "24ms")
    seen = [ax for ax in plots.find("strip").draw(replace(some, cells=cells), Context()).axes if ax.get_visible()]
    assert [("bbr" in ax.get_legend_handles_labels()[1]) for ax in seen] == [True, False, False]


def _with(trial, goodput):
    return replace(trial, flows=tuple(replace(f, goodput_mbps=goodput) for f in trial.flows))


def test_a_thinned_trace_keeps_its_gaps_and_its_peaks():
    t = np.arange(10_000) / 100
    values = np.where(t == 50, 99.0, np.where(t == 70, -7.0, 1.0))
    short, kept = series.thinned(t, values)
    assert len(short) <= series.MOST_POINTS
    assert (max(kept), short[kept.argmax()], min(kept), short[kept.argmin()]) == (99, 50, -7, 70)
    values = np.where(t < 20, math.nan, np.where(t == 50, 99.0, 1.0))
    short, kept = series.thinned(t, values)
    assert np.nanmax(kept) == 99
    assert set(short[np.isnan(kept)]) <= set(t[t < 20])


@pytest.mark.parametrize("what", [("cwnd", "rtt"), ("pacing_rate",), ("rtt", "queue", "ssthresh")])
def test_quantities_over_time_as_chosen(sampled, what):
    """One panel for each quantity, in the order in which they are named."""
    drawn = plots.draw(sampled["step"], "series", context=Context(what=what))
    labels = [label if isinstance(label := traces.PANELS[name].label, str) else "bottleneck queue\n(bfifo), packets" for name in what]
    assert [ax.get_ylabel() for ax in drawn.axes] == labels
    assert mind(drawn) == ([], [])


TBF = "tbf rate 10mbit burst 6056 limit 62500"
LOSSY = {"reverse": "netem delay 25ms", "duration": "3s"}
BOTTLENECKS = {
    "tbf": ({"forward": "netem delay 25ms loss 1%", "bottleneck": TBF}, (1, 0), "bottleneck queue\n(bfifo), packets"),
    "fq_codel": ({"forward": "netem delay 25ms", "bottleneck": f"{TBF}; fq_codel"}, (1, 0), "bottleneck queue\n(fq_codel), packets"),
    "second hop": ({"forward": ["netem delay 25ms", TBF]}, (1, 0), "bottleneck queue\n(bfifo), packets"),
    "slower of two": ({"bottleneck": [TBF, "tbf rate 5mbit burst 6056 limit 62500"]}, (1, 1), "bottleneck queue\n(bfifo), packets"),
    "netem": ({"forward": "netem delay 25ms rate 10mbit"}, (0, 0), "held by netem,\npackets"),
}


@pytest.mark.parametrize("case", BOTTLENECKS)
def test_the_queue_is_the_bottlenecks(need_model, case):
    """Not the stage with most packets: a netem of 25 ms holds more packets on their way than a lossy CUBIC leaves in the queue."""
    path, (pipe, stage), label = BOTTLENECKS[case]
    drawn = execute.run(Campaign.of({"name": "q", "scenario": {**LOSSY, **path}, "samples": "100ms", "queue_samples": "100ms", "seeds": 1}))
    ax = plots.draw(drawn, "series", context=Context(what=("queue",))).axes[0]
    frame = drawn.trials[0].queue_samples
    rows = frame.filter((frame["pipe"] == pipe) & (frame["stage"] == stage) & (frame["depth"] == 0))
    assert (list(ax.lines[0].get_ydata()), ax.get_ylabel()) == (rows["packets"].to_list(), label)


def test_no_throughput_is_above_the_link(need_model):
    """A hole that is filled moves the cumulative acknowledgement by a window at once; what SACKs reported before was delivered before."""
    scenario = {**LOSSY, "duration": "8s", "forward": "netem delay 25ms", "bottleneck": TBF}
    drawn = execute.run(Campaign.of({"name": "q", "scenario": scenario, "cca": "cubic", "samples": "50ms", "seeds": 1}))
    assert drawn.trials[0].flows[0].retransmits > 0
    line = plots.draw(drawn, "series", context=Context(what=("throughput",))).axes[0].lines[0]
    assert 9 < np.nanmedian(line.get_ydata()) < np.nanmax(line.get_ydata()) < 10.5


def test_a_path_without_a_rate_has_no_queue_panel(need_model, sampled, outcomes):
    scenario = {**LOSSY, "forward": "netem delay 25ms loss 1%"}
    drawn = execute.run(Campaign.of({"name": "q", "scenario": scenario, "samples": "100ms", "queue_samples": "100ms", "seeds": 1}))
    assert not [ax for ax in plots.draw(drawn, "series").axes if "queue" in ax.get_ylabel() or "held" in ax.get_ylabel()]
    with pytest.raises(TcpscapeError, match="what: the samples have no queue: the path has no bottleneck; leave it out"):
        plots.draw(drawn, "series", context=Context(what=("queue",)))
    with pytest.raises(TcpscapeError, match=r"what: 'speed' is unknown; choose cwnd, in_flight, rtt, "):
        plots.draw(sampled["step"], "series", context=Context(what=("speed",)))
    cells = tuple(replace(c, runs=tuple(tuple(replace(t, queue_samples=None) for t in ts) for ts in c.runs)) for c in sampled["step"].cells)
    with pytest.raises(TcpscapeError, match=r"what: the samples have no queue; choose cwnd$"):
        plots.draw(replace(sampled["step"], cells=cells), "series", context=Context(what=("cwnd", "queue")))


def test_the_least_window_of_bbr_is_marked(need_model):
    """BBR has seen no new least RTT for 10 s and drains the queue for 200 ms: once in 12 s."""
    scenario = {**LOSSY, "duration": "12s", "forward": "netem delay 25ms", "bottleneck": TBF}
    drawn = execute.run(Campaign.of({"name": "q", "scenario": scenario, "cca": "cubic,bbr", "samples": "50ms", "seeds": 1}))
    ax = plots.draw(drawn, "series", context=Context(what=("cwnd",))).axes[0]
    marks = {line.get_label(): line.get_xdata() for line in ax.lines if line.get_label().endswith("PROBE_RTT")}
    assert list(marks) == ["bbr: PROBE_RTT"]
    assert [round(t) for t in marks["bbr: PROBE_RTT"]] == [10]


def test_changes_at_once_do_not_clash():
    sheet, axes = style.time_panels(1)
    axes[0].set_xlim(0, 60)
    happened = [
        series.Event(15.0, "loss 13 %, every 15 s; delay 40 ms, jitter 20 ms"),
        series.Event(16.0, "rate 10mbit"),
        series.Event(59.0, "outage, at last"),
    ]
    series.mark_events(axes, happened, 60.0)
    style.finish(sheet, axes, ("A title", "a note"))
    assert mind(sheet) == ([], [])


def test_a_pooled_run_has_the_changes_of_its_own_path(need_model):
    said = SAMPLED["step"]["scenario"] | {"changes": [{"where": "bottleneck", "at": "${at}", "set": {"rate": "5mbit"}}]}
    asked = {"scenario": said, "axes": {"d": "20ms", "at": "1s,2s,3s"}, "pool": ["at"], "cca": "cubic", "samples": "100ms", "seeds": 1}
    some = execute.run(Campaign.of({"name": "pooled", **asked}))
    ax = plots.find("series").draw(some, Context()).axes[-1]
    assert [one.get_xdata()[0] for one in ax.lines if list(one.get_ydata()) == [0, 1]] == [2.0]
    assert series.median_trial(some.cells[0]) is some.cells[0].runs[1][0]


def test_titles_and_axes_say_what_was_varied(outcomes, sampled):
    some = outcomes["jitter-rtt"]
    unnamed = replace(some, campaign=some.campaign.model_copy(update={"name": "words"}))
    assert plots.base.title(unnamed) == "goodput against RTT and jitter: cubic, bbr"
    assert (plots.base.title(some), plots.base.title(unnamed, Context("A study"))) == ("jitter-rtt", "A study")
    assert plots.base.axis_name(outcomes["loss"], "loss") == "loss (each direction)"
    assert plots.base.axis_name(replace(outcomes["loss"], campaign=sampled["step"].campaign), "loss") == "loss"
    towards = outcomes["loss"].campaign.model_copy(update={"conditions": {"loss_on": "forward"}})
    assert plots.base.axis_name(replace(outcomes["loss"], campaign=towards), "loss") == "loss"


def test_long_numbers_are_named_as_written():
    asked = {"axes": {"rcvbuf": "128,512,4096KiB"}, "conditions": PATH | {"flow": {}}, "cca": "cubic", "engines": ["mock"], "seeds": 2}
    some = execute.run(Campaign.of(asked))
    sheet = plots.find("curve").draw(some, Context())
    said = {t for t, _ in texts(sheet)}
    assert {"128KiB", "512KiB", "4096KiB", "receive buffer"} <= said


def test_spikes_recoveries_thresholds_and_events_are_those_of_the_trials(sampled):
    some = sampled["step"]
    ax = plots.find("spike").draw(some, Context()).axes[0]
    peaks = [float(c.lines[0].get_ydata()[0]) for c in ax.containers]
    assert sorted(peaks) == pytest.approx(sorted(series.verdict(c).peak_ms.value for c in some.cells))
    assert {round(series.verdict(c).bound_ms) for c in some.cells} == {20, 40}
    ax = plots.find("series").draw(sampled["flows"], Context()).axes[0]
    assert any(label.endswith("fast recovery") for label in ax.get_legend_handles_labels()[1])
    # Linux's `ssthresh` is 2³¹ − 1 packets until then.
    ax = plots.draw(sampled["step"], "series", context=Context(what=("ssthresh",))).axes[0]
    assert 0 < ax.get_ylim()[1] < 1e5
    found = [(e.at_s, e.text) for e in series.path_events(sampled["step"].cells[0].scenarios[0])]
    assert found == [(1.5, "outage, every 1.5 s"), (2.0, "rate 10mbit"), (3.0, "")]


def test_spikes_of_one_bound_are_told_apart(need_model):
    step = SAMPLED["step"]["scenario"]
    said = step | {"reverse": "netem delay 20ms", "changes": step["changes"][:1], "flows": [{"start": "${s}"}]}
    asked = {"name": "one", "scenario": said, "axes": {"s": "0s,500ms,1s"}, "cca": "cubic,bbr", "samples": "20ms", "seeds": 1}
    some = execute.run(Campaign.of(asked))
    sheet = plots.find("spike").draw(some, Context())
    assert mind(sheet) == ([], [])
    ax = sheet.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0s", "500ms", "1s"]
    bounds = [one for one in ax.lines if one.get_label() == series.LABEL]
    assert [round(float(one.get_xdata()[0])) for one in bounds] == [20] * 6


def test_names_are_inside_the_figure_at_the_resolution_of_its_files():
    """Hinting makes small text 7 % narrower at 100 dpi than at 160, the resolution of PNG: 1.81 and 1.94 inches for the longest name here."""
    gain, unseen = Estimate(3.2, 2.9, 4.0, 10), Achieved(None, None)
    ingredients = (("jitter of the data", "jitter on the ACKs only"), ("reordering, by a clamp", "order clamped: the mean delay rises"))
    sheet = bars.damage([Damage(name, how, gain, gain, None, unseen) for name, how in ingredients], "What takes the goodput", page=style.PAGE)
    style.lay_out(sheet)
    sheet.dpi = style.DPI
    renderer = FigureCanvasAgg(sheet).get_renderer()
    assert sheet.axes[0].yaxis.get_tightbbox(renderer).x0 >= 0


def test_damage_is_drawn():
    found = [
        Damage("reordering", "delay correlated in time: order kept", Estimate(20, 18, 22, 9), Estimate(6.5, 5.1, 8.2, 9), None, Achieved(None, None)),
        Damage("loss", "no random loss", Estimate(3, 2, 4, 9), Estimate(1.02, 0.9, math.inf, 9), None, Achieved(None, None)),
    ]
    for page in (None, style.PAGE, style.NARROW):
        sheet = bars.damage(found, "What does the damage at RTT 50ms, jitter 12ms", page=page)
        assert mind(sheet) == ([], [])
        assert {"6.5 [5.1, 8.2]", "1.02 [0.90, ∞]"} <= {t for t, _ in texts(sheet)}
        whiskers = [bar[0].get_extents(sheet.axes[0].transData).x1 for c in sheet.axes[0].containers[1::2] for bar in [c[2][0].get_paths()]]
        assert max(whiskers) < min(box.x0 for text, box in texts(sheet) if "[" in text)


def test_figures_show_the_outcomes_own_numbers_caveats_and_names(outcomes):
    some = outcomes["jitter"]
    ax = plots.find("retention").draw(some, Context()).axes[0]
    line = next(one for one in ax.lines if one.get_label() == "bbr")
    assert list(line.get_ydata()) == [100 * some.retention(c, "jitter").value for c in some.curve("jitter", "bbr")]
    assert ax.get_xlabel().endswith(", ms")
    sheet = plots.find("bars").draw(outcomes["one"], Context())
    said = " ".join(t for t, _ in texts(sheet))
    assert "mock engine: the numbers mean nothing" in said
    assert re.search(r"\d\.\d+ \[\d+\.\d+, \d+\.\d+\]", said)
    assert not plots.find("bars").draw(outcomes["loss"], Context()).legends
    assert len(plots.find("profiles").draw(outcomes["names"], Context()).legends[0].get_texts()) == 2


def test_published_numbers_stand_beside():
    result = study_runs.run(study.get("loss-tolerance").only(["loss"]).changed({"engines": ["mock"], "seeds": 2}))
    ax = plots.find("curve").draw(result.outcome(), Context("", result.known)).axes[0]
    line = next(one for one in ax.lines if one.get_label() == "bbr, published")
    mine = [k for k in result.known if (k.part, k.cca, k.metric, k.stat, k.valid) == ("loss", "bbr", "goodput", "mean", True)]
    known, raw = ({k.at["loss"]: k.value for k in mine if k.kind == kind} for kind in ("published", "raw"))
    assert len(known) >= 6
    assert sorted(line.get_ydata()) == pytest.approx(sorted((known | raw).values()))


def test_the_same_figure_has_the_same_bytes(outcomes, tmp_path):
    one, two = (style.save(plots.find("curve").draw(outcomes["jitter"], Context()), tmp_path / n, style.FORMATS) for n in ("one", "two"))
    assert [f.suffix for f in one] == [".png", ".svg", ".pdf"]
    assert [f.read_bytes() for f in one] == [f.read_bytes() for f in two]


def test_a_link_that_the_user_names_stays_one(outcomes, tmp_path):
    drawn = plots.find("curve").draw(outcomes["jitter"], Context())
    (tmp_path / "link.png").symlink_to(tmp_path / "there.png")
    style.save(drawn, tmp_path / "link.png", ("png",), named=True)
    assert (tmp_path / "link.png").is_symlink()
    style.save(drawn, tmp_path / "link.png", ("png",))
    assert not (tmp_path / "link.png").is_symlink()
    assert imread(tmp_path / "there.png").shape == imread(tmp_path / "link.png").shape


def test_inline_figures_take_the_pages_ink(outcomes):
    text = style.inline(style.svg(plots.find("curve").draw(outcomes["jitter"], Context())), "fig", 'a <b> "c"')
    assert 'aria-label="a &lt;b&gt; &quot;c&quot;"' in text
    assert text.startswith("<svg")
    assert style.INK not in text
    assert "currentColor" in text
    assert all(i.startswith("fig-") for i in re.findall(r'\bid="([^"]+)"', text))
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', text)) <= set(re.findall(r'\bid="([^"]+)"', text))


def test_png_and_pdf_have_a_ground_of_their_own(outcomes, tmp_path):
    """Dark text on white, whatever page shows them; the SVG stays transparent, and the figure as it was."""
    drawn = plots.find("bars").draw(outcomes["one"], Context())
    before = style.svg(drawn)
    png, pdf, svg = style.save(drawn, tmp_path / "one", ("png", "pdf", "svg"))
    pixels = imread(png)
    assert pixels.shape[2] == 3 or float(pixels[:, :, 3].min()) == 1
    assert [float(x) for x in pixels[0, 0, :3]] == [1, 1, 1]
    assert float(pixels[:, :, :3].sum(axis=2).min()) / 3 < 0.3  # the ink of the text: #404040
    assert contrast(style.DARK, "#ffffff") >= 7
    assert svg.read_text("utf-8") == before
    assert style.INK in before
    assert re.search(r'<g id="patch_1">\s*<path [^>]*style="[^"]*opacity: 0', before)
    assert pdf.stat().st_size
    greys = {to_hex(text.get_color()) for text in drawn.findobj(Text) if text.get_text()}
    assert style.INK in greys
    assert style.DARK not in greys
    drawn = plots.find("curve").draw(outcomes["jitter-rtt"], Context())
    style.lay_out(drawn)
    with style.on_paper(drawn):
        colours = {to_hex(text.get_color()) for text in drawn.findobj(Text) if text.get_text()}
    assert colours == {style.DARK}


MACHADO = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
}
"""Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB."""
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
LEAST_APART = 25.0
"""CIELAB distance (CIE 1976) of any two hues; 2.3 is just noticeable (Mahy 1994), 12 is told apart at a glance."""


def linear(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    v = XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(v > 0.008856, np.cbrt(v), 7.787 * v + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a, b):
    high, low = sorted((float((XYZ @ linear(c))[1]) for c in (a, b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("eyes", MACHADO)
def test_hues_can_be_told_apart(eyes):
    seen = {hue: lab(MACHADO[eyes] @ linear(hue)) for hue in palette.HUES}
    near = min((float(np.linalg.norm(seen[a] - seen[b])), a, b) for a, b in itertools.combinations(palette.HUES, 2))
    assert near[0] >= LEAST_APART, near


@pytest.mark.parametrize("colour", [*palette.HUES, style.INK])
def test_contrast_on_white_and_on_the_dark_page(colour):
    assert min(contrast(colour, "#ffffff"), contrast(colour, "#14171a")) >= 3


def test_twenty_controls_have_looks_that_differ():
    """Any two differ in hue, told apart by every kind of eyes (above), or else in both marker and dash."""
    looks = palette.looks(palette.KNOWN)
    assert len(looks) == len(palette.KNOWN) == 20
    for a, b in itertools.combinations(looks.values(), 2):
        assert a.colour != b.colour or (a.marker != b.marker and a.dash != b.dash), (a, b)


def test_no_two_controls_of_a_chart_share_a_hue_while_one_is_free():
    """hybla's own hue is cubic's: beside it, it takes another, which no other look has; the first of a hue keeps it."""
    assert palette.looks(["hybla"])["hybla"].colour == palette.ORANGE
    for count in range(2, 7):
        for names in itertools.combinations(palette.KNOWN, count) if count < 4 else [palette.KNOWN[-count:], palette.KNOWN[::3][:count]]:
            looks = palette.looks(names)
            assert len({look.colour for look in looks.values()}) == count, names
            assert looks[names[0]] == palette.LOOKS[palette.KNOWN.index(names[0])]
    for names in (palette.KNOWN[5:], palette.KNOWN[::2], palette.KNOWN[2:15]):
        assert len(set(palette.looks(names).values())) == len(names)


def test_areas_of_several_controls_have_hues_of_their_own(need_model):
    """cubic's and htcp's own hue is the same; a stack of areas has neither markers nor dashes."""
    scenario = SAMPLED["flows"]["scenario"] | {"flows": [{"cca": "cubic"}, {"cca": "htcp"}]}
    some = execute.run(Campaign.of({"name": "two", "scenario": scenario, "samples": "100ms", "seeds": 1}))
    areas = plots.draw(some, "shares").axes[0].collections
    assert len({to_hex(area.get_facecolor()[0]) for area in areas}) == 2


def test_a_control_keeps_its_look_everywhere(outcomes, sampled):
    """Beside other controls, in a mixture, on each page the same look; on another engine the same colour with another marker and dash."""
    for some in (*outcomes.values(), *sampled.values()):
        for entry in plots.base.entries(some):
            if entry.cca in palette.KNOWN[: len(palette.HUES)] and entry.engine == some.cells[0].engine:
                fixed = palette.LOOKS[palette.KNOWN.index(entry.cca)]
                assert (entry.look.colour, entry.look.marker) == (fixed.colour, fixed.marker)
    first, second = plots.base.entries(outcomes["engines"])
    assert first.look.colour == second.look.colour
    assert (first.look.marker, first.look.dash) != (second.look.marker, second.look.dash)
    assert first.look.marker != second.look.marker
    looks = plots.base.looks(sampled["flows"])
    assert [looks[cca] for cca in ("cubic", "bbr")] == list(palette.LOOKS[:2])
    many = outcomes["many"]
    parts = [plots.base.looks(replace(many, cells=tuple(c for c in many.cells if c.cca == cca))) for cca in many.ccas]
    assert len({part["cubic:hystart=0"] for part in parts}) == 1


def test_every_congestion_control_has_a_look_of_its_own(need_model):
    from tcpscape import engines

    names = sorted(engines.make("model").ccas())
    looks = palette.looks(names)
    assert len({(v.colour, v.marker) for v in looks.values()}) == len({(v.colour, v.dash) for v in looks.values()}) == len(names)
    assert set(names) <= set(palette.KNOWN)
    assert palette.looks(["bbr", "mine"])["bbr"] == palette.looks(names)["bbr"]
    assert len(set(palette.looks(["cubic", "cubic:hystart=0", "mine", "bbr+cubic"]).values())) == 4


def test_long_names_stay_in_the_figure(outcomes):
    """A control of a user's own is named by its file and class."""
    name = "some/where/congestion_controls_of_mine.py:AControlWithARatherLongNameOfItsOwn"
    for campaign, figure in (("loss", "bars"), ("runs", "strip"), ("runs", "curve"), ("names", "profiles")):
        cells = tuple(replace(c, cca=name if c.cca == "bbr" else c.cca) for c in outcomes[campaign].cells)
        for width in (style.PAGE, style.NARROW):
            drawn = plots.find(figure).draw(replace(outcomes[campaign], cells=cells), Context("A title", width=width))
            assert mind(drawn) == ([], []), (figure, width)
    assert (style.short("abcdefghijklmnop", 9), style.short("cubic", 9)) == ("abcde…nop", "cubic")


def test_dollars_are_no_formula(outcomes):
    """Matplotlib reads `$…$` as mathematics, and refuses what is wrong in it."""
    name = "mine$\\frac$"
    cells = tuple(replace(c, cca=name if c.cca == "bbr" else c.cca) for c in outcomes["loss"].cells)
    for figure in ("bars", "curve"):
        drawn = plots.find(figure).draw(replace(outcomes["loss"], cells=cells), Context("costs $5, not $\\6"))
        assert "costs $5, not $\\6" in style.svg(drawn)
        assert name in style.svg(drawn)


def test_ticks_that_would_touch_are_left_out():
    sheet, (ax,) = style.panels(1)
    style.ticks(ax, [0, *np.linspace(1, 30, 60)])
    out, touching = mind(sheet)
    assert not out
    assert not touching
    assert math.isclose(ax.get_xticks()[0], 0)


def test_a_split_shows_the_share_of_equal_flows_unless_their_application_limits_them():
    path = {"forward": "netem delay 25ms", "reverse": "netem delay 25ms"}
    split = plots.draw(tcpscape.run(path, mix="cubic*2,bbr", engine="mock", seeds=3), "split")
    (ax,) = [ax for ax in split.axes if ax.get_visible()]
    hollow = {round(float(line.get_xdata()[0]), 3) for line in ax.lines if line.get_label() == "if every flow had the same"}
    assert hollow == {0.667, 0.333}
    assert "cubic×2" in ax.get_legend_handles_labels()[1]
    drawn = plots.draw(tcpscape.run(path, cca=["cubic", "bbr", "reno"], engine="mock", seeds=3), "bars")
    assert drawn.axes[0].get_xlabel() == "mean goodput, Mbit/s"

    call = {"reverse": {"delay": "40ms"}, "flows": [{"cca": "cubic"}, {"cca": "reno", "app": {"rate": "1mbit"}}], "bottleneck": {"rate": "20mbit"}}
    drawn = plots.draw(tcpscape.run(call, engine="mock", seeds=3), "split")
    (ax,) = [ax for ax in drawn.axes if ax.get_visible()]
    assert "if every flow had the same" not in ax.get_legend_handles_labels()[1]
