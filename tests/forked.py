"""Python as a process that starts in a tenth of the time: forked off a server that has imported what commands import.

:func:`python` gives the words to write in place of `sys.executable` before `-m tcpscape …`, `-c …` or a file: those of a small client, which hands its standard
streams (or that they are closed), its directory and its environment to the server. The server forks, and the client ends as that process does, by a
status or by a signal. It forwards SIGINT, SIGTERM and SIGHUP; when it is killed, so is the process. What an interpreter or a library decides while it
is loaded (encodings, variables of Matplotlib and Polars, limits and group of the process) is the server's: tests of these start an interpreter.
"""

import os
import sys

MOST = 1 << 20
"""Bytes of a request."""
PRELOADED = ("tcpscape.api", "tcpscape.cli.main", "tcpscape.report", "tcpscape.studies", "matplotlib.figure", "scipy.special", "rich.console")
SERVER: list = []
"""The server of this process, with the words of its client; it ends when this process does."""


def python() -> list[str]:
    """The words of the client."""
    import subprocess
    import tempfile

    if not SERVER:
        place = os.path.join(tempfile.mkdtemp(), "socket")
        server = subprocess.Popen([sys.executable, __file__, "serve", place], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdout.readline() == b"ready\n"
        SERVER.extend((server, [sys.executable, "-IS", __file__, place]))
    return SERVER[1]


def ask(place: str, words: list[str]) -> None:
    """The client: ends as the process ends. It imports as little as possible."""
    import _socket
    import signal
    from array import array

    streams = [number for number in (0, 1, 2) if _is_open(number)]
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, MOST)
    connection.connect(place)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: connection.send(bytes([n])))
    variables = [b"%b=%b" % pair for pair in os.environb.items()]
    parts = [os.getcwdb(), b"".join(b"%d" % n for n in streams), b"%d" % len(words), *map(os.fsencode, words), *variables]
    connection.sendmsg([b"\0".join(parts)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", streams))] if streams else [])
    status = int(connection.recv(16) or b"-9")
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def serve(place: str) -> None:
    """The server, until its stdin ends. Returns in each process that it is asked for, which then does what its `sys.argv` says."""
    import gc
    import importlib
    import select
    import shutil
    import signal
    import socket

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(place)
    listener.listen(16)
    print("ready", flush=True)  # whoever started it may ask from now on
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while 0 not in select.select([listener, 0], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _fork(connection)
        connection.close()
    shutil.rmtree(os.path.dirname(place), ignore_errors=True)
    os._exit(0)


def _fork(connection) -> None:
    """Returns in the process that was asked for; its parent tells the client how it ended."""
    import select
    import socket

    request, streams, _, _ = socket.recv_fds(connection, MOST, 3)
    child = os.fork()
    if child == 0:
        connection.close()
        return _become(request, streams)
    for number in (0, 1, 2, *streams):
        os.close(number)
    ended = os.pidfd_open(child)
    while ended not in select.select([ended, connection], [], [])[0]:
        number = connection.recv(1)
        os.kill(child, number[0] if number else 9)  # the client was killed
        if not number:
            os._exit(0)
    connection.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def _become(request: bytes, passed: list[int]) -> None:
    """Makes this process the client's: streams, directory, environment, command line."""
    place, streams, count, *rest = request.split(b"\0")
    os.chdir(place)
    for number in (0, 1, 2):
        os.close(number)
    for number, stream in zip(streams.decode(), passed, strict=True):
        os.dup2(stream, int(number))
    for stream in passed:
        os.close(stream)
    is_open = [str(number) in streams.decode() for number in (0, 1, 2)]
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, encoding="utf-8", closefd=False) if is_open[n] else None for n, mode in enumerate("rww"))
    os.environ.clear()
    os.environb.update(variable.split(b"=", 1) for variable in rest[int(count) :])
    sys.argv = [os.fsdecode(word) for word in rest[: int(count)]]
    sys.path[0] = os.getcwd()


def run() -> None:
    """What Python does with `-m MODULE WORD…`, `-c CODE WORD…` or `FILE WORD…`."""
    import runpy

    option = sys.argv[0]
    if option == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        exec(compile(sys.argv.pop(1), "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(option))
        runpy.run_path(option, run_name="__main__")


def end(program) -> None:
    """Runs it and ends the process as an interpreter does, but for taking apart every module, which costs more than most commands."""
    import atexit
    import signal
    import threading

    status: object = 0
    try:
        program()
    except SystemExit as e:
        status = e.code
    except BaseException as e:
        sys.excepthook(type(e), e, e.__traceback__)
        status = e if isinstance(e, KeyboardInterrupt) else 1
    threading._shutdown()
    atexit._run_exitfuncs()
    if isinstance(status, str):
        print(status, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    if isinstance(status, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status & 0xFF if isinstance(status, int) else status is not None)


if __name__ == "__main__":
    if sys.argv[1] != "serve":
        ask(sys.argv[1], sys.argv[2:])
    serve(sys.argv[2])
    end(run)
