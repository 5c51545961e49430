"""The folder that Sphinx reads: the written pages, the generated ones, and the files that they link to.

A page of docs/ is plain Markdown for readers of the repository. Two things change for the site. A link to a
file of the repository becomes a link to a copy of it, and a link to a folder becomes the folder's name. The
front page gets the table of contents in the form that Sphinx needs.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from docs.build import api, command_line, contents, parameters
from docs.build.markdown import links

COPIES = "files"
"""Folder of the files of the repository that pages link to."""


CHANGELOG = "CHANGELOG.md"
"""The changelog is at the root, where people look for it; the site has it as a page."""


class BrokenLinkError(Exception):
    """A page links to a place that does not exist."""


def gather(root: Path, folder: Path) -> None:
    """Fill an empty folder.

    Raises:
        BrokenLinkError: a page links to a file that the repository does not have.
    """
    docs = root / "docs"
    for picture in [*docs.glob("*.png"), *docs.glob("figures/*.svg")]:
        copy(picture, folder / picture.relative_to(docs))
    for file in ("conf.py", "site.css"):
        copy(docs / file, folder / file)
    written = {page.name: page.read_text(encoding="utf-8") for page in docs.glob("*.md")}
    written[CHANGELOG.lower()] = (root / CHANGELOG).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, text in (written | generated(root)).items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(for_the_site(text, docs / name, root, folder), encoding="utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as front:
        front.write(contents.toctrees(folder))


def generated(root: Path) -> Mapping[str, str]:
    """Name of a page that is made from code to its text."""
    return {
        "parameters.md": parameters.page(root),
        "command_line.md": command_line.page(),
        **api.pages(),
    }


def for_the_site(text: str, page: Path, root: Path, folder: Path) -> str:
    """A page whose links to the repository's files work without the repository."""
    made, end = [], 0
    for match in links(text):
        link = rewritten(match, page, root, folder)
        made += [text[end : match.start()], link]
        end = match.end()
    return "".join([*made, text[end:]])


def rewritten(match: re.Match[str], page: Path, root: Path, folder: Path) -> str:
    """A link as the site has it."""
    target = match["target"].partition("#")[0]
    if not target or "://" in target or target.startswith("mailto:"):
        return match[0]
    place = (page.parent / target).resolve()
    if place.is_relative_to(root / "docs") and (place.suffix in (".md", ".png", ".svg")):
        return match[0]
    if place == root / CHANGELOG:
        return match[0].replace(f"../{CHANGELOG}", CHANGELOG.lower())
    if not place.exists() or not place.is_relative_to(root):
        raise BrokenLinkError(f"{page.relative_to(root)}: links to {match['target']}, which is not there")
    if place.is_dir():
        return match["text"]
    within = place.relative_to(root)
    copy(place, folder / COPIES / within)
    if place.suffix == ".md":
        leave_out_of_contents(folder / COPIES / within)
    above = "../" * len(page.relative_to(root / "docs").parent.parts)
    return f"[{match['text']}]({above}{COPIES}/{within})"


def leave_out_of_contents(page: Path) -> None:
    """Mark a copied page as one that no table of contents lists, which Sphinx otherwise warns of."""
    text = page.read_text(encoding="utf-8")
    if not text.startswith("---\n"):
        page.write_text(f"---\norphan: true\n---\n\n{text}", encoding="utf-8")


def copy(file: Path, to: Path) -> None:
    """A file, with the folders above it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)
