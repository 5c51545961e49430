"""What a page of docs/ holds, read as plain Markdown: its title, its links, its blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)(?P<marks>```+)(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)(?P=marks)\s*$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    language: str
    """The word after the fence; empty if there is none."""
    code: str
    remark: str
    """The comment right above it, which no reader sees; empty where there is none."""


def blocks(text: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    found = []
    for match in FENCE.finditer(text):
        above = COMMENT.search(text[: match.start()])
        margin = len(match["indent"])
        code = "".join(line[margin:] if line.strip() else line for line in match["code"].splitlines(True))
        found.append(Block(match["language"], code, above[1] if above else ""))
    return found


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", text)


def links(text: str) -> Iterator[re.Match[str]]:
    """Every link and image outside code; groups ``image``, ``text`` and ``target``."""
    bare = SPAN.sub(lambda match: " " * len(match[0]), FENCE.sub(lambda match: " " * len(match[0]), text))
    for match in LINK.finditer(text):
        if bare[match.start()] != " ":
            yield match


def spans(text: str) -> list[str]:
    """What stands between single back-ticks outside fenced blocks."""
    return SPAN.findall(prose(text))


def title(page: Path) -> str:
    """The first heading."""
    for line in prose(page.read_text(encoding="utf-8")).splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ")
    raise ValueError(f"{page}: has no heading `# ...`")
