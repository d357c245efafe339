"""What an advice says to somebody who has not read the documentation: a viewer's numbers, the assumptions, how sure it is, and lines to copy."""

import math
import re
import shlex
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest

import tcpscape
from tcpscape import stats
from tcpscape.campaign import groups
from tcpscape.campaign.groups import Viewing
from tcpscape.campaign.outcome import SMOOTHED, smoothed
from tcpscape.controls.deployment import deployment
from tcpscape.controls.documentation import Fidelity, load_fidelity
from tcpscape.engines import make
from tcpscape.findings.advice.answer import Shared
from tcpscape.interchange import measured
from tcpscape.names import with_options, wrapped
from tcpscape.scenario.options import Conditions
from tcpscape.stats import Estimate
from tcpscape.units import brief_percent, brief_size, brief_time
from tcpscape.words import advice as words
from tcpscape.words import remarks, traffic

SMALL = "6.1,host_time=0,tcp_rmem_max=4000000,tcp_wmem_max=4000000"
"""A kernel in virtual time on a machine of 512 MB, on which BBR is beyond its cliff on the satellite."""
SATELLITE = {"rtt": "60ms", "rtt_jitter": "15ms", "rtt_loss": "0.5%", "rate": "25mbit"}
pytestmark = pytest.mark.skipif(make("model").unavailable() is not None, reason="the extension module is not built")


@pytest.fixture(scope="module")
def watched():
    """Advice for a viewer at the end of a satellite whose jitter keeps the order, 20 s of video."""
    return tcpscape.advise(**SATELLITE, order="keep", player="1,2.5,5,8,16mbit", cca="cubic,bbr", seeds=5, duration="20s")


@pytest.fixture(scope="module")
def bulk():
    return tcpscape.advise(**SATELLITE, cca="cubic,bbr", seeds=5, duration="6s")


def flat(text):
    return " ".join(text.split())


# --- ping's numbers --------------------------------------------------------------------------------------------------------------------


def test_pings_loss_is_of_the_round_trip():
    """1 − √0.995 = 0.2503 % each way; all of it where one way has it all."""
    path, sentences = measured.conditions(SATELLITE)
    assert path.loss == pytest.approx(1 - math.sqrt(0.995), abs=1e-6)
    assert sentences == ("A spread of the round trip of 15ms is 10.6ms each way, independently; 0.5 % of the round trips lost are 0.25 % each way.",)
    assert measured.conditions({"rtt": "60ms", "rtt_loss": "0.5%", "loss_on": "forward"})[0].loss == 0.005


def test_the_loss_of_the_round_trip_comes_before_a_files(tmp_path):
    file = tmp_path / "ping.txt"
    file.write_text("10 packets transmitted, 9 received, 10% packet loss\nrtt min/avg/max/mdev = 9.1/10.0/12.0/0.7 ms\n")
    assert measured.conditions({"rtt_loss": "19%"}, file)[0].loss == pytest.approx(0.1)


def test_trials_of_few_round_trips_are_said_to_be_short(cli):
    path = ("advise", "--rtt", "600ms", "--rate", "20mbit", "--cca", "cubic,bbr", "--engine", "mock", "--seeds", "2")
    short, rest = "10s are 17 round trips, mostly the start of a connection", "; for longer ones: --duration 60s."
    assert f"{short}, and bbr measures no RTT anew in it (PROBE_RTT){rest}" in cli(*path).out
    assert f"{short}{rest}" in cli(*with_options(shlex.join(path), "--cca cubic,reno").split()).out
    assert "round trips" not in cli(*path, "--duration", "60s").out


def test_people_read_three_significant_digits(bulk):
    assert (brief_percent(0.002503), brief_time(10_607_000), brief_size(187_500)) == ("0.25%", "10.6ms", "188kB")
    assert (brief_time(3_600e9), brief_time(999_600_000), brief_percent(1.0)) == ("3600s", "1000ms", "100%")
    assert words.screen(bulk).path.startswith("RTT 60ms, jitter 10.6ms normal each way, loss 0.25% each way, bottleneck 25mbit with a FIFO of 188kB")


# --- what a viewer sees ----------------------------------------------------------------------------------------------------------------


def test_the_answer_begins_with_what_a_viewer_sees(watched):
    views = {cell.cca: groups.viewer(cell.trials) for cell in watched.outcome.cells}
    rate, bracket, interval = views["bbr"].bitrate.text().partition(" [")
    begin = f"Use bbr: a viewer sees {rate} Mbit/s{bracket}{interval} instead of {stats.estimate.number(views['cubic'].bitrate.value)} with cubic"
    assert words.sentence(watched).startswith(begin)
    assert "no stall in 5 × 20 s" in words.sentence(watched)
    assert words.sentence(watched).endswith(f"(QoE +{watched.decision.gain.text()}).")


def test_the_other_order_is_told_in_a_viewers_numbers(watched):
    view, text = watched.other_order.views[watched.other_order.decision.leader], flat(words.screen(watched).text())
    assert f"(--order reorder), a viewer sees with {watched.other_order.decision.leader} {view.bitrate.text().partition(' [')[0]} Mbit/s" in text
    assert words.document(watched)["order"]["viewer"][watched.other_order.decision.leader]["bitrate"]["value"] == view.bitrate.value
    assert "What a viewer sees with --order reorder, sorted by QoE" in words.screen(watched).text(verbose=True)


def estimate(value, n=4):
    return Estimate(value, value, value, n)


@pytest.mark.parametrize(
    ("stalled", "smooth", "words"),
    [
        (0.0, 1.0, "no stall in 4 × 60 s"),
        (1.5, 0.5, "stopped for 1.5 [1.5, 1.5] s"),
        (0.0, 0.75, "no stall, but 25 % of the viewers never saw a picture"),
    ],
)
def test_no_stall_claims_what_was_watched(stalled, smooth, words):
    zero = estimate(0.0)
    view = Viewing(estimate(4.44), estimate(0.73), zero, estimate(stalled), zero, estimate(4.0), estimate(smooth), 60.0)
    assert traffic.seen(view).endswith(words)
    against = traffic.seen_against(view, "cubic", Viewing(estimate(2.65), zero, zero, estimate(7.0), zero, zero, zero, 60.0))
    assert against == f"4.44 Mbit/s [4.44, 4.44] instead of 2.65 with cubic, the first picture after 0.73 s and {words} (with cubic 7.0 s)"


def test_tables_say_what_they_are_sorted_by(watched):
    seen, ranking, *_ = words.screen(watched).tables
    assert (seen.title, ranking.title) == ("What a viewer sees, sorted by QoE", "Goodput and added RTT, sorted by the QoE of a viewer")
    qoe = [row[-1].value for row in seen.rows]
    assert qoe == sorted(qoe, reverse=True)


# --- what it rests on ------------------------------------------------------------------------------------------------------------------


def test_the_direction_of_the_jitter_is_named_where_it_matters(bulk):
    """The same number as the command gives with these options, from the first half of the seeds: 2 of 5."""
    said = re.search(r"With (\S+) on the data alone \(--jitter (\S+) --jitter-on forward\), bbr carries ([\d.]+) ", flat(words.screen(bulk).text()))
    assert said
    assert said[1] == said[2] == "10.6ms"
    again = tcpscape.sweep(
        rtt="60ms", jitter="10607us", jitter_on="forward", loss="0.2503%", rate="25mbit", cca="bbr", seeds=2, duration="6s", out=None
    )
    assert float(said[3]) == pytest.approx(again.cells[0].mean().value, rel=0.03)  # as many digits as its interval bears


def test_one_control_alone_is_no_choice_and_an_interval_without_a_size_has_no_number():
    """The interval of these few runs ended at 12 Gbit/s."""
    text = flat(words.screen(tcpscape.advise(rtt="40ms", jitter="10ms", cca="cubic", seeds=5)).text())
    assert "(--order keep), cubic carries" in text
    assert "same choice" not in text
    assert "choice is the same" not in text
    assert "(--jitter 10ms --jitter-on forward), the runs of cubic differ too much to say what it carries." in text


def test_the_direction_is_not_named_where_it_changes_little():
    calm = tcpscape.advise(rtt="60ms", jitter="1ms", rate="5mbit", cca="cubic,reno", seeds=2, duration="2s")
    assert "on the data alone" not in words.screen(calm).text()


def test_the_models_own_error_is_told(bulk):
    """exp(0.0297) − 1 = 3.0 %."""
    error = next(e for e in load_fidelity().errors("controls", "bbr") if e.kind == "alone")
    text = flat(words.screen(bulk).text())
    assert "Intervals are run-to-run spread; the model's goodput of bbr was off Linux 6.1, 6.12 by " in text
    assert f"by {100 * math.expm1(error.p90):.2g} % or more in one case of ten (n {error.n})." in text
    assert "off Linux" not in words.screen(tcpscape.advise(rtt="26ms", engine="mock", seeds=2, cca="cubic,bbr")).text()
    assert Fidelity({}).kernels == ""


def test_the_column_of_cliffs_is_about_each_controls_own():
    """bbr is beyond its own cliff here and still carries the most; JSON has the names of sides as before."""
    bulk = tcpscape.advise(**(SATELLITE | {"rtt_jitter": "22ms"}), cca="cubic,bbr", seeds=5, duration="6s", kernel=SMALL)
    ranking = words.screen(bulk).tables[0]
    assert "stands" not in ranking.columns
    sides = dict(zip((row[0] for row in ranking.rows), (row[list(ranking.columns).index("its own cliff")] for row in ranking.rows), strict=True))
    assert sides["bbr"] == "beyond"
    assert any(note.startswith("cliff: the level that halves its goodput") for note in ranking.notes)
    assert any(note.startswith("bbr is beyond its own cliff") for note in ranking.notes)
    assert words.document(bulk)["ranking"][0]["stands"] == "collapsed"


def test_a_share_is_at_most_all(bulk):
    text = flat(" ".join(words.screen(replace(bulk, shared=Shared(Estimate(0.57, -0.1, 1.01, 3), Estimate(0.1, -0.1, 0.2, 3)))).remarks))
    assert "Beside a cubic flow on this path it gets 57 % [0, 100] of the goodput." in text


# --- what to type ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80])
def test_commands_can_be_copied(bulk, width):
    """Every block of commands is there however narrow the screen is, a longer line after backslashes, and a shell reads it."""
    text = words.screen(bulk).text(width, verbose=True)
    commands, command = ("\n".join(part for line in lines for part in wrapped(line, width)) for lines in (bulk.deployment.lines(), [bulk.command]))
    assert commands in text
    assert f"\n{command}\n" in text
    for block in (commands, command):
        assert subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False).stderr == ""
    assert f"```sh\n{bulk.command}\n```" in words.screen(bulk).markdown()


def test_going_back_begins_with_what_was_there():
    deploy = deployment("bbr")
    assert deploy.before == ("sysctl net.ipv4.tcp_congestion_control",)
    lines = deploy.lines()
    assert lines.index(deploy.before[0]) < lines.index(deploy.now[0])
    assert deploy.undo[0] == "sysctl -w net.ipv4.tcp_congestion_control=cubic   # or the value noted before"
    assert "Connections that are open keep their congestion control until they end" in " ".join(deploy.notes)
    assert deployment("cubic").before == ()


def test_the_command_that_shows_how_it_shares(bulk, cli):
    command = remarks.sharing(bulk)
    typed = command.partition(" (")[0]
    seeds = bulk.outcome.campaign.seeds
    assert typed == f"tcpscape sweep --rtt 60ms --jitter 10607us --loss 0.2503% --rate 25mbit --duration 6s --mix cubic,bbr --seeds {seeds}"
    assert command.endswith("(how bbr shares this path with cubic)")
    words = shlex.split(with_options(typed, "--engine mock --seeds 2 --duration 1s"))
    assert cli(*words[1:], "--quiet").status == 0
    kept = tcpscape.advise(rtt="26ms", jitter="9ms", engine="mock", seeds=2, cca="cubic,bbr")
    assert kept.choice == "cubic"
    assert remarks.sharing(kept) == ""


def test_the_sharing_command_has_the_kernel():
    path = Conditions.model_validate({"rtt": "9ms", "queue": "fq_codel", "rate": "9mbit", "kernel": "6.12,rmem_max=4MiB"})
    assert shlex.join(remarks._of_path(path)) == "--rtt 9ms --rate 9mbit --queue fq_codel --kernel 6.12,rmem_max=4MiB"


def test_the_sharing_command_has_the_duration_and_what_the_flows_are():
    path = Conditions.model_validate({"rtt": "9ms", "duration": "60s", "flow": {"app": "1MB/s", "rcvbuf": "256KiB"}})
    assert shlex.join(remarks._of_path(path)) == "--rtt 9ms --rcvbuf 256KiB --app 1MB/s --duration 60s"


# --- the page --------------------------------------------------------------------------------------------------------------------------


def test_the_page_of_a_video_shows_what_a_viewer_sees(cli, tmp_path):
    """The main figure and the first table are the viewer's; the published indicators are no part of a decider's page."""
    words = (
        "--rtt",
        "30ms",
        "--rtt-jitter",
        "3ms",
        "--rate",
        "9mbit",
        "--cca",
        "cubic,bbr",
        "--player",
        "1,2.5,5mbit",
        "--duration",
        "10s",
        "--seeds",
        "2",
    )
    assert cli("advise", *words, "--out", str(tmp_path), "--report").status == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert re.search(r'<figure id="([^"]+)" class="main">', page)[1] == "figure-viewers"
    captions = re.findall(r"<caption>([^<]+)</caption>", page)
    assert captions[:2] == ["What a viewer sees, sorted by QoE", "Goodput and added RTT, sorted by the QoE of a viewer"]
    assert "What a viewer sees with --order keep, sorted by QoE" in captions
    assert "Indicators" not in captions
    taken = "A spread of the round trip of 3ms is 2.12ms each way, independently."
    assert page.index('id="path"') < page.index(taken)
    assert page.count(taken) == 1


# --- what the engine sees --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "shown", "is_weak"),
    [
        ("virtual:6.1", ("added_rtt",), True),
        ("virtual", ("goodput", "rtt_p99"), True),
        ("virtual", ("goodput", "rtt_cv"), False),
        ("model", ("rtt_p50",), False),
    ],
)
def test_the_rtts_of_a_real_kernel_are_smoothed(engine, shown, is_weak):
    """`added_rtt` of a satellite with jitter was 5.6 ms where the model, which sees each segment, has 18.3 ms."""
    outcome = SimpleNamespace(cells=[SimpleNamespace(engine=engine)])
    assert smoothed(outcome, shown) == [SMOOTHED] * is_weak


def test_every_screen_with_added_rtt_says_so(cli, need_virtual):
    for typed in (("run", "--bottleneck", "netem delay 5ms", "--cca", "cubic"), ("sweep", "--rtt", "5ms,9ms", "--cca", "cubic")):
        result = cli(*typed, "--engine", "virtual", "--seeds", "1", "--duration", "100ms")
        assert f"caveat: {SMOOTHED}" in flat(result.out), result.err


def test_a_better_mean_that_is_not_recommended_is_explained():
    """The highest mean has so wide an interval that only the second is surely better than CUBIC: so are viewers of a satellite now and then."""
    result = tcpscape.advise(rtt="26ms", jitter="7ms", cca="cubic,bbr,reno", engine="mock", seeds=5)
    first, second, _ = (s.cca for s in result.ranking)
    result = replace(result, decision=replace(result.decision, choice=second, leader=second, verdict="better"))
    lines = words.notes(result)
    assert f"{first} has the better mean, but 5 runs do not make its lead sure: try --seeds 20." in lines
    assert not [line for line in lines if "still the best" in line]


@pytest.mark.parametrize(("rtt", "are_equal"), [("30ms", False), ("20ms", True)])
def test_equal_goodputs_are_those_whose_digits_are_equal_in_the_table(rtt, are_equal, need_model):
    screen = words.screen(tcpscape.advise(rtt=rtt, rate="20mbit", cca="cubic,reno", seeds=2, duration="10s"))
    means = {row[1].text for row in screen.tables[0].rows}
    assert (len(means) == 1) == are_equal  # otherwise the path is none for this test
    phrase = "carry the same, " if are_equal else f"carry nearly the same, {min(means)} to {max(means)} Mbit/s"
    assert phrase in screen.answer


def test_where_nothing_is_to_be_changed_there_is_nothing_to_type(need_model):
    screen = words.screen(tcpscape.advise(rtt="40ms", rate="20mbit", cca="cubic,reno", seeds=2, duration="5s"))
    assert "Nothing to change" in screen.text(80)
    assert "What to type" not in screen.text(80, verbose=True)
    changed = words.screen(tcpscape.advise(rtt="60ms", rate="20mbit", loss="1%", cca="cubic,bbr", seeds=5, duration="5s"))
    assert "What to type" in changed.text(80, verbose=True)


@pytest.mark.parametrize(("outcome", "weight"), [("same", "none"), ("undecided", "open"), ("other", "decides"), ("alike", "decides")])
def test_an_assumption_under_which_the_choice_is_open_stands_where_one_that_decides_does(bulk, outcome, weight):
    """Of the order of packets as of any other; where nothing is decided, nothing can be left open."""
    [assumption, *_] = bulk.assumptions
    better = replace(bulk.decision, verdict="better")
    one = replace(assumption, alternatives=tuple(replace(a, outcome=outcome, decision=better) for a in assumption.alternatives))
    verdict = "undecided" if outcome == "undecided" else "better"
    order = replace(bulk.other_order, changes=weight == "decides", decision=replace(better, verdict=verdict))
    advice = replace(bulk, decision=better, assumptions=(one,), other_order=order)
    begins = remarks.WEIGHTS[weight]
    behind, below = remarks.depends(advice), list(remarks.remarks(advice))
    assert len(behind) == (0 if weight == "none" else 2)
    assert [text.startswith(f"{begins}: ") for text in behind] == [True] * len(behind)
    assert sum(text.startswith("Assumed: ") for text in below) == 2 - len(behind)
    undecided = replace(advice, decision=replace(better, verdict="undecided"))
    assert len(remarks.depends(undecided)) == (2 if weight == "decides" else 0)
