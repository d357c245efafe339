"""Why a test may be skipped where every skip is judged (`TCPSCAPE_SKIPS=strict`, as in `.ci/run`).

What the machine could do and skipped is an error there: a package that was not installed, a page that was not built.
"""

import os
from collections.abc import Iterable

LACKS = {
    "no packetdrill scripts": "They are GPL and no part of the project; `TCPSCAPE_PACKETDRILL` names their directories.",
    "no kernel is built": "Building a kernel for the virtual engine takes minutes; `make test-all` does it.",
    "netem": "The kernel of some machines has no netem, or one that misbehaves; only an administrator can change it.",
    "namespaces": "Some containers forbid user namespaces; only an administrator can change it.",
    "pdflatex": "A distribution's TeX takes hundreds of megabytes and minutes to install, for one test.",
    "needs Node": "The distribution has no Node that is new enough; make says so before the tests.",
}
"""Words of a reason, and why the machine cannot help it."""


def strict() -> bool:
    return os.environ.get("TCPSCAPE_SKIPS") == "strict"


def avoidable(reasons: Iterable[str]) -> list[str]:
    """The reasons that no lack of the machine explains, each once."""
    return sorted({reason for reason in reasons if not any(word in reason for word in LACKS)})
