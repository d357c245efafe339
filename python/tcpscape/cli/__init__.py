"""The command line: one module for each command, which parses options, calls the package and prints the answer; no logic.

`main` is the entry point, `app` the registry of commands, `options` what several commands share. Begin with `app`.
"""
