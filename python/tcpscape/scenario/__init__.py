"""Scenarios: everything that a trial depends on but its seed and its engine, with quantities as people write them.

The main type is :class:`tcpscape.scenario.scenario.Scenario`, where to begin: a path, the flows on it, a kernel and a duration. Its parts are in
`path` (hops and queues: tc's words, or fields), `topology` (links of a chain, access links), `flows` (congestion control, applications, sockets;
probes, transfers) and `changes` (what changes during a trial); `fields` has the types of quantities and the validation, `words` describes what tc's
words mean. `bottleneck` finds the lowest rate of a path, `limits` what weakens its results before it runs, `summary` says a path in words,
`differences` in what two of them differ. Scenarios come from YAML and TOML files and the gallery (`files`), from options (`options`, what is typed:
`grammar`), or from the :class:`~tcpscape.scenario.options.Conditions` of a path: RTT, jitter, loss, rate (`vocabulary` declares them for users).
`traces` reads recorded rates.
"""
