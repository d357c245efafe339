"""The result store: a directory that keeps trials as they end, so that an interrupted campaign continues.

Begin with :class:`tcpscape.store.results.Store`. It finds trials by their content address and keeps manifests as JSON documents. It knows nothing
of campaigns, cells and scenarios (:mod:`tcpscape.campaign.record` does).

- `results.sqlite` (:mod:`~tcpscape.store.database`) is an SQLite database with four tables. `trials` has a row for each trial: its `address`, the
  trial as JSON (the line of `--json` without its queues), and the reports of its queues (JSON, compressed with zlib), which are decoded only
  when they are read (:mod:`~tcpscape.store.rows`). `manifests` has the JSON documents in their order. `claims` says which writer runs
  which trial now (:mod:`~tcpscape.store.results`): several writers of one directory share the work, and take over what a killed one had claimed.
  `plans` has what each writer is about to run, as a JSON document, so that whoever follows it knows how much is to come; a writer that ends takes
  its own away, one that is killed or interrupted leaves it.
- `samples/`, `queue_samples/` and `packets/` (:mod:`~tcpscape.store.side_tables`) have one Parquet file for each trial of which they were asked for,
  written whole or not at all, and before the trial's row.
- `columns/` (:mod:`~tcpscape.store.columns`) has what is worked out of all trials of a large campaign, for the next reader. It may be deleted: it is
  believed only where nothing has changed since, and is worked out again otherwise.

**Guarantees.** When `save` returns, the trial survives SIGKILL of the process and of any other. The database is in WAL mode: a reader sees
a trial whole or not at all, and never waits; writers of one directory (threads, processes, forks) wait for each other for some microseconds. A
power failure or a crash of the kernel may cost the last trials, but does not damage the others (`synchronous=NORMAL`: docs/decisions.md).
A trial that was saved twice is in the store once, as it was saved last. Results of another model version have other addresses, so they are never
mixed. A trial whose row is damaged counts as missing and is run again; a damaged database is refused with one line that says what to do.

**Readers** need no permission to write. `sqlite3 results.sqlite "SELECT json_extract(trial, '$.goodput_mbps') FROM trials"` reads it without
tcpscape, and `tcpscape export DIR --to parquet` writes the table with one row for each flow.
"""
