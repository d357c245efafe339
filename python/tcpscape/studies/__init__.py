"""The published studies: what was measured elsewhere, run again under its own conditions, and a verdict on every claim.

The main type is :class:`tcpscape.studies.study.Study`: one or more campaigns (its parts), the files of its published numbers, and its claims.
The files depend on each other in this order:

- `study`: the catalogue, :class:`Study` and :class:`Claim`; one YAML file in this directory is one study
- `known`: the published numbers, tables in `data/`
- `spikes`: latency spikes of a cell's runs
- `result`: a study that was run, its table (ours beside published), the verdicts, the two kinds of measures, how a claim about cells is judged
- `measures`: what claims measure, one function and one registry line each
- `run`: runs a study and judges its result; :func:`tcpscape.studies.run.contrast` runs it on two engines

Begin with `study`, then `run`. To add a study, write one YAML file here (and tables of published numbers in `data/`); a published work whose claims
are new has a line in `study.WORKS`. To add a measure, write one function in `measures/` and one line in `measures.REGISTRY`.
"""
