"""The command line: a module for each command, which parses options, calls the package and prints the answer; no logic.

`main` is the entry point · `app` the registry of commands · `command` how dataclasses become options · `options` those that several commands
share · `checks` the option --check · `progress` the bar and Ctrl-C · `tables` how tables are printed. Begin with `app`.
"""
