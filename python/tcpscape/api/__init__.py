"""The Python interface: the commands of the command line as functions, with the same options, the same units and the same answers.

>>> import tcpscape
>>> outcome = tcpscape.run("starlink-baseline", cca=["cubic", "bbr"], seeds=5)  # doctest: +SKIP
>>> outcome.flows()  # a Polars frame, one row for each flow of each trial  # doctest: +SKIP

Quantities are written as on the command line (`"50ms"`, `"10mbit"`, `"0.1%"`, `"256KiB"`, `"2bdp"`); an option that is None is not given. What the
user can mend raises a :class:`tcpscape.TcpscapeError` of one line: field, problem, fix.

Trials and their results are in :mod:`tcpscape.api.trials`, questions to which trials are the answer in :mod:`tcpscape.api.questions`. What these
take is in `arguments`, and how they come by their options in `declared`.
"""
