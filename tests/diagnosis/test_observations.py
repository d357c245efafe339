"""Observations of what is no capture: text of ss, iperf3, Flent, results; what held a flow by the kernel's counters."""

import contextlib
import gzip
import json
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

import forked
from conftest import TESTS
from patience import PATIENCE_S
from tcpscape.errors import TcpscapeError
from tcpscape.findings.diagnosis import counters, limits
from tcpscape.findings.diagnosis.observed import Observation, ObservedFlow
from tcpscape.interchange import observing, tcp_info

DATA = TESTS / "data"
SS = DATA / "ss"


def flow_to(observation: Observation, address: str, port: int) -> ObservedFlow:
    return next(flow for flow in observation.flows if (flow.destination.address, flow.destination.port) == (address, port))


def shares(flow: ObservedFlow) -> dict[str, float]:
    """Cause → share of the time."""
    whole = sum(i.end_s - i.start_s for i in flow.limits)
    found: dict[str, float] = {}
    for i in flow.limits:
        found[i.cause] = found.get(i.cause, 0.0) + (i.end_s - i.start_s) / whole
    return found


class TestIperf3:
    @pytest.mark.parametrize(("name", "held"), [("half-second", {"application": 1.0}), ("server", {"application": 1.0}), ("up-2", {})])
    def test_a_stream_that_sends_as_it_was_told_is_held_by_that(self, name, held) -> None:
        flow = observing.observe(DATA / "interchange" / f"iperf3-{name}.json").flows[0]
        assert limits.shares_of(flow) == held

    @pytest.mark.parametrize(("share", "held"), [(0.95, {}), (0.964, {}), (0.967, {"application": 1.0})])
    def test_a_link_as_fast_as_a_stream_was_told_may_hold_it(self, share, held, tmp_path) -> None:
        document = json.loads((DATA / "interchange" / "iperf3-half-second.json").read_text())
        measured = observing.observe(DATA / "interchange" / "iperf3-half-second.json").flows[0].goodput_mbps
        document["start"]["test_start"]["target_bitrate"] = int(measured * 1e6 / share)
        (tmp_path / "a.json").write_text(json.dumps(document))
        assert limits.shares_of(observing.observe(tmp_path / "a.json").flows[0]) == held

    @pytest.mark.parametrize(
        ("windows", "again", "control", "doubt"),
        [
            ((10, 100), 0, "cubic", "unused_window"),
            ((10, 100), 0, "reno", "unused_window"),
            ((10, 100), 0, "bbr", None),  # a full window of it stays as it is
            ((10, 100), 1, "cubic", None),  # a loss may have made it as it is
            ((10, 100, 100, 100, 100, 100, 100, 100, 101), 0, "cubic", None),
        ],
    )
    def test_a_window_that_stays_the_same_without_a_loss_is_not_full(self, windows, again, control, doubt, tmp_path) -> None:
        document = json.loads((DATA / "interchange" / "iperf3-up-2.json").read_text())
        socket = document["start"]["connected"][0]["socket"]
        document["end"]["sender_tcp_congestion"] = control
        sizes = (*windows, *[windows[-1]] * (12 - len(windows)))
        size = document["start"]["tcp_mss_default"]
        rows = [
            {"socket": socket, "start": i, "end": i + 1, "bytes": 10**6, "retransmits": again, "snd_cwnd": n * size, "rtt": 40_000, "sender": True}
            for i, n in enumerate(sizes)
        ]
        document["intervals"] = [{"streams": [row]} for row in rows]
        (tmp_path / "a.json").write_text(json.dumps(document))
        flow = next(f for f in observing.observe(tmp_path / "a.json").flows if f.samples)
        found = limits.doubted(flow)
        assert (found.limits_doubt, limits.shares_of(found)) == (doubt, {"unknown": 1.0} if doubt else {})


class TestSs:
    def test_lists_with_times_are_samples_of_both_ends(self) -> None:
        observation = observing.observe(SS / "6.1-timed.txt")
        assert (observation.kind, observation.facts["lists"]) == ("ss", 3)
        sender, receiver = (next(f for f in observation.flows if f.vantage == v) for v in ("sender", "receiver"))
        assert (sender.source, sender.destination) == (receiver.source, receiver.destination)
        assert sender.bytes == 13_238_310 - 5_636_134
        assert sender.seconds == pytest.approx(1795365943.525362655 - 1795365942.227195940)
        assert sender.goodput_mbps == pytest.approx(sender.bytes * 8e-6 / sender.seconds)
        assert sender.cca == "cubic"
        assert receiver.cca is None
        assert not receiver.samples
        assert "sample the sender" in receiver.facts["as_receiver"]
        assert sender.samples["rtt"].tolist() == pytest.approx([664, 70, 54])
        assert (sender.samples["sndbuf"].tolist(), sender.facts["dsacks"]) == ([3_939_840] * 3, 0)
        assert (sender.facts["timestamps"], sender.facts["ecn"], sender.facts["segment_size"]) == (True, False, 65_464)
        assert shares(sender) == {"application": 1.0}  # iperf3 held it to 50 Mbit/s

    def test_an_old_version_without_byte_counters_still_has_a_window_and_an_rtt(self) -> None:
        observation = observing.observe(SS / "3.16.txt")
        (flow,) = observation.flows
        assert (flow.source.address, flow.destination.port, flow.cca, flow.bytes) == ("10.0.0.1", 5201, "cubic", None)
        assert (flow.samples["rtt"].tolist(), flow.facts["retransmissions"]) == ([50_500], 37)
        assert flow.goodput_mbps is None
        assert not flow.limits

    def test_names_of_ports_and_devices_and_units_of_rates_are_read(self) -> None:
        flow = flow_to(observing.observe(SS / "4.20-names.txt"), "203.0.113.9", 443)
        assert (flow.source.address, flow.cca, flow.facts["ecn"]) == ("192.168.1.5", "bbr", True)
        assert flow.seconds == 2
        assert flow.samples["delivery_rate"].tolist() == pytest.approx([20.9e6 / 8] * 2)
        assert flow.samples["bbr_bw"][0] == pytest.approx(21.4e6 / 8)
        assert flow.samples["delivery_rate_app_limited"].tolist() == [0, 1]
        assert flow.facts["retransmissions"] == 3
        assert shares(flow) == pytest.approx({"receive_window": 0.25, "send_buffer": 0.002, "application": 0.748}, abs=0.01)

    def test_without_times_the_time_busy_stands_for_it_and_it_is_said(self) -> None:
        observation = observing.observe(SS / "6.1-untimed.txt")
        assert any("date +%s.%N" in note for note in observation.notes)
        sender = next(f for f in observation.flows if f.vantage == "sender")
        assert 0 < sender.seconds < 0.1
        assert sender.limits[-1].end_s == sender.seconds

    def test_one_line_for_each_socket_is_one_list(self) -> None:
        observation = observing.observe(SS / "6.1-one_line.txt")
        assert observation.facts["lists"] == 1
        assert any("one moment" in note for note in observation.notes)

    def test_a_connection_whose_counters_fall_is_another_one(self, tmp_path: Path) -> None:
        text = (SS / "4.20-names.txt").read_text()
        first, second = text.split("2024-03-01T12:00:02+01:00\n")
        file = tmp_path / "ss.txt"
        file.write_text("2024-03-01T11:59:00+01:00\n" + second + first)
        assert len([f for f in observing.observe(file).flows if f.vantage == "sender"]) == 2

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("State Recv-Q Send-Q Local Address:Port Peer Address:Port\n", "no socket of ss"),
            ("State Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n", "TCP information"),
            ("State Recv-Q Send-Q Local Address:Port Peer Address:Port\n\0", "NUL byte"),
        ],
    )
    def test_what_has_no_tcp_information_is_refused_in_one_line(self, tmp_path: Path, text: str, problem: str) -> None:
        file = tmp_path / "ss.txt"
        file.write_text(text)
        with pytest.raises(TcpscapeError, match=problem):
            observing.observe(file)

    def test_damaged_text_is_refused_or_read_and_never_a_traceback(self, tmp_path: Path) -> None:
        whole = (SS / "6.1-timed.txt").read_bytes()
        draw = np.random.default_rng(1)
        file = tmp_path / "ss.txt"
        for _ in range(300):
            damaged = bytearray(whole[: draw.integers(60, len(whole))])
            for place in draw.integers(0, len(damaged), draw.integers(0, 40)):
                damaged[place] = draw.choice(np.frombuffer(b"0:9./ \n\t(x-", np.uint8))
            file.write_bytes(damaged)
            with contextlib.suppress(TcpscapeError):
                assert all(math.isfinite(f.seconds) and f.seconds >= 0 for f in observing.observe(file).flows)


class TestTrials:
    def test_flents_file_has_the_controls_name_and_idle_pings(self) -> None:
        (file,) = (TESTS / "data" / "interchange").glob("*.flent.gz")
        observation = observing.observe(file)
        assert observation.kind == "flent"
        assert observation.flows[0].samples.keys() >= {"t_s", "rtt", "snd_cwnd"}
        assert len(observation.flows[0].facts["idle_pings_ms"]) > 5

    def test_a_trials_files_and_lines_are_observed_alike(self, tmp_path: Path) -> None:
        command = [
            *forked.python(),
            "-m",
            "tcpscape",
            "run",
            "--forward",
            "netem delay 25ms",
            "--bottleneck",
            "tbf rate 20mbit burst 10kb limit 100kb",
        ]
        words = [*command, "--cca", "cubic", "--duration", "5s", "--seeds", "1"]
        lines = subprocess.run([*words, "--json"], capture_output=True, check=True, timeout=PATIENCE_S).stdout
        subprocess.run([*words, "--samples", "50ms", "--out", str(tmp_path / "out")], capture_output=True, check=True, timeout=PATIENCE_S)
        (tmp_path / "lines.json").write_bytes(lines)
        (of_lines,) = observing.observe(tmp_path / "lines.json").flows
        (of_directory,) = observing.observe(tmp_path / "out").flows
        assert of_lines.goodput_mbps == of_directory.goodput_mbps == json.loads(lines.splitlines()[0])["flows"][0]["goodput_mbps"]
        assert (of_directory.cca, of_directory.vantage) == ("cubic", "sender")
        assert not of_lines.samples
        assert of_directory.samples["rtt"].max() > 25_000
        assert of_lines.facts["limited_by"]["congestion_window"] > 0.9

    @pytest.mark.parametrize("content", [b"", b"\0\1\2", b"hello\n", b"[1, 2]", b'{"a": 1}', b'{"start": 1}', b'{"metadata": {}, "BATCH_NAME": 1}'])
    def test_what_is_of_no_kind_is_refused_in_one_line(self, tmp_path: Path, content: bytes) -> None:
        for name, raw in (("x", content), ("x.gz", gzip.compress(content))):
            (tmp_path / name).write_bytes(raw)
            with pytest.raises(TcpscapeError):
                observing.observe(tmp_path / name)


class TestLimits:
    """What held a sender, by the kernel's counters."""

    def test_shares_are_those_of_the_counters(self) -> None:
        n = 101
        t = np.linspace(0, 10, n)
        busy = np.minimum(t, 8) * 1e6
        columns = {
            "t_s": t,
            "busy_time": np.floor(busy / 4000) * 4000,
            "rwnd_limited": np.clip(t - 2, 0, 3) * 1e6,
            "unacked": np.full(n, 10.0),
            "snd_cwnd": np.full(n, 10.0),
            "notsent_bytes": np.full(n, 5.0),
            "ca_state": np.where((t > 6) & (t < 7), 3.0, 0.0),
        }
        flow = tcp_info.flows(tcp_info.SampledEnd(*(2 * [_END]), {**columns, "bytes_acked": t * 1e6}, "cubic"))[0]
        assert shares(flow) == pytest.approx({"receive_window": 0.3, "application": 0.2, "recovery": 0.1, "congestion_window": 0.4}, abs=0.025)
        assert all(a.end_s == pytest.approx(b.start_s) for a, b in zip(flow.limits, flow.limits[1:], strict=False))

    def test_a_flow_with_data_on_its_way_but_none_waiting_is_held_by_the_application(self) -> None:
        columns = {
            "t_s": np.arange(3.0),
            "busy_time": np.arange(3) * 1e6,
            "unacked": np.full(3, 4.0),
            "snd_cwnd": np.full(3, 10.0),
            "notsent_bytes": np.zeros(3),
        }
        assert [i.cause for i in counters.of_samples(columns)] == ["application"]
        waiting = {**columns, "notsent_bytes": np.full(3, 1e5)}
        assert [i.cause for i in counters.of_samples(waiting, "bbr")] == ["pacing"]
        assert [i.cause for i in counters.of_samples(waiting, "cubic")] == ["congestion_window"]

    def test_without_the_counters_nothing_is_said(self) -> None:
        assert counters.of_samples({"t_s": np.arange(3.0)}) == ()


_END = tcp_info.SocketAddress("192.0.2.1", 1)
