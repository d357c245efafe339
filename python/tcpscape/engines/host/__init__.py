"""The live engine's program `tcpscape-live` (crates/live) as a process: a job in, events and a result out.

The main type is :class:`HostProcess` (`process`, where to begin): one run of the program in one of its modes, one trial at a time. `survey` asks once
per process what this machine allows, and measures how well; `sockets` samples its connections, `leftovers` finds what killed commands left.

The channel is a pipe in each direction, with one JSON document in each line: the job is the first line in, control messages are further ones;
`{"event": …}` come out, and last `{"result": …}` or `{"error": …}`. The program ends with its input, and with this process.
"""

from __future__ import annotations

from tcpscape.engines.host.process import PROGRAM, HostProcess, alone
from tcpscape.engines.host.survey import reason, unavailable

__all__ = ["PROGRAM", "HostProcess", "alone", "reason", "unavailable"]
