"""How long a test waits for what must happen."""

PATIENCE_S = 300.0
"""Seconds that only what hangs takes, also on a machine that does ten other things: a wait that such a machine may exceed shows nothing."""
