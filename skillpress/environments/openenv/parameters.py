"""The ``environment`` section of params.yaml for a server that speaks OpenEnv's protocol."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from skillpress.core.errors import UserError
from skillpress.core.sections import Section
from skillpress.environments.bundle import EnvironmentParameters
from skillpress.environments.text.stated_rules import StatedRules, Word

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


class OpenEnvParameters(EnvironmentParameters):
    """Where the server is, what is played there, and how its observations are read."""

    url: str
    """Address such as ``http://127.0.0.1:8000``. It is part of what is played: another address is another
    experiment."""
    resets: str = ""
    """A JSONL file with the arguments of a reset on each line, each of which is a task; if empty, tasks are
    ``{"seed": n}``."""
    first_seed: Annotated[int, Field(ge=0)] = 0
    """The smallest n."""
    opening: Annotated[str, Field(min_length=1)]
    """The description of the task: the first lines of every prompt."""
    action: str = "message"
    """The field of an action that takes the agent's text; empty if the agent writes the whole action as a
    JSON object."""
    tool: str = "tool_name"
    """The field of a JSON action that names its tool, from which skills are derived."""
    fields: Fields = Field(default_factory=Fields)
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
    skills: StatedRules = Field(default_factory=StatedRules)

    @property
    def title(self) -> str:
        """The name of the server that plays it."""
        return f"{self.name} at {urlsplit(self.url).netloc}"

    @property
    def has_oracle(self) -> bool:
        """False: there is no demonstrator."""
        return False

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("must be an address such as http://127.0.0.1:8000")
        if parts.username or parts.password:
            raise ValueError("holds a password; name an environment variable in key_variable instead")
        return url

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


def resets_identity(parameters: OpenEnvParameters) -> dict[str, str]:
    """Maps the file of reset arguments to a hash of its contents.

    Raises:
        UserError: it cannot be read.
    """
    if not parameters.resets:
        return {}
    file = Path(parameters.resets).expanduser()
    try:
        return {file.name: hashlib.blake2b(file.read_bytes()).hexdigest()[:32]}
    except OSError as error:
        raise UserError(f"environment.resets: {file} cannot be read: {error}") from error
