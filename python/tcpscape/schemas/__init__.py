"""The schemas of everything that users write and tcpscape prints: JSON documents (JSON Schema 2020-12), and the columns of tables.

Begin with :data:`tcpscape.schemas.documents.DOCUMENTS`: each kind of document with the type that it is made of. The
models of a scenario, a campaign and a study say what is written; `generator` makes JSON Schema of all of them, `tables` has the columns. The
descriptions are the docstrings of the fields. The tests validate what every command prints.
"""
