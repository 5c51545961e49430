"""Coding agents by name: their files of data, what an episode is given, and what it is not."""

from __future__ import annotations

import json
import platform
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.program.agent_files import AgentFile, read_agent, shipped
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.environments.program.tasks import identities, make_tasks
from skillpress.environments.section import SplitSizes
from skillpress.rollouts.collection import requests
from skillpress.rollouts.programs.isolated import FAKETIME
from skillpress.rollouts.programs.requests import Asked, Reply
from skillpress.rollouts.programs.setting import VendorVariables
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.training.loop.groups import GroupCollector
from tests.skillpress.environments.program.test_program_environment import play
from tests.support.rollouts import asking
from tests.support.rollouts.program_parts import one_of, printed, section_of

TELLS = """
import json, os, pathlib, sys
home = os.environ["HOME"]
file = pathlib.Path(home, ".told/settings.json").read_text()
print(json.dumps({"prompt": sys.argv[1], "home": home, "cwd": os.getcwd(), "names": sorted(os.environ),
                  "setting": os.environ["SETTING"], "file": file}))
"""


def agent_file(folder: Path, **changes: Any) -> Path:
    told = {
        "tried": "teller 1.0",
        "install": "nothing to install",
        "run": [sys.executable, "-c", TELLS, "{prompt}"],
        "variables": {"SETTING": "{base_url} {key}"},
        "files": {".told/settings.json": "{home}"},
    }
    path = folder / "teller.yaml"
    path.write_text(json.dumps({**told, **changes}))
    return path


def section(agent: str | Path | None, **changes: Any) -> ProgramParameters:
    return section_of(agent=None if agent is None else str(agent), **changes)


def told(params: ProgramParameters, prompt: str) -> dict[str, Any]:
    return printed(params, prompt=prompt)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_agent_is_given_the_prompt_and_says_how_it_is_installed(name: str) -> None:
    agent = read_agent(name)
    assert any("{prompt}" in part for part in agent.run) and agent.install and agent.tried


@pytest.mark.parametrize("isolation", ["bubblewrap", "none"])
def test_an_episode_has_its_prompt_its_settings_and_a_home_of_its_own(tmp_path: Path, isolation: str) -> None:
    found = told(section(agent_file(tmp_path), isolation=isolation), "fix {key}; then stop")
    assert found["prompt"] == "fix {key}; then stop"
    assert found["home"] == found["cwd"] == found["file"]
    base_url, key = found["setting"].split()
    assert base_url.endswith("/v1") and key in base_url


def test_without_isolation_no_key_of_a_vendor_reaches_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_AUTH_TOKEN", "CODEX_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "x")
    names = told(section(agent_file(tmp_path), isolation="none"), "x")["names"]
    assert not {"ANTHROPIC_AUTH_TOKEN", "CODEX_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "XDG_CONFIG_HOME"} & set(
        names
    )


SAYS_DATES = """
import datetime, json, subprocess, sys, time
began = time.monotonic()
later = [sys.executable, "-c", "import datetime; print(datetime.datetime.now().isoformat())"]
child = subprocess.run(later, stdout=subprocess.PIPE, text=True).stdout.strip()
now = datetime.datetime.now().isoformat()
print(json.dumps({"child": child, "now": now, "seconds": time.monotonic() - began}))
"""


@pytest.mark.heavy
@pytest.mark.skipif(not list(Path("/usr").glob(FAKETIME[0])), reason="libfaketime is not installed")
def test_an_isolated_command_and_its_children_begin_at_noon_of_the_stated_day(tmp_path: Path) -> None:
    agent = agent_file(tmp_path, run=[sys.executable, "-c", SAYS_DATES], variables={}, files={})
    found = told(section(agent, date="2025-03-04"), "x")
    child, now = (datetime.fromisoformat(found[name]) for name in ("child", "now"))
    assert datetime(2025, 3, 4, 12) < child < now < datetime(2025, 3, 4, 13)
    assert 0 < found["seconds"] < 60, "only the time of day is another"


def test_a_date_needs_isolation_a_command_and_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValidationError, match="2025-03-04 works only for isolated commands"):
        section(agent_file(tmp_path), date="2025-03-04", isolation="none")
    with pytest.raises(ValidationError, match="2025-03-04 works only for isolated commands"):
        section(None, run=f"{asking.HERE}:walk", date="2025-03-04")
    monkeypatch.setattr("skillpress.rollouts.programs.isolated.FAKETIME", ())
    with pytest.raises(ParamsError, match="libfaketime is not installed; as root: apt-get"):
        SharedPrograms(section(agent_file(tmp_path), date="2025-03-04"), 1)


@pytest.mark.parametrize(
    ("run", "agents", "ignored", "kept"),
    [
        (None, {"TELLER": "1"}, ["ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "TELLER"], []),
        (["python", "agent.py"], None, ["OPENAI_API_KEY"], ["ANTHROPIC_AUTH_TOKEN"]),
        ("lab:solve", None, [], ["ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"]),
    ],
    ids=["agent", "command", "function"],
)
def test_an_agent_gets_no_variable_of_a_vendor_a_command_the_endpoints_values_and_a_function_all(
    run: str | list[str] | None, agents: dict[str, str] | None, ignored: list[str], kept: list[str]
) -> None:
    mine = dict.fromkeys(["OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "TELLER", "HOME", "LANG"], "x")
    found = VendorVariables.found(mine, run, agents)
    assert (found.ignored, found.kept) == (ignored, kept)


def test_a_warning_and_the_records_name_variables_without_effect_and_not_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret")
    agent = agent_file(tmp_path, run=[sys.executable])
    params = section(agent, isolation="none")
    SharedPrograms(params, 1).close()
    (warning,) = (record.getMessage() for record in caplog.records)
    assert "ANTHROPIC_AUTH_TOKEN" in warning and "secret" not in warning
    recorded = params.surroundings()
    assert "ANTHROPIC_AUTH_TOKEN" in recorded["variables without effect"]
    assert recorded["environment.agent teller"] == f"Python {platform.python_version()}"
    assert set(section(agent).surroundings()) == {"environment.agent teller"}, "isolated: nothing is expected"


def test_an_unknown_agent_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ParamsError, match=r"'claud-code' is not a file.*did you mean 'claude-code'"):
        read_agent("claud-code")


def test_an_agent_that_is_not_installed_is_refused_with_the_command_that_installs_it(tmp_path: Path) -> None:
    agent = AgentFile(tried="x", install="npm install -g nobody", run=["nobody-has-this", "{prompt}"])
    with pytest.raises(
        ParamsError, match="nobody-has-this is not installed; install it with: npm install -g nobody"
    ):
        agent.version()


def test_the_version_of_a_python_agent_is_its_packages_in_its_own_installation(tmp_path: Path) -> None:
    program, linked = tmp_path / "own/bin/teller", tmp_path / "teller"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 2\n")  # it does not know --version
    program.chmod(0o755)
    linked.symlink_to(program)
    agent = AgentFile(tried="x", install="x", package="the-teller", run=[str(linked)])
    with pytest.raises(ParamsError, match="has no the-teller"):
        agent.version()
    told = tmp_path / "own/lib/python3.11/site-packages/the_teller-2.4.6.dist-info/METADATA"
    told.parent.mkdir(parents=True)
    told.write_text("Name: the-teller\nVersion: 2.4.6\n")
    assert agent.version() == "2.4.6"


def test_a_program_behind_a_linked_folder_finds_its_installation_by_the_real_path(tmp_path: Path) -> None:
    installed, linked = tmp_path / "own", tmp_path / "linked"
    program = installed / "bin/teller"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat {installed}/pyvenv.cfg\n")
    program.chmod(0o755)
    (installed / "pyvenv.cfg").write_text('{"said": "here"}')
    linked.symlink_to(installed)
    agent = agent_file(tmp_path, run=[str(linked / "bin/teller")])
    assert told(section(agent), "x") == {"said": "here"}


def test_a_file_with_an_unknown_key_is_refused_by_its_name(tmp_path: Path) -> None:
    path = agent_file(tmp_path, colour="red")
    with pytest.raises(ParamsError, match=r"teller.yaml cannot be read(.|\n)*colour"):
        read_agent(str(path))


@pytest.mark.parametrize(("agent", "also"), [(None, {}), ("codex", {"run": ["python", "agent.py"]})])
def test_exactly_one_of_run_and_agent_says_what_plays(agent: str | None, also: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="set exactly one of run and agent"):
        section(agent, **also)


def test_tasks_of_an_agent_need_a_prompt(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "prompt": "x"}\n{"id": "b"}\n')
    params = section(agent_file(tmp_path), tasks=str(tasks))
    with pytest.raises(TaskError, match=r"task 2 \(b\): lacks a text `prompt`"):
        list(make_tasks(params, SplitSizes(1, 0, 1), 0))


def test_another_version_of_the_agent_is_another_experiment(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "prompt": "x"}\n')

    def identity(version: str) -> str:
        program = tmp_path / "teller"
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
        params = section(agent_file(tmp_path, run=[str(program), "{prompt}"]), tasks=str(tasks))
        return identities(params)[f"environment.agent: {params.agent}"]

    assert identity("1.0") == identity("1.0") != identity("1.1")


SIDE = """
import json, os, urllib.request
def ask(*messages):
    told = [{"role": role, "content": text} for role, text in messages]
    body = json.dumps({"messages": told, "max_tokens": 1}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()
for words in json.loads(os.environ["SKILLPRESS_TASK"])["asks"]:
    ask(*words)
"""


def side_agent(folder: Path) -> Path:
    run = [sys.executable, "-c", SIDE]
    return agent_file(
        folder, run=run, variables={}, files={}, side_calls={"title": "2 0", "summary": "sum up"}
    )


def test_a_call_beside_the_work_is_known_by_words_of_its_system_message_or_its_last_message(
    tmp_path: Path,
) -> None:
    asks = [
        [["user", "fix it"]],
        [["system", "write a title of 2 0 words"], ["user", "fix it"]],
        [["user", "write 2 0 words"], ["assistant", "well"], ["user", "fix it"]],
        [["user", "fix it"], ["assistant", "well"], ["user", "sum up"]],
        [["system", "write a title of 2 0 words"], ["user", "fix that"]],
    ]
    sides = []
    with one_of(section(side_agent(tmp_path), max_calls=6)) as environment:
        _, info = environment.reset(Task("t", "program", 0, {"id": "t", "prompt": "x", "asks": asks}))
        for _ in asks:
            assert isinstance(info.state, Asked)
            sides.append((info.state.side, info.state.kind))
            *_, info = environment.step(Reply("done"))
    assert sides == [
        ("", "action"),
        ("title", "side"),
        ("", "action"),
        ("summary", "side"),
        ("title", "side"),
    ]
    assert info.won and info.measures == {"side_calls/title": 2.0, "side_calls/summary": 1.0}


def learned(task: Task, episode: Trajectory, *, side_calls: bool) -> list[int]:
    """How many tokens training learns of each step."""
    batch = GroupCollector(
        tasks=[task], collector=None, algorithm=None, groups=1, size=1, core_maximum=1.0,  # type: ignore[arg-type]
        longest_response=512, seed=0, ranks=Ranks(), side_calls=side_calls,
    ).batch(requests([task], 1, 0, "test"), [episode])  # fmt: skip
    return [int(count) for count in batch.tokens]


def test_its_step_has_a_kind_of_its_own_and_no_skill_and_training_can_leave_it_out(tmp_path: Path) -> None:
    task = Task("t", "program", 0, {"id": "t", "prompt": "x", "asks": [[["user", "1"]], [["user", "2 0"]]]})
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [['*', Said]]")
    params = section(side_agent(tmp_path), rules=str(rules))
    (episode,) = play(params, [task], rollouts=1)
    assert episode.won and [step.kind for step in episode.steps] == ["action", "side"]
    assert params.make_projection()(task, episode) == (("Said",), ())
    write_rollouts(tmp_path / "rollouts.parquet", [episode])
    assert read_rollouts(tmp_path / "rollouts.parquet") == [episode]
    assert learned(task, episode, side_calls=True) == [1, 1]
    assert learned(task, episode, side_calls=False) == [1, 0]
