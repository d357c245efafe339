"""Advice for calls beside uploads: the link, the choice by made scores, what to type, and what the model says."""

import json

import jsonschema
import pytest

import tcpscape
from tcpscape.errors import TcpscapeError
from tcpscape.findings.calls import REMEDIES, CallAdvice, CallCase, HomeLink, choose, remedies, satisfaction, without_queue
from tcpscape.metrics import traffic
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
    assert (LINK.shaped_bps, round(LINK.buffer_ms)) == (4_750_000, 419)
    by_name = {r.name: r for r in REMEDIES}
    assert by_name["cake"].commands(4_750_000) == ("tc qdisc replace dev eth0 root cake bandwidth 4750kbit",)
    assert by_name["fq_codel"].commands(4_750_000)[1:] == (
        "tc class replace dev eth0 parent 1: classid 1:1 htb rate 4750kbit ceil 4750kbit quantum 1514",
        "tc qdisc replace dev eth0 parent 1:1 fq_codel",
    )
    scenario = LINK.scenario("cubic", by_name["fq_codel"])
    assert [f.direction for f in scenario.flows] == ["up"]
    assert [(p.name, p.direction) for p in scenario.probes] == [("call-down", "down"), ("call-up", "up")]
    assert scenario.rtt_ns == 30 * 10**6
    assert LINK.scenario(None).flows == ()


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
