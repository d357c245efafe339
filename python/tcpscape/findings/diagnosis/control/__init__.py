"""The congestion control of a flow, from its packets.

`watched` reads the window of each round trip and its reductions from the columns of an observation, and lets each candidate watch the same ACKs
(`crates/shadow`). `classify` makes features of both, weighs them by trained trees and answers, or says why it cannot. docs/models/methods/control.md
has the method and its errors.
"""

from __future__ import annotations

from tcpscape.findings.diagnosis.control.classify import UNKNOWN, classify

__all__ = ["UNKNOWN", "classify"]
