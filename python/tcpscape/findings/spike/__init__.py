"""Latency spikes after a sudden drop of capacity: the least that there must be, and what was measured.

`bound` has the arithmetic of the bound and the spike of a recording, `recording` what a sender's kernel said over time. Begin with `bound`.
"""
