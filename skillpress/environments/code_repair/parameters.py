"""The ``environment`` section of params.yaml for code repair."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from skillpress.environments.bundle import EnvironmentParameters
from skillpress.play.sandbox.isolation import Kind


class CodeRepairParameters(EnvironmentParameters):
    """Where the programs are, and what an episode and a test may take."""

    data: str = ""
    """Folder with ``quixbugs_python.tar.xz`` and ``humanevalfix.jsonl``; empty takes the variable
    SKILLPRESS_CODE_REPAIR."""
    test_seconds: Annotated[float, Field(gt=0, le=60)]
    """Processor time that one call of the program may take in its first try. A program that takes more is
    tried again with twice as much, or four times what the correct program takes then."""
    episode_seconds: Annotated[float, Field(gt=0)]
    """How long the agent's own sandbox may work in one episode."""
    walls: Kind = "bubblewrap"
    """Isolation of the sandboxes. ``gvisor`` runs each on a kernel of its own and needs ``runsc``."""
    measure_edits: bool
    """Whether each edit is linted and tested, for a dense reward."""
