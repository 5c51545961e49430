"""How the experiments of an ablation share the cores."""

import re

import pytest

from flows import ablation
from flows.ablation import METHODS, alike_among, check_different, grid_of, room, variants_of
from skillpress.core.errors import ParamsError


@pytest.mark.parametrize(
    ("cores", "processes", "at_once"),
    [(2, [1, 1], 2), (2, [2, 2], 1), (8, [2, 2], 4), (8, [1, 3], 2), (1, [2], 1)],
)
def test_experiments_run_beside_each_other_as_far_as_their_processes_have_a_core_each(
    cores: int, processes: list[int], at_once: int
) -> None:
    assert room(cores, processes) == at_once


def test_no_experiment_is_counted_twice_and_no_two_methods_are_one() -> None:
    check_different(["params/grpo.yaml", "params/segcost.yaml"], [0, 1])
    with pytest.raises(ParamsError, match=r"--params: params/grpo.yaml and mine/grpo.yaml are both grpo"):
        check_different(["params/grpo.yaml", "mine/grpo.yaml"], [0])
    with pytest.raises(ParamsError, match=r"--params: params/grpo.yaml and params/grpo.yaml are both grpo"):
        check_different(["params/grpo.yaml", "params/grpo.yaml"], [0])
    with pytest.raises(ParamsError, match="--seeds: 1 is named twice"):
        check_different(["params/grpo.yaml"], [1, 0, 1])


def test_methods_that_cannot_differ_are_warned_of_and_the_shipped_ones_may_all_differ() -> None:
    def found(*methods: str, over: tuple[str, ...] = ()) -> list[str]:
        variants = variants_of(methods, over)
        return list(
            alike_among({label: variant.values(ablation.ROOT) for label, variant in variants.items()})
        )

    assert not found(*METHODS)
    (line,) = found("params/grpo.yaml", "params/segcost.yaml", "params/segcost_no_buffer.yaml")
    assert line.startswith(
        "segcost and segcost_no_buffer differ in skills.buffer alone, and cannot differ in"
    )
    both = ("params/segcost.yaml", "params/segcost_no_buffer.yaml")
    assert not found(*both, over=("params/workshop.yaml",)), "its steps have 128 episodes"


def test_a_grid_is_every_combination_for_every_method_and_a_label_has_all_keys_that_differ() -> None:
    grid = ["training.learning_rate=1e-4,3e-4", "skills.buffer=0,64"]
    found = variants_of(["params/grpo.yaml", "params/segcost.yaml"], ["params/smoke.yaml"], grid)
    assert list(found)[:2] == [
        "grpo training.learning_rate=0.0001 skills.buffer=0",
        "grpo training.learning_rate=0.0001 skills.buffer=64",
    ]
    assert len(found) == 8
    variant = found["segcost training.learning_rate=0.0003 skills.buffer=64"]
    assert variant.name == "smoke-segcost-skills.buffer=64-training.learning_rate=0.0003"
    assert len({each.name for each in found.values()}) == 8


def test_a_grid_alone_varies_the_default_experiment() -> None:
    found = variants_of([], grid=["skills.buffer=0,64"], assignments=["training.steps=3"])
    assert [variant.options for variant in found.values()] == [
        ["--set", "training.steps=3", "--set", "skills.buffer=0"],
        ["--set", "training.steps=3", "--set", "skills.buffer=64"],
    ]


def test_a_grids_values_are_yaml_and_may_be_lists() -> None:
    assert grid_of("training.betas=[0.9, 0.99],[0.8, 0.9]") == [
        "training.betas=[0.9, 0.99]",
        "training.betas=[0.8, 0.9]",
    ]
    assert grid_of("reward.shaping=none,segcost") == ['reward.shaping="none"', 'reward.shaping="segcost"']


@pytest.mark.parametrize(
    ("grid", "assignments", "said"),
    [
        (["skills.buffer"], [], "--grid skills.buffer: must be key=value,value"),
        (["skills.buffer="], [], "--grid skills.buffer=: must be key=value,value"),
        (["training.learning_rate=1e-4,0.0001"], [], "learning_rate=0.0001 occurs twice"),
        (["skills.buffer=1,2", "skills.buffer=3"], [], "sets skills.buffer too"),
        (["skills.buffer=1,2"], ["skills.buffer=3"], "sets skills.buffer too"),
    ],
)
def test_a_grid_that_would_run_an_experiment_twice_or_none_is_refused(
    grid: list[str], assignments: list[str], said: str
) -> None:
    with pytest.raises(ParamsError, match=re.escape(said)):
        variants_of(["params/grpo.yaml"], (), grid, assignments)


def test_seeds_may_be_written_with_commas_and_an_overlay_needs_its_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, said in (
        (["params/grpo.yaml"], "did you mean --params params/grpo.yaml?"),
        (["--seeds", "1,x"], "argument --seeds: 'x' is not a whole number"),
    ):
        with pytest.raises(SystemExit):
            ablation.main(words)
        assert said in capsys.readouterr().err
