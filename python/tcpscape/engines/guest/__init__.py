"""Guests: User-Mode Linux kernels as processes that serve trials one after the other.

`initrd` is what a guest boots into · `room` where its memory lies · `console` what it says, and how long it may be silent · `process` one
guest · `pool` those that wait for the next trial, and the second try of a trial whose guest died.

Between host and guest: a run directory with a FIFO `jobs` (the guest reads a job's name, and waits there without using CPU), a directory
`io` (`NAME.job` goes in as JSON, `NAME.json` and its tables come out) and the console (`@tcpscape ready FACTS`, `@tcpscape done NAME`).
A guest with a seed has its only job from the start, says nothing before it is done, and ends.
"""

from __future__ import annotations

from tcpscape.engines.guest.console import Died, Patience
from tcpscape.engines.guest.pool import Pool, Request, pool_of
from tcpscape.engines.guest.process import Answer, Boot

__all__ = ["Answer", "Boot", "Died", "Patience", "Pool", "Request", "pool_of"]
