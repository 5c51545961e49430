"""A text game's answers in another form: asked for by the prompt, demonstrated, and read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.trajectory import Task
from skillpress.environments import environment_class
from skillpress.environments.text.answer_forms import FORMS
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, check_params, merge, read_yaml
from skillpress.rollouts.agents.parsing import tagged
from skillpress.training.imitation.demonstrations import DemonstratedStep, demonstrate

ROOT = Path(__file__).parents[3]
TASKS = [Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]})]


def params(parser: str, **policy: object) -> Params:
    text = {"model": "smollm2-135m", "rendering": "text", "parser": parser, **policy}
    return check_params(merge(read_yaml(ROOT / "params.yaml"), {"policy": text}), "test")


def shown(parser: str) -> list[DemonstratedStep]:
    made = Experiment(params(parser))
    section = made.params.environment
    (steps,) = demonstrate(TASKS, 1, section, made.rendering, made.state_update, 0.0, 0)
    return steps


@pytest.mark.parametrize("parser", sorted(FORMS))
def test_a_demonstration_says_the_same_actions_in_every_form(parser: str) -> None:
    usual, steps = shown("rendering"), shown(parser)
    parse, made = Experiment(params(parser)).parser, Experiment(params(parser))
    assert len(steps) > 1
    for one, other in zip(usual, steps, strict=True):
        said = parse(other.response)
        assert (said.action, said.invalid) == (tagged(one.response).action, None)
        assert said.thought.startswith("I take the next step of a solution.") == (parser != "plain")
        prompt = made.rendering.prompt(other.state)
        above = Experiment(params("rendering")).rendering.prompt(one.state).partition("Think before")[0]
        assert prompt.startswith(above) and "from the list" in prompt
        assert ("<action>" in prompt) == (parser not in ("json", "plain"))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            {"rendering": "compact", "model": "scratch"},
            "policy.parser is 'json', but policy.rendering 'compact'",
        ),
        (
            {"state_update": "learned", "memory": {"length": 80, "alphabet": 0}},
            "policy.parser is 'json', but a memory is written in <think>",
        ),
    ],
)
def test_a_form_that_cannot_be_asked_for_is_refused(policy: dict[str, object], message: str) -> None:
    with pytest.raises(ParamsError, match=message):
        params("json", **policy)


def test_other_environments_keep_their_own_answers() -> None:
    assert not environment_class("code_repair").answer_forms
    assert environment_class("countdown").answer_forms
