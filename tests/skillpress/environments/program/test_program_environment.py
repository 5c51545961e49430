"""Programs as environments, played by a small policy: exact tokens, names of failures, nothing left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

from skillpress.core import lab
from skillpress.core.engine import Completion, Engine, Sampling
from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.trajectory import Task, TokenIds, Trajectory
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.environments.program.tasks import make_tasks
from skillpress.environments.section import SplitSizes
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.collection import BrokenEnvironmentError, Collector, ThreadVectorEnv, requests
from tests.support.models.tiny import tiny_policy
from tests.support.rollouts import asking
from tests.support.rollouts.busy import busy
from tests.support.rollouts.program_parts import agent_of, section_of

TASKS = [
    Task(f"walk-{start}", "program", start, {"id": f"walk-{start}", "start": start}) for start in range(3)
]
POLICY = tiny_policy()
COMPUTING = "import time\nwhile time.process_time() < 1: pass"


def section(run: Any, verify: Any = f"{asking.HERE}:always", **changes: Any) -> ProgramParameters:
    run = f"{asking.HERE}:{run}" if isinstance(run, str) else run
    return section_of(**{"run": run, "verify": verify, "max_calls": 6, "isolation": "none", **changes})


def play(
    params: ProgramParameters,
    tasks: Sequence[Task] = TASKS,
    rollouts: int = 2,
    budget: int = 12,
    engine: Engine | None = None,
) -> list[Trajectory]:
    shared = SharedPrograms(params, 4)
    agent = agent_of(POLICY, engine or LocalEngine(POLICY), budget)
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent, 4) as collector:
        return collector.collect(requests(tasks, rollouts, 7, "test"))


def test_every_call_is_a_step_with_the_tokens_that_were_sampled() -> None:
    episodes = play(section("walk", f"{asking.HERE}:walked"))
    assert len(episodes) == 6
    steps = [step for episode in episodes for step in episode.steps]
    assert all(len(step.response_ids) == len(step.logprobs) == 1 for step in steps)
    packed = pack_responses([(step.prompt_ids, step.response_ids) for step in steps])
    with torch.no_grad():
        scored, _ = ResponseScorer(POLICY.model)(packed, 1.0)
    np.testing.assert_allclose(np.concatenate([step.logprobs for step in steps]), scored.numpy(), atol=1e-5)
    for episode in episodes:
        if episode.outcome != "too_many_calls":
            assert episode.won == (len(episode.steps) % 2 == 0)


def test_the_same_seed_gives_the_same_episodes() -> None:
    assert play(section("walk")) == play(section("walk"))


def test_calls_that_are_asked_at_once_are_drawn_alike_in_whatever_order_they_come() -> None:
    found = [play(section("fan_out"), TASKS[:1], rollouts=1)[0] for _ in range(3)]
    drawn = [{step.prompt_ids: step.response_ids for step in episode.steps} for episode in found]
    assert drawn[0] == drawn[1] == drawn[2] and len(drawn[0]) == 4


def test_responses_that_are_wanted_at_once_are_sampled_in_one_batch() -> None:
    engine, batches = LocalEngine(POLICY), []
    compute = engine.generate

    def generate(prompts: Sequence[TokenIds], sampling: Sampling, seeds: Sequence[int]) -> list[Completion]:
        batches.append(len(prompts))
        return compute(prompts, sampling, seeds)

    engine.generate = generate  # type: ignore[method-assign]
    episodes = play(section("several"), rollouts=1, engine=engine)
    assert [len(episode.steps) for episode in episodes] == [4, 4, 4]
    assert batches[0] == 12 and sum(batches) == 12


@pytest.mark.parametrize(
    ("run", "changes", "name"),
    [
        ("crash", {}, "crashed"),
        ("hang", {"seconds": 2.0}, "out_of_time"),
        ("walk", {"max_calls": 1}, "too_many_calls"),
    ],
)
def test_a_failure_of_the_program_is_an_episode_with_its_name(
    run: str, changes: dict[str, Any], name: str
) -> None:
    episodes = play(section(run, **changes), rollouts=4)
    assert name in {episode.outcome for episode in episodes}
    assert len(episodes) == 12 and not any(episode.won for episode in episodes if episode.outcome == name)


@pytest.mark.kills
@pytest.mark.parametrize(
    "run",
    [
        # A function shares our session's part of the processors with the other tests, and may wait longer
        # than is credited; a command has a session of its own.
        pytest.param("compute", marks=pytest.mark.thorough),
        [sys.executable, "-c", COMPUTING],
    ],
)
def test_other_work_of_the_machine_fails_no_program(run: str | list[str]) -> None:
    """Beside five others a program that computes for a second takes about six."""
    with busy(5):
        (episode,) = play(section(run, f"{asking.HERE}:always", seconds=4.5), TASKS[:1], rollouts=1)
    assert episode.outcome == "won", [step.observation for step in episode.steps]


@pytest.mark.parametrize(
    ("run", "isolation"), [("walk", "none"), ("command", "none"), ("command", "bubblewrap")]
)
def test_variables_for_other_servers_do_not_come_between_a_program_and_its_model(
    run: str, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "[::1],fe80::/10")
    monkeypatch.delenv("no_proxy", raising=False)
    if isolation == "bubblewrap":  # inside there is nothing that these could name
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    task = Task("a", "program", 0, {"id": "a", "start": 1, "sleep": "0", "outside": "http://127.0.0.1:9"})
    chosen = asking.command() if run == "command" else run
    (episode,) = play(section(chosen, f"{asking.HERE}:always", isolation=isolation), [task], rollouts=1)
    assert episode.won and episode.steps[0].response_ids


def test_a_prompt_beyond_the_budget_is_a_step_without_an_action() -> None:
    episodes = play(section("walk", max_calls=20), budget=3)
    ended = [episode for episode in episodes if episode.steps[-1].invalid == "prompt_too_long"]
    assert ended and all(episode.steps[-1].response_ids == () for episode in ended)


def test_a_program_whose_worker_is_killed_goes_on_with_the_answers_that_it_had() -> None:
    (episode,) = play(section("end_once"), TASKS[:1], rollouts=1)
    assert episode.won and len(episode.steps) == 3


@pytest.mark.parametrize("isolation", ["none", "bubblewrap"])
def test_a_command_ends_with_all_that_it_has_started(isolation: str, tmp_path: Path) -> None:
    seconds = f"36{int(time.time() * 1000) % 100000}"
    with closing(Outside()) as outside:
        task = Task("a", "program", 0, {"id": "a", "sleep": seconds, "outside": outside.url})
        (episode,) = play(
            section(asking.command(), f"{asking.HERE}:noted", isolation=isolation), [task], rollouts=1
        )
    assert episode.won and len(episode.steps) == 1
    assert ("refused" in episode.steps[0].observation) == (isolation == "bubblewrap")
    assert not [p for p in psutil.process_iter(["cmdline"]) if seconds in (p.info["cmdline"] or [])]


def test_a_function_that_does_not_exist_is_refused_before_any_episode() -> None:
    with pytest.raises(Exception, match=r"environment\.run: .*nothing_here"):
        SharedPrograms(section("nothing_here"), 1)
    with pytest.raises(ParamsError, match=r"environment\.verify"):
        SharedPrograms(section("walk", f"{asking.HERE}:nothing_here"), 1)


@pytest.mark.parametrize("run", ["walk", ["true"]])
@pytest.mark.parametrize("place", ["here", "below", "elsewhere"])
def test_a_verifier_of_the_labs_folder_is_found_from_every_place_and_beside_every_kind_of_run(
    run: Any, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The console starts with a ``sys.path`` without the working directory, unlike ``python -m``."""
    module = f"judge_{len(run)}_{place}"
    (tmp_path / f"{module}.py").write_text("def judge(**told):\n    return True\n")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub" if place == "below" else tmp_path)
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    if place == "elsewhere":
        monkeypatch.chdir("/")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    shared = SharedPrograms(section(run, f"{module}:judge"), 1)
    shared.close()
    assert f"{module}" in sys.modules


def test_tasks_are_lines_with_an_id(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "a", "split": "test"}\n{"id": "b"}\n{"id": "c"}\n')
    params = section("walk", tasks=str(file))
    found = list(make_tasks(params, SplitSizes(1, 1, 1), 0))
    assert [task.split for task in found] == ["train", "validation", "test"] and found[2].task_id == "a"
    with pytest.raises(TaskError, match=r"3 tasks, of which 2 are left for tasks\.train, which asks for 5"):
        list(make_tasks(params, SplitSizes(5, 0, 0), 0))
    file.write_text('{"name": "a"}\n')
    with pytest.raises(TaskError, match="line 1: must be an object with an `id`"):
        list(make_tasks(params, SplitSizes(1, 0, 0), 0))


GREEDY = {
    "memory": "import time; held = bytearray(200 << 20); time.sleep(60)",
    "processes": "import subprocess\nwhile True: subprocess.Popen(['sleep', '60'])",
    "disk": """
import os, time
for number in range(6):
    os.posix_fallocate(os.open(str(number), os.O_CREAT | os.O_WRONLY), 0, 200 << 20)
time.sleep(60)
""",
}
"""Programs that take more than they may."""


@pytest.mark.parametrize(
    ("greedy", "memory_mb", "said"),
    [
        ("memory", 100, "more than 100 MB of memory"),
        # So many processes need some 100 MB themselves; their number has to be the first limit met.
        ("processes", 2048, "more than 512 processes and threads"),
        ("disk", 100, "more than 1024 MB"),
    ],
)
def test_a_walled_program_that_takes_too_much_ends_with_the_limits_name(
    greedy: str, memory_mb: int, said: str
) -> None:
    params = section([sys.executable, "-c", GREEDY[greedy]], isolation="bubblewrap", memory_mb=memory_mb)
    (episode,) = play(params, TASKS[:1], rollouts=1)
    assert episode.outcome == "over_limits" and not episode.won
    assert said in episode.steps[-1].observation


@pytest.mark.parametrize(("verify", "name"), [(f"{asking.HERE}:never", "never"), (["sleep", "600"], "sleep")])
def test_a_verifier_that_does_not_end_is_an_error_that_names_the_task(verify: Any, name: str) -> None:
    said = rf"{name} has not judged task 'walk-0' within 0\.5 seconds"
    with pytest.raises(BrokenEnvironmentError, match=said):
        play(section("several", verify, verify_seconds=0.5), TASKS[:1], rollouts=1)


def test_a_verifiers_fault_is_an_error_of_its_own_kind() -> None:
    with pytest.raises(BrokenEnvironmentError, match="LookupError: no such answer"):
        play(section("several", f"{asking.HERE}:at_a_loss"), TASKS[:1], rollouts=1)


class Outside:
    """A web server on this machine, which a walled program must not reach."""

    def __init__(self) -> None:
        import threading
        from http.server import BaseHTTPRequestHandler, HTTPServer

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
