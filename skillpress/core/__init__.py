"""The contracts and foundations of all other wings: trajectories and their files, names, seeds, errors.

This wing imports no other wing, and neither torch nor an orchestrator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_MODULES = {
    "Agent": "interface",
    "AgentState": "interface",
    "Decision": "interface",
    "Engine": "engine",
    "Environment": "interface",
    "Info": "interface",
    "ParamsError": "errors",
    "ParsedAction": "parsed_action",
    "Parser": "parsed_action",
    "PolicyError": "errors",
    "Promises": "engine",
    "Rendering": "interface",
    "RewardPart": "trajectory",
    "Sampling": "engine",
    "ScratchVocabulary": "interface",
    "StateUpdate": "interface",
    "Step": "trajectory",
    "StepReward": "interface",
    "StorageError": "errors",
    "Task": "trajectory",
    "TaskError": "errors",
    "Trajectory": "trajectory",
    "UserError": "errors",
    "derive": "seeds",
    "generator": "seeds",
    "iterate_rollouts": "rollout_files",
    "read_rollouts": "rollout_files",
    "read_tasks": "task_files",
    "rollout_frame": "rollout_files",
    "scan_rollouts": "rollout_files",
    "write_rollouts": "rollout_files",
    "write_tasks": "task_files",
}
"""Public name to its module. A module is imported when one of its names is first used."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
