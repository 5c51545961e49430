"""A name says what ran: a row of the paper is all of its parameters, and nothing else has its name."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from skillpress.core.yaml_files import read_yaml_file
from skillpress.evaluation.paper.layout import ONE_ANSWER
from skillpress.evaluation.paper.methods import (
    DESCRIBING,
    Method,
    flatten,
    is_setting,
    keys_of,
    method,
    methods,
)
from skillpress.experiment.params import Params, check_params, load_params, merge
from skillpress.models.engines.local import LocalParameters
from skillpress.pipeline.graph import read_stages
from skillpress.training.algorithms.grpo import GRPO

ROOT = Path(__file__).parents[4]
DECIDE = ("prepare_tasks", "prepare_policy", "train_policy", "play_floors", "evaluate_policy")
"""The stages whose results a table shows."""


def experiment(*overlays: str) -> Params:
    return load_params(ROOT / "params.yaml", *(ROOT / "params" / f"{name}.yaml" for name in overlays))


def changed(params: Params, key: str, value: Any) -> Params:
    """The parameters with another value of a key, by whatever path; no rule looks at them again."""

    def inside(section: Any, parts: list[str]) -> Any:
        name, *rest = parts
        if isinstance(section, dict):
            return section | {name: inside(section[name], rest) if rest else value}
        found = inside(getattr(section, name), rest) if rest else value
        return section.model_copy(update={name: found})

    return inside(params, key.split("."))


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, list):
        return [*value, 0.5]
    return 3 if value is None else f"{value}_other"


def leaves(params: Params) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in flatten(params.model_dump(mode="json"))]


BASES = {
    "segcost": experiment("segcost"),
    "segcost_no_buffer": experiment("segcost_no_buffer"),
    "grpo": experiment("grpo"),
    "round_length": experiment("round_length"),
    "l0": experiment("notebook_qa", "notebook_qa_l0"),
}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("row", BASES)
def test_a_run_with_any_one_key_changed_leaves_its_row_unless_the_key_only_describes(row: str) -> None:
    params = BASES[row]
    for key, value in leaves(params):
        one, two = methods([params, changed(changed(params, "seed", 8), key, other(value))])
        assert one == Method(row)
        if key in DESCRIBING:
            assert two == one, key
        elif two.row != "vanilla":  # training.steps 0 is another row
            assert key in two.differing and f"{key} " in two.label and two.name != row, key


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("row", BASES)
def test_a_run_alone_stays_in_its_row_only_if_the_changed_key_is_a_setting(row: str) -> None:
    for key, value in leaves(BASES[row]):
        found = method(changed(BASES[row], key, other(value)))
        if found == Method(row):
            assert key in DESCRIBING or is_setting(key), key
        else:
            assert key not in DESCRIBING, key


def test_a_new_parameter_distinguishes_until_somebody_lists_it_whatever_its_value() -> None:
    class Wider(GRPO):
        novel: bool = False

    params = experiment("segcost")
    wider = params.model_copy(update={"algorithm": Wider(**dict(params.algorithm))})
    assert method(wider) == Method("segcost", {"algorithm.novel": False})
    assert method(wider).label == "SegCost (buffer) with algorithm.novel false"


@pytest.mark.parametrize(
    ("overlays", "row"),
    [
        (("imitation",), "vanilla"),
        (("alfworld",), "segcost"),
        (("code_repair",), "segcost"),
        (("notebook_qa", "grpo"), "grpo"),
        (("paper_countdown", "grpo"), "grpo"),
        (("paper_alfworld", "segcost"), "segcost"),
        (("paper_textworld_cooking", "round_length"), "round_length"),
        (("paper_countdown", "segcost_no_buffer"), "segcost_no_buffer"),
        (("notebook_qa", "notebook_qa_l0"), "l0"),
        (("paper_notebook_qa",), "l0"),
        (("grpo", "reinforce_pp"), "reinforce_pp"),
        (("code_repair", "code_repair_l0"), "reinforce_pp"),
    ],
)
def test_the_papers_methods_are_rows_in_every_experiment(overlays: tuple[str, ...], row: str) -> None:
    assert method(experiment(*overlays)) == Method(row)


@pytest.mark.parametrize(
    ("overlays", "label"),
    [
        (
            ("erl",),
            "SegCost (buffer) with experience.name erl, experience.distill 0.5, experience.kl 0.5, "
            "experience.retries 8, experience.reflection own",
        ),
        (("lora",), "SegCost (buffer) with training.lora.rank 32, training.lora.alpha 64"),
        (("lag",), "SegCost (buffer) with training.lag 1"),
        (("constant_penalty",), "GRPO with reward.shaping constant"),
        (("segcost", "study/methods/lambda_32"), "SegCost (buffer) with reward.shaping_weight 31.6"),
        (("rloo",), "SegCost (buffer) with algorithm.name rloo"),
        (("skills_decayed",), "SegCost (no buffer) with skills.corpus decayed"),
    ],
)
def test_a_method_of_no_paper_is_the_nearest_row_with_the_keys_that_differ(overlays, label) -> None:
    assert method(experiment(*overlays)).label == label


def test_two_shipped_methods_have_one_name_only_if_nothing_differs_but_what_describes() -> None:
    files = [path for path in sorted((ROOT / "params").glob("*.yaml")) if path.stem != "smoke"]
    runs = []
    for path in files:
        section = read_yaml_file(path).get("environment", {})
        if section.get("name", "countdown") == "countdown":
            runs.append(load_params(ROOT / "params.yaml", path))
    assert len(runs) > 30
    for (one, first), (two, second) in combinations(zip(methods(runs), runs, strict=True), 2):
        if one.name == two.name and one.row != "vanilla":
            assert keys_of(first) == keys_of(second), one.label


def test_a_run_with_the_other_conventions_than_its_table_is_not_its_seed() -> None:
    ours, papers = experiment("segcost"), experiment("segcost", "study/methods/std", "study/methods/per_step")
    papers = changed(papers, "algorithm.kl_coefficient", 0.01)
    papers = changed(changed(papers, "algorithm.kl_share", 0.25), "algorithm.dual_clip", 3.0)
    papers = changed(changed(papers, "reward.invalid_counts", "format"), "reward.invalid_credit", "step")
    assert method(papers) == Method("segcost")
    first, second = methods([ours, papers])
    assert first == Method("segcost") and second.differing["algorithm.scale"] == "std"


@pytest.mark.parametrize(("rendering", "name"), ONE_ANSWER.items())
def test_an_agent_without_a_loop_is_no_row_of_agents_with_one(rendering: str, name: str) -> None:
    """Neither before training (it is L0's baseline) nor after it."""
    l0 = experiment("paper_notebook_qa")
    at_once = changed(l0, "policy.rendering", rendering)
    assert method(changed(at_once, "training.steps", 0)) == Method(name)
    assert method(at_once).label == f"L0-RL with policy.rendering {rendering}"
    assert method(changed(l0, "training.steps", 0)) == Method("vanilla")
    assert set(ONE_ANSWER) < set(l0.environment.renderings())


def test_l0s_figure_3_is_three_trainings_that_differ_in_questions_and_in_sampling_alone() -> None:
    easy, hard, dynamic = (
        keys_of(experiment("paper_notebook_qa", f"l0_figure_3/{name}"))
        for name in ("easy", "hard", "hard_dynamic")
    )
    assert {key for key in easy if easy[key] != hard.get(key)} == {"environment.difficulty"}
    differ = {key for key in hard | dynamic if hard.get(key) != dynamic.get(key)}
    assert differ == {f"algorithm.select.{key}" for key in ("name", "discard", "refills")}
    paper = keys_of(experiment("paper_notebook_qa"))
    assert {key for key in paper if paper[key] != dynamic.get(key)} == {"environment.difficulty"}


def test_rows_that_set_a_setting_stand_beside_the_others() -> None:
    """REINFORCE++ makes one update per step, and GRPO four."""
    found = methods([experiment("notebook_qa", name) for name in ("notebook_qa_l0", "grpo", "segcost")])
    assert [one.name for one in found] == ["l0", "grpo", "segcost"]


def test_the_first_row_says_the_settings_even_behind_a_run_that_is_none() -> None:
    odd, row = changed(experiment("lag"), "training.learning_rate", 1.0), experiment("segcost")
    one, two = methods([odd, row])
    assert dict(one.differing) == {"training.lag": 1, "training.learning_rate": 1.0}
    assert two == Method("segcost")


def test_keys_that_describe_are_keys_and_no_stage_that_decides_reads_their_sections() -> None:
    stages = [stage for stage in read_stages(ROOT / "dvc.yaml") if stage.name in DECIDE]
    read = {key for stage in stages for key in stage.parameters}
    assert not read & {"rollouts", "engine"} and all(DESCRIBING.values())
    library = {"retrieval": "by_task", "top_k": 1, "every": 1, "new": 1}
    teacher = {
        "name": "server", "url": "http://h/v1", "model": "", "key_variable": "", "max_new_tokens": 9
    }  # fmt: skip
    words = {"rendering": "text", "model": "m"}
    overlays = (
        {},
        {"training": {"probe": {"every": 1, "tasks": 2}}},
        {"skills": {"library": library | {"teacher": teacher}}, "policy": words},
        {"engine": {"name": "server", "urls": ["http://127.0.0.1:1"], "answer_seconds": 1.0}},
        {"engine": {"name": "vllm", "cache_gib": 1.0}},
    )
    base = read_yaml_file(ROOT / "params.yaml")
    known = {key for over in overlays for key, _ in leaves(check_params(merge(base, over), "test"))}
    assert set(DESCRIBING) <= known


def test_an_engines_new_key_distinguishes_runs_of_a_table() -> None:
    class Threaded(LocalParameters):
        threads: int

    params = experiment("segcost")
    one, two = (params.model_copy(update={"engine": Threaded(name="local", threads=n)}) for n in (1, 2))
    assert methods([one, two]) == [Method("segcost"), Method("segcost", {"engine.threads": 2})]
