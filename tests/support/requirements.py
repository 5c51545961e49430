"""What requirements bring with them, as far as it is installed here."""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required(*requirements: str) -> set[str]:
    """The names of the distributions that the requirements, with their extras, bring with them."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {seen for owner, seen in found if owner == name}:
            found.add((name, extra))
            try:
                needed = map(Requirement, metadata.requires(name) or [])
            except metadata.PackageNotFoundError:
                continue  # of another system
            waiting += [each for each in needed if not each.marker or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}
