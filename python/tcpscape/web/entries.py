"""Links, transfers and probes of a scenario as the command line has them, `--link "delay 5ms rate 50mbit"`, where these texts can say them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from tcpscape.errors import TcpscapeError
from tcpscape.scenario import grammar
from tcpscape.scenario.flows import PRESETS, Probe, ProbeField, Transfers, TransfersField
from tcpscape.scenario.topology import ChainLink, ChainLinkField

_LINK: TypeAdapter[ChainLink] = TypeAdapter(ChainLinkField)
_TRANSFERS: TypeAdapter[Transfers] = TypeAdapter(TransfersField)
_PROBE: TypeAdapter[Probe] = TypeAdapter(ProbeField)


def link(of: ChainLink) -> str | None:
    """`name home delay 15ms rate 20mbit`; None where no text says it."""
    fields = of.model_dump(mode="json", exclude_defaults=True)
    if not fields.keys() <= {*grammar.OF_LINKS}:
        return None
    fields |= {"between": ",".join(of.between)} if of.between else {}
    return _first([" ".join(f"{name} {fields[name]}" for name in grammar.OF_LINKS if name in fields)], _LINK, of)


def transfers(of: Transfers) -> str | None:
    """`20/s,30kB~up`; None where no text says them."""
    fields = of.model_dump(mode="json", exclude_defaults=True)
    head = f"{fields.pop('rate'):g}/s" + (f",{fields.pop('size')}" if "size" in fields else "")
    return _first([f"{head}{_tail(fields)}"], _TRANSFERS, of)


def probe(of: Probe) -> str | None:
    """`voice~up`, `ping~interval=100ms`; None where no text says it."""
    fields, texts = of.model_dump(mode="json", exclude_defaults=True), []
    for preset in PRESETS:
        base = _PROBE.validate_python(preset).model_dump(mode="json", exclude_defaults=True)
        own = {name: value for name, value in fields.items() if base.get(name) != value}
        texts += [f"{preset}{_tail({n: v for n, v in own.items() if n != 'name'})}", f"{preset}{_tail(own)}"]
    return _first(sorted(texts, key=len), _PROBE, of)


def _first(texts: Sequence[str], read: TypeAdapter[Any], of: object) -> str | None:
    """The first text that is read as `of`."""
    for text in texts:
        try:
            if read.validate_python(text) == of:
                return text
        except (TcpscapeError, ValueError):
            continue
    return None


def _tail(fields: Mapping[str, Any]) -> str:
    """`~up~enter=b@5s-8s`."""
    values = dict(fields)
    start, stop = values.pop("start", ""), values.pop("stop", "")
    way = "~up" if values.pop("direction", "") == "up" else ""
    own = values.pop("access", None)
    values |= {"access": grammar.access(own)} if own else {}
    until = f"-{stop}" if stop else ""
    return f"{way}{''.join(f'~{name}={value}' for name, value in values.items())}" + (f"@{start or '0s'}{until}" if start or stop else "")
