"""The published studies: one YAML each with its conditions, its published numbers and the claims they make.

The main type is :class:`tcpscape.studies.study.Study`: one or more campaigns (its parts) with what was published of each. `run` runs one,
`measures` has what its claims measure, `verdicts` what can be said of a claim. Begin with `study`; to add one, write one YAML file here.
"""
