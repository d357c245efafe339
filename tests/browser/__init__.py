"""Tests of the explorer's page in a real browser: `make test-web`.

`explorer` starts `tcpscape explore` as a process, `watch` looks after every page that a test opens, `path` names what the page shows. A test that opens
a page fails on whatever the page should never do: an error on the console, an exception, a breach of its policy, a request to another place.
"""
