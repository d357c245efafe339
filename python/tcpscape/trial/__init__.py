"""A trial: the results of one scenario with one seed on one engine. Every engine fills the same fields; a value that it cannot measure is None.

The main type is :class:`Trial` (`trial`), with the results of each connection (`flow`), of probes, and of connections that arrive at random
(`traffic`); `parts` are the groups of numbers in them. Begin with :class:`Trial`.
"""

from tcpscape.trial.flow import FlowResult
from tcpscape.trial.parts import Cwnd, PlayerResult, ResponseResult, Rtt
from tcpscape.trial.traffic import ProbeResult, SizeClass, TransfersResult
from tcpscape.trial.trial import LOST, Trial

__all__ = ["LOST", "Cwnd", "FlowResult", "PlayerResult", "ProbeResult", "ResponseResult", "Rtt", "SizeClass", "TransfersResult", "Trial"]
