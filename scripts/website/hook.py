"""The hook of MkDocs: adds the pages from outside docs/, makes the navigation of the index, and leads links."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # MkDocs restores sys.path after it has read a hook

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website import pages

ROOT = Path(__file__).parents[2]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation is that of the index, docs/README.md."""
    config.nav = pages.navigation(ROOT)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the site: those of docs/ and those from outside it, with links that fit."""
    for file in [f for f in files if f.src_uri in pages.MOVED_FROM_DOCS]:
        files.remove(file)
    for uri, content in pages.outside(ROOT).items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with its links led to where the linked pages are in the site, and its terms to the glossary."""
    uri = page.file.src_uri
    return pages.with_lists(pages.with_terms(pages.with_links(markdown, uri), uri))
