"""A command behind an emulated path: `tcpscape emulate`.

The main types are :class:`~tcpscape.emulation.path.EmulatedPath` (the two directions, from options) and
:class:`~tcpscape.emulation.session.Session` (one run of a command and the control of its path, where to begin). `relay` opens ports of this machine
for it and leads to the world outside, `summary` has the document of what passed; `words/emulation.py` shows it.

The program that makes the namespaces and emulates the path is the live engine's (crates/live, mode `emulate`; `engines/host` is its process).
"""
