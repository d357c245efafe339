"""The only door for content from outside: every file that tcpscape reads is opened, bounded and parsed here.

What users, other tools and damaged disks hand over is not trusted. A file must be a regular one (a FIFO or a device is refused before it can block),
its size is judged before it is read and while it is unpacked (:mod:`~tcpscape.reading.files`), and its structure before values are built from it:
depth, aliases, tags, repeated keys and digits (:mod:`~tcpscape.reading.documents`), cells and columns (:mod:`~tcpscape.reading.tables`). What does
not fit is one line, `FILE: problem; fix`, as the exception of the file's :class:`~tcpscape.reading.files.Kind`.

Each kind of file is a constant beside the code that reads it; begin with :func:`~tcpscape.reading.files.content`. What comes with tcpscape is read by
:mod:`~tcpscape.reading.packaged` and is trusted. `scripts/doors.py` checks that no other module of the package opens or parses a file.
"""
