"""`tcpscape emulate` with real programs in namespaces. The path from options, and requests: test_emulate_path.py."""

import functools
import http.server
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

import tcpscape
from conftest import expect
from patience import PATIENCE_S
from tcpscape.engines import host

REASON = host.unavailable()
live = pytest.mark.skipif(REASON is not None, reason=f"no namespaces here: {REASON}")


def needs(program: str):
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed: apt-get install {program}")


PATH = ("--delay", "5ms", "--rate", "50mbit")


@live
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("true",), 0),
        (("false",), 1),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 137),
        (("/nonexistent/program",), 127),
        (("/etc/passwd",), 126),
    ],
)
def test_the_exit_status_is_the_commands(shell, command, status):
    said = shell("emulate", *PATH, "--quiet", "--", *command)
    assert (said.status, said.out) == (status, "")
    assert said.err.splitlines()[-1].startswith("→ ")


@live
def test_python_gets_the_output_and_what_passed(tmp_path):
    script = 'import socket; s = socket.create_connection(("far", 9)); s.sendall(b"x" * 100000); s.shutdown(1); print(s.recv(9).decode())'
    serve = (
        'import socket; s = socket.create_server(("", 9)).accept()[0]; n = sum(len(b) for b in iter(lambda: s.recv(65536), b"")); s.send(b"%d" % n)'
    )
    result = tcpscape.emulate(
        [sys.executable, "-c", script],
        serve=shlex.join([sys.executable, "-c", serve]),
        rtt="20ms",
        rate=["50mbit", "up=10mbit"],
        pcap=tmp_path / "x.pcapng",
    )
    assert (result.status, result.output) == (0, "100000\n")
    assert 0.1 < result.seconds < PATIENCE_S
    assert result.summary["up"]["hops"][-1].split()[:3] == ["tbf", "rate", "10mbit"]
    assert result.summary["up"]["bytes"] > 100_000 > result.summary["down"]["bytes"] > 0
    assert "ended with status 0" in repr(result)
    flow = tcpscape.diagnose(result.capture, replay=False).flows[0].flow
    assert flow.bytes in (100_000, 100_001)  # with the FIN


@live
def test_python_splits_a_text_as_a_shell_does():
    result = tcpscape.emulate("sh -c 'echo one two; exit 3'", delay="1ms", seed=7)
    assert (result.status, result.output, result.summary["seed"]) == (3, "one two\n", 7)


def test_python_refuses_in_one_line_before_anything_runs():
    for options, why in [
        ({"rate": "fast"}, r"rate: .*10mbit"),
        ({"delay": "1ms", "engine": "model"}, "engine: 'model' runs no programs; choose live or virtual"),
        ({"delay": "1ms", "bind": "/tmp"}, "bind: .*; leave it out"),
        ({}, "path: it is empty"),
    ]:
        with pytest.raises(tcpscape.TcpscapeError, match=why) as error:
            tcpscape.emulate("true", **options)
        assert "\n" not in str(error.value)
    with pytest.raises(tcpscape.TcpscapeError, match="command: there is none"):
        tcpscape.emulate("", delay="1ms")


@live
def test_the_command_sees_its_own_network_and_its_own_user(shell):
    script = 'id -u; echo "$TCPSCAPE_NEAR $TCPSCAPE_FAR"; grep -c "10.77.1.3 far" /etc/hosts; cat /proc/net/dev | grep -c fwd; pwd'
    said = shell("emulate", *PATH, "--quiet", "--", "sh", "-c", script)
    assert said.out.splitlines() == [str(os.getuid()), "10.77.1.2 10.77.1.3", "1", "1", os.getcwd()]


@live
def test_its_streams_are_ours(shell):
    code = "from tcpscape.cli.main import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code, "emulate", *PATH, "--quiet", "--", "sh", "-c", "cat; echo to-stderr >&2"],
        input="through\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
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
    assert (first["up"]["packets_out"], first["down"]["lost"]) == (200 - first["up"]["lost"], 0)
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
def test_a_server_can_open_its_streams_by_name(shell):
    serve = f"echo begun > /dev/stderr && echo here > /dev/stdout && exec {sys.executable} -m http.server 8000"
    command = shell(
        "emulate", *PATH, "--quiet", "--serve", serve, "--", sys.executable, "-c", "import urllib.request as r; r.urlopen('http://far:8000')"
    )
    assert command.status == 0, command.err


@live
def test_a_server_that_does_not_start_is_said_in_one_line(shell):
    said = shell("emulate", *PATH, "--serve", "echo broken; exit 3", "--", "true")
    assert (said.status, said.out) == (2, "")
    assert said.err == 'error: serve: "echo broken; exit 3" ended with status 3 before it listened: broken; correct the command\n'


NAMES = """
import os, socket
for host in "near", "far", "cdn":
    with socket.create_connection((host, 80)) as s:
        print(host, s.recv(9).decode(), s.getpeername()[0])
"""


@live
def test_servers_run_at_the_hosts_that_they_name(shell):
    def serve(answer):
        return shlex.join([sys.executable, "-c", f'import socket\nfor c in iter(socket.create_server(("", 80)).accept, 0): c[0].send(b"{answer}")'])

    servers = [f"near: {serve('one')}", serve("two"), f"cdn: {serve('three')}"]
    words = ["--host", "cdn", *(word for line in servers for word in ("--serve", line))]
    command = shell("emulate", *PATH, "--quiet", *words, "--", sys.executable, "-c", NAMES)
    assert command.status == 0, command.err
    assert command.out.split("\n")[:3] == ["near one 10.77.1.2", "far two 10.77.1.3", "cdn three 10.77.1.4"]


@live
def test_a_routers_command_has_begun_before_the_command_and_its_end_is_told(shell, tmp_path):
    router = f"echo $TCPSCAPE_LAN $TCPSCAPE_WAN > {tmp_path}/devices; ls /sys/class/net >> {tmp_path}/devices"
    command = shell("emulate", *PATH, "--quiet", "--router-command", router, "--", "sh", "-c", f"cat {tmp_path}/devices; echo $TCPSCAPE_ROUTER")
    assert (command.status, command.out) == (0, "lan wan\nlan\nlo\nwan\n10.77.1.1\n")
    said = shell("emulate", *PATH, "--router-command", "echo broken; exit 3", "--", "true")
    assert (said.status, said.err) == (2, 'error: router-command: "echo broken; exit 3" ended with status 3: broken; correct the command\n')
    later = shell("emulate", *PATH, "--router-command", "sleep 1.1; exit 3", "--json", "--", "sleep", "0.5")
    assert 'the router\'s command "sleep 1.1; exit 3" ended with status 3' in json.loads(later.out)["caveats"]


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
@pytest.mark.parametrize("option", ["cca", "mix"])
def test_a_congestion_control_that_the_kernel_lacks_is_refused(shell, option):
    lacked = next(name for name in ("yeah", "lp", "illinois", "nv") if name not in AVAILABLE.read_text().split())
    said = shell("emulate", *PATH, f"--{option}", lacked, "--", "true")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert said.err.startswith(f"error: {option}: ")
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


def gone(find, patience_s: float = PATIENCE_S) -> bool:
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
def test_the_command_has_the_environment_that_was_given():
    """Not the one that tcpscape settles for itself, in which a program would compute by one thread and draw on no screen."""
    given = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | {"MPLBACKEND": "svg"}
    shown = started(*PATH, "--quiet", "--", "sh", "-c", "echo $MPLBACKEND ${OPENBLAS_NUM_THREADS-none}", stdout=subprocess.PIPE, env=given)
    assert shown.communicate(timeout=PATIENCE_S)[0].splitlines()[0] == "svg none"


@live
@pytest.mark.parametrize(("number", "to_all", "status"), [(signal.SIGINT, True, 130), (signal.SIGTERM, False, 143), (signal.SIGKILL, False, -9)])
def test_a_signal_ends_the_command_and_leaves_nothing(number, to_all, status):
    tag = uuid.uuid4().hex
    process = started(
        *PATH,
        "--quiet",
        "--",
        "sh",
        "-c",
        SCRIPT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TAG": tag},
        start_new_session=True,
    )
    namespace = process.stdout.readline().strip()
    assert in_namespace(namespace)
    if to_all:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(PATIENCE_S) == status
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
        assert process.wait(PATIENCE_S) == 143
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
from tcpscape.emulation import session, path, relay, summary
from tcpscape.words import emulation
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
    router = f"{shutil.which('tc') or 'true'} qdisc replace dev lan root pfifo"  # which its user may nowhere else
    words = ["emulate", *PATH, "--cca", "reno", "--quiet", "--serve", serve, "--router-command", router, "--", "sh", "-c", script]
    said = subprocess.run([sys.executable, "-c", AS_NOBODY, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines()[-3:] == ["65534", "CapEff:\t0000000000000000", "reno"]


@live
def test_without_a_command_there_is_a_shell(monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/sh")
    process = subprocess.run(
        [sys.executable, "-m", "tcpscape", "emulate", *PATH, "--quiet"],
        input="echo in a shell; exit 5\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (process.returncode, process.stdout) == (5, "in a shell\n")


@live
def test_a_capture_has_the_decisions_as_comments(shell, tmp_path):
    file = tmp_path / "packets.pcapng"
    said = shell(
        "emulate", "--delay", "5ms", "--loss", "up=20%", "--pcap", str(file), "--json", "--", sys.executable, "-c", DATAGRAMS.format(far="10.77.1.3")
    )
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
    process.wait(PATIENCE_S)
    process.stdout.close()
    assert gone(lambda: tagged(tag))
    assert gone(lambda: in_namespace(namespace))


def test_the_way_outside_takes_a_program(shell, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = shell("emulate", *PATH, "--outside", "--", "/bin/true")
    assert (said.status, said.err) == (
        2,
        "error: outside: slirp4netns is not installed; apt-get install slirp4netns, or give the far end ports of this machine with --reach\n",
    )
