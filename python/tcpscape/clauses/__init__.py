"""The dossier that RFC 9743 asks for of a congestion control: measured clause by clause beside standard controls on the same cells and seeds.

The main type is :class:`tcpscape.clauses.dossier.Dossier`, a document: a verdict for each clause with its interval, the worst cells with a command
that repeats each, and what was not shown. The files depend on each other in this order:

- `clause`: the catalogue, :class:`Clause`; one YAML file in this directory is one clause: its cells (campaigns), its criteria, what it cannot show
- `measuring`: runs the campaigns for the control and the references; a control that fails in a cell is a result of that cell
- `judging`: a criterion on every cell, and the verdict, with a correction for many comparisons
- `dossier`: the document and its files
- `changes`: what differs between two of them: verdicts, and measures cell by cell

Begin with `clause`, then `judging`. To add a clause, write one YAML file here.
"""
