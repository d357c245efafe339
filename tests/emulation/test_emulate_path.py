"""`tcpscape emulate` without namespaces: the path from options, requests of changes, ports, what a user sees. With them: test_emulate.py."""

import socket
import threading
import types

import pytest

from patience import PATIENCE_S
from tcpscape.emulation import path, relay, session
from tcpscape.emulation.session import ControlSocket
from tcpscape.engines import host
from tcpscape.scenario import changes
from tcpscape.scenario.vocabulary import PathWords
from tcpscape.words import emulation

REASON = host.unavailable()


def built(**words) -> path.EmulatedPath:
    return path.build(PathWords(**{name: value if isinstance(value, str) else tuple(value) for name, value in words.items()}))


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
    said = session.answer(line, ASKED, lambda message: asked.append(message) or {"at_ns": 7})
    assert said == {"ok": True, "at_ns": 7}
    assert asked == [{"change": [{"direction": "reverse", "stage": 1, "depth": 0, "set": {"rate": 5_000_000}}]}]


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "down rate 5mbit",
        "down@8s: rate 5mbit",
        "down: rate",
        "down: rate fast",
        "down: loss 1",
        "{}",
        "{",
        '{"down": 5}',
        '{"down": {}}',
        "[" * 9999,
        '{"side": {"rate": "1mbit"}}',
        '{"down": {"colour": "red"}}',
        '{"down": {"rate": []}}',
        "down: limit 0",
    ],
)
def test_a_request_that_makes_no_sense_is_answered(line):
    said = session.answer(line, ASKED, lambda _: pytest.fail("nothing is to be asked"))
    assert said["ok"] is False
    assert "; " in said["error"]
    assert "\n" not in said["error"]


def test_the_path_in_words():
    same = emulation.in_words(built(delay=["25ms"], jitter=["8ms"], order=["keep"], loss=["0.1%"], rate=["20mbit"]))
    assert same == "each way: loss 0.1%, delay 25ms, jitter 8ms normal (order kept), 20mbit with a FIFO of 125kB"
    assert emulation.in_words(built(delay=["up=25ms"])) == "up: delay 25ms; down: nothing"


def figures(at_s: float, up: tuple[int, int, float], down: tuple[int, int, float]) -> dict:
    def way(sent, count, mean):
        drops = {"loss": 1, "limit": 2, "aqm": 0, "oversize": 0}
        return {"bytes_out": sent, "delay": {"count": count, "mean": mean}, "packets_held": 3, "drops": drops}

    return {"at_ns": round(at_s * 1e9), "link": {"forward": way(*up), "reverse": way(*down)}}


def test_the_line_shows_what_passed_since_the_last_one():
    line = emulation.LiveLine()
    line.text(figures(1.0, (1_000_000, 100, 25e6), (0, 0, 0.0)))
    text = line.text(figures(1.5, (1_062_500, 200, 30e6), (125_000, 50, 20e6)))
    assert text.startswith("↑ 1 ↓ 2 Mbit/s  RTT 55 ms  ")  # the second hundred took 35 ms: 2·30 − 25, and 20 back
    assert text.endswith("lost ↑ 3 ↓ 3  1s")


@pytest.mark.parametrize("place", ["/etc/passwd", "/" + "x" * 200])
def test_a_socket_that_cannot_be_made_is_refused(place, shell):
    if REASON:
        pytest.skip(REASON)
    said = shell("emulate", "--delay", "5ms", "--control", place, "--", "true")
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1), said
    assert said.err.startswith("error: ")


def test_another_system_than_linux_is_named(cli, monkeypatch):
    from tcpscape.emulation import request

    monkeypatch.setattr(request, "sys", types.SimpleNamespace(platform="darwin"))
    refused = cli("emulate", "--delay", "5ms", "--", "true")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == "error: emulate: it needs Linux, this is darwin; simulate the path instead, with `tcpscape sweep`\n"


def test_options_behind_the_command_are_its_own():
    from tcpscape.cli.command import app

    command = app.get_command(None, "emulate")
    for words in (["--delay", "5ms", "curl", "-o", "--delay"], ["--delay", "5ms", "--", "curl", "-o", "--delay"]):
        context = command.make_context("emulate", list(words))
        assert (context.params["words"], context.params["delay"]) == (("curl", "-o", "--delay"), ("5ms",))


# The socket of `tcpscape emulate --control`: whoever is at the other end may leave at any time.


def test_a_client_may_leave_before_its_answer(tmp_path, monkeypatch):
    """The answer found nobody, and the thread ended in a traceback."""
    problems: list[object] = []
    monkeypatch.setattr(threading, "excepthook", problems.append)
    has_left, servers = threading.Event(), []

    def ask(message):
        servers.append(threading.current_thread())
        has_left.wait(PATIENCE_S)
        return {"bytes": 1}

    with ControlSocket(tmp_path / "s", path=None, ask=ask):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(str(tmp_path / "s"))
        client.sendall(b"figures\n")
        while not servers:
            threading.Event().wait(0.001)
        client.close()
        has_left.set()
        servers[0].join(PATIENCE_S)
    assert not problems
