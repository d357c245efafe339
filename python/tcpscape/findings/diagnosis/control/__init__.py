"""The congestion control of a flow, from its packets at the sender.

`watched` reads the window of each round trip and its reductions from the columns of an observation, `shadows` lets each candidate watch the same
ACKs (`crates/shadow`) and compares what it would have done with what was seen, `shape` measures what needs no candidate (pacing, probes, growth,
backoff), `forest` weighs all of it, and `classify` answers, or says why it cannot. docs/models/methods/control.md has the method and its errors.
"""

from __future__ import annotations

from tcpscape.findings.diagnosis.control.classify import UNKNOWN, classify

__all__ = ["UNKNOWN", "classify"]
