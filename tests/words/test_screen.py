"""Screens: the answer first, a table that fits its width, the columns that are left out in their order."""

import re
import shlex
import subprocess
from typing import get_args

import pytest

import tcpscape
from tcpscape.campaign.outcome import SMOOTHED
from tcpscape.controls.deployment import deployment
from tcpscape.controls.routers import USUAL
from tcpscape.errors import printable
from tcpscape.findings.calls import REMEDIES
from tcpscape.findings.steps import Step
from tcpscape.names import wrapped
from tcpscape.scenario import bottleneck, files
from tcpscape.stats import Caveat, Estimate, Weakness
from tcpscape.text.screen import Code, Screen
from tcpscape.text.table import Table
from tcpscape.words import campaign as answer
from tcpscape.words import explorer, paths, sentences, steps

WIDTHS = (60, 80, 100, 150)
COLUMNS = ("cca", "goodput Mbit/s, mean [95 %]", "CV", "retransmits", "limited by")
ROWS = [
    ("cubic:hystart=off", "12.3 [11.8, 12.9]", "12 %", "123", "pacing 63 %, rwnd 24 %, cwnd 12 %"),
    ("bbr", "1.00 [0.90, 1.10]", "3 %", "7", "cwnd 97 %"),
]
TABLE = Table(COLUMNS, ROWS, drop=("CV", "retransmits"), words=("limited by",))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_fits_and_no_name_is_cut(width):
    text = TABLE.text(width)
    assert max(map(len, text.splitlines())) <= width
    assert "cubic:hystart=off" in text
    assert "12.3 [11.8, 12.9]" in text


def test_columns_are_left_out_in_their_order():
    # name 17, goodput 17, CV 4, retransmits 11, words at least 16, two spaces between two: 73 with all, 67 without CV, 54 without both
    assert [len(TABLE.left_out(width)) for width in (73, 72, 67, 66, 54, 20)] == [0, 1, 1, 2, 2, 2]
    assert (TABLE.left_out(70), TABLE.left_out(60)) == (("CV",), ("CV", "retransmits"))
    assert list(TABLE.fitted(60).columns) == ["cca", "goodput Mbit/s, mean [95 %]", "limited by"]


def test_the_answer_is_the_second_line_and_quiet_is_the_answer_alone():
    screen = Screen("a path", "the answer.", tables=(TABLE,), details=("a detail",), caveats=[f"c{i}" for i in range(9)], next=("run",))
    lines = screen.text(80).splitlines()
    assert (lines[:2], lines[-1]) == (["a path", "→ the answer."], "Next: run")
    assert "6 more caveats: --verbose" in lines
    assert "a detail" not in lines
    assert screen.text(80, quiet=True) == "→ the answer."
    assert {"a detail", "caveat: c8"} <= set(screen.text(80, verbose=True).splitlines())


def test_markup_in_names_is_printed_as_it_is():
    assert "[/bold]" in Screen("[/bold]", "[red]x", tables=(Table(("a",), [("[/bold]",)]),)).text()


def test_an_end_above_the_link_is_at_most_the_link():
    estimate = Estimate(9.5, 9.1, 10.4, 5, "Mbit/s")
    assert (estimate.text(), estimate.text(most=10.0)) == ("9.50 [9.10, 10.4]", "9.50 [9.10, ≤ link]")
    assert Estimate(9.5, 9.1, float("inf"), 5).text(most=10.0) == "9.50 [9.10, ≤ link]"
    assert estimate.text(most=11.0) == "9.50 [9.10, 10.4]"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lossy-dsl", "RTT 40ms, loss 0.5% of the data, bottleneck 10mbit with a FIFO of 100kB (2 BDP), 1 flow, kernel 6.1, 20s"),
        ("shared-bottleneck", "RTT 40ms, bottleneck 20mbit with a FIFO of 100kB (1 BDP), 3 flows (cubic×2, bbr×1 from 5s), kernel 6.1, 20s"),
    ],
)
def test_a_path_in_words(name, text):
    assert paths.in_words(files.load(name)) == text


def test_a_path_in_tc_words():
    scenario = tcpscape.Scenario.of(
        {"forward": "netem delay 25ms 8ms distribution normal loss 0.1%", "reverse": "netem delay 25ms 8ms distribution normal"}
    )
    assert paths.in_words(scenario).startswith("RTT 50ms, jitter 8ms normal each way, loss 0.1% of the data, netem at the sender (it")
    routed = tcpscape.Scenario.of({"forward": {"at": "router", "delay": "25ms", "loss": "0.1%"}, "reverse": {"delay": "25ms"}})
    assert paths.in_words(routed).startswith("RTT 50ms, loss 0.1% of the data, no bottleneck")
    assert bottleneck.link_mbps(scenario) is None
    queued = tcpscape.Scenario.of({"bottleneck": "tbf rate 20mbit burst 6056 limit 200000; fq_codel limit 132", "reverse": "netem delay 40ms"})
    assert "bottleneck 20mbit with fq_codel" in paths.in_words(queued)
    assert bottleneck.link_mbps(queued) == 20


def outcome(**options):
    path = {"forward": "netem delay 25ms", "reverse": "netem delay 25ms", "bottleneck": "tbf rate 10mbit burst 6056 limit 62500"}
    return tcpscape.run(path, engine="mock", **options)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_screen_of_a_run_fits(width):
    screen = answer.run_screen(outcome(cca=["cubic", "bbr"], seeds=5))
    text = screen.text(width)
    assert max(len(line) for line in text.splitlines() if not line.startswith("Next: ")) <= width
    assert text.splitlines()[0].startswith("RTT 50ms")
    assert "→ " in text
    assert [line for line in text.splitlines() if line.startswith("cubic ")]


def test_the_answer_names_both_and_the_interval():
    text = sentences.run_answer(outcome(cca=["cubic", "bbr"], seeds=5))
    assert text.startswith("bbr and cubic carry nearly the same, ")
    assert "; bbr adds" in text
    lossy = {"forward": "netem delay 25ms loss 1%", "reverse": "netem delay 25ms"}
    assert re.match(r"bbr carries [\d.]+ × cubic \[", sentences.run_answer(tcpscape.run(lossy, cca="cubic,bbr", engine="mock", seeds=5)))
    assert "of the link" in sentences.run_answer(outcome(seeds=5))


def test_a_mixture_says_shares_and_fairness():
    text = sentences.run_answer(outcome(mix="cubic*2,bbr", seeds=5))
    assert "Jain's index" in text
    assert "cubic×2 67 %" in text  # the mock gives each flow a third
    assert text.startswith("The flows share evenly: ")
    lossy = {"forward": "netem delay 25ms loss 1%", "reverse": "netem delay 25ms"}
    alone = sentences.run_answer(tcpscape.run(lossy, mix="cubic*2,bbr", engine="mock", seeds=3))
    assert alone.startswith("bbr gets 2.1 × its equal share: bbr 70 %")  # 0.70 of three flows: 2.1 thirds


def test_a_sweep_says_where_which_is_the_best():
    sweep = tcpscape.sweep(rtt="50ms", loss="0,1%", cca=["cubic", "bbr"], engine="mock", seeds=5)
    text = sentences.sweep_answer(sweep)
    assert "bbr carries most at" in text
    assert "at loss 1%" in text
    alone = tcpscape.sweep(rtt="50ms", loss="0,1%", cca="cubic", engine="mock", seeds=5)
    assert sentences.sweep_answer(alone).startswith("The median goodput goes from")
    same = tcpscape.sweep(rtt="50ms", loss="0,1%", cca="cubic", metric="rtt_min", engine="mock", seeds=5)
    assert sentences.sweep_answer(same) == "The median rtt_min is 50.0 ms in all 2 cells."
    assert sentences.sweep_answer(tcpscape.sweep(rtt="50ms", metric="rtt_min", engine="mock", seeds=1)) == "The median rtt_min of cubic is 50.0 ms."


def test_added_rtt_is_of_the_path():
    trial = outcome(seeds=1).trials[0]
    assert trial.path_rtt_ms == 50
    assert tcpscape.metrics.find("added_rtt").of(trial) == pytest.approx(5)  # the mock's 95th percentile is 1.1 of the RTT


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"where": "bottleneck", "at": "5s", "set": {"rate": "20mbit"}}, "bottleneck rate 20mbit from 5s on"),
        ({"every": "5s", "hold": "300ms", "set": {"outage": True}}, "forward outage for 300ms every 5s"),
        ({"where": "reverse", "ramp": ["2s", "4s"], "start": {"delay": "10ms"}, "end": {"delay": "40ms"}}, "reverse ramp from 2s to 4s"),
    ],
)
def test_changes_in_words(change, text):
    path = {"forward": "netem delay 5ms", "reverse": "netem delay 25ms", "bottleneck": "tbf rate 60mbit burst 6056 limit 62500", "changes": [change]}
    assert text in paths.in_words(tcpscape.Scenario.of(path))


def test_a_name_as_long_as_tc_words_folds_and_loses_nothing():
    words = "tbf rate 10mbit burst 6056 limit 62500; fq_codel limit 132"
    table = Table(("bottleneck", "cca", "goodput"), [(words, "cubic", "9.55 [9.54, 9.56]")], left=2)
    text = table.text(60)
    assert max(map(len, text.splitlines())) <= 60
    assert all(word in text for word in [*words.split(), "cubic", "9.55 [9.54, 9.56]"])


def test_a_long_table_is_cut_unless_all_is_asked_for():
    screen = Screen("a path", "the answer.", tables=(Table(("cca",), [(f"c{i}",) for i in range(100)]),))
    lines = screen.text(80).splitlines()
    assert "c39" in lines
    assert "c40" not in lines
    assert "… 60 more rows: --verbose" in lines
    assert "c99" in screen.text(80, verbose=True).splitlines()


def test_points_that_are_alike_are_no_wins_and_the_delay_decides():
    path = {"rtt": "40ms", "rate": "20mbit", "engine": "mock", "seeds": 10}
    alike = tcpscape.sweep(buffer="100kB,500kB", cca=["cubic", "cubic:hystart=off"], **path)
    text = sentences.sweep_answer(alike)
    assert "within 5 % in goodput at" in text
    assert "added RTT" in text
    mixed = tcpscape.sweep(buffer="100kB,500kB", mix="cubic*2,bbr", **path)
    assert sentences.sweep_answer(mixed).startswith("The flows share evenly at every point (Jain's index 1.0")
    assert "Added RTT (95th percentile): bbr 4.0 to 4.0 ms, cubic 4.0 to 4.0 ms." in sentences.sweep_answer(mixed)
    lossy = tcpscape.sweep(loss="0,1%", mix="cubic*2,bbr", rtt="40ms", engine="mock", seeds=5)
    assert "least at loss 1% (0.62 [" in sentences.sweep_answer(lossy)
    assert "there bbr gets 2.1 × its equal share" in sentences.sweep_answer(lossy)
    assert (sentences.subject(alike), sentences.subject(mixed)) == ("added_rtt", "goodput")
    columns = mixed.table().columns
    assert {"added RTT p95 ms, bbr", "added RTT p95 ms, cubic", "share of bbr", "share of cubic", "Jain"} <= set(columns)
    assert "goodput Mbit/s" in tcpscape.sweep(buffer="100kB,500kB", cca="cubic", metric="added_rtt", **path).table().columns
    assert mixed.table().rows[0][list(columns).index("share of cubic")].value == pytest.approx(2 / 3, abs=0.01)


def test_the_rate_is_said_where_only_the_queue_varies():
    text = answer.sweep_screen(tcpscape.sweep(rtt="40ms", rate="20mbit", queue="fifo,fq_codel", engine="mock", seeds=3)).path
    assert text.startswith("queue fifo, fq_codel, RTT 40ms, bottleneck 20mbit, 1 flow")


def test_a_fifo_that_is_named_is_the_default_one():
    named, default = (
        tcpscape.Scenario.of({"reverse": {"delay": "40ms"}, "bottleneck": {"rate": "20mbit", **queue}}) for queue in ({"queue": "fifo"}, {})
    )
    assert named.bottleneck[0].words(named.rtt_ns) == default.bottleneck[0].words(default.rtt_ns)


def test_headings_count_for_the_width_and_no_digit_is_cut():
    columns = ("queue", "cca", "goodput Mbit/s: median [95 %]", "added RTT p95 ms", "share of bbr", "share of cubic", "Jain", "CV", "n")
    rows = [("bfifo limit 50000", "bbr+cubic", "19.4 [19.4, 19.4]", "43.8", "0.747", "0.253", "0.561", "0 %", "5")]
    table = Table(columns, rows, left=2, drop=("n", "CV"))
    for width in range(60, 110):
        text = table.text(width)
        assert "0.561" in text.split(), width
        assert max(map(len, text.splitlines())) <= width


def test_verbose_shows_the_columns_that_are_left_out_below_the_table():
    lines = Screen("a path", "the answer.", tables=(TABLE,)).text(60, verbose=True).splitlines()
    assert [line for line in lines if line.startswith("cubic:hystart=off")][1].split() == ["cubic:hystart=off", "12", "%", "123"]
    assert not [line for line in lines if "left out" in line]


def test_what_is_copied_is_one_line():
    screen = Screen("a path", "word " * 40 + ".", next=("tcpscape run " + "word " * 40,))
    assert len(screen.text(60, quiet=True).splitlines()) == 1
    assert screen.text(60).splitlines()[-1].startswith("Next: tcpscape run word")
    assert screen.text(60).splitlines()[-1].count("word") == 40


def test_settings_of_the_kernel_are_said_and_may_be_written_as_sysctls():
    kernel = "6.1,net.core.rmem_max=4MiB,net.ipv4.tcp_wmem=4096 16384 262144"
    scenario = tcpscape.Scenario.of({"forward": "netem delay 25ms", "kernel": kernel})
    assert (scenario.kernel.rmem_max, scenario.kernel.tcp_wmem_default, scenario.kernel.tcp_wmem_max) == (4 << 20, 16384, 262144)
    assert "kernel 6.1 (rmem_max=4MiB, tcp_wmem_default=16KiB, tcp_wmem_max=256KiB)" in paths.in_words(scenario)
    with pytest.raises(tcpscape.TcpscapeError, match="three sizes"):
        tcpscape.Scenario.of({"kernel": "6.1,net.ipv4.tcp_wmem=4096"})


def test_a_change_of_the_path_is_answered_with_the_rtt_before_and_after(need_model):
    path = {"bottleneck": {"rate": "20mbit", "buffer": "1bdp"}, "reverse": {"delay": "20ms"}, "duration": "6s"}
    path["changes"] = [{"where": "bottleneck", "at": "3s", "set": {"rate": "5mbit"}}]
    drop = tcpscape.run(path, cca="cubic", seeds=2)
    (remark,) = answer.run_screen(drop).remarks
    before, after, highest = (
        float(x)
        for x in re.fullmatch(r"Smoothed RTT before and after the change at 3s: cubic (\S+) and (\S+) ms, at most (\S+) ms.", remark).groups()
    )
    assert 20 < before < 42  # a buffer of one BDP doubles the 20 ms at most
    assert before < after <= highest <= 20 + 4 * 20 + 5  # the same bytes take four times as long: 80 ms beside the path's 20, and a burst
    assert not answer.run_screen(tcpscape.run({**path, "changes": []}, cca="cubic", seeds=2)).remarks


def test_every_step_has_its_words():
    assert {*steps.TEXTS} == {*get_args(Step)}
    said = []
    tell = steps.told(said.append)
    for step in (("controls", ""), ("choice", "bbr"), ("cliff", "cubic")):
        tell(*step)
    assert said == ["comparing congestion controls", "bbr so far", "bbr so far; cliff of cubic"]


def test_intervals_go_before_columns():
    table = Table(
        ("cca", "mean of A", "mean of B", "ratio"),
        [("cubic", *(Estimate(value, low, high, 9).cell() for value, low, high in ((19, 18, 20), (10, 9, 11), (1.9, 1.7, 2.1))))],
        brief=("mean of B", "mean of A"),
    )
    wide, narrower, narrow = (table.text(width).splitlines()[-1] for width in (70, 52, 44))
    assert (wide.count("["), narrower.count("["), narrow.count("[")) == (3, 2, 1)
    assert "10.0" in narrow.split()


def test_even_on_average_is_not_even_in_each_run():
    import dataclasses

    mixed = outcome(mix="cubic,bbr", seeds=6)
    (cell,) = mixed.cells
    rates = {t.seed: (1.0, 5.0) if t.seed % 2 else (5.0, 1.0) for t in cell.trials}
    trials = [
        dataclasses.replace(t, flows=tuple(dataclasses.replace(f, goodput_mbps=rate) for f, rate in zip(t.flows, rates[t.seed], strict=True)))
        for t in cell.trials
    ]
    swinging = dataclasses.replace(mixed, cells=(dataclasses.replace(cell, runs=(tuple(trials),)),))
    assert sentences.run_answer(swinging).startswith("The flows share evenly on average, though not surely: ")


def test_smoothed_rtts_are_a_caveat_of_the_metric_that_is_shown():
    import dataclasses

    def of(metric, engine):
        sweep = tcpscape.sweep(rtt="50ms", loss="0,1%", cca="cubic", engine="mock", seeds=3, metric=metric)
        return answer.sweep_screen(dataclasses.replace(sweep, cells=tuple(dataclasses.replace(cell, engine=engine) for cell in sweep.cells)))

    assert SMOOTHED in of("added_rtt", "virtual").caveats
    assert SMOOTHED in of("rtt_p95", "virtual").caveats
    assert SMOOTHED not in of("added_rtt", "model").caveats


# What the explorer says of a check on a kernel.


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ({"cubic": None}, "so far"),
        ({"cubic": Estimate(0.8, float("nan"), float("nan"), 1)}, "one run of each has no interval"),
        ({"cubic": Estimate(0.837, 0.648, 1.08, 3)}, "3 runs of each show no difference, and leave one open: under cubic"),
        ({"cubic": Estimate(1.0, 1.0, 1.0, 3), "bbr": Estimate(0.8, 0.7, 0.9, 3)}, "differ: the kernel carries 0.80 [0.70, 0.90] × under bbr"),
        ({"cubic": Estimate(1.01, 1.005, 1.02, 3)}, "agree within 5 %"),
    ],
)
def test_a_check_tells_a_difference_that_the_interval_shows_and_no_other(ratios: dict[str, Estimate | None], said: str) -> None:
    assert said in explorer.check(ratios, "virtual", 3)


# Commands that a screen prints to be copied: at any width a shell reads the words that were meant.


LINES = (
    *(line for remedy in REMEDIES for line in USUAL.shaped(remedy.name, 4_750_000, 19_000_000).lines()),
    *deployment("bbr").lines(),
    *deployment("cubic:hystart=0,fast_convergence=0").lines(),
    deployment("bbr").command,
    "tcpscape run --name 'a b  c' --forward \"netem delay 25ms 8ms distribution paretonormal loss 0.1%\" --cca cubic,bbr --out 'it'\\''s'",
    "echo a\\ b'c d'e > /dev/null   # a comment that is longer than a narrow screen, with 'a quote",
)
SHELL_WIDTHS = (40, 60, 80)


def words(text: str) -> list[str]:
    """The words of shell, as a parser has them: comments left out, lines joined at backslashes."""
    return shlex.split(text.replace("\\\n", ""), comments=True)


@pytest.mark.parametrize("width", SHELL_WIDTHS)
@pytest.mark.parametrize("line", LINES)
def test_a_copied_line_has_the_same_words(line, width):
    parts = wrapped(line, width)
    assert words("\n".join(parts)) == words(line)
    joined = "\n".join(parts).replace("'\\\n'", "")  # quotes that are closed and opened again
    assert re.sub(r"[\s\\#]", "", joined) == re.sub(r"[\s\\#]", "", line), "comments too"
    assert all(len(part) <= width or len(words(part.removesuffix("\\"))) <= 1 for part in parts)
    if len(line) <= width:
        assert parts == [line]


@pytest.mark.parametrize("width", SHELL_WIDTHS)
def test_what_a_screen_shows_is_what_a_shell_reads(width):
    """The commands as pasted from the screen, after `set --`, which makes words of them and runs nothing."""
    lines = [line for line in LINES if not re.search(r">|&&|^#|\$\(", line)]
    shown = Screen("a path", "An answer.", tables=(Code(lines),)).text(width).split("\n\n", 1)[1]
    subprocess.run(["bash", "-n"], input=shown, text=True, check=True)
    pasted = "".join(f"set -- {part}\nprintf '%s\\0' \"$@\" --\n" for part in shown.replace("\\\n", "\0").splitlines()).replace("\0", "\\\n")
    read = subprocess.run(["bash", "-c", pasted], capture_output=True, text=True, check=True).stdout.split("\0")
    assert [word for word in read[:-1] if word != "--"] == [word for line in lines for word in words(printable(line)) if word != "--"]


@pytest.mark.parametrize(
    ("caveat", "text"),
    [
        (Caveat(Weakness.FEW, 3), "3 values: the interval holds only where they are near normal"),
        (Caveat(Weakness.UNSEEN_MODE, 5, 0.451), "5 values: a mode with a share below 45 % may be unseen"),
        (Caveat(Weakness.SKEWED, 12), "skewed values: seldom runs may raise the CV beyond its interval"),
        (Caveat(Weakness.OPEN, 35, 0.9, 36), "35 values cannot bound it above; 36 can"),
        (Caveat(Weakness.OPEN, 5, 0.1, 36), "5 values cannot bound it below; 36 can"),
        (Caveat(Weakness.OPEN, 5, 0.5, 6), "5 values cannot bound it; 6 can"),
    ],
)
def test_what_weakens_an_interval_has_a_sentence(caveat, text):
    assert sentences.caveat(caveat) == text


def test_jains_index_is_at_most_1():
    """The interval of a mean, 0.90 [0.79, 1.04], passes it."""
    assert sentences._jain(Estimate(0.9, 0.79, 1.04, 3)) == "0.90 [0.79, 1.0]"
