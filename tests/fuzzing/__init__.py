"""Bad inputs for every command and every file that tcpscape reads, and what must come of them.

A case (:mod:`fuzzing.case`) is a command line with the files that it names. :mod:`fuzzing.commands` makes command lines: it reads the commands and
options from Click, so a new option is covered without a change. :mod:`fuzzing.formats` makes files: good documents (:mod:`fuzzing.documents`) that
are mutated (:mod:`fuzzing.mutations`) with values of :mod:`fuzzing.values`. :mod:`fuzzing.process` runs a case in a process of its own, and
:mod:`fuzzing.judge` says what is wrong with how it ended. `make fuzz-python` is the long form (:mod:`fuzzing.__main__`), `tests/test_fuzz_*.py` the
short one.
"""
