"""Parts of a page that programs make; the rest stays as it was written.

<!-- made: state -->
...
<!-- end -->
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

MADE = re.compile(r"<!-- made: (\w+) -->\n.*?<!-- end -->", re.DOTALL)

Parts = Mapping[str, Callable[[], Iterator[str]]]
"""Name of a part to what makes its lines."""


def prose(*sentences: str) -> Iterator[str]:
    """Sentences as the lines of a paragraph; empty ones are left out."""
    yield from textwrap.wrap(" ".join(filter(None, sentences)), 128, break_on_hyphens=False)


def bullet(*sentences: str) -> Iterator[str]:
    """The same as an item of a list."""
    first, *others = prose(*sentences)
    yield f"- {first}"
    yield from (f"  {line}" for line in others)


class UnknownPartError(ValueError):
    """The page asks for a part that nothing makes."""


def made_anew(text: str, page: Path, known: Parts) -> str:
    """The page's text with all its made parts.

    Raises:
        UnknownPartError: one of its markers names none.
    """

    def part(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise UnknownPartError(f"{page}: no part {match[1]!r}; there are {', '.join(known)}")
        lines = "\n".join(known[match[1]]()).strip("\n")
        return f"<!-- made: {match[1]} -->\n{lines}\n<!-- end -->"

    return MADE.sub(part, text)
