"""Latency spikes after a sudden drop of capacity: the lower bound that theory gives, and the spikes that were measured.

The main type is :class:`bound.Bound`. `bound` has the arithmetic of the bound and compares measured spikes with it, `recording` the series that a
sender's kernel reports over time, `answer` the screen of a bound. Begin with `bound`.
"""
