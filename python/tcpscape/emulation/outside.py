"""The world outside in place of the far end: slirp4netns, which connects a namespace without root.

It runs with the user's rights in this machine's own network, and makes a connection of its own for each that comes out of the path. Without it
there is no way out: only root may give a namespace a device of the machine.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from contextlib import ExitStack
from types import TracebackType

from tcpscape.errors import refuse

PROGRAM = "slirp4netns"
DEVICE = "tap0"
PATIENCE_S = 10.0
"""s until its device must be there."""


def expect() -> None:
    """Refuses where the program is missing.

    :raises ScenarioError: with what to type.
    """
    if not shutil.which(PROGRAM):
        refuse("outside", f"{PROGRAM} is not installed", f"apt-get install {PROGRAM}, or give the far end ports of this machine with --reach")


class Way:
    """The way out of a namespace, as long as the context lasts."""

    def __init__(self, network: str, process: int, *, has_users: bool) -> None:
        """Makes the device.

        :param network: the path of the namespace that gets it.
        :param process: a process in its user namespace, where it `has_users` of its own.
        :raises ScenarioError: one line with what the program said.
        """
        self._stack = ExitStack()
        users = [f"--userns-path=/proc/{process}/ns/user"] if has_users else []
        ready, theirs = os.pipe()
        exits, self._alive = os.pipe()  # the program ends when nobody has the other end any more
        self._stack.callback(os.close, self._alive)
        words = [PROGRAM, *users, "--netns-type=path", "--mtu=1500", f"--ready-fd={theirs}", f"--exit-fd={exits}", network, DEVICE]
        self._process = subprocess.Popen(
            words, pass_fds=(theirs, exits), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )  # fmt: skip
        for descriptor in (theirs, exits):
            os.close(descriptor)
        is_ready = bool(select.select([ready], [], [], PATIENCE_S)[0] and os.read(ready, 1))
        os.close(ready)
        if not is_ready:
            lines = self._end().strip().splitlines()
            refuse("outside", f"{PROGRAM} made no device{f': {lines[-1]}' if lines else ''}", "run it as a user who may make one, or use --reach")

    def __enter__(self) -> Way:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _end(self) -> str:
        """Ends the program; what it wrote."""
        self._process.terminate()
        self._stack.close()
        return self._process.communicate()[1].decode(errors="replace")
