"""An installed taskset of verifiers (0.4) as tasks of a program (``docs/programs.md``).

    environment:
      name: program
      run: [python, -m, skillpress.integrations.verifiers, TASKSET]
      verify: skillpress.integrations.verifiers:verify
      tasks: tasks.jsonl                    # {"id": "0"}: the place of a task in the taskset

``run`` becomes the ``vf-eval`` on ``PATH``, which may belong to another Python environment; further arguments
are passed to it. The verifier reads what it wrote: every reward and every metric becomes a measure.

``load_environment``, and behind it the name of an environment of versions 0.1.10 to 0.3 and its arguments as
JSON, play one of the older form: by the interpreter beside ``vf-eval``, which runs this file and so needs no
package of ours.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

OUTPUT = "verifiers"
"""The folder of ``vf-eval``'s results in an episode's folder."""
OLDER = "load_environment"
"""The argument before the name of an environment of the older form."""
WON_AT = 1.0
"""The reward with which an episode is won, unless its task has another ``won_at``."""


def _task() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(os.environ["SKILLPRESS_TASK"])
    return found


def command(taskset: str, *options: str) -> list[str]:
    """The command line that plays one task by a plain conversation, in a process of this machine."""
    return [
        "vf-eval", taskset, "--select.include.idx", str(_task()["id"]), "--model", "policy",
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


def play(environment: str, arguments: str = "{}") -> None:
    """Play one task of an environment of the older form, and write a trace of the newer one."""
    vf: Any = import_module("verifiers")
    loaded, task = vf.load_environment(environment, **json.loads(arguments)), _task()
    rows = loaded.get_eval_dataset() if task.get("evaluation") else loaded.get_dataset()
    client = import_module("verifiers.types").ClientConfig(
        api_key_var="OPENAI_API_KEY", api_base_url=os.environ["OPENAI_BASE_URL"]
    )
    played = loaded.generate([rows[int(task["id"])]], client, "policy", sampling_args={})
    (output,) = asyncio.run(played)["outputs"]
    if output.get("error"):
        sys.exit(f"{environment}: the episode failed: {output['error']}")
    trace = {"rewards": {"reward": {"score": output["reward"], "weight": 1}}, "metrics": output["metrics"]}
    file = Path(OUTPUT, environment.rpartition("/")[2], "traces.jsonl")
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"traces": [trace]}), encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """Become ``vf-eval``, or the interpreter that plays an environment of the older form."""
    found = shutil.which("vf-eval")
    if found is None:
        sys.exit("vf-eval is not on PATH: pip install verifiers uv, in an environment whose bin/ is on PATH")
    own = command(*arguments)
    if arguments[0] == OLDER:
        own = [str(Path(found).resolve().with_name("python")), __file__, *arguments]
    os.execvp(own[0], own)


if __name__ == "__main__":
    if sys.argv[1:2] == [OLDER] and not __spec__:
        del sys.path[0]  # this file's folder, in which "verifiers" is this file
        play(*sys.argv[2:])
    else:
        main(sys.argv[1:])
