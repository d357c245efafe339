"""Sockets of this machine as an observation: filters in the words of ss, and real sockets in a namespace of the test's own."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from patience import PATIENCE_S
from tcpscape.engines.host import sockets
from tcpscape.engines.host.process import PROGRAM
from tcpscape.errors import TcpscapeError


class TestFilter:
    """The words of ss."""

    @pytest.mark.parametrize(
        ("text", "condition"),
        [
            ("", {"all": []}),
            ("dst 192.0.2.7", {"address": {"side": "remote", "address": "192.0.2.7", "prefix": 32}}),
            ("dst ::ffff:192.0.2.7", {"address": {"side": "remote", "address": "192.0.2.7", "prefix": 32}}),
            ("dst fe80::1%eth0", {"address": {"side": "remote", "address": "fe80::1", "prefix": 128}}),
            ("src 10.0.0.0/8", {"address": {"side": "local", "address": "10.0.0.0", "prefix": 8}}),
            ("dport = :443", {"port": {"side": "remote", "from": 443, "to": 443}}),
            ("sport gt 1024", {"port": {"side": "local", "from": 1025, "to": 65535}}),
            ("dport != https", {"not": {"port": {"side": "remote", "from": 443, "to": 443}}}),
            (":5201", {"port": {"side": "remote", "from": 5201, "to": 5201}}),
            (
                "[2001:db8::1]:80",
                {
                    "all": [
                        {"address": {"side": "remote", "address": "2001:db8::1", "prefix": 128}},
                        {"port": {"side": "remote", "from": 80, "to": 80}},
                    ]
                },
            ),
            (
                "( sport = :1 or sport = :2 ) and ! dst ::/0",
                {
                    "all": [
                        {"any": [{"port": {"side": "local", "from": 1, "to": 1}}, {"port": {"side": "local", "from": 2, "to": 2}}]},
                        {"not": {"address": {"side": "remote", "address": "::", "prefix": 0}}},
                    ]
                },
            ),
        ],
    )
    def test_it_means_what_ss_means(self, text: str, condition: object) -> None:
        assert sockets.parse(text).condition == condition

    def test_states_are_named_or_left_out(self) -> None:
        assert sockets.parse("state established dport :1").states == 1 << 1
        assert sockets.parse("exclude syn-sent").states == sockets.parse("state synchronized").states == sockets.parse("").states & ~(1 << 2)

    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("dst example.org", "example.org"),
            ("state listening", "carry no data"),
            ("state foo", "foo"),
            ("dport", "missing"),
            ("(dport :1", "closed"),
            ("dport :1 )", "opening"),
            ("dport :99999", "65535"),
            ("src > 1.2.3.4", "order"),
            ("( " * 30, "within"),
            ("dport :1 " * 200, "words"),
            ("\x1b[2J", "address"),
            ("dport :1 and", "missing"),
            ("dport nosuchservice", "service"),
        ],
    )
    def test_what_makes_no_sense_is_one_line(self, text: str, word: str) -> None:
        with pytest.raises(TcpscapeError, match=word) as error:
            sockets.parse(text)
        assert str(error.value).startswith("live: ")


def in_namespace(code: str) -> str:
    """What Python code prints in a network namespace of its own with a loopback device; skips where there is none."""
    if not PROGRAM.exists():
        pytest.skip("the live engine's program is not built")
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        'ip link set lo up && exec "$0" -c "$1"',
        sys.executable,
        textwrap.dedent(code),
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=os.environ)
    except FileNotFoundError as e:
        pytest.skip(f"{e.filename} is missing")
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(f"no network namespace here: {done.stderr.strip()[-100:]}")
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


TRANSFER = """
    import socket, threading, time, json
    from tcpscape.interchange import tcp_info
    from tcpscape.errors import TcpscapeError

    def serve(listener):
        while True:
            end, _ = listener.accept()
            threading.Thread(target=drain, args=(end,), daemon=True).start()

    def drain(end):
        while end.recv(1 << 16):
            pass

    def listen(family, address):
        listener = socket.socket(family)
        listener.bind((address, 0))
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        return listener.getsockname()[1]

    def send(family, address, port, seconds, pause=0.0):
        with socket.create_connection((address, port)) as end:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                end.sendall(bytes(10_000))
                time.sleep(pause)
"""


class TestSockets:
    """Real sockets in a namespace of the test's own."""

    def test_a_sender_is_seen_with_its_control_and_the_filter_leaves_the_others_out(self) -> None:
        printed = in_namespace(
            TRANSFER
            + """
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        port = listen(family, address)
        for _ in range(2):
            threading.Thread(target=send, args=(family, address, port, 2.0, 0.01), daemon=True).start()
        other = listen(family, address)
        threading.Thread(target=send, args=(family, address, other, 2.0, 0.01), daemon=True).start()
        time.sleep(0.3)
        seen = tcp_info.watch(f"dst {address} dport = :{port}", 1.0)
        print(json.dumps([[f.vantage, f.cca, f.destination.port == port, f.goodput_mbps, len(f.samples["t_s"]), f.facts["rtt"]["n"],
            {i.cause: 1 for i in f.limits}] for f in seen.flows]))
    """
        )
        for line in printed.splitlines():
            flows = json.loads(line)
            assert len(flows) == 2
            for vantage, cca, is_to, goodput, samples, _, causes in flows:
                assert (vantage, cca, is_to) == ("sender", "reno", True)
                assert 1 < goodput < 8.1  # 10 kB each 10 ms and a little more are at most 8 Mbit/s
                assert samples > 10
                assert "application" in causes

    def test_connections_between_two_samples_and_idle_ones_are_counted(self) -> None:
        printed = in_namespace(
            TRANSFER
            + """
    port = listen(socket.AF_INET, "127.0.0.1")
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]

    begun = threading.Event()

    def short():
        begun.wait()
        for _ in range(10):
            time.sleep(0.05)
            with socket.create_connection(("127.0.0.1", port)) as end:
                end.sendall(bytes(5000))

    threading.Thread(target=short, daemon=True).start()
    seen = tcp_info.watch(f"dport = :{port}", 1.5, lambda seconds, sockets: begun.set())
    print(json.dumps([len(seen.flows), sum(f.bytes for f in seen.flows), seen.facts["idle"]]))
    """
        )
        flows, size, idle = json.loads(printed)
        assert (flows, idle) == (10, 20)
        assert 50_000 <= size <= 50_000 + 2 * 10  # SYN and FIN count as a byte each

    def test_where_nothing_moves_one_line_says_so(self) -> None:
        printed = in_namespace(
            TRANSFER
            + """
    for text in ("", "dst 192.0.2.7", "state listening"):
        try:
            tcp_info.watch(text, 0.2)
        except TcpscapeError as e:
            print(e)
    """
        )
        assert len(printed.splitlines()) == 3
        assert "there was no such socket" in printed

    @pytest.mark.slow
    def test_thousands_of_sockets_cost_little_and_all_are_counted(self) -> None:
        printed = in_namespace(
            TRANSFER
            + """
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    port = listen(socket.AF_INET, "127.0.0.1")
    many = [socket.create_connection(("127.0.0.1", port)) for _ in range(1500)]
    def talk():
        for end in many[:1000]:
            end.sendall(bytes(100))
    threading.Timer(0.3, talk).start()
    seen = tcp_info.watch(f"dport = :{port}", 2.0)
    print(json.dumps([len(seen.flows), seen.facts["carrying"], seen.facts["untold"], seen.facts["idle"]]))
    """
        )
        assert json.loads(printed) == [200, 1000, 800, 500]
