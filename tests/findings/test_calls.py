"""Advice for calls beside uploads: the link, the choice by made scores, what to type, and what the model says."""

import json
import shutil
import subprocess

import jsonschema
import pytest

import tcpscape
from tcpscape.controls.routers import LINKS, SYSTEMS, Router
from tcpscape.errors import TcpscapeError
from tcpscape.findings.calls import REMEDIES, CallAdvice, CallCase, HomeLink, Margin, choose, remedies, satisfaction, without_queue
from tcpscape.metrics import traffic
from tcpscape.names import wrapped
from tcpscape.schemas.documents import DOCUMENTS
from tcpscape.stats import Estimate
from tcpscape.words import calls as words

LINK = HomeLink.of({"rate": "20mbit", "upload": "5mbit", "rtt": "30ms"})
WORDS = ("advise", "--goal", "calls", "--rate", "20mbit", "--upload", "5mbit", "--rtt", "30ms")


def case(queue, cca, score, upload=4.5):
    remedy = next((r for r in REMEDIES if r.name == queue), None)
    return CallCase(cca, remedy, *(Estimate(x, x, x, 5, unit) for x, unit in ((score, "1"), (20.0, "ms"), (0.01, "1"), (upload, "Mbit/s"))))


@pytest.mark.parametrize(
    ("cases", "chosen"),
    [
        ([case("", "cubic", 1.0), case("fq_codel", "cubic", 4.3), case("cake", "cubic", 4.35)], ("fq_codel", "cubic")),  # alike: the first
        ([case("", "cubic", 4.3), case("fq_codel", "cubic", 4.35)], ("as it is", "cubic")),  # nobody hears the difference
        ([case("", "cubic", 1.0), case("", "bbr", 4.3), case("fq_codel", "cubic", 4.3)], ("fq_codel", "cubic")),  # for every machine
        ([case("", "cubic", 1.0), case("", "bbr", 4.3), case("codel", "bbr", 4.3)], ("as it is", "bbr")),
        ([case("", "cubic", 1.0), case("fq_codel", "cubic", 4.3, upload=2.0), case("cake", "cubic", 4.3)], ("cake", "cubic")),  # keeps the upload
        ([case("", "cubic", 1.0), case("codel", "cubic", 3.0), case("codel", "bbr", 4.0)], ("codel", "bbr")),
    ],
)
def test_what_changes_least_is_recommended(cases, chosen):
    assert (choose(cases).queue, choose(cases).cca) == chosen


def test_the_best_control_alone():
    assert without_queue([case("", "cubic", 1.0), case("", "bbr", 3.0), case("cake", "cubic", 4.3)]).cca == "bbr"


@pytest.mark.parametrize(
    ("score", "text"), [(4.4, "very satisfied"), (4.1, "everybody is satisfied"), (3.7, "some"), (2.6, "nearly"), (1.0, "nobody")]
)
def test_scores_are_words(score, text):
    assert text in satisfaction(score)


def test_the_router_shapes_below_the_link():
    """95 % of 5 Mbit/s; the modem's buffer of 256 KiB is 419 ms; CAKE has a rate of its own, other queues are below HTB."""
    assert round(LINK.buffer_ms) == 419
    by_name = {r.name: r for r in REMEDIES}
    cable = Router.of("linux", None, "cable")
    up, *down = cable.shaped("cake", 4_750_000, 19_000_000).now
    assert up == "tc qdisc replace dev eth0 root cake bandwidth 4750kbit docsis"
    assert down[-1] == "tc qdisc replace dev ifb-wan root cake bandwidth 19mbit docsis ingress"
    assert cable.shaped("fq_codel", 4_750_000, 19_000_000).now[1:3] == (
        "tc class replace dev eth0 parent 1: classid 1:1 htb rate 4750kbit ceil 4750kbit quantum 1514 overhead 4 mpu 64",
        "tc qdisc replace dev eth0 parent 1:1 fq_codel",
    )
    scenario = LINK.scenario("cubic", by_name["fq_codel"])
    assert [f.direction for f in scenario.flows] == ["up"]
    assert [(p.name, p.direction) for p in scenario.probes] == [("call-down", "down"), ("call-up", "up")]
    assert scenario.rtt_ns == 30 * 10**6
    assert LINK.scenario(None).flows == ()


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("queue", [r.name for r in REMEDIES])
def test_openwrt_has_every_queue_and_link(link, queue):
    """Lines of /etc/config/sqm, in kbit/s; what they set is deleted to go back."""
    typed = Router.of("openwrt", "pppoe-wan", link).shaped(queue, 4_750_000, 19_000_000)
    assert "uci set sqm.calls.upload='4750'" in typed.now
    assert "uci set sqm.calls.download='19000'" in typed.now
    assert "uci set sqm.calls.interface='pppoe-wan'" in typed.now
    assert (f"uci set sqm.calls.linklayer='{'atm' if link == 'adsl' else 'ethernet'}'") in typed.now
    assert typed.permanent == ("uci commit sqm", "/etc/init.d/sqm enable")
    assert typed.undo[0].startswith("uci delete sqm.calls")


@pytest.mark.parametrize(("field", "value"), [("router", "opnwrt"), ("link", "fiber"), ("device", "wan; reboot")])
def test_what_is_no_router_is_refused(cli, field, value):
    result = cli(*WORDS, f"--{field}", value)
    assert result.status == 2
    assert result.err.startswith(f"error: {field}: ")
    assert cli("advise", "--rtt", "30ms", f"--{field}", value, "--engine", "mock").err.startswith(f"error: {field}: it is for the goal calls")


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
def test_what_is_kept_after_a_start_is_what_is_typed_now(tmp_path):
    """The script that `printf` writes has the lines of `now`, each whole."""
    typed = Router.of(None, None, "vdsl").shaped("fq_codel", 4_750_000, 19_000_000)
    line = typed.permanent[0].replace("/usr/local/sbin/shape-wan", str(tmp_path / "script"))
    subprocess.run(["sh", "-c", line], check=True, timeout=20)
    first, *lines = (tmp_path / "script").read_text("utf-8").splitlines()
    again = "ip link del ifb-wan 2>/dev/null || true"  # it may run twice
    assert (first, lines.count(again), [line for line in lines if line != again]) == ("#!/bin/sh -e", 1, list(typed.now))


def test_the_modems_buffer_from_pings_during_an_upload(cli, tmp_path, need_model):
    """Round trips of 30 ms without and 230 ms during an upload at 5 Mbit/s: 200 ms of queue are 125 kB. One late ping does not count."""
    file = tmp_path / "ping.txt"
    lines = [f"64 bytes from 192.0.2.1: icmp_seq={i} ttl=64 time={230 if i else 900}.0 ms" for i in range(60)]
    file.write_text("PING host\n" + "\n".join(lines) + "\n")
    few = ("--seeds", "2", "--duration", "3s", "--queue", "fq_codel", "--cca", "cubic")
    assert json.loads(cli(*WORDS, *few, "--from", file, "--json").out)["buffer_bytes"] == 125_000
    shown = " ".join(cli(*WORDS, *few, "--from", file).out.split())
    assert "The modem's buffer is from the file: 230 ms during an upload, 30ms without." in shown
    assert "Measure it" not in shown
    assert "then add --from ping.txt" in " ".join(cli(*WORDS, *few).out.split())
    assert cli(*WORDS, "--from", file, "--buffer", "64KB").err.startswith("error: buffer: ")
    file.write_text("64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=30.0 ms\n")
    assert "no queue was full" in cli(*WORDS, "--from", file).err
    file.write_text("nothing\n")
    assert "no lines of ping's" in cli(*WORDS, "--from", file).err


def margin(share, score):
    return Margin(share, Estimate(score, score, score, 5, "1"), Estimate(4.5, 4.5, 4.5, 5, "Mbit/s"))


@pytest.mark.parametrize(
    ("scores", "needed", "text"),
    [
        ((4.4, 4.4, 4.4), (1.0, 1.0), "the whole rate can be used"),
        (
            (3.0, 3.5, 4.4),
            (0.98, 0.99),
            "In the model 1 % of the rate left free is too little (MOS 3.5 [3.5, 3.5]) and 2 % of the rate left free is enough (MOS 4.4 [4.4, 4.4])",
        ),
    ],
)
def test_the_share_of_the_rate_to_leave(scores, needed, text):
    cases = (case("", "cubic", 1.0), case("fq_codel", "cubic", 4.3))
    margins = tuple(margin(share, score) for share, score in zip((1.0, 0.99, 0.98), scores, strict=True))
    advice = CallAdvice(LINK, case("", "", 4.4), cases, cases[1], 5, "model", margins=margins)
    assert advice.needed == needed
    assert text in " ".join(words.screen(advice).text(80).split())


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("system", SYSTEMS)
def test_copied_lines_are_whole_at_any_width(system, width):
    """What a line of the router became on the screen is the same command when it is copied."""
    cases = (case("", "cubic", 1.0), case("fq_codel", "cubic", 4.3))
    advice = CallAdvice(LINK, case("", "", 4.4), cases, cases[1], 5, "model", router=Router.of(system, None, "vdsl"))
    shown = words.screen(advice).text(width, verbose=True)
    assert max(map(len, shown.splitlines())) <= width
    for line in (text for group in (advice.deployment.now, advice.deployment.permanent) for text in group):
        parts = wrapped(line.partition("   #")[0], width)
        assert "\n".join(parts) in shown
        assert words_of("\n".join(parts), "sh") == words_of(line.partition("   #")[0], "sh")


def words_of(line, shell):
    """What a shell reads of a line: the words of each command in it, and where their output goes."""
    quoted = line.replace("&&", "'&&'").replace(">", "'>'")
    return subprocess.run([shell, "-c", f"printf '<%s>' {quoted}"], capture_output=True, check=True, timeout=20, text=True).stdout


def test_queues_are_chosen_by_name():
    assert [r.name for r in remedies("cake, fq_codel")] == ["cake", "fq_codel"]
    assert remedies(None) == REMEDIES
    with pytest.raises(TcpscapeError, match="queue: 'red' is no queue"):
        remedies("red")


def test_the_answer_names_both_scores():
    cases = (case("", "cubic", 1.0), case("", "bbr", 3.7), case("fq_codel", "cubic", 4.3, upload=4.2))
    advice = CallAdvice(LINK, case("", "", 4.4), cases, cases[2], 5, "model")
    assert words.sentence(advice) == (
        "Put fq_codel before the link's way up: the call's score goes from MOS 1.0 [1.0, 1.0] (nobody can talk) to MOS 4.3 [4.3, 4.3] "
        "(everybody is satisfied), and the upload keeps 93 % of its rate."
    )
    assert "Without touching the router: under bbr the score is MOS 3.7" in words.screen(advice).text()
    kept = CallAdvice(LINK, case("", "", 4.4), cases[:1], cases[0], 5, "model")
    assert words.sentence(kept).startswith("Change nothing: beside an upload under cubic the call's score is MOS 1.0")
    assert kept.commands == ()
    hopeless = CallAdvice(LINK, case("", "", 1.2), cases[:1], cases[0], 5, "model")
    assert words.sentence(hopeless).startswith(
        "No queue mends this link: without an upload the call's score is MOS 1.2 [1.2, 1.2], nobody can talk, and"
    )
    starved = CallAdvice(LINK, case("", "", 4.4), (case("", "cubic", 1.0, upload=0.0), cases[2]), cases[2], 5, "model")
    assert words.sentence(starved).endswith("and the upload, which carried nothing, carries 4.20 Mbit/s.")


def test_an_upload_ruins_a_call_and_a_queue_mends_it(cli, need_model):
    advice = tcpscape.advise_calls(rate="20mbit", upload="5mbit", rtt="30ms", queue="fq_codel", cca="cubic", seeds=2, duration="10s")
    assert advice.before.score.value < traffic.opinion_score(
        60
    )  # below that "nearly all users dissatisfied" begins (G.107 annex B); delays alone do it
    assert advice.before.lost.value == 0  # what waits in the queue at the end of the trial is under way
    assert advice.choice.score.value > 4
    assert advice.before.delay.value > 200
    assert advice.choice.delay.value < 40
    assert (advice.choice.queue, advice.choice.cca) == ("fq_codel", "cubic")
    assert advice.choice.upload.value > 0.85 * advice.before.upload.value
    document = json.loads(cli(*WORDS, "--queue", "fq_codel", "--cca", "cubic", "--seeds", "2", "--duration", "10s", "--json").out)
    assert document["commands"] == list(advice.commands)
    assert document["cases"][1]["score"]["value"] == advice.choice.score.value
    jsonschema.Draft202012Validator(DOCUMENTS["calls"].schema()).validate(document)
