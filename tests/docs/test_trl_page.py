"""The example of docs/trl.md, run by the pinned TRL with a model that calls tools."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM

from skillpress.integrations.trl import BUFFER, ToolEnvironments
from tests.support.integrations.tool_caller import save_tool_caller

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "trl.md"
SMALLER = {
    "tasks=256": "tasks=4",
    "Qwen/Qwen3-0.6B": "caller",
    "max_steps=100": "max_steps=3",
    "save_steps=50": "save_steps=2",
    "learning_rate=1e-6": "learning_rate=1e-4",
    "report_to=[]": "report_to=[], use_cpu=True, bf16=False, disable_tqdm=True",
}
"""Text on the page to its replacement in the test."""
TOLD = """
import json, os
from pathlib import Path
rank = os.environ.get("RANK", "0")
Path(f"told-{rank}.json").write_text(json.dumps({
    "log": trainer.state.log_history, "buffer": segcost.corpus.state_dict()["successes"],
    "episodes": [[each.episode.won, len(each.episode.steps)] for each in trainer.environments],
}))
"""


@pytest.fixture(scope="module")
def page() -> str:
    """The page's program, smaller."""
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    for stated, run in SMALLER.items():
        assert program.count(stated) == 1
        program = program.replace(stated, run)
    return program


@pytest.fixture(scope="module")
def folder(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's folder."""
    path = tmp_path_factory.mktemp("trl")
    names: dict[str, Any] = {}
    exec(page.split("from trl import")[0], names)
    environments: ToolEnvironments = names["countdown"]
    save_tool_caller(environments, path / "caller")
    return path


@pytest.mark.parametrize(
    "processes", [pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.thorough)]
)
def test_the_page_trains(processes: int, page: str, folder: Path) -> None:
    (folder / "page.py").write_text(page + TOLD)
    launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}"] if processes > 1 else []
    finished = subprocess.run(
        [sys.executable, *launcher, "page.py"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr[-3000:]
    told = [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(processes)]
    rows = [row for row in told[0]["log"] if "loss" in row]
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert any(row["tools/call_frequency"] > 1 for row in rows), "episodes of several steps were played"
    assert any(row["grad_norm"] > 0 for row in rows), "rollouts of a task were told apart, and taught"
    assert any("dictionary/phrases" in row for row in rows), "dictionaries were fitted"
    for row in rows:
        assert -0.05 < row["reward"] < 10.0 and row["tools/failure_frequency"] < 1.0
    buffers = [each["buffer"] for each in told]
    assert buffers[0] and all(each == buffers[0] for each in buffers), "every process has the same"
    assert f"{len(buffers[0])} successes in the buffer" in finished.stdout

    checkpoint = folder / "countdown-grpo" / "checkpoint-2"
    kept = json.loads((checkpoint / BUFFER).read_text())["successes"]
    assert kept == buffers[0][: len(kept)], "the buffer of its step"
    before, after = (
        AutoModelForCausalLM.from_pretrained(path).state_dict() for path in (folder / "caller", checkpoint)
    )
    assert any(not before[name].equal(after[name]) for name in before)
