"""``skillpress serve``: what it serves, what it refuses, and that it ends on a signal."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from mcp import Client
from websockets.sync.client import connect

from skillpress.cli.command import main
from skillpress.cli.parameter_options import playing_params
from skillpress.cli.serve import reward_of, tasks_of
from skillpress.core.errors import ParamsError, UserError
from skillpress.experiment.params import load_params

FEW = ("tasks.train=3", "tasks.validation=0", "tasks.test=1")


@contextmanager
def running(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """(address, process) of a server."""
    command = [sys.executable, "-m", "skillpress.cli.command", "serve", "--port", "0", *options]
    command += [word for each in FEW for word in ("--set", each)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout is not None
        try:
            ready = re.match(
                r"ready: (\S+) serves (\w+) \(3 train tasks, 64 sessions\); connect with .",
                process.stdout.readline(),
            )
            assert ready is not None
            yield ready[1], process
        finally:
            process.kill()


@pytest.mark.kills
@pytest.mark.parametrize(("end", "host"), [(signal.SIGTERM, "127.0.0.1"), (signal.SIGINT, "0.0.0.0")])
def test_it_serves_the_experiments_tasks_until_it_is_told_to_end_and_warns_where_others_can_come(
    end: signal.Signals, host: str, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    monkeypatch.chdir(repository)
    with running("--environment", "countdown", "--host", host) as (url, process):
        about = httpx.get(f"{url}/metadata", trust_env=False).json()
        assert about["name"] == "countdown" and "make a target" in about["description"]
        with connect(f"{url.replace('http', 'ws')}/ws", proxy=None) as connection:
            connection.send('{"type": "reset", "data": {"seed": 4}}')
            told = json.loads(connection.recv(60))["data"]
            tasks = tasks_of(playing_params("countdown", (), FEW), "train")
            assert told["metadata"]["task_id"] == tasks[4 % 3].task_id
            process.send_signal(end)
            assert process.wait(60) == 0
        assert process.stderr is not None
        warned = "warning: --host 0.0.0.0: anyone who can reach this port can play" in process.stderr.read()
        assert warned == (host == "0.0.0.0")


def test_the_line_of_mcp_names_an_address_that_answers_at_once(
    monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    async def play(url: str) -> bool:
        async with Client(url) as client:
            return (await client.call_tool("start", {"seed": 1})).is_error

    monkeypatch.chdir(repository)
    with running("--environment", "countdown", "--mcp") as (url, _):
        assert url.endswith("/mcp") and asyncio.run(play(url)) is False


def test_an_environments_own_overlay_is_taken_unless_others_are_named(repository: Path) -> None:
    assert playing_params("textworld_cooking", (), ()).tasks.train == 800
    named = playing_params("countdown", [repository / "params" / "smoke.yaml"], ("tasks.train=5",))
    assert (named.tasks.train, named.tasks.test) == (5, 32)


def test_what_is_refused_is_named(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"--environment: is 'alfworld', but .*smoke.yaml is for 'countdown'"):
        playing_params("alfworld", [repository / "params" / "smoke.yaml"], ())
    with pytest.raises(ParamsError, match=r"tasks\.train"):
        playing_params("countdown", (), ("tasks.train=0",))
    with pytest.raises(
        UserError, match=r"--split validation: tasks.validation is 0; --set tasks.validation=100"
    ):
        tasks_of(playing_params("countdown", (), FEW), "validation")
    assert main(["serve", "--environment", "countdown", "--idle-seconds", "0"]) == 2
    assert "--idle-seconds: is 0; must be a finite number, above 0" in capsys.readouterr().err


def test_the_doors_reward_says_nothing_of_a_responses_format(repository: Path) -> None:
    params = load_params(repository / "params.yaml")
    weights = {"format": {"weight": 0.5, "credit": "step"}}
    reward = params.reward.model_copy(
        update={
            "measures": type(params.reward)
            .model_validate(params.reward.model_dump() | {"measures": weights})
            .measures
        }
    )
    found = reward_of(params.model_copy(update={"reward": reward}))
    assert found.success == 10.0 and not found.measures
