"""Episodes over the protocol are the same as the environment's own, whatever happens to the connection."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from gymnasium.spaces import Text
from websockets.sync.server import ServerConnection, serve

from skillpress.core.errors import TaskError
from skillpress.core.interface import DecisionRequest, Info
from skillpress.core.trajectory import Task, Trajectory
from skillpress.environments.openenv.connection import ForeignProtocolError
from skillpress.environments.openenv.environment import (
    DifferentReplayError,
    OpenEnv,
    UnansweredServerError,
)
from skillpress.environments.openenv.parameters import OpenEnvParameters
from skillpress.integrations.serving import ServingLimits
from skillpress.rollouts.agents.explorer import RandomExplorer
from skillpress.rollouts.collection import (
    BrokenEnvironmentError,
    Collector,
    SyncVectorEnv,
    ThreadVectorEnv,
    requests,
)
from tests.support.integrations.served import REWARD, TASKS, Served, countdown, served

FIELDS = {"text": ["text"], "admissible": "admissible", "action": "action", "invalid": "invalid"}
LOST = (1, "lost")
"""The action of a scripted server that hangs up."""


def section(url: str, **changes: Any) -> OpenEnvParameters:
    values = {
        "name": "openenv",
        "max_steps": 8,
        "url": url,
        "opening": "Play.",
        "won_at": 5.0,
        "seconds": 20.0,
    }
    return OpenEnvParameters.model_validate(values | {"fields": FIELDS} | changes)


def task(parameters: OpenEnvParameters, **reset: Any) -> Task:
    return Task(json.dumps(reset), "openenv", 0, {"url": parameters.url, "reset": reset})


@contextmanager
def environment(parameters: OpenEnvParameters) -> Iterator[OpenEnv]:
    made = OpenEnv(parameters)
    yield made
    made.close()


@dataclass
class Cutting(RandomExplorer):
    """The explorer, which cuts the connection before every seventh action."""

    door: Served | None = None
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def submit(self, requests: Sequence[DecisionRequest]) -> None:
        super().submit(requests)
        if self.door is not None and any(next(self._numbers) % 7 == 0 for _ in requests):
            self.door.cut()


def outline(trajectory: Trajectory) -> list[Any]:
    """The agent's actions and the answers to them."""
    steps = [(step.action, step.observation, step.invalid) for step in trajectory.steps]
    return [
        trajectory.first_observation,
        trajectory.won,
        trajectory.terminated or trajectory.truncated,
        steps,
    ]


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_collected_episodes_are_those_of_the_environment_itself(cut: bool) -> None:
    """Four tasks, five episodes each, three sessions; the explorer draws by the episode's seed."""

    def explorer(door: Served | None = None) -> Cutting:
        return Cutting(lambda info: info.admissible, REWARD, door=door)

    wanted = requests(TASKS, 5, 0, "test")
    here = Collector(SyncVectorEnv(countdown), explorer(), 3).collect(wanted)
    with served() as door:
        parameters = section(door.url)
        resets = [task(parameters, task_id=each.task_id) for each in TASKS]
        as_here = [replace(request, task=resets[TASKS.index(request.task)]) for request in wanted]
        shared = parameters.make_shared(3)
        environments = ThreadVectorEnv(shared, shared.seconds, shared.close)
        with Collector(environments, explorer(door if cut else None), 3) as collector:
            there = collector.collect(as_here)
    assert [outline(each) for each in there] == [outline(each) for each in here]
    assert any(each.won for each in there) and not all(each.won for each in there)
    assert {each.outcome for each in there} <= {"won", "done"}


def test_the_reward_is_a_fact_and_won_is_a_last_reward_that_reaches_the_threshold() -> None:
    with served() as door, environment(section(door.url)) as episode:
        first, info = episode.reset(task(section(door.url), seed=0))
        assert first == "Target: 6. Numbers: 1 2 3" and "op(+, 2, 1)" in info.admissible
        _, over, _, info = episode.step("op(+, 9, 9)")
        assert (info.invalid, info.measures["reward"], over) == (
            "no_such_number",
            pytest.approx(-0.01),
            False,
        )
        _, _, _, info = episode.step("+01")
        assert info.action == "op(+, 2, 1)", "in the server's own wording"
        _, over, truncated, info = episode.step("op(+, 3, 3)")
        assert (over, truncated, info.won, info.lost) == (True, False, True, None)
        assert info.measures == {"reward": 10.0}
        with pytest.raises(RuntimeError, match="the episode is over"):
            episode.step("reset")

    with served() as door, environment(section(door.url, won_at=11.0)) as episode:
        episode.reset(task(section(door.url, won_at=11.0), seed=0))
        episode.step("op(+, 2, 1)")
        assert episode.step("op(+, 3, 3)")[3].lost == "done", "ten is no eleven"


def test_our_own_budget_of_steps_cuts_an_episode_off() -> None:
    with served() as door, environment(section(door.url, max_steps=2)) as episode:
        episode.reset(task(section(door.url), seed=0))
        assert episode.step("rollback")[1:3] == (False, False)
        assert episode.step("rollback")[1:3] == (False, True)


def test_a_reset_that_the_server_refuses_is_an_error_of_the_task() -> None:
    with served() as door, environment(section(door.url)) as episode:
        with pytest.raises(TaskError, match=r'refuses the reset {"level": 3}: reset: unknown key'):
            episode.reset(task(section(door.url), level=3))
        assert episode.reset(task(section(door.url), seed=0))[0], "and the next one goes on"
        with pytest.raises(TaskError, match="is for 'http://elsewhere'"):
            episode.reset(Task("t", "openenv", 0, {"url": "http://elsewhere", "reset": {}}))


def test_a_server_that_is_full_is_waited_for() -> None:
    with served(limits=ServingLimits(sessions=1)) as door:
        parameters = section(door.url)
        one, other = OpenEnv(parameters), OpenEnv(parameters)
        one.reset(task(parameters, seed=0))
        threading.Timer(0.5, one.close).start()
        assert other.reset(task(parameters, seed=1))[0].startswith("Target: 54")
        other.close()


def test_a_server_that_is_started_again_at_its_address_goes_on_with_the_episode() -> None:
    with served() as door:
        parameters = section(door.url)
        episode = OpenEnv(parameters)
        episode.reset(task(parameters, seed=0))
        episode.step("op(+, 2, 1)")
    with served(port=int(door.url.rpartition(":")[2])):
        assert episode.step("op(+, 3, 3)")[3].won
        episode.close()


def test_nobody_at_the_address_is_an_error_that_names_it() -> None:
    parameters = section("http://127.0.0.1:9", seconds=0.2)
    with (
        environment(parameters) as episode,
        pytest.raises(
            UnansweredServerError,
            match=r"127.0.0.1:9 did not answer the reset within 0.6 seconds; its last error: .*refused",
        ),
    ):
        episode.reset(task(parameters, seed=0))


class Forgetful:
    """Reports how often it was reset, which its task does not determine."""

    action_space = observation_space = Text(max_length=16)
    resets = 0

    def reset(self, task: Task) -> tuple[str, Info]:
        Forgetful.resets += 1
        return "a room", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        return f"{action} {Forgetful.resets}", False, False, Info(action=action)


def test_a_replay_that_comes_to_something_else_is_refused() -> None:
    with served(Forgetful) as door, environment(section(door.url)) as episode:
        episode.reset(task(section(door.url), seed=3))
        assert episode.step("look")[0] == "look 1"
        door.cut()
        with pytest.raises(
            DifferentReplayError,
            match=r"after 1 actions: .*look 1.* became .*look 2.*{\"seed\": 3} do not decide",
        ):
            episode.step("wait")


def test_a_collector_names_the_task_of_a_replay_that_is_refused() -> None:
    with served(Forgetful) as door:
        parameters = section(door.url)
        agent = Cutting(lambda info: ("look",), REWARD, door=door)
        with (
            Collector(ThreadVectorEnv(parameters.make_shared(1)), agent, 1) as collector,
            pytest.raises(
                BrokenEnvironmentError,
                match=r"task .*seed.* in slot 0: the step 'look' failed: DifferentReplayError",
            ),
        ):
            collector.collect(requests([task(parameters, seed=3)], 1, 0, "test"))


Script = Callable[[dict[str, Any]], Any]
"""Maps a message to its answer: an object, a text, or LOST."""


@contextmanager
def scripted(script: Script) -> Iterator[str]:
    """The address of a server that answers from a script."""

    def handle(connection: ServerConnection) -> None:
        for text in connection:
            answer = script(json.loads(text))
            if answer == LOST:
                return
            connection.send(answer if isinstance(answer, str) else json.dumps(answer))

    with serve(handle, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def observed(reward: Any = None, done: Any = False, **observation: Any) -> dict[str, Any]:
    return {"type": "observation", "data": {"observation": observation, "reward": reward, "done": done}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("<html>", "'<html>' is not an observation"),
        ([], "is not an observation"),
        ({"type": "observation"}, "is not an observation"),
        ({"type": "observation", "data": {"observation": "a room"}}, "is not an observation"),
        ({"type": "state", "data": {"observation": {}}}, "is not an observation"),
        (observed(reward="10", text="a room"), "is not an observation"),
        (observed(reward=float("nan"), text="a room"), "is not an observation"),
        (observed(reward=10**400, text="a room"), "is not an observation"),
        (observed(done=1, text="a room"), "is not an observation"),
        (observed(prompt="a room"), "fields.text: the server's observation has no 'text'; it has 'prompt'"),
    ],
)  # fmt: skip
def test_what_is_no_observation_is_an_error_at_once(answer: Any, said: str) -> None:
    with (
        scripted(lambda message: answer) as url,
        environment(section(url, fields={"text": ["text"]})) as episode,
        pytest.raises(ForeignProtocolError, match=said),
    ):
        episode.reset(task(section(url), seed=0))


def test_an_address_without_a_websocket_is_an_error_at_once() -> None:
    with served() as door:
        parameters = section(f"{door.url}/elsewhere")
        with environment(parameters) as episode, pytest.raises(ForeignProtocolError, match="status 40"):
            episode.reset(task(parameters, seed=0))


def test_an_action_that_the_server_refuses_costs_a_step_and_is_replayed_too() -> None:
    lost = iter([False, False, True] + [False] * 9)

    def script(message: dict[str, Any]) -> Any:
        if next(lost):
            return LOST
        if message["data"] == {"message": "fly"}:
            return {"type": "error", "data": {"code": "EXECUTION_ERROR", "message": "no wings"}}
        return observed(text=str(message["data"]))

    with scripted(script) as url, environment(section(url, fields={"text": ["text"]})) as episode:
        episode.reset(task(section(url), seed=0))
        observation, over, truncated, info = episode.step("fly")
        assert (observation, over, truncated) == ("The action was refused: no wings", False, False)
        assert info.invalid == "refused" and info.measures == {"reward": 0.0}
        assert episode.step("walk")[0] == "{'message': 'walk'}", (
            "after a reset and a flight on a fresh connection"
        )


def test_an_answer_that_is_late_is_asked_for_again_and_never_taken_for_the_next_one() -> None:
    late = iter([False, True] + [False] * 9)
    leave = threading.Event()

    def script(message: dict[str, Any]) -> Any:
        if next(late):
            leave.wait(60)
        return observed(text=str(message["data"]))

    with scripted(script) as url:
        parameters = section(url, fields={"text": ["text"]}, seconds=0.5)
        with environment(parameters) as episode:
            episode.reset(task(parameters, seed=0))
            assert episode.step("one")[0] == "{'message': 'one'}"
            leave.set()
            assert episode.step("two")[0] == "{'message': 'two'}"


def test_json_actions_are_sent_as_they_are_and_other_texts_cost_a_step() -> None:
    with scripted(lambda message: observed(text=message["data"])) as url:
        parameters = section(url, action="", fields={"text": []}, max_steps=3)
        with environment(parameters) as episode:
            episode.reset(task(parameters, seed=0))
            assert episode.step('{"tool_name": "search", "n": 2}')[0] == (
                '{"text": {"tool_name": "search", "n": 2}}'
            )
            observation, _, truncated, info = episode.step("search")
            assert info.invalid == "no_json" and "one JSON object" in observation and not truncated
            assert episode.step("[" * 10_000)[2], "three steps"


def test_tools_are_asked_for_on_the_episodes_connection_and_a_replay_asks_again() -> None:
    lost = iter([False, False, True] + [False] * 9)
    kinds: list[str] = []

    def script(message: dict[str, Any]) -> Any:
        kinds.append(message["type"])
        if next(lost):
            return LOST
        if message["type"] == "mcp":
            assert message["data"]["method"] == "tools/list"
            return {"type": "mcp", "data": {"id": 1, "result": {"tools": [{"name": "look"}]}}}
        return observed(tool_name="look", result=message["data"])

    with scripted(script) as url, environment(section(url, fields={}, tools=True)) as episode:
        _, info = episode.reset(task(section(url), seed=0))
        assert info.state.tools == '{"name": "look", "description": "", "parameters": {}}'
        sent = '{"type": "call_tool", "tool_name": "look", "arguments": {"at": 3}}'
        assert episode.step('{"name": "look", "arguments": {"at": 3}}')[0] == sent
        assert kinds == ["reset", "mcp", "step", "reset", "mcp", "step"]


def test_a_server_without_tools_is_an_error_that_names_it() -> None:
    def script(message: dict[str, Any]) -> Any:
        no_tools = {"error": {"code": -32603, "message": "Environment does not support MCP"}}
        return {"type": "mcp", "data": no_tools} if message["type"] == "mcp" else observed(text="a room")

    with (
        scripted(script) as url,
        environment(section(url, fields={}, tools=True)) as episode,
        pytest.raises(ForeignProtocolError, match="has no tools: Environment does not support MCP"),
    ):
        episode.reset(task(section(url), seed=0))


def test_a_key_goes_with_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = section("http://127.0.0.1:9", key_variable="TOY_KEY")
    with environment(parameters) as episode, pytest.raises(Exception, match="variable TOY_KEY is not set"):
        episode.reset(task(parameters, seed=0))
    monkeypatch.setenv("TOY_KEY", "open sesame")
    assert parameters.headers == {"Authorization": "Bearer open sesame"}
