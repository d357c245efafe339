"""The socket of `tcpscape emulate --control`: whoever is at the other end may leave at any time."""

import socket
import threading

from tcpscape.emulation.control import ControlSocket


def test_a_client_may_leave_before_its_answer(tmp_path, monkeypatch):
    """The answer found nobody, and the thread ended in a traceback."""
    problems: list[object] = []
    monkeypatch.setattr(threading, "excepthook", problems.append)
    has_left, servers = threading.Event(), []

    def ask(message):
        servers.append(threading.current_thread())
        has_left.wait(10)
        return {"bytes": 1}

    with ControlSocket(tmp_path / "s", path=None, ask=ask):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(str(tmp_path / "s"))
        client.sendall(b"figures\n")
        while not servers:
            threading.Event().wait(0.001)
        client.close()
        has_left.set()
        servers[0].join(10)
    assert not problems
