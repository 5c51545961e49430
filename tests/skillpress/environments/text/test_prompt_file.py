"""A prompt in a file: it sees what the usual prompt shows, and what is wrong with it is said before a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.interface import AgentState, Environment, Turn
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params, load_params
from skillpress.pipeline.identities import prompt_identity

ROOT = Path(__file__).parents[4]
USUAL = """\
Make {{ own.target }}.
{% if notes %}
What you noted so far:
{{ notes }}
{% endif %}
{% if history %}
You have taken {{ taken }} steps. The last {{ history|length }} of them:
{% for turn in history %}
Step {{ turn.number }}: you saw '{{ turn.observation }}' and did '{{ turn.action }}'.
{% endfor %}
{% endif %}
This is step {{ step }}. You see: {{ observation }}
The actions that you can take now: {{ actions | list }}.
"""


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    return tmp_path / "mine.jinja"


def params(rendering: Path | str, name: str = "smollm2", parser: str = "rendering") -> Params:
    overlay = Path(str(rendering)).parent / "overlay.yaml"
    overlay.write_text(
        f"policy: {{rendering: '{rendering}', domain_tokens: [], parser: {parser}, history: 2}}\n"
    )
    return load_params(ROOT / "params.yaml", ROOT / "params" / f"{name}.yaml", overlay)


def walk(environment: Environment, section: Params, notes: str) -> list[AgentState]:
    """The states of an episode that takes the first action that is possible, five times."""
    task = next(section.environment.make_tasks(section.tasks, 0))
    observation, info = environment.reset(task)
    states = [AgentState(task, observation, info)]
    for _ in range(5):
        action = info.admissible[0]
        turn = Turn(observation, "", action)
        observation, _, _, info = environment.step(action)
        states.append(AgentState(task, observation, info, (*states[-1].history, turn), notes))
    return states


@pytest.mark.parametrize("notes", ["", "1 + 2 is possible"])
def test_a_template_can_write_what_the_usual_prompt_shows(prompt: Path, notes: str) -> None:
    prompt.write_text(USUAL)
    chosen = params(prompt)
    usual = chosen.environment.rendering("text", 2)
    mine = Experiment(chosen).rendering
    for state in walk(chosen.environment.make(), chosen, notes):
        task, _, shown = mine.prompt(state).partition("\n")
        assert f"\n{shown}\n" in usual.prompt(state) and task == f"Make {state.info.state.target}."


@pytest.mark.parametrize("parser", ["rendering", "lenient", "plain", "json", "xml", "planned"])
def test_responses_are_read_by_the_usual_tags_or_by_the_parser_that_is_named(
    prompt: Path, parser: str
) -> None:
    prompt.write_text("{{ observation }}")
    chosen = params(prompt, parser=parser)
    state = walk(chosen.environment.make(), chosen, "")[0]
    rendering = Experiment(chosen).rendering
    parsed = Experiment(chosen).parser(rendering.response("1+2", state.info))
    assert parsed.action == "1+2" and parsed.invalid is None
    assert rendering.prompt(state) == state.observation, "the file asks in its own words"


def test_an_edit_of_the_file_is_another_experiment(prompt: Path) -> None:
    prompt.write_text("{{ observation }}")
    before = prompt_identity(str(prompt))
    prompt.write_text("{{ observation }} ")
    assert prompt_identity(str(prompt)) != before and prompt_identity("text") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "mine.jinja: cannot be read: No such file or directory"),
        (b"\xff", "mine.jinja: not UTF-8 at byte 0"),
        ("a\n{% if %}", "mine.jinja: line 2: not a Jinja template: "),
        (
            "{{ goal }} {{ answer }}",
            "mine.jinja: uses answer, goal; a prompt's fields are observation, history",
        ),
    ],
)
def test_what_is_wrong_with_a_prompt_is_said_before_anything_runs(prompt: Path, text, said: str) -> None:
    if text is not None:
        prompt.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ParamsError, match=said):
        params(prompt)


@pytest.mark.parametrize("text", ["{{ own.answer }}", "{{ observation.__class__.__mro__ }}", "{{ 1 // 0 }}"])
def test_a_template_reaches_nothing_but_its_fields(prompt: Path, text: str) -> None:
    prompt.write_text(text)
    chosen = params(prompt)
    state = walk(chosen.environment.make(), chosen, "")[0]
    with pytest.raises(ParamsError, match=r"mine\.jinja: .*; own has target, "):
        Experiment(chosen).rendering.prompt(state)


def test_an_environment_without_prompts_of_that_kind_is_refused(prompt: Path) -> None:
    prompt.write_text("{{ observation }}")
    with pytest.raises(ParamsError, match=r"notebook_qa has no rendering text that it could replace"):
        params(prompt, "paper_notebook_qa")
