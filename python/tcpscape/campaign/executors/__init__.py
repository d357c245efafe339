"""Executors: where a campaign's trials run. The order of work, and where it is done, never changes a result.

`local` uses the cores of this machine and has the types that all executors share; `dask` uses a cluster at
`dask://HOST:PORT`. Begin with :func:`make`.
"""

from __future__ import annotations

from tcpscape.campaign.executors.local import Executor, Local
from tcpscape.errors import EngineError, refuse


def make(text: str, jobs: int = 0) -> Executor:
    """The executor called `local` or `dask://HOST:PORT`; `jobs` is the cores of the local one, 0 for all.

    :raises EngineError: for any other text, and where the cluster does not answer.
    """
    if text == "local":
        return Local(jobs)
    scheme, colon, place = text.partition("://")
    host, _, port = place.rpartition(":")
    if scheme != "dask" or not colon or not host or not port.isdigit():
        refuse("executor", f"{text!r} is unknown", "write local, or dask://HOST:PORT of a running `dask scheduler`", EngineError)
    if jobs:
        refuse("jobs", f"a cluster has its own cores, and {jobs} was asked for", "leave out --jobs", EngineError)
    from tcpscape.campaign.executors.dask import Dask

    return Dask(f"tcp://{place}")
