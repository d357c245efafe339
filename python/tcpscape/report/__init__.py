"""A result directory as a document: one HTML page that opens offline, with figures, tables and scenarios beside it.

Everything is made from the directory alone, and nothing runs again; the same directory gives the same report. Begin with :func:`build`
(`build.py`), and with `page`: the parts of which every page is made, whichever command writes it, and their order. `cells` has the estimates, the
scenario and the command of each cell, `tables` and `claims` the tables of the page, `figures` chooses and draws figures of :mod:`tcpscape.plots`,
`diagram` and `drawing` draw the path, `swatch` the look of a congestion control, `templates/` has the HTML, a file for each part. `validation` is the
page of a validation, `advice` what the page of an advice has of its own.
"""

from tcpscape.report.build import PAGE, TABLES, build

__all__ = ["PAGE", "TABLES", "build"]
