"""The kernel that a scenario simulates: a profile (docs/models/tcp/kernel-profiles.md) and the settings that differ from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tcpscape.errors import refuse
from tcpscape.scenario.fields import Size, Spec


class Kernel(Spec):
    """The kernel simulated: a profile's name and sysctls that differ from it (docs/models/tcp/kernel-profiles.md)."""

    profile: str = "6.1"
    hz: int | None = Field(default=None, ge=24, le=10_000)
    window: Literal["half", "scaling_ratio"] | None = None
    skb_overhead: int | None = Field(default=None, ge=0, le=65_536)
    max_tcp_header: int | None = Field(default=None, ge=0, le=4_096)
    rmem_max: Size | None = None
    wmem_max: Size | None = None
    tcp_rmem_default: Size | None = None
    tcp_rmem_max: Size | None = None
    tcp_wmem_default: Size | None = None
    tcp_wmem_max: Size | None = None
    comp_sack_nr: int | None = Field(default=None, ge=0)
    comp_sack_delay_ns: int | None = Field(default=None, ge=0)
    slow_start_after_idle: bool | None = None

    def plan(self) -> dict[str, Any]:
        """The profile and its overrides, plain numbers."""
        return {k: getattr(self, k) for k in type(self).model_fields if getattr(self, k) is not None}


def _kernel(value: Any) -> Any:
    """`6.1`, `6.12,rmem_max=4MiB`, or a mapping."""
    if isinstance(value, float):
        refuse("kernel", f"{value} is a number, and 6.1 and 6.10 are the same number", f"write it in quotes: '{value}'")
    if isinstance(value, str):
        profile, *overrides = value.split(",")
        fields: dict[str, Any] = {"profile": profile.strip()}
        for item in overrides:
            key, eq, text = item.partition("=")
            if not eq:
                refuse("kernel", f"{item!r} is not NAME=VALUE", "write for example 6.12,rmem_max=4MiB")
            fields[key.strip()] = text.strip()
        return fields
    return value


KernelField = Annotated[Kernel, BeforeValidator(_kernel)]
"""A kernel as written: `6.1`, `6.12,rmem_max=4MiB`, or a mapping."""
