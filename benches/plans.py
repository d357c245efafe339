"""Plans of the benchmarks that are no scenarios: the engine's JSON from stages and flows; and where the recorded data is."""

from __future__ import annotations

import pathlib

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "reference"


def make_flow(
    cca: str, stop_ns: int, *, app_Bps: float = 0, rcvbuf: int = 0, sndbuf: int = 0, read_size: int = 65536, read_delay_ns: int = 0
) -> dict:
    """One flow of a plan: bulk, or chunks of 8192 bytes at a rate without catch-up."""
    app = {"kind": "paced", "chunk": 8192, "rate_Bps": round(app_Bps)} if app_Bps else {"kind": "bulk", "chunk": 8192}
    return {
        "cca": cca,
        "start_ns": 0,
        "stop_ns": stop_ns,
        "app": app,
        "read": {"size": read_size, "delay_ns": read_delay_ns},
        "rcvbuf": rcvbuf,
        "sndbuf": sndbuf,
        "nodelay": True,
    }


def make_plan(*, duration_ns: int, forward: list, reverse: list, flows: list, sample_interval_ns: int = 0, kernel: dict) -> dict:
    """A plan from its stages and flows."""
    return {
        "duration_ns": duration_ns,
        "mtu": 1500,
        "kernel": kernel,
        "offload": False,
        "forward": {"stages": forward, "schedule": []},
        "reverse": {"stages": reverse, "schedule": []},
        "flows": flows,
        "sample_interval_ns": sample_interval_ns,
        "queue_sample_interval_ns": 0,
        "trace_packets": False,
        "arp": True,
    }
