"""The command `diagnose`: its sentences in every situation, its screen, its JSON against the schema, checks, selection, errors."""

import html
import json
import math
import re
from dataclasses import replace
from typing import get_args, get_type_hints

import jsonschema
import numpy as np
import pytest

import observations
from observations import SITUATIONS, diagnosed, flow, observation
from tcpscape import formats
from tcpscape.capture import Pseudonyms
from tcpscape.engines.model import Model
from tcpscape.errors import TcpscapeError
from tcpscape.findings.advice.choice import ChoiceVerdict
from tcpscape.findings.cliff.levels import Side
from tcpscape.findings.diagnosis import checked, diagnosis, limits, observed
from tcpscape.findings.diagnosis.diagnosis import Diagnosis
from tcpscape.findings.diagnosis.fitted import Alternative, DiagnosisSettings, FittedPath, PathChange, RecognisedControl, Replay, ReplayAdvice
from tcpscape.findings.diagnosis.observed import Attempt, Cause, SocketAddress, Vantage
from tcpscape.findings.diagnosis.reasons import Reason, Why
from tcpscape.findings.diagnosis.replay.scenario import fitted
from tcpscape.interchange import observing
from tcpscape.plots import diagnosis as figures
from tcpscape.report import diagnosis as report
from tcpscape.scenario.scenario import Scenario
from tcpscape.schemas.documents import DOCUMENTS
from tcpscape.stats import Estimate
from tcpscape.words import diagnosis as answer
from tcpscape.words import fitted_path, next_look, reasons
from tcpscape.words import flow as words

SAYS = {
    "receive window": (
        "Your path has a round trip of 50.0 ms with hardly any jitter, no random loss and a bottleneck of 20.0 Mbit/s with a buffer of 200 kB (80 ms when full).",
        "What limits you is the receiver's window (82 % of the time); the path needs at least 125 kB: allow a larger receive buffer (SO_RCVBUF, net.ipv4.tcp_rmem), unless its application reads too slowly (Recv-Q of `ss -tn` there).",
        "No other congestion control would carry clearly more; how much more a larger buffer would carry does not show.",
    ),
    "application": (
        "What limits you is the sending application (95 % of the time): it offers no more data",
        "Nothing to change on the path or in TCP",
    ),
    "jitter cliff": (
        "Your path has a round trip of 50.0 ms with 12.0 ms of jitter of the data that reorders packets and no random loss (not identifiable from this measurement: rate of the bottleneck, its buffer).",
        "What limits you is the congestion window (70 % of the time): jitter puts packets out of order, cubic takes that for loss",
        "(the jitter cliff).",
        "bbr would carry 3.20 × as much as cubic [3.04, 3.36], unless the bottleneck, whose rate does not show, ends that before.",
    ),
    "random loss": ("cubic takes the random loss of 0.50 % for congestion", "bbr would carry 3.20 ×"),
    "bufferbloat": (
        "the bottleneck: it is full, you get 18.8 of its 20.0 Mbit/s; the queue there adds 280 ms to every round trip (bufferbloat)",
        "No other congestion control carries clearly more than cubic.",
    ),
    "healthy": (
        "What limits you is the bottleneck: it is full, you get 18.8 of its 20.0 Mbit/s.",
        "No other congestion control carries clearly more",
    ),
    "nothing identifiable": (
        "What your path is cannot be told: the source has no packets, and only they show how the window moves.",
        "What limits you cannot be told: the source does not show what held the flow.",
        "What would carry more is not known: the path's RTT is not above 0.",
    ),
    "unknown control": ("the congestion control allows no more packets on their way at a time.",),
    "changes": ("; it changed 2 times, first at 8.0 s: rate 20.0 → 5.00 Mbit/s.", "What limits you is the repair of losses (100 % of the time)"),
    "differs": ("What limits you is waiting for retransmission timeouts (60 % of the time)",),
}
"""Situation → parts of its answer, in their order."""


def test_a_full_bottleneck_is_full_whatever_seems_to_hold_the_sender():
    for shares, said in (
        (
            {"receive_window": 0.43, "congestion_window": 0.34, "send_buffer": 0.2},
            "the receiver's window (43 % of the time, in turn with the congestion window, 34 %)",
        ),
        ({"application": 0.4, "congestion_window": 0.3, "recovery": 0.25}, "the congestion window (30 % of the time)"),
        (
            {"application": 0.45, "congestion_window": 0.25, "recovery": 0.24},
            "the congestion window (25 % of the time, with pacing and repairs 49 %, in turn with the sending application, 45 %)",
        ),
        ({"application": 0.48, "receive_window": 0.2}, "the sending application (48 % of the time)"),
    ):
        assert f"What limits you is {said}" in words.answer(diagnosed(flow(goodput_mbps=12.0), limited_by=shares))
    for flight, says_send_buffer in ((2_900_000, True), (300_000, False)):
        said = words.answer(diagnosed(flow(goodput_mbps=12.0, facts={"flight_max": flight}), limited_by={"receive_window": 1.0}))
        assert ("send buffer (net.ipv4.tcp_wmem)" in said) is says_send_buffer
        assert (
            "the receiver's window or the sender's socket buffer, whose default ends about there too (100 % of the time)" in said
        ) is says_send_buffer
    closed = words.answer(diagnosed(flow(goodput_mbps=12.0, facts={"flight_max": 2_900_000, "zero_windows": 1}), limited_by={"receive_window": 1.0}))
    assert "the receiver's window (100 % of the time): it was closed once" in closed
    for losses, is_open in ((0, True), (5, False)):
        seen = flow(goodput_mbps=12.0, facts={"flight_max": 2_900_000, "losses": losses})
        said = words.answer(diagnosed(seen, limited_by={"congestion_window": 1.0}))
        assert ("the congestion window or the sender's socket buffer, whose default" in said) is is_open
    both = words.answer(diagnosed(flow(goodput_mbps=18.5), limited_by={"receive_window": 0.9, "congestion_window": 0.1}))
    assert "Mbit/s (the receiver's window held the flow for 90 % of the time too: a larger one would only make the queue longer)" in both
    seen = flow(goodput_mbps=18.5, facts={"flight_max": 2_900_000})
    large = words.answer(diagnosed(seen, limited_by={"receive_window": 0.9, "congestion_window": 0.1}))
    assert "(the receiver's window or the sender's socket buffer, whose default ends about there too, held the flow for 90 % of the time too" in large
    for goodput, said in ((18.5, "the bottleneck: it is full"), (17.8, "the sender's socket buffer"), (12.0, "the sender's socket buffer")):
        assert said in words.answer(diagnosed(flow(goodput_mbps=goodput), limited_by={"send_buffer": 0.9, "congestion_window": 0.1}))
    assert "the bottleneck: it is full" in words.answer(diagnosed(flow(goodput_mbps=17.8), limited_by={"congestion_window": 1.0}))


@pytest.mark.parametrize(
    ("why", "control", "lost", "part"),
    [
        (
            "policed",
            "westwood",
            30,
            "0.30 % of the packets were lost, as a policer drops them, and westwood makes its window smaller after each loss.",
        ),
        (
            "lost together",
            "cubic",
            30,
            "0.30 % of the packets were lost, in groups, as a policer, a full queue or a bursty link loses them, and cubic",
        ),
        ("queue unseen", "unknown", 30, "0.30 % of the packets were lost, at random or in a full queue; whether its congestion control makes"),
        ("queue unseen", "bbr", 30, "bbr allows no more packets on their way at a time."),
        ("queue unseen", "cubic", 2, "cubic allows no more packets on their way at a time."),
    ],
)
def test_losses_of_which_nobody_knows_what_lost_them_explain_a_small_window(why, control, lost, part):
    seen = flow(goodput_mbps=5.0, facts={"losses": lost, "losses_uncertain": 0, "segments": 10_000, "retransmissions": lost})
    path = replace(observations.PATH, rate_mbps=None, buffer_bytes=None, loss_pct=None, reasons={"loss_pct": Reason(why)})
    held = {"congestion_window": 1.0}
    assert f"What limits you is the congestion window (100 % of the time): {part}" in words.answer(
        diagnosed(seen, control=control, path=path, limited_by=held)
    )
    repaired = words.answer(diagnosed(seen, control=control, path=path, limited_by={"recovery": 1.0}))
    assert ("% of the packets were lost" in repaired) is (lost > 2)
    unsure = replace(seen, facts={**seen.facts, "losses": lost + 400, "losses_uncertain": 400, "retransmissions": lost + 400})
    said = words.answer(diagnosed(unsure, control=control, path=path, limited_by={"recovery": 1.0}))
    assert ("between 0.30 and 4.3 % of the packets were lost" in said) is (lost > 2)


def test_an_application_in_turn_with_another_cause_is_not_all_that_could_help():
    """Of a program that writes a segment each 4 s through a bottleneck that is full meanwhile it was said that a faster path would carry no more."""
    in_part = {"application": 0.6, "congestion_window": 0.4}
    for shares, is_alone in (
        ({"application": 0.51, "handshake": 0.49}, False),
        (in_part, False),
        ({"application": 0.8, "congestion_window": 0.2}, True),
    ):
        said = words.answer(diagnosed(flow(goodput_mbps=5.0), limited_by=shares, replay=None, advice=None))
        assert ("Nothing to change on the path or in TCP" in said) is is_alone
        assert ("so a faster path would carry no more" in said) is is_alone


def test_a_connection_that_only_keep_alives_follow_was_not_too_short():
    for kept, part in ((13, "all that it had to send left with it, and keep-alives alone followed"), (0, "the connection was too short")):
        said = words.answer(diagnosed(flow(goodput_mbps=0.001, facts={"keep_alives": kept}), limited_by={"handshake": 1.0}))
        assert f"What limits you is the handshake (100 % of the time): {part}" in said


def test_a_bottleneck_may_be_faster_by_what_went_the_same_way_meanwhile():
    """A flow of 10 MB in 10 s; beside it half of another one of 4 MB."""
    own = replace(flow(goodput_mbps=8.0), start_s=0.0, seconds=10.0, bytes=10_000_000)
    other = replace(own, start_s=5.0, bytes=4_000_000)
    path = replace(observations.PATH, rate_mbps=Estimate(8.0, 7.9, 8.1, 99, "Mbit/s"), buffer_bytes=Estimate(50e3, 45e3, 55e3, 99, "B"))
    found = diagnosis.shared(path, own, [other])
    assert (found.rate_mbps.low, found.rate_mbps.high) == (7.9, pytest.approx(8.1 * 1.2))
    assert found.buffer_bytes.high == pytest.approx(55e3 * 1.2)
    assert diagnosis.shared(path, own, []) == path


def test_what_packets_met_is_not_told_of_the_time():
    """A flow of 5 % of the rate sends in bursts: its packets meet a queue, which is empty for most of the time."""
    for why, values in (("jitter hidden", {"ms": 0.22}), ("queue always full", {})):
        said = reasons.text(Reason(why, values))
        assert "packet" in said
        assert "time" not in said


def test_sentences_claim_no_more_than_is_known():
    """Of sentences that were read beside the truth: what an unnamed control does, a loss that is small, two causes that held nearly as long."""
    lossy = replace(observations.PATH, rate_mbps=None, buffer_bytes=None, loss_pct=Estimate(0.05, 0.0, 0.07, 9000, "%"))
    for name, shares, path, part in (
        ("cubic", {"send_buffer": 0.53, "application": 0.43}, observations.PATH, "53 % of the time, in turn with the sending application, 43 %)"),
        ("cubic", {"receive_window": 1.0}, lossy, "at most 0.070 % of random loss"),
        (
            "unknown",
            {"congestion_window": 1.0},
            replace(lossy, loss_pct=Estimate(0.5, 0.4, 0.6, 9000, "%")),
            "the path loses 0.50 % of the packets at random; whether its congestion control makes the window smaller for that is not known.",
        ),
        ("unknown", {"pacing": 1.0}, lossy, "the sender's own pacing (100 % of the time): a timer spaces its segments."),
    ):
        assert part in words.answer(diagnosed(flow(goodput_mbps=9.0), control=name, limited_by=shares, path=path))
    bounded = replace(lossy, rtt_ms=None, jitter_ms=None, reasons={"rtt_ms": Reason("delays vary in order", {"ms": 11.5})})
    said = words.answer(diagnosed(flow(goodput_mbps=9.0), limited_by={"pacing": 1.0}, path=bounded))
    assert "Your path has a round trip of at most 11.5 ms and at most" in said
    assert "(not identifiable from this measurement: jitter, rate of the bottleneck, its buffer)" in said
    closed = words.answer(diagnosed(flow(goodput_mbps=9.0, facts={"zero_windows": 1}), limited_by={"receive_window": 1.0}))
    assert "it was closed once, since" in closed
    drops = replace(lossy, loss_pct=None, queue_loss_pct=Estimate(0.1, 0.08, 0.12, 9000, "%"), reasons={"loss_pct": Reason("lost together")})
    assert "others are lost in groups that no delay explains" in words.answer(
        diagnosed(flow(goodput_mbps=9.0), limited_by={"recovery": 1.0}, path=drops)
    )


def test_a_repair_of_what_came_late_is_not_called_one_of_losses(tmp_path):
    """Jitter of 12 ms that reorders, of which Westwood repairs half of the time, and no loss; few sure losses explain no repairs, many do."""
    hop, back = {"at": "router", "delay": "20ms", "jitter": "12ms"}, {"at": "router", "delay": "20ms"}
    fields = {"forward": [hop], "reverse": back, "bottleneck": "tbf rate 40mbit burst 6056 limit 400000", "flows": [{"cca": "westwood"}]}
    Model().write_pcap(Scenario.model_validate({**fields, "duration": "12s"}), 1, file := tmp_path / "late.pcapng")
    one = diagnosis.before_replay(observing.observe(file).flows[0], DiagnosisSettings(3, "", None, None))
    assert one.flow.facts["reordered"] > 1000
    assert not one.flow.facts["losses"]
    assert one.control.name == "unknown"
    said = words.limit_sentence(replace(one, limited_by={"recovery": 1.0}))
    assert "the repair of what was not lost (100 % of the time): packets came in another order" in said
    assert f"of {one.flow.facts['retransmissions']} sent again, none had surely been lost." in said
    path = replace(observations.PATH, rate_mbps=None, buffer_bytes=None, loss_pct=None, queue_loss_pct=None)
    for losses, late, part in ((40, 500, "what was not lost"), (60, 500, "losses"), (40, 90, "losses")):
        facts = {"retransmissions": 100, "losses": losses, "losses_uncertain": 10, "reordered": late}
        told = words.limit_sentence(diagnosed(flow(goodput_mbps=9.0, facts=facts), limited_by={"recovery": 1.0}, path=path))
        assert f"What limits you is the repair of {part} (100 %" in told


@pytest.mark.parametrize(("opened", "port"), [(True, 5201), (False, 40000), (None, 5201)])  # who accepted has the port that stays
def test_the_capture_that_would_tell_more_is_a_command(opened, port):
    rows = {"t": np.arange(3)}
    seen = flow(goodput_mbps=9.0, vantage="receiver", segments=rows, facts={} if opened is None else {"sender_opened": opened})
    line = next_look.what_to_ask(whole(diagnosed(seen, control="unknown")))
    assert f"on 10.0.0.1, the sender: tcpdump -i any -s 160 -w sender.pcap host 10.0.0.2 and tcp port {port} " in line
    assert "the sender" not in next_look.what_to_ask(whole(diagnosed(replace(seen, vantage="sender"), control="unknown")))
    assert not next_look.what_to_ask(whole(diagnosed(seen)))
    longer = replace(
        diagnosed(replace(seen, facts={**seen.facts, "timestamps": True})), control=RecognisedControl("unknown", 0.0, {}, Reason("few seconds"))
    )
    assert next_look.what_to_ask(whole(longer)).startswith("at the same place: tcpdump -i any -s 160 -w longer.pcap host 10.0.0.2")
    alike = replace(longer, control=RecognisedControl("unknown", 0.0, {}, Reason("family", {"names": ("reno", "lp", "dctcp")})))
    assert not next_look.what_to_ask(whole(alike)), "another capture would say the same"
    assert not next_look.what_to_ask(whole(diagnosed(replace(seen, goodput_mbps=18.5), control="unknown"))), "no control carries more"
    assert not next_look.what_to_ask(whole(diagnosed(replace(seen, segments={}), control="unknown")))


@pytest.mark.parametrize(
    ("why", "doubt", "line"),
    [
        ("few seconds", None, "tcp port 5201, for 30 s and more"),
        ("few round trips", None, "tcp port 5201, for longer than this one"),
        ("begins in mid-connection", None, "tcp port 5201, begun before the connection"),
        ("without SACK", None, ""),
        ("alike", "pace_or_application", "ss -tin dst 10.0.0.2 (its congestion control, and app_limited)"),
        ("alike", "small_writes", "ss -tin dst 10.0.0.2 (app_limited, and sndbuf_limited)"),
        ("alike", "no_timestamps", "sysctl -w net.ipv4.tcp_timestamps=1 at both ends"),
    ],
)
def test_what_to_ask_next_at_the_sender_depends_on_what_is_missing(why, doubt, line):
    seen = flow(goodput_mbps=9.0, vantage="sender", segments={"t": np.arange(3)}, facts={"sender_opened": True, "limits_doubt": doubt})
    one = diagnosed(seen, control="unknown", limited_by={"unknown": 0.9} if doubt else {"congestion_window": 1.0})
    one = replace(one, control=replace(one.control, reason=Reason(why)))
    asked = next_look.what_to_ask(whole(one))
    assert line in asked
    assert bool(asked) == bool(line)


@pytest.mark.parametrize(
    ("why", "doubt", "cut", "is_asked"),
    [
        ("alike", "no_timestamps", 900, True),
        ("alike", "no_timestamps", 100, False),
        ("without SACK", None, 9, True),
        ("without SACK", None, 0, False),
        ("few seconds", None, 900, False),
    ],
)
def test_where_a_capture_cut_the_options_off_a_whole_one_is_asked_for_and_no_other_connection(why, doubt, cut, is_asked):
    seen = flow(goodput_mbps=9.0, vantage="sender", segments={"t": np.arange(3)}, facts={"sender_opened": True, "limits_doubt": doubt})
    one = diagnosed(seen, control="unknown", limited_by={"unknown": 0.9} if doubt else {"congestion_window": 1.0})
    one = whole(replace(one, control=replace(one.control, reason=Reason(why))))
    one = replace(one, observation=replace(one.observation, facts={"options_cut": cut, "packets": 1_000}))
    asked = next_look.what_to_ask(one)
    assert ("-w whole.pcap" in asked) is is_asked
    assert not (is_asked and "sysctl" in asked)


def test_no_capture_is_asked_for_that_would_not_tell_more():
    """Of a flow that an end held no window shows at any place, and a delay that varies in order looks the same at the sender."""
    seen = flow(goodput_mbps=9.0, vantage="receiver", segments={"t": np.arange(3)}, facts={"sender_opened": True}, seconds=30.0)
    held = {"application": 0.9, "recovery": 0.1}
    no_window = diagnosis._uncontradicted(RecognisedControl("unknown", 0.0, {}, Reason("not at the sender", {"vantage": "receiver"})), held)
    assert "100 % of the time without repairs" in reasons.text(no_window.reason)
    one = replace(diagnosed(seen, limited_by=held), control=no_window)
    assert not next_look.what_to_ask(whole(one))
    one = replace(one, path=replace(observations.PATH, rtt_ms=None, reasons={"rtt_ms": Reason("delays vary in order", {"ms": 40.0})}))
    assert not next_look.what_to_ask(whole(one))
    one = replace(one, path=replace(observations.PATH, loss_pct=None, reasons={"loss_pct": Reason("queue unseen")}))
    assert next_look.what_to_ask(whole(one)).endswith("(only there shows what left, and when)")
    assert not next_look.what_to_ask(whole(replace(one, flow=replace(seen, vantage="sender"))))
    reader = diagnosis._uncontradicted(no_window, {"receive_window": 0.9, "congestion_window": 0.1})
    assert (reader.name, reader.reason.why) == ("unknown", "window held")
    short = diagnosed(replace(seen, seconds=4.0), control="unknown")
    assert "for 30 s and more (only there shows what left, and when)" in next_look.what_to_ask(whole(short))
    known = RecognisedControl("cubic", 1.0, {"cubic": 1.0}, Reason("named by the user"))
    assert diagnosis._uncontradicted(known, held) is known


def test_a_queue_is_not_called_a_flows_own_beside_others_that_went_the_same_way():
    from_same = replace(flow(), source=SocketAddress("10.0.0.1", 40001))
    for other, count in ((from_same, 1), (replace(from_same, start_s=100.0), 0), (replace(from_same, source=SocketAddress("10.0.0.9", 1)), 0)):
        one, _ = diagnosis.diagnose(observation(flow(), other), DiagnosisSettings()).flows
        assert one.beside == count
    assert "its queue is this flow's own" in answer.of_flow(diagnosed(flow())).text(200)
    shared = answer.of_flow(replace(diagnosed(flow()), beside=2)).text(200)
    assert "its queue grows with this flow, and 2 other flows went this way too" in shared


def test_a_gain_hangs_on_a_bottleneck_that_was_not_seen():
    """A larger buffer on a path whose rate was assumed: 4.14 × was told, and the path carries 1.74 × as much. The table has what the answer has."""
    setting = Alternative("Receive buffer 34.8kB", Estimate(4.134, 4.13, 4.14, 6), None, None)
    advice, unseen = replace(observations.SAME, settings=(setting,)), replace(observations.PATH, rate_mbps=None, buffer_bytes=None)
    for path, gain, unless in ((unseen, "about 4.13 ×{}", words.UNLESS), (observations.PATH, "4.13 ×{} [4.13, 4.14]", "")):
        end = words.ALLOWED + unless
        one = diagnosed(flow(goodput_mbps=5.0), path=path, limited_by={"receive_window": 1.0}, advice=advice)
        assert f"but this setting would carry {gain.format(' as much')}: receive buffer 34.8kB{end}." in words.answer(one)
        assert f"Receive buffer 34.8kB, {gain.format('')}" in answer.of_flow(one).text(300)
    better = diagnosed(flow(goodput_mbps=5.0), path=unseen, limited_by={"recovery": 1.0}, advice=observations.BBR)
    assert words.answer(better).endswith(f"[3.04, 3.36]{words.UNLESS}.")
    wide = replace(observations.BBR, gain=Estimate(8.9, 1.47, 53.9, 12))  # 76 × were measured: the rate was assumed
    said = words.answer(diagnosed(flow(goodput_mbps=5.0), path=unseen, limited_by={"recovery": 1.0}, advice=wide))
    assert said.endswith("bbr would carry at least 1.47 × as much as cubic, more where the bottleneck, whose rate does not show, is faster.")
    larger = replace(wide, settings=(replace(setting, gain=Estimate(12.0, 11.0, 13.0, 6)),))
    said = words.answer(diagnosed(flow(goodput_mbps=5.0), path=unseen, limited_by={"recovery": 1.0}, advice=larger))
    assert said.endswith(f"about 12.0 × as much: receive buffer 34.8kB{words.ALLOWED}{words.UNLESS}.")


def test_what_an_end_holds_is_no_verdict_on_congestion_controls():
    """A pace was advised where a window held the flow; "nothing to change" was said beside a larger buffer, and where a program pauses."""
    pace, same = Alternative("Pacing (fq at the sender)", Estimate(1.06, 1.055, 1.07, 6), None, None), observations.SAME
    small = replace(observations.PATH, rate_mbps=None, buffer_bytes=None)
    tried = Alternative("Receive buffer 11.7MB", Estimate(1.0, 0.99, 1.01, 6), None, None)
    for shares, settings, end in (
        ({"receive_window": 0.98}, (pace,), words.BUFFER),
        ({"send_buffer": 0.9}, (), words.BUFFER),
        ({"receive_window": 0.9}, (tried,), "No other congestion control carries clearly more than cubic."),
        ({"congestion_window": 0.55, "application": 0.43}, (), words.PAUSES),
        ({"congestion_window": 0.9, "application": 0.1}, (), "No other congestion control carries clearly more than cubic."),
        ({"application": 0.9}, (pace,), words.APPLICATION),
    ):
        one = diagnosed(flow(goodput_mbps=5.0), path=small, limited_by=shares, advice=replace(same, settings=settings))
        assert words.answer(one).endswith(end)


def test_a_full_bottleneck_that_drops_much_says_so():
    full = replace(observations.PATH, queue_loss_pct=Estimate(4.2, 4.0, 4.4, 900, "%"))
    said = "18.8 of its 20.0 Mbit/s, and its full queue drops 4.2 % of the packets"
    assert said in words.answer(diagnosed(flow(goodput_mbps=18.8), path=full))
    managed = replace(full, buffer_bytes=None, reasons={"buffer_bytes": Reason("drops at many lengths")})
    assert said.replace("full ", "") in words.answer(diagnosed(flow(goodput_mbps=18.8), path=managed))
    unsure = replace(full, queue_loss_pct=Estimate(4.2, 0.0, 4.4, 900, "%"))  # they may as well be the path's
    assert "queue drops" not in words.answer(diagnosed(flow(goodput_mbps=18.8), path=unsure))


def test_the_table_names_no_control_where_only_the_application_could_make_it_faster():
    for share, is_alone in ((0.8, True), (0.6, False)):
        one = diagnosed(flow(goodput_mbps=5.0), limited_by={"application": share, "congestion_window": 1 - share}, advice=observations.BBR)
        assert (words.APPLICATION in words.answer(one)) is is_alone
        assert ("bbr, 3.20" in answer.of_flow(one).text(300)) is not is_alone
        assert ("bbr" in answer.summary(whole(one)).text(300)) is not is_alone


@pytest.mark.parametrize(("missing", "facts"), [(0.6, {}), (0.0, {"acks_missing": True}), (0.4, {}), (0.6, {"segment_stride": 2})])
def test_a_capture_that_lacks_the_packets_does_not_tell_what_held_the_flow(missing, facts):
    """Of 5.4 GB of a public capture 47 frames are in it, and the application was told for all of its time."""
    held = {"application": 0.9, "congestion_window": 0.1}
    seen = flow(
        goodput_mbps=5.0, limits=held, segments={"t": np.arange(60), "len": np.full(60, 1000)}, bytes=round(60_000 / (1 - missing)), facts=facts
    )
    doubted = limits.doubted(seen)
    assert (doubted.limits_doubt == "packets_missing") is ((missing > 0.5 and not facts) or "acks_missing" in facts)
    if doubted.limits_doubt:
        one = diagnosed(doubted, limited_by=limits.shares_of(doubted), replay=None, advice=None)
        assert (
            "What limits you is not identifiable here: the capture lacks the acknowledgements, most of the data or all packets of a time"
            in words.answer(one)
        )
        assert "tcpdump -i any -B 65536 " in next_look.what_to_ask(whole(one))


def test_what_a_capture_of_acknowledgements_alone_does_not_show_has_that_reason():
    seen = flow(packets=0, facts={"data_missing": True}, segments={"t": np.arange(0)})
    one = diagnosis.before_replay(seen, DiagnosisSettings())
    assert {one.not_identifiable[part].why for part in ("limited_by", "cca", "path.rtt_ms", "path.loss_pct")} == {"data missing"}


def test_a_single_packet_has_no_rate_and_asks_for_no_other_capture():
    one = diagnosed(flow(packets=1, goodput_mbps=45.2, vantage="receiver", segments={"t": np.arange(1)}), control="unknown")
    shown = answer.of_flow(one).text(200)
    assert "a single packet has no rate" in shown
    assert "45.2" not in shown
    assert not next_look.what_to_ask(whole(one))


@pytest.mark.parametrize(("doubt", "capture_again"), [("far_from_sender", "at the sender"), ("no_timestamps", "with timestamps")])
def test_what_the_packets_do_not_show_is_not_blamed_on_anybody(doubt, capture_again):
    held = {"unknown": 0.95, "recovery": 0.05}
    seen = flow(goodput_mbps=12.0, limits=held, facts={"limits_doubt": doubt})
    one = diagnosed(seen, limited_by=held, replay=None, advice=None)
    text = words.answer(one)
    assert "What limits you is not identifiable here: " in text
    assert capture_again in text
    assert "application" not in text
    assert "only the application" not in answer.screen(whole(one)).text(verbose=True)
    (plain,) = answer.document(whole(one))["flows"]
    assert (plain["limited_by"], plain["facts"]["limits_doubt"]) == (held, doubt)
    assert capture_again in plain["not_identifiable"]["limited_by"]
    for cause in ("application", "receive_window"):  # either may have a part of what is unknown
        with pytest.raises(TcpscapeError, match="is not identifiable"):
            checked.verdicts(checked.read_checks([f"limited:{cause} < 20%"]), whole(one), reasons.text)
    known = diagnosed(seen, limited_by={"receive_window": 0.99, "unknown": 0.01})
    assert "the receiver's window (99 % of the time)" in words.answer(known)
    assert "limited_by" not in known.not_identifiable
    assert "the bottleneck: it is full" in words.answer(diagnosed(replace(seen, goodput_mbps=18.5), limited_by=held))


def test_a_replay_of_a_flow_in_doubt_says_what_it_assumes():
    doubted, sure = (
        fitted(flow(limits={"unknown": 0.9, "recovery": 0.1}, facts=facts), observations.PATH) for facts in ({"limits_doubt": "no_timestamps"}, {})
    )
    assert doubted.assumptions[0].kind == "busy sender"
    assert not any(one.kind == "busy sender" for one in sure.assumptions)


def values(alias):
    """Every value of a Literal, also of one that may be None."""
    parts = [part for part in get_args(alias) if part is not type(None)]
    return tuple(value for part in parts for value in (get_args(part) or (part,)))


@pytest.mark.parametrize(
    ("phrases", "named"),
    [
        (words.NAMES, Cause),
        (reasons.SENTENCES, Why),
        (answer.PLACES, Vantage),
        (answer.SIDES, Side),
        (words.VERDICTS, ChoiceVerdict),
        (answer.COMPARED, ChoiceVerdict),
        (answer.QUEUES, get_type_hints(FittedPath)["queue"]),
        (answer.REPLAYS, get_type_hints(Replay)["verdict"]),
    ],
)
def test_every_value_has_its_phrase(phrases, named):
    assert set(phrases) == set(values(named))


@pytest.mark.parametrize("verdict", get_args(ChoiceVerdict))
@pytest.mark.parametrize("choice", ["cubic", "bbr", None])
def test_every_verdict_is_a_sentence(verdict, choice):
    advised = ReplayAdvice(choice, choice and observations.estimate(1.1), verdict)
    one = diagnosed(advice=advised)
    said = words.advice_sentence(one)
    assert re.fullmatch(r"[A-Za-z].*\.", said)
    assert not re.search(rf": {verdict}\.$|None", said), said
    assert "None" not in answer.screen(whole(one)).text()


@pytest.mark.parametrize("kind", get_args(get_type_hints(PathChange)["kind"]))
@pytest.mark.parametrize("queue", values(get_type_hints(FittedPath)["queue"]))
def test_no_screen_shows_the_name_of_a_value(kind, queue):
    path = replace(observations.PATH, queue=queue, changes=(PathChange(8.0, kind, 20.0, 5.0),))
    shown = answer.screen(whole(diagnosed(path=path, limited_by={"congestion_window": 0.5, "receive_window": 0.5}))).text(200, verbose=True)
    assert not re.search(r"self-induced|congestion_window|receive_window|queue: ", shown)


def whole(*parts, others=(), **fields):
    """A diagnosis of these flows."""
    return Diagnosis(observation(*(one.flow for one in parts), *others, **fields), parts, others)


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_answer_of_a_situation(name):
    text = words.answer(SITUATIONS[name])
    at = 0
    for part in SAYS[name]:
        assert part in text[at:], text
        at = text.index(part, at)
    assert text.count(". ") == 2
    assert text.endswith(".")


@pytest.mark.parametrize("width", [60, 80, 150])
@pytest.mark.parametrize("name", SITUATIONS)
def test_a_screen_fits(name, width):
    for verbose in (False, True):
        shown = answer.screen(whole(SITUATIONS[name], others=(flow(80, bytes=100),))).text(width, verbose=verbose)
        lines = shown.splitlines()
        assert max(map(len, lines)) <= width, shown
        assert sum(line.startswith("→ ") for line in lines) == 1
        assert verbose or len(lines) <= 60


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_document_fits_its_schema(name):
    value = json.loads(json.dumps(answer.document(whole(SITUATIONS[name])), allow_nan=False))
    jsonschema.Draft202012Validator(DOCUMENTS["diagnosis"].schema()).validate(value)
    (one,) = value["flows"]
    assert {"tuple", "packets", "bytes", "seconds", "vantage", "goodput_mbps", "cca", "limited_by", "path", "zone", "replay", "advice"} <= one.keys()
    assert {"rtt_ms", "jitter_ms", "order_kept", "loss_pct", "rate_mbps", "buffer_bytes"} <= one["path"].keys()
    assert all(value is None or isinstance(value, str | list) or {"value", "low", "high"} == value.keys() for value in one["path"].values())
    assert one["answer"] == words.answer(SITUATIONS[name])


def test_numbers_that_json_has_not_are_null():
    assert formats.finite({"a": math.nan, "b": [math.inf, 1.5], "c": (True, None, "x")}) == {"a": None, "b": [None, 1.5], "c": [True, None, "x"]}


def test_the_largest_flows_are_diagnosed_and_the_others_counted():
    flows = [flow(1, bytes=10**8), flow(2, bytes=10**7), flow(3, bytes=5 * 10**6), flow(4, bytes=4 * 10**6), flow(5, bytes=99)]
    result = diagnosis.diagnose(observation(*flows[::-1]), DiagnosisSettings(3))
    assert [one.flow.destination.port for one in result.flows] == [1, 2, 3]
    assert [one.destination.port for one in result.others] == [5, 4]
    assert len(observed.chosen(observation(*flows), 5)) == 4  # the one of 99 bytes is no transfer
    assert len(observed.chosen(observation(*flows), 5, ":5")) == 1
    shown = answer.screen(result).text(80)
    assert "2 other flows, not diagnosed" in shown
    assert "10.0.0.1:40000 → 10.0.0.2:1, with 84 % of the bytes" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        (":443", [443]),
        ("10.0.0.2:80", [80]),
        ("10.0.0.1:40000-10.0.0.2:80", [80]),
        ("10.0.0.2:80 -> 10.0.0.1", [80]),
        ("10.0.0.1", [443, 80]),
        ("10.0.0.2:443→10.0.0.1:40000", [443]),
        ("10.0.0.2,:40000", [443, 80]),
    ],
)
def test_a_flow_is_named_by_its_ends(text, ports):
    assert [one.destination.port for one in observed.matching(observation(flow(443), flow(80)), text)] == ports


def test_an_address_of_ipv6_has_brackets():
    six = observations.SocketAddress("2001:db8::1", 443)
    assert (six.text, observations.SocketAddress("", 0).text, observations.SocketAddress("10.0.0.1", 0).text) == (
        "[2001:db8::1]:443",
        "?",
        "10.0.0.1",
    )
    seen = observation(observations.ObservedFlow(six, observations.SocketAddress("fe80::1", 5), 1, 1, 1.0, 0.0, "sender", 1.0))
    for text in ("[2001:db8::1]:443", "2001:db8::1", "[fe80::1]:5,[2001:db8::1]", "fe80::1"):
        assert len(observed.matching(seen, text)) == 1


def test_a_flow_whose_both_ends_are_sockets_of_this_machine_is_diagnosed_once_as_its_sender_shows_it():
    ends = (flow(vantage="receiver", bytes=67_500_001), flow(vantage="sender"))
    result = diagnosis.diagnose(observation(*ends, kind="sockets"), DiagnosisSettings())
    assert [one.flow.vantage for one in result.flows] == ["sender"]
    assert not result.others
    assert len(diagnosis.diagnose(observation(*ends), DiagnosisSettings()).flows) == 2  # of a capture these are two connections


def test_a_queue_that_drops_more_than_is_lost_at_random_is_what_is_blamed():
    path = observations.fitted(rtt_ms=50.0, loss_pct=0.02, queue_loss_pct=2.9, rate_mbps=40.0)
    said = words.answer(diagnosed(path=path, limited_by={"congestion_window": 0.9}))
    assert "the full queue of the bottleneck drops 2.9 % of the packets" in said
    assert "random loss of" not in said.partition("What limits you")[2]


def test_what_contradicts_itself_is_told_as_a_doubt():
    """A sender without data to send fills no bottleneck; a loss whose interval begins at 0 is at most its end."""
    path = observations.fitted(rtt_ms=50.0, loss_pct=Estimate(0.0, 0.0, 0.4, 900, "%"), rate_mbps=10.0)
    one = diagnosed(flow(goodput_mbps=9.5), path, limited_by={"application": 0.8, "congestion_window": 0.2}, advice=None)
    said = words.answer(one)
    assert "not identifiable here: you get 9.50 of the bottleneck's 10.0 Mbit/s, as if it were full, and yet" in said
    assert "it is full" not in said
    assert "only the application" not in said
    assert "at most 0.40 % of random loss" in said
    assert "it is full" in words.answer(diagnosed(flow(goodput_mbps=9.5), path, limited_by={"congestion_window": 0.9}))


def test_a_wide_interval_is_told_by_its_ends_and_a_queue_is_called_what_it_is():
    wide = observations.fitted(rtt_ms=Estimate(41.8, 41.7, 77.0, 900, "ms"), rate_mbps=20.0)
    assert "a round trip between 41.7 and 77.0 ms" in words.path_sentence(diagnosed(path=wide))
    assert "a round trip of 41.8 ms" in words.path_sentence(diagnosed(path=observations.fitted(rtt_ms=Estimate(41.8, 41.7, 42.0, 900, "ms"))))
    assert words.dropping(wide) == "the full queue of the bottleneck"
    many = replace(wide, buffer_bytes=None, reasons={"buffer_bytes": Reason("drops at many lengths")})
    assert words.dropping(many) == "the queue of the bottleneck"
    assert words.dropping(replace(wide, rate_mbps=None)) == "a full queue, a policer or a bursty link"


@pytest.mark.parametrize(("rate", "says"), [(Estimate(8, 7.9, 8.1, 9), "the queue adds 44 ms"), (None, "the flow's median is 44 ms longer")])
def test_a_delay_is_a_queues_where_a_queue_was_seen(rate, says):
    """An RTT of 20 ms of which the flow's packets have 64 at the median."""
    one = diagnosed(flow())
    one = replace(one, replay=replace(one.replay, observed_rtt_ms=64.0), path=replace(one.path, rtt_ms=Estimate(20, 19, 21, 9), rate_mbps=rate))
    assert next(remark for what, _, remark in answer._rows(one) if what == "RTT of the path") == says


@pytest.mark.parametrize(
    ("why", "values", "says"),
    [("jitter hidden", {"ms": 141.3}, "up to 141 ms that changes their order"), ("other direction unresolved", {"ms": 141.3}, "up to 141 ms that")],
)
def test_a_bound_of_the_jitter_has_no_exponent(why, values, says):
    assert says in reasons.text(Reason(why, values))


@pytest.mark.parametrize("why", ["no queue grew", "queue of unknown rate", "few round trips"])
def test_a_reason_claims_no_more_than_was_seen(why):
    """A queue may have grown where no delay of the data is seen, a policer has no queue, and 40 s on a slow path are few round trips too."""
    assert not any(claim in reasons.text(Reason(why)) for claim in ("the flow made no queue", "dropped by a queue", "30 s"))


def test_a_reason_that_the_answer_has_is_not_repeated_in_its_table():
    why = Reason("no RTT of the path", {"reason": Reason("few delays measured")})
    assert (reasons.brief(why), reasons.brief(Reason("no replay"))) == ("the RTT of the path is not known", "no replay was asked for")
    assert "too few delays" in reasons.text(why)


def test_parts_that_contradict_each_other_are_not_both_told():
    reno, bbr = (RecognisedControl(name, 0.96, {name: 0.96}, Reason("recognised")) for name in ("reno", "bbr"))
    idle, busy = {"application": 0.7, "send_buffer": 0.15}, {"application": 0.7, "congestion_window": 0.3}
    assert diagnosis._uncontradicted(reno, idle).reason == Reason("application held", {"share": pytest.approx(0.85), "of": "time"})
    assert diagnosis._uncontradicted(reno, busy) is reno
    assert diagnosis._uncontradicted(bbr, idle) is bbr, "a pace shows all the same"
    repairing = {"application": 0.49, "recovery": 0.49, "congestion_window": 0.02}
    assert diagnosis._uncontradicted(reno, repairing).reason == Reason("application held", {"share": pytest.approx(0.49 / 0.51), "of": "time"}), (
        "nothing else shows"
    )
    path = observations.fitted(rate_mbps=20.0, buffer_bytes=90_000.0)
    assert diagnosis._slower(path, flow(goodput_mbps=19.0)) is path
    slower = diagnosis._slower(path, flow(goodput_mbps=22.0))
    assert (slower.rate_mbps, slower.buffer_bytes, slower.reasons["rate_mbps"].why) == (None, None, "carried more")
    assert "and the flow carried 22 Mbit/s" in reasons.text(slower.reasons["rate_mbps"])


def test_a_source_without_flows_says_so():
    shown = answer.screen(whole(notes=("It ends in the middle of a packet.",))).text(80)
    assert "→ There is no flow with data in it" in shown
    assert "caveat: It ends in the middle of a packet." in shown


@pytest.mark.parametrize(
    ("syns", "answers", "is_reset", "says", "next_"),
    [
        (
            7,
            0,
            False,
            "7 SYNs in 63.0 s and no answer. A host on which nobody listens answers with a reset (RST): silence is",
            "on 10.0.0.2: tcpdump",
        ),
        (1, 0, False, "1 SYN and no answer. A second SYN would follow after a second (RFC 6298 §2)", "on 10.0.0.2: tcpdump"),
        (
            1,
            0,
            True,
            "1 SYN in 63.0 s, ended by a reset (RST). If the other end sent it, packets pass in both directions",
            "on 10.0.0.2: ss -ltn sport = :5201",
        ),
        (1, 1, True, "1 SYN and 1 SYN-ACK in 63.0 s, ended by a reset. If whoever asked sent it, they did not want the connection", ""),
        (1, 3, False, "1 SYN and 3 SYN-ACKs in 63.0 s, and no ACK completes the handshake.", "on 10.0.0.1: tcpdump -n -i any host 10.0.0.2 and tcp"),
    ],
)
def test_a_connection_that_was_not_established_is_told(syns, answers, is_reset, says, next_):
    ends = SocketAddress("10.0.0.1", 40000), SocketAddress("10.0.0.2", 5201)
    counts = {"unanswered": 0, "refused": 0, "half_open": 0} | {"half_open" if answers else "refused" if is_reset else "unanswered": 1}
    facts = {"frames": 8, "packets": 8, "flows": {"connections": 1, **counts}}
    seen = replace(whole(), observation=replace(observation(), facts=facts, attempt=Attempt(*ends, syns, answers, is_reset, 63.0)))
    said = answer.screen(seen).answer
    assert f"No connection was established: 10.0.0.1:40000 → 10.0.0.2:5201, {says}" in said
    asked = next_look.what_to_ask(seen)
    assert asked.startswith(next_)
    assert bool(asked) == bool(next_)
    document = answer.document(seen)
    jsonschema.validate(document, DOCUMENTS["diagnosis"].schema())
    assert document["source"]["attempt"]["tuple"] == ["10.0.0.1", 40000, "10.0.0.2", 5201]
    icmp = replace(seen, observation=replace(seen.observation, facts={**facts, "skipped": {"not_tcp": 2}}))
    assert any("2 packets of other" in line for line in answer.screen(icmp).caveats) is (not answers)
    hidden = Pseudonyms().observation(seen.observation).attempt
    assert hidden is not None
    assert (hidden.source.address != "10.0.0.1", hidden.destination.port) == (True, 5201)
    several = replace(seen, observation=replace(seen.observation, facts={**facts, "flows": {**facts["flows"], "connections": 3}}))
    assert "nothing to diagnose: of 3 connections none carries any; 1 " in answer.screen(several).answer
    beside = answer.what_weakens(replace(seen, flows=[diagnosed(flow())]))
    assert any(line.startswith("1 other connection asked for and not established (1 ") for line in beside)


def test_a_capture_without_tcp_says_so():
    facts = {"frames": 12, "packets": 0, "flows": {"connections": 0, "unanswered": 0, "refused": 0, "half_open": 0}}
    seen = replace(whole(), observation=replace(observation(), facts=facts))
    assert answer.screen(seen).answer == "There is no TCP packet among its 12 frames, so there is nothing to diagnose."
    seen = replace(seen, observation=replace(seen.observation, facts={**facts, "frames": 0}))
    assert answer.screen(seen).answer == "There is no TCP packet, so there is nothing to diagnose."


def test_the_control_that_is_said_or_named_needs_no_evidence():
    for seen, said, reason in (
        (flow(cca="reno"), None, "named by the source"),
        (flow(cca="reno"), "bbr", "named by the user"),
        (flow(), "bbr", "named by the user"),
    ):
        (one,) = diagnosis.diagnose(observation(seen), DiagnosisSettings(cca=said)).flows
        assert (one.control.name, one.control.confidence, one.control.reason) == (said or "reno", 1.0, Reason(reason))
    (one,) = diagnosis.diagnose(observation(flow())).flows
    assert one.control.name == "unknown"


def test_the_shares_of_the_limits_are_of_the_time():
    (one,) = diagnosis.diagnose(observation(flow(limits={"application": 0.25, "receive_window": 0.75}))).flows
    assert one.limited_by == pytest.approx({"receive_window": 0.75, "application": 0.25})
    assert list(one.limited_by) == ["receive_window", "application"]
    (one,) = diagnosis.diagnose(observation(flow())).flows
    assert one.limited_by is None
    assert one.not_identifiable["limited_by"]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("rtt_ms < 80ms", True),
        ("rtt_ms < 0.04s", False),
        ("rtt_ms.high < 51ms", False),
        ("jitter_ms < 1", True),
        ("loss_pct < 1%", True),
        ("rate_mbps > 10mbit", True),
        ("buffer_bytes < 100000", False),
        ("goodput_mbps[cca=cubic] > 15", True),
        ("gain <= 1", True),
        ("limited:receive_window < 20%", True),
        ("limited:congestion_window[flow=1] > 90%", True),
        ("confidence > 0.9", True),
        ("replay_mbps.low > 16", True),
    ],
)
def test_checks_hold_or_do_not(text, holds):
    result = whole(diagnosed(limited_by={"congestion_window": 1.0}))
    (verdict,) = checked.verdicts(checked.read_checks([text]), result, reasons.text)
    assert verdict.holds == holds
    assert verdict.line().startswith("holds: " if holds else "FAILS: ")


def test_what_is_not_identifiable_cannot_be_checked():
    for text, why in (("buffer_bytes > 1", "It needs the base RTT"), ("gain > 1", "not identifiable"), ("rtt_ms[flow=2] > 1", "chooses none")):
        path = observations.fitted(rtt_ms=50.0, reasons={"buffer_bytes": Reason("needs base RTT")})
        with pytest.raises(TcpscapeError, match=why):
            checked.verdicts(checked.read_checks([text]), whole(diagnosed(path=path, advice=None)), reasons.text)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_page_opens_offline_with_every_answer(name, tmp_path):
    file = report.build(whole(SITUATIONS[name]), tmp_path / "page.html", "tcpscape diagnose slow.pcap --report page.html", "0.1.0")
    page = file.read_text("utf-8")
    assert words.answer(SITUATIONS[name]) in html.unescape(re.sub(r"</?a\b[^>]*>", "", page)), "with links at its terms"
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]', page)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_page_has_the_figures_of_what_was_seen(tmp_path):
    one = diagnosed(observations.traced(), limited_by={"congestion_window": 1.0})
    page = report.build(whole(one), tmp_path / "page.html", "x", "0.1.0").read_text("utf-8")
    for name in ("flow-1-timeline", "flow-1-timeline-narrow", "flow-1-replay"):
        assert f'id="{name}' in page
    for text in (
        "delivered,",
        "RTT, ms",
        "in flight, kB",
        "limited by,",
        "fast retransmission",
        "window closed",
        "addresses on this page",
        "10.0.0.1, 10.0.0.2",
    ):
        assert text in page, text


def test_the_curves_of_a_flow_are_those_of_its_rows():
    seen = observations.traced(seconds=10.0, rate=12e6, facts={"segment_stride": 2})
    times, rates = figures.delivered(seen)
    assert times[0] == pytest.approx(10 / figures.BINS)
    assert rates[len(rates) // 4 : -len(rates) // 4].mean() == pytest.approx(24.0, rel=0.02)  # every row stands for two segments
    at, rtts = figures.round_trips(seen)
    assert 49 < np.median(rtts) < 55
    assert (at[0], at[-1]) == (pytest.approx(0.05, abs=0.01), pytest.approx(10.05, abs=0.02))
    assert set(figures.in_flight(seen)) == {"in flight", "receive window"}
    assert figures.delivered(flow()) is figures.round_trips(flow()) is figures.in_flight(flow()) is None


def test_the_shares_of_an_interval_add_up():
    edges = np.arange(0.0, 11.0)
    held = figures._held([(0.5, 2.25), (4.0, 4.5), (9.75, 12.0)], edges)
    assert held == pytest.approx([0.5, 1, 0.25, 0, 0.5, 0, 0, 0, 0, 0.25])


def test_the_fitted_path_runs(tmp_path, need_model):
    import tcpscape

    file = fitted_path.write(whole(SITUATIONS["random loss"]), tmp_path / "path.yaml")
    scenario = tcpscape.load(str(file))
    assert scenario.bottleneck
    assert scenario.flows[0].cca == "cubic"
    assert re.search(r"loss: 0.5%.*0.500 % \[0.475, 0.525\]", file.read_text("utf-8"))
    for nothing in (whole(SITUATIONS["nothing identifiable"]), whole()):
        with pytest.raises(TcpscapeError, match=r"^out: there is no path to write: "):
            fitted_path.write(nothing, tmp_path / "none.yaml")
    assert not (tmp_path / "none.yaml").exists()


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """A capture of the model: 20 Mbit/s, 40 ms, 0.15 % of loss, a flow of cubic; made once."""
    from tcpscape.cli.main import call

    file = tmp_path_factory.mktemp("capture") / "slow.pcapng"
    path = file.with_suffix(".yaml")
    path.write_text(
        "forward: [{at: router, delay: 20ms, loss: 0.15%}]\nbottleneck: tbf rate 20mbit burst 10kb limit 300kb\nreverse: [{at: router, delay: 20ms}]\n"
    )
    assert call(["run", str(path), "--cca", "cubic", "--duration", "8s", "--seeds", "1", "--pcap", str(file), "--quiet"]) == 0
    return file


def test_a_capture_is_diagnosed(cli, need_model, capture, tmp_path):
    words = ("diagnose", capture, "--no-replay")
    shown = cli(*words)
    assert shown.status == 0, shown.err
    assert "→ Your path has a round trip of 40." in shown.out
    (value,) = cli(*words, "--json").lines
    validator = jsonschema.Draft202012Validator(DOCUMENTS["diagnosis"].schema())
    validator.validate(value)
    (one,) = value["flows"]
    assert one["path"]["rtt_ms"]["value"] == pytest.approx(40, rel=0.03)
    assert one["not_identifiable"]["advice"] == "no replay was asked for"
    assert one["bytes"] / one["seconds"] * 8e-6 == pytest.approx(one["goodput_mbps"], rel=0.1)
    assert sum(one["limited_by"].values()) == pytest.approx(1)
    assert cli(*words, "--quiet").out.count("\n") == 1
    assert cli(*words, "--quiet", "--check", "rtt_ms < 80ms").status == 0
    assert cli(*words, "--quiet", "--check", "rtt_ms < 30ms").status == 1
    again = cli("diagnose", capture, "--no-replay", "--flow", f"{one['tuple'][2]}:{one['tuple'][3]}", "--cca", "cubic", "--json").lines[0]
    assert again["flows"][0]["cca"] == {"name": "cubic", "confidence": 1.0, "candidates": {"cubic": 1.0}, "reason": "You said so."}


def test_every_file_of_a_diagnosis_is_written_and_names_nobody(cli, need_model, capture, tmp_path):
    names = {"out": "path.yaml", "report": "page.html", "annotate": "out.pcapng", "xplot": "out.xpl"}
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in names.values():
        (kept / name).touch()
        (tmp_path / name).symlink_to(kept / name)
    files_ = [word for option, name in names.items() for word in (f"--{option}", tmp_path / name)]
    result = cli("diagnose", capture, "--no-replay", "--anonymise", "--flow", "10.0.0.1", *files_)
    assert result.status == 0, result.err
    assert "198.18.0.1" in result.out
    assert str(capture) not in result.out
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_symlink()) == sorted(p.name for p in kept.iterdir()) == sorted(names.values())
    for name in ("path.yaml", "page.html", "out.xpl"):
        text = (tmp_path / name).read_text("utf-8")
        assert "10.0.0.1:" not in text
        assert str(capture) not in text
    noted = observing.observe(str(tmp_path / "out.pcapng"))
    assert [one.source.address for one in noted.flows] == ["198.18.0.1"]
    assert b"diagnosis of this flow: Your path has" in (tmp_path / "out.pcapng").read_bytes()
    assert cli("run", tmp_path / "path.yaml", "--duration", "1s", "--seeds", "1").status == 0


SS = """ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5201
\t cubic wscale:7,7 rto:204 rtt:50.1/0.5 mss:1448 cwnd:10 bytes_sent:1000000 bytes_acked:999000 segs_out:700 send 2Mbps delivery_rate 2Mbps busy:4000ms
"""
"""What `ss -tin` prints of a connection."""


def test_output_of_ss_is_diagnosed(cli, tmp_path):
    (tmp_path / "ss.txt").write_text(SS)
    (value,) = cli("diagnose", tmp_path / "ss.txt", "--no-replay", "--json").lines
    assert value["source"]["kind"] == "ss"
    (one,) = value["flows"]
    assert one["cca"]["name"] == "cubic"
    assert one["packets"] is None or one["packets"] >= 0
    jsonschema.Draft202012Validator(DOCUMENTS["diagnosis"].schema()).validate(value)


def test_python_says_the_same(need_model, capture, tmp_path, cli):
    import tcpscape

    result = tcpscape.diagnose(capture, replay=False, out=tmp_path / "path.yaml")
    (value,) = cli("diagnose", capture, "--no-replay", "--json").lines
    assert json.loads(json.dumps(answer.document(result)))["flows"] == value["flows"]
    assert tcpscape.load(str(tmp_path / "path.yaml")).flows


@pytest.mark.parametrize("name", SITUATIONS)
def test_terms_of_a_flows_table_are_glossed_under_it(name):
    table = answer.of_flow(SITUATIONS[name])
    cells, notes = [cell for row in table.rows for cell in row], " ".join(table.notes)
    assert ("not identifiable: the measurement cannot show it" in notes) == ("not identifiable" in cells)
    assert ("zone: which side of its cliff; cliff: " in notes) == ("zone" in cells)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (136.3, 142.8, "between 136 and 143 ms"),
        (134.0, 139.2, "of 137 ms"),
        (136.3, 138.0, "of 137 ms"),
        (130.0, 137.0, "between 130"),
        (0.06, 137.0, "of at most 137 ms"),
    ],
)
def test_a_round_trip_whose_interval_is_on_one_side_has_its_ends(low, high, said):
    """Of 136.6 ms with [136.3, 142.8] one number was told, and 140.4 was true."""
    path = replace(observations.PATH, rtt_ms=Estimate(136.6, low, high, 99, "ms"))
    assert f"a round trip {said}" in words.path_sentence(diagnosed(flow(), path=path))
