"""The documentation site: what MkDocs adds to the pages in docs/ when it builds it (`make site`)."""
