"""Bad inputs for every command and every file that tcpscape reads, and what must come of them.

A case (:mod:`robustness.case`) is a command line with the files that it names. :mod:`robustness.commands` makes command lines: it reads the commands and
options from Click, so a new option is covered without a change. :mod:`robustness.formats` makes files: good documents (:mod:`robustness.documents`) that
are mutated (:mod:`robustness.mutations`) with values of :mod:`robustness.values`. :mod:`robustness.process` runs a case in a process of its own, and
:mod:`robustness.judge` says what is wrong with how it ended. `make fuzz-python` is the long form (:mod:`robustness.__main__`), `tests/robustness/test_fuzz_*.py` the
short one.
"""
