"""``edit``: view, str_replace and insert, applied to the text of a file.

Every refusal says exactly what was wrong, so that the next attempt can be right: what was not found, how
often it was found, and which lines exist.
"""

from __future__ import annotations

MOST_SHOWN = 4000
"""Maximum number of characters of a view or an output that the agent sees; longer ones are cut in the
middle."""


class EditError(Exception):
    """The edit cannot be made; the agent sees the message."""


def view(path: str, text: str, view_range: tuple[int, int] | None) -> str:
    """Return lines with their numbers.

    Args:
        view_range: the first and the last line, counted from 1; None for all.

    Raises:
        EditError: these lines do not exist.
    """
    lines = text.splitlines()
    first, last = view_range or (1, len(lines))
    if not (1 <= first <= last <= len(lines)) and (view_range is not None or lines):
        raise EditError(
            f"view_range [{first}, {last}] is not within {path}: it has {len(lines)} lines, so a range is "
            f"[first, last] with 1 <= first <= last <= {len(lines)}"
        )
    return "\n".join(f"{number:>4}  {line}" for number, line in enumerate(lines[first - 1 : last], first))


def replace_text(path: str, text: str, old: str, new: str) -> str:
    """Return the text with the only occurrence of ``old`` replaced.

    Raises:
        EditError: ``old`` is empty, does not occur, or occurs more than once.
    """
    if not old:
        raise EditError("old_str is empty: give the text to replace, or use insert")
    count = text.count(old)
    if count == 0:
        raise EditError(f"old_str was not found in {path}: {old!r}; it must match exactly, spaces included")
    if count > 1:
        lines = [str(number) for number, line in enumerate(text.splitlines(), 1) if old in line]
        where = f" (in lines {', '.join(lines)})" if lines else ""
        raise EditError(f"old_str was found {count} times in {path}{where}; give more of the text around it")
    return text.replace(old, new)


def insert_text(path: str, text: str, line: int, new: str) -> str:
    """Return the text with ``new`` after that line; 0 is before the first line.

    Raises:
        EditError: this line does not exist.
    """
    lines = text.splitlines(keepends=True)
    if not 0 <= line <= len(lines):
        raise EditError(f"insert_line {line} is not within {path}: give 0 to {len(lines)}")
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join([*lines[:line], new if new.endswith("\n") else f"{new}\n", *lines[line:]])


def shortened(text: str) -> str:
    """The text as it is shown to the agent."""
    if len(text) <= MOST_SHOWN:
        return text
    half = MOST_SHOWN // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
