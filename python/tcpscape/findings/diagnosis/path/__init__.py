"""The path of a flow, fitted to what a capture shows of its packets: :func:`fit`.

`samples` makes delays of single packets from the columns, `arrivals` the packets that entered the bottleneck's queue, `bottleneck` fits its rate,
`jitter` and `losses` read the rest. `fitting` is the order in which they are called. The method and its measured accuracy:
docs/models/methods/path-fit.md.
"""

from tcpscape.findings.diagnosis.path.fitting import fit

__all__ = ["fit"]
