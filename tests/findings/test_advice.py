"""Advice: what it recommends and why, what it assumes, what it takes from a measurement, and what to type."""

import json
import math
import random
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

import tcpscape
from conftest import TESTS, expect
from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.campaign.executors import Local
from tcpscape.controls import spelling
from tcpscape.controls.deployment import deployment, obstacle
from tcpscape.engines import make
from tcpscape.errors import TcpscapeError
from tcpscape.findings.advice import assumptions, choice, levers
from tcpscape.findings.advice.adviser import Adviser
from tcpscape.findings.advice.answer import Shared
from tcpscape.findings.advice.choice import CandidateRuns, Decision, decide
from tcpscape.interchange import measured
from tcpscape.names import with_options
from tcpscape.report.advice import deploy
from tcpscape.scenario.options import Conditions, one_way_jitter, one_way_loss
from tcpscape.words import advice as words
from tcpscape.words.remarks import fairness

MEASURED = TESTS / "data" / "interchange"
GOODPUT, DELAY, VIDEO = (choice.GOALS[name] for name in ("goodput", "delay", "video"))
PING = """PING host (192.0.2.1) 56(84) bytes of data.
64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=61.0 ms
--- host ping statistics ---
300 packets transmitted, 297 received, 1% packet loss, time 59800ms
rtt min/avg/max/mdev = 31.2/60.0/122.9/15.0 ms
"""


def runs(mean, cv=0.02, n=20, seed=1):
    generator = random.Random(seed)
    return [mean * (1 + cv * generator.gauss(0, 1)) for _ in range(n)]


def candidate(cca, mean, cv=0.02, *, seed=1, delay=None, deployable=True, n=20):
    goodputs = runs(mean, cv, n, seed)
    return CandidateRuns(cca, goodputs, goodputs if delay is None else runs(delay, 0.05, n, seed), deployable)


# --- what is recommended --------------------------------------------------------------------------------------------------------------


def test_what_the_kernel_has_not_is_never_recommended():
    best = [candidate("fixed", 30, deployable=False), candidate("bbr", 20, seed=2), candidate("cubic", 10, seed=3)]
    assert decide(best, GOODPUT, 60).choice == "bbr"
    only = decide([candidate("fixed", 30, deployable=False), candidate("bbr3", 25, deployable=False)], GOODPUT, 60)
    assert (only.choice, only.verdict) == (None, "none deployable")


@pytest.mark.parametrize("label", ["bbr3", "prague", "fixed", "mine.py:Mine", "cubic:hystartpp=1"])
def test_not_deployable(label):
    assert obstacle(label, "6.1")


@pytest.mark.parametrize("label", [*spelling.LINUX, "cubic:hystart=0"])
def test_deployable(label):
    assert obstacle(label, "6.12") == ""


def test_a_class_is_simulated_only():
    assert obstacle("mine.py:Mine:gain=2", "6.1").startswith("simulated only")


def test_the_better_one_is_compared_with_linuxs_default():
    d = decide([candidate("cubic", 10), candidate("bbr", 17.6, seed=2), candidate("reno", 12, seed=3)], GOODPUT, 60)
    assert (d.choice, d.verdict, d.leader, d.follower) == ("bbr", "better", "bbr", "cubic")
    assert d.gain.value == pytest.approx(1.76, abs=0.05)


def test_a_wide_interval_is_undecided_with_the_number_of_runs_that_would_tell():
    """1.48 [0.51, 2.53] of 8 pairs: ln 1.48 = 0.392, ln 1.48 − ln 0.51 = 1.065; 8 · (1.065 / 0.392)² = 59.1, so 52 more."""
    undecided = choice.Decision("cubic", "undecided", "bbr", "cubic", stats.Estimate(1.48, 0.51, 2.53, 8))
    assert undecided.more == 52
    cubic, bbr = candidate("cubic", 10, 0.6, seed=4, n=8), candidate("bbr", 17, 0.8, seed=7, n=8)
    assert sum(bbr.values) > sum(cubic.values)
    assert stats.ratio(bbr.values, cubic.values).low < 1
    d = decide([cubic, bbr], GOODPUT, 60)
    assert (d.choice, d.verdict, d.leader) == ("cubic", "undecided", "bbr")
    assert d.more > 0


def test_a_difference_that_is_undecided():
    """6 [−3, 15] ms of 10 pairs: 10 · (9 / 6)² = 22.5, so 13 more."""
    assert choice.Decision("a", "undecided", "a", "b", stats.Estimate(6, -3, 15, 10), 3.0).more == 13
    assert stats.runs_missing(stats.Estimate(2, -2, 6, 10), 3.0) == 30  # 10 · (4 / 2)² = 40: that it is above 0 is cheaper still
    assert stats.runs_missing(stats.Estimate(2, 1, 3, 10), 3.0) == 0


def test_more_than_a_thousand_runs_are_not_counted():
    undecided = choice.Decision("cubic", "undecided", "bbr", "cubic", stats.Estimate(1.06, 0.5, 2.2, 8))
    assert undecided.more == stats.MOST_RUNS


def test_a_difference_below_five_per_cent_is_none_and_the_default_is_only_named_where_it_is_among_them():
    d = decide([candidate("cubic", 10), candidate("bbr", 10.2, seed=2)], GOODPUT, 60)
    assert (d.choice, d.verdict) == ("cubic", "as good")
    d = decide([candidate("dctcp", 10), candidate("lp", 10.2, seed=2)], GOODPUT, 60)
    assert (d.choice, d.verdict, d.follower) == ("lp", "as good", "dctcp")


def test_for_delay_half_of_the_best_goodput_has_to_remain():
    slow, calm = candidate("lp", 4, delay=1, seed=2), candidate("vegas", 12, delay=3, seed=3)
    full = candidate("cubic", 20, delay=40, seed=4)
    d = decide([full, slow, calm], DELAY, 40)
    assert (d.choice, d.verdict, d.follower) == ("vegas", "better", "cubic")
    assert d.gain.value == pytest.approx(37, abs=2)  # ms less
    assert [c.cca for c in choice.ranked([full, slow, calm], DELAY)] == ["vegas", "cubic", "lp"]


def test_a_gain_of_half_a_millisecond_is_none():
    d = decide([candidate("cubic", 20, delay=10.5, seed=4), candidate("vegas", 20, delay=10.0, seed=4)], DELAY, 40)
    assert (d.choice, d.verdict) == ("cubic", "as good")


def test_of_equal_delays_the_goodput_decides():
    """cubic and bbr add 20 and 19 ms on a path of 60 ms, where 3 ms are worthwhile; bbr carries twice as much."""
    cubic, bbr = candidate("cubic", 10, delay=20, seed=4), candidate("bbr", 19, delay=19, seed=5)
    d = decide([cubic, bbr], DELAY, 60)
    assert (d.choice, d.verdict, d.by) == ("bbr", "better", "goodput")
    assert d.gain.value == pytest.approx(1.9, abs=0.1)
    assert decide([cubic, candidate("bbr", 10.1, delay=19, seed=5)], DELAY, 60).choice == "cubic"


def test_a_viewer_is_served_by_the_highest_qoe():
    d = decide([candidate("cubic", 9, delay=2.0, seed=4), candidate("bbr", 6, delay=4.0, seed=5)], VIDEO, 60)
    assert (d.choice, d.verdict) == ("bbr", "better")
    assert d.gain.value == pytest.approx(2, abs=0.2)


def test_runs_whose_value_is_not_known_are_left_out_of_the_pairs():
    bbr, cubic = candidate("bbr", 6, delay=4.0, seed=5), candidate("cubic", 9, delay=2.0, seed=4)
    d = decide([cubic, CandidateRuns("bbr", bbr.goodputs, [math.nan, *bbr.values[1:]])], VIDEO, 60)
    assert (d.choice, d.gain.n) == ("bbr", 19)


def test_one_run_decides_nothing():
    d = decide([candidate("cubic", 10, n=1), candidate("bbr", 20, n=1, seed=2)], GOODPUT, 60)
    assert (d.choice, d.verdict) == ("cubic", "undecided")


# --- the answer -----------------------------------------------------------------------------------------------------------------------


def advice(**options):
    return tcpscape.advise(**{"rtt": "26ms", "jitter": "7ms", "cca": "cubic,bbr", "engine": "mock", "seeds": 6, **options})


def test_only_what_cannot_be_deployed_is_no_recommendation(need_model):
    result = advice(cca="bbr3,fixed", engine="model", seeds=2, duration="1s", jitter=None, rate="5mbit")
    assert (result.choice, result.command, result.deployment) == (None, "", None)
    assert words.sentence(result) in (
        "No recommendation: Linux 6.1 has none of bbr3, fixed.",
        "No recommendation: Linux 6.1 has none of fixed, bbr3.",
    )
    assert {s.obstacle for s in result.ranking} == {"not in Linux 6.1"}
    assert "Not deployable" in words.screen(result).text()


@pytest.mark.parametrize(
    ("ccas", "sentence"), [("cubic", "there is nothing to compare it with"), ("cubic,bbr3,fixed", "is the only one that can be deployed")]
)
def test_why_there_is_no_choice(ccas, sentence, need_model):
    assert sentence in words.sentence(advice(cca=ccas, engine="model", seeds=2, duration="1s", jitter=None, rate="5mbit"))


def test_two_that_are_alike_are_both_named(need_model):
    """dctcp without ECN is Reno."""
    result = advice(cca="dctcp,reno", engine="model", seeds=2, duration="500ms", jitter=None, rtt="40ms", kernel="6.1,initcwnd=10")
    assert words.sentence(result) == "Use dctcp or reno: dctcp and reno carry the same, 203 [203, 203] Mbit/s."


@pytest.mark.parametrize("width", [60, 80, 100, 150])
@pytest.mark.parametrize("options", [{}, {"goal": "delay"}, {"jitter": None}, {"rate": "20mbit", "queue": "fq_codel", "order": "clamp"}])
def test_the_screen_fits(options, width, need_model):
    result = advice(**options)
    lines = words.screen(result).text(width).splitlines()
    assert max(len(line) for line in lines if not line.startswith("Next: ")) <= width
    assert len(words.screen(result).text(80).splitlines()) <= 21
    assert lines[0].startswith("RTT 26ms")
    assert any(line.startswith("→ ") for line in lines[1:4])
    assert words.screen(result).text(width, quiet=True).replace("\n", " ").strip() == f"→ {words.sentence(result)}"
    details = words.screen(result).text(width, verbose=True).splitlines()
    assert not [line for line in details if len(line) > width]
    assert all(stats.is_alike(d.gain) or d.gain.text() in "\n".join(details) for s in result.ranking for d in s.damage)  # no interval is cut


@pytest.mark.skipif(make("model").unavailable() is not None, reason="the extension module is not built")
def test_a_player_makes_the_goal_video():
    """A minute of video at 1 to 8 Mbit/s, 1 % of the packets lost: what a viewer sees is the second table, the best first."""
    result = advice(rtt="60ms", jitter=None, loss="1%", rate="20mbit", player="1,2.5,5,8mbit", engine="model", seeds=2, duration="20s")
    assert result.goal.name == "video"
    seen, ranking, _ = words.screen(result).tables
    assert [row[0] for row in seen.rows] == [row[0] for row in ranking.rows]
    assert seen.fitted(60).columns[-1] == "QoE Mbit/s"
    assert measured.conditions({"rtt": "60ms", "flow": {"player": "1,2mbit"}})[0].duration == 60 * 10**9


@pytest.mark.skipif(make("model").unavailable() is not None, reason="the extension module is not built")
def test_what_the_choice_gets_beside_linuxs_default():
    """Vegas adds the least delay alone; beside a flow of cubic that fills the queue it gets a tenth."""
    result = advice(rtt="30ms", jitter=None, rate="20mbit", buffer="2bdp", cca="cubic,vegas", goal="delay", engine="model", seeds=3, duration="10s")
    assert result.choice == "vegas"
    assert result.shared.share.value < 0.25
    assert f"Beside a cubic flow on this path it gets {round(100 * result.shared.share.value)} % [" in words.screen(result).text()
    assert words.document(result)["share_beside_default"]["value"] == result.shared.share.value
    assert advice(cca="cubic").shared is None


def test_video_needs_a_player(cli):
    assert cli("advise", "--rtt", "60ms", "--goal", "video", "--engine", "mock").err.startswith("error: goal: video needs a player")


def test_more_runs_are_asked_for_by_the_same_command():
    assert with_options("tcpscape advise --rtt 9ms --seeds 4 --cca 'a,b c'", "--seeds 9") == "tcpscape advise --rtt 9ms --cca 'a,b c' --seeds 9"
    assert with_options("tcpscape advise --seeds=4 --rtt 9ms", "--seeds 9") == "tcpscape advise --rtt 9ms --seeds 9"


def test_goodput_and_added_rtt_are_shown_with_intervals():
    screen = words.screen(advice()).text()
    assert "goodput Mbit/s, mean [95 %]" in screen
    assert "added RTT p95 ms [95 %]" in screen
    for standing in advice().ranking:
        assert standing.added_rtt.text() in screen


def test_the_answer_is_plain_json():
    result = words.document(advice(loss="100%"))
    json.dumps(result, allow_nan=False)
    assert (result["choice"], result["verdict"]) == (None, "nothing carried")
    said = words.document(advice())
    assert said["ranking"][0]["deployable"] is True
    assert said["ranking"][0]["added_rtt"]["value"] >= 0
    assert said["order"]["assumed"] == "reorder"
    assert {"choice", "why", "command", "trials", "caveats", "goal", "verdict", "gain", "more_runs", "deployment"} <= said.keys()


@pytest.mark.skipif(make("model").unavailable() is not None, reason="the extension module is not built")
def test_the_other_order_of_packets_is_one_line_of_the_answer():
    """A satellite: BBR carries a sixth of the link where the jitter reorders, and most of it where the order is kept."""
    options = {
        "rtt": "60ms",
        "rtt_jitter": "15ms",
        "loss": "0.5%",
        "rate": "25mbit",
        "cca": "cubic,bbr",
        "engine": "model",
        "seeds": 6,
        "duration": "6s",
    }
    reordering, keeping = advice(jitter=None, **options), advice(jitter=None, order="keep", **options)
    assert keeping.standing("bbr").goodput.value > 2 * reordering.standing("bbr").goodput.value
    assert (reordering.other_order.order, keeping.other_order.order) == ("keep", "reorder")
    # the other's result comes from half of the seeds, and at least five: its runs are the first five of the six
    assert reordering.other_order.goodputs["bbr"].value == pytest.approx(sum(keeping.outcome.cells[1].values()[:5]) / 5)
    text = " ".join(words.screen(reordering).text().split())
    assert "Assumed: jitter reorders packets, as netem does. If it keeps the order (--order keep), bbr carries " in text
    assert words.document(reordering)["order"] | {"goodput": 0} == {
        "assumed": "reorder",
        "other": "keep",
        "choice": "bbr",
        "changes": False,
        "goodput": 0,
        "viewer": {},
    }


def test_the_published_rule_is_shown_as_such_and_only_in_the_details():
    screen = words.screen(advice(jitter="4ms"))
    assert "chaos zone'" not in screen.text()
    assert "Published rule: jitter of 15 % of the RTT is 'chaos zone'; not reproduced" in " ".join(screen.text(verbose=True).split())
    assert "Published rule" not in words.screen(advice(jitter="4ms", distribution="uniform")).text(verbose=True)


# --- what to type ---------------------------------------------------------------------------------------------------------------------


def test_what_to_type_is_complete():
    deploy = deployment("bbr")
    assert deploy.now == ("modprobe tcp_bbr", "sysctl -w net.ipv4.tcp_congestion_control=bbr")
    text = "\n".join(deploy.lines())
    for part in (
        "/etc/modules-load.d/tcp_bbr.conf",
        "/etc/sysctl.d/90-tcp-congestion-control.conf",
        "ss -ti",
        "tcp_congestion_control=cubic",
        "rm /etc",
    ):
        assert part in text
    assert "Since Linux 4.13 TCP paces by itself" in " ".join(deploy.notes)
    assert deploy.command == "modprobe tcp_bbr && sysctl -w net.ipv4.tcp_congestion_control=bbr"
    assert deployment("reno").now == ("sysctl -w net.ipv4.tcp_congestion_control=reno",)
    assert "modules-load" not in "\n".join(deployment("reno").lines())


def test_linuxs_default_needs_nothing():
    assert (deployment("cubic").now, deployment("cubic").permanent) == ((), ())
    assert deployment("cubic").notes == ("Nothing to change: cubic is Linux's default.",)
    changed = deployment("cubic:hystart=0")
    assert changed.now == ("echo 0 > /sys/module/tcp_cubic/parameters/hystart",)
    assert "options tcp_cubic hystart=0" in changed.permanent[0]


# --- the path -------------------------------------------------------------------------------------------------------------------------


def test_a_spread_of_the_round_trip_is_split_between_the_directions():
    """15 / √2 = 10.607 ms each way; the whole of it where one way has it all; ± σ·√3 of a uniform distribution: 18.371 ms; by netem's tables 15 / 0.82."""
    assert one_way_jitter(15_000_000) == 10_607_000
    assert one_way_jitter(15_000_000, "forward") == 15_000_000
    assert one_way_jitter(15_000_000, "both", "uniform") == 18_371_000
    assert one_way_jitter(15_000_000, "forward", "pareto") == 18_293_000
    assert one_way_jitter(15_000_000, "forward", "paretonormal") == 17_986_000
    assert one_way_loss(0.0199, "both") == pytest.approx(0.01)
    path, sentences = measured.conditions({"rtt": "60ms", "rtt_jitter": "15ms"})
    assert path == Conditions.model_validate({"rtt": "60ms", "jitter": "10607us"})
    assert sentences == ("A spread of the round trip of 15ms is 10.6ms each way, independently.",)


def test_the_path_comes_from_ping(tmp_path):
    """1 − √(297/300) = 0.5013 % each way."""
    file = tmp_path / "ping.txt"
    file.write_text(PING)
    path, sentences = measured.conditions({"rate": "25mbit"}, file)
    assert (path.rtt, path.jitter, path.rate) == (60_000_000, 10_607_000, 25_000_000)
    assert path.loss == pytest.approx(1 - math.sqrt(297 / 300), abs=1e-5)
    assert sentences[0].startswith("From ping.txt (ping): RTT, jitter, loss; ")
    assert len(sentences) == 1  # nothing is assumed all the same
    path, sentences = measured.conditions({"jitter": "2ms"}, file)
    assert path.jitter == 2_000_000
    assert sentences[1] == "Assumed all the same: no bottleneck (--rate, --buffer, --queue)."


def test_macos_and_busybox_say_less(tmp_path):
    file = tmp_path / "ping.txt"
    file.write_text("10 packets transmitted, 10 packets received, 0.0% packet loss\nround-trip min/avg/max/stddev = 9.1/10.0/12.0/0.7 ms\n")
    assert measured.conditions({}, file)[0].jitter == 495_000
    file.write_text("10 packets transmitted, 10 packets received, 0% packet loss\nround-trip min/avg/max = 9.1/10.0/12.0 ms\n")
    path, sentences = measured.conditions({}, file)
    assert (path.rtt, path.jitter) == (10_000_000, 0)
    assert "no jitter (--rtt-jitter)" in sentences[1]
    file.write_text("hello")
    with pytest.raises(TcpscapeError, match="no summary of ping"):
        measured.conditions({}, file)


def test_the_path_comes_from_other_measurements():
    path, sentences = measured.conditions({}, next(MEASURED.glob("*.flent.gz")))
    assert path.rtt == pytest.approx(25.2e6, rel=0.01)  # 25 ms of netem and a little
    assert "pings of the idle path" in sentences[0]
    path, sentences = measured.conditions({}, MEASURED / "iperf3-up-2.json")
    assert path.rtt < 1_000_000
    assert "smallest one under load" in sentences[0]


def test_the_path_comes_from_the_gallery():
    path, sentences = measured.conditions({"loss": "2%"}, Path("starlink-baseline"))
    assert (path.rtt, path.jitter, path.distribution, path.loss) == (26_000_000, 7_000_000, "normal", 0.02)
    assert sentences[0] == "From starlink-baseline (gallery): path and flows."
    ping = measured.conditions({"rtt": "9ms"}, MEASURED / "iperf3-up-2.json")[1]
    assert ping == ("From iperf3-up-2.json (iperf3): nothing that the options do not say.",)


def test_the_path_comes_from_a_scenario_and_from_results(tmp_path, cli, need_model):
    file = tmp_path / "p.yaml"
    file.write_text(
        "forward: {at: router, delay: 20ms, jitter: 2ms, order: keep, loss: 0.2%}\nbottleneck: {rate: 20mbit, buffer: 2bdp, queue: fq_codel}\n"
        "reverse: {delay: 20ms}\nflows: [{cca: bbr, rcvbuf: 256KiB}]\n"
    )
    path, _ = measured.conditions({}, file)
    expected = {
        "rtt": "40ms",
        "jitter": "2ms",
        "jitter_on": "forward",
        "order": "correlated",
        "loss": "0.2%",
        "loss_on": "forward",
        "rate": "20mbit",
        "buffer": "2bdp",
        "queue": "fq_codel",
        "flow": {"rcvbuf": "256KiB"},
    }
    assert path == Conditions.model_validate(expected)
    assert cli("advise", "--rtt", "40ms", "--rate", "9mbit", "--engine", "mock", "--seeds", "3", "--out", str(tmp_path / "out")).status == 0
    assert measured.conditions({"duration": "10s"}, tmp_path / "out")[0] == Conditions.model_validate({"rtt": "40ms", "rate": "9mbit", "flow": {}})
    words = tmp_path / "w.yaml"
    words.write_text(
        'forward: "netem delay 20ms 2ms loss 1%"\nbottleneck: "tbf rate 9mbit burst 6056 limit 90000"\nreverse: "netem delay 20ms 2ms loss 1%"\n'
    )
    path, _ = measured.conditions({}, words)
    assert (path.jitter, path.distribution, path.jitter_on, path.buffer) == (2_000_000, "uniform", "both", "90000B")
    assert path.loss == pytest.approx(0.01)


# --- keeping and checking --------------------------------------------------------------------------------------------------------------


def test_results_are_kept_and_nothing_runs_twice(cli, tmp_path):
    words = ("advise", "--rtt", "26ms", "--jitter", "7ms", "--cca", "cubic,bbr", "--engine", "mock", "--seeds", "5", "--out", str(tmp_path), "--json")
    first = json.loads(cli(*words).out)
    assert json.loads((tmp_path / "advice.json").read_text()) == first
    before = (tmp_path / "results.sqlite").stat().st_mtime_ns
    assert json.loads(cli(*words).out) == first
    assert (tmp_path / "results.sqlite").stat().st_mtime_ns - before < 10**12
    outcome = tcpscape.load(tmp_path).outcomes[0]
    assert [cell.cca for cell in outcome.cells] == ["cubic", "bbr"]
    assert {len(cell.trials) for cell in outcome.cells} == {5}


def test_checks_decide_the_exit_status(cli):
    words = ("advise", "--rtt", "26ms", "--cca", "cubic,bbr", "--engine", "mock", "--seeds", "5", "--check")
    assert cli(*words, "goodput[cca=bbr] > 0.1").status == 0
    failed = cli(*words, "added_rtt > 1000ms")
    assert failed.status == 1
    assert "FAILS" in failed.out
    assert cli(*words, "goodput[cca=vegas] > 1").status == 2


# --- the page ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(make("model").unavailable() is not None, reason="the extension module is not built")
def test_the_page_says_it_all_in_order(cli, tmp_path):
    """On this path bbr is deployed; bbr3 is on the page, and not what to deploy."""
    words = ("--rtt", "60ms", "--jitter", "5ms", "--loss", "1%", "--rate", "20mbit", "--cca", "cubic,bbr,bbr3", "--seeds", "5", "--duration", "3s")
    result = cli("advise", *words, "--out", str(tmp_path), "--report", "--json")
    answer, page = json.loads(result.out), (tmp_path / "report.html").read_text("utf-8")
    assert answer["choice"] == "bbr"
    places = [
        page.index(part)
        for part in (
            answer["answer"],
            'id="path"',
            'id="figure-standings"',
            "modprobe tcp_bbr",
            "/etc/sysctl.d/90",
            'id="figure-damage"',
            "Where the cliff is",
            "What does the damage",
            'id="again"',
        )
    ]
    assert places == sorted(places)
    assert "(--order keep)" in page
    assert "not in Linux 6.1" in page
    assert {"standings.svg", "standings.png", "damage.svg"} <= {file.name for file in (tmp_path / "figures").iterdir()}


def test_report_makes_the_page_again_from_what_is_kept(cli, tmp_path, need_model):
    """Nothing runs: with a trial that is missing, the command is to be typed again."""
    words = (
        "advise",
        "--rtt",
        "30ms",
        "--jitter",
        "3ms",
        "--rate",
        "9mbit",
        "--seeds",
        "3",
        "--duration",
        "1s",
        "--goal",
        "delay",
        "--out",
        tmp_path,
        "--report",
    )
    assert cli(*words).status == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert cli("report", tmp_path).status == 0
    again = (tmp_path / "report.html").read_text("utf-8")
    assert page.partition('id="again"')[0] == again.partition('id="again"')[0]
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        kept = [cell for outcome in tcpscape.load(tmp_path).outcomes for cell in outcome.cells]
        addresses = [t.address for cell in kept for t in cell.trials]
        marks = ",".join("?" * len(addresses))
        database.execute(f"DELETE FROM trials WHERE address NOT IN ({marks})", addresses)
    result = cli("report", tmp_path)
    assert (result.status, result.out) == (2, "")
    assert "not every trial of the advice is kept" in result.err


def test_a_page_needs_a_place(cli):
    assert cli("advise", "--rtt", "9ms", "--engine", "mock", "--report").err.startswith("error: report: ")


# What the choice takes from others.


def test_what_the_choice_takes_from_others_is_a_number(need_model):
    """bbr on half a BDP leaves cubic less than a second cubic would: share and harm come from the same runs, and fit each other."""
    result = advice(cca="cubic,bbr", engine="model", seeds=5, duration="10s", jitter=None, rtt="40ms", rate="20mbit", buffer="0.25bdp", loss="0.02%")
    assert (result.choice, result.shared.takes_more) == ("bbr", True)
    harm = result.shared.harm
    assert harm.low < harm.value < harm.high < 1
    assert harm.value == pytest.approx(1 - (1 - result.shared.share.value) / 0.5, abs=0.15)  # the link is full either way
    shown = " ".join(words.screen(result).text(80).split())
    assert f"that one carries {round(100 * harm.value)} % [" in shown
    assert "less than beside another cubic." in shown
    assert words.document(result)["harm_to_default"]["value"] == harm.value


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        ((0.6, 0.5, 0.7), "that one carries 60 % [50, 70] less than beside another cubic."),
        ((0.02, -0.1, 0.1), "that one carries about as much as beside another cubic (-2 [-10, +10] %)."),
        ((0.1, -0.4, 0.3), "whether that one carries less than beside another cubic is open (-10 [-30, +40] %)."),
        ((-0.2, -0.3, -0.1), "that one carries 20 % [10, 30] more than beside another cubic."),
    ],
)
def test_harm_in_words(harm, text, need_model):
    result = advice(engine="mock", rate="20mbit", cca="bbr")
    shared = Shared(stats.Estimate(0.8, 0.7, 0.9, 5), stats.Estimate(*harm, 5))
    assert fairness(replace(result, shared=shared)).endswith(text)
    assert fairness(replace(result, shared=Shared(stats.Estimate(0.5, 0.4, 0.6, 5), stats.Estimate(*harm, 5)))).endswith("of the goodput.")


# Larger buffers, where the ranking blames them.


def test_the_buffer_that_holds_a_flow_is_the_first_sentence(need_model):
    """256 kB of receive buffer on 100 ms are 10 to 20 Mbit/s of 100, whatever the congestion control."""
    result = advice(cca="cubic,bbr", engine="model", seeds=5, duration="5s", jitter=None, rtt="100ms", rate="100mbit", rcvbuf="256KiB")
    lever = result.lever
    assert lever is not None
    larger = lever.setting
    assert (larger.kind, larger.buffers[0], larger.unset[0], larger.size) == ("buffers", "receive", "receive", 64 << 20)
    assert lever.limited_by.get("rwnd", 0) < 0.1
    assert (lever.verdict, lever.lead.low > 3) == ("better", True)
    assert lever.goodput.value == pytest.approx(lever.gain.value * result.standing(lever.cca).goodput.value, rel=0.05)
    said = words.sentence(result)
    assert said.startswith("Raise tcp_rmem at the receiver, without SO_RCVBUF in its program")
    assert f"× {result.choice} as it is" in said
    shown = words.screen(result).text(80, verbose=True)
    assert 'sysctl -w net.ipv4.tcp_rmem="4096 131072 67108864"' in shown
    assert "machine that receives the data" in " ".join(shown.split())
    titles = [step.title for step in deploy(result).steps]
    assert any(title.startswith("Until the next start (tcp_rmem") and title.endswith("on the receiver)") for title in titles)
    document = words.document(result)
    expect("advice", document)
    assert document["levers"][0]["setting"]["buffers"] == list(larger.buffers)
    assert [row["cca"] for row in document["levers"]] == [each.cca for each in result.levers]


@pytest.mark.parametrize(
    "options",
    [
        {"jitter": None, "rtt": "20ms", "rate": "20mbit"},
        {"jitter": None, "rtt": "100ms", "rcvbuf": "64KiB"},
        {"jitter": None, "rtt": "100ms", "rate": "100mbit", "rcvbuf": "256KiB", "goal": "delay"},
    ],
    ids=["nothing held by a buffer", "no rate", "another goal"],
)
def test_buffers_are_tried_only_where_they_can_be_to_blame(options, need_model):
    result = advice(cca="cubic,bbr", engine="model", seeds=2, duration="1s", kernel="6.1,initcwnd=10", **options)
    assert "buffers" not in {lever.setting.kind for lever in result.levers}
    assert (result.lever, result.is_setting_first) == (None, False)


def test_a_slow_reader_is_no_small_buffer(need_model):
    """A program that reads slowly fills every buffer, so that a larger one brings nothing."""
    result = advice(
        cca="cubic,reno", engine="model", seeds=3, duration="5s", jitter=None, rtt="20ms", rate="50mbit", read="16KiB/20ms", rcvbuf="128KiB"
    )
    assert result.levers
    assert result.lever is None
    assert "Tried, and no better than cubic as it is: " in " ".join(words.screen(result).text(80).split())
    assert ", which it fills too)" in " ".join(words.screen(result).text(80).split())


# Other settings, where they can matter.


def settings_of(result):
    return {(lever.cca, lever.setting.kind) for lever in result.levers}


def test_a_shallow_buffer_is_paced(need_model):
    """A tenth of a BDP at 100 Mbit/s: cubic's bursts overflow it, and paced by fq at the sender it carries as much as bbr, which paces itself."""
    result = advice(cca="cubic,bbr", engine="model", seeds=5, duration="5s", jitter=None, rtt="60ms", rate="100mbit", buffer="0.1bdp")
    assert settings_of(result) == {("cubic", "pacing")}  # bbr paces itself
    (lever,) = result.levers
    assert lever.gain.low > 1.5
    assert (result.choice, lever.is_worthwhile) == ("bbr", False)
    shown = " ".join(words.screen(result).text(80, verbose=True).split())
    if lever.verdict == "as good":
        assert "Without another control: pace by fq at the sender: cubic then carries" in shown
        assert "tc qdisc replace dev eth0 root fq" in shown
        assert "tc qdisc del dev eth0 root" in shown
    else:
        assert "Tried, and no better than bbr as it is: fq at the sender (cubic:" in shown


def test_where_a_setting_alone_is_better_it_is_the_first_sentence(need_model):
    result = advice(cca="cubic,reno", engine="model", seeds=5, duration="5s", jitter=None, rtt="60ms", rate="100mbit", buffer="0.1bdp")
    assert words.sentence(result).startswith("Pace by fq at the sender: cubic then carries")
    assert "As root on the sender, for fq at the sender:" in words.screen(result).text(80)
    titles = [step.title for step in deploy(result).steps]
    assert "Go back (fq at the sender, on the sender)" in titles
    expect("advice", words.document(result))


def test_the_queue_of_a_bottleneck_that_is_ones_own(need_model):
    """Four BDP of a FIFO: fq_codel takes the delay away, which no congestion control does."""
    path = {"cca": "cubic,bbr", "engine": "model", "seeds": 5, "duration": "5s", "jitter": None, "rtt": "60ms", "rate": "20mbit", "buffer": "4bdp"}
    assert not {"queue"} & {kind for _, kind in settings_of(advice(**path))}
    result = advice(**path, own_queue=True, goal="delay")
    assert {"fq_codel", "cake"} == {lever.setting.queue for lever in result.levers if lever.is_queue}
    assert words.sentence(result).startswith("Put fq_codel at the bottleneck: ")
    assert result.lever.less_rtt.low > 50
    shown = " ".join(words.screen(advice(**path, own_queue=True)).text(80).split())
    assert re.search("With (fq_codel|cake) at the bottleneck, cubic adds", shown)  # the goal is goodput: the choice stands, the queue is told
    assert re.search(r"As root on the router, for (\w+) at the bottleneck: tc qdisc replace dev eth0 root \1", shown)


def test_a_queue_of_ones_own_needs_a_bottleneck(cli):
    assert cli("advise", "--rtt", "30ms", "--own-queue", "--engine", "mock").err.startswith("error: own-queue: there is no bottleneck")


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({"rate": "20mbit"}, {"pacing"}),
        ({}, set()),
        ({"rate": "20mbit", "queue": "fq_codel"}, {"pacing", "ecn"}),
        ({"rate": "20mbit", "queue": "codel"}, {"pacing"}),
        ({"rate": "20mbit", "queue": "codel ecn"}, {"pacing", "ecn"}),
        ({"rate": "20mbit", "queue": "fq_codel noecn"}, {"pacing"}),
        ({"flow": {"app": "1MB/s"}}, {"window_after_pause", "initial_window"}),
        ({"rate": "20mbit", "rtt": "600ms"}, {"pacing", "initial_window"}),
        ({"rate": "20mbit", "rtt": "600ms", "kernel": "6.1,initcwnd=20"}, {"pacing"}),
    ],
)
def test_a_setting_is_tried_only_where_it_can_matter(fields, kinds):
    path = Conditions.model_validate({"rtt": "40ms", **fields})
    assert {s.kind for s in levers.may_matter(path, "cubic", 10, own_queue=False)} == kinds
    assert {s.kind for s in levers.may_matter(path, "bbr", 10, own_queue=False)} == kinds - {"pacing"}
    assert "pacing" not in {s.kind for s in levers.may_matter(path, "cubic", 0, own_queue=False)}  # nothing was lost


# --- what is assumed ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "assumed"),
    [
        ({}, ("rate", "loss")),
        ({"rate": "20mbit"}, ("buffer", "loss")),
        ({"rate": "20mbit", "buffer": "64KB"}, ("loss",)),
        ({"rate": "20mbit", "queue": "fq_codel"}, ("loss",)),
        ({"rate": "20mbit", "loss": "0.1%"}, ("buffer", "loss_on")),
        ({"loss": "0.1%", "loss_on": "forward"}, ("rate",)),
        ({"rate": "20mbit", "rtt": "600ms"}, ("buffer", "rcvbuf", "loss")),
        ({"rate": "20mbit", "rtt": "600ms", "kernel": "6.1,tcp_rmem_max=16MiB"}, ("buffer", "loss")),
        ({"rate": "20mbit", "rtt": "600ms", "flow": {"rcvbuf": "256KiB"}}, ("buffer", "loss")),
    ],
)
def test_what_the_user_did_not_say_is_assumed(fields, assumed):
    assert assumptions.assumed(Conditions.model_validate({"rtt": "40ms", **fields})) == assumed


def deciding(by_value, field="buffer"):
    """A decision by the value of a field, and the list of values that were asked for."""
    asked = []

    def decide_on(path):
        value = getattr(path, field)
        asked.append(value)
        return by_value.get(value, Decision("cubic", "better", "cubic", "bbr"))

    return decide_on, asked


BBR = Decision("bbr", "better", "bbr", "cubic")


def test_where_both_ends_choose_the_same_nothing_between_them_runs():
    decide_on, asked = deciding({})
    found = assumptions.otherwise(Conditions.model_validate({"rtt": "40ms", "rate": "20mbit"}), "buffer", "cubic", decide_on)
    assert not found.changes
    assert asked == ["0.25bdp", "4bdp"]


def test_without_a_rate_usual_bottlenecks_are_asked(need_model):
    decide_on, asked = deciding({}, "rate")
    found = assumptions.otherwise(Conditions.model_validate({"rtt": "40ms"}), "rate", "cubic", decide_on)
    assert (asked, found.changes) == ([10_000_000, 100_000_000], False)
    result = advice(engine="model", seeds=2, duration="1s", jitter=None, rtt="40ms")
    shown = " ".join(words.screen(result).text(80).split())
    assert "no bottleneck (no --rate)" in shown
    assert {a.value for a in result.assumptions[0].alternatives} == {"10mbit", "100mbit"}


def test_loss_that_nobody_named_is_tried(need_model):
    """cubic and bbr carry the same on a clean path; one packet lost of a thousand, and bbr is far ahead."""
    result = advice(engine="model", seeds=5, jitter=None, rtt="50ms", rate="50mbit", buffer="1bdp")
    (loss,) = [a for a in result.assumptions if a.field == "loss"]
    (most,) = [a for a in loss.alternatives if a.value == "0.1%"]
    assert (result.choice, most.decision.choice, most.outcome) == ("cubic", "bbr", "other")
    (line,) = [text for text in words.screen(result).remarks if "no random loss (no --loss)" in text]
    assert line.startswith("Assumed, and the choice depends on it: ")
    assert "with a loss of 0.1% bbr carries " in line


@pytest.mark.parametrize(("fields", "is_few"), [({}, True), ({"loss": "1%"}, False), ({"flows": 2}, False)])
def test_few_runs_that_agree_are_enough_where_nothing_is_drawn(fields, is_few, need_model):
    result = advice(engine="model", seeds=None, jitter=None, rtt="40ms", rate="5mbit", duration="2s", **fields)
    assert {s.goodput.n for s in result.ranking} == {5 if is_few else 20}
    assert all(max(level.retention.n for level in s.cliff.levels) >= 8 for s in result.ranking)  # a cliff takes as many as with 20 runs


def test_the_first_runs_that_did_not_agree_are_not_run_again(need_model):
    """Without a store too: what an advice has measured is part of the comparison."""
    ran = []

    class Counting(Local):
        def run(self, task, work):
            ran.extend((one.scenario.address(), seed) for one in work for seed in one.seeds)
            yield from super().run(task, work)

    path = Conditions.model_validate({"rtt": "50ms", "rate": "20mbit", "buffer": "1bdp"})
    result = Adviser(path, ["cubic", "bbr"], Runner(make("model"), executor=Counting()), in_brief=True).advise()
    assert {s.goodput.n for s in result.ranking} == {20}
    assert len(ran) == len(set(ran)) == result.trials


@pytest.mark.parametrize(("jitter", "has_cliffs"), [("0ms", False), ("4ms", True)])
def test_an_answer_in_brief_searches_no_cliff_of_a_path_without_jitter(jitter, has_cliffs):
    path = Conditions.model_validate({"rtt": "40ms", "rate": "5mbit", "jitter": jitter})
    result = Adviser(path, ["cubic", "bbr"], Runner(make("mock")), "5", in_brief=True).advise()
    assert all((s.cliff is not None) is has_cliffs for s in result.ranking)
    text = words.screen(result).text(100, verbose=True)
    assert ("Where the cliff is" in text) is has_cliffs
    assert words.document(result)["ranking"][0]["cliff"]["bracket_ns"] is None or has_cliffs


def test_where_an_end_chooses_otherwise_what_lies_between_tells_where():
    decide_on, asked = deciding({"0.25bdp": BBR, "0.5bdp": BBR})
    found = assumptions.otherwise(Conditions.model_validate({"rtt": "40ms", "rate": "20mbit"}), "buffer", "cubic", decide_on)
    assert [(a.value, a.outcome) for a in found.alternatives] == [("0.25bdp", "other"), ("0.5bdp", "other"), ("4bdp", "same")]
    assert asked == ["0.25bdp", "0.5bdp", "4bdp"]


@pytest.mark.parametrize(
    ("decision", "choice", "outcome"),
    [
        (BBR, "bbr", "same"),
        (BBR, "cubic", "other"),
        (Decision("cubic", "as good", "bbr", "cubic"), "bbr", "alike"),
        (Decision("cubic", "undecided", "bbr", "cubic"), "bbr", "undecided"),
        (Decision(None, "nothing carried"), "bbr", "other"),
    ],
)
def test_how_another_assumption_compares_with_the_choice(decision, choice, outcome):
    decide_on, _ = deciding({"forward": decision}, "loss_on")
    (alternative,) = assumptions.otherwise(Conditions.model_validate({"rtt": "40ms", "loss": "1%"}), "loss_on", choice, decide_on).alternatives
    assert alternative.outcome == outcome


def test_the_answer_says_what_is_assumed_and_what_it_would_change(need_model):
    """In a quarter of a bandwidth-delay product of buffer, reno and cubic lose where bbr does not."""
    result = advice(cca="cubic,bbr", engine="model", seeds=5, duration="6s", jitter=None, rtt="40ms", rate="20mbit")
    assumption, _ = result.assumptions
    (line,) = [text for text in words.screen(result).remarks if "buffer of 1 BDP (100kB)" in text]
    for alternative in assumption.alternatives:
        size = {"0.25bdp": "25kB", "0.5bdp": "50kB", "2bdp": "200kB", "4bdp": "400kB"}[alternative.value]
        assert (size in line) == assumption.changes
    assert words.document(result)["assumptions"][0]["alternatives"][0]["outcome"] == assumption.alternatives[0].outcome


@pytest.mark.parametrize("fields", [{"loss": "0%"}, {"rtt_loss": "0%"}])
def test_a_loss_of_none_that_the_user_named_is_not_assumed(fields):
    path, _ = measured.conditions({"rtt": "40ms", "rate": "20mbit", **fields})
    assert "loss" not in assumptions.assumed(path)
    assert "loss" not in assumptions.assumed(Conditions.model_validate(Adviser(path, ["cubic"], Runner(make("mock"))).campaign().conditions))


def test_the_seeds_that_the_user_named_are_those_of_a_cliff_too(need_model):
    result = advice(engine="model", seeds="100..101", jitter=None, rtt="40ms", rate="5mbit", duration="1s")
    assert {level.retention.n for s in result.ranking for level in s.cliff.levels if level.at} == {2}
    assert {s.stands for s in result.ranking} == {"stable"}  # without jitter no cliff is near, however early its interval begins
