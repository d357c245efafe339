"""The files that a diagnosis writes: the fitted path as a scenario."""

from __future__ import annotations

from pathlib import Path

from tcpscape import writing
from tcpscape.errors import refuse
from tcpscape.findings.diagnosis import scenario
from tcpscape.findings.diagnosis.diagnosis import Diagnosis, FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import UNKNOWN, Control

DEFAULT = "cubic"
"""Linux's default congestion control."""


def fit(diagnosis: FlowDiagnosis, kernel: str | None = None) -> scenario.Fit | None:
    """What a scenario of a flow is made from; None where its RTT is not identifiable."""
    if diagnosis.path is None:
        return None
    return scenario.fit(diagnosis.flow, diagnosis.path, kernel) if kernel else scenario.fit(diagnosis.flow, diagnosis.path)


def likely(control: Control) -> str:
    """The congestion control, or what it most probably is; Linux's default where nothing says it."""
    return control.name if control.name != UNKNOWN else next(iter(control.candidates), DEFAULT)


def write_scenario(diagnosis: Diagnosis, file: Path, kernel: str | None = None) -> Path:
    """Writes the fitted path of the largest flow as a scenario.

    :raises TcpscapeError: one line, where there is no such path, or the file cannot be written.
    """
    first = diagnosis.flows[0] if diagnosis.flows else None
    made = fit(first, kernel) if first else None
    if first is None or made is None:
        why = first.not_identifiable.get("path.rtt_ms", "its RTT is not identifiable") if first else "there is no flow with data"
        refuse("out", f"there is no path to write: {why.removesuffix('.')}", "leave it out, or choose another flow")
    return writing.whole(file, scenario.text(made, likely(first.control)))
