"""Guests: User-Mode Linux kernels as processes that serve trials one after the other.

The main type is :class:`GuestPool`: it runs a :class:`GuestJob` on a guest and returns a :class:`GuestAnswer`. Begin with `pool`, which keeps the
guests that wait for the next trial and repeats a trial whose guest died. `process` is one guest: what it starts from, its output, its timeouts.
:class:`GuestProgram` (`programs`) is a program of this machine in a guest, in place of a trial.

The channel between host and guest is a run directory with a FIFO `jobs` (the guest reads the name of a job, and waits there without using CPU),
a directory `io` (`NAME.job` goes in as JSON, `NAME.json` and its tables come out) and the console (`@tcpscape ready FACTS`, `@tcpscape done NAME`).
A guest with a seed has its only job from the start, sends its first message when the job is done, and ends.
"""

from __future__ import annotations

from tcpscape.engines.guest.pool import GuestJob, GuestPool, close_all, shared_pool
from tcpscape.engines.guest.process import Boot, GuestAnswer, GuestDied, Place, Timeouts, initrd
from tcpscape.engines.guest.programs import GuestProgram

__all__ = ["Boot", "GuestAnswer", "GuestDied", "GuestJob", "GuestPool", "GuestProgram", "Place", "Timeouts", "close_all", "initrd", "shared_pool"]
