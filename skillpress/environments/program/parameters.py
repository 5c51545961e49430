"""The ``environment`` section of params.yaml for a program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from skillpress.core.lab import found_here
from skillpress.core.registry import CALL_READERS, lookup
from skillpress.core.sections import NonNegative, Positive, PositiveInt, registered
from skillpress.environments.bundle import EnvironmentParameters
from skillpress.play.programs.tool_calls import Reader

Reference = Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
"""``module:function``, importable from the lab's folder."""
Command = Annotated[list[str], Field(min_length=1)]


class ProgramParameters(EnvironmentParameters):
    """Which program plays, on which tasks, and who says whether it succeeded."""

    max_steps: PositiveInt = Field(validation_alias=AliasChoices("max_calls", "max_steps"))
    """T: the most calls to the model in an episode. A call is a step, so both ``max_calls`` and the common
    ``max_steps`` name it."""
    run: Reference | Command
    """A function, called as ``function(task, base_url=..., api_key=...)``, or a command and its arguments."""
    tasks: str
    """A file of tasks, JSON lines or Parquet, with an ``id`` and any other fields, in the working directory
    or the lab."""
    verify: Reference | Command
    """Who says whether it succeeded: ``function(task, printed, folder, calls)`` returns True, False, or a
    mapping with ``success`` and measures; a command reads the same as JSON from its input and prints such
    JSON."""
    rules: Annotated[str, Field(min_length=1)] | None = None
    """A table of rules that names calls (``environments/calls/rules.py``), in the working directory or the
    lab; null gives no call a skill."""
    verify_seconds: Positive = 120.0
    """How long the verifier may take for an episode. If it takes longer, the run ends with an error that
    names the task: without a verdict the episode has no reward."""
    calls: Annotated[str, registered(CALL_READERS)] = "hermes"
    """How the model's chat template writes calls of tools."""
    seconds: Positive
    """How long the program may work in an episode. Neither the time of the model counts nor that in which the
    program waits for a processor."""
    walls: Literal["bubblewrap", "none"]
    """Walls around a command; a function has none."""
    memory_mb: PositiveInt = 2048
    """The most memory in megabytes that a walled command and all its processes may use together."""
    gather_seconds: NonNegative | None = None
    """How long a batch of the engine ``local`` waits for requests of further episodes after its first.
    Without a value it waits until every open episode has asked or ended: a program with a slow tool holds up
    all others, and a repeated experiment has the same batches. Other engines take each request as it
    comes."""

    @property
    def title(self) -> str:
        """The program's own name."""
        return self.run.replace(":", ".") if isinstance(self.run, str) else Path(self.run[-1]).stem

    @property
    def gathering(self) -> float | None:
        """Same as ``gather_seconds``."""
        return self.gather_seconds

    @property
    def has_oracle(self) -> bool:
        """False: a program's model has no demonstrator."""
        return False

    def make_reader(self) -> Reader:
        """What reads the calls in the model's responses."""
        found: Reader = lookup(CALL_READERS, self.calls, "environment.calls")
        return found

    @property
    def tasks_file(self) -> Path:
        """The file of tasks: in the working directory, else in the lab."""
        return found_here(self.tasks)

    @property
    def rules_file(self) -> Path:
        """The table of rules, if there is one: in the working directory, else in the lab."""
        return found_here(self.rules or "")
