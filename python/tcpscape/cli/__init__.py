"""The command line: a module for each command, which parses options, calls the package and prints the answer; no logic.

`main` is the entry point · `overview` the list of the commands · `command` how dataclasses become options · `options` those that several commands
share · `checks` the option --check · `terminal` how tables are printed, the progress and Ctrl-C · `process` how a process begins and ends. Begin with
`main`.
"""
