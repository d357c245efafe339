"""Findings: the answers that estimates give to a user's questions about a path.

`cliff` finds where goodput falls and where single runs cannot be trusted (the chaos zone), `spike` compares latency spikes with their lower bound,
`damage` takes the ingredients of a path away one by one, `fairness` follows how flows share, `indicators` diagnoses who limits a flow. `advice`
combines cliff, chaos zone and damage; its main type is :class:`advice.Advice`, the result of :meth:`advice.Adviser.advise`. Begin there. `diagnosis`
explains a measurement, `calls` says how many calls a path carries.
"""
