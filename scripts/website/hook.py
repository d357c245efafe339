"""The hook of MkDocs: adds the pages from outside docs/, the pages written from the source, and the models to the navigation; leads links there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # MkDocs restores sys.path after it has read a hook

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website import pages, reference

ROOT = Path(__file__).parents[2]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A folder in the navigation stands for its pages."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the site: those of docs/ and those from outside it, with links that fit."""
    for file in [f for f in files if f.src_uri in pages.MOVED_FROM_DOCS]:
        files.remove(file)
    for uri, content in {**pages.outside(ROOT), **reference.commands.pages()}.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with the parts that are written from the source, and with its links led to where the linked pages are in the site."""
    return pages.with_lists(pages.with_links(reference.filled(markdown), page.file.src_uri))


def _expanded(nav: object, docs: Path) -> object:
    """The navigation with a list of its pages for each folder, `models/queues/`."""
    if isinstance(nav, list):
        return [_expanded(item, docs) for item in nav]
    if isinstance(nav, dict):
        return {title: _expanded(item, docs) for title, item in nav.items()}
    if nav == reference.commands.FOLDER:
        return list(reference.commands.pages())
    if isinstance(nav, str) and nav.endswith("/"):
        return [f"{nav}{file.name}" for file in sorted((docs / nav).glob("*.md"))]
    return nav
