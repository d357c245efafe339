"""A question asked without a server."""

from typing import Any

from tcpscape.web.pool import Pool, Work
from tcpscape.web.questions import KINDS
from tcpscape.web.state import State
from tcpscape.web.stream import Block

POOL = Pool(2)


def ask(kind: str, state: State, opened: Any = None, pool: Pool = POOL, **options: Any) -> list[Block]:
    """The blocks of a question, which can also be encoded; on a pool of one thread its trials end in the order in which they were asked for."""
    blocks: list[Block] = []
    KINDS[kind].model_validate(options).answer(state, Work(pool, blocks.append), opened)
    assert all(block.encode(kind, 1) for block in blocks)
    return blocks
