"""Any OpenEnv server as an environment: its address and reset arguments are the tasks.

``connection.py`` speaks the protocol over one WebSocket. ``environment.py`` plays episodes over connections
that may break. ``reading.py`` selects what an agent sees of an observation. ``skills.py`` derives skills from
actions by the rules in the section. The server judges; its reward is a fact here, which the agent may weigh.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from skillpress.core.errors import UserError
from skillpress.core.interface import Environment, Info, Rendering
from skillpress.core.sections import Section
from skillpress.core.trajectory import Task
from skillpress.environments.section import (
    EnvironmentSection,
    Hosting,
    Projection,
    SharedEnvironments,
    SplitSizes,
)
from skillpress.environments.text.stated_rules import StatedRules, Word

REWARD = "reward"
"""Name of the measure that holds the protocol's reward of the step."""
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
"""Maps the scheme of the address to that of its WebSocket."""


class Fields(Section):
    """The server's names for the parts of an observation; every server has its own."""

    text: list[Word] = Field(default=[])
    """Fields that the agent sees; if empty, the whole observation is shown as JSON."""
    admissible: str = ""
    """Field with the list of actions that would be carried out now; empty if there is no such field."""
    action: str = ""
    """Field with the last action in the server's own wording, from which skills are derived; empty if there
    is no such field."""
    invalid: str = ""
    """Field that says why the last action was not carried out, or is null; empty if there is no such
    field."""


class OpenEnvParameters(EnvironmentSection):
    """Where the server is, what is played there, and how its observations are read."""

    hosting: ClassVar[Hosting] = "threads"
    answer_forms: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = (REWARD,)

    url: str
    """Address such as ``http://127.0.0.1:8000``. It is part of what is played: another address is another
    experiment."""
    resets: str = ""
    """A JSONL file with the arguments of a reset on each line, each of which is a task; if empty, tasks are
    ``{"seed": n}``."""
    first_seed: Annotated[int, Field(ge=0)] = 0
    """The smallest n of tasks ``{"seed": n}``."""
    opening: Annotated[str, Field(min_length=1)]
    """The description of the task: the first lines of every prompt."""
    action: str = "message"
    """The field of an action that takes the agent's text; empty if the agent writes the whole action as a
    JSON object."""
    tool: str = "tool_name"
    """The field of a JSON action that names its tool, from which skills are derived."""
    tools: bool = False
    """Whether the agent calls the tools that the server offers by MCP: the prompt lists them, and an action
    is ``{"name": "...", "arguments": {...}}``. ``action`` and ``tool`` have no effect then."""
    fields: Fields = Field(default_factory=Fields)
    """The server's names for the parts of an observation."""
    actions: list[Word] = Field(default_factory=list)
    """All actions that exist, if no field lists the admissible ones; empty if they cannot be listed."""
    won_at: float
    """An episode is won if it is done with a last reward of at least this."""
    seconds: Annotated[float, Field(gt=0)] = 60.0
    """Maximum time for one answer of the server."""
    observation_characters: Annotated[int, Field(ge=100)] = 8000
    """Maximum number of characters of an observation that the agent sees; longer ones are cut in the
    middle."""
    key_variable: str = ""
    """Environment variable whose value is sent as a bearer token; if empty, no token is sent."""
    skills: StatedRules = Field(default_factory=StatedRules)  # type: ignore[assignment]
    """The rules by which actions become skills."""

    @property
    def title(self) -> str:
        """The name of the server that plays it."""
        return f"{self.name} at {urlsplit(self.url).netloc}"

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("must be an address such as http://127.0.0.1:8000")
        if parts.username or parts.password:
            raise ValueError("holds a password; name an environment variable in key_variable instead")
        return url

    @model_validator(mode="after")
    def _results_have_no_fields(self) -> OpenEnvParameters:
        if self.tools and (self.fields.admissible or self.fields.action or self.fields.invalid):
            raise ValueError(
                "fields.admissible, action and invalid must be empty with tools: no result has them"
            )
        return self

    @property
    def socket_url(self) -> str:
        """Address of the WebSocket."""
        parts = urlsplit(self.url)
        return f"{_SCHEMES[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}/ws"

    @property
    def headers(self) -> dict[str, str]:
        """Headers with which a connection is opened.

        Raises:
            UserError: the variable is not set.
        """
        if not self.key_variable:
            return {}
        key = os.environ.get(self.key_variable)
        if not key:
            raise UserError(
                f"environment.key_variable: the environment variable {self.key_variable} is not set"
            )
        return {"Authorization": f"Bearer {key}"}

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.openenv.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        from skillpress.environments.openenv.tasks import check_tasks

        check_tasks(tasks)

    def make(self) -> Environment:
        from skillpress.environments.openenv.environment import OpenEnv

        return OpenEnv(self)

    def make_projection(self) -> Projection:
        from skillpress.environments.openenv.skills import ToolProjection

        if self.tools:
            return ToolProjection(self.skills.projection(), "name", "arguments")
        return ToolProjection(self.skills.projection(), self.tool)

    def explorer_actions(self, info: Info) -> Sequence[str]:
        return info.admissible or ("",)

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.openenv.prompts import TextRendering

        return {"text": lambda history: TextRendering(history, self.opening)}

    def make_shared(self, slots: int) -> SharedEnvironments:
        from skillpress.environments.openenv.environment import Sessions

        return Sessions(self, slots)

    def inputs(self) -> Mapping[str, str]:
        """Maps the file of reset arguments to a hash of its contents.

        Raises:
            UserError: it cannot be read.
        """
        if not self.resets:
            return {}
        file = Path(self.resets).expanduser()
        try:
            return {file.name: hashlib.blake2b(file.read_bytes()).hexdigest()[:32]}
        except OSError as error:
            raise UserError(f"environment.resets: {file} cannot be read: {error}") from error
