"""`tcpscape emulate`: the path from options, changes and figures while it runs, and real programs behind it."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import uuid
from pathlib import Path

import pytest

from tcpscape.emulation import answer, control, path, relay
from tcpscape.engines import host
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import changes
from test_schema import expect

REASON = host.unavailable()
live = pytest.mark.skipif(REASON is not None, reason=f"no namespaces here: {REASON}")


def needs(program: str):
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed: apt-get install {program}")


def built(**words) -> path.EmulatedPath:
    return path.build(path.PathWords(**{name: value if isinstance(value, str) else tuple(value) for name, value in words.items()}))


def lib():
    import tcpscape._core

    return tcpscape._core


def test_a_value_is_for_both_directions_or_for_one():
    plan = built(delay=["25ms", "down=5ms"], loss=["up=1%"], rate=["20mbit", "up=2mbit"], buffer=["100kB"]).plan(lib())
    up, down = plan["forward"]["stages"], plan["reverse"]["stages"]
    assert [stage["qdisc"]["kind"] for stage in up] == [stage["qdisc"]["kind"] for stage in down] == ["netem", "tbf"]
    assert (up[0]["qdisc"]["delay"], down[0]["qdisc"]["delay"]) == (25_000_000, 5_000_000)
    assert (up[1]["qdisc"]["rate"], down[1]["qdisc"]["rate"]) == (2_000_000, 20_000_000)
    assert up[1]["qdisc"]["limit"] == down[1]["qdisc"]["limit"] == 100_000
    assert up[0]["qdisc"]["loss"]["p"] == round(0.01 * 0xFFFF_FFFF)
    assert down[0]["qdisc"]["loss"] == {"model": "none"} or down[0]["qdisc"]["loss"].get("p", 0) == 0
    assert {stage["at"] for stage in up + down} == {"router"}


def test_an_rtt_is_shared_by_the_directions():
    plan = built(rtt="51ms").plan(lib())
    assert plan["forward"]["stages"][0]["qdisc"]["delay"] == plan["reverse"]["stages"][0]["qdisc"]["delay"] == 25_500_000


def test_words_of_tc_replace_the_options_of_their_direction():
    plan = built(delay=["25ms"], rate=["20mbit"], down=["netem delay 40ms loss 2%", "tbf rate 5mbit burst 6056 limit 62500"]).plan(lib())
    assert [stage["qdisc"]["kind"] for stage in plan["reverse"]["stages"]] == ["netem", "tbf"]
    assert plan["reverse"]["stages"][0]["qdisc"]["delay"] == 40_000_000
    assert plan["forward"]["stages"][0]["qdisc"]["delay"] == 25_000_000


def test_a_change_finds_the_stage_that_has_the_value():
    kept = built(delay=["25ms"], jitter=["8ms"], order=["keep"], loss=["1%"], rate=["20mbit"], change=["down@8s: rate 5mbit delay 40ms loss 3%"])
    schedule = kept.plan(lib())["reverse"]["schedule"]
    kinds = [stage["qdisc"]["kind"] for stage in kept.plan(lib())["reverse"]["stages"]]
    changed = {field: kinds[each["stage"]] for each in schedule for field in each["change"]["set"]}
    assert changed == {"rate": "tbf", "delay": "jitter", "loss": "netem"}
    assert {each["change"]["at"] for each in schedule} == {8_000_000_000}
    assert kept.plan(lib())["forward"]["schedule"] == []


def test_an_outage_ends():
    assert changes.parse("down@8s: outage")["set"] == {"outage": True}
    assert changes.parse("down@8s: outage off rate 5mbit")["set"] == {"outage": False, "rate": "5mbit"}


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        ({}, "path: it is empty"), ({"delay": ["5"]}, "delay: "), ({"delay": ["5ms", "6ms"]}, "delay: it is given twice for both"),
        ({"delay": ["up=5ms", "up=6ms"]}, "delay: it is given twice for up"), ({"delay": ["up="]}, "delay: "), ({"rtt": "50ms", "delay": ["5ms"]}, "rtt: "),
        ({"delay": ["5ms"], "order": ["keep"]}, "order: there is no jitter"), ({"delay": ["5ms"], "buffer": ["1bdp"]}, "buffer: there is no bottleneck"),
        ({"delay": ["5ms"], "queue": ["fq_codel"]}, "queue: there is no bottleneck"), ({"rate": ["5mbit"], "trace": ["x"]}, "trace: the way up has a --rate"),
        ({"jitter": ["5ms"]}, "jitter: "), ({"up": ["netem dely 5ms"]}, "up: "), ({"delay": ["5ms"], "change": ["side@1s: delay 2ms"]}, "change: 'side'"),
        ({"delay": ["5ms"], "change": ["up@1s: rate 5mbit"]}, "change: the way up has no rate"), ({"delay": ["5ms"], "change": ["nonsense"]}, "change: 'nonsense' is not WHERE@TIME: NAME VALUE; write for example 'down@8s: rate 5mbit'"),
        ({"delay": ["5ms"], "change": ["up.7@1s: delay 5ms"]}, "change: "), ({"trace": ["/nowhere"]}, "trace: "),
    ],
)  # fmt: skip
def test_paths_that_make_no_sense(words, starts):
    with pytest.raises(TcpscapeError, match=r"; ") as e:
        built(**words).plan(lib())
    assert str(e.value).startswith(starts), str(e.value)


@pytest.mark.parametrize("text", ["", "x", "0", "65536", "8000:", ":80", "1:2:3", "-1", "8o", "99999999"])
def test_ports_that_are_none(text):
    with pytest.raises(TcpscapeError, match=r"^reach: "):
        relay.Reach.of(text)


def test_ports():
    assert relay.Reach.of("8000") == relay.Reach(8000, 8000)
    assert relay.Reach.of("80:8000") == relay.Reach(80, 8000)


def test_only_named_ports_of_the_loopback_are_opened():
    with socket.create_server(("127.0.0.1", 0)) as named, socket.create_server(("127.0.0.1", 0)) as other:
        port, secret = named.getsockname()[1], other.getsockname()[1]
        with relay.Outside([relay.Reach(80, port)]) as outside:
            outside.theirs.send(str(port).encode())
            text, descriptors, _, _ = socket.recv_fds(outside.theirs, 512, 1)
            assert text == b"ok"
            connected = socket.socket(fileno=descriptors[0])
            assert connected.getpeername() == ("127.0.0.1", port)
            connected.close()
            for port_ in (str(secret).encode(), b"nonsense"):
                outside.theirs.send(port_)
                text, descriptors, _, _ = socket.recv_fds(outside.theirs, 512, 1)
                assert (text != b"ok", descriptors) == (True, [])


ASKED = built(delay=["25ms"], rate=["20mbit"])


@pytest.mark.parametrize("line", ["down: rate 5mbit", '{"down": {"rate": "5mbit"}}', " down : rate 5mbit\n"])
def test_a_change_is_asked_for_in_words_or_as_json(line):
    asked = []
    said = control.answer(line, ASKED, lambda message: asked.append(message) or {"at_ns": 7})
    assert said == {"ok": True, "at_ns": 7}
    assert asked == [{"change": [{"direction": "reverse", "stage": 1, "depth": 0, "set": {"rate": 5_000_000}}]}]


@pytest.mark.parametrize(
    "line",
    ["x", "down rate 5mbit", "down@8s: rate 5mbit", "down: rate", "down: rate fast", "down: loss 1", "{}", "{", '{"down": 5}', '{"down": {}}', "[" * 9999,
     '{"side": {"rate": "1mbit"}}', '{"down": {"colour": "red"}}', '{"down": {"rate": []}}', "down: limit 0"],
)  # fmt: skip
def test_a_request_that_makes_no_sense_is_answered(line):
    said = control.answer(line, ASKED, lambda _: pytest.fail("nothing is to be asked"))
    assert said["ok"] is False
    assert "; " in said["error"]
    assert "\n" not in said["error"]


def test_the_path_in_words():
    same = answer.in_words(built(delay=["25ms"], jitter=["8ms"], order=["keep"], loss=["0.1%"], rate=["20mbit"]))
    assert same == "each way: loss 0.1%, delay 25ms, jitter 8ms normal (order kept), 20mbit with a FIFO of 125kB"
    assert answer.in_words(built(delay=["up=25ms"])) == "up: delay 25ms; down: nothing"


def figures(at_s: float, up: tuple[int, int, float], down: tuple[int, int, float]) -> dict:
    def way(sent, count, mean):
        drops = {"loss": 1, "limit": 2, "aqm": 0, "oversize": 0}
        return {"bytes_out": sent, "delay": {"count": count, "mean": mean}, "packets_held": 3, "drops": drops}

    return {"at_ns": round(at_s * 1e9), "link": {"forward": way(*up), "reverse": way(*down)}}


def test_the_line_shows_what_passed_since_the_last_one():
    line = answer.LiveLine()
    line.text(figures(1.0, (1_000_000, 100, 25e6), (0, 0, 0.0)))
    text = line.text(figures(1.5, (1_062_500, 200, 30e6), (125_000, 50, 20e6)))
    assert text.startswith("↑ 1 ↓ 2 Mbit/s  RTT 55 ms  ")  # the second hundred took 35 ms: 2·30 − 25, and 20 back
    assert text.endswith("lost ↑ 3 ↓ 3  1s")


@pytest.mark.parametrize(
    "words",
    [
        (), ("--delay", "5"), ("--delay", "5ms", "--reach", "x"), ("--delay", "5ms", "--reach", "80", "--reach", "80:90"), ("--delay", "5ms", "--duration", "0s"),
        ("--delay", "5ms", "--cca", "cubic,bbr"), ("--delay", "5ms", "--cca", "cubic:hystart=off"), ("--delay", "5ms", "--cca", "nonsense"),
        ("--delay", "5ms", "--seed", "-1"), ("--delay", "5ms", "-v", "-q"), ("--delay", "5ms", "--control", "/etc/passwd"),
        ("--delay", "5ms", "--control", "/" + "x" * 200),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(words, shell):
    if words and "/etc/passwd" in words and REASON:
        pytest.skip(REASON)
    said = shell("emulate", *words, "--", "true")
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1), said
    assert said.err.startswith("error: ")


def test_another_system_than_linux_is_named(cli, monkeypatch):
    from tcpscape.cli import emulate

    monkeypatch.setattr(emulate, "sys", types.SimpleNamespace(platform="darwin"))
    refused = cli("emulate", "--delay", "5ms", "--", "true")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == "error: emulate: it needs Linux, this is darwin; simulate the path instead, with `tcpscape sweep`\n"


def test_options_behind_the_command_are_its_own():
    from tcpscape.cli.commands import app

    command = app.get_command(None, "emulate")
    for words in (["--delay", "5ms", "curl", "-o", "--delay"], ["--delay", "5ms", "--", "curl", "-o", "--delay"]):
        context = command.make_context("emulate", list(words))
        assert context.params["words"] == ("curl", "-o", "--delay")
        assert context.params["delay"] == ("5ms",)


PATH = ("--delay", "5ms", "--rate", "50mbit")


@live
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("true",), 0), (("false",), 1), (("sh", "-c", "exit 7"), 7), (("sh", "-c", "kill -9 $$"), 137), (("/nonexistent/program",), 127),
        (("/etc/passwd",), 126),
    ],
)  # fmt: skip
def test_the_exit_status_is_the_commands(shell, command, status):
    said = shell("emulate", *PATH, "--quiet", "--", *command)
    assert said.status == status
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("→ ")


@live
def test_the_command_sees_its_own_network_and_its_own_user(shell):
    script = 'id -u; echo "$TCPSCAPE_NEAR $TCPSCAPE_FAR"; grep -c "10.77.1.3 far" /etc/hosts; cat /proc/net/dev | grep -c fwd; pwd'
    said = shell("emulate", *PATH, "--quiet", "--", "sh", "-c", script)
    assert said.out.splitlines() == [str(os.getuid()), "10.77.1.2 10.77.1.3", "1", "1", os.getcwd()]


@live
def test_its_streams_are_ours(shell):
    code = "from tcpscape.cli.main import main; main()"
    process = subprocess.run([sys.executable, "-c", code, "emulate", *PATH, "--quiet", "--", "sh", "-c", "cat; echo to-stderr >&2"],
                             input="through\n", capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert process.stdout == "through\n"
    assert process.stderr.startswith("to-stderr\n")


DATAGRAMS = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(200):
    try:
        s.sendto(bytes(1000), ("{far}", 9))
    except ConnectionRefusedError:
        pass
    time.sleep(0.0005)
time.sleep(0.1)
"""


def summary_of(shell, *words: str) -> dict:
    said = shell("emulate", *words, "--json", "--", sys.executable, "-c", DATAGRAMS.format(far="10.77.1.3"))
    assert said.status == 0, said
    (document,) = said.lines
    expect("emulation", document)
    return document


@live
def test_the_same_seed_loses_the_same_packets(shell):
    first, again, other = (summary_of(shell, "--delay", "5ms", "--loss", "up=20%", "--seed", seed) for seed in ("7", "7", "8"))
    assert first["up"]["packets"] == again["up"]["packets"] == 200
    assert first["up"]["lost"] == again["up"]["lost"] > 0
    assert first["up"]["packets_out"] == 200 - first["up"]["lost"]
    assert first["down"]["lost"] == 0
    assert 5.0 <= first["up"]["delay_ms"]["p50"] < 5.1
    assert other["up"]["lost"] != first["up"]["lost"] or other["up"] != first["up"]


@live
def test_the_summary_fits_80_columns(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = shell("emulate", *PATH, "--loss", "1%", "--", sys.executable, "-c", DATAGRAMS.format(far="10.77.1.3"))
    lines = said.err.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("each way: ")
    assert any(line.startswith("→ ") for line in lines[:3])
    for row in ("packets", "loss asked", "delay p50, ms", "left late p99"):
        assert any(line.startswith(row) for line in lines), row


@live
def test_a_download_takes_at_least_what_the_path_takes(shell, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed: apt-get install curl")
    (tmp_path / "file").write_bytes(os.urandom(1_000_000))
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        reach = f"80:{server.server_port}"
        words = ("--delay", "20ms", "--rate", "down=20mbit", "--reach", reach, "--json")
        said = shell("emulate", *words, "--", "curl", "-sS", "--noproxy", "*", "-o", str(tmp_path / "got"), "http://far/file")
        server.shutdown()
    assert said.status == 0, said
    assert (tmp_path / "got").read_bytes() == (tmp_path / "file").read_bytes()
    (document,) = said.lines
    round_trips, transmission = 2 * 0.040, (1_000_000 - 6056) * 8 / 20e6  # the bucket's burst passes at once
    assert document["seconds"] >= round_trips + transmission
    assert document["down"]["bytes_out"] >= 1_000_000


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@live
@needs("iperf3")
def test_iperf3_runs_against_a_server_at_the_far_end(shell, tmp_path):
    from tcpscape.interchange import iperf3

    script = f"iperf3 -c far -t 1 -J > {tmp_path}/iperf3.json"
    said = shell("emulate", "--delay", "10ms", "--rate", "20mbit", "--serve", "iperf3 -s -1", "--json", "--", "sh", "-c", script)
    assert said.status == 0, said
    (trial,) = iperf3.read(tmp_path / "iperf3.json").trials
    assert 0 < trial.flows[0].goodput_mbps <= 20
    assert trial.flows[0].rtt_ms.min >= 20
    (document,) = said.lines
    assert document["up"]["rate_mbps"] <= 21


@live
def test_a_server_that_does_not_start_is_said_in_one_line(shell):
    said = shell("emulate", *PATH, "--serve", "echo broken; exit 3", "--", "true")
    assert (said.status, said.out) == (2, "")
    assert said.err == 'error: serve: "echo broken; exit 3" ended with status 3 before it listened: broken; correct the command\n'


TELLS = """
import socket
with socket.create_server(("", 80)) as server:
    connection = server.accept()[0]
    connection.sendall(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16))
"""
ASKS = """
import socket
with socket.create_connection(("far", 80)) as s:
    other = s.recv(16)
    print(*(text.rstrip(bytes(1)).decode() for text in (s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16), other)))
"""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@live
@pytest.mark.parametrize("cca", sorted(AVAILABLE.read_text().split()) if AVAILABLE.exists() else ())
def test_a_congestion_control_is_that_of_both_ends(shell, tmp_path, cca):
    (tmp_path / "tells.py").write_text(TELLS)
    said = shell("emulate", *PATH, "--cca", cca, "--quiet", "--serve", f"{sys.executable} {tmp_path}/tells.py", "--", sys.executable, "-c", ASKS)
    assert said.out == f"{cca} {cca}\n", said.err


@live
def test_a_congestion_control_that_the_kernel_lacks_is_refused(shell):
    lacked = next(name for name in ("yeah", "lp", "illinois", "nv") if name not in AVAILABLE.read_text().split())
    said = shell("emulate", *PATH, "--cca", lacked, "--", "true")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "cubic" in said.err


@live
def test_a_command_ends_with_its_time(shell):
    said = shell("emulate", *PATH, "--duration", "300ms", "--quiet", "--", "sleep", "30")
    assert said.status == 124
    assert "as its time was over" in said.err


def started(*words: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "tcpscape", "emulate", *words], text=True, **options)


def tagged(tag: str) -> list[int]:
    """Processes that have a variable of this value."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and tag.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def in_namespace(name: str) -> list[str]:
    """Processes in a network namespace, `net:[4026532000]`."""
    found = []
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            if os.readlink(link) == name:
                found.append(str(link))
        except OSError:
            continue
    return found


def gone(find, patience_s: float = 10.0) -> bool:
    """Whether nothing is found any more within the patience."""
    until = time.monotonic() + patience_s
    while left := find():
        if time.monotonic() > until:
            print(left)
            return False
        time.sleep(0.02)
    return True


SCRIPT = "readlink /proc/self/ns/net; sleep 60 & exec sleep 60"


@live
@pytest.mark.parametrize(("number", "to_all", "status"), [(signal.SIGINT, True, 130), (signal.SIGTERM, False, 143), (signal.SIGKILL, False, -9)])
def test_a_signal_ends_the_command_and_leaves_nothing(number, to_all, status):
    tag = uuid.uuid4().hex
    process = started(*PATH, "--quiet", "--", "sh", "-c", SCRIPT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TAG": tag},
                      start_new_session=True)  # fmt: skip
    namespace = process.stdout.readline().strip()
    assert in_namespace(namespace)
    if to_all:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(30) == status
    process.stdout.close()
    if number != signal.SIGKILL:
        assert "was ended by signal" in process.stderr.read()
    process.stderr.close()
    assert gone(lambda: tagged(tag))
    assert gone(lambda: in_namespace(namespace))


@live
def test_a_socket_changes_the_path_and_tells_what_passes(tmp_path):
    place = tmp_path / "path.sock"
    process = started("--delay", "5ms", "--control", str(place), "--json", "--", "sleep", "60", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert gone(lambda: not place.exists())
        assert place.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place))
            stream = client.makefile("rw")

            def ask(line: str) -> dict:
                stream.write(line + "\n")
                stream.flush()
                return json.loads(stream.readline())

            assert gone(lambda: not ask("figures")["ok"])
            assert ask("figures")["figures"]["link"]["forward"]["packets_in"] == 0
            assert ask("down: delay 40ms")["ok"]
            assert ask("down: rate 5mbit")["ok"] is False
            assert ask("nonsense")["ok"] is False
            assert ask("end") == {"ok": True}
        assert process.wait(30) == 143
        assert json.loads(process.stdout.read())["changes"] == 1
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    assert not place.exists()


AS_NOBODY = """
import os, sys
from tcpscape.cli import emulate, main
from tcpscape.emulation import answer, control, path, relay, session, summary
import tcpscape._core, rich.console, rich.table, rich.text
main.call(["emulate", "--help"])
main.call(["emulate", "--delay", "x", "--", "true"])
sys.stdout.flush()
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sys.exit(main.call(sys.argv[1:]))
"""


@live
@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_user_without_privileges_has_it_all(tmp_path):
    tmp_path.chmod(0o755)
    serve = f"{shutil.which('python3', path='/usr/bin:/bin') or 'python3'} -m http.server -d {tmp_path} 80"
    script = "id -u; grep CapEff /proc/self/status; cat /proc/sys/net/ipv4/tcp_congestion_control"
    words = ["emulate", *PATH, "--cca", "reno", "--quiet", "--serve", serve, "--", "sh", "-c", script]
    said = subprocess.run([sys.executable, "-c", AS_NOBODY, *words], capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines()[-3:] == ["65534", "CapEff:\t0000000000000000", "reno"]


@live
def test_without_a_command_there_is_a_shell(monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/sh")
    process = subprocess.run([sys.executable, "-m", "tcpscape", "emulate", *PATH, "--quiet"], input="echo in a shell; exit 5\n", capture_output=True,
                             text=True, timeout=60, check=False)  # fmt: skip
    assert (process.returncode, process.stdout) == (5, "in a shell\n")


@live
def test_a_capture_has_the_decisions_as_comments(shell, tmp_path):
    file = tmp_path / "packets.pcapng"
    said = shell("emulate", "--delay", "5ms", "--loss", "up=20%", "--pcap", str(file), "--json", "--", sys.executable, "-c", DATAGRAMS.format(far="10.77.1.3"))
    content = file.read_bytes()
    assert content[:4] == b"\x0a\x0d\x0d\x0a"
    assert said.lines[0]["up"]["lost"] > 0
    assert content.count(b"dropped: netem") == said.lines[0]["up"]["lost"]
    refused = shell("emulate", *PATH, "--pcap", str(tmp_path), "--", "true")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert refused.err.startswith("error: pcap: ")


@live
@needs("slirp4netns")
@needs("curl")
def test_the_far_end_may_be_the_world_outside(shell, tmp_path):
    (tmp_path / "file").write_bytes(os.urandom(300_000))
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        script = f"cat /etc/resolv.conf; exec curl -sS --noproxy '*' -o {tmp_path}/got http://far:{server.server_port}/file"
        said = shell("emulate", "--delay", "20ms", "--rate", "down=20mbit", "--outside", "--quiet", "--", "sh", "-c", script)
        server.shutdown()
    assert said.status == 0, said
    assert said.out == "nameserver 10.0.2.3\n"
    assert (tmp_path / "got").read_bytes() == (tmp_path / "file").read_bytes()


@live
@needs("slirp4netns")
def test_the_way_outside_ends_with_its_command():
    tag = uuid.uuid4().hex
    process = started(*PATH, "--outside", "--", "sh", "-c", SCRIPT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "TAG": tag})
    namespace = process.stdout.readline().strip()
    assert any("slirp4netns" in Path(f"/proc/{pid}/comm").read_text() for pid in tagged(tag))
    process.kill()
    process.wait(30)
    process.stdout.close()
    assert gone(lambda: tagged(tag))
    assert gone(lambda: in_namespace(namespace))


def test_the_way_outside_takes_a_program(shell, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = shell("emulate", *PATH, "--outside", "--", "/bin/true")
    assert (said.status, said.err) == (
        2, "error: outside: slirp4netns is not installed; apt-get install slirp4netns, or give the far end ports of this machine with --reach\n")  # fmt: skip
