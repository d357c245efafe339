"""What the engine does while its profile is taken (`make fast`): a little of everything that users do.

The gallery's scenarios with every congestion control, a path behind each kind of queue, a thousand flows, and a diagnosis of a capture. The paths
whose gain docs/decisions.md names are others.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tcpscape.scenario.files import gallery

TCPSCAPE = [sys.executable, "-m", "tcpscape"]
PATH = ["--rtt", "30ms", "--rate", "60mbit", "--loss", "0.05%", "--duration", "5s"]
QUEUES = ["fq_codel", "fq", "cake", "codel", "pie", "red", "sfq"]


def main() -> None:
    """Runs it; the first command that fails ends it."""
    with tempfile.TemporaryDirectory() as folder:
        capture = str(Path(folder, "capture.pcap"))
        commands = [["run", name, "--cca", "all", "--seeds", "1"] for name in gallery()]
        commands += [["run", *PATH, "--queue", queue, "--cca", "cubic,bbr", "--seeds", "2"] for queue in QUEUES]
        commands += [
            ["run", *PATH, "--jitter", "3ms", "--cca", "cubic,bbr,bbr3", "--seeds", "2"],
            ["run", "--rtt", "20ms", "--rate", "500mbit", "--flows", "1000", "--cca", "cubic,bbr", "--duration", "2s", "--seeds", "1"],
            ["run", *PATH, "--cca", "cubic", "--seeds", "1", "--pcap", capture],
            ["diagnose", capture, "--no-replay"],
        ]
        for command in commands:
            subprocess.run([*TCPSCAPE, *command], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
