"""An agent's knowledge is placed above its prompts, and its decisions record the prompts without it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from skillpress.core.engine import Sampling
from skillpress.core.interface import AgentState, Decision, Info, Reflection, StateUpdate
from skillpress.core.parsed_action import ParsedAction
from skillpress.core.trajectory import Task, TokenIds, Trajectory
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import load_params
from skillpress.rollouts.agents import LanguageAgent, OutcomeReward, Prompter, decide
from skillpress.rollouts.agents.parsing import tagged
from skillpress.rollouts.agents.state_updates import Concatenate, Observations, Window
from skillpress.rollouts.agents.summarize import Summarize
from skillpress.rollouts.collection import Collector, SyncVectorEnv
from skillpress.rollouts.collection.requests import EpisodeRequest
from tests.support.rollouts.rote import RoteEngine, Telling, decode, encode

TASK = Task("t", "walk", 0, {"length": 4})


class Rooms:
    """Four steps, each with a different observation."""

    action_space = observation_space = None

    def reset(self, task: Task) -> tuple[str, Info]:
        self.left: int = task.spec["length"]
        return f"room {self.left}", Info()

    def step(self, action: str) -> tuple[str, bool, bool, Info]:
        self.left -= 1
        return f"room {self.left}", False, self.left == 0, Info(action=action)


class Thinking:
    """Takes the whole response as the reflection; an empty response is not a reflection."""

    request = "What went wrong?"

    def read(self, response: str) -> ParsedAction:
        return ParsedAction(response, "", None if response else "empty")

    def knowledge(self, reflection: ParsedAction) -> str:
        return f"I learned: {reflection.thought}" if reflection.invalid is None else ""


def extend(contexts: Sequence[TokenIds], said: Sequence[str]) -> list[TokenIds]:
    return [context + encode(text) for context, text in zip(contexts, said, strict=True)]


def act(word: str) -> str:
    return f"<think>{word}</think><action>{word}</action>"


def play(
    update: StateUpdate, answers: Sequence[str], request: EpisodeRequest, reflection: Reflection | None = None
) -> tuple[Trajectory, list[str]]:
    """Play one episode with fixed answers; return it with the prompts that the engine saw."""
    engine = RoteEngine(list(answers))
    prompter = Prompter(Telling(), lambda texts: [*map(encode, texts)], 10_000, extend)
    agent = LanguageAgent(
        prompter=prompter, parse=tagged, state_update=update, reward=OutcomeReward(10.0, 0.0),
        decode=decode, engine=engine, sampling=Sampling(), reflection=reflection,
    )  # fmt: skip
    with Collector(SyncVectorEnv(Rooms), agent, 1) as collector:
        (trajectory,) = collector.collect([request])
    return trajectory, [prompt for prompt, _, _ in engine.asked]


def asked(knowledge: str = "", attempt: str = "") -> EpisodeRequest:
    return EpisodeRequest(TASK, "g", 0, 0, knowledge=knowledge, attempt=attempt)


UPDATES = [Window(2), Window(0), Concatenate(2), Observations(1), Summarize(2)]


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
def test_plain_prompts_are_those_that_the_same_responses_see_without_knowledge(update: StateUpdate) -> None:
    answers = [act("a"), act("b"), "notes", act("c"), act("d")]
    if not isinstance(update, Summarize):
        answers.remove("notes")
    knowing, seen = play(update, answers, asked("go left"))
    bare, without = play(update, answers, asked())
    assert [decode(step.prompt_ids) for step in knowing.decisions] == seen
    assert [decode(step.plain_prompt_ids or ()) for step in knowing.decisions] == without
    assert all(step.plain_prompt_ids is None for step in bare.decisions)
    assert seen == [f"go left\n{prompt}" for prompt in without], "it stands above all else, once"
    assert [step.action for step in knowing.steps] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: type(update).__name__)
def test_a_reflection_is_asked_for_before_the_first_step_and_costs_none(update: StateUpdate) -> None:
    answers = ["do not stop", act("a"), act("b"), act("c"), act("d")]
    if isinstance(update, Summarize):
        answers.insert(3, "notes")
    played, seen = play(update, answers, asked(attempt="You failed."), Thinking())
    assert seen[0] == "You failed.\n[] room 4\nWhat went wrong?"
    assert seen[1] == "I learned: do not stop\n[] room 4"
    first = played.summaries[0]
    assert (first.before, first.decision.thought, first.decision.action) == (0, "do not stop", "")
    assert first.decision.plain_prompt_ids is None, "it is no decision of the episode"
    assert len(played.steps) == 4 and decode(played.steps[0].plain_prompt_ids or ()) == "[] room 4"
    assert all("You failed" not in prompt for prompt in seen[1:])


def test_nothing_learned_is_an_episode_as_any_other() -> None:
    played, seen = play(
        Window(1), ["", *map(act, "abcd")], asked(attempt="You failed.", knowledge="old"), Thinking()
    )
    _, without = play(Window(1), [*map(act, "abcd")], asked())
    assert seen[1:] == without
    assert [step.plain_prompt_ids for step in played.steps] == [None] * 4


def test_each_decision_of_such_an_episode_has_a_seed_of_its_own() -> None:
    engine = RoteEngine(["x", *map(act, "abcd")])
    agent = LanguageAgent(
        prompter=Prompter(Telling(), lambda texts: [*map(encode, texts)], 1000), parse=tagged,
        state_update=Window(1), reward=OutcomeReward(10.0, 0.0), decode=decode, engine=engine,
        sampling=Sampling(), reflection=Thinking(),
    )  # fmt: skip
    with Collector(SyncVectorEnv(Rooms), agent, 1) as collector:
        collector.collect([asked(attempt="You failed.")])
    assert len({seed for _, _, seed in engine.asked}) == 5


def test_an_agent_without_a_way_to_reflect_says_so() -> None:
    engine = RoteEngine([])
    prompter = Prompter(Telling(), lambda texts: [*map(encode, texts)], 1000)
    agent = LanguageAgent(prompter, tagged, Window(1), OutcomeReward(10.0, 0.0), decode, engine, Sampling())
    with pytest.raises(ValueError, match="an attempt to reflect on"):
        decide(agent, [AgentState(TASK, "now", Info(), attempt="You failed.")], [0])


def test_a_step_without_a_prompt_leaves_nothing_to_go_on_from() -> None:
    engine = RoteEngine([])
    prompter = Prompter(Telling(), lambda texts: [*map(encode, texts)], 1000, extend)
    agent = LanguageAgent(
        prompter, tagged, Concatenate(1), OutcomeReward(10.0, 0.0), decode, engine, Sampling()
    )
    state = AgentState(TASK, "now", Info(), knowledge="go left")
    mute = Decision((), (), (), ParsedAction("", "", "prompt_too_long"))
    after = agent.update_state(state, mute, "later", Info())
    assert (after.context, after.plain_context, after.knowledge) == (None, None, "go left")


def test_room_for_knowledge_changes_no_weight_of_a_policy_made_from_nothing(repository: Path) -> None:
    files = [repository / "params.yaml", repository / "params" / "smoke.yaml"]
    without = Experiment(load_params(*files)).starting_policy()
    erl = load_params(*files, repository / "params" / "erl.yaml")
    roomy = Experiment(erl).starting_policy()
    assert erl.policy.knowledge_words == 8 and roomy.context_length == without.context_length + 8
    pairs = zip(roomy.model.parameters(), without.model.parameters(), strict=True)
    assert all(bool((mine == other).all()) for mine, other in pairs)
