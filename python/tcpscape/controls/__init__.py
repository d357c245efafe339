"""Congestion controls: how they are written, what a user's own class is, and what is documented and measured of each model.

A congestion control is named by its label, `cubic` or `cubic:hystart=0` (`spelling`), or by a Python class, `mine.py:MyControl`, which `classes`
finds and whose methods `hooks` describes. `pages` reads docs/models/, `fidelity` the measured errors; `cca show` and `qdisc show` print both.
Begin with `spelling`.
"""
