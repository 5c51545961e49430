"""Tables of rules for logs of our own environments. Tests compare them with the environments' projections."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from skillpress.logs.trace import TracesError

TABLES = Path(str(files("skillpress.logs") / "tables"))  # paths, as the tables of users are


def find_rules(named: str) -> Path:
    """The file of a table: one of ours by its environment's name, otherwise a path.

    Raises:
        TracesError: neither exists.
    """
    ours = sorted(path.stem for path in TABLES.glob("*.yaml"))
    if named in ours:
        return TABLES / f"{named}.yaml"
    if not Path(named).is_file():
        raise TracesError(f"--rules {named}: no such file, and not one of our tables: {', '.join(ours)}")
    return Path(named)
