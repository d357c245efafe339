"""Captures: packets that tcpdump, dumpcap or Wireshark recorded, as the observation of their TCP flows.

The packets are read and analysed in Rust (`crates/capture`), chunk by chunk: neither the file nor its packets are held, and payload is never kept.
Begin with :func:`~tcpscape.capture.read.read`. `annotated` writes a capture again with our verdicts, `xplot` draws a flow as tcptrace does,
`pseudonyms` replaces addresses.
"""

from tcpscape.capture.annotated import annotate, verdicts
from tcpscape.capture.pseudonyms import Pseudonyms
from tcpscape.capture.read import CAPTURE, CaptureError, read, recognises
from tcpscape.capture.xplot import write_xpl

__all__ = ["CAPTURE", "CaptureError", "Pseudonyms", "annotate", "read", "recognises", "verdicts", "write_xpl"]
