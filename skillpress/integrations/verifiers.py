"""An installed taskset of verifiers (0.4) as tasks of a program (``docs/programs.md``).

    environment:
      name: program
      run: [python, -m, skillpress.integrations.verifiers, TASKSET]
      verify: skillpress.integrations.verifiers:verify
      tasks: tasks.jsonl                    # {"id": "0"}: the place of a task in the taskset

``run`` becomes the ``vf-eval`` on ``PATH``, which may be of another environment than ours; further arguments
are its own. The verifier reads what it wrote: every reward and every metric becomes a measure.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

OUTPUT = "verifiers"
"""The folder of ``vf-eval``'s results in an episode's folder."""
WON_AT = 1.0
"""The reward with which an episode is won, unless its task has another ``won_at``."""


def command(taskset: str, *options: str) -> list[str]:
    """The command line that plays one task by a plain conversation, in a process of this machine."""
    place = json.loads(os.environ["SKILLPRESS_TASK"])["id"]
    return [
        "vf-eval", taskset, "--select.include.idx", str(place), "--model", "policy",
        "--client.base-url", os.environ["OPENAI_BASE_URL"], "--client.api-key-var", "OPENAI_API_KEY",
        "--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess",
        "--no-push", "--no-rich", "--output-dir", OUTPUT, *options,
    ]  # fmt: skip


def verify(task: Mapping[str, Any], printed: str, folder: str, calls: Sequence[Any]) -> dict[str, Any]:
    """Success, and as measures ``reward``, the weighted sum, each reward and each metric.

    An episode without a trace, or whose task was not scored, is lost and states no measure.
    """
    files = sorted(Path(folder, OUTPUT).glob("*/traces.jsonl"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    traces = [trace for line in lines for trace in json.loads(line)["traces"]]
    rewards = {name: told for trace in traces for name, told in trace["rewards"].items() if told is not None}
    if not rewards:
        return {"success": False}
    metrics = {
        name: value for trace in traces for name, value in trace["metrics"].items() if value is not None
    }
    reward = sum(told["score"] * told["weight"] for told in rewards.values())
    scores = {name: told["score"] for name, told in rewards.items()}
    return {**metrics, **scores, "reward": reward, "success": reward >= task.get("won_at", WON_AT)}


def main(arguments: Sequence[str]) -> None:
    """Become ``vf-eval``."""
    if shutil.which("vf-eval") is None:
        sys.exit("vf-eval is not on PATH: pip install verifiers uv, in an environment whose bin/ is on PATH")
    own = command(*arguments)
    os.execvp(own[0], own)


if __name__ == "__main__":
    main(sys.argv[1:])
