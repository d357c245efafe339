"""A running `tcpscape explore`, as a user starts it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from pathlib import Path

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\S*")
COMMAND = (sys.executable, "-m", "tcpscape", "explore")
START_S = 60
"""How long a start may take on a machine with other work; how long it takes is measured by `benches/explorer.py`."""
END_S = 20


class Explorer:
    """The process of the command; `with` ends it."""

    def __init__(self, *arguments: str, port: int = 0, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
        """Starts the command and waits for its line with the address.

        :raises AssertionError: with what it printed, where no address comes.
        """
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as the process)
        command = [*COMMAND, *arguments, "--no-browser", "--port", str(port)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors, text=True, cwd=cwd, env=os.environ | (environment or {})
        )
        self.lines: list[str] = []
        self.url = self._address()
        self.port = urllib.parse.urlsplit(self.url).port
        self.origin = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout or ()), daemon=True).start()

    def _address(self) -> str:
        impatience = threading.Timer(START_S, self.process.kill)
        impatience.start()
        try:
            for line in self.process.stdout or ():
                self.lines.append(line)
                if found := ADDRESS.search(line):
                    return found.group()
        finally:
            impatience.cancel()
        self.process.wait()
        raise AssertionError(f"no address within {START_S} s; it printed {self.lines}, and as errors:\n{self.errors()}")

    def errors(self) -> str:
        """What it has written to standard error so far."""
        self._errors.seek(0)
        return self._errors.read()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends the process by a signal, and returns its exit status (negative: the signal's number)."""
        self.process.send_signal(how)
        try:
            return self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{how.name} did not end it within {END_S} s; its errors:\n{self.errors()}") from None

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *raised: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self.process.poll() is None:
                self.stop()
        if not any(raised):
            errors = self.errors()
            assert "Traceback" not in errors, errors
