"""The explorer: a page in the browser that answers while its sliders move, served on loopback from this process.

`state` is what the page shows as text (the path, congestion controls, what is asked), and the scenario of it. A **question** (`questions/`, one
file each) is what a view asks about a state: an answer, a curve, a map, one run. It runs trials through `pool`, which gives the newest question of
each kind the cores, the most urgent trial of the page whose turn it is first, keeps what ran, and ends what is stale; it sends **blocks** over the
page's stream of server-sent events (`stream`), of which each open page has one (`pages`). `routes` is the application and names the modules with
requests, `page` has the page's own files and what it is told of errors, `security` stands before them, `serve` is the server's life.
The page's sources are TypeScript, in `web/` of the checkout; the built page is in `static/`.

Numbers come from the same campaigns as those of the command line: the same seed gives the same numbers.
"""
