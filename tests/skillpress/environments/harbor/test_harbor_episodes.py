"""Episodes of Harbor's tasks: solutions win, idle agents do not, and rewards are read as the format says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.harbor.parameters import HarborParameters
from skillpress.environments.harbor.trial import REWARD_JSON, REWARD_TEXT, verdict
from skillpress.environments.section import SplitSizes
from skillpress.rollouts.programs.requests import Reply
from skillpress.rollouts.sandbox.spawner import NOBODY
from tests.support.environments.harbor_tasks import NEW, harbor_tasks, write_steps, write_task

IDLE = [sys.executable, "-c", ""]
BY_REPLIES = """
import json, os, subprocess, urllib.request
while True:
    task = json.loads(os.environ["SKILLPRESS_TASK"])
    body = json.dumps({"messages": [{"role": "user", "content": task["prompt"]}], "max_tokens": 64}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    said = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"]
    if said == "done":
        break
    print(subprocess.run(said, shell=True, capture_output=True, text=True).stdout, flush=True)
"""
"""An agent that runs each reply as a command."""


def played(
    tasks: Path, replies: Sequence[str] = (), most: int = 100, **changes: Any
) -> dict[str, tuple[str, Info]]:
    """What was printed at last and is known at the end, by task."""
    given = {"name": "harbor", "max_calls": 9, "tasks": str(tasks), "root": "machine", **changes}
    if not {"run", "agent"} & set(changes):
        given["run"] = [sys.executable, "-c", BY_REPLIES]
    section = HarborParameters(**given)
    shared = section.make_shared(2)

    def play(task: Task) -> tuple[str, Info]:
        environment = shared()
        environment.reset(task)
        for reply in (*replies, ""):
            observation, terminated, truncated, info = environment.step(Reply(reply))
            if terminated or truncated:
                return observation, info
        raise AssertionError("it has not ended")

    count = min(most, len(list(tasks.iterdir())))
    found = list(section.make_tasks(SplitSizes(0, 0, count), 0))
    try:
        with ThreadPoolExecutor(2) as threads:
            return dict(zip((task.task_id for task in found), threads.map(play, found), strict=True))
    finally:
        shared.close()


def test_the_solutions_of_twenty_tasks_win(tmp_path: Path) -> None:
    ends = played(harbor_tasks(tmp_path, 20), agent="oracle")
    assert len(ends) == 20 and all(info.won for _, info in ends.values())
    assert [info.measures["reward"] for _, info in ends.values()] == [1.0] * 20
    assert {info.measures.get("looked") for _, info in ends.values()} == {None, 0.5}


def test_an_agent_that_does_nothing_wins_none(tmp_path: Path) -> None:
    ends = played(harbor_tasks(tmp_path, 5), run=IDLE)
    assert [(info.won, info.lost, info.measures["reward"]) for _, info in ends.values()] == [
        (False, "unsuccessful", 0.0)
    ] * 5


LOOKS = "; ".join(
    [
        "pwd; id -u; echo $SECRET-$MODE; cat copied.txt; ls -d /tests /solution /logs/verifier",
        "(exec 3<>/dev/tcp/1.1.1.1/80) 2>&1 && echo reached",
        "echo 1 > /logs/verifier/reward.txt; mkdir /logs/verifier/reward.json; echo new > /etc/new",
    ]
)


def test_an_agent_works_in_the_tasks_folder_and_rewards_of_its_own_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "from-host")
    tables = "[environment.env]\nSECRET = '${GIVEN}'\n[verifier.env]\nEXTRA = 'x'\n"
    task = write_task(
        tmp_path / "a",
        settings=NEW.format(name="a").replace("[verifier]\ntimeout_sec = 30.0\n", "") + tables,
        dockerfile="FROM ubuntu\nENV MODE=slow\nWORKDIR /srv/work\nCOPY copied.txt .\n",
        test="[ -d /logs/verifier/reward.json ] && exit\n"
        '[ "$EXTRA$MODE$HOME$(cat /etc/new)" = xslow/rootnew ] && echo 0.25 > /logs/verifier/reward.txt\n'
        "exit 3\n",
    )
    (task / "environment" / "copied.txt").write_text("as given\n")
    printed, info = played(tmp_path, [LOOKS, "done"])["a"]
    assert printed.split()[:5] == ["/srv/work", "0", "from-host-slow", "as", "given"]
    assert "/logs/verifier" in printed and "/tests" not in printed and "/solution" not in printed
    assert "reached" not in printed
    assert (info.won, info.lost, info.measures) == (False, "unsuccessful", {"reward": 0.25})


def test_what_the_agent_has_started_still_runs_when_the_tests_look(tmp_path: Path) -> None:
    write_task(
        tmp_path / "a", test="pgrep -f 'sleep 4567' > /dev/null && echo 1 > /logs/verifier/reward.txt\n"
    )
    (_, info) = played(tmp_path, ["(setsid sleep 4567 >/dev/null 2>&1 &)", "done"])["a"]
    assert info.won
    assert not subprocess.run(["pgrep", "-f", "sleep 4567"], capture_output=True).stdout


@pytest.mark.parametrize(("solved", "lost"), [(True, None), (False, "out_of_time")])
def test_an_agent_whose_time_is_over_is_ended_and_judged(
    solved: bool, lost: str | None, tmp_path: Path
) -> None:
    write_task(tmp_path / "a", settings="[agent]\ntimeout_sec = 2.0\n")
    work = "echo 'hello 0' > greeting.txt; " if solved else ""
    _, info = played(tmp_path, [f"{work}sleep 300", "done"])["a"]
    assert (info.won, info.lost) == (solved, lost) and info.measures["reward"] == float(solved)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("echo looked; exit 1\n", "left neither .*\nlooked"),
        ("sleep 300\n", "did not end within its time"),
        ("echo much > /logs/verifier/reward.txt\n", "holds 'much"),
        ('echo \'{"reward": "1"}\' > /logs/verifier/reward.json\n', "must be finite numbers"),
        ("kill -9 -1\n", "the isolation ended while the tests ran"),
    ],
)
def test_tests_without_a_reward_are_an_error_of_their_episode(test: str, said: str, tmp_path: Path) -> None:
    write_task(tmp_path / "a", test=test, settings="[verifier]\ntimeout_sec = 1.0\n")
    printed, info = played(tmp_path, run=IDLE)["a"]
    assert info.lost == "no_reward" and not info.won and not info.measures
    assert re.search(said, printed), printed


def test_an_agent_that_takes_too_much_memory_is_ended_and_not_judged(tmp_path: Path) -> None:
    write_task(tmp_path / "a", settings="[environment]\nmemory_mb = 100\n")
    takes = [sys.executable, "-c", "import time; held = bytearray(200 << 20); time.sleep(60)"]
    printed, info = played(tmp_path, run=takes)["a"]
    assert info.lost == "over_limits" and "more than 100 MB of memory" in printed and not info.measures


def test_a_root_that_grows_over_the_tasks_storage_ends_its_episode(tmp_path: Path) -> None:
    write_task(tmp_path / "a", settings="[environment]\nstorage_mb = 50\n")
    printed, info = played(tmp_path, ["head -c 100000000 /dev/zero > /big; sleep 20", "done"])["a"]
    assert info.lost == "over_limits" and "more than 50 MB" in printed


@pytest.mark.parametrize(
    ("files", "reward", "won"),
    [
        ({REWARD_JSON: '{"looked": 0.5, "reward": 1}', REWARD_TEXT: "0"}, 1.0, True),
        ({REWARD_JSON: '{"share": 0.75, "other": 2}'}, 0.75, False),
        ({REWARD_JSON: "2.5"}, 2.5, True),
        ({REWARD_TEXT: " 0.99\n"}, 0.99, False),
    ],
)
def test_the_json_comes_first_and_success_is_a_reward_of_one(
    files: dict[str, str | None], reward: float, won: bool
) -> None:
    found = verdict(files, in_time=True)
    assert found.success is won and found.measures["reward"] == reward


# Over an unpacked root.

PROGRAMS = ("bash", "cat", "ls")
needs_own_python = pytest.mark.skipif(
    Path(sys.base_prefix).resolve().is_relative_to("/usr"), reason="this Python is in /usr"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small unpacked root: a shell, two programs, and the libraries of these and of this Python."""
    folder = tmp_path / "root"
    programs = [shutil.which(name) or name for name in PROGRAMS]
    for name in ("usr/bin", "etc", "root"):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (folder / name).symlink_to(f"usr/{name}")
    for program in programs:
        shutil.copy(program, folder / "usr/bin")
    modules = Path(sysconfig.get_config_var("DESTSHARED") or "").glob("binascii*")
    told = subprocess.run(["ldd", *programs, sys.executable, *modules], capture_output=True, text=True).stdout
    for line in sorted(set(told.split())):
        if line.startswith("/lib") and Path(line).is_file():
            (folder / "usr" / line[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(line, folder / "usr" / line[1:])
    (folder / "usr" / "bin" / "sh").symlink_to("bash")
    (folder / "etc" / "only-here").write_text("of the root\n")
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(path.stat().st_mode | 0o111)
    return folder


@needs_own_python
def test_an_episode_over_an_unpacked_root_changes_everything_but_the_root(root: Path, tmp_path: Path) -> None:
    holds = '! -e /usr/bin/env -a "$(cat /etc/only-here)" = changed'
    write_task(tmp_path / "tasks" / "a", test=f"[ {holds} ] && echo 1 > /logs/verifier/reward.txt\n")
    replies = ["echo changed > /etc/only-here", "done"]
    before = sorted(path for path in root.rglob("*"))
    printed, info = played(tmp_path / "tasks", replies, root=str(root))["a"]
    assert info.won, printed
    assert (root / "etc" / "only-here").read_text() == "of the root\n"
    assert sorted(path for path in root.rglob("*")) == before


@needs_own_python
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_root_whose_files_could_not_be_written_is_refused_with_the_remedy(
    root: Path, tmp_path: Path
) -> None:
    write_task(tmp_path / "tasks" / "a")
    os.chown(root, 0, 0)
    with pytest.raises(ParamsError, match=r"belongs to user 0, but episodes run as user 65534.*: chown -R"):
        played(tmp_path / "tasks", root=str(root))


@needs_own_python
@pytest.mark.skipif(shutil.which("buildah") is None or os.geteuid() != 0, reason="needs buildah, and root")
def test_an_image_is_built_once_and_its_settings_hold(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines = "FROM scratch\nADD root.tar /\nENV MADE=by-build\nRUN echo $MADE > /etc/made\nWORKDIR /srv/work\n"
    holds = '"$MADE$(cat /etc/made)$PWD" = by-buildby-build/srv/work'
    test = f"[ {holds} ] && echo 1 > /logs/verifier/reward.txt\n"
    task = write_task(tmp_path / "tasks" / "a", dockerfile=lines, test=test)
    subprocess.run(["tar", "-C", root, "-cf", task / "environment" / "root.tar", "."], check=True)
    for _ in range(2):
        printed, info = played(tmp_path / "tasks", ["echo $MADE; pwd", "done"], root="build")["a"]
        assert info.won and printed.split() == ["by-build", "/srv/work"], printed
    assert len(list((tmp_path / "cache" / "skillpress" / "harbor").glob("*.json"))) == 1


BY_NAME = "import json, os; open('/app/' + json.loads(os.environ['SKILLPRESS_TASK'])['prompt'], 'w')"
"""An agent that makes the file of its instruction's name."""
LAZY = f"import os; os.path.exists('/app/one') or exec({BY_NAME!r})"
"""The same, in the first step alone."""
THREE = "[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\n[[steps]]\nname = 'three'\n"


def test_the_agent_begins_anew_with_every_step_of_a_task(tmp_path: Path) -> None:
    begun = '[ "$(cat /app/begun.txt | tr "\\n" ,)" = one,two,three, ] && echo 1 || echo 0.25'
    task = write_steps(tmp_path / "a", THREE)
    last = task / "steps" / "three" / "tests" / "test.sh"
    last.write_text(f"({begun}) > /logs/verifier/reward.txt\n")
    for given in ({"run": [sys.executable, "-c", BY_NAME]}, {"agent": "oracle"}):
        info = played(tmp_path, **given)["a"][1]
        assert info.won and info.measures == {"one": 1.0, "two": 1.0, "three": 1.0, "reward": 1.0}


@pytest.mark.parametrize(
    ("strategy", "least", "measures"),
    [
        ("mean", "", {"one": 1.0, "two": 0.0, "three": 0.0, "reward": 1 / 3}),
        ("final", "", {"one": 1.0, "two": 0.0, "three": 0.0, "reward": 0.0}),
        ("mean", "min_reward = 0.5\n", {"one": 1.0, "two": 0.0, "reward": 0.5}),
        ("mean", "min_reward = {other = 1}\n", {"one": 1.0, "reward": 1.0}),
    ],
)
def test_a_step_below_its_least_reward_is_the_last_one(
    tmp_path: Path, strategy: str, least: str, measures: dict[str, float]
) -> None:
    steps = "".join(f"[[steps]]\nname = '{name}'\n{least}" for name in ("one", "two", "three"))
    write_steps(tmp_path / "a", steps, strategy=strategy)
    info = played(tmp_path, run=[sys.executable, "-c", LAZY])["a"][1]
    assert not info.won and info.measures == pytest.approx(measures)


def test_a_step_ends_after_its_own_time_and_the_next_one_follows(tmp_path: Path) -> None:
    steps = "[[steps]]\nname = 'one'\n[steps.agent]\ntimeout_sec = 1.0\n[[steps]]\nname = 'two'\n"
    write_steps(tmp_path / "a", steps)
    slow = f"import os, time; exec({BY_NAME!r}); os.path.exists('/app/two') or time.sleep(600)"
    info = played(tmp_path, run=[sys.executable, "-c", slow])["a"][1]
    assert info.won and info.measures == {"one": 1.0, "two": 1.0, "reward": 1.0}


def test_a_step_without_a_reward_leaves_the_episode_without_one(tmp_path: Path) -> None:
    write_steps(tmp_path / "a", THREE, tests="true\n")
    printed, info = played(tmp_path, agent="oracle")["a"]
    assert info.lost == "no_reward" and "step one: tests/test.sh left neither" in printed


def test_a_step_whose_setup_fails_says_so(tmp_path: Path) -> None:
    task = write_steps(tmp_path / "a", THREE)
    (task / "steps" / "two" / "workdir" / "setup.sh").write_text("exit 7\n")
    printed, info = played(tmp_path, agent="oracle")["a"]
    assert "setup.sh of the step two ended with exit code 7" in printed
    assert not info.won and info.measures == {"one": 1.0, "two": 0.0, "reward": 0.5}
