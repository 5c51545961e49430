"""How the experiments of an ablation share the cores."""

import pytest

from flows.ablation import METHODS, alike_among, check_different, room, values_of
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
    def found(*methods: str) -> list[str]:
        return list(alike_among({method: values_of(method, ()) for method in methods}))

    assert not found(*METHODS)
    (line,) = found("params/grpo.yaml", "params/segcost.yaml", "params/segcost_no_buffer.yaml")
    assert line.startswith(
        "segcost and segcost_no_buffer differ in skills.buffer alone, and cannot differ in"
    )
    assert not list(
        alike_among(
            {
                method: values_of(method, ["params/workshop.yaml"])
                for method in ("params/segcost.yaml", "params/segcost_no_buffer.yaml")
            }
        )
    ), "its steps have 128 episodes"
