"""Bad inputs for every command and every file that tcpscape reads, and what must come of them.

A case (:mod:`robustness.case`) is a command line with the files that it names. Two kinds of them are carried out, and judged by
:mod:`robustness.judge`:

- known nonsense: `nonsense.tsv` has a line for each, with the field that must be named and the fix (:mod:`robustness.nonsense`), and files that are none;
- generated ones: :mod:`robustness.commands` makes command lines from what Click says of commands and options, so a new option is covered without a
  change; :mod:`robustness.formats` makes files: good documents (:mod:`robustness.documents`) that are mutated (:mod:`robustness.mutations`) with values
  of :mod:`robustness.values`.

`test_nonsense.py` and `test_generated.py` carry out cases in the tests' own process. `make fuzz-python` is the long form (:mod:`robustness.__main__`):
many more, each in a process of its own (:mod:`robustness.process`).
"""
