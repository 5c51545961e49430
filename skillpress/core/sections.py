"""The base of every section of params.yaml: a base class, number types, and names of registered parts.

A section is a pydantic model that checks its own keys and makes the part that it describes. Its class is
defined beside that part: ``training`` in ``training/loop/parameters.py``, ``skills`` in
``skills/parameters.py``. Some sections choose their class by a key ``name``: ``environment``, ``engine``,
``algorithm`` and its ``select``, ``experience``. The field of such a section is marked with :class:`ByName`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from skillpress.core.errors import ParamsError, did_you_mean
from skillpress.core.names import CodeNotRunError
from skillpress.core.registry import Registry, check_name, lookup, named

MOST_COUNTED = 2**31 - 1
"""The largest count that a parameter may give."""
PositiveInt = Annotated[int, Field(ge=1, le=MOST_COUNTED)]
NonNegativeInt = Annotated[int, Field(ge=0, le=MOST_COUNTED)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Mass = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    """A section: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def registered(names: Collection[str], *also: str) -> AfterValidator:
    """Refuses a name that is not among these, before any work is done. A registry also accepts names of
    parts from outside; ``also`` adds further names to a registry's."""

    def check(name: str) -> str:
        if isinstance(names, Registry):
            return check_name(names, name, *also)
        if name not in names:
            raise ValueError(f"allowed: {', '.join(names)}{did_you_mean(name, names)}")
        return name

    return AfterValidator(check)


@dataclass(frozen=True)
class ByName:
    """Marks a field whose section is checked by a class that its ``name`` selects from a registry."""

    registry: Registry
    parameter: str
    """The dotted key of params.yaml that gives the name, such as ``engine.name``, for messages."""

    def section(self, name: str) -> type[Section]:
        """The class of the part called ``name``.

        Raises:
            ParamsError: the name is not in the registry, or the part is not a section.
        """
        found = lookup(self.registry, name, self.parameter)
        found = getattr(found, "section", found)  # an environment in the form before 0.2 (EnvironmentBundle)
        if isinstance(found, type) and issubclass(found, Section):
            return found
        raise ParamsError(f"{self.parameter}: is {name!r}, which is not a section; {self.registry.form}")

    def read(self, value: Any, base: type[Section] = Section) -> Any:
        """A section, checked by the class that its name selects; a checked section is returned unchanged.

        Args:
            base: the class that all sections of this field share. It alone checks the section of a part whose
                code a command that only looks does not import; its other keys are kept as they are written.

        Raises:
            ValueError: the name is missing or unknown, or a key is wrong (pydantic names it).
        """
        if isinstance(value, Section):
            return value
        name = named(self.registry, value)
        try:
            return self.section(name).model_validate(value)
        except CodeNotRunError:
            return _as_written(base).model_validate(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's hook: read first, then check that the result has the field's class."""
        return core_schema.no_info_before_validator_function(partial(self.read, base=source), handler(source))


@cache
def _as_written(base: type[Section]) -> type[Section]:
    """A section with the keys of ``base`` and any further ones; it makes no part."""

    class AsWritten(base):  # type: ignore[valid-type, misc]
        """The section of a part whose code is not imported."""

        model_config = ConfigDict(extra="allow")

    AsWritten.__abstractmethods__ = frozenset()
    return AsWritten
