"""Every environment in the registry is a section with the methods of an environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from skillpress.core.errors import ParamsError, TaskError
from skillpress.core.registry import ENVIRONMENTS, PARSERS
from skillpress.core.trajectory import Task
from skillpress.environments import EnvironmentSection, SplitSizes, environment_class
from skillpress.environments.countdown.parameters import CountdownParameters
from skillpress.environments.section import projection_without_keys
from tests.support.environments.small_games import COUNTDOWN as SECTION


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environments_alphabet_has_no_doubles(name: str) -> None:
    """An environment whose sections state their rules has no alphabet without a section."""
    found = projection_without_keys(name)
    assert found is not None
    states_rules = name in ("gymnasium_text", "harbor", "openenv", "program")
    assert len(set(found.alphabet)) == len(found.alphabet) and (len(found.alphabet) > 1) != states_rules


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environments_section_is_an_environment_section(name: str) -> None:
    assert issubclass(environment_class(name), EnvironmentSection)


def test_sections_are_checked_without_torch_or_an_engine_of_games() -> None:
    heavy = ("torch", "transformers", "textworld", "alfworld", "tantivy", "textarena", "polars")
    code = (
        "import sys\n"
        "from skillpress.core.registry import ENVIRONMENTS\n"
        "from skillpress.environments import environment_class\n"
        "assert all(map(environment_class, ENVIRONMENTS))\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_countdowns_renderings_name_parsers_that_exist_and_the_history_asked_for() -> None:
    for name in SECTION.renderings():
        rendering = SECTION.rendering(name, 3)
        assert rendering.parser in PARSERS and rendering.history == 3


def test_an_unknown_name_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ParamsError, match=r"environment.name: is 'chess'; allowed: .*countdown"):
        environment_class("chess")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tasks: tasks[:-1], "tasks.test is 2, and make_tasks made 1"),
        (lambda tasks: [task for task in tasks if task.split != "validation"], "tasks.validation is 3"),
        (lambda tasks: [replace(task, split="train") for task in tasks], "make_tasks made 9"),
        (lambda tasks: [replace(task, split="dev") for task in tasks], "the split 'dev'"),
        (lambda tasks: [*tasks[:-1], tasks[-2]], "two test tasks with the id"),
    ],
)  # fmt: skip
def test_make_tasks_makes_as_many_of_every_split_as_asked_or_raises(
    change: Callable[[list[Task]], list[Task]], said: str
) -> None:
    sizes, order = SplitSizes(4, 3, 2), ("train", "validation", "test")
    right = sorted(SECTION.checked_tasks(sizes, 0), key=lambda task: order.index(task.split))
    assert [task.split for task in right] == list(sizes.splits)

    class Changed(CountdownParameters):
        def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
            return iter(change(right))

    with pytest.raises(TaskError, match=said):
        list(Changed(**dict(SECTION)).checked_tasks(sizes, 0))


class Least(EnvironmentSection):
    """An environment with nothing but what every environment has."""

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        for number, split in enumerate(sizes.splits):
            yield Task(str(number), self.name, seed=number, spec={}, split=split)

    def make(self) -> Any:
        return SECTION.make()

    def make_projection(self) -> Any:
        return SECTION.make_projection()


def test_a_feature_that_an_environment_lacks_is_named_with_who_lacks_it() -> None:
    least = Least(name="my_lab.least:Least", max_steps=3)
    assert not least.has_oracle and least.renderings() == {} and least.inputs() == {}
    for method in ("make_oracle", "vocabulary", "domain_words", "make_shared", "make_agent", "make_reader"):
        assert not Least.offers(method)
    with pytest.raises(ParamsError, match=r"my_lab.least:Least.*no make_oracle\(\): its class Least must"):
        least.make_oracle()


def test_tasks_are_told_apart_by_seed_and_content_where_an_environment_says_nothing_else() -> None:
    least = Least(name="my_lab.least:Least", max_steps=3)
    tasks = list(least.checked_tasks(SplitSizes(2, 1, 1), 0))
    least.check_tasks(tasks)
    with pytest.raises(TaskError, match="splits overlap"):
        least.check_tasks([*tasks, replace(tasks[0], task_id="again", split="test")])
    with pytest.raises(TaskError, match="belongs to"):
        least.check_tasks([replace(tasks[0], environment="countdown")])


def test_a_prompt_is_the_compact_rendering_where_there_are_words_for_it_and_text_elsewhere() -> None:
    class Spoken(Least):
        def prompt(self, state: Any) -> str:
            return f"reach {state}"

    class Compact(Spoken):
        def vocabulary(self, history: int) -> Any:
            return SECTION.vocabulary(history)

    for kind, name in ((Spoken, "text"), (Compact, "compact")):
        made = kind(name="x:X", max_steps=3)
        assert list(made.renderings()) == [name]
        rendering = made.rendering(name, 2)
        assert (rendering.prompt(7), rendering.history, rendering.parser) == ("reach 7", 2, "plain")
        assert rendering.response("go", None) == "go"


@pytest.mark.filterwarnings("ignore:Field name")
def test_a_key_with_the_name_of_a_method_is_refused_where_the_class_is_written() -> None:
    with pytest.raises(TypeError, match="the key 'vocabulary' has the name of a part"):

        class Hides(Least):
            vocabulary: str = ""
