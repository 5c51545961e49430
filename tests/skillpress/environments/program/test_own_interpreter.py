"""Functions that another virtual environment's interpreter plays, imported once, isolated or not."""

from __future__ import annotations

import json
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from skillpress.core import lab
from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.rollouts.programs.launch import ProgramError
from tests.skillpress.environments.program.test_program_environment import play
from tests.support.rollouts import asking
from tests.support.rollouts.program_parts import section_of

AGENT = """
import json, os, signal, sys, time, urllib.request
import only_there

IMPORTED = [os.getpid(), time.time()]

def ask(url, key, text):
    body = json.dumps({"messages": [{"role": "user", "content": text}], "max_tokens": 1}).encode()
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body, headers)) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

def play(task, base_url, api_key, folder):
    if task.get("crash"):
        raise RuntimeError("no answer")
    said = ask(base_url, api_key, str(task["start"]))
    mark = os.path.join(folder, "died")
    if task.get("dies_once") and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    with open(os.path.join(folder, "said.json"), "w") as file:
        json.dump({"said": said, "imported": IMPORTED, "prefix": sys.prefix, "only_there": only_there.VALUE,
                   "ours": "skillpress" in sys.modules, "home": os.environ.get("HOME"), "cwd": os.getcwd(),
                   "sees": os.path.exists(task.get("secret", "/nowhere"))}, file)
    return said

def hang(task, base_url, api_key):
    ask(base_url, api_key, str(task["start"]))
    time.sleep(600)
"""
FOUND: list[dict[str, Any]] = []


def noted(task: dict[str, Any], printed: str, folder: str, calls: list[Any]) -> bool:
    """Keep what the program has noted; success if it saw its answer."""
    FOUND.append(json.loads(Path(folder, "said.json").read_text()))
    return str(FOUND[-1]["said"]) == printed


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with a package that ours lacks."""
    folder = tmp_path_factory.mktemp("other") / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (packages / "only_there.py").write_text("VALUE = 41")
    return folder / "bin" / "python"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab with the program."""
    (tmp_path / "my_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    FOUND.clear()
    return tmp_path


def section(python: Path | None, run: str = "my_agent:play", **changes: Any) -> ProgramParameters:
    named = None if python is None else str(python)
    return section_of(
        **{"run": run, "verify": f"{__name__}:noted", "isolation": "none", "python": named, **changes}
    )


def episodes(params: ProgramParameters, specs: Sequence[dict[str, Any]]) -> list[Trajectory]:
    tasks = [
        Task(f"t{n}", "program", n, {"id": f"t{n}", "start": n % 3, **spec}) for n, spec in enumerate(specs)
    ]
    return play(params, tasks, rollouts=1)


@pytest.mark.parametrize("isolation", ["none", "bubblewrap"])
def test_the_function_is_imported_once_by_the_other_interpreter_and_plays_every_episode(
    other: Path, here: Path, isolation: str
) -> None:
    played = episodes(section(other, isolation=isolation), [{"secret": str(here)}] * 24)
    assert [episode.outcome for episode in played] == ["won"] * 24
    assert all(step.response_ids for episode in played for step in episode.steps)
    workers = {tuple(found["imported"]) for found in FOUND}
    assert len(workers) <= 4 < len(FOUND), "an import for each worker, of which there is one a core"
    for found in FOUND:
        assert found["prefix"] == str(other.parents[1]) and found["only_there"] == 41 and not found["ours"]
        assert found["sees"] == (isolation == "none")
        assert isolation == "none" or (found["home"] == found["cwd"] == "/home/agent")


@pytest.mark.parametrize("isolation", ["none", "bubblewrap"])
def test_failures_have_their_names_and_a_worker_that_is_killed_is_started_again(
    other: Path, here: Path, isolation: str
) -> None:
    params = section(other, isolation=isolation)
    dies, crashes = episodes(params, [{"dies_once": True}, {"crash": True}])
    assert (dies.outcome, len(dies.steps), crashes.outcome) == ("won", 1, "crashed")
    assert "RuntimeError: no answer" in crashes.steps[-1].observation
    (late,) = episodes(section(other, "my_agent:hang", isolation=isolation, seconds=0.5), [{}])
    assert late.outcome == "out_of_time"


def test_what_cannot_be_imported_is_refused_before_any_episode(other: Path, here: Path) -> None:
    with pytest.raises(
        ProgramError, match="my_agent:play: ModuleNotFoundError: No module named 'only_there'"
    ):
        SharedPrograms(section(None), 1)
    (here / "my_agent.py").write_text("def play(:")
    for isolation in ("none", "bubblewrap"):
        with pytest.raises(ProgramError, match="my_agent:play: SyntaxError"):
            SharedPrograms(section(other, isolation=isolation), 1)


def test_an_interpreter_that_is_none_is_refused(here: Path) -> None:
    with pytest.raises(ParamsError, match=r"environment\.python: 'gone' cannot be started"):
        SharedPrograms(section(Path("gone")), 1)
    with pytest.raises(ValidationError, match="python: is set, but run is not a function"):
        section(Path(sys.executable), run=["true"], verify=f"{asking.HERE}:always")  # type: ignore[arg-type]


def test_an_isolated_worker_that_takes_too_much_memory_loses_its_episodes(other: Path, here: Path) -> None:
    (here / "greedy.py").write_text("def play(task, base_url, api_key):\n    held = bytearray(300 << 20)\n")
    params = section(other, "greedy:play", isolation="bubblewrap", memory_mb=100)
    (episode,) = episodes(params, [{}])
    assert episode.outcome == "lost" and "more than 100 MB" in episode.steps[-1].observation
