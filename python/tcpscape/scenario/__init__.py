"""Scenarios: everything that a trial depends on but its seed and its engine, with quantities as people write them.

The main type is :class:`tcpscape.scenario.scenario.Scenario`: a path (`path`: tc's words, or hops with fields), the flows on it, a kernel, what
changes meanwhile (`changes`), and a duration. Scenarios come from YAML and TOML files and from the gallery (`files`), or from the
:class:`~tcpscape.scenario.conditions.Conditions` of a path: RTT, jitter, loss, rate. `traces` reads recorded rates. Begin with `scenario`;
`fields` has the types of its fields.
"""
