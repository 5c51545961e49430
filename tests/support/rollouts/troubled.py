"""An environment that gets its process into trouble, and a program with workers that play it.

python troubled.py FOLDER     waits for workers that never answer; writes their process ids there
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from gymnasium.spaces import Space, Text

from skillpress.core.answers import answers_to
from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.rollouts.collection import VectorEnvironment, WorkerVectorEnv
from skillpress.rollouts.collection.vector import StepResult

STEPS = 5
HOARD: list[bytes] = []
"""Memory that the process has leaked."""


class Troubled:
    """Truncates after STEPS. A task may say which trouble it causes, and when.

    The action ``spec["action"]`` (or ``reset``) causes ``spec["trouble"]``, in the first process that reaches
    it and writes the file ``spec["once"]``, or in every process if there is no such key.
    """

    action_space: Space[str] = Text(max_length=16)
    observation_space: Space[str] = action_space

    def reset(self, task: Task) -> tuple[str, Info]:
        self.spec = task.spec
        self.steps = 0
        self._make_trouble("reset")
        return f"{task.task_id} 0", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        self.steps += 1
        odd = self._make_trouble(f"{action} {self.steps}")
        seen = f"{action} {self.steps}" if odd is None else odd
        return seen, False, self.steps == STEPS, Info(action=action.upper())

    def _make_trouble(self, action: str) -> str | None:
        if action != self.spec.get("action"):
            return None
        once = self.spec.get("once")
        if once is not None:
            if Path(once).exists():
                return None
            Path(once).write_text(str(os.getpid()))
        match self.spec["trouble"]:
            case "dies":
                os._exit(9)
            case "hangs":
                time.sleep(1000)
            case "grows":
                while True:
                    HOARD.append(b"x" * 50_000_000)
                    time.sleep(0.02)
            case "leaks":
                HOARD.append(b"x" * 300_000_000)
            case "raises":
                raise KeyError("the grue")
            case "garbage":
                return b"caf\xe9".decode(errors="surrogateescape")
        return None


class Boxed(Troubled):
    """Its facts cannot be pickled."""

    def reset(self, task: Task) -> tuple[str, Info]:
        return "boxed", Info(state=lambda: None)


class Nosy(Troubled):
    """Reports its process id and the modules that the process has imported."""

    def reset(self, task: Task) -> tuple[str, Info]:
        super().reset(task)
        heavy = [name for name in ("torch", "transformers", "deepspeed") if name in sys.modules]
        return f"{os.getpid()} {heavy}", Info()


class Counting(Troubled):
    """Reports how many episodes have begun in its process."""

    def reset(self, task: Task) -> tuple[str, Info]:
        super().reset(task)
        HOARD.append(b"")
        return str(len(HOARD)), Info()


def answered(environments: VectorEnvironment, slots: Iterable[int]) -> dict[int, StepResult]:
    """The answers of all these slots."""
    return answers_to(slots, environments.completed, 1000.0, "the environments")


def wait_forever(folder: Path) -> None:
    """When the process ids appear, one worker is idle and one hangs in a step."""
    hang = Task("t", "troubled", 0, {"trouble": "hangs", "action": "wait 1"})
    environments = WorkerVectorEnv(Nosy, processes=2)
    environments.start({0: hang, 1: hang})
    answers = answered(environments, [0, 1])
    (folder / "partial").write_text(" ".join(answer.observation.split()[0] for answer in answers.values()))
    (folder / "partial").rename(folder / "pids")
    environments.step({1: "wait"})
    answered(environments, [1])


if __name__ == "__main__":
    wait_forever(Path(sys.argv[1]))
