"""The form that environments had before 0.2: a bundle of callables. It is accepted for one version.

Remove this file and its imports in the version after that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import parent_process
from typing import Any

from skillpress.core.interface import Agent, Environment, Info, Rendering, ScratchVocabulary
from skillpress.core.trajectory import Task
from skillpress.environments.section import (
    AdvisingOracle,
    AgentParts,
    EnvironmentSection,
    Hosting,
    Oracle,
    Projection,
    SharedEnvironments,
    SplitSizes,
    environment_class,
)
from skillpress.environments.task_parameters import TaskParameters

_LOG = logging.getLogger(__name__)

__all__ = [
    "AdvisingOracle",
    "AgentParts",
    "EnvironmentBundle",
    "EnvironmentParameters",
    "Hosting",
    "Oracle",
    "Projection",
    "SharedEnvironments",
    "SplitSizes",
    "TaskParameters",
]

NOTE = """\
{name}: an EnvironmentBundle is read in this version only. Make its parts methods of its section:
    class {title}(EnvironmentSection):  # from skillpress.environments; with the keys of {parameters}
        def make(self): ...  # what make(section) returns
        def make_tasks(self, sizes, seed): ...  # make_tasks(section, sizes, seed)
        def make_projection(self): ...  # projection, or rules(section)
and likewise renderings, vocabulary, make_oracle (oracle), make_shared (share), inputs (data), and so on; \
docs/extending.md has a complete one. Then params.yaml names the class: {name}:{title}"""


class EnvironmentParameters(EnvironmentSection):
    """The ``environment`` section of a bundle, which has the parts itself."""

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        """The bundle has them."""
        self._lacks("make_tasks")

    def make(self) -> Environment:
        """The bundle has it."""
        self._lacks("make")

    def make_projection(self) -> Projection:
        """The bundle has it."""
        self._lacks("make_projection")


@dataclass(frozen=True)
class EnvironmentBundle:
    """All parts of one environment; :class:`EnvironmentSection` says what each is."""

    parameters: type[EnvironmentParameters]
    make: Callable[[Any], Environment]
    make_tasks: Callable[[Any, SplitSizes, int], Iterator[Task]]
    check_tasks: Callable[[Sequence[Task]], None]
    projection: Projection
    renderings: Mapping[str, Callable[[Any, int], Rendering]]
    vocabulary: Callable[[Any, int], ScratchVocabulary] | None
    oracle: Callable[[Any], Oracle]
    explorer_actions: Callable[[Info], Sequence[str]]
    rules: Callable[[Any], Projection] | None = None
    hosting: Hosting = "in_process"
    share: Callable[[Any, int], SharedEnvironments] | None = None
    domain_words: Callable[[Any], Mapping[str, Sequence[str]]] | None = None
    answer_forms: bool = False
    measures: tuple[str, ...] | None = ()
    notepad: bool = False
    libraries: tuple[str, ...] = ()
    data: Callable[[Any], Mapping[str, str]] | None = None
    agent: Callable[[Any, AgentParts], Agent] | None = None
    reader: Callable[[Any], Callable[[str], Any]] | None = None
    dropped: Callable[[Any], Mapping[str, Mapping[str, int]]] | None = None

    @cached_property
    def section(self) -> type[EnvironmentSection]:
        """The environment in its present form."""
        if parent_process() is None:
            title, parameters = self.parameters.__module__, self.parameters.__name__
            note = NOTE.format(name=title, title=parameters.removesuffix("Parameters"), parameters=parameters)
            _LOG.warning("%s", note)
        made: type[EnvironmentSection] = type(self.parameters.__name__, (self.parameters,), self._methods())
        return made

    def _methods(self) -> dict[str, Any]:
        """The methods of the section, each from a part that the bundle has."""
        of_section = {
            "make": self.make,
            "make_tasks": self.make_tasks,
            "make_projection": self.rules or (lambda section: self.projection),
            "renderings": self._renderings,
            "vocabulary": self.vocabulary,
            "make_oracle": self.oracle,
            "make_shared": self.share,
            "domain_words": self.domain_words,
            "inputs": self.data,
            "make_agent": self.agent,
            "make_reader": self.reader,
            "dropped": self.dropped,
            "check_tasks": lambda section, tasks: self.check_tasks(tasks),
            "explorer_actions": lambda section, info: self.explorer_actions(info),
            "__reduce__": lambda section: (_read_again, (dict(section),)),
        }
        methods = {name: _as_method(part) for name, part in of_section.items() if part is not None}
        facts = ("hosting", "answer_forms", "measures", "notepad", "libraries")
        return methods | {name: getattr(self, name) for name in facts} | {"__module__": __name__}

    def _renderings(self, section: EnvironmentSection) -> dict[str, Callable[[int], Rendering]]:
        def of(make: Callable[[Any, int], Rendering]) -> Callable[[int], Rendering]:
            return lambda history: make(section, history)

        return {name: of(make) for name, make in self.renderings.items()}


def _as_method(part: Callable[..., Any]) -> Callable[..., Any]:
    """A method that calls the part. An attribute that is a class would not receive the section."""
    return lambda *arguments: part(*arguments)


def _read_again(values: Mapping[str, Any]) -> EnvironmentSection:
    """Rebuild a section in a process that has not made its class."""
    return environment_class(values["name"]).model_validate(values)
