"""Captures: packets that tcpdump, dumpcap or Wireshark recorded, as the observation of their TCP flows.

The packets are read and analysed in Rust (`crates/capture`), chunk by chunk: neither the file nor its packets are held, and payload is never kept.
Begin with :func:`~tcpscape.capture.read.read`. `outputs` writes a capture again with our verdicts, draws a flow as tcptrace does, and replaces
addresses.
"""

from tcpscape.capture.outputs import Pseudonyms, annotate, verdicts, write_xpl
from tcpscape.capture.read import CAPTURE, CaptureError, read, recognises

__all__ = ["CAPTURE", "CaptureError", "Pseudonyms", "annotate", "read", "recognises", "verdicts", "write_xpl"]
