"""A command behind an emulated path: `tcpscape emulate`.

The main types are :class:`~tcpscape.emulation.path.EmulatedPath` (the two directions, from options) and
:class:`~tcpscape.emulation.session.Session` (one run of a command, where to begin). `control` steers a path that runs, `relay` opens ports of
this machine for it, `outside` leads to the world outside, `summary` has the document of what passed, `answer` shows it.

The program that makes the namespaces and emulates the path is the live engine's (crates/live, mode `emulate`; `engines/host` is its process).
"""
