"""Every internal link of the built site, followed: to a file that is there, and to an anchor that it has.

Links to other sites cannot be followed without a network; only their form is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches without being asked to."""
KINDS_OF_LINK = {"stylesheet", "icon", "preload", "prefetch", "shortcut icon"}
"""The ``link`` elements that the browser fetches."""


@dataclass
class Page(HTMLParser):
    """The anchors of a page and where its links lead."""

    anchors: set[str] = field(default_factory=set)
    targets: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note its id, what it leads to and what it loads."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        for name in ("href", "src"):
            if not values.get(name):
                continue
            self.targets.append(values[name])
            if (tag, name) in LOADED and (tag != "link" or values.get("rel", "") in KINDS_OF_LINK):
                self.loads.append(values[name])


def read(path: Path) -> Page:
    """A page of the site."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def wrong_links(site: Path) -> Iterator[str]:
    """A line for every link that leads nowhere and everything that a page would fetch from elsewhere."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site)
        for target in dict.fromkeys(page.targets):
            reason = _wrong(path, target, pages)
            if reason:
                yield f"{where}: {target}: {reason}"
        for target in page.loads:
            if urlsplit(target).netloc:
                yield f"{where}: {target}: is fetched from another site"


def _wrong(path: Path, target: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(target)
    if parts.scheme in ("http", "https"):
        return "" if "." in parts.netloc and " " not in target else "is no address"
    if parts.scheme in ("data", "mailto", "javascript"):
        return "" if parts.scheme != "javascript" else "runs a script"
    if parts.scheme:
        return f"has the scheme {parts.scheme}"
    place = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if place.is_dir():
        place /= "index.html"
    if not place.is_file():
        return "there is no such file"
    anchor = unquote(parts.fragment)
    if anchor and place in pages and anchor not in pages[place].anchors:
        return "the page has no such anchor"
    return ""
