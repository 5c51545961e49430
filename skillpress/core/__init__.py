"""The contracts and foundations of all other layers: trajectories and their files, names, seeds, errors.

This layer imports no other layer, and neither torch nor an orchestrator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names

if TYPE_CHECKING:
    from skillpress.core.engine import Engine, Promises, Sampling
    from skillpress.core.errors import ParamsError, PolicyError, StorageError, TaskError, UserError
    from skillpress.core.interface import (
        Agent,
        AgentState,
        Decision,
        Environment,
        Info,
        Rendering,
        ScratchVocabulary,
        StateUpdate,
        StepReward,
    )
    from skillpress.core.parsed_action import ParsedAction, Parser
    from skillpress.core.rollout_files import (
        iterate_rollouts,
        read_rollouts,
        rollout_frame,
        scan_rollouts,
        write_rollouts,
    )
    from skillpress.core.seeds import derive, generator
    from skillpress.core.task_files import read_tasks, write_tasks
    from skillpress.core.trajectory import RewardPart, Step, Task, Trajectory

__all__ = [
    "Agent",
    "AgentState",
    "Decision",
    "Engine",
    "Environment",
    "Info",
    "ParamsError",
    "ParsedAction",
    "Parser",
    "PolicyError",
    "Promises",
    "Rendering",
    "RewardPart",
    "Sampling",
    "ScratchVocabulary",
    "StateUpdate",
    "Step",
    "StepReward",
    "StorageError",
    "Task",
    "TaskError",
    "Trajectory",
    "UserError",
    "derive",
    "generator",
    "iterate_rollouts",
    "read_rollouts",
    "read_tasks",
    "rollout_frame",
    "scan_rollouts",
    "write_rollouts",
    "write_tasks",
]

__getattr__, __dir__ = lazy_names(__name__)
