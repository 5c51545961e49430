"""``skillpress check``: right environments pass, and each check finds an environment that breaks it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import printable
from types import ModuleType
from typing import Any

import pytest
from gymnasium.spaces import Text

from skillpress.cli.checking.check import trial
from skillpress.cli.checking.checks import CheckFinding
from skillpress.cli.command import main
from skillpress.core.interface import Info
from skillpress.environments.section import environment_class
from skillpress.environments.text.prompts import Prompted
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import check_params, merge, read_yaml
from skillpress.models.policy import save_policy
from skillpress.pipeline import exit_codes
from tests.support.models.tiny import tiny_policy
from tests.support.rollouts import asking

LINE = "my_lab.number_line:NumberLine"
MISSING = "0"
"""A word of first prompts alone; the prompt that is shown as an example is a second one."""
Look = Callable[..., dict[str, CheckFinding]]


@pytest.fixture
def line(new_lab: Path) -> ModuleType:
    """The module of the new lab's environment."""
    return sys.modules[environment_class(LINE).__module__]


@pytest.fixture
def look(line: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Look:
    """``look(dynamics, changed={...}, params={...})``: the findings about a changed environment."""

    def found(make: Any = None, changed: Any = None, params: Any = None) -> dict[str, CheckFinding]:
        own = {"make": lambda section: make(section.max_steps)} if make else {}
        for name, method in (own | (changed or {})).items():
            monkeypatch.setattr(line.NumberLine, name, method)
        values = merge(merge(read_yaml("params.yaml"), read_yaml("params/my_lab.yaml")), params or {})
        with trial(Experiment(check_params(values, "test")), 12) as begun:
            return {finding.name: finding for finding in begun.findings()}

    return found


def wrong(findings: dict[str, CheckFinding]) -> list[str]:
    return [name for name, finding in findings.items() if finding.verdict == "wrong"]


def test_countdown_passes_and_what_the_policy_will_read_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "countdown", "--tasks", "8"]) == 0
    said = capsys.readouterr().out
    assert "  ok     demonstrations         8 of 8 (100%, 68% to 100%) win; with detours" in said
    assert "longest prompt 9 of 9 tokens, longest response 1 of 4" in said
    prompt = said.split("\nA prompt:\n")[1].splitlines()[0].split()
    assert len(prompt) == 9 and said.split("\nA response:\n")[1].strip()
    assert "steps per second in one environment" in said


def test_the_environment_of_a_new_lab_passes_by_its_name_alone(
    new_lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", LINE, "--tasks", "12"]) == 0
    assert "wrong" not in capsys.readouterr().out


def test_what_is_wrong_is_one_line_with_a_remedy_and_the_exit_code(
    line: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(line, "AnyText", lambda length: Text(max_length=length))
    words = ["check", "--params", "params/my_lab.yaml", "--tasks", "4"]
    assert main(words) == exit_codes.USER_ERROR
    said = capsys.readouterr()
    assert "such as 'You stand at 0.': its charset lacks ' .': widen observation_space" in said.out
    assert said.err.strip() == "check: 1 thing is wrong"


def test_tasks_that_are_made_in_another_way_each_time_are_found(line: ModuleType, look: Look) -> None:
    calls = iter(range(9))

    def make_tasks(section: Any, sizes: Any, seed: int) -> Any:
        return line_tasks(section, sizes, seed + next(calls))

    line_tasks = line.NumberLine.make_tasks
    findings = look(changed={"make_tasks": make_tasks})
    assert wrong(findings) == ["tasks"] and "from its seed" in findings["tasks"].remedy


def test_every_split_is_counted(line: ModuleType, look: Look) -> None:
    def trains_only(section: Any, sizes: Any, seed: int) -> Any:
        return (task for task in made(section, sizes, seed) if task.split != "test")

    made = line.NumberLine.make_tasks
    right, short = look()["splits"], look(changed={"make_tasks": trains_only})
    assert right.verdict == "ok" and "test tasks" in right.detail
    assert wrong(short) == ["splits"]
    assert "tasks.test is 32, and make_tasks made 0" in short["splits"].detail


def test_the_word_without_a_token_is_named_wherever_it_stands(line: ModuleType, look: Look) -> None:
    vocabulary = line.NumberLine.vocabulary

    def without(section: Any, history: int) -> Any:
        found = vocabulary(section, history)
        numbers = {word: number for word, number in found.numbers.items() if word != MISSING}
        return replace(found, words=tuple(word for word in found.words if word != MISSING), numbers=numbers)

    findings = look(changed={"vocabulary": without})
    assert f"the policy has no token for '{MISSING}'" in findings["prompts fit"].detail


def test_a_reset_that_keeps_something_of_the_last_episode_is_found(line: ModuleType, look: Look) -> None:
    class Keeps(line.Walk):  # type: ignore[name-defined,misc]
        resets = 0

        def reset(self, task: Any) -> tuple[str, Info]:
            self.resets += 1
            observation, info = super().reset(task)
            return f"{observation} {self.resets}", info

    findings = look(Keeps)
    assert wrong(findings) == ["resets repeat"]
    assert "after the reset the observation is 'You stand at 0. " in findings["resets repeat"].detail


def test_dice_that_are_not_the_tasks_are_found(line: ModuleType, look: Look) -> None:
    thrown = iter(range(10**6))

    class Dice(line.Walk):  # type: ignore[name-defined,misc]
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            observation, terminated, truncated, info = super().step(action)
            return observation, terminated, truncated, replace(info, measures={"die": float(next(thrown))})

    findings = look(Dice)
    assert wrong(findings) == ["resets repeat"]
    assert "after 1 steps measures is {'die': " in findings["resets repeat"].detail


def test_demonstrations_that_mostly_lose_are_wrong_for_imitation_and_a_note_without(
    line: ModuleType, look: Look
) -> None:
    late = {"environment": {"max_steps": 8}}
    imitated, alone = look(params=late), look(params=late | {"imitation": {"demonstrations": 0}})
    assert [imitated["demonstrations"].verdict, alone["demonstrations"].verdict] == ["wrong", "note"]
    assert "need more than environment.max_steps 8" in imitated["demonstrations"].remedy


def test_demonstrations_that_never_win_are_wrong(line: ModuleType, look: Look) -> None:
    idle = look(changed={"make_oracle": lambda section: lambda task, rate, seed: ["back"]})
    assert "demonstrations" in wrong(idle)
    assert "after 1 steps, fell" in idle["demonstrations"].remedy


def test_a_success_that_is_never_seen_is_found(line: ModuleType, look: Look) -> None:
    class Silent(line.Walk):  # type: ignore[name-defined,misc]
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            observation, _, _, info = super().step(action)
            lost = info.lost is not None
            return observation, lost, not lost and self.steps == self.max_steps, replace(info, won=False)

    findings = look(Silent)
    assert {"demonstrations", "success is seen"} == set(wrong(findings))
    assert "Info.won is true in none of 36 episodes" in findings["success is seen"].detail


def test_a_task_that_is_won_at_its_beginning_is_found(line: ModuleType, look: Look) -> None:
    class Begun(line.Walk):  # type: ignore[name-defined,misc]
        def reset(self, task: Any) -> tuple[str, Info]:
            observation, info = super().reset(task)
            return observation, replace(info, won=True)

    assert "is won after the reset" in look(Begun)["success is seen"].detail


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (lambda terminated, truncated: (False, truncated), "terminated must be true exactly where"),
        (
            lambda terminated, truncated: (terminated, False),
            "return truncated at the last step of the budget",
        ),
    ],
)
def test_an_episode_that_does_not_end_is_found(
    change: Callable[[bool, bool], tuple[bool, bool]], remedy: str, line: ModuleType, look: Look
) -> None:
    class Endless(line.Walk):  # type: ignore[name-defined,misc]
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            observation, terminated, truncated, info = super().step(action)
            return observation, *change(terminated, truncated), info

    # A small number of moves to choose from, so that random episodes use up the budget.
    findings = look(Endless, changed={"explorer_actions": lambda section, info: ("forward", "back")})
    assert "episodes end" in wrong(findings) and findings["episodes end"].remedy.startswith(remedy)


def test_a_space_that_is_too_small_for_actions_is_found(line: ModuleType, look: Look) -> None:
    class Narrow(line.Walk):  # type: ignore[name-defined,misc]
        def __init__(self, max_steps: int) -> None:
            super().__init__(max_steps)
            self.action_space = Text(max_length=5, charset=printable)

    findings = look(Narrow)
    assert wrong(findings) == ["spaces"]
    assert "characters, allowed are 1 to 5" in findings["spaces"].detail


def test_an_environment_that_raises_at_an_unknown_action_is_found(line: ModuleType, look: Look) -> None:
    class Strict(line.Walk):  # type: ignore[name-defined,misc]
        def step(self, action: str) -> tuple[str, bool, bool, Info]:
            return super().step({move: move for move in line.MOVES}[action])

    findings = look(Strict)
    assert wrong(findings) == ["any text is an action"]
    assert "raises KeyError" in findings["any text is an action"].detail


def test_a_response_that_the_parser_refuses_is_found(line: ModuleType, look: Look) -> None:
    class Mute(Prompted):
        def response(self, action: str, info: Info) -> str:
            return ""

    findings = look(changed={"renderings": lambda section: {"compact": partial(Mute, section)}})
    assert "responses are read" in wrong(findings)
    assert "the parser finds" in findings["responses are read"].detail


def test_prompts_and_responses_that_do_not_fit_are_found(line: ModuleType, look: Look) -> None:
    class Wordy(Prompted):
        def prompt(self, state: Any) -> str:
            return f"{super().prompt(state)} 1 1 1"

    findings = look(changed={"renderings": lambda section: {"compact": partial(Wordy, section)}})
    assert wrong(findings) == ["prompts fit"] and "cannot be made to fit" in findings["prompts fit"].detail


def test_a_word_that_the_policy_lacks_is_found(line: ModuleType, look: Look) -> None:
    words = line.NumberLine.vocabulary
    fewer = {move: move for move in line.MOVES if move != "leap"}

    def vocabulary(section: Any, history: int) -> Any:
        found = words(section, history)
        return replace(found, words=tuple(w for w in found.words if w != "leap"), stop_words=tuple(fewer))

    findings = look(changed={"vocabulary": vocabulary})
    assert wrong(findings) == ["prompts fit"]
    assert findings["prompts fit"].detail == "the policy has no token for 'leap'"


def test_an_explorer_without_actions_is_found(line: ModuleType, look: Look) -> None:
    findings = look(changed={"explorer_actions": lambda section, info: ()})
    assert wrong(findings) == ["random explorer"]


def test_code_that_raises_is_named_once_with_its_place(line: ModuleType, look: Look) -> None:
    class Broken(line.Walk):  # type: ignore[name-defined,misc]
        def reset(self, task: Any) -> tuple[str, Info]:
            raise KeyError("gaol")

    findings = look(Broken)
    assert wrong(findings) == ["random explorer"]
    assert "KeyError: 'gaol'" in findings["random explorer"].detail
    assert "test_check.py:" in findings["random explorer"].detail


def test_the_share_of_random_wins_has_its_interval(look: Look) -> None:
    easy = look(params={"environment": {"max_steps": 20}})["random explorer"]
    assert easy.detail.startswith("0 of 12 (0%, 0% to 24%) win"), "Wilson's interval for no win in 12 tasks"


def test_an_overlay_that_is_not_named_is_found_in_the_lab_or_asked_for(
    new_lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = new_lab / "params"
    text = (params / "my_lab.yaml").read_text()
    (params / "second.yaml").write_text(text.replace("farthest: 96", "farthest: 9"))
    assert main(["check", LINE]) == exit_codes.USER_ERROR
    said = capsys.readouterr().err
    assert (
        "params/my_lab.yaml and params/second.yaml configure my_lab.number_line:NumberLine differently"
        in said
    )


def test_of_a_program_the_policys_tools_are_looked_at_and_not_its_prompts(tmp_path: Path) -> None:
    save_policy(tiny_policy(), tmp_path / "model")
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "start": 1}\n{"id": "b", "start": 2}\n')
    changed = {
        "environment": {
            "name": "program",
            "run": f"{asking.HERE}:several",
            "verify": f"{asking.HERE}:always",
            "tasks": str(tmp_path / "tasks.jsonl"),
            "max_calls": 6,
            "seconds": 60,
            "isolation": "none",
        },
        "tasks": {"train": 1, "validation": 0, "test": 1},
        "policy": {"model": str(tmp_path / "model"), "rendering": "compact"},
        "imitation": {"demonstrations": 0},
    }
    with trial(Experiment(check_params(merge(read_yaml("params.yaml"), changed), "test")), 1) as begun:
        findings = {finding.name: finding for finding in begun.findings()}
    assert wrong(findings) == [] and not {"prompts fit", "any text is an action"} & set(findings)
    assert findings["tools"].verdict == "note"
    assert "without a chat template it cannot be shown tools" in findings["tools"].detail
