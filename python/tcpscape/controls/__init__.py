"""Congestion controls: their labels, those that are Python classes, and the documentation of each model.

A congestion control is named by its label, a string such as `cubic` or `cubic:hystart=0`; `spelling`, where to begin, reads and writes labels. A
label may also name a Python class, `mine.py:MyControl`: `classes` finds it, and `hooks` documents the methods that it may have. `documentation` reads
the pages in docs/models and the measured errors, which `cca show` and `qdisc show` print. `deployment` says which kernel has a congestion control,
and what to type to use it; `palette` gives each its colour, `bpf` loads one that is a BPF program.
"""
